/* Turns the options of `llmpart compile` into a request: loads the machines and reports contradictions. */
#include "base/dir.h"
#include "base/path.h"
#include "base/units.h"
#include "frontend/frontend.h"
#include "passes/plan/plan.h"
#include "tools/compile/compile.h"
#include "tools/compile/link.h"
#include "tools/hw/profile.h"

#include <math.h>

/* The format of a report is its file's ending. */
static lp_status check_report(const char *path, lp_diag *diag) {
  static const char *const endings[] = {".txt", ".json", ".csv", ".html"};
  for (size_t i = 0; i < LP_COUNT(endings); i++)
    if (lp_has_suffix(path, endings[i])) return LP_OK;
  return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--report"), "'%s' should end in .txt, .json, .csv or .html", path);
}

static lp_status check_scheduler(const lp_compile *compile, lp_diag *diag) {
  const char *name = compile->request.scheduler;
  if (!name) return LP_OK;
  if (!lp_scheduler_find(name)) {
    const char *const *names;
    size_t count = lp_scheduler_names(&names);
    lp_status status = lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--scheduler"), "unknown scheduler '%s'", name);
    lp_note_near(diag, LP_LOC_NONE, name, names, count);
    for (size_t i = 0; i < count; i++)
      lp_note(diag, LP_LOC_NONE, "%s: %s", names[i], lp_scheduler_find(names[i])->summary);
    return status;
  }
  if (!compile->cloud && !lp_streq(name, "device-only"))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--scheduler"), "'%s' needs a cloud machine: --cloud=HW", name);
  return LP_OK;
}

static lp_status check_emit(const lp_compile *compile, lp_diag *diag) {
  if (compile->opset != 17 && compile->opset != 21)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--opset"), "should be 17 or 21, found %" PRId64, compile->opset);
  if (compile->fallback && !lp_streq(compile->emit, "bundle") && !lp_streq(compile->emit, "report"))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--fallback"), "only a bundle has it, not --emit=%s", compile->emit);
  return LP_OK;
}

static lp_status read_ranks(lp_compile *compile, lp_diag *diag) {
  compile->ranks_auto = lp_streq(compile->ranks, "auto");
  if (!compile->ranks || compile->ranks_auto) return LP_OK;
  return lp_parse_i64(compile->ranks, 1, LP_MOST_RANKS, &compile->request.ranks, diag, LP_LOC_FILE("--ranks")) == LP_OK
             ? LP_OK
             : LP_USAGE;
}

static lp_status read_hot_experts(lp_compile *compile, lp_diag *diag) {
  const lp_loc loc = LP_LOC_FILE("--hot-experts");
  compile->hot_experts_auto = lp_streq(compile->hot_experts_text, "auto");
  if (compile->hot_experts_auto && (!compile->cloud || compile->has_more_places))
    return lp_error_as(LP_USAGE, diag, loc, "'auto' needs a device and one cloud machine: --cloud=HW");
  if (!compile->hot_experts_text || compile->hot_experts_auto) return LP_OK;
  return lp_parse_i64(compile->hot_experts_text, 1, INT32_MAX, &compile->request.hot_experts, diag, loc) == LP_OK
             ? LP_OK
             : LP_USAGE;
}

/* What a half that several ranks run cannot have (docs/adr/0035). */
static lp_status check_ranks(const lp_compile *compile, lp_diag *diag) {
  const lp_compile_request *request = &compile->request;
  const lp_loc loc = LP_LOC_FILE("--ranks");
  if (!compile->ranks_auto && request->ranks < 2) {
    if (!compile->interconnect) return LP_OK;
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--interconnect"), "one rank needs none: --ranks=N");
  }
  if (!compile->cloud || compile->has_more_places)
    return lp_error_as(LP_USAGE, diag, loc, "ranks need a device and one cloud machine: --cloud=HW");
  if (request->plans > 1 || compile->exits_text || compile->fallback)
    return lp_error_as(LP_USAGE, diag, loc, "a half for several ranks takes no %s",
                       request->plans > 1    ? "--plans"
                       : compile->exits_text ? "--exits"
                                             : "--fallback");
  if (lp_streq(compile->emit, "onnx") || lp_streq(compile->emit, "cuda") || lp_streq(compile->emit, "opencl") ||
      lp_streq(compile->emit, "ptx"))
    return lp_error_as(LP_USAGE, diag, loc, "halves in %s are not cut for several ranks", compile->emit);
  return LP_OK;
}

/* What other programs call a machine. */
static lp_status check_device(const char *device, lp_diag *diag) {
  static const char *const kinds[] = {"cpu", "gpu", "cuda", "metal", "mps", "auto"};
  for (size_t i = 0; device && i < LP_COUNT(kinds); i++) {
    if (!lp_streq(device, kinds[i])) continue;
    lp_status status = lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--device"), "'%s' names no machine", device);
    lp_note(diag, LP_LOC_NONE,
            "this machine's processor is --device=host; a GPU has a name that `llmpart hw list` "
            "prints, such as --device=rtx-4090");
    return status;
  }
  return LP_OK;
}

