/* The output of `llmpart compile`: a bundle, the module after one of the stages before it, or reports. */
#include "backend/backend.h"
#include "base/clock.h"
#include "base/json/reader.h"
#include "base/path.h"
#include "base/side.h"
#include "base/temporary.h"
#include "base/units.h"
#include "passes/plan/plan.h"
#include "runtime/runtime.h"
#include "tools/compile/compile.h"
#include "tools/equal/check.h"

#include <math.h>

static bool emits(const lp_compile *compile, const char *what) {
  return lp_streq(compile->emit, what);
}

/* Tells whether the output is one file of GPU code and not a folder with weights. */
static bool writes_gpu_text(const lp_compile *compile) {
  const char *to = compile->output;
  return emits(compile, "opencl") || emits(compile, "ptx") ||
         (emits(compile, "cuda") && to && (lp_streq(to, "-") || lp_has_suffix(to, ".cu")));
}

/* Tells whether the output is a folder and not one file. */
static bool writes_folder(const lp_compile *compile) {
  return emits(compile, "bundle") || emits(compile, "onnx") || (emits(compile, "cuda") && !writes_gpu_text(compile));
}

bool lp_compile_reads_weights(const lp_compile *compile) {
  return writes_folder(compile) || emits(compile, "obj") || emits(compile, "asm") || emits(compile, "llvm-ir");
}

static lp_status run_passes(const lp_compile *compile, lp_module *module, const char *pipeline, lp_diag *diag) {
  lp_run_options options = lp_tool_run_options(&compile->flags);
  return lp_passes_run(module, pipeline, &compile->request, &options, diag);
}

/* ---- code -------------------------------------------------------------------------------------------------------- */

static lp_emit_options emit_options(const lp_compile *compile, lp_place place, const char *march) {
  return (lp_emit_options){.side = place,
                           .march = march,
                           .os = lp_compile_os(compile, place),
                           .opt_level = compile->opt_level[0] - '0',
                           .halves = lp_compile_prefers_halves(compile, place)};
}

/* The options for code that is written without a bundle: --march applies to it, and a name that its backend does not
 * know is an error. */
static lp_emit_options code_options(const lp_compile *compile, lp_place side, const char *backend) {
  const char *own = compile->march_side[side] ? compile->march_side[side] : compile->march;
  return emit_options(compile, side, own ? own : lp_compile_march(compile, side, backend));
}

/* The side that --side names. */
static lp_place side_of(const lp_compile *compile, lp_place otherwise) {
  lp_side side;
  return lp_side_find(compile->side, &side) ? (lp_place)side : otherwise;
}

static lp_status write_code(const lp_compile *compile, lp_module *module, lp_diag *diag) {
  const lp_backend *backend = lp_backend_find("cpu");
  lp_emit_form form = emits(compile, "llvm-ir") ? LP_EMIT_LLVM_IR
                      : emits(compile, "asm")   ? LP_EMIT_ASM
                                                : LP_EMIT_OBJECT;
  lp_emit_options options = code_options(compile, side_of(compile, LP_SIDE_DEVICE), "cpu");
  LP_OWNED(lp_buf_free) lp_buf code = {0};
  lp_status status = backend->emit(module, &options, form, &code, diag);
  const char *path = compile->output ? compile->output : form == LP_EMIT_OBJECT ? "model.o" : "-";
  if (status == LP_OK) status = lp_tool_write(path, &code, diag);
  return status;
}

/* ---- bundle ------------------------------------------------------------------------------------------------------ */

/* The line on the terminal that says how far the weights are. */
typedef struct {
  double begun_ms, shown_ms; /* of a file; 0: not yet */
  uint64_t begun;            /* bytes that were done before it */
} progress_line;

static void show_progress(void *user, const char *place, const char *what, uint64_t done, uint64_t all) {
  static const double every_ms = 100;
  progress_line *line = user;
  const double now = lp_now_ms(), part = all > 0 ? fmin(1, (double)done / (double)all) : 0;
  const bool begins = lp_streq(what, "code");
  if (!begins && now - line->shown_ms < every_ms) return;
  if (begins)
    *line = (progress_line){0};
  else if (line->begun_ms == 0)
    *line = (progress_line){.begun_ms = now, .begun = done};
  line->shown_ms = now;
  char have[32], whole[32], left[32];
  fprintf(stderr, "\r\033[K%s %s %3.0f %%, %s of %s", place, what, 100 * part, lp_format_bytes((double)done, have),
          lp_format_bytes((double)all, whole));
  if (!begins && done > line->begun && done < all)
    fprintf(stderr, ", %s left",
            lp_format_ms((now - line->begun_ms) * (double)(all - done) / (double)(done - line->begun), left));
}

