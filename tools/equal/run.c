/* Runs a bundle once on arrays, through the runtime. */
#include "tools/equal/run.h"

#include "runtime/runtime.h"

struct lp_verify_bundle {
  lp_bundle *bundle;
  lp_session *session;
};

lp_status lp_verify_open(const char *path, int64_t threads, lp_verify_bundle **out, lp_diag *diag) {
  const lp_bundle_options load = {.load = LP_LOAD_ALL};
  const lp_generate_options options = {.threads = (int32_t)threads};
  lp_verify_bundle *opened = lp_alloc(sizeof *opened);
  lp_status status = lp_bundle_load(path, &load, &opened->bundle, diag);
  if (status == LP_OK) status = lp_session_open(opened->bundle, &options, &opened->session, diag);
  if (status != LP_OK) {
    lp_verify_close(opened);
    return status;
  }
  *out = opened;
  return LP_OK;
}

void lp_verify_close(lp_verify_bundle *bundle) {
  if (!bundle) return;
  if (bundle->session) lp_session_close(bundle->session);
  if (bundle->bundle) lp_bundle_free(bundle->bundle);
  free(bundle);
}

size_t lp_verify_output_count(const lp_verify_bundle *bundle) {
  return lp_bundle_output_count(bundle->bundle);
}

static lp_data to_runtime(const lp_verify_array *from) {
  lp_data to = {.name = from->name, .dtype = from->dtype, .rank = from->rank, .data = from->data, .size = from->size};
  for (int32_t i = 0; i < from->rank; i++)
    to.shape[i] = from->dim[i];
  return to;
}

static lp_verify_array from_runtime(const lp_data *from) {
  lp_verify_array to = {
      .name = from->name, .dtype = from->dtype, .rank = from->rank, .data = from->data, .size = from->size};
  for (int32_t i = 0; i < from->rank && i < LP_VERIFY_RANK; i++)
    to.dim[i] = from->shape[i];
  return to;
}

lp_status lp_verify_step(lp_verify_bundle *bundle, int64_t past, const lp_verify_array *inputs, size_t count,
                         lp_verify_array *outputs, lp_diag *diag) {
  size_t output_count = lp_verify_output_count(bundle);
  LP_OWNED(lp_free_at)
  lp_data *in = lp_alloc((count + 1) * sizeof *in), *out = lp_alloc((output_count + 1) * sizeof *out);
  for (size_t i = 0; i < count; i++)
    in[i] = to_runtime(&inputs[i]);
  lp_status status = lp_session_step(bundle->session, NULL, past, in, count, out, diag);
  for (size_t i = 0; i < output_count; i++)
    outputs[i] = from_runtime(&out[i]);
  return status;
}

lp_status lp_verify_run(lp_verify_bundle *bundle, const lp_verify_array *inputs, size_t count, lp_verify_array *outputs,
                        lp_diag *diag) {
  return lp_verify_step(bundle, 0, inputs, count, outputs, diag);
}

bool lp_verify_has_caches(const lp_verify_bundle *bundle) {
  return lp_bundle_has_caches(bundle->bundle);
}

int64_t lp_verify_context(const lp_verify_bundle *bundle) {
  return lp_bundle_context_length(bundle->bundle);
}
