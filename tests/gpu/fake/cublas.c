/* A stand-in for NVIDIA's cuBLASLt that works with fake/cuda.c: it computes products on this processor, enqueued on its
 * streams. It refuses products for which the library has no algorithm, compares memory, alignments and workspace with
 * the preferences given to the heuristic, and overwrites the whole workspace. The environment sets its behaviour:
 *   LP_FAKE_CUBLAS      absent: there is no handle;  none: the heuristic finds nothing;  plain: only without epilogue;
 *   fail: products
 *                       fail;  recorded: those that are recorded do
 *   LP_FAKE_CUBLAS_LOG  a file that gets a line of what was done at the process's end
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { F32 = 0, F16 = 2, BF16 = 14, COMPUTE_F32 = 68, NONE = 1, RELU = 2, BIAS = 4, GELU = 32 };

typedef struct {
  int type;
  uint64_t rows, columns;
  int64_t apart; /* elements from one column to the next */
} layout;

typedef struct {
  int compute, scale;
  int32_t turn[2]; /* A, B */
  uint32_t epilogue;
  const float *bias;
} descriptor;

typedef struct {
  uint64_t workspace;
  uint32_t alignment[4]; /* A, B, C, D */
} preference;

/* The preferences given to the heuristic: 64 bytes. */
typedef struct {
  uint64_t m, n, k, workspace;
  uint32_t alignment[4], epilogue, type;
  uint64_t mark;
} algorithm;
_Static_assert(sizeof(algorithm) == 64, "cublasLtMatmulAlgo_t");
enum { MARK = 0x4c74 };

typedef struct {
  algorithm algo;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} choice;

typedef struct {
  layout a, b, d;
  uint32_t epilogue;
  float alpha, beta;
  const void *at_a, *at_b;
  const float *bias, *c;
  float *y;
  void *workspace;
  size_t workspace_bytes;
} product;

EXPORT int cublasLtCreate(void **handle);
EXPORT int cublasLtDestroy(void *handle);
EXPORT size_t cublasLtGetVersion(void);
EXPORT const char *cublasLtGetStatusName(int status);
EXPORT int cublasLtMatrixLayoutCreate(layout **out, int type, uint64_t rows, uint64_t columns, int64_t apart);
EXPORT int cublasLtMatrixLayoutDestroy(layout *l);
EXPORT int cublasLtMatmulDescCreate(descriptor **out, int compute, int scale);
EXPORT int cublasLtMatmulDescDestroy(descriptor *d);
EXPORT int cublasLtMatmulDescSetAttribute(descriptor *d, int attribute, const void *value, size_t bytes);
EXPORT int cublasLtMatmulPreferenceCreate(preference **out);
EXPORT int cublasLtMatmulPreferenceDestroy(preference *p);
EXPORT int cublasLtMatmulPreferenceSetAttribute(preference *p, int attribute, const void *value, size_t bytes);
EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, const descriptor *desc, const layout *a, const layout *b,
                                          const layout *c, const layout *d, const preference *p, int wanted,
                                          choice *out, int *found);
EXPORT int cublasLtMatmul(void *handle, const descriptor *desc, const float *alpha, const void *at_a, const layout *a,
                          const void *at_b, const layout *b, const float *beta, const void *at_c, const layout *c,
                          void *at_d, const layout *d, const algorithm *algo, void *workspace, size_t workspace_bytes,
                          void *stream);

/* ---- the driver's stand-in --------------------------------------------------------------------------------------- */

static struct {
  void (*enqueue)(void *stream, void (*run)(const void *data), const void *data, size_t bytes);
  int (*is_ours)(const void *at, size_t bytes);
  int (*is_recorded)(const void *stream);
} driver;
static struct {
  long products, choices, refused;
} done;

static int pretends(const char *what) {
  const char *text = getenv("LP_FAKE_CUBLAS");
  return text && strcmp(text, what) == 0;
}

static void write_log(void) {
  const char *path = getenv("LP_FAKE_CUBLAS_LOG");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  fprintf(file, "products %ld choices %ld refused %ld\n", done.products, done.choices, done.refused);
  fclose(file);
}

static int find_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *found[3];
  if (!library) return 0;
  found[0] = dlsym(library, "lp_fake_enqueue");
  found[1] = dlsym(library, "lp_fake_is_ours");
  found[2] = dlsym(library, "lp_fake_is_recorded");
  memcpy(&driver, found, sizeof driver);
  return found[0] && found[1] && found[2];
}

