/* What may run where: the pools of a specification, and the classes that each can serve. */
#ifndef LP_FLEET_CANDIDATES_H
#define LP_FLEET_CANDIDATES_H

#include "fleet/trial.h"

/* Machines of a kind that run one cut. */
typedef struct {
  int32_t kind;
  int64_t cut;
  const lp_load_law *law;
  unsigned serves; /* bit 1 << class: with an idle machine its limits hold */
} lp_fleet_option;

typedef struct {
  int64_t cuts;
  lp_load_user *user[LP_FLEET_MOST_CLASSES]; /* [cuts] */
  unsigned alone;                            /* bit 1 << class: its limits hold without the cloud */
  lp_fleet_times alone_times[LP_FLEET_MOST_CLASSES];
  lp_fleet_option *option;
  int32_t options;
} lp_fleet_candidates;

/* In `arena`. LP_INFEASIBLE: a class has none. */
LP_MUST_USE lp_status lp_fleet_candidates_find(const lp_fleet_spec *spec, lp_module *module, lp_arena *arena,
                                               lp_fleet_candidates *out, lp_diag *diag);

/* The most sessions that an option takes at a time for these classes; 0: one is too many. */
int64_t lp_fleet_sessions(const lp_fleet_spec *spec, const lp_fleet_candidates *all, const lp_fleet_option *option,
                          unsigned classes);
/* A lower bound of the machine time of a mean request, in s, when a pass has at most `sessions` sessions. */
double lp_fleet_work_s(const lp_fleet_spec *spec, const lp_load_law *law, int64_t sessions);

#endif
