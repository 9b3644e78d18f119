/* router: where a request goes, to the edge, the cloud or the split plan between them. It learns from what happened to
 * earlier requests: the experiences nearest to a request are written as examples into a prompt, and a language model
 * that reads the prompt decides. Rules, and the learners it is compared with, have the same interface.
 *
 * Source: "Generative AI as a Service in 6G Edge-Cloud: Generation Task Offloading by In-context Learning", called P3;
 * equation numbers are its own. Nothing here locks: one thread at a time uses an object; store.c is the exception and
 * says so.
 */
#ifndef LP_ROUTER_H
#define LP_ROUTER_H

#include "base/base.h"

typedef enum { LP_ROUTE_EDGE, LP_ROUTE_CLOUD, LP_ROUTE_SPLIT, LP_ROUTE_COUNT } lp_route;
const char *lp_route_name(lp_route route);               /* "edge", "cloud", "split" */
bool lp_route_parse(const char *name, lp_route *out);    /* false: no such route */
bool lp_route_offered(unsigned offered, lp_route route); /* `offered` has bit 1 << route for each that is allowed */

/* ---- experience (replay.c) --------------------------------------------------------------------------------------- */

/* The outcome of one request on one route. */
typedef struct {
  const char *keywords; /* what the request is, words separated by ", ": "code, long answer" */
  lp_route route;
  double reward; /* s: target minus delay minus penalty, Eq. (10) with the SPEC's signs */
  bool good;     /* the quality that the user asked for was met */
  uint64_t
      seen; /* as an example: how many rewards it stands for, all that went into its mean or that it is the best of;
                    what is learned is one, whatever this says */
} lp_experience;

typedef enum {
  LP_REPLAY_EMA,    /* mean reward per keywords and route, older ones forgotten by and by */
  LP_REPLAY_REWARD, /* P3: per keywords the experience of the greatest reward; an equal one changes nothing */
  LP_REPLAY_STRICT, /* P3: as REWARD, but what missed its quality is never kept */
  LP_REPLAY_LATEST  /* P3's baseline: the newest experience, whatever came of it */
} lp_replay_mode;
bool lp_replay_mode_parse(const char *name, lp_replay_mode *out); /* "ema", "reward", "strict", "latest" */

typedef struct lp_replay lp_replay;
/* `rate` (EMA only): the weight of a new reward once 1 / count is smaller; 0 forgets nothing. */
lp_replay *lp_replay_create(lp_replay_mode mode, double rate);
void lp_replay_free(lp_replay *replay); /* NULL is allowed */
/* Copies what it keeps. False when the pool stays as it was. */
bool lp_replay_add(lp_replay *replay, const lp_experience *experience);
size_t lp_replay_count(const lp_replay *replay);
/* What is known of exactly these keywords and this route: the mean reward (LP_REPLAY_EMA) or the one kept. */
bool lp_replay_find(const lp_replay *replay, const char *keywords, lp_route route, double *reward);
/* The examples of a prompt for `keywords`, at most `most`: first those that share most words with it, then the newest.
 * They are written in rising order of likeness, so that the nearest stand last. They live until the pool changes. */
size_t lp_replay_select(const lp_replay *replay, const char *keywords, size_t most, lp_experience *out);

/* ---- prompt (prompt.c, prompt_tokens.c) -------------------------------------------------------------------------- */

enum { LP_PROMPT_EXAMPLES = 32 };

typedef struct {
  const char *keywords; /* the query */
  unsigned offered;
  const lp_experience *examples;
  size_t count;   /* at most LP_PROMPT_EXAMPLES */
  bool best_only; /* an example is the best of its keywords: other routes may have been tried and were no better */
} lp_prompt;

/* Task description (goal, definition, rules), examples (keywords, decision, reward, evaluation) and query, Eq. (7) to
 * (9), as text for a language model. Ends with "Decision:". */
void lp_prompt_text(const lp_prompt *prompt, lp_buf *out);

/* The same as tokens of the embedded model (examples/router-model/tasks.py): one to begin with, then five for each
 * example and three for the query. Words become symbols in the order they appear; at most three stand for a request,
 * the third for all that follow. A route's token says what the example is, too: the mean or the best of 1, 2, 4, .. 32
 * rewards and more. Rewards become ranks. Returns the count. */
enum { LP_PROMPT_TOKENS = 1 + 5 * LP_PROMPT_EXAMPLES + 3 };
enum {
  LP_PROMPT_WORDS = 100,
  LP_PROMPT_LEVELS = 6, /* of how many rewards an example stands for */
  LP_PROMPT_RANKS = 64,
  LP_PROMPT_VOCAB = 1 + LP_PROMPT_WORDS + 2 * LP_PROMPT_LEVELS * LP_ROUTE_COUNT + 2 * LP_PROMPT_RANKS
};
size_t lp_prompt_tokens(const lp_prompt *prompt, int32_t out[LP_PROMPT_TOKENS]);
int32_t lp_prompt_route_token(lp_route route); /* that answers the query, of the vocabulary of lp_prompt_tokens */

/* ---- deciders (decider_*.c) ------------------------------------------------------------------------------------- */

/* Reads a prompt, answers with the probability of each route. Release with decider->close(decider). */
typedef struct lp_decider lp_decider;
struct lp_decider {
  const char *name;
  /* Probabilities of the offered routes sum to 1, the others get 0. */
  lp_status (*score)(lp_decider *self, const lp_prompt *prompt, double probability[LP_ROUTE_COUNT], lp_diag *diag);
  void (*close)(lp_decider *self);
};

