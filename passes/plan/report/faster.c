/* Finds a plan that is much faster than the reported one and hardly worse: among the baselines and the cuts between
 * layers. People may want it instead. */
#include "passes/plan/objective.h"
#include "passes/plan/report/report.h"

/* little: the most that the faster plan may cost in addition, as a share of the objective. The others: how many times
 * as fast it must be, for the whole request or for the first token of a request that takes no longer. */
static const double little = 0.05, much_faster = 1.5, much_faster_start = 2;

static bool is_much_faster(const lp_plan_result *plan, const lp_plan_result *other) {
  return other->e2e_ms * much_faster <= plan->e2e_ms ||
         (other->ttft_ms * much_faster_start <= plan->ttft_ms && other->e2e_ms <= plan->e2e_ms);
}

static bool saves_little(const lp_plan_result *plan, const lp_plan_result *other, const lp_compile_request *request) {
  return lp_plan_objective_value(other, request) <= (1 + little) * lp_plan_objective_value(plan, request);
}

static void consider(lp_report *report, const lp_report_baseline *other) {
  const lp_plan_result *plan = &report->plan;
  if (!other->result.feasible || !is_much_faster(plan, &other->result)) return;
  if (!saves_little(plan, &other->result, report->request)) return;
  if (!report->faster.name || other->result.e2e_ms < report->faster.result.e2e_ms) report->faster = *other;
}

/* Considers the best cut at an objective to which latency adds at most the share that a faster plan may cost. */
static void consider_cut(lp_report *report) {
  const lp_compile_request *request = report->request;
  const double value = lp_plan_objective_value(&report->plan, request);
  lp_compile_request hurried = report->full;
  hurried.objective =
      lp_arena_format(report->arena, "%s+%.17g*latency", request->objective ? request->objective : "cost",
                      little * value / report->plan.e2e_ms);
  lp_report_baseline cut = {.name = "layer"};
  lp_status status = lp_plan_choose(report->problem, "layer", &hurried, cut.side, NULL, report->arena, NULL);
  if (status != LP_OK) return;
  lp_plan_evaluate(report->problem, &report->full, cut.side, &cut.result);
  consider(report, &cut);
}

void lp_report_find_faster(lp_report *report) {
  if (!report->plan.feasible || !report->request->cloud || report->plan.e2e_ms <= 0) return;
  for (int32_t i = 0; i < report->baseline_count; i++)
    consider(report, &report->baselines[i]);
  consider_cut(report);
}

double lp_report_saving(const lp_report *report) {
  const double value = lp_plan_objective_value(&report->faster.result, report->request);
  return value > 0 ? 1 - lp_plan_objective_value(&report->plan, report->request) / value : 0;
}