/* Checks that the tokenizer can be read and that the model has its ids. Added tokens may lie beyond, because no text
 * needs them. */
static lp_status load_tokenizer(const char *path, int64_t vocab, lp_tokenizer **out, lp_diag *diag) {
  LP_TRY(lp_tokenizer_load(path, out, diag));
  if (vocab <= 0 || lp_tokenizer_model_size(*out) <= vocab) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(path), "the tokenizer has %d tokens, the model %" PRId64,
                  lp_tokenizer_model_size(*out), vocab);
}

/* A tokenizer that the user gave must be usable. One that is only in the model's folder is left out when it is not, and
 * the bundle then takes ids. A chat template must keep its limits. `*path` is released with free(). */
static lp_status find_tokenizer(const lp_compile *compile, int64_t vocab, char **path, lp_diag *diag) {
  LP_OWNED(lp_diag_free_at) lp_diag *own = lp_diag_create();
  *path = lp_compile_tokenizer(compile);
  lp_tokenizer *tokenizer = NULL;
  lp_status status = *path ? load_tokenizer(*path, vocab, &tokenizer, compile->tokenizer ? diag : own) : LP_OK;
  if (status != LP_OK && !compile->tokenizer) {
    lp_note(diag, LP_LOC_FILE(*path), "the tokenizer is left out, and 'run' takes --tokens: %s",
            lp_diag_count(own) > 0 ? lp_diag_get(own, 0)->text : "it cannot be used");
    status = LP_OK;
    free(*path);
    *path = NULL;
  } else if (status == LP_OK && tokenizer) {
    status = lp_tokenizer_try_chat(tokenizer, diag);
  }
  lp_tokenizer_free(tokenizer);
  return status;
}

static bool runs_at(const lp_module *module, lp_place place) {
  LP_FOR_FUNCS(func, module) {
    LP_FOR_OPS(op, func->region)
      if (lp_compile_runs_op(op, place)) return true;
  }
  return false;
}

static const char *machine_name(const lp_compile *compile, lp_place place) {
  if (compile->place_machine[place]) return compile->place_machine[place]->name;
  return place != LP_SIDE_DEVICE && compile->cloud_machine ? compile->cloud_machine->name
                                                           : compile->device_machine->name;
}

static lp_status choose_targets(const lp_compile *compile, const lp_module *module, lp_bundle_request *request,
                                lp_diag *diag) {
  const char *const *names;
  const int32_t count = lp_module_places(module, &names);
  for (lp_place i = 0; i < count; i++) {
    lp_half_target half;
    LP_TRY(lp_compile_target(compile, i, &half, diag));
    if (runs_at(module, i)) {
      LP_TRY(lp_compile_check_march(compile, i, &half, diag));
      LP_TRY(lp_compile_check_types(compile, module, i, &half, diag));
      lp_compile_note_target(compile, i, &half, diag);
    }
    request->backend[i] = lp_backend_find(half.backend);
    request->options[i] = emit_options(compile, i, half.march);
    if (compile->fallback && request->backend[i]->kernels)
      request->fallback[i] = emit_options(compile, i, lp_compile_march(compile, i, "cpu"));
    request->machine[i] = machine_name(compile, i);
  }
  return LP_OK;
}

/* Compares the bundle in `folder` with the model. */
static lp_status compare_bundle(const lp_compile *compile, const char *folder, lp_diag *diag) {
  const lp_compile_request *r = &compile->request;
  const char *types[4 + LP_PLACES_MAX] = {r->dtype_device, r->dtype_cloud, r->kv_dtype,
                                          lp_rounds_activations(r) ? "int8" : NULL};
  memcpy(types + 4, compile->place_dtype, sizeof compile->place_dtype);
  double limit = lp_check_limit(types, LP_COUNT(types));
  const lp_check_request check = {
      .model = compile->model, .bundle = folder, .import = compile->import, .limit = limit > 0 ? limit : 1e-3};
  return lp_check_compiled(&check, diag);
}

