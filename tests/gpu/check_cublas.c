/* check_cublas LIBRARY: checks that NVIDIA's library has every function that the runtime calls, and accepts the
 * attributes that it sets. Needs no GPU: no product is chosen or run. Exit status 77 where the library cannot be
 * loaded. */
#include "base/base.h"
#include "base/library.h"
#include "runtime/gpu/cublas_abi.h"

#include <dlfcn.h>

static struct {
#define MEMBER(name, returns, symbol, parameters) returns(*name) parameters;
  LP_CUBLAS_FUNCTIONS(MEMBER)
#undef MEMBER
} lt;

static int failures;

static void check(const char *what, int status) {
  if (status == LP_CUBLAS_STATUS_SUCCESS) return;
  printf("%s: %s\n", what, lt.status_name(status));
  failures++;
}

static void check_description(void) {
  static const int32_t transpose = LP_CUBLAS_OP_T;
  static const uint32_t epilogues[] = {LP_CUBLASLT_EPILOGUE_DEFAULT, LP_CUBLASLT_EPILOGUE_RELU,
                                       LP_CUBLASLT_EPILOGUE_BIAS,    LP_CUBLASLT_EPILOGUE_RELU_BIAS,
                                       LP_CUBLASLT_EPILOGUE_GELU,    LP_CUBLASLT_EPILOGUE_GELU_BIAS};
  const void *bias = epilogues;
  void *desc = NULL;
  check("descriptor", lt.desc_create(&desc, LP_CUBLAS_COMPUTE_32F, LP_CUDA_R_32F));
  if (!desc) return;
  check("transposition", lt.desc_set(desc, LP_CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose));
  for (size_t i = 0; i < LP_COUNT(epilogues); i++)
    check("epilogue", lt.desc_set(desc, LP_CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogues[i], sizeof epilogues[i]));
  check("bias", lt.desc_set(desc, LP_CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  check("descriptor's end", lt.desc_destroy(desc));
}

static void check_layouts(void) {
  static const int types[] = {LP_CUDA_R_32F, LP_CUDA_R_16F, LP_CUDA_R_16BF};
  for (size_t i = 0; i < LP_COUNT(types); i++) {
    void *layout = NULL;
    check("layout", lt.layout_create(&layout, types[i], 4096, 2048, 4096));
    if (layout) check("layout's end", lt.layout_destroy(layout));
  }
}

static void check_preference(void) {
  static const uint64_t workspace = 32 << 20;
  static const uint32_t alignment = 16;
  void *preference = NULL;
  check("preference", lt.preference_create(&preference));
  if (!preference) return;
  check("workspace",
        lt.preference_set(preference, LP_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
  for (int i = LP_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; i <= LP_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; i++)
    check("alignment", lt.preference_set(preference, i, &alignment, sizeof alignment));
  check("preference's end", lt.preference_destroy(preference));
}

int main(int argc, char **argv) {
#define ENTRY(name, returns, symbol, parameters) {#symbol, &lt.name},
  const lp_library_function functions[] = {LP_CUBLAS_FUNCTIONS(ENTRY)};
#undef ENTRY
  if (argc != 2) return LP_USAGE;
  if (dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) == NULL) return printf("%s\n", dlerror()), 77;
  if (!lp_library_load(argv[1], functions, LP_COUNT(functions))) return printf("it lacks a function\n"), 1;
  check_description();
  check_layouts();
  check_preference();
  printf("cuBLASLt %zu, %d failures\n", lt.version(), failures);
  return failures > 0;
}
