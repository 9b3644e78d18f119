/* Watches the placements that a search of the exact scheduler shows; keeps the least objective of a feasible one. */
#ifndef LP_TESTS_PLAN_WATCHER_H
#define LP_TESTS_PLAN_WATCHER_H

#include "passes/plan/exact/exact.h"
#include "tests/passes/plan/random_plan.h"

typedef struct {
  random_plan *plan; /* borrowed */
  lp_exact *x;       /* its problem as the scheduler sees it, in its arena */
  lp_side *side[LP_STAGE_COUNT];
  double best;  /* the least objective of a feasible placement that was shown; infinite: none */
  bool refuses; /* every placement, as if it broke a limit that the problem lacks */
  int shown;
} watcher;

/* Begins with `best`, as if a placement with that objective had been shown. */
void watcher_open(random_plan *plan, double best, watcher *out);
/* Takes a watcher and the sides of units; returns whether the placement is feasible. */
bool watcher_see(void *user, unsigned char *const of_unit[LP_STAGE_COUNT]);
/* The least objective that is known to a watcher. */
double watcher_known(const void *user);

#endif