static lp_status check_options(const lp_compile *compile, lp_diag *diag) {
  LP_TRY(check_device(compile->device, diag));
  for (size_t i = 0; i < compile->reports.count; i++)
    LP_TRY(check_report(compile->reports.data[i], diag));
  LP_TRY(lp_compile_check_dtype_name("--dtype-device", compile->request.dtype_device, diag));
  LP_TRY(lp_compile_check_dtype_name("--dtype-cloud", compile->request.dtype_cloud, diag));
  if (!compile->counts_device &&
      lp_plan_objective_check(compile->request.objective, diag, LP_LOC_FILE("--objective")) != LP_OK)
    return LP_USAGE;
  for (size_t i = 0; i < compile->pins.count && !compile->has_more_places; i++)
    if (lp_plan_pin_check(compile->pins.data[i], diag, LP_LOC_FILE("--pin")) != LP_OK) return LP_USAGE;
  LP_TRY(check_scheduler(compile, diag));
  LP_TRY(check_emit(compile, diag));
  if (!compile->device)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "no device is given: --device=HW (`llmpart hw list` names them)");
  LP_TRY(check_ranks(compile, diag));
  if (compile->request.plans > 1 && !compile->cloud)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--plans"), "several plans need a cloud machine: --cloud=HW");
  if (compile->request.plans > 1 && lp_streq(compile->emit, "onnx"))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--plans"), "halves in ONNX are of one plan");
  if (compile->link && !compile->cloud)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--link"), "a link needs a cloud machine: --cloud=HW");
  if (compile->sla_quantile >= 0 && !compile->cloud)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--sla-quantile"), "a link needs a cloud machine: --cloud=HW");
  if (compile->sla_quantile == 0 || compile->sla_quantile > 1)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--sla-quantile"), "a probability should be above 0 and at most 1");
  return LP_OK;
}

static lp_status check_auto(const lp_compile *compile, lp_diag *diag) {
  const lp_loc loc = LP_LOC_FILE("--exits");
  if (!compile->cloud) return lp_error_as(LP_USAGE, diag, loc, "'auto' needs a cloud machine: --cloud=HW");
  if (compile->request.scheduler || compile->request.cut >= 0)
    return lp_error_as(LP_USAGE, diag, loc, "'auto' chooses the cut: leave out --scheduler and --cut");
  return LP_OK;
}

static lp_status check_exits(lp_compile *compile, lp_diag *diag) {
  compile->exits_auto = lp_streq(compile->exits_text, "auto");
  if (compile->exits_text && !compile->exits_auto &&
      lp_tool_read_numbers(compile->exits_text, &compile->exits, diag, LP_LOC_FILE("--exits")) != LP_OK)
    return LP_USAGE;
  if (compile->exits_auto) LP_TRY(check_auto(compile, diag));
  for (size_t i = 0; i < compile->exits.count; i++)
    if (compile->exits.data[i] < 1 || (i && compile->exits.data[i] <= compile->exits.data[i - 1]))
      return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--exits"), "layers should be ascending, and 1 or more");
  if (compile->exits_text && compile->request.plans > 1)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--plans"),
                       "with --exits there is one plan: its halves run independently");
  return LP_OK;
}

/* A cut selects the scheduler of that name. With exits, the device's half ends at the last of them, unless the user
 * gives a scheduler or a cut. */
static lp_status choose_cut(lp_compile *compile, lp_diag *diag) {
  lp_compile_request *request = &compile->request;
  const lp_loc loc = LP_LOC_FILE("--cut");
  if (request->cut >= 0) {
    if (!compile->cloud) return lp_error_as(LP_USAGE, diag, loc, "a cut needs a cloud machine: --cloud=HW");
    if (request->scheduler && !lp_streq(request->scheduler, "cut"))
      return lp_error_as(LP_USAGE, diag, loc, "the scheduler '%s' takes no cut", request->scheduler);
    request->scheduler = "cut";
  } else if (compile->exits.count > 0 && compile->cloud && !compile->has_more_places &&
             (!request->scheduler || lp_streq(request->scheduler, "cut"))) {
    request->scheduler = "cut";
    request->cut = compile->exits.data[compile->exits.count - 1];
  } else if (lp_streq(request->scheduler, "cut")) {
    return lp_error_as(LP_USAGE, diag, loc, "the scheduler 'cut' wants --cut=N: layers 0 to N-1 on the device");
  }
  return LP_OK;
}

/* The machines limit what a bundle, its report and a placed module are made of. The other outputs depend on --emit,
 * too. */
