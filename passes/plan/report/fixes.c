/* Finds fixes where no plan is feasible: for each figure of the request the smallest change that by itself makes a
 * plan feasible. Feasibility is monotone in each figure, so bisection finds it by planning again. The report shows few
 * digits, so the figure is rounded to them and planned once more. */
#include "base/side.h"
#include "passes/plan/report/report.h"

#include <math.h>

/* STEPS: of the bisection; DIGITS: significant digits of a suggested figure, as the report prints it; MOST_ROUNDINGS:
 * coarser roundings that are tried where the first one is not feasible. */
enum { STEPS = 24, FIRST_FACTOR = 8, DIGITS = 6, MOST_ROUNDINGS = 4 };
static const double NO_LIMIT = 1e100;

/* A request with one figure changed. */
typedef struct {
  lp_compile_request request;
  lp_link link;
} changed_request;

typedef struct {
  const char *name;
  double (*get)(const lp_compile_request *request);
  void (*set)(changed_request *changed, double value);
  double end; /* the end of the range of fixes: 0 for figures that should be small */
} request_figure;

static double get_ttft(const lp_compile_request *r) {
  return r->ttft_ms;
}
static void set_ttft(changed_request *c, double value) {
  c->request.ttft_ms = value < NO_LIMIT ? value : 0;
}
static double get_tpot(const lp_compile_request *r) {
  return r->tpot_ms;
}
static void set_tpot(changed_request *c, double value) {
  c->request.tpot_ms = value < NO_LIMIT ? value : 0;
}
static double get_memory(const lp_compile_request *r) {
  if (r->device_memory > 0) return (double)r->device_memory;
  return r->device ? r->device->figure[LP_HW_MEMORY] : 0;
}
static void set_memory(changed_request *c, double value) {
  c->request.device_memory = (int64_t)ceil(value);
}
static double get_link(const lp_compile_request *r, lp_link_figure index) {
  return r->link ? r->link->figure[index] : 0;
}
static double get_rtt(const lp_compile_request *r) {
  return get_link(r, LP_LINK_RTT);
}
static void set_rtt(changed_request *c, double value) {
  c->link.figure[LP_LINK_RTT] = value;
}
static double get_up(const lp_compile_request *r) {
  return get_link(r, LP_LINK_UP);
}
static void set_up(changed_request *c, double value) {
  c->link.figure[LP_LINK_UP] = value;
}
static double get_down(const lp_compile_request *r) {
  return get_link(r, LP_LINK_DOWN);
}
static void set_down(changed_request *c, double value) {
  c->link.figure[LP_LINK_DOWN] = value;
}

static const request_figure figures[] = {
    {"ttft_ms", get_ttft, set_ttft, NO_LIMIT},
    {"tpot_ms", get_tpot, set_tpot, NO_LIMIT},
    {"device_memory_bytes", get_memory, set_memory, 0x1p62},
    {"rtt_ms", get_rtt, set_rtt, 0},
    {"up_bps", get_up, set_up, NO_LIMIT},
    {"down_bps", get_down, set_down, NO_LIMIT},
};

static bool is_feasible(const lp_plan_problem problem[LP_STAGE_COUNT], const char *scheduler,
                        const lp_compile_request *request) {
  LP_OWNED(lp_arena_free_at) lp_arena *scratch = lp_arena_create();
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_problem own[LP_STAGE_COUNT];
  memcpy(own, problem, sizeof own);
  lp_status status = lp_plan_choose_to_run(own, scheduler, request, side, NULL, scratch, NULL);
  lp_plan_result result = {0};
  if (status == LP_OK || status == LP_INFEASIBLE) lp_plan_evaluate(own, request, side, &result);
  return result.feasible;
}

static bool feasible_with(const lp_plan_problem problem[LP_STAGE_COUNT], const char *scheduler,
                          const lp_compile_request *request, const request_figure *figure, double value) {
  changed_request changed = {.request = *request};
  changed.request.feasible_suffices = true;
  if (request->link) {
    changed.link = *request->link;
    changed.request.link = &changed.link;
  }
  figure->set(&changed, value);
  return is_feasible(problem, scheduler, &changed.request);
}

/* The bytes of all weights in the form in which a side would store them. */
static double total_weights(const lp_plan_problem *problem, lp_side side) {
  double sum = 0;
  for (int32_t i = 0; i < problem->weight_count; i++)
    sum += problem->weight_size[side][i];
  return sum;
}

/* The widest narrower weight type of a side that makes a plan feasible. */
static bool narrower_weights(lp_module *module, const lp_plan_problem problem[LP_STAGE_COUNT], const char *scheduler,
                             const lp_compile_request *request, lp_side side, lp_report_fix *fix) {
  static const char *const types[] = {"f16", "bf16", "int8", "int4"};
  const bool device = side == LP_SIDE_DEVICE;
  const char *from = device ? request->dtype_device : request->dtype_cloud;
  double now = total_weights(problem, side);
  lp_compile_request changed = *request;
  changed.feasible_suffices = true;
  for (size_t i = 0; i < LP_COUNT(types); i++) {
    *(device ? &changed.dtype_device : &changed.dtype_cloud) = types[i];
    lp_arena *arena = lp_arena_create();
    lp_plan_problem narrow[LP_STAGE_COUNT];
    bool found = lp_plan_build(module, &changed, arena, narrow, NULL) == LP_OK && total_weights(narrow, side) < now &&
                 is_feasible((const lp_plan_problem *)narrow, scheduler, &changed);
    lp_arena_free(arena);
    if (!found) continue;
    *fix = (lp_report_fix){.name = device ? "dtype_device" : "dtype_cloud",
                           .from_text = from ? from : "as in the file",
                           .to_text = types[i]};
    return true;
  }
  return false;
}