int cublasLtCreate(void **handle) {
  static int once;
  if (pretends("absent") || !find_driver()) return NOT_INITIALIZED;
  if (!once) atexit(write_log);
  once = 1;
  *handle = &driver;
  return SUCCESS;
}

int cublasLtDestroy(void *handle) {
  return handle == &driver ? SUCCESS : INVALID_VALUE;
}

size_t cublasLtGetVersion(void) {
  return 120901;
}

const char *cublasLtGetStatusName(int status) {
  return status == EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
         : status == INVALID_VALUE  ? "CUBLAS_STATUS_INVALID_VALUE"
                                    : "another status";
}

/* ---- descriptions ------------------------------------------------------------------------------------------------ */

int cublasLtMatrixLayoutCreate(layout **out, int type, uint64_t rows, uint64_t columns, int64_t apart) {
  if (apart < (int64_t)rows) return INVALID_VALUE;
  *out = calloc(1, sizeof **out);
  **out = (layout){type, rows, columns, apart};
  return SUCCESS;
}

int cublasLtMatrixLayoutDestroy(layout *l) {
  free(l);
  return SUCCESS;
}

int cublasLtMatmulDescCreate(descriptor **out, int compute, int scale) {
  *out = calloc(1, sizeof **out);
  **out = (descriptor){.compute = compute, .scale = scale, .epilogue = NONE};
  return SUCCESS;
}

int cublasLtMatmulDescDestroy(descriptor *d) {
  free(d);
  return SUCCESS;
}

int cublasLtMatmulDescSetAttribute(descriptor *d, int attribute, const void *value, size_t bytes) {
  void *const to[] = {[3] = &d->turn[0], [4] = &d->turn[1], [7] = &d->epilogue, [8] = &d->bias};
  if (attribute < 3 || attribute > 8 || !to[attribute] || bytes != (attribute == 8 ? sizeof d->bias : 4))
    return INVALID_VALUE;
  memcpy(to[attribute], value, bytes);
  return SUCCESS;
}

int cublasLtMatmulPreferenceCreate(preference **out) {
  *out = calloc(1, sizeof **out);
  for (int i = 0; i < 4; i++)
    (*out)->alignment[i] = 256;
  return SUCCESS;
}

int cublasLtMatmulPreferenceDestroy(preference *p) {
  free(p);
  return SUCCESS;
}

