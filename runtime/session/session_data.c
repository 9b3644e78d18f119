/* Runs a program once on given arrays. */

#include "base/poly.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/runtime.h"
#include "runtime/session/walk.h"

typedef struct {
  lp_session *session;
  const lp_manifest *manifest;
  const lp_data *inputs;
  size_t count;
  int64_t past; /* positions that the KV caches hold */
  lp_diag *diag;
  lp_walk walk;
  bool bound[LP_MAX_SYMBOLS];
  bool without_past; /* the arrays are for a merged decoder's branch without a past: those of the past are dummies */
} data_run;

static lp_loc loc_of(const data_run *run) {
  return LP_LOC_FILE(run->manifest->file);
}

size_t lp_bundle_output_count(const lp_bundle *bundle) {
  return (size_t)bundle->manifest.output_count;
}

bool lp_bundle_has_caches(const lp_bundle *bundle) {
  return bundle->manifest.state_count > 0;
}

static lp_status find_program(data_run *run, const char *name) {
  const char *wanted = name ? name : run->past > 0 ? "decode" : "prefill";
  run->walk.program = lp_manifest_program(run->manifest, wanted);
  if (run->walk.program < 0 && !name && run->manifest->program_count == 1) run->walk.program = 0;
  if (run->walk.program >= 0) return LP_OK;
  return lp_error(run->diag, loc_of(run), "the bundle has no program '%.60s'", wanted);
}

static const lp_data *find_input(const data_run *run, const char *name) {
  return LP_FIND(run->inputs, run->count, name);
}

/* ---- symbols from shapes ----------------------------------------------------------------------------------------- */

/* An input of optimum's merged decoders says whether there is a past. Where there is none, the arrays of the past are
 * dummies, in generation code of one token. The bundle has the branch with a past for both, which then is empty. */
static bool is_without_past(const data_run *run) {
  const lp_data *cached = find_input(run, "use_cache_branch");
  return cached && cached->size == 1 && *(const char *)cached->data == 0;
}

static bool is_dummy(const data_run *run, const char *name) {
  return run->without_past && lp_has_prefix(name, "past_key_values");
}

static lp_status bind(data_run *run, const lp_tensor_desc *want, const lp_data *given) {
  if (!lp_streq(given->dtype, lp_element_name(want->dtype)) || given->rank != want->rank)
    return lp_error(run->diag, loc_of(run), "input '%.80s' is %s of rank %d, wanted %s of rank %d", want->name,
                    given->dtype, given->rank, lp_element_name(want->dtype), want->rank);
  for (int32_t i = 0; i < want->rank; i++) {
    int32_t symbol = (int32_t)lp_poly_lone_symbol(want->shape[i]) - 1;
    if (symbol < 0 || run->bound[symbol]) continue;
    run->bound[symbol] = true;
    run->walk.sym[symbol] = i > 0 && is_dummy(run, want->name) ? 0 : given->shape[i];
  }
  return LP_OK;
}

static void bind_the_rest(data_run *run) {
  int64_t *sym = run->walk.sym;
  if (!run->bound[LP_SYM_B]) sym[LP_SYM_B] = 1;
  if (!run->bound[LP_SYM_S]) sym[LP_SYM_S] = 1;
  if (!run->bound[LP_SYM_P]) sym[LP_SYM_P] = run->past;
  if (!run->bound[LP_SYM_R]) sym[LP_SYM_R] = sym[LP_SYM_S];
  if (!run->bound[LP_SYM_C]) sym[LP_SYM_C] = sym[LP_SYM_P] + sym[LP_SYM_S];
}

