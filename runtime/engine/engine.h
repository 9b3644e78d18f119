/* runtime/engine: continuous batching. An engine runs the requests of any number of threads over one bundle, whose
 * layers all run in this process, in batched passes: each pass takes the next token of every sequence that generates,
 * and parts of the prompts that wait. A request joins at the next pass and leaves when it ends.
 *
 * A pass never waits for further requests. Clients share passes by rows (exec/fair.h), and while sequences generate,
 * parts of prompts, and the sequences of one client beside others', lengthen a pass by a bounded factor (exec/pace.h).
 *
 * Prompts that begin with the same tokens share the rows of these in the KV caches: those of a request that has ended
 * are kept under the budget, and copied.
 *
 * With a worker, the sequences of a pass run their cloud's steps in sessions there, whose requests the worker batches.
 * The loss of the worker fails the requests that are under way; the next one connects again. */
#pragma once

#include "runtime/runtime.h"

typedef struct lp_engine lp_engine;
typedef struct lp_grammar lp_grammar; /* runtime/grammar/grammar.h */

typedef struct {
  int32_t threads; /* 0: the machine's cores */
  int64_t
      kv_bytes; /* the most bytes of KV caches, kept ones included; requests beyond them wait (memory.h); 0: no limit */
  /* The worker that runs the cloud's steps of a split bundle; NULL: all layers run here. */
  const char *cloud;
  lp_link_security security; /* of the connection to it */
  /* Of a worker's bundle with early exits: the confidence with which an exit gives a token; 0: the full model gives all
   * tokens. */
  double theta;
  double prompt_stretch; /* how many times as long a pass may last for prompts, at least 1; 0: LP_PROMPT_STRETCH */
  int64_t prompt_turn;   /* rows of a prompt that run before the next prompt's; 0: half of a pass */
} lp_engine_options;

typedef struct {
  int32_t token;
  float amount; /* added to its logit; -INFINITY: the token is never drawn */
} lp_logit_bias;

/* The way from logits to a token: repetition penalty, presence and frequency penalties, bias, then the grammar, the
 * temperature, min_p, top_k and top_p, in the order of vLLM. Pointers are borrowed. */
typedef struct {
  lp_sampling sampling;
  double min_p; /* 0: off. Tokens with less than this share of the greatest probability are not drawn */
  /* 1: off. Positive logits of tokens of the prompt and the answer are divided by it, negative ones multiplied (Keskar
   * et al., "CTRL", 2019, equation 1). */
  double repetition_penalty;
  /* 0: off. Subtracted from the logits of tokens of the answer, once, and once for each time that they are there. */
  double presence_penalty, frequency_penalty;
  const lp_logit_bias *bias;
  size_t bias_count;
  const lp_grammar *grammar; /* the answer is a text of this grammar; NULL: any */
  int32_t top_logprobs;      /* the likeliest tokens that are told with each, up to LP_MOST_TOP; -1: no probabilities */
} lp_decoding;

enum { LP_MOST_TOP = 20 };
typedef struct {
  int32_t token;
  float logprob;
} lp_token_logprob;

/* A token, and its natural log probability in the model's own distribution, before penalties and at temperature 1. */
typedef struct {
  int32_t token;
  float logprob; /* NaN: not asked for */
  int32_t exit;  /* the number of layers before the early exit that gave it; 0: none did */
  int32_t top_count;
  lp_token_logprob top[LP_MOST_TOP]; /* in descending order */
} lp_drawn;

/* Takes a token of a sequence, on the thread that generates; false: the sequence ends here. */
typedef bool lp_drawn_sink(void *user, int32_t choice, const lp_drawn *drawn);

typedef struct {
  const int32_t *prompt; /* [length] */
  size_t length;
  /* Tokens at the end of the prompt that an earlier request has made. They run one by one as they did there, since a
   * pass over several rows may round differently than passes over one; so the answer goes on as it would have. */
  size_t answered;
  int64_t max_tokens;
  /* Sequences that continue the prompt, numbered from `first_choice`. Each draws with random numbers of its own. */
  int32_t choices, first_choice;
  uint64_t client; /* requests with the same number share the passes of one client */
  uint64_t tenant; /* only requests with the same number share rows of prompts */
  lp_decoding decoding;
  const char *traceparent; /* for a worker's spans (W3C Trace Context); NULL: none */
  lp_drawn_sink *sink;
  /* Asked before each token and ten times a second while none comes, on the thread that generates; true ends the
   * request. NULL: nothing asks. */
  bool (*is_abandoned)(void *user);
  void *user;
} lp_engine_request;

typedef struct {
  int64_t tokens; /* that the sink took */
  int64_t reused; /* tokens of the prompt with rows in the KV caches that were copied from another request */
  bool cut;       /* by max_tokens, and not by the sink */
  bool lost;      /* the worker was lost, and with it the rest of the answer; the request has failed */
  bool too_much;  /* the grammar took more work than a request may, and the answer is incomplete */
} lp_engine_outcome;

/* Tells whether an engine can run the bundle here, or with a worker; if not, `why` receives the reason, as static
 * text. */
bool lp_engine_fits(const lp_bundle *bundle, const char **why);
bool lp_engine_fits_worker(const lp_bundle *bundle, const char **why);
bool lp_engine_fits_exits(const lp_bundle *bundle, const char **why); /* with a worker and `theta` */
/* The bundle, with lp_engine_fits or lp_engine_fits_worker and a device side that is loaded, is borrowed until the
 * engine is closed. */
LP_MUST_USE lp_status lp_engine_open(const lp_bundle *bundle, const lp_engine_options *options, lp_engine **out,
                                     lp_diag *diag);
void lp_engine_close(lp_engine *engine); /* NULL is allowed; no thread may be in lp_engine_generate */
/* Tells whether the worker has the logits. It draws the tokens if lp_sampling says all; for other ways of drawing it
 * sends the logits of each token, and they are drawn here. */
bool lp_engine_draws_remotely(const lp_engine *engine);

/* Generates, and returns when all choices have ended. Any number of threads may call it. `queue_ms` receives the time
 * until the first pass over the prompt began. */
LP_MUST_USE lp_status lp_engine_generate(lp_engine *engine, const lp_engine_request *request,
                                         lp_engine_outcome *outcome, double *queue_ms, lp_diag *diag);

/* The first rows of the prompt that a request with it would find in KV caches: of earlier prompts, and of those that
 * run or wait. */
int64_t lp_engine_rows_of(lp_engine *engine, uint64_t tenant, const int32_t *prompt, size_t length);

typedef struct {
  int32_t running, waiting; /* sequences with KV caches, and those that wait for room */
  int64_t kv_bytes;         /* of those that run */
  int64_t kept_bytes;       /* of prompts that have ended, for others that begin alike */
  int64_t reused;           /* tokens with copied rows, of all prompts so far */
  int64_t preempted;        /* sequences that gave their memory to others and began again, so far */
  double busy_s;            /* in passes, so far */
} lp_engine_load;
lp_engine_load lp_engine_now(lp_engine *engine);
