/* runtime/simulate: simulates requests of users, the edge, the cloud and the split between them that answer the
 * requests, and the policy that chooses the place.
 *
 * The simulation is event-driven: arrivals, links, queues and servers advance from event to event, and binary heaps
 * find the next one. Delays come from runtime/service, rates from runtime/radio. The caller chooses the policies:
 * simple ones are here, others implement lp_sim_policy. The same scenario and seed give the same results on every
 * machine; the numbers drawn for a request do not depend on the policy, so that policies are compared on the same
 * requests. Times in s. */
#pragma once

#include "base/base.h"
#include "base/peers.h"
#include "runtime/radio/radio.h"
#include "runtime/service/service.h"

/* ---- policies (policy.c) ----------------------------------------------------------------------------------------- */

typedef struct lp_sim_scenario lp_sim_scenario;

/* The facts about a request that a policy may use. */
typedef struct {
  const lp_sim_scenario *scenario; /* figures of the places and limits */
  unsigned offered;                /* the places that are there: bit 1 << site */
  double up_bps, down_bps;         /* of the user's link */
  double now_s;
  int64_t index; /* number of the request in its run */
  int32_t task;  /* index of its class in the scenario */
  const char *task_name;
  bool quality; /* the request requires an answer of full quality */
  double prompt_tokens;
  double expected_tokens;        /* mean of the class */
  double wait_s[LP_SITE_COUNT];  /* estimate of the time in the queue */
  double delay_s[LP_SITE_COUNT]; /* estimate of queue, generation and link together */
  double target_s, penalty;      /* the reward is target - delay, less the penalty if quality is missed */
  double patience;               /* the scenario's */
  /* computed from the true length and quality of the answer; only an oracle may read it */
  double expected_reward[LP_SITE_COUNT];
} lp_sim_request;

typedef struct {
  lp_site site;
  double at_s, delay_s, reward;
  double service_s; /* time at the place, without the wait, the link and the decision */
  double tokens;    /* of the answer */
  bool met;         /* full quality was met or not required */
} lp_sim_outcome;

/* A policy that places requests. Each run has a state of its own, which one thread uses. */
typedef struct {
  const char *name, *summary;
  bool asks_model;                                     /* a decision takes the time that the scenario states */
  const void *context;                                 /* for create */
  void *(*create)(const void *context, uint64_t seed); /* NULL: no state */
  lp_site (*decide)(void *state, const lp_sim_request *request); /* one of the offered places */
  /* The request goes to a place, the decided one unless that is full; it was lost there, since the place was full when
   * it came. NULL: the policy keeps no loads. */
  void (*begin)(void *state, const lp_sim_request *request, lp_site site);
  void (*lose)(void *state, const lp_sim_request *request, lp_site site);
  /* Called when the answer is complete; NULL: the policy does not learn. */
  void (*learn)(void *state, const lp_sim_request *request, const lp_sim_outcome *outcome);
  void (*free)(void *state); /* NULL: as create */
} lp_sim_policy;

typedef struct {
  const lp_sim_policy *const *policy;
  size_t count;
} lp_sim_policies;

/* class, queue-aware, edge-only, cloud-only, split-only, random, oracle */
extern const lp_sim_policies lp_sim_plain_policies;

/* ---- scenarios (scenario.c) -------------------------------------------------------------------------------------- */

typedef enum { LP_SIM_FIXED, LP_SIM_UNIFORM, LP_SIM_EXPONENTIAL, LP_SIM_LOGNORMAL, LP_SIM_GEOMETRIC } lp_sim_shape;

/* A distribution of lengths in tokens; draws are rounded to integers of at least `least`. */
typedef struct {
  lp_sim_shape shape;
  double mean;
  double from, to; /* uniform */
  double sigma;    /* lognormal: mean and deviation of the logarithm */
  double least;
} lp_sim_lengths;

typedef struct {
  const char *name;
  double share;
  bool quality;
  lp_sim_lengths prompt, tokens;
  double success[LP_SITE_COUNT]; /* probability that an answer meets full quality, for requests that require it */
} lp_sim_task;

