/* A change that takes something away never makes the exact plan cheaper: a pin, a tighter SLA, a slower link, less
 * memory, a dearer cloud. */
#include "base/side.h"
#include "passes/plan/objective.h"
#include "tests/passes/plan/random_plan.h"
#include "tests/suite.h"

LP_CASE(.timeout = 300);

enum { CASES = 1000, FEW_OPS = 7, MOST_OPS = 16 };

static lp_plan_result plan_exactly(random_plan *plan) {
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_result result;
  lp_status status = lp_plan_choose(plan->problem, "exact", &plan->request, side, NULL, plan->arena, NULL);
  ck_assert(status == LP_OK || status == LP_INFEASIBLE);
  lp_plan_evaluate(plan->problem, &plan->request, side, &result);
  return result;
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

/* Each makes one change to a problem; `before` is the result of its plan. */

static void add_pin(random_plan *plan, const lp_plan_result *before) {
  (void)before;
  lp_plan_problem *problem = &plan->problem[random_plan_number(plan) < 0.5];
  lp_plan_op *op = &problem->ops[(int32_t)(random_plan_number(plan) * problem->op_count)];
  int8_t side = random_plan_number(plan) < 0.5;
  if (op->free || op->pin >= 0) return;
  for (int32_t i = 0; i < problem->op_count; i++)
    if (&problem->ops[i] == op || (op->state >= 0 && problem->ops[i].state == op->state)) problem->ops[i].pin = side;
}

static double tighten(random_plan *plan, double limit, double have) {
  double share = 0.7 + 0.3 * random_plan_number(plan);
  return limit > 0 ? limit * share : have * (share + 0.15);
}

static void tighten_ttft(random_plan *plan, const lp_plan_result *before) {
  plan->request.ttft_ms = tighten(plan, plan->request.ttft_ms, before->ttft_ms);
}

static void tighten_tpot(random_plan *plan, const lp_plan_result *before) {
  plan->request.tpot_ms = tighten(plan, plan->request.tpot_ms, before->tpot_ms);
}

static void slow_link(random_plan *plan, const lp_plan_result *before) {
  (void)before;
  plan->link.figure[LP_LINK_RTT] += random_plan_number(plan);
  plan->link.figure[LP_LINK_UP] *= 0.3 + 0.7 * random_plan_number(plan);
  plan->link.figure[LP_LINK_DOWN] *= 0.3 + 0.7 * random_plan_number(plan);
}

static void take_memory(random_plan *plan, const lp_plan_result *before) {
  bool cloud = random_plan_number(plan) < 0.5;
  double *limit = &(cloud ? &plan->cloud : &plan->device)->figure[LP_HW_MEMORY];
  double have = cloud ? before->cloud_memory_bytes : before->device_memory_bytes, wanted = tighten(plan, *limit, have);
  if (wanted > 0) *limit = wanted;
}

static void raise_price(random_plan *plan, const lp_plan_result *before) {
  (void)before;
  plan->cloud.figure[LP_HW_PRICE] *= 1 + 2 * random_plan_number(plan);
}

typedef struct {
  const char *name;
  void (*make)(random_plan *plan, const lp_plan_result *before);
} change;

static const change changes[] = {
    {"a pin", add_pin},           {"a tighter TTFT", tighten_ttft}, {"a tighter TPOT", tighten_tpot},
    {"a slower link", slow_link}, {"less memory", take_memory},     {"a dearer cloud", raise_price}};

/* ---- the property ------------------------------------------------------------------------------------------------ */

/* Returns whether the plan with the change costs more, or is not feasible any more. */
static bool never_cheaper(uint64_t seed, int32_t most, const change *c) {
  random_plan *plan = random_plan_create(seed, most);
  lp_plan_result before = plan_exactly(plan);
  double least = lp_plan_objective_value(&before, &plan->request);
  c->make(plan, &before);
  lp_plan_result after = plan_exactly(plan);
  double have = lp_plan_objective_value(&after, &plan->request);
  ck_assert_msg(before.feasible || !after.feasible, "seed %d: %s makes it feasible", (int)seed, c->name);
  ck_assert_msg(!after.feasible || have >= least * (1 - 1e-9), "seed %d: %s makes a plan of %.12g cost %.12g",
                (int)seed, c->name, least, have);
  bool worse = before.feasible && (!after.feasible || have > least * (1 + 1e-9));
  random_plan_free(plan);
  return worse;
}

static void check_change(const change *c) {
  const int cases = lp_part("soak") ? CASES : CASES / 10;
  int worse = 0;
  for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++)
    worse += never_cheaper(5000 + seed, seed % 2 ? FEW_OPS : MOST_OPS, c);
  ck_assert_msg(worse >= cases / 20, "%s makes only %d plans worse", c->name, worse);
}

LP_TEST(pins_never_help) {
  check_change(&changes[0]);
}

LP_TEST(tighter_limits_never_help) {
  check_change(&changes[1]);
  check_change(&changes[2]);
}

LP_TEST(slower_links_never_help) {
  check_change(&changes[3]);
}

LP_TEST(less_memory_never_helps) {
  check_change(&changes[4]);
}

LP_TEST(dearer_clouds_never_help) {
  check_change(&changes[5]);
}