static lp_status check_targets(lp_compile *compile, lp_diag *diag) {
  const bool bundle =
      lp_streq(compile->emit, "bundle") || lp_streq(compile->emit, "report") || lp_streq(compile->emit, "placed-ir");
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    lp_half_target half;
    LP_TRY(lp_compile_target(compile, i, &half, diag));
    compile->request.code_lacks_bf16[i] = !lp_compile_has_bf16(compile, i, &half);
    if (!bundle || (i == LP_SIDE_CLOUD && !compile->cloud)) continue;
    if (lp_compile_names_march(compile, i, &half)) LP_TRY(lp_compile_check_march(compile, i, &half, diag));
    LP_TRY(lp_compile_check_dtype(compile, i, &half, diag));
    lp_compile_describe_target(compile, i, &half);
  }
  return LP_OK;
}

/* Figures in the text itself, "rtt=10ms", are values of the option. Anything else is a name. */
static lp_status status_of(const char *text, lp_status loaded) {
  return loaded == LP_FAILED && strchr(text, '=') && !lp_path_exists(text) ? LP_USAGE : loaded;
}

/* Loads the link and plans it for the quantile. The loopback of this machine is as its profile measured it. */
static lp_status load_link(lp_compile *compile, lp_diag *diag) {
  const char *text = compile->link ? compile->link : "lan";
  LP_TRY(status_of(text, lp_tool_load_link(text, &compile->link_model, diag)));
  if (lp_streq(text, "loopback") && lp_hw_is_host(compile->device) && lp_hw_is_host(compile->cloud))
    lp_link_measured_on(compile->link_model, compile->device_machine);
  if (compile->sla_quantile < 0) return LP_OK;
  if (compile->link_model->state_count == 0)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--sla-quantile"),
                       "'%s' does not vary: give a trace (.csv) or a radio profile", text);
  if (lp_link_plan_for(compile->link_model, compile->sla_quantile)) return LP_OK;
  return lp_error(diag, LP_LOC_FILE("--sla-quantile"), "nothing passes in a state for which %g %% are at least as good",
                  100 * compile->sla_quantile);
}

/* Loads the interconnect of the ranks, and makes one machine of theirs. */
static lp_status load_ranks(lp_compile *compile, lp_diag *diag) {
  lp_compile_request *request = &compile->request;
  if (!compile->ranks_auto && request->ranks < 2) return LP_OK;
  const char *text = compile->interconnect;
  lp_status status = lp_interconnect_load(text, compile->cloud_machine, &compile->interconnect_model, diag);
  LP_TRY(text ? status_of(text, status) : status);
  request->interconnect = compile->interconnect_model;
  compile->all_ranks = lp_hw_of_ranks(compile->cloud_machine, request->ranks);
  request->cloud = &compile->all_ranks;
  return LP_OK;
}

/* --objective=total-cost adds to the cost what the device costs while an answer takes: its purchase, its waiting and
 * its radio while it is awake. All are proportional to the latency, so the plan and its proof are those of a sum. */
static lp_status count_device(lp_compile *compile, lp_diag *diag) {
  if (!compile->counts_device) return LP_OK;
  const double usd_per_ms = lp_plan_device_usd_per_ms(&compile->request);
  if (compile->has_more_places)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--objective"), "total-cost is of a device and one cloud machine");
  if (isnan(usd_per_ms))
    return lp_error(diag, LP_LOC_FILE("--objective"),
                    "total-cost needs the device's purchase_usd, life_years, idle_power and energy_usd_per_kwh; '%s' "
                    "lacks some of them",
                    compile->device_machine->name);
  (void)snprintf(compile->objective, sizeof compile->objective, "cost+%.12g*latency", usd_per_ms);
  compile->request.objective = compile->objective;
  return LP_OK;
}

lp_status lp_compile_prepare(lp_compile *compile, lp_diag *diag) {
  lp_compile_request *request = &compile->request;
  compile->counts_device = lp_streq(request->objective, "total-cost");
  LP_TRY(read_ranks(compile, diag));
  LP_TRY(read_hot_experts(compile, diag));
  LP_TRY(check_options(compile, diag));
  LP_TRY(check_exits(compile, diag));
  LP_TRY(choose_cut(compile, diag));
  LP_TRY(hw_profile_first_use(compile->device, compile->cloud, diag));
  LP_TRY(status_of(compile->device, lp_hw_load(compile->device, &compile->device_machine, diag)));
  if (compile->cloud) {
    LP_TRY(status_of(compile->cloud, lp_hw_load(compile->cloud, &compile->cloud_machine, diag)));
    LP_TRY(load_link(compile, diag));
  }
  LP_TRY(check_targets(compile, diag));
  request->device = compile->device_machine;
  request->cloud = compile->cloud_machine;
  request->link = compile->link_model;
  LP_TRY(load_ranks(compile, diag));
  LP_TRY(count_device(compile, diag));
  request->pins = compile->pins.data;
  request->pin_count = (int32_t)compile->pins.count;
  request->keep_private = compile->private_layers >= 0;
  request->private_layers = compile->private_layers;
  request->exits = compile->exits.data;
  request->exit_count = (int32_t)compile->exits.count;
  if (!request->scheduler) request->scheduler = compile->cloud ? lp_scheduler_default : "device-only";
  return LP_OK;
}

