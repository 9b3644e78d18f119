/* One run of one policy. */
#pragma once

#include "runtime/simulate/statistics.h"

/* The rates of the users of a radio network, bit/s; count 0: there is no network. */
typedef struct {
  int64_t count;
  double *up, *down; /* [count] */
} lp_sim_users;

/* Adds a run to a tally that was begun. Several threads may run one scenario, each with a tally of its own. */
void lp_sim_run_once(const lp_sim_scenario *scenario, const lp_sim_users *users, const lp_sim_policy *policy,
                     int64_t run, lp_sim_tally *tally, lp_sim_delays *delays);
