/* A placement in closed form: the numbers of each class on each side and across the link, and its evaluation. */
#include "base/side.h"
#include "passes/plan/evaluate.h"
#include "passes/plan/forms.h"

#include <math.h>

/* Counts of classes, as terms. */
static lp_plan_terms terms_of(const int32_t *times, int32_t classes, lp_arena *arena) {
  lp_plan_terms out = {.term = LP_NEW_ARRAY(arena, lp_plan_term, classes)};
  for (int32_t i = 0; i < classes; i++)
    if (times[i]) out.term[out.count++] = (lp_plan_term){i, times[i]};
  return out;
}

static void count_busy(const lp_plan_forms *forms, lp_stage stage, const lp_side *side, lp_arena *arena,
                       lp_plan_form *out) {
  const lp_plan_problem *problem = &forms->problem[stage];
  const lp_plan_classes *ops = &forms->ops[stage];
  unsigned char *needed = LP_NEW_ARRAY(arena, unsigned char, problem->op_count);
  lp_plan_mark_needed(problem, side, needed);
  for (int where = 0; where < LP_SIDE_COUNT; where++) {
    int32_t *times = LP_NEW_ARRAY(arena, int32_t, ops->count);
    for (int32_t i = 0; i < problem->op_count; i++)
      times[ops->class_of[i]] += (needed[i] >> where) & 1;
    out->busy[stage][where] = terms_of(times, ops->count, arena);
  }
}

static void count_crossings(const lp_plan_forms *forms, lp_stage stage, const lp_side *side, lp_arena *arena,
                            lp_plan_form *out) {
  const lp_plan_problem *problem = &forms->problem[stage];
  const lp_plan_classes *edges = &forms->edges[stage];
  lp_plan_crossings crossings;
  lp_plan_find_crossings(problem, side, arena, &crossings);
  for (int where = 0; where < LP_SIDE_COUNT; where++) {
    int32_t *times = LP_NEW_ARRAY(arena, int32_t, edges->count);
    for (int32_t i = 0; i < problem->edge_count; i++) {
      int32_t producer = problem->edges[i].producer;
      lp_side from = producer < 0 ? LP_SIDE_DEVICE : side[producer];
      times[edges->class_of[i]] += crossings.edge[i] && from == (lp_side)where;
    }
    out->crossing[stage][where] = terms_of(times, edges->count, arena);
    out->messages[stage][where] = crossings.messages[where];
  }
  out->results[stage] = crossings.result;
  out->crossings[stage] = crossings.count;
}

static void count_holdings(const lp_plan_forms *forms, lp_side *const side[LP_STAGE_COUNT], lp_arena *arena,
                           lp_plan_form *out) {
  const unsigned char *held = lp_plan_mark_weights(forms->problem, side, arena);
  const lp_side *first = lp_plan_state_sides(&forms->problem[0], side[0], arena);
  const lp_side *next = lp_plan_state_sides(&forms->problem[1], side[1], arena);
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    lp_side where = (lp_side)i;
    int32_t *weights = LP_NEW_ARRAY(arena, int32_t, forms->weights.count);
    int32_t *caches = LP_NEW_ARRAY(arena, int32_t, forms->states.count);
    int32_t *moves = LP_NEW_ARRAY(arena, int32_t, forms->states.count);
    for (int32_t k = 0; k < forms->problem[0].weight_count; k++)
      weights[forms->weights.class_of[k]] += (held[k] >> i) & 1;
    for (int32_t k = 0; k < forms->problem[0].state_count; k++) {
      caches[forms->states.class_of[k]] += first[k] == where || next[k] == where;
      moves[forms->states.class_of[k]] += first[k] == where && next[k] != where;
    }
    out->weights[where] = terms_of(weights, forms->weights.count, arena);
    out->caches[where] = terms_of(caches, forms->states.count, arena);
    out->moves[where] = terms_of(moves, forms->states.count, arena);
  }
}

void lp_plan_form_make(const lp_plan_forms *forms, lp_side *const side[LP_STAGE_COUNT], lp_arena *arena,
                       lp_plan_form *out) {
  *out = (lp_plan_form){0};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    count_busy(forms, (lp_stage)stage, side[stage], arena, out);
    count_crossings(forms, (lp_stage)stage, side[stage], arena, out);
  }
  count_holdings(forms, side, arena, out);
  out->streams = lp_plan_streams(forms->problem, side);
}

static double sum(const lp_plan_terms *terms, const double *of_class) {
  double total = 0;
  for (int32_t i = 0; i < terms->count; i++)
    total += terms->term[i].times * of_class[terms->term[i].class_id];
  return total;
}

static double largest(const lp_plan_terms *terms, const double *of_class, double most) {
  for (int32_t i = 0; i < terms->count; i++)
    most = fmax(most, of_class[terms->term[i].class_id]);
  return most;
}

void lp_plan_form_evaluate(const lp_plan_form *form, const lp_plan_prices *prices, const lp_compile_request *request,
                           lp_plan_result *out) {
  lp_plan_sums sums = {.streams = form->streams};
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      lp_plan_stage_sum *to = &sums.stage[stage];
      const lp_plan_terms *busy = &form->busy[stage][side];
      to->busy_ms[side] = sum(busy, prices->ms[stage][side]);
      to->bytes[side] = sum(&form->crossing[stage][side], prices->value[stage]);
      to->messages[side] = form->messages[stage][side];
      sums.activation_bytes[side] = largest(busy, prices->activation[stage][side], sums.activation_bytes[side]);
    }
    sums.weight_bytes[side] = sum(&form->weights[side], prices->weight[side]);
    sums.cache_bytes[side] = sum(&form->caches[side], prices->state);
    sums.move_bytes[side] = sum(&form->moves[side], prices->state_prompt);
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    sums.stage[stage].crossings = form->crossings[stage];
    sums.stage[stage].bytes[LP_SIDE_CLOUD] += form->results[stage] * prices->result_bytes;
  }
  lp_plan_conclude(&sums, request, out);
}
