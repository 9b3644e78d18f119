/* Compiles a decoder made up for the purpose, runs it through the runtime, and pairs the time of each part with the sizes
 * that the planner asks predictors about. */
#include "tools/hw_measure.h"

#include "backend/backend.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- building -------------------------------------------------------------------------------------------------------- */

/* Weights of zeros: kernels take as long as for any others. */
static lp_status write_weights(hw_bench *bench, lp_diag *diag) {
  char *path = lp_path_join(bench->folder, "weights.bin");
  lp_status status = lp_file_write(path, "", 0, diag);
  if (status == LP_OK && truncate(path, (off_t)lp_decoder_weight_bytes(bench->module)) != 0)
    status = lp_error(diag, LP_LOC_FILE(path), "cannot be made long enough: %s", strerror(errno));
  free(path);
  return status;
}

static lp_request request_of(const lp_machine *device, int64_t past, int64_t count) {
  return (lp_request){.device = device,
                      .isl = past > 0 ? past : count,
                      .osl = 1,
                      .batch = 1,
                      .scheduler = "device-only",
                      .objective = "latency"};
}

static lp_status compile(hw_bench *bench, const lp_decoder_shape *shape, bool each, lp_diag *diag) {
  static const char *const tokens[] = {"tokens"}, *const logits[] = {"logits"};
  lp_op *func = lp_module_find_func(bench->module, "main");
  lp_op_set_strs(bench->module, func, "input_roles", tokens, 1);
  lp_op_set_strs(bench->module, func, "output_roles", logits, 1);
  lp_request request = request_of(bench->host, 0, shape->context / 2);
  LP_TRY(lp_passes_run(bench->module, "fuse,annotate,place", &request, NULL, diag));
  LP_TRY(lp_passes_run(bench->module, each ? lp_pipeline_split_each : lp_pipeline_split, &request, NULL, diag));
  lp_emit_options options = {.side = "device", .march = "native", .opt_level = 3};
  const lp_bundle_request bundle = {.device = lp_backend_find("cpu"),
                                    .cloud = lp_backend_find("cpu"),
                                    .device_options = options,
                                    .cloud_options = options,
                                    .context = shape->context,
                                    .vocab = shape->vocab};
  char *path = lp_path_join(bench->folder, "bundle.llmpart");
  lp_status status = lp_bundle_write(bench->module, &bundle, path, diag);
  if (status == LP_OK)
    status = lp_bundle_load(path, &(lp_bundle_options){.load = LP_LOAD_DEVICE}, &bench->bundle, diag);
  free(path);
  return status;
}

static lp_status make_folder(hw_bench *bench, lp_diag *diag) {
  const char *root = getenv("TMPDIR");
  bench->folder = lp_path_join(root && *root ? root : "/tmp", "llmpart-profile-XXXXXX");
  if (mkdtemp(bench->folder)) return LP_OK;
  lp_status status = lp_error(diag, LP_LOC_FILE(bench->folder), "cannot make the folder: %s", strerror(errno));
  free(bench->folder);
  bench->folder = NULL;
  return status;
}

lp_status hw_bench_open(const lp_decoder_shape *shape, bool each, const lp_machine *host, int32_t threads,
                        hw_bench *out, lp_diag *diag) {
  *out = (hw_bench){.host = host, .vocab = shape->vocab};
  LP_TRY(make_folder(out, diag));
  out->module = lp_decoder_create(shape);
  out->module->directory = lp_arena_strdup(out->module->arena, out->folder);
  LP_TRY(write_weights(out, diag));
  LP_TRY(compile(out, shape, each, diag));
  lp_generate_options options = {.sampling = {.top_p = 1}, .ignore_eos = true, .threads = threads};
  return lp_session_open(out->bundle, &options, &out->session, diag);
}

void hw_bench_close(hw_bench *bench) {
  lp_session_close(bench->session);
  lp_bundle_free(bench->bundle);
  lp_module_free(bench->module);
  if (bench->folder) lp_dir_abandon(bench->folder);
  free(bench->folder);
  *bench = (hw_bench){0};
}

/* ---- pairing --------------------------------------------------------------------------------------------------------- */

/* A machine whose predictor writes down what it is asked. */
typedef LP_VEC(lp_op_facts) facts_list;

typedef struct {
  lp_machine machine; /* first: the predictor is handed its address */
  facts_list *asked;
} recorder;

static lp_prediction write_down(const lp_machine *machine, const lp_op_facts *facts) {
  const recorder *r = (const recorder *)machine;
  lp_vec_push(r->asked, *facts);
  return (lp_prediction){.time_ms = 1, .low_ms = 1, .high_ms = 1};
}

static bool always(const lp_machine *machine) {
  (void)machine;
  return true;
}

/* What the planner asks of each operator of a pass, in the order they run. */
static lp_status list_facts(const hw_bench *bench, int64_t past, int64_t count, lp_op_facts **out, size_t *facts,
                            lp_diag *diag) {
  static const lp_hw_predictor predictor = {.name = "recorder", .predict = write_down, .asks_pass_bytes = always};
  facts_list asked = {0};
  recorder r = {.machine = *bench->host, .asked = &asked};
  r.machine.predictor = &predictor;
  lp_request request = request_of(&r.machine, past, count);
  lp_arena *arena = lp_arena_create();
  lp_plan_problem problem[LP_STAGE_COUNT];
  lp_status status = lp_plan_build(bench->module, &request, arena, problem, diag);
  lp_arena_free(arena);
  /* Prefill is asked first, decode behind it, alike. */
  size_t half = asked.count / 2;
  *facts = half;
  *out = lp_alloc((half + 1) * sizeof **out);
  if (status == LP_OK) memcpy(*out, asked.data + (past > 0 ? half : 0), half * sizeof **out);
  lp_vec_free(&asked);
  return status;
}

