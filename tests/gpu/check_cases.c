/* check_cases FILE.case ...: runs recorded cases of the conformance suite (case.h) on the GPU that the runtime finds.
 * Needs nothing but the runtime. Exit status 1 when one of them fails, 77 when there is no GPU. */
#include "base/file.h"
#include "runtime/gpu/gpu.h"
#include "tests/gpu/case.h"
#include "tests/gpu/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PORTS = 512 };

typedef struct {
  int kind;
  double absolute, relative;
} nearness;

typedef struct {
  lp_gpu_source source;
  runner_job job;
  runner_port in[MOST_PORTS], out[MOST_PORTS];
  const void *want[MOST_PORTS];
  nearness near[MOST_PORTS];
  void *state[GPU_JOB_MOST_STATES];
  size_t state_bytes[GPU_JOB_MOST_STATES];
  int64_t sym[64];
} recorded;

static void *copy_of(const char *data, size_t bytes) {
  return memcpy(aligned_alloc(64, bytes / 64 * 64 + 64), data, bytes);
}

static bool take_section(recorded *r, const char *name, int64_t index, const char *data, size_t bytes) {
  if (r->job.in_count == MOST_PORTS || r->job.out_count == MOST_PORTS || r->source.states == GPU_JOB_MOST_STATES)
    return false;
  if (lp_streq(name, "kernels")) {
    r->source.kernels = data, r->source.kernels_size = bytes;
  } else if (lp_streq(name, "launches")) {
    r->source.table = data, r->source.table_size = bytes;
  } else if (lp_streq(name, "weights")) {
    r->source.weights = copy_of(data, bytes), r->source.weight_bytes = bytes;
  } else if (lp_streq(name, "sym") && bytes <= sizeof r->sym) {
    memcpy(r->sym, data, bytes);
    r->job.sym_count = (int64_t)(bytes / sizeof *r->sym), r->job.buffers = index;
  } else if (lp_streq(name, "in")) {
    r->in[r->job.in_count++] = (runner_port){index, bytes, copy_of(data, bytes)};
  } else if (lp_streq(name, "state")) {
    r->state_bytes[r->source.states] = bytes, r->state[r->source.states++] = copy_of(data, bytes);
  } else if (lp_streq(name, "out")) {
    r->want[r->job.out_count] = copy_of(data, bytes);
    r->out[r->job.out_count++] = (runner_port){index, bytes, copy_of(data, bytes)};
  } else if (lp_streq(name, "near") && bytes == 2 * sizeof(double) && r->job.out_count > 0) {
    nearness *near = &r->near[r->job.out_count - 1];
    near->kind = (int)index;
    memcpy(&near->absolute, data, sizeof(double));
    memcpy(&near->relative, data + sizeof(double), sizeof(double));
  } else {
    return false;
  }
  return true;
}

static bool read_sections(recorded *r, const char *data, size_t size) {
  for (size_t at = 0; at < size;) {
    char name[16];
    int64_t index;
    size_t bytes;
    int length = 0;
    if (sscanf(data + at, "%15s %" SCNd64 " %zu%n", name, &index, &bytes, &length) != 3 ||
        data[at + (size_t)length] != '\n')
      return false;
    at += (size_t)length + 1;
    if (bytes > size - at || !take_section(r, name, index, data + at, bytes)) return false;
    at += bytes;
  }
  return r->source.kernels && r->source.table;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static float from_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float magnitude = exponent == 31  ? fraction ? NAN : INFINITY
                    : exponent == 0 ? ldexpf((float)fraction, -24)
                                    : ldexpf((float)(fraction | 1024), exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

static double element(int kind, const char *data, size_t i) {
  uint32_t bits = 0;
  float value;
  memcpy(&bits, data + i * (kind == GPU_CASE_F32 ? 4 : 2), kind == GPU_CASE_F32 ? 4 : 2);
  if (kind == GPU_CASE_F16) return (double)from_half((uint16_t)bits);
  if (kind == GPU_CASE_BF16) bits <<= 16;
  memcpy(&value, &bits, sizeof value);
  return (double)value;
}

static bool is_near(const nearness *near, double got, double want) {
  if (isnan(want)) return isnan(got);
  if (isinf(want)) return got == want;
  return fabs(got - want) <= near->absolute + near->relative * fabs(want);
}

static bool compare(const recorded *r, size_t out, const char *file) {
  const nearness *near = &r->near[out];
  const char *got = r->out[out].data, *want = r->want[out];
  size_t bytes = r->out[out].bytes;
  if (near->kind == GPU_CASE_BYTES) {
    if (memcmp(got, want, bytes) == 0) return true;
    printf("%s: result %zu is another\n", file, out);
    return false;
  }
  for (size_t i = 0; i < bytes / (near->kind == GPU_CASE_F32 ? 4 : 2); i++) {
    double a = element(near->kind, got, i), b = element(near->kind, want, i);
    if (is_near(near, a, b)) continue;
    printf("%s: result %zu, element %zu is %.9g, should be %.9g\n", file, out, i, a, b);
    return false;
  }
  return true;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void release(recorded *r) {
  for (size_t i = 0; i < r->job.in_count; i++)
    free(r->in[i].data);
  for (size_t i = 0; i < r->job.out_count; i++) {
    free(r->out[i].data);
    free((void *)(uintptr_t)r->want[i]);
  }
  for (int32_t i = 0; i < r->source.states; i++)
    free(r->state[i]);
  free((void *)(uintptr_t)r->source.weights);
  free(r);
}

static lp_status check(const char *file, lp_diag *diag) {
  recorded *r = lp_alloc(sizeof *r);
  lp_mapping mapping;
  lp_status status = lp_file_map(file, &mapping, diag);
  if (status == LP_OK && !read_sections(r, (const char *)mapping.data, mapping.size))
    status = lp_error(diag, LP_LOC_FILE(file), "no case of the conformance suite");
  if (status == LP_OK) {
    r->source.kernels_file = r->source.table_file = file;
    r->job.sym = r->sym, r->job.threads = 1, r->job.weights = r->source.weights, r->job.state = r->state;
    r->job.in = r->in, r->job.out = r->out;
    status = gpu_job_run(&r->source, r->state_bytes, &r->job, diag);
  }
  for (size_t i = 0; i < r->job.out_count && status == LP_OK; i++)
    if (!compare(r, i, file)) status = LP_FAILED;
  lp_file_unmap(&mapping);
  release(r);
  return status;
}

static void show(void *user, const lp_diag_entry *entry) {
  lp_buf text = {0};
  (void)user;
  lp_diag_format(entry, &text);
  fprintf(stderr, "%s\n", lp_buf_text(&text));
  lp_buf_free(&text);
}

static bool has_gpu(lp_diag *diag) {
  const lp_gpu_text text = {.file = "kernels.cu", .source = ""};
  lp_gpu_device *device = NULL;
  bool found = lp_gpu_cuda.open(&text, &device, diag) == LP_OK;
  lp_gpu_cuda.close(device);
  return found;
}

int main(int argc, char **argv) {
  lp_diag *diag = lp_diag_create();
  lp_diag_set_sink(diag, show, NULL);
  int failed = 0;
  if (!has_gpu(diag)) return 77;
  for (int i = 1; i < argc; i++)
    failed += check(argv[i], diag) != LP_OK;
  printf("%d cases, %d failed\n", argc - 1, failed);
  lp_diag_free(diag);
  return failed > 0;
}
