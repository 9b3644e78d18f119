/* greedy: Algorithm 1 of P1 ("Efficient Deployment of Large Language Model across Cloud-Device Systems"), to the
 * letter.
 *
 * Everything starts on the device. Linear operators, then attention operators, move to the cloud in graph order while
 * the stage's time is not below its bound. The paper ignores communication, and so does this scheduler. The paper
 * counts only linear and attention operators: all others cost nothing here and follow their producer, the latest one
 * where there are several. The operators of one KV cache move with the attention that reads it; writing the cache is
 * not counted. */
#include "base/side.h"
#include "base/units.h"
#include "passes/passes.h"
#include "passes/plan/plan.h"
#include "passes/plan/schedulers.h"

/* Algorithm 1 moves these in order; one unit is an operator or all operators of a group of KV caches. */
typedef struct {
  const lp_plan_problem *problem;
  lp_side *side;
  bool *moved; /* [op_count] */
  double total_ms;
} greedy;

static bool is_placed(const lp_plan_op *item) {
  return !item->free && (lp_op_has(item->op, LP_LINEAR_OP) || lp_op_has(item->op, LP_ATTENTION_OP));
}

static double counted_ms(const lp_plan_op *item, lp_side side) {
  return is_placed(item) && item->op->kind != LP_OP_KV_APPEND ? item->ms[side] : 0;
}

static void move_one(greedy *g, int32_t index) {
  const lp_plan_op *item = &g->problem->ops[index];
  g->moved[index] = true;
  g->side[index] = LP_SIDE_CLOUD;
  g->total_ms += counted_ms(item, LP_SIDE_CLOUD) - counted_ms(item, LP_SIDE_DEVICE);
}

static void move_unit(greedy *g, int32_t index) {
  int32_t state = g->problem->ops[index].state;
  move_one(g, index);
  for (int32_t i = 0; state >= 0 && i < g->problem->op_count; i++)
    if (g->problem->ops[i].state == state && !g->moved[i]) move_one(g, i);
}

static void move_kind(greedy *g, uint32_t trait, double bound_ms) {
  for (int32_t i = 0; i < g->problem->op_count && g->total_ms >= bound_ms; i++)
    if (is_placed(&g->problem->ops[i]) && lp_op_has(g->problem->ops[i].op, trait) && !g->moved[i]) move_unit(g, i);
}

/* Edges are sorted by consumer, and operators stand in program order: the latest producer has the greatest index. */
static void follow_producers(greedy *g) {
  const lp_plan_problem *problem = g->problem;
  int32_t edge = 0;
  for (int32_t i = 0; i < problem->op_count; i++) {
    int32_t latest = -1;
    for (; edge < problem->edge_count && problem->edges[edge].consumer == i; edge++) {
      int32_t producer = problem->edges[edge].producer;
      if (producer > latest && !problem->ops[producer].free) latest = producer;
    }
    if (!is_placed(&problem->ops[i])) g->side[i] = latest < 0 ? LP_SIDE_DEVICE : g->side[latest];
  }
}

double lp_greedy_place_stage(const lp_plan_problem *problem, double bound_ms, lp_side *side) {
  LP_OWNED(lp_arena_free_at) lp_arena *scratch = lp_arena_create();
  greedy g = {.problem = problem, .side = side, .moved = LP_NEW_ARRAY(scratch, bool, problem->op_count)};
  lp_plan_fill(problem, LP_SIDE_DEVICE, side);
  for (int32_t i = 0; i < problem->op_count; i++)
    g.total_ms += counted_ms(&problem->ops[i], LP_SIDE_DEVICE);
  if (bound_ms > 0) {
    move_kind(&g, LP_LINEAR_OP, bound_ms);
    move_kind(&g, LP_ATTENTION_OP, bound_ms);
  }
  follow_producers(&g);
  return g.total_ms;
}

lp_status lp_place_greedy(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                          lp_side *side[LP_STAGE_COUNT], lp_plan_proof *proof, lp_arena *scratch, lp_diag *diag) {
  (void)proof, (void)scratch;
  const double bound_ms[LP_STAGE_COUNT] = {request->ttft_ms, request->tpot_ms};
  static const char *const bound_names[LP_STAGE_COUNT] = {"TTFT", "TPOT"};
  double ms[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    ms[stage] = lp_greedy_place_stage(&problem[stage], bound_ms[stage], side[stage]);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (bound_ms[stage] > 0 && ms[stage] >= bound_ms[stage]) {
      char bound[32], takes[32];
      return lp_error_as(LP_INFEASIBLE, diag, LP_LOC_NONE,
                         "%s of %s cannot be met: everything in the cloud takes %s, communication aside",
                         bound_names[stage], lp_format_ms(bound_ms[stage], bound), lp_format_ms(ms[stage], takes));
    }
  return LP_OK;
}