/* Leaves the code and weights of the side that --side names. The manifest stays that of the whole bundle, so that the
 * halves that two machines hold fit each other. */
static void leave_half(const char *side, const char *folder) {
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    LP_OWNED(lp_free_at) char *other = lp_path_join(folder, lp_side_name((lp_side)i));
    if (!lp_streq(lp_side_name((lp_side)i), side)) lp_remove_tree(other);
  }
}

/* Compares and signs the bundle in `folder`, as the options say, before it is in its place. */
static lp_status check_bundle(const void *user, const char *folder, lp_diag *diag) {
  const lp_compile *compile = user;
  if (compile->check) LP_TRY(compare_bundle(compile, folder, diag));
  if (compile->side) leave_half(compile->side, folder);
  return compile->sign ? lp_bundle_sign(folder, compile->sign, diag) : LP_OK;
}

static bool has_role(const lp_json *manifest, const char *role) {
  lp_json inputs = lp_json_member(manifest, "inputs");
  for (size_t i = 0; i < lp_json_count(&inputs); i++) {
    lp_json input = lp_json_item(&inputs, i), own = lp_json_member(&input, "role");
    if (lp_json_equals(&own, role)) return true;
  }
  return false;
}

/* Appends the options by which `run` gives a model its input. One with an encoder may read features, and its files may
 * not name the tokens that its decoder begins with. */
static void put_input_options(const lp_json *manifest, lp_buf *out) {
  lp_json decoder = lp_json_member(manifest, "decoder"), start = lp_json_member(&decoder, "start");
  lp_json tokenizer = lp_json_member(manifest, "tokenizer");
  lp_buf_puts(out, has_role(manifest, "source_features") ? "--features=FILE.npy"
                   : lp_json_is_given(&tokenizer)        ? "--prompt='Once upon a time'"
                                                         : "--tokens=1,2,3");
  if (lp_json_is_given(&decoder) && lp_json_count(&start) == 0) lp_buf_puts(out, " --decoder-tokens=IDS");
}

/* Tells whether the runtime refuses to generate with the bundle; not if it cannot be read here. */
static bool is_refused(const char *path) {
  const lp_bundle_options options = {0};
  lp_bundle *bundle = NULL;
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  bool refused =
      lp_bundle_load(path, &options, &bundle, quiet) == LP_OK && lp_bundle_check_generates(bundle, quiet) != LP_OK;
  lp_bundle_free(bundle);
  return refused;
}

/* Prints where the layers run, the figures of the plan and the command that follows. */
static lp_status say_done(const lp_compile *compile, const char *bundle, const char *line, lp_diag *diag) {
  if (compile->voice->quiet) return LP_OK;
  LP_OWNED(lp_free_at) char *path = lp_path_join(bundle, "manifest.json");
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  LP_OWNED(lp_buf_free) lp_buf options = {0};
  LP_TRY(lp_json_load(path, 0, &document, diag));
  lp_json manifest = lp_json_root(path, document);
  put_input_options(&manifest, &options);
  if (lp_json_is_given(LP_MEMBER(&manifest, "embedding")))
    fprintf(stderr, "%s: %s; next: llmpart serve, with 'embeddings: { bundle: %s }'\n", bundle, line, bundle);
  else if (compile->side)
    fprintf(stderr, "%s: %s; the half of the %s only; next: llmpart %s\n", bundle, line, compile->side,
            lp_streq(compile->side, "device") ? "run, with --cloud=HOST:PORT" : "worker, with --listen=HOST:PORT");
  else if (is_refused(bundle))
    fprintf(stderr, "%s: %s; next: llmpart verify %s --against=reference\n", bundle, line, compile->model);
  else
    fprintf(stderr, "%s: %s; next: llmpart run %s %s\n", bundle, line, bundle, lp_buf_text(&options));
  return LP_OK;
}

