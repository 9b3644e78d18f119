/* runtime/simulate: requests of users, an edge and a cloud that answer them, and the rule that decides between the
 * two.
 *
 * Event-driven: arrivals, links, queues and servers advance from event to event, the next one found by binary heaps.
 * Delays come from runtime/service, rates from runtime/radio. The caller chooses the rules: some plain ones are here,
 * others plug in as lp_sim_policy. The same scenario and seed give the same results on every machine; what is drawn
 * for a request does not depend on the policy, so that policies are compared on the same requests. Times in s.
 */
#ifndef LP_SIMULATE_H
#define LP_SIMULATE_H

#include "base/base.h"
#include "runtime/radio/radio.h"
#include "runtime/service/service.h"

/* ---- policies (policy.c) ----------------------------------------------------------------------------------------- */

/* What a policy may know of a request when it decides. */
typedef struct {
  double now_s;
  int64_t index; /* of the request in its run */
  int32_t task;  /* its class in the scenario */
  const char *task_name;
  bool quality; /* is an answer of full quality asked for? */
  double prompt_tokens;
  double expected_tokens;                /* mean of the class */
  double wait_s[LP_SITE_COUNT];          /* estimates: queue; */
  double delay_s[LP_SITE_COUNT];         /* queue, generation and link together */
  double target_s, penalty;              /* the reward is target - delay - penalty when quality is missed */
  double patience;                       /* of the scenario */
  double expected_reward[LP_SITE_COUNT]; /* of an oracle: with the true length, and whether quality will be met */
} lp_sim_request;

typedef struct {
  lp_site site;
  double delay_s, reward;
  bool met; /* quality, or none was asked for */
} lp_sim_outcome;

/* A rule that places requests. One state per run, used by one thread. */
typedef struct {
  const char *name, *summary;
  bool asks_model;                                     /* to decide takes as long as the scenario says */
  const void *context;                                 /* for create */
  void *(*create)(const void *context, uint64_t seed); /* NULL: no state */
  lp_site (*decide)(void *state, const lp_sim_request *request);
  /* Told when the answer is there; NULL: does not learn. */
  void (*learn)(void *state, const lp_sim_request *request, const lp_sim_outcome *outcome);
  void (*free)(void *state); /* NULL: as create */
} lp_sim_policy;

typedef struct {
  const lp_sim_policy *const *policy;
  size_t count;
} lp_sim_policies;

/* class, queue-aware, edge-only, cloud-only, random, oracle */
extern const lp_sim_policies lp_sim_plain_policies;

/* ---- scenarios (scenario.c) -------------------------------------------------------------------------------------- */

typedef enum { LP_SIM_FIXED, LP_SIM_UNIFORM, LP_SIM_EXPONENTIAL, LP_SIM_LOGNORMAL, LP_SIM_GEOMETRIC } lp_sim_shape;

/* Of lengths in tokens; what is drawn is rounded to whole ones, at least `least`. */
typedef struct {
  lp_sim_shape shape;
  double mean;
  double from, to; /* uniform */
  double sigma;    /* lognormal: of the logarithm */
  double least;
} lp_sim_lengths;

typedef struct {
  const char *name;
  double share;
  bool quality;
  lp_sim_lengths prompt, tokens;
  double success[LP_SITE_COUNT]; /* probability that the answer suffices, where quality is asked for */
} lp_sim_task;

/* Servers that take up to `slots` requests at a time each, and one queue in front of them. */
typedef struct {
  int64_t replicas;
  int64_t slots;   /* of each; LP_SIM_UNLIMITED */
  int64_t queue;   /* most that wait; LP_SIM_UNLIMITED. A full site passes requests to the other one */
  double slowdown; /* with b requests at a time each takes 1 + slowdown x (b - 1) times as long: batching */
} lp_sim_station;

enum { LP_SIM_UNLIMITED = INT32_MAX };

/* A request of a trace. */
typedef struct {
  double at_s;
  int32_t task;
  double prompt, tokens;         /* negative: drawn */
  double success[LP_SITE_COUNT]; /* as a task's; negative: the task's */
} lp_sim_traced;

/* What an experiment varies. */
typedef enum {
  LP_SIM_NOTHING,
  LP_SIM_RATE,
  LP_SIM_QUALITY_SHARE,
  LP_SIM_TOKENS,
  LP_SIM_PENALTY,
  LP_SIM_SLOTS,
  LP_SIM_DECISION
} lp_sim_axis;
extern const char *const lp_sim_axis_names[LP_SIM_DECISION + 1]; /* "rate", as in files; the first is "" */

