/* The runs of an experiment, computed by threads and processes. The results do not depend on their number. */
#ifndef LP_SIMULATE_RUNS_H
#define LP_SIMULATE_RUNS_H

#include "base/peers.h"
#include "runtime/simulate/statistics.h"

typedef struct {
  int64_t points, runs; /* runs: of each point */
  int32_t tasks;
  /* Adds a run to a tally that was begun. Several threads call it at a time. */
  void (*run)(void *user, int64_t point, int64_t run, lp_sim_tally *tally, lp_sim_delays *delays);
  /* Called once for each point, in process 0, from one thread at a time: the tallies of its runs, and all delays. */
  void (*finish)(void *user, int64_t point, const lp_sim_tally *tallies, const lp_sim_delays *delays);
  void *user;
} lp_sim_work;

/* Computes all runs. `threads`: of this process; with peers each process has one, and process 0 another one that hands
 * out runs. `key` names what is computed; false: a process has another key. */
bool lp_sim_runs_compute(const lp_sim_work *work, int32_t threads, const lp_peers *peers, const char *key);

#endif
