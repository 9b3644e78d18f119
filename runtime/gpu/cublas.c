/* Calls cuBLASLt. Its matrices are column-major: y[rows][n] is its D of n x rows, w[n][k] its A of k x n, transposed,
 * and x[rows][k] its B of k x rows. */
#include "runtime/gpu/cublas.h"

#include "base/library.h"
#include "base/map.h"
#include "runtime/gpu/cublas_abi.h"

#include <pthread.h>

enum { MOST_PLANS = 1024, MOST_ALIGNMENT = 256, BIAS_ALIGNMENT = 16, NEWEST = 13, OLDEST = 11 };

/* The algorithm and the descriptors of products of one shape, number of rows and alignment. The descriptor `desc` holds
 * the bias of the latest product. */
typedef struct {
  bool found;
  void *desc, *a, *b, *d;
  lp_cublas_choice choice;
} plan;

struct lp_cublas {
#define MEMBER(name, returns, symbol, parameters) returns(*name) parameters;
  LP_CUBLAS_FUNCTIONS(MEMBER)
#undef MEMBER
  void *handle;
  char name[48];
  lp_gpu_library library;
  pthread_mutex_t one; /* guards `plans`, and the enqueueing of products */
  lp_map *plans;       /* NULL: none */
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool load(lp_cublas *c, int driver) {
#define ENTRY(name, returns, symbol, parameters) {#symbol, &c->name},
  const lp_library_function functions[] = {LP_CUBLAS_FUNCTIONS(ENTRY)};
#undef ENTRY
  for (int version = driver < NEWEST ? driver : NEWEST; version >= OLDEST; version--) {
    char file[32];
    snprintf(file, sizeof file, "libcublasLt.so.%d", version);
    if (lp_library_load(file, functions, LP_COUNT(functions))) return c->create(&c->handle) == LP_CUBLAS_STATUS_SUCCESS;
  }
  return false;
}

/* NVIDIA recommends this size: https://docs.nvidia.com/cuda/cublas/#cublassetworkspace */
static size_t workspace_for(int sm) {
  return (size_t)(sm >= 90 ? 32 : 4) << 20;
}

static lp_status is_wanted(bool *out, lp_diag *diag) {
  const char *text = getenv("LLMPART_CUBLAS");
  *out = !text || lp_streq(text, "on");
  if (*out || lp_streq(text, "off")) return LP_OK;
  return lp_error(diag, LP_LOC_FILE("LLMPART_CUBLAS"), "wanted 'on' or 'off', found '%.40s'", text);
}

lp_status lp_cublas_open(int driver, int sm, lp_cublas **out, lp_diag *diag) {
  bool wanted = false;
  *out = NULL;
  LP_TRY(is_wanted(&wanted, diag));
  if (!wanted) return LP_OK;
  lp_cublas *c = lp_alloc(sizeof *c);
  if (!load(c, driver)) {
    free(c);
    return LP_OK;
  }
  size_t version = c->version();
  snprintf(c->name, sizeof c->name, "cuBLASLt %zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
  c->library = (lp_gpu_library){c->name, workspace_for(sm)};
  pthread_mutex_init(&c->one, NULL);
  *out = c;
  return LP_OK;
}

static void free_plan(const lp_cublas *c, plan *p) {
  if (p->desc) (void)c->desc_destroy(p->desc);
  void *const layouts[] = {p->a, p->b, p->d};
  for (size_t i = 0; i < LP_COUNT(layouts); i++)
    if (layouts[i]) (void)c->layout_destroy(layouts[i]);
  free(p);
}

static void drop_plans(lp_cublas *c) {
  for (size_t i = 0; c->plans && i < lp_map_count(c->plans); i++)
    free_plan(c, lp_map_value_at(c->plans, i));
  lp_map_free(c->plans);
  c->plans = NULL;
}

void lp_cublas_close(lp_cublas *c) {
  if (!c) return;
  drop_plans(c);
  (void)c->destroy(c->handle);
  pthread_mutex_destroy(&c->one);
  free(c);
}

const lp_gpu_library *lp_cublas_library(const lp_cublas *c) {
  return c ? &c->library : NULL;
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static uint32_t alignment_of(const void *memory) {
  uintptr_t at = (uintptr_t)memory;
  return at == 0 || at % MOST_ALIGNMENT == 0 ? MOST_ALIGNMENT : (uint32_t)(at & (~at + 1));
}

static uint32_t epilogue_of(const lp_gpu_product *product) {
  static const uint32_t plain[] = {[LP_GPU_PLAIN] = LP_CUBLASLT_EPILOGUE_DEFAULT,
                                   [LP_GPU_RELU] = LP_CUBLASLT_EPILOGUE_RELU,
                                   [LP_GPU_GELU_TANH] = LP_CUBLASLT_EPILOGUE_GELU};
  static const uint32_t biased[] = {[LP_GPU_PLAIN] = LP_CUBLASLT_EPILOGUE_BIAS,
                                    [LP_GPU_RELU] = LP_CUBLASLT_EPILOGUE_RELU_BIAS,
                                    [LP_GPU_GELU_TANH] = LP_CUBLASLT_EPILOGUE_GELU_BIAS};
  return (product->bias ? biased : plain)[product->kind->epilogue];
}

static bool set_bias(const lp_cublas *c, const plan *p, const lp_gpu_product *product) {
  return !product->bias || c->desc_set(p->desc, LP_CUBLASLT_MATMUL_DESC_BIAS_POINTER, &product->bias,
                                       sizeof product->bias) == LP_CUBLAS_STATUS_SUCCESS;
}

static bool describe_product(const lp_cublas *c, const lp_gpu_product *product, plan *p) {
  static const int types[] = {
      [LP_GPU_F32] = LP_CUDA_R_32F, [LP_GPU_F16] = LP_CUDA_R_16F, [LP_GPU_BF16] = LP_CUDA_R_16BF};
  const lp_gpu_product_kind *kind = product->kind;
  const int type = types[kind->type];
  const int32_t transpose = LP_CUBLAS_OP_T;
  const uint32_t epilogue = epilogue_of(product);
  const uint64_t n = (uint64_t)kind->n, k = (uint64_t)kind->k, rows = (uint64_t)product->rows;
  return c->desc_create(&p->desc, LP_CUBLAS_COMPUTE_32F, LP_CUDA_R_32F) == LP_CUBLAS_STATUS_SUCCESS &&
         c->desc_set(p->desc, LP_CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose) ==
             LP_CUBLAS_STATUS_SUCCESS &&
         c->desc_set(p->desc, LP_CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue) ==
             LP_CUBLAS_STATUS_SUCCESS &&
         set_bias(c, p, product) && c->layout_create(&p->a, type, k, n, kind->k) == LP_CUBLAS_STATUS_SUCCESS &&
         c->layout_create(&p->b, type, k, rows, kind->k) == LP_CUBLAS_STATUS_SUCCESS &&
         c->layout_create(&p->d, LP_CUDA_R_32F, n, rows, kind->n) == LP_CUBLAS_STATUS_SUCCESS;
}

/* Without `add`, C is D's memory. */
static const void *added(const lp_gpu_product *product) {
  return product->add ? product->add : product->y;
}

static bool prefer(const lp_cublas *c, const lp_gpu_product *product, void *preference) {
  const struct {
    int attribute;
    uint32_t bytes;
  } alignment[] = {{LP_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(product->w)},
                   {LP_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(product->x)},
                   {LP_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(added(product))},
                   {LP_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(product->y)}};
  const uint64_t workspace = c->library.workspace;
  bool set = c->preference_set(preference, LP_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace) ==
             LP_CUBLAS_STATUS_SUCCESS;
  for (size_t i = 0; i < LP_COUNT(alignment) && set; i++)
    set = c->preference_set(preference, alignment[i].attribute, &alignment[i].bytes, sizeof alignment[i].bytes) ==
          LP_CUBLAS_STATUS_SUCCESS;
  return set;
}

static bool choose(const lp_cublas *c, const lp_gpu_product *product, plan *p) {
  void *preference = NULL;
  int found = 0;
  bool chosen = c->preference_create(&preference) == LP_CUBLAS_STATUS_SUCCESS && prefer(c, product, preference) &&
                c->choose(c->handle, p->desc, p->a, p->b, p->d, p->d, preference, 1, &p->choice, &found) ==
                    LP_CUBLAS_STATUS_SUCCESS &&
                found == 1 && p->choice.state == LP_CUBLAS_STATUS_SUCCESS &&
                p->choice.workspace <= c->library.workspace;
  if (preference) (void)c->preference_destroy(preference);
  return chosen;
}

/* Plans are made once. All are dropped when there are too many, as after prompts of many different lengths. */
static const plan *plan_for(lp_cublas *c, const lp_gpu_product *product) {
  const lp_gpu_product_kind *kind = product->kind;
  char key[160];
  snprintf(key, sizeof key, "%" PRId64 " %" PRId64 " %" PRId64 " %d %u %d %u %u %u %u", product->rows, kind->n, kind->k,
           (int)kind->type, epilogue_of(product), product->add != NULL, alignment_of(product->x),
           alignment_of(product->w), alignment_of(added(product)), alignment_of(product->y));
  if (c->plans && lp_map_count(c->plans) >= MOST_PLANS) drop_plans(c);
  if (!c->plans) c->plans = lp_map_create();
  plan *p = lp_map_get(c->plans, key);
  if (p) return p;
  p = lp_alloc(sizeof *p);
  p->found = describe_product(c, product, p) && choose(c, product, p);
  lp_map_put(c->plans, key, p);
  return p;
}

bool lp_cublas_takes(lp_cublas *c, const lp_gpu_product *product) {
  if (alignment_of(product->bias) < BIAS_ALIGNMENT) return false; /* epilogues need this alignment */
  pthread_mutex_lock(&c->one);
  bool found = plan_for(c, product)->found;
  pthread_mutex_unlock(&c->one);
  return found;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

int lp_cublas_multiply(lp_cublas *c, const lp_gpu_product *product, void *stream) {
  const float alpha = product->kind->scale, beta = product->add ? 1 : 0;
  int status = LP_CUBLAS_STATUS_NOT_SUPPORTED;
  pthread_mutex_lock(&c->one);
  const plan *p = plan_for(c, product);
  if (p->found && set_bias(c, p, product))
    status = c->multiply(c->handle, p->desc, &alpha, product->w, p->a, product->x, p->b, &beta, added(product), p->d,
                         product->y, p->d, &p->choice.algo, product->workspace, c->library.workspace, stream);
  pthread_mutex_unlock(&c->one);
  return status;
}

void lp_cublas_describe(const lp_cublas *c, int status, size_t size, char *text) {
  snprintf(text, size, "a product by %s failed (%s); LLMPART_CUBLAS=off avoids the library", c->name,
           c->status_name(status));
}
