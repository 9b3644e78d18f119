/* The front of cost against time, from which a request without limits takes its plan: cuts between layers, either side
 * by itself, and the cheapest of all plans. The knee is the plan from which a step towards less cost loses more than it
 * gains: the one farthest below the chord between the fastest and the cheapest plan (Satopaa et al. 2011, "Kneedle"),
 * with the time of an answer on a logarithmic scale, since people feel ratios, and the cost, which may be 0, on a
 * linear one. */
#include "base/abi.h"
#include "base/side.h"
#include "base/units.h"
#include "passes/passes.h"
#include "passes/plan/exact/exact.h"
#include "passes/plan/pin.h"
#include "passes/plan/plan.h"
#include "passes/plan/schedulers.h"

#include <math.h>

/* A plan that is less than this much faster than a cheaper one is left out, as a share. Half the value keeps
 * plans whose times differ by less than 1 %; twice the value drops plans that are 1 to 2 % faster. */
static const double least_step = 0.01;

/* The least distance between plans that the front shows, each of the axes being 1 long. Half the value shows
 * more plans that are similar; twice the value shows fewer plans between the fastest one and the knee. */
static const double least_distance = 0.05;

typedef LP_VEC(lp_plan_front_row) row_list;

/* ---- from plans to a front --------------------------------------------------------------------------------------- */

/* Cheapest first; of equal cost the faster one. */
static int by_cost(const void *left, const void *right) {
  const lp_plan_front_row *a = left, *b = right;
  if (a->result.cost_usd != b->result.cost_usd) return a->result.cost_usd < b->result.cost_usd ? -1 : 1;
  return (a->result.e2e_ms > b->result.e2e_ms) - (a->result.e2e_ms < b->result.e2e_ms);
}

/* Keeps the plans than which none is cheaper and as fast, from the fastest to the cheapest. Returns their number. */
static int32_t drop_dominated(lp_plan_front_row *plans, int32_t count) {
  int32_t kept = 0, fastest = 0;
  qsort(plans, (size_t)count, sizeof *plans, by_cost);
  for (int32_t i = 1; i < count; i++)
    if (plans[i].result.e2e_ms < plans[fastest].result.e2e_ms) fastest = i;
  const lp_plan_front_row end = count > 0 ? plans[fastest] : (lp_plan_front_row){.ttft_ms = 0};
  for (int32_t i = 0; i < count; i++)
    if (!kept || plans[i].result.e2e_ms < (1 - least_step) * plans[kept - 1].result.e2e_ms) plans[kept++] = plans[i];
  if (kept > 1) plans[kept - 1] = end; /* the last one kept is hardly slower */
  for (int32_t i = 0; i < kept / 2; i++) {
    const lp_plan_front_row swapped = plans[i];
    plans[i] = plans[kept - 1 - i];
    plans[kept - 1 - i] = swapped;
  }
  return kept;
}

/* Where a plan is between the fastest one, (0, 1), and the cheapest one, (1, 0). */
typedef struct {
  double time, cost;
} position;

static position position_of(const lp_plan_front_row *plans, int32_t count, int32_t index) {
  const lp_plan_result *plan = &plans[index].result, *fastest = &plans[0].result, *cheapest = &plans[count - 1].result;
  return (position){log(plan->e2e_ms / fastest->e2e_ms) / log(cheapest->e2e_ms / fastest->e2e_ms),
                    (plan->cost_usd - cheapest->cost_usd) / (fastest->cost_usd - cheapest->cost_usd)};
}

/* The plan farthest below the chord; the last one where none is below it. */
static int32_t find_lowest(const lp_plan_front_row *plans, int32_t count) {
  int32_t lowest = count - 1;
  double most = 1e-9;
  for (int32_t i = 1; i + 1 < count; i++) {
    const position at = position_of(plans, count, i);
    const double below = 1 - at.time - at.cost;
    if (below <= most) continue;
    most = below;
    lowest = i;
  }
  return lowest;
}