int cublasLtMatmulPreferenceSetAttribute(preference *p, int attribute, const void *value, size_t bytes) {
  int is_alignment = attribute >= 5 && attribute <= 8;
  if ((!is_alignment && attribute != 1) || bytes != (is_alignment ? sizeof(uint32_t) : sizeof(uint64_t)))
    return INVALID_VALUE;
  memcpy(is_alignment ? (void *)&p->alignment[attribute - 5] : (void *)&p->workspace, value, bytes);
  return SUCCESS;
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

static size_t width_of(int type) {
  return type == F32 ? 4 : 2;
}

/* A is k x m and turned, B k x n, D m x n; that is all that is done here. */
static int fits(const descriptor *desc, const layout *a, const layout *b, const layout *c, const layout *d) {
  uint32_t rest = desc->epilogue & ~(uint32_t)BIAS;
  return desc->compute == COMPUTE_F32 && desc->scale == F32 && desc->turn[0] == 1 && desc->turn[1] == 0 &&
         (rest == 0 || rest == NONE || rest == RELU || rest == GELU) &&
         ((desc->epilogue & BIAS) == 0 || (uintptr_t)desc->bias % 16 == 0) && a->type == b->type &&
         (a->type == F32 || a->type == F16 || a->type == BF16) && d->type == F32 && a->rows == b->rows &&
         a->columns == d->rows && b->columns == d->columns && memcmp(c, d, sizeof *c) == 0;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, const descriptor *desc, const layout *a, const layout *b,
                                   const layout *c, const layout *d, const preference *p, int wanted, choice *out,
                                   int *found) {
  *found = 0;
  if (handle != &driver || wanted < 1) return INVALID_VALUE;
  done.choices++;
  if (!fits(desc, a, b, c, d) || pretends("none") || (pretends("plain") && desc->epilogue != NONE)) {
    done.refused++;
    return NOT_SUPPORTED;
  }
  *out = (choice){.workspace = p->workspace, .waves = 1};
  out->algo = (algorithm){.m = d->rows, .n = d->columns, .k = a->rows, .workspace = p->workspace, .mark = MARK};
  out->algo.epilogue = desc->epilogue;
  out->algo.type = (uint32_t)a->type;
  memcpy(out->algo.alignment, p->alignment, sizeof p->alignment);
  *found = 1;
  return SUCCESS;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static float element(const void *from, int type, size_t i) {
  if (type == F32) return ((const float *)from)[i];
  uint16_t bits = ((const uint16_t *)from)[i];
  if (type == BF16) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
  }
  _Float16 half;
  memcpy(&half, &bits, sizeof half);
  return (float)half;
}

static float *widened(const void *from, const layout *l) {
  float *to = calloc((size_t)(l->rows * l->columns) + 1, sizeof *to);
  for (uint64_t column = 0; column < l->columns; column++)
    for (uint64_t row = 0; row < l->rows; row++)
      to[column * l->rows + row] = element(from, l->type, column * (uint64_t)l->apart + row);
  return to;
}

static float finished(const product *p, uint64_t row, float v) {
  if (p->epilogue & BIAS) v += p->bias[row];
  if (p->epilogue & RELU) v = v > 0 ? v : 0;
  if (p->epilogue & GELU) v = 0.5f * v * (1 + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
  return v;
}

static void run(const void *data) {
  const product *p = data;
  const uint64_t k = p->a.rows;
  float *a = widened(p->at_a, &p->a), *b = widened(p->at_b, &p->b);
  memset(p->workspace, 0xee, p->workspace_bytes);
  for (uint64_t column = 0; column < p->d.columns; column++)
    for (uint64_t row = 0; row < p->d.rows; row++) {
      const float *left = a + row * k, *right = b + column * k;
      const size_t at = column * (uint64_t)p->d.apart + row;
      float sum = 0;
      for (uint64_t i = 0; i < k; i++)
        sum += left[i] * right[i];
      sum *= p->alpha;
      if (p->beta != 0) sum += p->beta * p->c[at];
      p->y[at] = finished(p, row, sum);
    }
  free(a);
  free(b);
}

static int holds(const void *at, const layout *l, uint32_t alignment) {
  uint64_t elements = (l->columns - 1) * (uint64_t)l->apart + l->rows;
  return (uintptr_t)at % alignment == 0 && driver.is_ours(at, elements * width_of(l->type));
}

int cublasLtMatmul(void *handle, const descriptor *desc, const float *alpha, const void *at_a, const layout *a,
                   const void *at_b, const layout *b, const float *beta, const void *at_c, const layout *c, void *at_d,
                   const layout *d, const algorithm *algo, void *workspace, size_t workspace_bytes, void *stream) {
  const int told = algo->mark == MARK && algo->m == d->rows && algo->n == d->columns && algo->k == a->rows &&
                   algo->epilogue == desc->epilogue && algo->type == (uint32_t)a->type;
  if (handle != &driver || !fits(desc, a, b, c, d) || !told || workspace_bytes < algo->workspace ||
      (uintptr_t)workspace % 256 != 0 || !driver.is_ours(workspace, algo->workspace) ||
      !holds(at_a, a, algo->alignment[0]) || !holds(at_b, b, algo->alignment[1]) ||
      !holds(at_c, c, algo->alignment[2]) || !holds(at_d, d, algo->alignment[3]) ||
      ((desc->epilogue & BIAS) && !driver.is_ours(desc->bias, d->rows * sizeof(float))))
    return INVALID_VALUE;
  if (pretends("fail") || (pretends("recorded") && driver.is_recorded(stream))) return EXECUTION_FAILED;
  const product made = {.a = *a,
                        .b = *b,
                        .d = *d,
                        .epilogue = desc->epilogue,
                        .alpha = *alpha,
                        .beta = *beta,
                        .at_a = at_a,
                        .at_b = at_b,
                        .bias = desc->bias,
                        .c = at_c,
                        .y = at_d,
                        .workspace = workspace,
                        .workspace_bytes = algo->workspace};
  driver.enqueue(stream, run, &made, sizeof made);
  done.products++;
  return SUCCESS;
}
