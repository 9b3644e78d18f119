/* The search, by which find.c finds and describes fleets. Private to fleet/. */
#pragma once

#include "fleet/bound.h"
#include "fleet/mix.h"

enum { LP_SEARCH_MASKS = 1 << LP_FLEET_MOST_CLASSES }; /* sets of classes */

/* A pool with some classes. */
typedef struct {
  bool known, impossible;
  int32_t tried;   /* levels that were simulated, from the first on */
  bool refuted;    /* in the busiest hour, with one machine fewer than `needed` */
  int64_t *needed; /* [lp_search.levels] */
  int64_t sessions;
  double busy;      /* machines in the mean of the hours */
  double peak_busy; /* the share of the time of those of the busiest hour */
  double usd;       /* a month */
  double cost;      /* a month: USD, or kWh of machines and devices */
  lp_fleet_policy policy;
  lp_fleet_times *times;  /* [classes of the mask] */
  lp_fleet_strain broken; /* by one machine fewer, of class `class` */
  int32_t class;
} lp_search_entry;

typedef struct {
  const lp_fleet_spec *spec;
  lp_fleet_candidates *all;
  lp_fleet_plan *plan;
  lp_search_entry *entries;   /* [option][LP_SEARCH_MASKS] */
  int32_t **spots;            /* [kinds][LP_FLEET_MOST_SPOT + 1]; NULL: no spot market */
  bool energy;                /* costs are kWh */
  int32_t levels;             /* rates that the hours have */
  double level[LP_SIM_HOURS]; /* of the busiest hour's rate, which is the first; in descending order */
  int32_t level_of[LP_SIM_HOURS], hours_at[LP_SIM_HOURS];         /* of an hour; hours at a level */
  int32_t at[LP_FLEET_MOST_CLASSES], best[LP_FLEET_MOST_CLASSES]; /* options; -1: on the device */
  double mean_level;
  double best_cost, known_cost; /* known: of the cheapest fleet that the simulation has accepted */
  int64_t nodes;
} lp_search;

/* The pool of an option and some classes; borrowed, and changed by later simulations. */
lp_search_entry *lp_search_pool(lp_search *s, int32_t option, unsigned mask);
unsigned lp_search_mask(const lp_search *s, int32_t option); /* the classes that the best assignment gives it */
double lp_search_rate(const lp_search *s, unsigned mask);    /* in the busiest hour */
/* The machine time of a mean request at least, in s. */
double lp_search_work(const lp_search *s, int32_t option, unsigned mask, int64_t sessions);
/* The mix of a pool that needs needed[i] machines at level i, and what the mix costs in USD a month. */
lp_fleet_mix lp_search_mix(const lp_search *s, int32_t option, const int64_t *needed);
double lp_search_usd(const lp_search *s, int32_t option, const int64_t *needed);
int32_t lp_search_policies(const lp_search *s, int32_t option, unsigned mask); /* that are tried */
lp_fleet_policy lp_search_policy(const lp_search *s, int32_t option, unsigned mask, int32_t index);
/* The simulation of a pool of `machines` at a level. */
lp_trial lp_search_trial(const lp_search *s, int32_t option, unsigned mask, int32_t level, int64_t machines,
                         int64_t sessions);
/* The nearest limit of the classes in `mask`, and its class. times[classes of the mask]. */
lp_fleet_strain lp_search_strain(const lp_search *s, unsigned mask, const lp_fleet_times *times, int32_t *class);

/* Finds the best assignment: spec, all, plan, entries, spots and levels are set. LP_INFEASIBLE: there is none. */
LP_MUST_USE lp_status lp_search_run(lp_search *s, lp_diag *diag);
