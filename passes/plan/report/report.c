/* Gathers the figures of a placed module and of its baselines, then writes them in a format. */
#include "passes/plan/report/report.h"
#include "base/map.h"
#include "base/path.h"
#include "base/side.h"
#include "passes/plan/evaluate.h"

#include <math.h>

/* ---- the model --------------------------------------------------------------------------------------------------- */

/* Tells whether the value is the scales or the zero points of a weight in codes. */
static bool scales_codes(const lp_value *value) {
  enum { SCALE = 5, LAST = 8 }; /* operands of op.linear and op.experts */
  for (const lp_use *use = value->uses; use; use = use->next)
    if (lp_op_is_weighted(use->owner) && use - use->owner->in >= SCALE && use - use->owner->in <= LAST) return true;
  return false;
}

/* Counts each weight once, however many functions and operators read it. */
static void count_weights(const lp_module *module, lp_report_model *model) {
  LP_OWNED(lp_map_free_at) lp_map *seen = lp_map_create();
  LP_FOR_FUNCS(func, module) {
    LP_FOR_OPS(op, func->region) {
      if (!lp_op_has(op, LP_CONSTANT)) continue;
      const lp_type type = op->out[0]->type;
      const bool scales = scales_codes(op->out[0]);
      if (!lp_dtype_is_float(type.dtype) && !scales && (type.rank < 2 || !lp_dtype_is_code(type.dtype))) continue;
      lp_buf key = {0};
      if (op->kind == LP_OP_WEIGHT)
        lp_buf_printf(&key, "%s@%" PRId64, lp_op_str(op, "file", ""), lp_op_i64(op, "offset", 0));
      else
        lp_buf_printf(&key, "%p", lp_op_attr(op, "value")->tensor.data);
      int64_t count = 0;
      bool is_new = !lp_map_has(seen, lp_buf_text(&key)) && lp_type_static_numel(type, &count);
      lp_map_put(seen, lp_buf_text(&key), NULL);
      lp_buf_free(&key);
      if (!is_new) continue;
      if (!scales) model->params += count;
      model->weight_bytes += lp_weight_blocks(op->out[0]) ? (double)lp_op_i64(op, "length", 0)
                                                          : (double)count * lp_dtype_bits(type.dtype) / 8;
    }
  }
}

