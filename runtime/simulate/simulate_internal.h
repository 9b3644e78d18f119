/* What the files of this folder share: random draws, heaps, stations, sums. */
#ifndef LP_SIMULATE_INTERNAL_H
#define LP_SIMULATE_INTERNAL_H

#include <gsl/gsl_rng.h>

#include "runtime/simulate/simulate.h"

/* ---- heap.c: the least key first, equal ones in order of insertion ---- */

typedef struct {
  double key;
  uint32_t order, item;
} lp_sim_entry;

typedef struct {
  LP_VEC(lp_sim_entry) entries;
  uint32_t next;
} lp_sim_heap;

void lp_sim_heap_push(lp_sim_heap *heap, double key, uint32_t item);
uint32_t lp_sim_heap_pop(lp_sim_heap *heap); /* not empty */

/* ---- station.c ---- */

/* A request on its way. */
typedef struct {
  int64_t index;
  double arrived_s, reached_s, started_s;
  double work_s, expected_work_s; /* on an idle machine, by its true and by its expected length */
  double link_s;                  /* up and down */
  double decision_s, regret;
  bool met; /* quality, or none is asked for */
  int32_t task;
  lp_site site;
} lp_sim_job;

/* One server. Its clock runs slower the more it has at a time, so that a request of w s ends w of its seconds after it
 * began, whoever comes and goes. */
typedef struct {
  lp_sim_heap running; /* by the clock's time at the end */
  double clock_s, at_s, speed;
  double next_s; /* when the first of them ends, INFINITY: none */
} lp_sim_server;

typedef struct {
  const lp_sim_station *form;
  lp_sim_server *server; /* [form->replicas] */
  uint32_t *waiting;     /* a ring */
  size_t first, count, room;
  int64_t running;
  double expected_s;                    /* expected work of all that are here */
  double busy_s, waiting_s, observed_s; /* integrals up to observed_s */
} lp_sim_site;

void lp_sim_site_begin(lp_sim_site *site, const lp_sim_station *form);
void lp_sim_site_end(lp_sim_site *site);
/* False: the queue is full. */
bool lp_sim_site_offer(lp_sim_site *site, lp_sim_job *jobs, uint32_t job, double now_s);
/* When its next request ends, and on which server. */
double lp_sim_site_next(const lp_sim_site *site, int32_t *server);
/* Ends it, lets the next one begin, and gives the request that ended. */
uint32_t lp_sim_site_finish(lp_sim_site *site, lp_sim_job *jobs, int32_t server, double now_s);
/* How long a request that came now would wait, as far as counts tell. */
double lp_sim_site_wait_s(const lp_sim_site *site);
bool lp_sim_site_is_full(const lp_sim_site *site);

/* ---- statistics.c ---- */

enum { LP_SIM_BINS = 4096 };

typedef enum {
  SIM_DELAY,
  SIM_REWARD,
  SIM_REGRET,
  SIM_WAIT,
  SIM_GENERATION,
  SIM_LINK,
  SIM_QUALITY,
  SIM_TASKS
} lp_sim_sum;

/* Sums of one run: [part][sum]; from SIM_TASKS on the delays of each task. */
typedef struct {
  int32_t sums;
  double *sum;
  int64_t *count;
  int64_t requests, rejected, overflowed, at[LP_SITE_COUNT];
  double utilisation[LP_SITE_COUNT], queue_length[LP_SITE_COUNT];
} lp_sim_tally;

/* Counts of delays, over bins 0.6 % wide. */
typedef struct {
  int64_t bin[LP_SIM_BINS];
  int64_t count;
} lp_sim_histogram;

void lp_sim_tally_begin(lp_sim_tally *tally, int32_t tasks);
void lp_sim_tally_end(lp_sim_tally *tally);
void lp_sim_tally_add(lp_sim_tally *tally, int32_t part, int32_t sum, double value);
void lp_sim_histogram_add(lp_sim_histogram *histogram, double seconds);
double lp_sim_histogram_quantile(const lp_sim_histogram *histogram, double share);
/* Over the means of runs, or the parts of the only one. */
lp_sim_estimate lp_sim_estimate_of(const lp_sim_tally *tallies, int64_t runs, int32_t sum);
/* Of one part, over runs; a single one has no interval. */
lp_sim_estimate lp_sim_estimate_part(const lp_sim_tally *tallies, int64_t runs, int32_t sum, int32_t part);

/* Requests of a run until the end of a part. */
int64_t lp_sim_part_end(const lp_sim_scenario *scenario, int32_t part);

/* ---- engine.c: one run of one policy ---- */

/* What the users of a radio network get, bit/s; without one, count is 0. */
typedef struct {
  int64_t count;
  double *up, *down; /* [count] */
} lp_sim_users;

void lp_sim_run_once(const lp_sim_scenario *scenario, const lp_sim_users *users, const lp_sim_policy *policy,
                     int64_t run, lp_sim_tally *tally, lp_sim_histogram *histogram);

#endif