/* A plan loses time on the fastest plan and cost on the cheapest one. This finds the plan between these two for which
 * the larger of its two losses is smallest; if there are only two plans, the cheapest one. */
static int32_t find_compromise(const lp_plan_front_row *plans, int32_t count) {
  int32_t best = count - 1;
  double least = INFINITY;
  for (int32_t i = 1; i + 1 < count; i++) {
    const position at = position_of(plans, count, i);
    const double loss = fmax(at.time, at.cost);
    if (loss >= least) continue;
    least = loss;
    best = i;
  }
  return best;
}

/* If no plan lies below the chord, the cheapest plan is the knee only if it costs nothing: one that costs something can
 * be many times slower for what it saves. */
static int32_t find_knee(const lp_plan_front_row *plans, int32_t count) {
  const int32_t lowest = find_lowest(plans, count);
  return lowest + 1 < count || plans[lowest].result.cost_usd <= 0 ? lowest : find_compromise(plans, count);
}

/* The least distance of a plan from the chosen ones. */
static double distance_of(const lp_plan_front_row *plans, int32_t count, const bool *chosen, int32_t index) {
  const position at = position_of(plans, count, index);
  double least = INFINITY;
  for (int32_t i = 0; i < count; i++) {
    if (!chosen[i]) continue;
    const position other = position_of(plans, count, i);
    least = fmin(least, hypot(at.time - other.time, at.cost - other.cost));
  }
  return least;
}

/* Chooses both ends and the knee, and of the others those farthest from the chosen ones. */
static void choose_rows(const lp_plan_front_row *plans, int32_t count, int32_t knee, bool *chosen) {
  chosen[0] = chosen[knee] = chosen[count - 1] = true;
  for (int32_t left = LP_FRONT_MOST - (1 + (knee > 0) + (count - 1 > knee)); left > 0; left--) {
    int32_t farthest = -1;
    double most = least_distance;
    for (int32_t i = 1; i + 1 < count; i++) {
      const double distance = chosen[i] ? 0 : distance_of(plans, count, chosen, i);
      if (distance <= most) continue;
      most = distance;
      farthest = i;
    }
    if (farthest < 0) return;
    chosen[farthest] = true;
  }
}

/* The least number of two digits that is not below `ms`. */
static double limit_of(double ms) {
  const double unit = ms > 0 ? pow(10, floor(log10(ms)) - 1) : 0;
  char text[32];
  double limit = ms;
  (void)snprintf(text, sizeof text, "%.1e", unit * ceil(ms / unit * (1 - 1e-12)));
  return ms > 0 && lp_parse_double(text, &limit, NULL, LP_LOC_NONE) == LP_OK ? limit : ms;
}

void lp_plan_front_make(lp_plan_front_row *plans, int32_t count, lp_plan_front *out) {
  *out = (lp_plan_front){.count = 0};
  count = drop_dominated(plans, count);
  if (count == 0) return;
  LP_OWNED(lp_free_at) bool *chosen = lp_alloc((size_t)count * sizeof *chosen);
  memset(chosen, 0, (size_t)count * sizeof *chosen);
  const int32_t knee = find_knee(plans, count);
  choose_rows(plans, count, knee, chosen);
  for (int32_t i = 0; i < count; i++) {
    if (!chosen[i]) continue;
    lp_plan_front_row *row = &out->row[out->count];
    if (i == knee) out->knee = out->count;
    out->count++;
    *row = plans[i];
    if (i + 1 == count) continue; /* without limits the planner finds the cheapest one */
    row->ttft_ms = limit_of(row->result.ttft_ms);
    row->tpot_ms = limit_of(row->result.tpot_ms);
  }
}

/* ---- the plans --------------------------------------------------------------------------------------------------- */

/* A plan without limits on its times; the planner's own evaluation prices it. */
typedef struct {
  const lp_compile_request *request;
  lp_plan_problem problem[LP_STAGE_COUNT];
  lp_side *side[LP_STAGE_COUNT];
  lp_arena *arena;
  row_list found;
} search;

