/* Counts of a run, and estimates with intervals over runs. Delays in s. */
#pragma once

#include "runtime/simulate/simulate.h"

enum { LP_SIM_BINS = 4096 };

typedef enum {
  SIM_DELAY,
  SIM_REWARD,
  SIM_REGRET,
  SIM_WAIT,
  SIM_GENERATION,
  SIM_LINK,
  SIM_QUALITY,
  SIM_TTFT,
  SIM_SITES, /* the delays at each site */
  SIM_TASKS = SIM_SITES + LP_SITE_COUNT
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

/* The delays of all requests, and of those at each site. */
typedef struct {
  lp_sim_histogram all, at[LP_SITE_COUNT];
} lp_sim_delays;

/* Makes room for `tasks` tasks, which lp_sim_tally_end releases. */
void lp_sim_tally_begin(lp_sim_tally *tally, int32_t tasks);
void lp_sim_tally_end(lp_sim_tally *tally);
void lp_sim_tally_add(lp_sim_tally *tally, int32_t part, int32_t sum, double value);
void lp_sim_histogram_add(lp_sim_histogram *histogram, double seconds);
void lp_sim_delays_merge(lp_sim_delays *to, const lp_sim_delays *from); /* adds the counts */
double lp_sim_histogram_quantile(const lp_sim_histogram *histogram, double share);
/* The estimate over the means of runs, or over the parts of a single run. */
lp_sim_estimate lp_sim_estimate_of(const lp_sim_tally *tallies, int64_t runs, int32_t sum);
/* The estimate of one part over runs; a single run gives no interval. */
lp_sim_estimate lp_sim_estimate_part(const lp_sim_tally *tallies, int64_t runs, int32_t sum, int32_t part);

/* The number of requests of a run up to the end of a part. */
int64_t lp_sim_part_end(const lp_sim_scenario *scenario, int32_t part);