static bool same_sizes(const lp_op_facts *a, const lp_op_facts *b) {
  if (a->kind != b->kind || a->dtype != b->dtype || a->bytes != b->bytes || a->flops != b->flops) return false;
  for (size_t i = 0; i < LP_HW_SIZES; i++)
    if (lp_hw_op_size(a, i) != lp_hw_op_size(b, i)) return false;
  return true;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void keep_lesser(lp_hw_samples *out, lp_hw_sample sample) {
  for (size_t i = 0; i < out->count; i++) {
    lp_hw_sample *there = &out->data[i];
    if (there->facts.pass_bytes != sample.facts.pass_bytes || !same_sizes(&there->facts, &sample.facts)) continue;
    there->time_us = fmin(there->time_us, sample.time_us);
    return;
  }
  lp_vec_push(out, sample);
}

/* One sample for each set of equal operators: the median of their times. */
static void add_samples(const lp_op_facts *facts, const double *us, size_t count, lp_hw_samples *out) {
  bool *done = lp_alloc(count * sizeof *done + 1);
  double *same = lp_alloc(count * sizeof *same + 1);
  for (size_t i = 0; i < count; i++) {
    lp_hw_op op = lp_hw_op_of(facts[i].kind);
    if (done[i] || op == LP_HW_ANY) continue;
    size_t found = 0;
    for (size_t j = i; j < count; j++) {
      if (!same_sizes(&facts[i], &facts[j])) continue;
      done[j] = true;
      same[found++] = us[j];
    }
    qsort(same, found, sizeof *same, by_value);
    keep_lesser(out, (lp_hw_sample){.op = op, .facts = facts[i], .time_us = same[found / 2]});
  }
  free(same);
  free(done);
}

static void add_rest(const hw_bench *bench, double us, lp_hw_samples *out) {
  lp_hw_sample sample = {.op = LP_HW_SAMPLE, .facts = {.dtype = LP_F32, .m = 1, .n = bench->vocab}, .time_us = us};
  lp_hw_op_facts(LP_HW_SAMPLE, &sample.facts);
  keep_lesser(out, sample);
}

static double least_us(const lp_profile *profile) {
  double least = INFINITY;
  for (size_t i = 0; i < profile->parts.count; i++)
    least = fmin(least, profile->parts.data[i].ms * 1e3);
  return least;
}

/* A part takes its time less what timing adds, a tenth of it at least: times of a fifth of a microsecond are noisy. Threads
 * meet sooner or later as the system places them, so what is added is told by the pass itself. */
static void add_parts(const lp_profile *profile, const lp_op_facts *facts, const hw_overhead *overhead,
                      lp_hw_samples *out) {
  size_t count = profile->parts.count;
  double *us = lp_alloc(count * sizeof *us + 1), added = overhead->of_least * least_us(profile);
  for (size_t i = 0; i < count; i++)
    us[i] = fmax(profile->parts.data[i].ms * 1e3 - added, profile->parts.data[i].ms * 100);
  add_samples(facts, us, count, out);
  free(us);
}

lp_status hw_bench_measure(const hw_bench *bench, int64_t past, int64_t count, int64_t repetitions,
                           const hw_overhead *overhead, lp_hw_samples *out, lp_diag *diag) {
  lp_profile profile = {0};
  lp_op_facts *facts = NULL;
  size_t fact_count = 0;
  lp_status status = lp_session_profile(bench->session, past, count, repetitions, &profile, diag);
  if (status == LP_OK) status = list_facts(bench, past, count, &facts, &fact_count, diag);
  if (status == LP_OK && fact_count != profile.parts.count)
    status =
        lp_error(diag, LP_LOC_NONE, "the planner sees %zu operators, the runtime %zu", fact_count, profile.parts.count);
  if (status == LP_OK) {
    add_parts(&profile, facts, overhead, out);
    add_rest(bench, profile.other_ms * 1e3 + overhead->begin_us, out);
  }
  free(facts);
  lp_vec_free(&profile.parts);
  return status;
}

/* ---- overhead -------------------------------------------------------------------------------------------------------- */

/* The times of one decode step: whole, and of what is in no part or step. */
typedef struct {
  double total_us, begin_us, least_us, parts;
} step_time;

static lp_status time_step(const hw_bench *bench, step_time *out, lp_diag *diag) {
  lp_profile profile = {0};
  lp_status status = lp_session_profile(bench->session, 64, 1, 101, &profile, diag);
  double known = profile.other_ms;
  for (size_t i = 0; i < profile.parts.count; i++)
    known += profile.parts.data[i].ms;
  *out = (step_time){.total_us = profile.total_ms * 1e3,
                     .begin_us = fmax(profile.total_ms - known, 0) * 1e3,
                     .least_us = least_us(&profile),
                     .parts = (double)profile.parts.count};
  lp_vec_free(&profile.parts);
  return status;
}

lp_status hw_bench_overhead(const hw_bench *each, const hw_bench *whole, hw_overhead *out, lp_diag *diag) {
  enum { ROUNDS = 9 };
  double of_least[ROUNDS], begin_us[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) {
    step_time parts, at_once;
    LP_TRY(time_step(each, &parts, diag));
    LP_TRY(time_step(whole, &at_once, diag));
    of_least[i] = fmin(fmax(parts.total_us - at_once.total_us, 0) / parts.parts / parts.least_us, 1);
    begin_us[i] = at_once.begin_us;
  }
  qsort(of_least, ROUNDS, sizeof *of_least, by_value);
  qsort(begin_us, ROUNDS, sizeof *begin_us, by_value);
  *out = (hw_overhead){.of_least = of_least[ROUNDS / 2], .begin_us = begin_us[ROUNDS / 2]};
  return LP_OK;
}