static lp_status check_side_runs(const lp_module *module, lp_side side, lp_diag *diag) {
  if (runs_at(module, (lp_place)side)) return LP_OK;
  lp_status status =
      lp_error(diag, LP_LOC_FILE("--side"), "nothing runs on the side '%s' in this plan", lp_side_name(side));
  lp_note(diag, LP_LOC_NONE, "--scheduler=cloud-only puts everything into the cloud, --side=device names the device");
  return status;
}

static lp_status write_bundle(const lp_compile *compile, lp_module *module, const char *report_json, const char *line,
                              lp_diag *diag) {
  const lp_op *func = lp_module_find_func(module, "prefill");
  char *tokenizer;
  if (compile->side) LP_TRY(check_side_runs(module, (lp_side)side_of(compile, LP_SIDE_DEVICE), diag));
  LP_TRY(find_tokenizer(compile, lp_tool_vocab(module), &tokenizer, diag));
  LP_OWNED(lp_free_at) char *folder = lp_compile_settings(compile);
  const bool shows = lp_tool_shows_progress(compile->voice);
  progress_line progress = {0};
  lp_bundle_request request = {.tokenizer = tokenizer,
                               .folder = folder,
                               .report_json = report_json,
                               .context = func ? lp_op_i64(func, "context", 0) : 0,
                               .vocab = lp_tool_vocab(module),
                               .progress = shows ? show_progress : NULL,
                               .user = &progress,
                               .check = check_bundle,
                               .checked = compile};
  for (lp_place i = 0; i < LP_SIDE_COUNT; i++)
    request.only_digest[i] = compile->side && !compile->check && i != side_of(compile, i);
  LP_OWNED(lp_free_at) char *path = lp_compile_output(compile);
  lp_status status = choose_targets(compile, module, &request, diag);
  if (status == LP_OK) status = lp_bundle_write(module, &request, path, diag);
  if (shows) fputs("\r\033[K", stderr);
  if (status == LP_OK) status = say_done(compile, path, line, diag);
  free(tokenizer);
  return status;
}

/* ---- halves and GPU code ----------------------------------------------------------------------------------------- */

static lp_status write_onnx(const lp_compile *compile, lp_module *module, lp_diag *diag) {
  const lp_onnx_options options = {.opset = compile->opset};
  LP_OWNED(lp_free_at) char *path = lp_compile_output(compile);
  return lp_onnx_write(module, &options, path, diag);
}

static lp_status write_gpu_text(const lp_compile *compile, lp_module *module, const lp_emit_options *options,
                                lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  const bool ptx = emits(compile, "ptx");
  const lp_backend *backend = lp_backend_find(ptx ? "cuda" : compile->emit);
  LP_TRY(backend->emit(module, options, ptx ? LP_EMIT_PTX : LP_EMIT_SOURCE, &text, diag));
  return lp_tool_write(compile->output ? compile->output : "-", &text, diag);
}

static lp_status write_gpu_code(const lp_compile *compile, lp_module *module, lp_diag *diag) {
  const lp_place side = side_of(compile, LP_SIDE_CLOUD);
  const char *backend = emits(compile, "opencl") ? "opencl" : "cuda";
  const lp_emit_options options = code_options(compile, side, backend);
  LP_TRY(check_side_runs(module, (lp_side)side, diag));
  LP_TRY(lp_compile_check_types(compile, module, side, &(lp_half_target){backend, options.march}, diag));
  if (writes_gpu_text(compile)) return write_gpu_text(compile, module, &options, diag);
  LP_OWNED(lp_free_at) char *path = lp_compile_output(compile);
  return lp_cuda_write(module, &options, path, diag);
}

/* ---- from the module to the output ------------------------------------------------------------------------------- */

static lp_status emit_module(const lp_compile *compile, lp_module *module, const char *pipeline, lp_diag *diag) {
  LP_TRY(run_passes(compile, module, pipeline, diag));
  return lp_tool_write_module(module, compile->locations, compile->output ? compile->output : "-", diag);
}

/* Reports an output that cannot be replaced before the work begins. */
static lp_status check_output(const lp_compile *compile, lp_diag *diag) {
  if (!writes_folder(compile)) return LP_OK;
  if (compile->output && lp_streq(compile->output, "-"))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("-o"), "--emit=%s is a folder, which stdout cannot take",
                       compile->emit);
  LP_OWNED(lp_free_at) char *path = lp_compile_output(compile);
  return lp_bundle_check_path(path, diag);
}