/* The time of a pass over a number of rows: linear between the points, and beyond the last as between the last two.
 * With times of its own for prompts, a pass over both kinds of rows takes the sum of the two, less the time of one
 * row. */
typedef struct {
  int32_t count;          /* 0: there are no passes */
  double *rows, *seconds; /* [count], ascending rows */
  double *prompt_seconds; /* [count]; NULL: rows of prompts take as long as others */
} lp_sim_times;

/* The way between the two halves of a split. */
typedef struct {
  lp_sim_times worker;             /* passes of the worker, which takes all rows that have come */
  double rtt_s, up_bps, down_bps;  /* 0 bit/s: no time */
  double row_bytes, message_bytes; /* hidden states of a position; of each message, its framing */
} lp_sim_crossing;

/* Early exits: the share of tokens that an exit gives, and the share of the device's layers before it. The layers after
 * it wait: they run with the next token that asks the cloud, or once LP_SIM_OPEN_ROWS tokens wait. */
typedef struct {
  double share, depth;
} lp_sim_exits;
enum { LP_SIM_OPEN_ROWS = 8 };

/* Servers that take up to `slots` requests at a time each, and one queue in front of them. With passes, a server runs
 * its requests as runtime/engine does: each pass takes the next token of every request that generates, and parts of the
 * prompts that wait. */
typedef struct {
  int64_t replicas;
  int64_t slots;            /* slots of each server, or LP_SIM_UNLIMITED */
  int64_t queue;            /* the most that wait, or LP_SIM_UNLIMITED; a full site passes requests to the other one */
  double slowdown;          /* with b requests at a time each takes 1 + slowdown x (b - 1) times as long: batching */
  double request_s;         /* of each request before it waits: the server's work on it */
  lp_sim_times pass;        /* of the device, for a split */
  double prompt_stretch;    /* how many times as long a pass may last for prompts; 0: 1.4, as the engine's */
  int64_t prompt_turn;      /* rows of a prompt that run before the next prompt's; 0: half of a pass, as the engine's */
  const int16_t *paced;     /* of lp_sim_pace; NULL: computed for each pass */
  int64_t most_rows;        /* of a pass, of lp_sim_pace; 0: computed for each pass */
  lp_sim_crossing crossing; /* of a split */
  lp_sim_exits exits;       /* share 0: none */
} lp_sim_station;

enum { LP_SIM_UNLIMITED = INT32_MAX };

/* A request of a trace. */
typedef struct {
  double at_s;
  int32_t task;
  double prompt, tokens;         /* negative: drawn */
  double success[LP_SITE_COUNT]; /* overrides a task's value; negative: does not */
  int32_t place;                 /* the site that the request names; negative: the policy decides */
} lp_sim_traced;

/* The quantity that an experiment varies. */
typedef enum {
  LP_SIM_NOTHING,
  LP_SIM_RATE,
  LP_SIM_QUALITY_SHARE,
  LP_SIM_TOKENS,
  LP_SIM_PENALTY,
  LP_SIM_SLOTS,
  LP_SIM_DECISION,
  LP_SIM_USERS,
  LP_SIM_AXES
} lp_sim_axis;
extern const char *const lp_sim_axis_names[LP_SIM_AXES]; /* "rate", as in files; the first is "" */

struct lp_sim_scenario {
  lp_arena *arena; /* owns all below */
  const char *name, *title;
  uint64_t digest;                       /* of the file's text */
  int64_t seed, runs, requests, warm_up; /* requests of each run; the first warm_up are not counted */
  lp_service *service;                   /* the first of `services` */
  lp_service **services;                 /* each is an experiment of its own */
  int32_t service_count;
  int64_t drift_after;       /* 0: never; else from this request on */
  lp_service *drift_service; /* the models from then on; NULL: the same */
  double drift_penalty;      /* the penalty from then on; negative: the same */
  double decision_s;         /* time of a decision by a policy that runs a model */
  int32_t counting;          /* lp_counting */
  double token_bytes, backhaul_s, target_s, penalty, patience;
  double rate;      /* Poisson arrivals, 1/s; 0: by `every_s` or the trace */
  double user_rate; /* the same of each user; 0: the number of users does not matter */
  double every_s;   /* one arrival each */
  lp_sim_traced *trace;
  int64_t trace_count;
  lp_sim_task *task;
  int32_t tasks;
  lp_sim_station station[LP_SITE_COUNT];
  unsigned there;           /* the places: bit 1 << site; edge and cloud always */
  lp_radio_profile *radio;  /* NULL: the rates below */
  int64_t users, intervals; /* placed in the radio network, and scheduled for this time */
  double up_bps, down_bps;  /* INFINITY: the radio link takes no time */
  const lp_sim_policy **policy;
  int32_t policies;
  lp_sim_axis axis;
  double *value; /* of the axis */
  int32_t values;
};

