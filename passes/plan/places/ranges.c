/* What all formats of a report over places show: which layers and operators are where, and the limits. */
#include "passes/plan/places/model.h"

const char *lp_places_limit_name(const lp_places *places, int32_t limit, char out[80]) {
  if (limit == LP_PLACES_TTFT || limit == LP_PLACES_TPOT) return limit == LP_PLACES_TTFT ? "ttft" : "tpot";
  if (limit < 0 || limit >= places->count) return NULL;
  (void)snprintf(out, 80, "memory of %.60s", places->place[limit].name);
  return out;
}

int32_t lp_places_ranges(const lp_places_facts *facts, int stage, lp_places_range **out) {
  const lp_plan_problem *shape = &facts->problem->of[0][stage];
  const int32_t layers = shape->layer_count + 2; /* with what is before and after them */
  uint8_t *at = LP_NEW_ARRAY(facts->arena, uint8_t, layers);
  for (int32_t i = 0; i < shape->op_count; i++) {
    const int32_t layer = shape->ops[i].layer + 1;
    if (!shape->ops[i].free) at[layer] = (uint8_t)(at[layer] | (1U << facts->plan->place[stage][i]));
  }
  lp_places_range *list = *out = LP_NEW_ARRAY(facts->arena, lp_places_range, layers);
  int32_t count = 0;
  for (int32_t i = 0; i < layers; i++) {
    const bool inner = i > 0 && i < layers - 1;
    if (!at[i]) continue;
    if (count && inner && list[count - 1].first >= 0 && list[count - 1].at == at[i] && list[count - 1].last == i - 2)
      list[count - 1].last = i - 1;
    else
      list[count++] = (lp_places_range){i - 1, i - 1, at[i]};
  }
  return count;
}

const char *lp_places_range_name(const lp_places_facts *facts, const lp_places_range *range, char out[48]) {
  if (range->first < 0) return "embedding"; /* also of a model without layers */
  return lp_report_layers_name(range->first, range->last, facts->problem->of[0][0].layer_count, out);
}

bool lp_places_row_of(const lp_places_facts *facts, int stage, int32_t op, lp_places_row *out) {
  const lp_places_problem *problem = facts->problem;
  if (problem->of[0][stage].ops[op].free) return false;
  const int place = facts->plan->place[stage][op];
  const lp_plan_op *own = lp_places_op(problem, place, stage, op);
  *out = (lp_places_row){
      .name = lp_op_str(own->op, "name", ""),
      .kind = lp_op_info_get(own->op->kind)->name,
      .place = problem->places->place[place].name,
      .layer = lp_op_i64(own->op, "layer", -1),
      .flops = own->flops[lp_places_side(place)],
      .bytes = own->bytes[lp_places_side(place)],
  };
  for (int p = 0; p < problem->places->count; p++)
    out->ms[p] = lp_places_op(problem, p, stage, op)->ms[lp_places_side(p)];
  return true;
}
