/* The simulation of a pool of a fleet: Poisson arrivals, one queue, and machines of one kind that run passes by the
 * rules of runtime/engine (passes.h). It is the judge of every fleet: fleet/ searches with it, and `llmpart simulate`
 * runs reports of fleets on it. Machines may fail, and may come and go with the load. Times in s. No function has state
 * between calls. */
#pragma once

#include "runtime/simulate/passes.h"

typedef enum { LP_FLEET_TTFT, LP_FLEET_TPOT, LP_FLEET_ANSWER, LP_FLEET_FIGURES } lp_fleet_figure;
enum { LP_FLEET_QUANTILES = 3, LP_FLEET_MOST_CLASSES = 8, LP_SIM_HOURS = 24 };
extern const char *const lp_fleet_figure_names[LP_FLEET_FIGURES];     /* "ttft", "tpot", "answer" */
extern const char *const lp_fleet_quantile_names[LP_FLEET_QUANTILES]; /* "p50", "p95", "p99" */
extern const double lp_fleet_quantiles[LP_FLEET_QUANTILES];

typedef struct {
  double value_s[LP_FLEET_FIGURES][LP_FLEET_QUANTILES];
} lp_fleet_times;

/* One of the lengths that requests have. */
typedef struct {
  double prompt, answer; /* tokens, at least 1 */
  double weight;         /* share of the requests; all add up to 1 */
} lp_fleet_length;

/* What a request takes besides the machine's passes: the device's half, and the link. */
typedef struct {
  int32_t knots;                  /* at least 2 */
  const double *prompt, *first_s; /* [knots] before the first token, by the prompt's length */
  double token_s;                 /* between two tokens; of one that streams, what the link delays each */
  bool streams;                   /* all layers are in the cloud: tokens follow each other there */
  double asks; /* early exits of the device give the others: the share of an answer's tokens after the first that the
                * machine gives, token_s apart, with the rows of the others in its passes; 1: all; 0 is 1 */
  double question_rows; /* of the request in a pass that gives one of its tokens after the first; 0 is 1 / asks */
} lp_sim_pool_user;

typedef struct {
  double share; /* of the pool's requests; all add up to 1 */
  lp_sim_pool_user user;
  const double (*limit_s)[LP_FLEET_QUANTILES]; /* [LP_FLEET_FIGURES]; NULL: none; a limit of 0 is none */
} lp_sim_pool_class;

/* Machines that fail at random, and serve again after a while. Their requests wait at the head of the queue, and
 * another machine computes their prompts, and what there is of their answers, again. */
typedef struct {
  double every_s; /* mean time between failures of a machine, at least 1 s; 0: they do not fail */
  double restart_s;
} lp_sim_pool_failures;

/* Machines that come and go: of each 15 s, as many are wanted as the requests in flight ask for. */
typedef struct {
  double target; /* requests in flight for each machine; 0: all machines stay */
  int64_t least; /* machines; the most are those of the pool */
  double cold_s; /* from the decision, or the start for an hour, until a machine serves */
  double keep_s; /* a machine goes when for so long fewer were wanted */
} lp_sim_pool_scaling;

/* Machines that come and go with the hours of the day: those that an hour has more start scaling.cold_s before it, and
 * those that the next one has no more go at its end, after their last answers. */
typedef struct {
  int64_t firm, spot;
} lp_sim_pool_hour;

typedef struct {
  const lp_fleet_length *length; /* [lengths], of every class */
  size_t lengths;
  lp_sim_pool_class class[LP_FLEET_MOST_CLASSES];
  int32_t classes;
  lp_sim_station station;     /* `pass`, `prompt_stretch` and `prompt_turn` of a machine */
  int64_t machines, sessions; /* sessions: the most of each machine */
  double rate;                /* of the whole pool, requests per s in the mean */
  const double *hour;         /* [LP_SIM_HOURS] factors of the rate with the mean 1; NULL: it does not change */
  lp_sim_pool_failures failures, losses; /* losses: of the spot machines, in place of failures */
  int64_t spot;                          /* the last ones of the machines */
  lp_sim_pool_scaling scaling;
  const lp_sim_pool_hour *by_hour; /* [LP_SIM_HOURS]; then all but `times` is of whole days; NULL: not by the hour */
  int64_t requests; /* counted, at least; a quarter as many run before them, and more where answers take long */
  uint64_t seed;
} lp_sim_pool;

typedef struct {
  lp_fleet_times times[LP_FLEET_MOST_CLASSES];
  int64_t requests[LP_FLEET_MOST_CLASSES]; /* counted */
  double elapsed_s;                        /* from the first request to the last counted answer */
  double busy_s, paid_s, spot_paid_s;      /* of all machines: in passes; while they are rented; spot ones of these */
  int64_t failures;
} lp_sim_pool_result;

/* False: a limit is broken; the simulation then ends as soon as too many requests are beyond it for its percentile, and
 * the result may be of a part. The same pool gives the same result on every machine. */
bool lp_sim_pool_run(const lp_sim_pool *pool, lp_sim_pool_result *out);

/* How far the times are from the limits: the largest quotient, with its figure and percentile. */
typedef struct {
  double ratio;
  lp_fleet_figure figure;
  int32_t quantile;
} lp_fleet_strain;
lp_fleet_strain lp_sim_pool_strain_of(const double limit_s[LP_FLEET_FIGURES][LP_FLEET_QUANTILES],
                                      const lp_fleet_times *times);

/* The rows of a request in a pass that gives one of its tokens after the first. */
double lp_sim_pool_question_rows(const lp_sim_pool_user *user);
/* The tokens of an answer that the machine gives. */
double lp_sim_pool_asked(const lp_sim_pool_user *user, double answer);
/* The requests that arrive while one takes its time on a machine with all sessions taken; at most 10 million. */
double lp_sim_pool_together(const lp_sim_pool *pool);
/* The time before the first token of a prompt besides the machine's passes. */
double lp_sim_pool_first_s(const lp_sim_pool_user *user, double prompt);
/* The times of a class alone: on a machine without other requests, or, with `station` NULL, on the device alone; of
 * every `stride`-th length. */
void lp_sim_pool_alone(const lp_fleet_length *length, size_t lengths, size_t stride, const lp_sim_pool_user *user,
                       const lp_sim_station *station, lp_fleet_times *out);

/* ---- percentiles of weighted values (pool_times.c) --------------------------------------------------------------- */

typedef struct {
  double value, weight;
} lp_sim_pool_value;
typedef struct {
  LP_VEC(lp_sim_pool_value) of[LP_FLEET_FIGURES];
} lp_sim_pool_sample;
/* `token_s`: the mean time between two of the answer's `tokens`. */
void lp_sim_pool_sample_add(lp_sim_pool_sample *sample, double first_s, double token_s, double tokens, double weight);
/* Fills `out` and releases the values. */
void lp_sim_pool_sample_end(lp_sim_pool_sample *sample, lp_fleet_times *out);
