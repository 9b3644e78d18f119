/* Sites, which answer requests at the edge or in the cloud. */
#pragma once

#include "runtime/serve/request.h"

/* A token of an answer with its log probability, as JSON in the API's format. Owned; see logprobs.h. */
typedef struct {
  char *token, *logprob, *top; /* top: the likeliest tokens, an array in chats and an object elsewhere */
  char *bytes;                 /* an array; NULL outside of chats */
  size_t size, characters;     /* of the token's text */
} lp_answer_logprob;

/* A call of a tool, or a part of one: parts with the same index belong together. Borrowed. */
typedef struct {
  int64_t index;
  const char *id, *name; /* NULL in later parts */
  const char *arguments;
} lp_tool_call;

/* A piece of an answer. Borrowed for the call. */
typedef struct {
  int32_t choice; /* below the request's `choices` */
  const char *text;
  const lp_answer_logprob *logprobs; /* [logprob_count] the tokens, if the request wants their probabilities */
  size_t logprob_count;
  const lp_tool_call *calls; /* [call_count] */
  size_t call_count;
  const char *machine; /* that computed the last token of the text, if the request wants to know; else NULL */
} lp_piece;

/* Takes a piece of an answer; false: the choice ends here, or the client wants no more. */
typedef bool lp_piece_sink(void *user, const lp_piece *piece);

typedef enum { LP_FINISH_STOP, LP_FINISH_LENGTH, LP_FINISH_TOOLS, LP_FINISH_FILTER, LP_FINISH_ERROR } lp_finish;

typedef struct {
  int64_t prompt_tokens, tokens; /* prompt_tokens -1: unknown */
  int64_t cached_tokens;         /* tokens of the prompt that needed no computing, since an earlier one began alike */
  lp_finish finish[LP_MOST_CHOICES];
  double queue_ms;        /* the time before the site began to work on the request */
  bool is_busy;           /* the site failed because it has too many requests */
  const char *stopped_by; /* the stop sequence that ended the first choice, of the request; NULL: none */
  const char *note;       /* static: on what the place leaves out of the request; NULL: nothing */
  bool is_too_long; /* it failed because the prompt exceeds its model's context; another site may have a longer one */
} lp_usage;

enum { LP_WORKER_REASON = 160 };

/* Why a request went to a worker: it has rows of the prompt; another server has sent the conversation there; those that
 * have rows have too many requests; it has the fewest requests. */
typedef enum {
  LP_CHOICE_PREFIX,
  LP_CHOICE_VISITED,
  LP_CHOICE_QUEUE,
  LP_CHOICE_FEWEST,
  LP_CHOICE_COUNT
} lp_choice_reason;

/* A worker of a split. */
typedef struct {
  const char *address; /* borrowed */
  bool up;
  int requests;
  char reason[LP_WORKER_REASON]; /* why it is not up, without addresses; "": it is, or that is not known */
} lp_worker_state;

/* What a site knows of itself. */
typedef struct {
  bool up;            /* it takes requests, as far as is known */
  int64_t requests;   /* that it answers, or that wait there */
  int64_t generating; /* sequences that generate in batched passes, those with all workers; -1: there are no passes */
  int64_t waiting;    /* sequences that wait for memory */
  int64_t kv_bytes;   /* of KV caches */
  int64_t kept_bytes; /* of KV caches of earlier prompts */
  int64_t preempted;  /* sequences that began again, so far, since others needed their memory */
  double busy_s;      /* in passes of this process, so far */
  size_t workers;     /* of the configuration */
  lp_worker_state worker[LP_MOST_WORKERS];
  uint64_t choices[LP_CHOICE_COUNT]; /* of workers, so far */
  int servers; /* that share the workers and were heard of, this one included; 0: none are looked for, or heard of */
} lp_site_state;

typedef struct lp_site_server lp_site_server;
struct lp_site_server {
  const char *name, *model; /* of its route, and of what it serves; borrowed */
  /* Any number of threads may call this. Another thread may set `stop`. LP_USAGE: the request is wrong, and no other
   * site would take it. */
  lp_status (*complete)(lp_site_server *self, const lp_completion *request, const volatile int *stop,
                        lp_piece_sink *sink, void *user, lp_usage *usage, lp_diag *diag);
  void (*tell)(lp_site_server *self, lp_site_state *out); /* sets all members; any thread may ask */
  void (*close)(lp_site_server *self);
};

/* A bundle of the configuration, run in this process (place/bundle.c), and its API (place/api.c). The configuration
 * must outlive the site. */
LP_MUST_USE lp_status lp_site_bundle(const lp_serve_bundle *config, lp_route route, lp_site_server **out,
                                     lp_diag *diag);
LP_MUST_USE lp_status lp_site_api(const lp_serve_config *config, lp_site_server **out, lp_diag *diag);
