/* runtime/router: decides whether a request goes to the edge, the cloud or the split plan between them. It learns from
 * the outcomes of earlier requests: it writes the experiences nearest to a request as examples into a prompt, and a
 * language model decides by that prompt. Fixed policies, and the learners that it is compared with, have the same
 * interface.
 *
 * Source: "Generative AI as a Service in 6G Edge-Cloud: Generation Task Offloading by In-context Learning", called P3;
 * equation numbers are its own. One thread at a time may use an object, except those of store.c and those
 * that are `parallel`. */
#pragma once

#include "base/base.h"

typedef enum { LP_ROUTE_EDGE, LP_ROUTE_CLOUD, LP_ROUTE_SPLIT, LP_ROUTE_COUNT } lp_route;
const char *lp_route_name(lp_route route);               /* "edge", "cloud", "split" */
bool lp_route_parse(const char *name, lp_route *out);    /* false: no such route */
bool lp_route_offered(unsigned offered, lp_route route); /* sets of routes, such as `offered`, have bit 1 << route */

/* ---- experience (replay.c) --------------------------------------------------------------------------------------- */

/* The outcome of one request on one route. */
typedef struct {
  const char *keywords; /* describe the request, separated by ", ": "code, long answer" */
  lp_route route;
  double reward; /* in s: target minus delay minus penalty, Eq. (10), so that more is better */
  bool good;     /* the requested quality was met */
  uint64_t
      seen; /* of an example: the number of rewards of which it is the mean or the best; ignored when it is learned */
} lp_experience;

typedef enum {
  LP_REPLAY_EMA,    /* moving average of the rewards per keywords and route */
  LP_REPLAY_REWARD, /* P3: per keywords the experience with the greatest reward; an equal one changes nothing */
  LP_REPLAY_STRICT, /* P3: as REWARD, but an experience that missed its quality is never kept */
  LP_REPLAY_LATEST  /* P3's baseline: the newest experience, whatever its reward */
} lp_replay_mode;
bool lp_replay_mode_parse(const char *name, lp_replay_mode *out); /* "ema", "reward", "strict", "latest" */

typedef struct lp_replay lp_replay;
/* `rate` (EMA only): the weight of a new reward is 1 / count, but at least `rate`; 0: a plain mean. */
lp_replay *lp_replay_create(lp_replay_mode mode, double rate);
void lp_replay_free(lp_replay *replay); /* NULL is allowed */
/* Adds an experience of an owner; copies what it keeps. False: the pool is unchanged. */
bool lp_replay_add(lp_replay *replay, uint64_t owner, const lp_experience *experience);
/* The reward for exactly these keywords and this route of owner 0: the mean (LP_REPLAY_EMA) or the one that is kept. */
bool lp_replay_find(const lp_replay *replay, const char *keywords, lp_route route, double *reward);
/* Selects the examples of a prompt for `keywords`, at most `most`: those that share most words with it, and among
 * equals the newest. They are written in ascending order of similarity, so that the nearest come last. Valid until the
 * pool changes. An example of a route is the owner's own experience. If the owner has none of these keywords and this
 * route, it is the mean over the other owners, in which each has the same weight. */
size_t lp_replay_select(const lp_replay *replay, uint64_t owner, const char *keywords, size_t most, lp_experience *out);

/* ---- prompt (prompt.c, prompt_tokens.c) -------------------------------------------------------------------------- */

enum { LP_PROMPT_EXAMPLES = 32 };

typedef struct {
  const char *keywords; /* the query */
  unsigned offered;
  const lp_experience *examples;
  size_t count;   /* at most LP_PROMPT_EXAMPLES */
  bool best_only; /* examples are the best of their keywords: other routes may have been tried and were no better */
} lp_prompt;

/* Appends task description (goal, definition, rules), examples (keywords, decision, reward, evaluation) and query, Eq.
 * (7) to (9), as text for a language model. Ends with "Decision:". */
void lp_prompt_text(const lp_prompt *prompt, lp_buf *out);

/* Writes the same as tokens of the embedded model (examples/router-model/tasks.py): one at the beginning, then five for
 * each example and three for the query. Words are numbered in order of appearance; a request has at most three word
 * tokens, the third for all further words. A route's token also says whether the example is the mean or the best, and
 * of how many rewards: 1, 2, 4, .. 32 and more. Rewards become ranks. Returns the number of tokens. */