/* The most experts that a mixture of the plan has. */
static int64_t most_experts(const lp_plan_problem *problem) {
  int64_t most = 0;
  for (int32_t i = 0; i < problem->op_count; i++) {
    const lp_op *op = problem->ops[i].op;
    if (op->kind == LP_OP_EXPERTS && lp_op_i64(op, "experts", 0) > most) most = lp_op_i64(op, "experts", 0);
  }
  return most;
}

static bool feasible_with_experts(lp_module *module, const char *scheduler, const lp_compile_request *request,
                                  int64_t experts) {
  lp_compile_request changed = *request;
  changed.feasible_suffices = true;
  changed.device_experts = experts;
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_plan_problem fewer[LP_STAGE_COUNT];
  return lp_plan_build(module, &changed, arena, fewer, NULL) == LP_OK &&
         is_feasible((const lp_plan_problem *)fewer, scheduler, &changed);
}

/* The most experts in the device's memory with which a plan is feasible: fewer take less memory and more time. */
static bool fewer_experts(lp_module *module, const lp_plan_problem *problem, const char *scheduler,
                          const lp_compile_request *request, lp_report_fix *fix) {
  const lp_machine *device = request->device;
  int64_t good = 0, bad = request->device_experts > 0 ? request->device_experts : most_experts(problem);
  if (bad <= 1 || !device || device->kind != LP_MACHINE_CPU || !(device->figure[LP_HW_LOAD_BANDWIDTH] > 0))
    return false;
  const char *from = request->device_experts > 0 ? lp_arena_format(module->arena, "%" PRId64, bad) : "all";
  for (int64_t step = bad - 1; good + 1 < bad; step = good + (bad - good) / 2)
    if (feasible_with_experts(module, scheduler, request, step))
      good = step;
    else
      bad = step;
  *fix = (lp_report_fix){"device_experts", .from_text = from};
  fix->to_text = lp_arena_format(module->arena, "%" PRId64, good);
  return good > 0;
}

/* Rounds a figure to so many significant digits, up or down, and returns the number that its text stands for. */
static double round_figure(double value, int digits, bool up) {
  if (!(value > 0)) return value;
  double unit = pow(10, floor(log10(value)) - (digits - 1));
  char text[32];
  (void)snprintf(text, sizeof text, "%.*g", digits, (up ? ceil(value / unit) : floor(value / unit)) * unit);
  return strtod(text, NULL);
}

/* Rounds a feasible figure away from an infeasible one, to as many of the digits that a report prints as leave a plan
 * feasible. Returns false where none do. */
static bool round_feasible(const lp_plan_problem problem[LP_STAGE_COUNT], const char *scheduler,
                           const lp_compile_request *request, const request_figure *figure, double bad, double *good) {
  for (int i = 0; i <= MOST_ROUNDINGS; i++) {
    double rounded = round_figure(*good, DIGITS - i, *good > bad);
    if (!feasible_with(problem, scheduler, request, figure, rounded)) continue;
    *good = rounded;
    return true;
  }
  return false;
}

/* Finds the least change of a figure that makes a plan feasible; false when there is none, which the end of its range
 * tells. The factor of the change is squared until a plan is feasible, and bisection then closes in. */
static bool find_change(const lp_plan_problem problem[LP_STAGE_COUNT], const char *scheduler,
                        const lp_compile_request *request, const request_figure *figure, double *out) {
  double bad = figure->get(request), good = figure->end;
  if (bad <= 0 || !feasible_with(problem, scheduler, request, figure, good)) return false;
  for (double factor = FIRST_FACTOR;; factor *= factor) {
    const double next = bad * factor;
    if (!(next < good)) break;
    *(feasible_with(problem, scheduler, request, figure, next) ? &good : &bad) = next;
  }
  for (int step = 0; step < STEPS; step++) {
    double middle = good > bad ? sqrt(good) * sqrt(bad) : (good + bad) / 2;
    if (feasible_with(problem, scheduler, request, figure, middle))
      good = middle;
    else
      bad = middle;
  }
  *out = good;
  return round_feasible(problem, scheduler, request, figure, bad, out);
}

int32_t lp_plan_fixes(lp_module *module, const lp_plan_problem problem[LP_STAGE_COUNT], const char *scheduler,
                      const lp_compile_request *request, lp_report_fix *fixes, int32_t most) {
  int32_t count = 0;
  for (size_t i = 0; i < LP_COUNT(figures) && count < most; i++) {
    double good;
    if (!find_change(problem, scheduler, request, &figures[i], &good)) continue;
    fixes[count++] = (lp_report_fix){.name = figures[i].name, .from = figures[i].get(request), .to = good};
  }
  for (int side = 0; side < (request->cloud ? LP_SIDE_COUNT : LP_SIDE_CLOUD) && count < most; side++)
    count += narrower_weights(module, problem, scheduler, request, (lp_side)side, &fixes[count]);
  return count + (count < most && fewer_experts(module, &problem[0], scheduler, request, &fixes[count]));
}