/* The name of "dir/model.onnx" is "model". */
lp_report_model lp_report_model_of(const lp_module *module, int32_t layers, lp_arena *arena) {
  lp_report_model model = {.layers = layers};
  char *name = lp_arena_strdup(arena, lp_path_base(module->name));
  if (lp_has_suffix(name, ".onnx")) name[strlen(name) - strlen(".onnx")] = 0;
  model.name = name;
  count_weights(module, &model);
  return model;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static bool runs_on(const lp_plan_problem *problem, const lp_side *side, const unsigned char *needed, int32_t index,
                    lp_side where) {
  return problem->ops[index].free ? (needed[index] & (1u << where)) != 0 : side[index] == where;
}

static void list_operators(lp_report *report) {
  int32_t most = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    most += 2 * report->problem[stage].op_count;
  report->operators = LP_NEW_ARRAY(report->arena, lp_report_operator, most);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_plan_problem *problem = &report->problem[stage];
    unsigned char *needed = LP_NEW_ARRAY(report->arena, unsigned char, problem->op_count);
    lp_plan_mark_needed(problem, report->side[stage], needed);
    for (int32_t i = 0; i < problem->op_count; i++)
      for (int side = 0; side < LP_SIDE_COUNT; side++)
        if (runs_on(problem, report->side[stage], needed, i, (lp_side)side))
          report->operators[report->operator_count++] =
              (lp_report_operator){&problem->ops[i], (lp_stage)stage, (lp_side)side};
  }
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static void evaluate_baselines(lp_report *report) {
  static const struct {
    const char *name, *scheduler;
  } all[] = {
#define LP_BASELINE(symbol, name, ignores_link, summary) {#symbol, name},
#define LP_SCHEDULER(symbol, name, ignores_link, summary)
#include "passes/plan/schedulers.def"
  };
  report->decrement = NAN;
  for (size_t i = 0; i < LP_COUNT(all); i++) {
    bool needs_cloud = !lp_streq(all[i].scheduler, "device-only");
    if (needs_cloud && !report->request->cloud) continue;
    lp_report_baseline *baseline = &report->baselines[report->baseline_count];
    lp_status status =
        lp_plan_choose(report->problem, all[i].scheduler, &report->full, baseline->side, NULL, report->arena, NULL);
    if (status != LP_OK && status != LP_INFEASIBLE) continue;
    report->baseline_count++;
    baseline->name = all[i].name;
    lp_plan_evaluate(report->problem, &report->full, baseline->side, &baseline->result);
    if (lp_streq(all[i].name, "cloud_only") && report->plan.feasible && baseline->result.cost_usd > 0)
      report->decrement = 1 - report->plan.cost_usd / baseline->result.cost_usd;
  }
}

static void find_cheapest(lp_report *report) {
  lp_report_baseline *best = &report->cheapest;
  if (!lp_plan_cheapest_read(report->problem, best->side, report->arena)) return;
  best->name = "cheapest";
  lp_plan_evaluate(report->problem, report->request, best->side, &best->result);
}

/* Evaluates each plan of a family at the request's own sizes and link. */
static lp_status evaluate_family(lp_report *report, lp_diag *diag) {
  lp_plan_family_read(report->module, report->arena, &report->family);
  report->of_plan = LP_NEW_ARRAY(report->arena, lp_plan_result, report->family.count);
  for (int32_t i = 0; i < report->family.count; i++) {
    lp_plan_problem problem[LP_STAGE_COUNT];
    lp_side *side[LP_STAGE_COUNT];
    LP_TRY(lp_plan_build_of(report->module, report->request, i, report->arena, problem, diag));
    lp_plan_sides(problem, side, report->arena);
    lp_plan_evaluate(problem, report->request, side, &report->of_plan[i]);
  }
  return LP_OK;
}

static lp_status gather(lp_report *report, lp_diag *diag) {
  const lp_compile_request *request = report->request;
  report->scheduler = request->scheduler ? request->scheduler : request->cloud ? lp_scheduler_default : "device-only";
  report->full = *request;
  report->full.exit_rates = (lp_exit_rates){0};
  LP_TRY(lp_plan_build(report->module, request, report->arena, report->problem, diag));
  report->model = lp_report_model_of(report->module, report->problem[0].layer_count, report->arena);
  lp_plan_sides(report->problem, report->side, report->arena);
  lp_plan_evaluate(report->problem, request, report->side, &report->plan);
  report->probability = lp_plan_probability(report->problem, request, report->side);
  report->proof = lp_plan_proof_read(report->module);
  LP_TRY(evaluate_family(report, diag));
  evaluate_baselines(report);
  find_cheapest(report);
  lp_report_find_faster(report);
  if (!report->plan.feasible)
    report->fix_count = lp_plan_fixes(report->module, report->problem, report->scheduler, request, report->fixes,
                                      (int32_t)LP_COUNT(report->fixes));
  list_operators(report);
  lp_report_find_whole(report, diag);
  return LP_OK;
}

/* ---- formats ----------------------------------------------------------------------------------------------------- */

void lp_report_csv_field(const char *text, lp_buf *out) {
  if (!strpbrk(text, ",\"\n\r")) {
    lp_buf_puts(out, text);
    return;
  }
  lp_buf_puts(out, "\"");
  for (; *text; text++) {
    if (*text == '"') lp_buf_puts(out, "\"");
    lp_buf_append(out, text, 1);
  }
  lp_buf_puts(out, "\"");
}

/* The operators, one row each, for spreadsheets. */
static void report_csv(const lp_report *report, lp_buf *out) {
  lp_buf_puts(out, "name,kind,layer,stage,side,flops,bytes,ratio,device_ms,cloud_ms\n");
  LP_FOR_EACH(const lp_report_operator, item, report->operators, report->operator_count) {
    const lp_plan_op *op = item->op;
    double bytes = op->bytes[item->side], flops = op->flops[item->side];
    lp_report_csv_field(lp_op_str(op->op, "name", ""), out);
    lp_buf_printf(out, ",%s,%" PRId64 ",%s,%s,%.12g,%.12g,%.12g,%.12g,%.12g\n", lp_op_info_get(op->op->kind)->name,
                  lp_op_i64(op->op, "layer", -1), lp_stage_names[item->stage], lp_side_name(item->side), flops, bytes,
                  bytes > 0 ? flops / bytes : 0, op->ms[LP_SIDE_DEVICE], op->ms[LP_SIDE_CLOUD]);
  }
}

lp_status lp_report_create(lp_module *module, const lp_compile_request *request, lp_report **out, lp_diag *diag) {
  lp_arena *arena = lp_arena_create();
  lp_report *report = LP_NEW(arena, lp_report);
  *report = (lp_report){.module = module, .request = request, .arena = arena};
  const lp_status status = gather(report, diag);
  *out = status == LP_OK ? report : NULL;
  if (status != LP_OK) lp_arena_free(arena);
  return status;
}

void lp_report_free(lp_report *report) {
  if (report) lp_arena_free(report->arena);
}

lp_status lp_report_write(lp_report *report, const char *format, bool table1, lp_buf *out, lp_diag *diag) {
  static const struct {
    const char *name;
    void (*write)(const lp_report *report, lp_buf *out);
  } formats[] = {{"txt", lp_report_text},  {"json", lp_report_json},        {"csv", report_csv},
                 {"html", lp_report_html}, {"front", lp_report_front_text}, {"line", lp_report_line}};
  report->table1 = table1;
  if (lp_streq(format, "json")) (void)lp_report_certificate(report);
  for (size_t i = 0; i < LP_COUNT(formats); i++) {
    if (!lp_streq(formats[i].name, format)) continue;
    formats[i].write(report, out);
    return LP_OK;
  }
  return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "no report format '%s': txt, json, csv or html", format);
}