/* A lookup that follows the prompt's rules: of the offered routes that the examples know for the query's own keywords
 * the one of the greatest reward, if it was good; else that of the greatest mean over the examples of each route that
 * share most words with the query. It needs no model. */
lp_decider *lp_decider_lookup(void);
/* The embedded model: a bundle over lp_prompt_tokens, in this process, on one core. */
LP_MUST_USE lp_status lp_decider_embedded(const char *bundle, lp_decider **out, lp_diag *diag);
/* Any language model that llmpart compiled, in this process: the prompt's text, wrapped in the chat template where the
 * bundle has one. A route's probability is that of the first tokens of its name in all spellings ("edge", " Edge",
 * ...), Eq. (5) and (6). An error when two routes begin with the same token. `threads` 0: all cores. */
LP_MUST_USE lp_status lp_decider_bundle(const char *bundle, int32_t threads, lp_decider **out, lp_diag *diag);

typedef struct {
  const char *url;   /* "http://127.0.0.1:8000/v1": the base of an OpenAI-compatible API */
  const char *model; /* its name there */
  const char *key;   /* bearer token; NULL: none */
  double timeout_ms; /* 0: 300 */
} lp_endpoint_options;
/* A language model with an API of /completions and log-probabilities of the first token; scored as lp_decider_bundle
 * does. */
LP_MUST_USE lp_status lp_decider_endpoint(const lp_endpoint_options *options, lp_decider **out, lp_diag *diag);

/* ---- policies (policy_*.c, router.c) ----------------------------------------------------------------------------- */

typedef struct {
  const char *keywords;
  unsigned offered;               /* after the hard constraints: privacy, context length, budget, health; never 0 */
  lp_route rule;                  /* what the class rule says: quality to the cloud, else the edge */
  double delay_s[LP_ROUTE_COUNT]; /* estimated delay of each route, lp_delay_estimate (backends.h); 0: not known */
  const double *mean_reward;      /* [LP_ROUTE_COUNT], only for the oracle of a simulation; else NULL */
} lp_router_request;

typedef enum {
  LP_DECIDED_ONLY, /* one route was offered */
  LP_DECIDED_MODEL,
  LP_DECIDED_CACHE, /* the model's answer to the same prompt */
  LP_DECIDED_EXPLORE,
  LP_DECIDED_RULE,    /* the policy is a rule */
  LP_DECIDED_FALLBACK /* the model failed; the rule decided, and `reason` says why */
} lp_decision_source;
const char *lp_decision_source_name(lp_decision_source source);

typedef struct {
  lp_route route;
  lp_decision_source source;
  double probability[LP_ROUTE_COUNT]; /* what the model, or the policy's estimate, makes of the routes */
  double propensity;                  /* probability with which `route` was drawn, exploration included */
  char reason[160];                   /* of a fallback; else empty */
} lp_decision;

/* Decides and learns. Release with policy->close(policy). */
typedef struct lp_policy lp_policy;
struct lp_policy {
  const char *name;
  void (*decide)(lp_policy *self, const lp_router_request *request, lp_decision *out);
  void (*learn)(lp_policy *self, const lp_router_request *request, lp_route route, double reward, bool good);
  void (*close)(lp_policy *self);
};

/* With probability `epsilon` an offered route is drawn uniformly, the best one included. `half_life` > 0 halves epsilon
 * after so many decisions. */
typedef struct {
  double epsilon;
  double half_life;
  uint64_t seed;
} lp_exploration;

/* "rule", "edge", "cloud", "split", "random", "oracle", "quickest" (least delay_s): they never learn. NULL: no such
 * name. */
lp_policy *lp_policy_fixed(const char *name, uint64_t seed);
/* Tabular Q of one step: a running mean of rewards per keywords and route with step `rate`. */
lp_policy *lp_policy_table(double rate, const lp_exploration *exploration);
/* A network of one hidden layer over hashed keywords, trained by Adam on a replay memory (DQN of one step). */
lp_policy *lp_policy_network(const lp_exploration *exploration);

typedef struct {
  lp_replay_mode replay;
  double rate; /* of LP_REPLAY_EMA; 0 takes 0.1 */
  lp_exploration exploration;
  size_t examples; /* in a prompt; 0: LP_PROMPT_EXAMPLES */
  size_t cache;    /* answers of the decider that are kept by their prompts; 0: none */
} lp_router_options;
/* The in-context learner: prompt, decider, exploration, replay. Owns `decider`. */
lp_policy *lp_router_create(const lp_router_options *options, lp_decider *decider);

/* A policy as text names it (open.c). */
typedef struct {
  const char
      *policy; /* "router"; "latest", "greedy": the router with LP_REPLAY_LATEST or without exploration; "q-table",
                         "dqn"; or a name of lp_policy_fixed */
  const char *model;            /* the router's: "lookup", "embedded", a bundle's path, or an API's base "http://..." */
  const char *model_name, *key; /* of an API */
  double timeout_ms;            /* of an API; 0: 300 */
  const char *embedded;         /* the embedded model's bundle */
  lp_router_options options;
} lp_policy_spec;
LP_MUST_USE lp_status lp_policy_open(const lp_policy_spec *spec, lp_policy **out, lp_diag *diag);

/* Draws for a policy with exploration: `best` unless it explores. Sets route, source (`source` or EXPLORE),
 * propensity. */
typedef struct {
  lp_exploration options;
  uint64_t count;
} lp_explorer;
void lp_explorer_draw(lp_explorer *explorer, unsigned offered, lp_route best, lp_decision_source source,
                      lp_decision *out);

#endif