typedef struct {
  lp_arena *arena; /* owns all below */
  const char *name, *title;
  int64_t seed, runs, requests, warm_up; /* requests of each run; the first warm_up are not counted */
  lp_service *service;                   /* the first of */
  lp_service **services;                 /* each is an experiment of its own */
  int32_t service_count;
  int64_t drift_after;       /* from this request on, 0: never, */
  lp_service *drift_service; /* the models are others, NULL: the same, */
  double drift_penalty;      /* and the penalty is another, negative: the same */
  double decision_s;         /* what a policy takes that asks a model */
  int32_t counting;          /* lp_counting */
  double token_bytes, backhaul_s, target_s, penalty, patience;
  double rate;    /* Poisson arrivals, 1/s; 0: by `every_s` or the trace */
  double every_s; /* one arrival each */
  lp_sim_traced *trace;
  int64_t trace_count;
  lp_sim_task *task;
  int32_t tasks;
  lp_sim_station station[LP_SITE_COUNT];
  lp_radio_profile *radio;  /* NULL: the rates below */
  int64_t users, intervals; /* dropped over the radio network, and scheduled for so long */
  double up_bps, down_bps;  /* INFINITY: no time on the air */
  const lp_sim_policy **policy;
  int32_t policies;
  lp_sim_axis axis;
  double *value; /* of the axis */
  int32_t values;
} lp_sim_scenario;

/* A file, or text in its form with `file` as the name for messages; policies are found in `known`. Loads what the file
 * names: service, trace, radio. Release with lp_sim_scenario_free. */
LP_MUST_USE lp_status lp_sim_scenario_load(const char *path, const lp_sim_policies *known, lp_sim_scenario **out,
                                           lp_diag *diag);
LP_MUST_USE lp_status lp_sim_scenario_parse(const char *file, const char *text, size_t size,
                                            const lp_sim_policies *known, lp_sim_scenario **out, lp_diag *diag);
void lp_sim_scenario_free(lp_sim_scenario *scenario); /* NULL is allowed */

/* ---- results (experiment.c) -------------------------------------------------------------------------------------- */

/* A mean with the half of its 95 % interval: over runs, or over 20 parts of a single run. */
typedef struct {
  double mean, half;
} lp_sim_estimate;

enum { LP_SIM_PARTS = 20 };

/* The mean of one twentieth of the counted requests, over runs. */
typedef struct {
  lp_sim_estimate reward, regret, quality;
} lp_sim_part;

/* One policy at one value of the axis. */
typedef struct {
  const char *service, *policy;
  double value; /* of the axis */
  int64_t requests, rejected, overflowed;
  lp_sim_estimate delay_s, reward, quality; /* quality: share of requests that asked for it and got it */
  lp_sim_estimate regret; /* reward that the better site would have given more, as far as could be seen on arrival */
  lp_sim_estimate wait_s, generation_s, link_s;
  lp_sim_part *part; /* [LP_SIM_PARTS]: how the policy learned; with intervals only from several runs */
  double p50_s, p90_s, p99_s;
  lp_sim_estimate *task_delay_s;     /* [tasks] */
  double share[LP_SITE_COUNT];       /* of requests */
  double utilisation[LP_SITE_COUNT]; /* of slots; 0 where they are unlimited */
  double queue_length[LP_SITE_COUNT];
} lp_sim_point;

typedef struct {
  const lp_sim_scenario *scenario; /* borrowed */
  lp_arena *arena;
  lp_sim_point *point; /* [service][policy][value] */
  int32_t points, values;
} lp_sim_result;

/* Drops the radio's users, then runs every policy at every value. Fails when users are never served by their cell. */
LP_MUST_USE lp_status lp_sim_run(const lp_sim_scenario *scenario, lp_sim_result *out, lp_diag *diag);
void lp_sim_result_free(lp_sim_result *result); /* also of a run that failed */

/* Schema llmpart.simulate/1; a row per point; a page with figures and a table (report.c, page.c). */
void lp_sim_print_json(const lp_sim_result *result, lp_buf *out);
void lp_sim_print_csv(const lp_sim_result *result, lp_buf *out);
void lp_sim_print_html(const lp_sim_result *result, lp_buf *out);
/* One figure as SVG: "delay", "reward", "quality", "regret" over the axis, or "learning-reward", "learning-quality",
 * "learning-regret" over the requests of a run at the axis' first value. */
extern const char *const lp_sim_figure_names[];
extern const size_t lp_sim_figure_count;
void lp_sim_print_svg(const lp_sim_result *result, size_t figure, lp_buf *out);

#endif
