/* libFuzzer: any bytes as an ONNX model and as a tensor file. An imported module must verify and go through every pass,
 * from raising to outlining and the report, without a crash; every other input must give exactly one error. */
#include "frontend/frontend.h"
#include "tests/fuzz/fuzz_passes.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void import(const char *path, bool generation) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = NULL;
  lp_import_options options = {.weights_absent_ok = true};
  lp_status status = lp_onnx_import(path, &options, &module, diag);
  fuzz_check_reported(status, diag);
  if (status == LP_OK) {
    fuzz_verify(module, diag);
    fuzz_run_passes(module, lp_pipeline_full, generation, diag);
  }
  lp_module_free(module);
  lp_diag_free(diag);
}

static void read_tensor(const char *path) {
  lp_diag *diag = lp_diag_create();
  lp_arena *arena = lp_arena_create();
  lp_array array;
  const char *name;
  lp_status status = lp_onnx_read_tensor(path, arena, &array, &name, diag);
  fuzz_check_reported(status, diag);
  lp_arena_free(arena);
  lp_diag_free(diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char path[64];
  int file = memfd_create("fuzz.onnx", 0);
  if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  import(path, true);
  import(path, false);
  read_tensor(path);
  close(file);
  return 0;
}