/* Tells for each place whether its code runs operators together. Profiled code runs each operator by itself. */
static lp_status find_joins(const lp_compile *compile, const lp_module *module, bool *joins, lp_diag *diag) {
  const char *const *names;
  const int32_t count = lp_module_places(module, &names);
  if (compile->profile) return LP_OK;
  if (emits(compile, "cuda") || emits(compile, "ptx"))
    joins[side_of(compile, LP_SIDE_CLOUD)] = lp_backend_find("cuda")->joins;
  for (lp_place i = 0; i < count && emits(compile, "bundle"); i++) {
    lp_half_target half;
    LP_TRY(lp_compile_target(compile, i, &half, diag));
    joins[i] = lp_backend_find(half.backend)->joins;
  }
  return LP_OK;
}

static lp_status split_module(const lp_compile *compile, lp_module *module, lp_diag *diag) {
  lp_run_options options = lp_tool_run_options(&compile->flags);
  lp_compile_request request = compile->request;
  LP_TRY(find_joins(compile, module, request.joins, diag));
  return lp_passes_run(module, compile->profile ? lp_pipeline_split_profiled : lp_pipeline_split, &request, &options,
                       diag);
}

/* Says that a GPU's half stores codes of the model in f16 (lp_storage_on_gpu). FP8 may be asked to be f16. */
static void note_widened(const lp_compile *compile, const lp_module *module, lp_diag *diag) {
  bool widened = false;
  LP_FOR_FUNCS(func, module) {
    LP_FOR_OPS(op, func->region) {
      const lp_dtype own = lp_op_is_weighted(op) ? lp_op_in(op, 1)->type.dtype : LP_F32;
      widened |= lp_dtype_is_code(own) && lp_streq(lp_op_str(op, "weight_dtype", NULL), "f16") &&
                 (own != LP_F8E4M3FN || (!compile->request.dtype_device && !compile->request.dtype_cloud));
    }
  }
  if (widened)
    lp_note(diag, LP_LOC_FILE(compile->model),
            "GPUs have kernels for codes in groups of whole 32s, with zero points of the same type: other weights in "
            "codes are stored and counted as f16");
}

/* All that is reported has been made before the module is split. */
static lp_status emit_split(const lp_compile *compile, lp_module *module, lp_compile_reports *reports, lp_diag *diag) {
  const lp_buf *report = NULL, *line = NULL, *front = NULL, *text = NULL;
  if (emits(compile, "bundle")) {
    LP_TRY(lp_compile_report_text(reports, "json", false, &report, diag));
    LP_TRY(lp_compile_report_text(reports, "line", false, &line, diag));
    if (compile->request.front) LP_TRY(lp_compile_report_text(reports, "front", false, &front, diag));
  }
  if (compile->voice->verbose) {
    LP_TRY(lp_compile_report_text(reports, "txt", false, &text, diag));
    fputs(lp_buf_text(text), stderr);
  }
  LP_TRY(split_module(compile, module, diag));
  LP_TRY(lp_compile_check_activations(compile, module, diag));
  note_widened(compile, module, diag);
  if (emits(compile, "bundle")) {
    LP_TRY(write_bundle(compile, module, lp_buf_text(report), lp_buf_text(line), diag));
    if (front && !compile->voice->quiet) fputs(lp_buf_text(front), stderr);
    return LP_OK;
  }
  if (emits(compile, "onnx")) return write_onnx(compile, module, diag);
  if (emits(compile, "cuda") || writes_gpu_text(compile)) return write_gpu_code(compile, module, diag);
  return write_code(compile, module, diag);
}

/* Writes the reports, even when no plan meets the SLA or a limit of --fail-if, and the output only when one does. With
 * --check the reports follow the bundle: a bundle that differs leaves no file. */
