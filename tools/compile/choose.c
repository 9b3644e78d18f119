/* Chooses what --exits=auto and --hot-experts=auto leave open: by a plan for each exit of the calibration as the last
 * one, and for each number of experts. */
#include "passes/plan/plan.h"
#include "tools/compile/compile.h"
#include "tools/generator.h"

/* A choice, and its plan. */
typedef struct {
  size_t exits; /* the number of the calibration's exits that are kept, from the first one */
  double theta;
  lp_exit_rates rates;
  lp_plan_result plan;
} candidate;

/* In threshold mode tokens leave at the first exit that is sure, in the other modes at the last one only. */
static void take_exits(lp_compile *compile, const lp_numbers *layers, const candidate *choice) {
  const bool all = choice->rates.mode == LP_EXITS_THRESHOLD;
  compile->exits.count = 0;
  for (size_t i = all ? 0 : choice->exits - 1; i < choice->exits; i++)
    lp_vec_push(&compile->exits, layers->data[i]);
  compile->theta = choice->theta;
  compile->request.exits = compile->exits.data;
  compile->request.exit_count = (int32_t)compile->exits.count;
  compile->request.scheduler = "cut";
  compile->request.cut = layers->data[choice->exits - 1];
  compile->request.exit_rates = choice->rates;
}

static int64_t most_experts(const lp_module *module) {
  int64_t most = 0;
  LP_FOR_FUNCS(func, module)
    LP_FOR_OPS(op, func->region)
      if (op->kind == LP_OP_EXPERTS && lp_op_i64(op, "experts", 0) > most) most = lp_op_i64(op, "experts", 0);
  return most;
}

/* Plans the request as it is. *experts: of the largest mixture. */
static lp_status plan(const lp_compile *compile, const lp_import_options *import, lp_plan_result *out, int64_t *experts,
                      lp_diag *diag) {
  lp_import_options graph = *import;
  lp_compile_request request = compile->request;
  lp_module *module = NULL;
  lp_plan_problem problem[LP_STAGE_COUNT];
  lp_side *side[LP_STAGE_COUNT];
  graph.weights_absent_ok = true;
  LP_TRY(lp_generator_import(compile->model, &graph, &module, diag));
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_status status = lp_passes_run(module, lp_pipeline_ops, &request, NULL, diag);
  *experts = status == LP_OK ? most_experts(module) : 0;
  if (status == LP_OK) status = lp_compile_read_experts(compile, module, diag);
  if (status == LP_OK) status = lp_plan_choose_types(module, &request, diag);
  if (status == LP_OK) status = lp_plan_build(module, &request, arena, problem, diag);
  if (status == LP_OK) status = lp_plan_choose(problem, request.scheduler, &request, side, NULL, arena, NULL);
  if (status == LP_OK || status == LP_INFEASIBLE) {
    lp_plan_evaluate(problem, &request, side, out);
    status = LP_OK;
  }
  lp_module_free(module);
  return status;
}

/* Reads the rates of a candidate, and plans it. */
static lp_status judge(lp_compile *compile, const lp_import_options *import, const lp_calibration_file *file,
                       const lp_numbers *layers, candidate *choice, lp_diag *diag) {
  const int64_t last = layers->data[choice->exits - 1];
  const lp_exits_mode mode = choice->rates.mode;
  int64_t experts;
  if (mode == LP_EXITS_THRESHOLD && choice->theta < 0)
    LP_TRY(lp_calibration_file_theta(file, last, &choice->theta, diag));
  take_exits(compile, layers, choice);
  if (mode == LP_EXITS_EXACT || mode == LP_EXITS_THRESHOLD)
    LP_TRY(lp_calibration_file_rates(file, compile, &choice->rates, diag));
  take_exits(compile, layers, choice);
  return plan(compile, import, &choice->plan, &experts, diag);
}

static lp_status choose(lp_compile *compile, const lp_import_options *import, const lp_calibration_file *file,
                        const lp_numbers *layers, candidate *best, lp_diag *diag) {
  const lp_exits_mode mode = lp_compile_exits_mode(compile, LP_EXITS_EXACT);
  const double theta = compile->theta;
  for (size_t i = 1; i <= layers->count; i++) {
    candidate choice = {.exits = i, .theta = theta, .rates = {.mode = mode, .row_share = 1, .codec = "f32"}};
    LP_TRY(judge(compile, import, file, layers, &choice, diag));
    if (best->exits == 0 || lp_plan_compare(&choice.plan, &best->plan, &compile->request) < 0) *best = choice;
  }
  return LP_OK;
}

static void note_choice(const lp_compile *compile, const candidate *best, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf layers = {0};
  for (size_t i = 0; i < compile->exits.count; i++)
    lp_buf_printf(&layers, "%s%" PRId64, i ? "," : "", compile->exits.data[i]);
  if (best->rates.mode == LP_EXITS_THRESHOLD)
    lp_note(diag, LP_LOC_NONE, "--exits=%s is the best choice; run it with --mode=threshold --theta=%g --codec=%s",
            lp_buf_text(&layers), best->theta, best->rates.codec);
  else
    lp_note(diag, LP_LOC_NONE, "--exits=%s is the best choice; run it with --mode=%s", lp_buf_text(&layers),
            lp_exits_modes[best->rates.mode]);
}

lp_status lp_compile_choose_exits(lp_compile *compile, const lp_import_options *import, lp_diag *diag) {
  lp_calibration_file file;
  lp_numbers layers = {0};
  candidate best = {0};
  lp_status status = lp_calibration_file_open(compile, &file, diag);
  if (status == LP_OK && !file.path)
    status = lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--exits"),
                         "'auto' needs the exits' rates: --exit-rates=FILE of `llmpart calibrate -o json`");
  if (status == LP_OK) status = lp_calibration_file_layers(&file, &layers, diag);
  if (status == LP_OK && layers.count == 0)
    status = lp_error(diag, LP_LOC_FILE(file.path), "the calibration has no exits");
  if (status == LP_OK) status = choose(compile, import, &file, &layers, &best, diag);
  if (status == LP_OK) {
    take_exits(compile, &layers, &best);
    note_choice(compile, &best, diag);
  }
  lp_vec_free(&layers);
  lp_calibration_file_close(&file);
  return status;
}

lp_status lp_compile_choose_hot_experts(lp_compile *compile, const lp_import_options *import, lp_diag *diag) {
  lp_compile_request *request = &compile->request;
  int64_t best = 0, most = 1;
  lp_plan_result best_plan = {0}, found;
  for (int64_t hot = 0; hot < most; hot = hot ? 2 * hot : 1) {
    LP_OWNED(lp_diag_free_at) lp_diag *unseen = hot > 0 ? lp_diag_create() : NULL; /* its mixtures may not divide */
    request->hot_experts = hot;
    const lp_status status = plan(compile, import, &found, &most, unseen ? unseen : diag);
    if (status != LP_OK && hot == 0) return status;
    if (status != LP_OK) break;
    if (hot > 0 && lp_plan_compare(&found, &best_plan, request) >= 0) continue;
    best = hot;
    best_plan = found;
  }
  request->hot_experts = best;
  if (most == 0)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(compile->given), "it has no mixture of experts that runs sparsely");
  if (best > 0)
    lp_note(diag, LP_LOC_NONE, "--hot-experts=%" PRId64 " is the best choice", best);
  else
    lp_note(diag, LP_LOC_NONE, "mixtures plan best as they are, without --hot-experts");
  return LP_OK;
}