enum { LP_PROMPT_TOKENS = 1 + 5 * LP_PROMPT_EXAMPLES + 3 };
enum {
  LP_PROMPT_WORDS = 100,
  LP_PROMPT_LEVELS = 6, /* the classes of an example's number of rewards */
  LP_PROMPT_RANKS = 64,
  LP_PROMPT_VOCAB = 1 + LP_PROMPT_WORDS + 2 * LP_PROMPT_LEVELS * LP_ROUTE_COUNT + 2 * LP_PROMPT_RANKS
};
size_t lp_prompt_tokens(const lp_prompt *prompt, int32_t out[LP_PROMPT_TOKENS]);
int32_t lp_prompt_route_token(lp_route route); /* the token, of lp_prompt_tokens' vocabulary, that answers the query */

/* ---- keywords by a language model (prompt.c) --------------------------------------------------------------------- */

enum { LP_KEYWORD_TOKENS = 16 };
/* Appends the prompt that asks for the keywords of a request, in the manner of lp_prompt_text. */
void lp_keywords_prompt(const char *request, lp_buf *out);
/* Appends the keywords of an answer; false: it has none. */
bool lp_keywords_take(const char *answer, lp_buf *out);

/* ---- deciders (decider_*.c) -------------------------------------------------------------------------------------- */

/* A decider reads a prompt and gives the probability of each route. Release with decider->close(decider). */
typedef struct lp_decider lp_decider;
struct lp_decider {
  const char *name;
  /* The probabilities of the offered routes sum to 1; the others are 0. */
  lp_status (*score)(lp_decider *self, const lp_prompt *prompt, double probability[LP_ROUTE_COUNT], lp_diag *diag);
  void (*close)(lp_decider *self);
  bool parallel; /* any number of threads may call `score` and `write` at once */
  /* Appends the model's answer to a prompt, of at most LP_KEYWORD_TOKENS tokens. NULL: the decider has no language
   * model. */
  lp_status (*write)(lp_decider *self, const char *prompt, lp_buf *out, lp_diag *diag);
};

/* A lookup by the prompt's rules, without a model. Among the offered routes with an example for the query's own
 * keywords it takes the one with the greatest reward, if that was good; else the route with the greatest mean over its
 * examples that share most words with the query. */
lp_decider *lp_decider_lookup(void);
/* The embedded model: a bundle over lp_prompt_tokens, in this process, on one core. */
LP_MUST_USE lp_status lp_decider_embedded(const char *bundle, lp_decider **out, lp_diag *diag);
/* Any language model that llmpart compiled, in this process. It reads the prompt's text, in the bundle's chat template
 * if there is one. A route's probability is that of the first tokens of its name in all spellings ("edge", " Edge",
 * ...), Eq. (5) and (6). Fails when two routes begin with the same token. `threads` 0: all cores. `write_ms`: the time
 * for keywords; 0: 300. */
LP_MUST_USE lp_status lp_decider_bundle(const char *bundle, int32_t threads, double write_ms, lp_decider **out,
                                        lp_diag *diag);

typedef struct {
  const char *url;   /* the base of an OpenAI-compatible API, as "http://127.0.0.1:8000/v1" */
  const char *model; /* its name there */
  const char *key;   /* bearer token; NULL: none */
  double timeout_ms; /* 0: 300 */
} lp_endpoint_options;
/* A language model with an API of /completions, or else of /chat/completions, and log-probabilities of the first token;
 * scored as lp_decider_bundle does. */
LP_MUST_USE lp_status lp_decider_endpoint(const lp_endpoint_options *options, lp_decider **out, lp_diag *diag);

/* ---- policies (policy_*.c, router.c) ----------------------------------------------------------------------------- */

typedef struct {
  const char *keywords;
  /* the routes that the hard constraints allow (privacy, context length, budget, health); never 0 */
  unsigned offered;
  lp_route rule;                  /* the route by class: the cloud for quality, else the edge */
  uint64_t owner;                 /* a number for the client that sent the request; 0: clients are not told apart */
  double delay_s[LP_ROUTE_COUNT]; /* estimated delay of each route, lp_delay_estimate (backends.h); 0: unknown */
  const double *mean_reward;      /* [LP_ROUTE_COUNT], for the oracle of a simulation; else NULL */
} lp_router_request;

