/* What may run where: the pools of a specification, and the classes that each can serve. */
#pragma once

#include "fleet/trial.h"

/* Prices in s of machine time, proved for passes of up to `sessions` sessions (bound.h). */
typedef struct {
  int64_t sessions;
  double kept_s; /* a: of a token of a request that keeps its limit of TPOT */
  double free_s; /* b: of any token */
  double row_s;  /* c: of a row of a prompt */
  double slow;   /* m: how much more than once the time of a pass counts for each token in it */
} lp_fleet_price;
enum { LP_FLEET_MOST_PRICES = LP_FLEET_MOST_CLASSES * (2 + LP_FLEET_QUANTILES) };

/* Machines of a kind that run one cut. */
typedef struct {
  int32_t kind, region;
  int64_t cut;
  bool exits; /* the device has the exit of the specification at the end of its half */
  const lp_load_law *law;
  unsigned serves;                        /* bit 1 << class: with an idle machine its limits hold */
  double device_j[LP_FLEET_MOST_CLASSES]; /* of a mean request, in the device's passes; NAN: its power is not known */
  lp_fleet_price price[LP_FLEET_MOST_PRICES];
  int32_t prices;
} lp_fleet_option;

/* Of the lengths: the mean rows of prompts and tokens, which share of the tokens after the first is at least in a share
 * lp_fleet_quantiles[k] of the requests that have any, and the longest prompt of this share of the requests. */
typedef struct {
  double prompt, answer, kept[LP_FLEET_QUANTILES], on_time[LP_FLEET_QUANTILES], longest;
} lp_fleet_means;

typedef struct lp_fleet_candidates {
  int64_t cuts;
  lp_load_user *user[LP_FLEET_MOST_REGIONS][LP_FLEET_MOST_CLASSES]; /* [cuts] */
  lp_load_user with_exit[LP_FLEET_MOST_REGIONS][LP_FLEET_MOST_CLASSES];
  unsigned alone; /* bit 1 << class: its limits hold without the cloud */
  lp_fleet_times alone_times[LP_FLEET_MOST_CLASSES];
  double alone_j[LP_FLEET_MOST_CLASSES]; /* as device_j */
  lp_fleet_option *option;
  int32_t options;
  lp_fleet_means means;
} lp_fleet_candidates;

/* In `arena`. LP_INFEASIBLE: a class has none. */
LP_MUST_USE lp_status lp_fleet_candidates_find(const lp_fleet_spec *spec, lp_module *module, lp_arena *arena,
                                               lp_fleet_candidates *out, lp_diag *diag);

const lp_load_user *lp_fleet_user_of(const lp_fleet_candidates *all, const lp_fleet_option *option, size_t class);
lp_fleet_means lp_fleet_means_of(const lp_fleet_spec *spec);
/* The most sessions that an option takes at a time for these classes; 0: one is too many. */
int64_t lp_fleet_sessions(const lp_fleet_spec *spec, const lp_fleet_candidates *all, const lp_fleet_option *option,
                          unsigned classes);
