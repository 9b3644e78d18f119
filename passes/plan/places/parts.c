/* Divides a model's operators into parts: between two parts only values of the part before are alive, so that a part
 * reads messages of one other place at most. */
#include "passes/plan/places/model.h"

/* For the border before each operator, over both stages. */
typedef struct {
  int32_t *oldest; /* the first producer of the values that are alive there; op_count: no value is alive */
  bool *closed;    /* no part may end there */
} borders;

/* Marks the operators that depend on an input, or on what an earlier part computes. Others could run in an earlier turn
 * than the rest of their part. */
static bool *find_reached(const lp_plan_problem *problem, lp_arena *arena) {
  bool *reached = LP_NEW_ARRAY(arena, bool, problem->op_count + 1);
  for (int32_t i = 0; i < problem->edge_count; i++) { /* sorted by consumer */
    const lp_plan_edge *edge = &problem->edges[i];
    if (problem->ops[edge->consumer].free || (edge->producer >= 0 && problem->ops[edge->producer].free)) continue;
    if (edge->producer < 0 || reached[edge->producer]) reached[edge->consumer] = true;
  }
  return reached;
}

static void close_values(const lp_plan_problem *problem, const bool *reached, borders *b) {
  LP_FOR_EACH(const lp_plan_edge, edge, problem->edges, problem->edge_count) {
    if (problem->ops[edge->consumer].free || (edge->producer >= 0 && problem->ops[edge->producer].free)) continue;
    for (int32_t k = edge->producer + 1; k <= edge->consumer; k++) {
      if (edge->producer < b->oldest[k]) b->oldest[k] = edge->producer;
      if (edge->producer >= 0 && !reached[edge->producer]) b->closed[k] = true;
    }
  }
}

/* A border without a live value in this stage: the part after it would begin a turn of its own. */
static void close_gaps(const lp_plan_problem *problem, borders *b, lp_arena *arena) {
  int32_t *change = LP_NEW_ARRAY(arena, int32_t, problem->op_count + 2), alive = 0;
  LP_FOR_EACH(const lp_plan_edge, edge, problem->edges, problem->edge_count) {
    if (problem->ops[edge->consumer].free || (edge->producer >= 0 && problem->ops[edge->producer].free)) continue;
    change[edge->producer + 1]++;
    change[edge->consumer + 1]--;
  }
  for (int32_t k = 0; k <= problem->op_count; k++) {
    alive += change[k];
    if (alive == 0) b->closed[k] = true;
  }
}

/* All users of a KV cache are in one part, and the result is in the last one. */
static void close_states(const lp_plan_problem *problem, borders *b, lp_arena *arena) {
  int32_t *first = LP_NEW_ARRAY(arena, int32_t, problem->state_count + 1);
  for (int32_t i = 0; i < problem->state_count; i++)
    first[i] = -1;
  for (int32_t i = 0; i < problem->op_count; i++) {
    const int32_t state = problem->ops[i].state;
    if (state < 0) continue;
    for (int32_t k = first[state] + 1; first[state] >= 0 && k <= i; k++)
      b->closed[k] = true;
    first[state] = i;
  }
  for (int32_t k = problem->result + 1; problem->result >= 0 && k < problem->op_count; k++)
    b->closed[k] = true;
}

/* An operator that the result does not need, such as one of an exit's head, belongs to the part before it. */
static void close_dead_ends(const lp_plan_problem *problem, borders *b, lp_arena *arena) {
  bool *needed = LP_NEW_ARRAY(arena, bool, problem->op_count + 1);
  if (problem->result < 0) return;
  needed[problem->result] = true;
  for (int32_t i = problem->edge_count; i-- > 0;) { /* sorted by consumer */
    const lp_plan_edge *edge = &problem->edges[i];
    if (edge->producer >= 0 && needed[edge->consumer]) needed[edge->producer] = true;
  }
  for (int32_t k = 0; k < problem->op_count; k++)
    if (!problem->ops[k].free && !needed[k]) b->closed[k] = true;
}

int32_t lp_places_divide(const lp_plan_problem problem[LP_STAGE_COUNT], lp_arena *arena, int32_t *first) {
  const int32_t ops = problem[0].op_count;
  borders b = {LP_NEW_ARRAY(arena, int32_t, ops + 1), LP_NEW_ARRAY(arena, bool, ops + 1)};
  for (int32_t k = 0; k <= ops; k++)
    b.oldest[k] = ops;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    close_values(&problem[stage], find_reached(&problem[stage], arena), &b);
    close_gaps(&problem[stage], &b, arena);
    close_states(&problem[stage], &b, arena);
    close_dead_ends(&problem[stage], &b, arena);
  }
  int32_t count = 0;
  first[count++] = 0;
  for (int32_t k = 1; k < ops; k++)
    if (!b.closed[k] && b.oldest[k] >= first[count - 1]) first[count++] = k;
  first[count] = ops;
  return count;
}