static lp_status emit_with_reports(const lp_compile *compile, lp_module *module, lp_status planned,
                                   lp_compile_reports *reports, lp_diag *diag) {
  LP_TRY(lp_compile_make_reports(reports, diag));
  if (planned == LP_OK) planned = lp_compile_check_limits(reports, diag);
  if (planned == LP_USAGE) return planned;
  bool late = planned == LP_OK && compile->check;
  if (!late) LP_TRY(lp_compile_put_reports(reports, diag));
  if (emits(compile, "report")) LP_TRY(lp_compile_put_output_report(reports, diag));
  if (planned != LP_OK || emits(compile, "report")) return planned;
  if (emits(compile, "placed-ir")) return emit_module(compile, module, "insert-comm", diag);
  LP_TRY(emit_split(compile, module, reports, diag));
  return late ? lp_compile_put_reports(reports, diag) : LP_OK;
}

static lp_status emit_planned(const lp_compile *compile, lp_module *module, lp_diag *diag) {
  const lp_status planned = run_passes(compile, module, "place", diag);
  if (planned != LP_OK && planned != LP_INFEASIBLE) return planned;
  LP_OWNED(lp_free_at) char *tokenizer = NULL;
  if (emits(compile, "report") && compile->tokenizer)
    LP_TRY(find_tokenizer(compile, lp_tool_vocab(module), &tokenizer, diag));
  LP_OWNED(lp_compile_reports_release) lp_compile_reports reports = {.compile = compile, .module = module};
  return emit_with_reports(compile, module, planned, &reports, diag);
}

static lp_status choose_ranks(lp_compile *compile, lp_module *module, lp_diag *diag) {
  compile->request.cloud = compile->cloud_machine;
  LP_TRY(lp_plan_choose_ranks(module, &compile->request, &compile->all_ranks, diag));
  lp_note(diag, LP_LOC_FILE("--ranks"), "chose %" PRId64, compile->request.ranks);
  return LP_OK;
}

/* Without limits and objective the plan is the knee of the front of cost against time. The grid of a family needs
 * limits that hold at all its points. */
static lp_status take_knee(const lp_compile *compile, lp_module *module, lp_compile_request *request,
                           lp_plan_front *front, lp_diag *diag) {
  if (request->ttft_ms > 0 || request->tpot_ms > 0 || request->objective || !request->cloud || request->plans > 1 ||
      compile->has_more_places || !lp_streq(request->scheduler, lp_scheduler_default))
    return LP_OK;
  LP_TRY(lp_plan_front_find(module, request, front, diag));
  if (front->count == 0) return LP_OK;
  request->front = front;
  lp_plan_front_limit(front, request);
  if (request->tpot_ms <= 0 || compile->says_tolerance) return LP_OK;
  request->near_suffices = true; /* the search begins with the knee's own cut */
  request->tolerance = 0;        /* the limits hold the times already */
  return LP_OK;
}

/* Types that are left to the planner are chosen after the operators and their costs are known. */
static lp_status emit_with_experts(const lp_compile *compile, lp_module *module, lp_diag *diag) {
  lp_compile chosen = *compile;
  chosen.request.experts_counted = compile->experts != NULL;
  if (compile->ranks_auto) LP_TRY(choose_ranks(&chosen, module, diag));
  if (!compile->has_more_places) LP_TRY(lp_plan_choose_types(module, &chosen.request, diag));
  lp_plan_front front;
  LP_TRY(take_knee(compile, module, &chosen.request, &front, diag));
  return emit_planned(&chosen, module, diag);
}

static lp_status emit_placed(const lp_compile *compile, lp_module *module, lp_diag *diag) {
  if (compile->has_more_places) LP_TRY(lp_compile_check_places_output(compile, diag));
  LP_TRY(check_output(compile, diag));
  LP_TRY(run_passes(compile, module, lp_pipeline_ops, diag));
  lp_compile_check_lengths(compile, module, diag);
  LP_TRY(lp_compile_read_experts(compile, module, diag));
  return emit_with_experts(compile, module, diag);
}

lp_status lp_compile_emit(const lp_compile *compile, lp_module *module, lp_diag *diag) {
  lp_status status = LP_OK;
  if (emits(compile, "layer-ir"))
    status = emit_module(compile, module, lp_pipeline_layers, diag);
  else if (emits(compile, "op-ir"))
    status = emit_module(compile, module, lp_pipeline_ops, diag);
  else
    status = emit_placed(compile, module, diag);
  if (status == LP_OK) status = lp_compile_write_dependencies(compile, module, diag);
  return status;
}