typedef enum {
  LP_DECIDED_ONLY, /* one route was offered */
  LP_DECIDED_MODEL,
  LP_DECIDED_CACHE, /* the model's answer to the same prompt was kept */
  LP_DECIDED_EXPLORE,
  LP_DECIDED_RULE,    /* the policy is a rule */
  LP_DECIDED_FALLBACK /* the model failed, for the reason in `reason`, and the rule decided */
} lp_decision_source;
const char *lp_decision_source_name(lp_decision_source source);

typedef struct {
  lp_route route;
  lp_decision_source source;
  double probability[LP_ROUTE_COUNT]; /* the model's probability, or the policy's estimate, of each route */
  double propensity;                  /* probability with which `route` was drawn, exploration included */
  char reason[160];                   /* of a fallback: why; else empty */
} lp_decision;

/* Decides and learns. Release with policy->close(policy). */
typedef struct lp_policy lp_policy;
struct lp_policy {
  const char *name;
  void (*decide)(lp_policy *self, const lp_router_request *request, lp_decision *out);
  void (*learn)(lp_policy *self, const lp_router_request *request, lp_route route, double reward, bool good);
  void (*close)(lp_policy *self);
  bool parallel; /* any number of threads may call `decide` and `learn` at once */
  /* Appends keywords that the policy's language model makes of a request's text; requests of one `class` have those of
   * its first one that was described. Any number of threads may call it. False: the model failed, and `out` is
   * unchanged. NULL: the policy has no language model. */
  bool (*describe)(lp_policy *self, const char *class, const char *request, lp_buf *out);
};

/* With probability `epsilon` an offered route is drawn uniformly, the best one included. If `half_life` > 0, epsilon
 * halves after each `half_life` decisions. */
typedef struct {
  double epsilon;
  double half_life;
  uint64_t seed;
} lp_exploration;

/* Policies that never learn: "rule", "edge", "cloud", "split", "random", "oracle", "quickest" (least delay_s). NULL: no
 * such name. */
lp_policy *lp_policy_fixed(const char *name, uint64_t seed);
/* Tabular Q of one step: a running mean of rewards per keywords and route with step `rate`. */
lp_policy *lp_policy_table(double rate, const lp_exploration *exploration);
/* A network of one hidden layer over hashed keywords, trained by Adam on a replay memory (DQN of one step). */
lp_policy *lp_policy_network(const lp_exploration *exploration);

typedef struct {
  lp_replay_mode replay;
  double rate; /* that of LP_REPLAY_EMA; 0: 0.1 */
  lp_exploration exploration;
  size_t examples; /* the most examples in a prompt; 0: LP_PROMPT_EXAMPLES */
  size_t cache;    /* the number of the decider's answers that are kept; 0: none */
} lp_router_options;
/* The in-context learner: prompt, decider, exploration, replay. Owns `decider`. It is parallel: threads decide at the
 * same time if the decider is parallel, and else ask it one after the other. */
lp_policy *lp_router_create(const lp_router_options *options, lp_decider *decider);

/* A policy as configurations name it (open.c). */
typedef struct {
  const char
      *policy; /* "router"; "latest", "greedy": the router with LP_REPLAY_LATEST or without exploration; "q-table",
                         "dqn"; or a name of lp_policy_fixed */
  const char *model;            /* the router's: "lookup", "embedded", a bundle's path, or an API's base "http://..." */
  const char *model_name, *key; /* of an API */
  double timeout_ms;            /* of an API, and of a bundle's keywords; 0: 300 */
  const char *embedded;         /* the embedded model's bundle */
  lp_router_options options;
  lp_loc loc; /* of errors of `policy` */
} lp_policy_spec;
LP_MUST_USE lp_status lp_policy_open(const lp_policy_spec *spec, lp_policy **out, lp_diag *diag);

/* Chooses the route of a policy with exploration: `best` unless it explores. Sets route, propensity, and source
 * (`source` or EXPLORE). */
typedef struct {
  lp_exploration options;
  uint64_t count;
} lp_explorer;
void lp_explorer_draw(lp_explorer *explorer, unsigned offered, lp_route best, lp_decision_source source,
                      lp_decision *out);
