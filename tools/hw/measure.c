/* Compiles a synthetic decoder, runs it through the runtime, and pairs the time of each part with the sizes for which
 * the planner asks predictors. */
#include "tools/hw/measure.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "passes/decoder.h"
#include "passes/plan/plan.h"

#include "backend/backend.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

/* ---- building ---------------------------------------------------------------------------------------------------- */

/* The weights are zeros, because kernels take the same time for all values. */
static lp_status write_weights(hw_bench *bench, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *path = lp_path_join(bench->folder, "weights.bin");
  lp_status status = lp_file_write(path, "", 0, diag);
  if (status == LP_OK && truncate(path, (off_t)lp_decoder_weight_bytes(bench->module)) != 0)
    status = lp_error(diag, LP_LOC_FILE(path), "cannot be made long enough: %s", strerror(errno));
  return status;
}

static lp_compile_request request_of(const hw_bench *bench, const lp_machine *device, int64_t batch, int64_t past,
                                     int64_t count) {
  return (lp_compile_request){.device = device,
                              .isl = past > 0 ? past : count,
                              .osl = 1,
                              .batch = batch,
                              .dtype_device = bench->dtype,
                              .activations = bench->dtype ? "auto" : NULL,
                              .scheduler = "device-only",
                              .objective = "latency"};
}

/* Writes the bundle to `path`. */
static lp_status compile(hw_bench *bench, const lp_decoder_shape *shape, const hw_subject *subject, const char *path,
                         lp_diag *diag) {
  static const char *const tokens[] = {"tokens"}, *const logits[] = {"logits"};
  lp_op *func = lp_module_find_func(bench->module, "main");
  lp_op_set_strs(bench->module, func, "input_roles", tokens, 1);
  lp_op_set_strs(bench->module, func, "output_roles", logits, 1);
  lp_compile_request request = request_of(bench, bench->machine, 1, 0, shape->context / 2);
  lp_link *link = NULL;
  LP_TRY(lp_link_load("loopback", &link, diag));
  if (subject->cut > 0) {
    request.cloud = bench->machine;
    request.link = link;
    request.scheduler = "cut";
    request.cut = subject->cut;
  }
  lp_status status = lp_passes_run(bench->module, "fuse,annotate,place", &request, NULL, diag);
  const char *split = subject->cut > 0 ? lp_pipeline_split : lp_pipeline_split_profiled;
  if (status == LP_OK) status = lp_passes_run(bench->module, split, &request, NULL, diag);
  lp_link_free(link);
  if (status != LP_OK) return status;
  lp_bundle_request bundle = {.context = shape->context, .vocab = shape->vocab};
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    bundle.backend[i] = lp_backend_find(subject->backend);
    bundle.options[i] = (lp_emit_options){.side = i, .march = subject->march, .opt_level = 3, .halves = true};
  }
  return lp_bundle_write(bench->module, &bundle, path, diag);
}

static lp_status create(const lp_decoder_shape *shape, const hw_subject *subject, hw_bench *out, lp_diag *diag) {
  *out = (hw_bench){.machine = subject->machine, .dtype = subject->dtype, .vocab = shape->vocab};
  LP_TRY(lp_dir_temporary("llmpart-profile", &out->folder, diag));
  out->module = lp_decoder_create(shape, NULL);
  out->module->directory = lp_arena_strdup(out->module->arena, out->folder);
  return write_weights(out, diag);
}

static lp_status load(hw_bench *bench, const hw_subject *subject, const char *path, lp_diag *diag) {
  if (subject->over) {
    const lp_remote_profiler_options options = {
        .address = subject->over, .bundle = path, .security = subject->security};
    return lp_remote_profiler_open(&options, &bench->profiler, diag);
  }
  LP_TRY(lp_bundle_load(path, &(lp_bundle_options){.load = LP_LOAD_DEVICE}, &bench->bundle, diag));
  lp_generate_options options = {.sampling = {.top_p = 1}, .ignore_eos = true, .threads = subject->threads};
  return lp_session_open(bench->bundle, &options, &bench->session, diag);
}

lp_status hw_bench_open(const lp_decoder_shape *shape, const hw_subject *subject, hw_bench *out, lp_diag *diag) {
  LP_TRY(create(shape, subject, out, diag));
  LP_OWNED(lp_free_at) char *path = lp_path_join(out->folder, "bundle.llmpart");
  LP_TRY(compile(out, shape, subject, path, diag));
  return load(out, subject, path, diag);
}

lp_status hw_bench_write(const lp_decoder_shape *shape, const hw_subject *subject, const char *path, lp_diag *diag) {
  hw_bench bench;
  lp_status status = create(shape, subject, &bench, diag);
  if (status == LP_OK) status = compile(&bench, shape, subject, path, diag);
  hw_bench_close(&bench);
  return status;
}

void hw_bench_close(hw_bench *bench) {
  lp_remote_profiler_close(bench->profiler);
  lp_session_close(bench->session);
  lp_bundle_free(bench->bundle);
  lp_module_free(bench->module);
  if (bench->folder) lp_dir_abandon(bench->folder);
  free(bench->folder);
  *bench = (hw_bench){0};
}

/* ---- pairing ----------------------------------------------------------------------------------------------------- */