static lp_status check_shape(data_run *run, const lp_tensor_desc *want, const lp_data *given) {
  if (is_dummy(run, want->name)) return LP_OK;
  for (int32_t i = 0; i < want->rank; i++) {
    int64_t dim = lp_poly_eval(want->shape[i], run->walk.sym, (size_t)run->manifest->symbol_count);
    if (dim != given->shape[i])
      return lp_error(run->diag, loc_of(run), "axis %d of input '%.80s' is %" PRId64 ", wanted %" PRId64, i, want->name,
                      given->shape[i], dim);
  }
  size_t bytes = 0;
  if (lp_tensor_bytes(want, run->walk.sym, run->manifest->symbol_count, &bytes) && bytes == given->size) return LP_OK;
  return lp_error(run->diag, loc_of(run), "input '%.80s' holds %zu bytes, its shape takes %zu", want->name, given->size,
                  bytes);
}

/* Tells whether the program neither reads the input nor takes a size from it, as when only its element type mattered
 * to the model. The data given for such an input does not matter. */
static bool is_idle(const data_run *run, int32_t input) {
  const lp_tensor_desc *want = &run->manifest->inputs[input].tensor;
  const lp_program *program = &run->manifest->programs[run->walk.program];
  for (int32_t i = 0; i < want->rank; i++)
    if (!lp_poly_is_const(want->shape[i], NULL)) return false;
  for (int32_t i = 0; i < program->step_count; i++)
    if (program->step[i].kind == LP_STEP_INPUT && program->step[i].port == input) return false;
  return true;
}

static lp_status take_inputs(data_run *run, lp_span *spans) {
  run->without_past = is_without_past(run);
  for (int32_t i = 0; i < run->manifest->input_count; i++) {
    const lp_tensor_desc *want = &run->manifest->inputs[i].tensor;
    const lp_data *given = find_input(run, want->name);
    if (is_idle(run, i)) continue;
    if (!given) return lp_error(run->diag, loc_of(run), "input '%.80s' is not given", want->name);
    LP_TRY(bind(run, want, given));
    spans[i] = (lp_span){.data = given->data, .size = is_dummy(run, want->name) ? 0 : given->size};
  }
  bind_the_rest(run);
  for (int32_t i = 0; i < run->manifest->input_count; i++) {
    const lp_tensor_desc *want = &run->manifest->inputs[i].tensor;
    if (!is_idle(run, i)) LP_TRY(check_shape(run, want, find_input(run, want->name)));
  }
  return LP_OK;
}

static void give_outputs(const data_run *run, const lp_span *spans, lp_data *outputs) {
  for (int32_t i = 0; i < run->manifest->output_count; i++) {
    const lp_tensor_desc *desc = &run->manifest->outputs[i].tensor;
    outputs[i] = (lp_data){.name = desc->name,
                           .dtype = lp_element_name(desc->dtype),
                           .rank = desc->rank,
                           .data = spans[i].data,
                           .size = spans[i].size};
    for (int32_t axis = 0; axis < desc->rank; axis++)
      outputs[i].shape[axis] = lp_poly_eval(desc->shape[axis], run->walk.sym, (size_t)run->manifest->symbol_count);
  }
}

lp_status lp_session_step(lp_session *session, const char *program, int64_t past, const lp_data *inputs, size_t count,
                          lp_data *outputs, lp_diag *diag) {
  data_run run = {.session = session,
                  .manifest = &session->bundle->manifest,
                  .inputs = inputs,
                  .count = count,
                  .past = past,
                  .diag = diag};
  LP_TRY(find_program(&run, program));
  LP_OWNED(lp_free_at) lp_span *in = lp_alloc(((size_t)run.manifest->input_count + 1) * sizeof *in);
  LP_OWNED(lp_free_at) lp_span *out = lp_alloc(((size_t)run.manifest->output_count + 1) * sizeof *out);
  run.walk.input = in;
  run.walk.output = out;
  lp_status status = take_inputs(&run, in);
  if (status == LP_OK) status = lp_session_walk(session, &run.walk, diag);
  if (status == LP_OK) status = lp_bundle_await_check(session->bundle, diag);
  give_outputs(&run, out, outputs);
  return status;
}

lp_status lp_session_run(lp_session *session, const char *program, const lp_data *inputs, size_t count,
                         lp_data *outputs, lp_diag *diag) {
  return lp_session_step(session, program, 0, inputs, count, outputs, diag);
}
