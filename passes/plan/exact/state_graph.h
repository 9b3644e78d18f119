/* The graph of both stages together, step by step. A state is a frontier of each stage and what they share: the sides
 * that hold weights and caches of later units, and whether caches have moved. A placement is a path of arcs, and what
 * it costs and uses is the sum along the path, but for the largest activations. At prices of the limits the cheapest
 * path is a bound of all placements, and the least price from each state to the end bounds the placements so far
 * (beam.c). */
#pragma once

#include "passes/plan/exact/exact.h"

/* The limited quantities: times of the stages in ms, bytes of the sides, then the limited objective. */
enum { LP_EXACT_LIMITED_OBJECTIVE = (int)LP_STAGE_COUNT + (int)LP_SIDE_COUNT, LP_EXACT_LIMITS };

/* What one unit on one side adds. Amounts are multiples of powers of two, so that their sums are exact in any order. */
typedef struct {
  double objective, amount[LP_EXACT_LIMITS];
} lp_exact_state_cost;

typedef struct {
  int32_t to;   /* the state after it */
  int32_t cost; /* among those of the step; 0: the arc is not allowed */
} lp_exact_state_arc;

typedef struct {
  int32_t count; /* states before it */
  int32_t alike; /* the first step with the same arcs */
  lp_exact_state_arc (*arc)[LP_SIDE_COUNT];
  lp_exact_state_cost *cost; /* [cost_count], few beside the arcs; the first is none */
  int32_t cost_count;
} lp_exact_state_step;

typedef struct {
  const lp_exact *x;
  lp_exact_step *order;          /* [x->step_count] both stages, block by block */
  lp_exact_state_step *step;     /* [x->step_count] */
  size_t *first;                 /* [step] its first state among all; then the states after the last step, then all */
  double limit[LP_EXACT_LIMITS]; /* 0: none */
  lp_arena *arena;               /* owned */
} lp_exact_states;

/* The most states of a graph; a state takes about 60 bytes in all searches. */
enum { LP_EXACT_MOST_STATES = 12000000 };
/* Makes the graph from those of the stages; false when it has more than `most` states, or too many at one place.
 * Release with lp_exact_states_free, also after a failure. */
bool lp_exact_states_create(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], size_t most,
                            lp_exact_states *out);
void lp_exact_states_free(lp_exact_states *s);

/* What an amount costs. `objective` is the weight of the objective itself: 1, or 0 for the least amount of a limit. */
typedef struct {
  double objective, price[LP_EXACT_LIMITS];
} lp_exact_state_prices;

/* Searches for the prices of the limits with the highest bound, from `price` on, by a level method (base/level.h), and
 * leaves them there. Bounds above `enough` are not looked for. Returns the bound; infinite: there is no placement. */
double lp_exact_states_improve(const lp_exact_states *s, double enough, double price[LP_EXACT_LIMITS]);

/* Fills rest[state * count + i], for each i below `count`, with the least price from each state to the end at
 * prices[i], rounded down. */
void lp_exact_states_fill(const lp_exact_states *s, const lp_exact_state_prices *prices, int count, float *rest);