/* A machine with a predictor that records the facts it is asked about. */
typedef LP_VEC(lp_op_facts) facts_list;

typedef struct {
  lp_machine machine; /* first, because the predictor gets its address */
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

/* Lists the facts that the planner asks about for each operator of a pass, in the order in which they run. */
static lp_status list_facts(const hw_bench *bench, int64_t batch, int64_t past, int64_t count, lp_op_facts **out,
                            size_t *facts, lp_diag *diag) {
  static const lp_hw_predictor predictor = {.name = "recorder", .predict = write_down, .asks_pass_bytes = always};
  LP_OWNED(lp_free_at) facts_list asked = {0};
  recorder r = {.machine = *bench->machine, .asked = &asked};
  r.machine.predictor = &predictor;
  lp_compile_request request = request_of(bench, &r.machine, batch, past, count);
  lp_arena *arena = lp_arena_create();
  lp_plan_problem problem[LP_STAGE_COUNT];
  lp_status status = lp_plan_build(bench->module, &request, arena, problem, diag);
  lp_arena_free(arena);
  /* The planner asks about prefill first, then in the same way about decode. */
  size_t half = asked.count / 2;
  *facts = half;
  *out = lp_alloc((half + 1) * sizeof **out);
  if (status == LP_OK) memcpy(*out, asked.data + (past > 0 ? half : 0), half * sizeof **out);
  return status;
}

static bool same_sizes(const lp_op_facts *a, const lp_op_facts *b) {
  if (a->kind != b->kind || a->dtype != b->dtype || a->bytes != b->bytes || a->flops != b->flops) return false;
  for (size_t i = 0; i < LP_HW_SIZES; i++)
    if (lp_hw_op_size(a, i) != lp_hw_op_size(b, i)) return false;
  return true;
}

static void keep_lesser(lp_hw_samples *out, lp_hw_sample sample) {
  LP_FOR_VEC(lp_hw_sample, there, out) {
    if (there->facts.pass_bytes != sample.facts.pass_bytes || !same_sizes(&there->facts, &sample.facts)) continue;
    there->time_us = fmin(there->time_us, sample.time_us);
    return;
  }
  lp_vec_push(out, sample);
}

static const double least_us = 0.01; /* every operator takes some time, even when the clock shows none */

/* After the last attention only the last row of a prompt is computed, and the prompt has evicted its weights from the
 * caches. The times of these operators are therefore taken from decode, which is measured more often. */
static bool is_picked(const lp_op_facts *facts, int64_t tokens) {
  return facts->m > 0 && facts->m < tokens;
}

/* Adds one sample for each set of equal operators, the mean of their times. Operators of equal size need not do equal
 * work: threads meet after the output projection, but not after that of the queries. */
static void add_samples(const hw_bench *bench, const lp_op_facts *facts, const lp_profile *profile, int64_t tokens,
                        lp_hw_samples *out) {
  size_t count = profile->parts.count;
  LP_OWNED(lp_free_at) bool *done = lp_alloc(count * sizeof *done + 1);
  for (size_t i = 0; i < count; i++) {
    lp_hw_op op = lp_hw_op_of(facts[i].kind);
    if (done[i] || op == LP_HW_ANY || is_picked(&facts[i], tokens)) continue;
    if (bench->dtype && op != LP_HW_LINEAR) continue;
    double sum_us = 0, found = 0;
    for (size_t j = i; j < count; j++) {
      if (!same_sizes(&facts[i], &facts[j])) continue;
      done[j] = true;
      sum_us += profile->parts.data[j].ms * 1e3;
      found++;
    }
    keep_lesser(out, (lp_hw_sample){.op = op, .facts = facts[i], .time_us = fmax(sum_us / found, least_us)});
  }
}

static void add_rest(const hw_bench *bench, int64_t batch, double us, lp_hw_samples *out) {
  lp_hw_sample sample = {.op = LP_HW_SAMPLE, .facts = {.dtype = LP_F32, .m = batch, .n = bench->vocab}, .time_us = us};
  lp_hw_op_facts(LP_HW_SAMPLE, &sample.facts);
  keep_lesser(out, sample);
}

lp_status hw_bench_measure(const hw_bench *bench, int64_t batch, int64_t past, int64_t count, int64_t repetitions,
                           lp_hw_samples *out, lp_diag *diag) {
  lp_profile profile = {0};
  lp_op_facts *facts = NULL;
  size_t fact_count = 0;
  lp_status status = bench->profiler
                         ? lp_remote_profiler_measure(bench->profiler, past, count, repetitions, &profile, diag)
                         : lp_session_profile(bench->session, batch, past, count, repetitions, &profile, diag);
  if (status == LP_OK) status = list_facts(bench, batch, past, count, &facts, &fact_count, diag);
  if (status == LP_OK && fact_count != profile.parts.count)
    status =
        lp_error(diag, LP_LOC_NONE, "the planner sees %zu operators, the runtime %zu", fact_count, profile.parts.count);
  if (status == LP_OK) {
    add_samples(bench, facts, &profile, batch * count, out);
    if (!bench->dtype) add_rest(bench, batch, profile.other_ms * 1e3, out);
  }
  free(facts);
  lp_vec_free(&profile.parts);
  return status;
}