char *lp_compile_output(const lp_compile *compile) {
  if (compile->output) return lp_strdup(compile->output);
  LP_OWNED(lp_free_at) char *base = lp_path_name(compile->given);
  lp_buf path = {0};
  bool ends = lp_has_suffix(base, ".onnx") || lp_has_suffix(base, ".gguf");
  size_t length = ends ? strlen(base) - 5 : strlen(base);
  lp_buf_printf(&path, "%.*s.%s", (int)length, base,
                lp_streq(compile->emit, "onnx")   ? "halves"
                : lp_streq(compile->emit, "cuda") ? "cuda"
                                                  : "llmpart");
  return path.data;
}

/* The folder with the files that belong to the model. */
static char *folder_of(const lp_compile *compile) {
  if (compile->gguf_companions) return lp_strdup(compile->gguf_companions);
  bool is_folder = lp_model_form_of(compile->model) == LP_MODEL_HUGGINGFACE;
  return is_folder ? lp_strdup(compile->model) : lp_path_dir(compile->model);
}

char *lp_compile_find_companion(const lp_compile *compile, const char *name) {
  char *dir = folder_of(compile), *path = lp_path_join(dir, name);
  if (!lp_path_exists(path) && lp_streq(lp_path_base(dir), "onnx")) {
    LP_OWNED(lp_free_at) char *up = lp_path_dir(dir);
    free(path);
    path = lp_path_join(up, name);
  }
  free(dir);
  if (lp_path_exists(path)) return path;
  free(path);
  return NULL;
}

char *lp_compile_settings(const lp_compile *compile) {
  static const char *const names[] = {"config.json", "generation_config.json", "genai_config.json", "modules.json"};
  LP_OWNED(lp_free_at) char *found = NULL;
  for (size_t i = 0; i < LP_COUNT(names) && !found; i++)
    found = lp_compile_find_companion(compile, names[i]);
  return found ? lp_path_dir(found) : NULL;
}

char *lp_compile_tokenizer(const lp_compile *compile) {
  return compile->tokenizer ? lp_strdup(compile->tokenizer) : lp_compile_find_companion(compile, "tokenizer.json");
}

void lp_compile_check_lengths(const lp_compile *compile, const lp_module *module, lp_diag *diag) {
  const lp_op *func = lp_module_find_func(module, "main");
  const lp_compile_request *request = &compile->request;
  int64_t context = func ? lp_op_i64(func, "context", 0) : 0;
  if (compile->says_lengths && context > 0 && request->osl > context - request->isl)
    lp_warning(diag, LP_LOC_FILE(compile->model),
               "the plan is for a prompt of %" PRId64 " tokens and %" PRId64
               " to generate, the model's context is %" PRId64,
               request->isl, request->osl, context);
}

lp_status lp_compile_find_model(lp_compile *compile, const char *given, lp_diag *diag) {
  LP_TRY(lp_tool_refuse_id(given, diag));
  compile->given = compile->model = given;
  bool found = lp_model_find_files(given, &compile->found_decoder, &compile->found_encoder);
  if (found) compile->model = compile->found_decoder;
  if (!compile->encoder)
    compile->encoder = compile->found_encoder;
  else if (lp_streq(compile->encoder, "none"))
    compile->encoder = NULL;
  if (!compile->encoder) return LP_OK;
  if (!lp_has_suffix(compile->model, ".onnx"))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--encoder"),
                       "only a decoder in ONNX has its encoder in another file");
  if (compile->exits_text)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--exits"), "a decoder with an encoder has no early exits");
  return LP_OK;
}

void lp_compile_release(lp_compile *compile) {
  lp_compile_release_places(compile);
  lp_vec_free(&compile->places);
  lp_vec_free(&compile->links);
  free(compile->found_decoder);
  free(compile->found_encoder);
  lp_dir_abandon(compile->gguf_companions);
  free(compile->gguf_companions);
  lp_json_free(compile->run);
  lp_hw_free(compile->device_machine);
  lp_hw_free(compile->cloud_machine);
  lp_link_free(compile->link_model);
  lp_interconnect_free(compile->interconnect_model);
  lp_vec_free(&compile->reports);
  lp_vec_free(&compile->bind);
  lp_vec_free(&compile->pins);
  lp_vec_free(&compile->adapters);
  lp_vec_free(&compile->fail_if);
  lp_vec_free(&compile->exits);
}
