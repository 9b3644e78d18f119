/* The search of the exact scheduler along chains of segments, part by part (parts.c). */
#ifndef LP_PLAN_PARTS_H
#define LP_PLAN_PARTS_H

#include "passes/plan/exact/cut.h"
#include "passes/plan/exact/exact.h"

/* A proved gap, as a share of the objective, after which no other search follows. */
#define LP_EXACT_GAP_CLOSE 1e-2
/* The share of the usual work where a plan is known and a search only looks for a better one. */
#define LP_EXACT_KNOWN_SHARE 0.25

typedef struct {
  const lp_exact *x;
  const lp_cut *cut; /* divides the price of memory among the stages */
  const lp_exact_duals *duals;
  double lowest; /* a bound of all placements */
  double share;  /* of the usual work; below 1 each pass keeps to it */
  bool is_loose; /* `x` lacks limits that `see` heeds */
  /* Evaluates a placement and keeps it if it is the best; returns whether it is feasible. */
  bool (*see)(void *user, unsigned char *const side[LP_STAGE_COUNT]);
  double (*known)(const void *user); /* the objective of the best feasible placement; infinite: none is known */
  lp_exact_watch *watch;             /* meets shortest paths of the stages */
  void *user;
} lp_exact_parts_task;
/* Searches all placements; returns a bound of them, which is at most the objective known in the end. */
double lp_exact_search_parts(const lp_exact_parts_task *task);

#endif
