/* Running as the runtime does: OpenCL or CUDA kernels and the table of launches, on the device that the runtime finds.
 * With LP_TEST_RECORD each case is also written to that folder (tests/gpu/case.h). */
#include "base/file.h"
#include "harness.h"

#include "tests/gpu/case.h"
#include "tests/gpu/job.h"

#include <stdlib.h>
#include <unistd.h>

bool harness_has_gpu(const char *language, char why[256]) {
  const lp_gpu_api *api = lp_gpu_api_find(language);
  const lp_gpu_text text = {.file = "kernels", .source = ""};
  lp_gpu_device *device = NULL;
  lp_diag *diag = lp_diag_create();
  bool found = api->open(&text, &device, diag) == LP_OK;
  if (!found) snprintf(why, 256, "%s", lp_diag_get(diag, 0)->text);
  api->close(device);
  lp_diag_free(diag);
  return found;
}

bool harness_is_for_gpu(void) {
  return getenv("LP_TEST_GPU") || getenv("LP_TEST_RECORD");
}

typedef struct {
  lp_buf kernels, table, weights;
} emitted;

static void emit(harness *h, const lp_backend *backend, const lp_emit_options *options, emitted *out) {
  (void)harness_weights(h, backend, options, &out->weights);
  if (backend->emit(h->module, options, LP_EMIT_KERNELS, &out->kernels, h->diag) != LP_OK ||
      backend->emit(h->module, options, LP_EMIT_LAUNCHES, &out->table, h->diag) != LP_OK)
    harness_fail(h, "cannot emit");
}

void harness_run_gpu(harness *h, const lp_backend *backend, const lp_emit_options *options, runner_job *job) {
  void *state[GPU_JOB_MOST_STATES];
  size_t state_bytes[GPU_JOB_MOST_STATES];
  emitted code = {0};
  emit(h, backend, options, &code);
  for (int32_t i = 0; i < h->state_count; i++) {
    state[i] = h->state[i].data;
    state_bytes[i] = (size_t)h->state[i].bytes;
  }
  job->state = state;
  job->weights = code.weights.data;
  const lp_gpu_source source = {.kernels_file = backend->kernels,
                                .kernels = lp_buf_text(&code.kernels),
                                .kernels_size = code.kernels.size,
                                .table_file = "launches.json",
                                .table = lp_buf_text(&code.table),
                                .table_size = code.table.size,
                                .weights = code.weights.data,
                                .weight_bytes = code.weights.size,
                                .states = h->state_count};
  if (gpu_job_run(&source, state_bytes, job, h->diag) != LP_OK) harness_fail(h, "cannot run");
  lp_buf_free(&code.kernels);
  lp_buf_free(&code.table);
  free(code.weights.data);
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static int kind_of(lp_dtype dtype) {
  return dtype == LP_F32    ? GPU_CASE_F32
         : dtype == LP_F16  ? GPU_CASE_F16
         : dtype == LP_BF16 ? GPU_CASE_BF16
                            : GPU_CASE_BYTES;
}

void harness_record(harness *h, const lp_backend *backend, const lp_emit_options *options, const runner_job *job) {
  static int number;
  const char *folder = getenv("LP_TEST_RECORD");
  emitted code = {0};
  lp_buf file = {0};
  char path[512];
  if (!folder) return;
  emit(h, backend, options, &code);
  gpu_case_put(&file, "kernels", 0, code.kernels.data, code.kernels.size);
  gpu_case_put(&file, "launches", 0, code.table.data, code.table.size);
  gpu_case_put(&file, "weights", 0, code.weights.data, code.weights.size);
  gpu_case_put(&file, "sym", job->buffers, job->sym, (size_t)job->sym_count * sizeof *job->sym);
  for (size_t i = 0; i < job->in_count; i++)
    gpu_case_put(&file, "in", job->in[i].buffer, job->in[i].data, job->in[i].bytes);
  for (int32_t i = 0; i < h->state_count; i++)
    gpu_case_put(&file, "state", i, h->state[i].before, (size_t)h->state[i].bytes);
  for (size_t i = 0; i < job->out_count; i++) {
    lp_dtype dtype = h->result[i]->type.dtype;
    double coarse = dtype == LP_F16 ? 8 : dtype == LP_BF16 ? 64 : 1;
    const double near[2] = {2 * h->atol * coarse,
                            2 * h->rtol * coarse}; /* the tolerance is that of the operators that will run */
    gpu_case_put(&file, "out", job->out[i].buffer, job->out[i].data, job->out[i].bytes);
    gpu_case_put(&file, "near", kind_of(dtype), near, sizeof near);
  }
  snprintf(path, sizeof path, "%s/%d-%03d.case", folder, (int)getpid(), ++number);
  if (lp_file_write(path, file.data, file.size, h->diag) != LP_OK) harness_fail(h, "cannot record");
  lp_buf_free(&file);
  lp_buf_free(&code.kernels);
  lp_buf_free(&code.table);
  free(code.weights.data);
}
