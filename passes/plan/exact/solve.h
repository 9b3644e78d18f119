/* The searches of the exact scheduler for one request (exact.c), and the choice of the fastest plan among those that
 * are nearly as good (tolerance.c, kept.c). */
#ifndef LP_PLAN_EXACT_SOLVE_H
#define LP_PLAN_EXACT_SOLVE_H

#include "passes/plan/plan.h"

/* A placement; the sides are owned by the caller. */
typedef struct {
  lp_side *side[LP_STAGE_COUNT]; /* [op_count] */
  lp_plan_result result;
} lp_exact_placement;

/* Copies sides and result into `to`. */
void lp_exact_placement_set(const lp_plan_problem problem[LP_STAGE_COUNT], lp_side *const side[LP_STAGE_COUNT],
                            const lp_plan_result *result, lp_exact_placement *to);

/* Two of the placements that were evaluated: the fastest one with an objective of at most `most`, and the one with the
 * least objective. */
typedef struct {
  const lp_compile_request *request; /* its objective is the one that `most` limits */
  double most;
  lp_exact_placement fastest, best;
} lp_exact_kept;
/* Keeps a feasible placement if its objective is less than that of the best one, or if its objective is at most `most`
 * and it is faster than the fastest one. Returns whether it is feasible and its objective at most `most`. */
bool lp_exact_keep(lp_exact_kept *kept, const lp_plan_problem problem[LP_STAGE_COUNT],
                   lp_side *const side[LP_STAGE_COUNT], const lp_plan_result *result);

/* Borrowed parts. */
typedef struct {
  const lp_plan_problem *problem; /* [LP_STAGE_COUNT] */
  const lp_compile_request *request;
  lp_side *const *seed; /* [LP_STAGE_COUNT] a placement to begin with; NULL: none */
  lp_exact_kept *kept;  /* gets every placement that is evaluated; NULL: none */
  bool again;           /* `kept` and `seed` come from a search for another objective of the same request */
} lp_exact_task;
/* Searches for the best placement. Returns whether it found one that meets the limits; `side` then holds it. Otherwise
 * `side` holds the placement that comes nearest. `proof` may be NULL. */
bool lp_exact_solve(const lp_exact_task *task, lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch);

/* Searches for a faster placement with an objective of at most (1 + request->tolerance) times that of the best one.
 * `side` gets the fastest placement found, and proof->cheapest the best one. A placement with a lower objective that
 * the search meets becomes the best one. `proof` may be NULL. */
void lp_exact_find_faster(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                          lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch);

#endif