/* Reads a scenario from a file, or from text for which `file` is the name in messages, and the files that it names:
 * service, trace, radio. Policies are looked up in `known`. Release with lp_sim_scenario_free. */
LP_MUST_USE lp_status lp_sim_scenario_load(const char *path, const lp_sim_policies *known, lp_sim_scenario **out,
                                           lp_diag *diag);
LP_MUST_USE lp_status lp_sim_scenario_parse(const char *file, const char *text, size_t size,
                                            const lp_sim_policies *known, lp_sim_scenario **out, lp_diag *diag);
void lp_sim_scenario_free(lp_sim_scenario *scenario); /* NULL is allowed */

/* The times of a place for one request on its own: those of its passes, or of the service. */
lp_service_model lp_sim_figures(const lp_sim_scenario *scenario, lp_site site);

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
  /* quality: among requests that required it, the share with answers that met it */
  lp_sim_estimate delay_s, reward, quality;
  /* regret: the reward that the better site, as judged on arrival, would have given in addition */
  lp_sim_estimate regret;
  lp_sim_estimate wait_s, generation_s, link_s, ttft_s;
  lp_sim_part *part; /* [LP_SIM_PARTS] the course of learning; has intervals only after several runs */
  double p50_s, p90_s, p95_s, p99_s;
  lp_sim_estimate site_delay_s[LP_SITE_COUNT];
  double site_p95_s[LP_SITE_COUNT];
  lp_sim_estimate *task_delay_s;     /* [tasks] */
  double share[LP_SITE_COUNT];       /* of requests */
  double utilisation[LP_SITE_COUNT]; /* share of slots in use; 0 if they are unlimited */
  double queue_length[LP_SITE_COUNT];
} lp_sim_point;

typedef struct {
  const lp_sim_scenario *scenario; /* borrowed */
  lp_arena *arena;
  lp_sim_point *point; /* [service][policy][value] */
  int32_t points, values;
} lp_sim_result;

typedef struct {
  int32_t threads;       /* 0: the machine's cores; one with peers */
  const lp_peers *peers; /* NULL: this process makes all runs. The result of all is in process 0 */
} lp_sim_options;

/* Places the radio's users, then runs every policy at every value. The result does not depend on `options`. Fails when
 * a cell never serves some of its users, and when a process has another version or scenario. */
LP_MUST_USE lp_status lp_sim_run(const lp_sim_scenario *scenario, const lp_sim_options *options, lp_sim_result *out,
                                 lp_diag *diag);
void lp_sim_result_free(lp_sim_result *result); /* allowed after a failure */

/* Schema llmpart.simulate/1; a row per point; a page with figures and a table (report.c, page.c). */
void lp_sim_print_json(const lp_sim_result *result, lp_buf *out);
void lp_sim_print_csv(const lp_sim_result *result, lp_buf *out);
void lp_sim_print_html(const lp_sim_result *result, lp_buf *out);
/* One figure as SVG: "delay", "reward", "quality", "regret" over the axis, or "learning-reward", "learning-quality",
 * "learning-regret" over the requests of a run at the axis' first value. */
extern const char *const lp_sim_figure_names[];
extern const size_t lp_sim_figure_count;
void lp_sim_print_svg(const lp_sim_result *result, size_t figure, lp_buf *out);
