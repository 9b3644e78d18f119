/* The search of the exact scheduler by beams, one class of activations after the other (subproblems.c). */
#pragma once

#include "passes/plan/exact/cut.h"
#include "passes/plan/exact/exact.h"

/* A gap, as a share of the objective, after which a search with all limits does not follow one that lacks some. It is
 * the gap that the planner's goals allow. */
#define LP_EXACT_GAP_CLOSE 1e-2

/* Units of both stages up to which a search goes on until the plan is proved best, if labels suffice. */
enum { LP_EXACT_FEW_UNITS = 100 };

typedef struct {
  const lp_exact *x;
  const lp_exact_duals *duals; /* good prices of the limits, from which those of each subproblem begin */
  double lowest;               /* a bound of all placements */
  double share;                /* of the usual work */
  bool is_quick;               /* one narrow beam at `duals`, over all activations at once, suffices */
  bool is_relaxed;             /* `x` lacks limits that `see` heeds */
  /* Evaluates a placement and keeps it if it is the best; returns whether it is feasible. */
  bool (*see)(void *user, unsigned char *const side[LP_STAGE_COUNT]);
  /* Looks for a placement elsewhere: called where the first subproblem has shown none and `x` has all limits. */
  void (*find_any)(void *user);
  double (*incumbent)(const void *user); /* the objective of the best feasible placement; infinite: none is known */
  void *user;
} lp_exact_subproblems_task;
/* Searches all placements; returns a bound of them, which is at most the objective known in the end. */
double lp_exact_search_subproblems(const lp_exact_subproblems_task *task);
