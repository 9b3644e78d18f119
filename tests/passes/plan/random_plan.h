/* Random planning problems: small ones to try every placement of, and chains of layers. */
#ifndef LP_TESTS_RANDOM_PLAN_H
#define LP_TESTS_RANDOM_PLAN_H

#include "passes/plan/plan.h"

typedef struct {
  lp_arena *arena;
  uint64_t state; /* of the random numbers */
  lp_machine device, cloud;
  lp_link link;
  lp_compile_request request;
  lp_plan_problem problem[LP_STAGE_COUNT];
} random_plan;

/* `seed` names the problem; at most `most` operators per stage. Release with random_plan_free. */
random_plan *random_plan_create(uint64_t seed, int32_t most);
/* A graph of `branches` parallel branches, each of `depth` operators; at most 96 operators in all. */
random_plan *random_plan_create_wide(uint64_t seed, int32_t branches, int32_t depth);
void random_plan_free(random_plan *plan);
double random_plan_number(random_plan *plan); /* [0, 1) */

/* Prefill gives no token, so that no placement streams: the graphs of the exact scheduler know nothing of that. */
void random_plan_forbid_streams(random_plan *plan);

/* The best of all placements, each evaluated by lp_plan_evaluate. */
lp_plan_result random_plan_try_all(random_plan *plan);
/* The feasible placement of least latency with an objective of at most `most`, of all placements. */
lp_plan_result random_plan_try_fastest(random_plan *plan, double most);

#endif
