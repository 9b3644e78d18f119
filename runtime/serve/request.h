/* A request for an answer, read from its JSON. */
#pragma once

#include "base/json/reader.h"
#include "runtime/engine/engine.h"
#include "runtime/runtime.h"
#include "runtime/serve/serve.h"
#include "runtime/spans/spans.h"

/* Choices of a prompt, and of all prompts of a request. */
enum { LP_MOST_CHOICES = 16, LP_MOST_ANSWERS = 128 };

typedef enum { LP_FORMAT_TEXT, LP_FORMAT_OBJECT, LP_FORMAT_SCHEMA } lp_format;
typedef enum { LP_TOOLS_NONE, LP_TOOLS_AUTO, LP_TOOLS_REQUIRED } lp_tools;

typedef struct {
  lp_json_document *document; /* owned: the body, an object */
  bool chat, stream, stream_usage;
  bool machines; /* pieces of the stream name the machine that computed them */
  const char *model, *prompt;
  lp_tokens prompt_tokens;   /* owned: the prompt as token numbers, instead of `prompt`, which then is "" */
  size_t prompts;            /* of the body; `prompt` and `prompt_tokens` are one of them, at first the first */
  lp_chat_message *messages; /* [count], texts of the body */
  size_t count;
  const char **stop; /* [stop_count], texts of the body: the answer ends before the first of them */
  size_t stop_count;
  LP_VEC(char *) joined; /* owned: contents that were joined from parts */
  int64_t max_tokens;
  int32_t choices;
  struct {
    double temperature, top_p; /* NaN: not given */
    int64_t top_k;             /* -1: not given, 0: off */
    uint64_t seed;             /* drawn at random if the request has none */
  } sampling;
  /* Ways to draw that lp_sampling lacks, and log probabilities: `top_logprobs` -1: none. Without its sampling and its
   * grammar. */
  lp_decoding decoding;
  lp_logit_bias *bias; /* owned: [decoding.bias_count] */
  lp_format format;
  const lp_json_value *schema; /* with LP_FORMAT_SCHEMA */
  lp_tools tools;              /* the ways in which the answer may call functions of the body's member `tools` */
  bool one_call;               /* only the first call of an answer counts */
  const char *tool;            /* the function that it must call; NULL: any */
  bool has_more;               /* messages have more than a role and a content: the template gets those of the body */
  const lp_json_value *template_variables; /* an object, of a chat; NULL: none */
  bool only_counts;                        /* the answer is the number of the prompt's tokens */
  bool may_be_plain;                       /* a model without a chat template continues the last message */
  bool waits; /* no other place is left that could answer: it waits for a worker that was lost (place/bundle.c) */
  const char *only_engine; /* a member that only passes of the engine support (place/bundle.c); NULL: none */
  char note[128];          /* on what was changed in the request; "": nothing */
  const char *keywords;    /* for the router: of the request, or `described` */
  lp_buf described;        /* what the request looks like; empty if it has keywords */
  bool local_only;         /* the request may not leave the edge */
  double budget_usd;       /* INFINITY: none */
  double up_bps, down_bps; /* of the client's link, which the server sets; 0: unknown */
  int64_t user;            /* of the radio profile of the backends, which the server sets; 0: none */
  /* W3C trace context, which the server sets: the trace, the span of the caller ("": there is none), the span of this
   * request, and the one of the place that is asked. */
  char trace[LP_SPAN_TRACE + 1], caller[LP_SPAN_ID + 1], span[LP_SPAN_ID + 1], of_place[LP_SPAN_ID + 1];
  uint64_t client_id; /* requests with the same number come from one client */
  uint64_t owner;     /* of decisions of the router (http/paths.c) */
  uint64_t tenant;    /* only requests with the same number share rows of prompts */
  int client;         /* the client's socket, which the server owns; a negative number: unknown */
} lp_completion;

/* Reads a body of `size` bytes; any bytes are safe input. The diagnostic's text is for the client. Release with
 * lp_completion_free, also after a failure. */
LP_MUST_USE lp_status lp_completion_read(const lp_serve_config *config, bool chat, const char *body, size_t size,
                                         lp_completion *out, lp_diag *diag);
void lp_completion_free(lp_completion *completion);
/* Makes prompt `index` of the body the request's. */
LP_MUST_USE lp_status lp_completion_take_prompt(lp_completion *completion, size_t index, lp_diag *diag);
/* The choices of all prompts. Those of a prompt follow those of the prompts before it. */
int32_t lp_completion_answers(const lp_completion *completion);

/* Parses a body, which must be a JSON object in UTF-8, without duplicate keys and without \u0000 in a text. The
 * diagnostic gives line and column. */
LP_MUST_USE lp_status lp_body_parse(const char *body, size_t size, lp_json_document **out, lp_diag *diag);

/* ---- the members that a body may have (members.c) ---------------------------------------------------------------- */

/* LP_USAGE: a member is unknown, or belongs to a feature that other servers have and this one lacks. */
LP_MUST_USE lp_status lp_members_of_completion(const lp_json *body, lp_diag *diag);
LP_MUST_USE lp_status lp_members_of_embeddings(const lp_json *body, lp_diag *diag);

/* ---- members that change how tokens are drawn, and their format (request_options.c) ----------------------------- */

/* Leaves *out unchanged if the body lacks the member. */
LP_MUST_USE lp_status lp_request_number(const lp_json *body, const char *key, double least, double most, double *out,
                                        lp_diag *diag);
LP_MUST_USE lp_status lp_request_count(const lp_json *body, const char *key, int64_t least, int64_t most, int64_t *out,
                                       lp_diag *diag);
LP_MUST_USE lp_status lp_request_options(const lp_json *body, lp_completion *out, lp_diag *diag);