static void add(search *s, int64_t prefill, int64_t decode) {
  lp_plan_front_row row = {.cut = {prefill, decode}};
  lp_plan_evaluate(s->problem, s->request, s->side, &row.result);
  const bool moves = s->request->ranks > 1 && row.result.kv_move_ms > 0; /* ranks cannot move their caches */
  if (row.result.feasible && row.result.e2e_ms > 0 && !moves) lp_vec_push(&s->found, row);
}

/* Adds the plan in which the layers below `prefill` and `decode` are on the device in these stages. */
static void add_cut(search *s, int64_t prefill, int64_t decode) {
  const int64_t cut[LP_STAGE_COUNT] = {prefill, decode};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_plan_fill_cut(&s->problem[stage], cut[stage], s->side[stage]);
    lp_plan_settle(&s->problem[stage], s->side[stage]);
    lp_exact_join_views(&s->problem[stage], s->arena, s->side[stage]);
  }
  add(s, prefill, decode);
}

/* Both stages cut at the same layer, and with moves of caches a prompt or a decode that is wholly in the cloud. A long
 * prompt then runs in one pass, for which this problem does not state the memory. */
static void add_cuts(search *s) {
  const int64_t cloud = -1, device = s->problem[0].layer_count + 1;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    s->side[stage] = LP_NEW_ARRAY(s->arena, lp_side, s->problem[stage].op_count);
  for (int64_t cut = cloud; cut <= device; cut++) {
    add_cut(s, cut, cut);
    if (cut == cloud || s->request->isl > LP_PROMPT_PART) continue;
    add_cut(s, cloud, cut);
    add_cut(s, cut, cloud);
  }
}

/* Adds the cheapest of all plans, if any plan is feasible. */
static lp_status add_cheapest(search *s, lp_diag *diag) {
  lp_compile_request cheapest = *s->request;
  cheapest.tolerance = 0;
  const lp_status status =
      lp_plan_choose_to_run(s->problem, cheapest.scheduler, &cheapest, s->side, NULL, s->arena, diag);
  if (status == LP_OK) add(s, 0, 0);
  return status == LP_INFEASIBLE ? LP_OK : status;
}

/* A plan may still need more memory for whole prompts than a cut does for prompts in parts, and ranks cannot move
 * caches. */
static lp_status check_knee(lp_module *module, const lp_compile_request *request, lp_plan_front *front, lp_diag *diag) {
  lp_plan_result result;
  lp_compile_request limited = *request;
  if (front->count == 0 || (request->ranks < 2 && request->isl <= LP_PROMPT_PART)) return LP_OK;
  lp_plan_front_limit(front, &limited);
  LP_TRY(lp_plan_try(module, &limited, &result, diag));
  if (!result.feasible || (request->ranks > 1 && result.kv_move_ms > 0)) front->knee = front->count - 1;
  return LP_OK;
}

void lp_plan_front_limit(const lp_plan_front *front, lp_compile_request *request) {
  const lp_plan_front_row *knee = &front->row[front->knee];
  request->ttft_ms = knee->ttft_ms;
  request->tpot_ms = knee->tpot_ms;
}

lp_status lp_plan_front_find(lp_module *module, const lp_compile_request *request, lp_plan_front *out, lp_diag *diag) {
  search s = {.request = request, .arena = lp_arena_create()};
  *out = (lp_plan_front){.count = 0};
  lp_status status = lp_plan_build(module, request, s.arena, s.problem, diag);
  if (status == LP_OK) add_cuts(&s);
  if (status == LP_OK) status = add_cheapest(&s, diag);
  if (status == LP_OK) {
    lp_plan_front_make(s.found.data, (int32_t)s.found.count, out);
    status = check_knee(module, request, out, diag);
  }
  lp_vec_free(&s.found);
  lp_arena_free(s.arena);
  return status;
}
