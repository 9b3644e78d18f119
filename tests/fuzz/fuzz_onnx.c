/* libFuzzer: any bytes as an ONNX model and as a tensor file. What is imported must verify, fold and bind without a crash;
 * all else must be reported exactly once. */
#include "frontend/frontend.h"
#include "passes/passes.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const lp_pass lp_pass_fold, lp_pass_bind_inputs;

static void verify(const lp_module *module, lp_diag *diag) {
  if (lp_module_verify(module, diag) == LP_OK) return;
  lp_buf text = {0};
  lp_diag_format(lp_diag_get(diag, lp_diag_count(diag) - 1), &text);
  fprintf(stderr, "%s\n", lp_buf_text(&text));
  abort();
}

/* The passes that run on whatever was imported. */
static void run_passes(lp_module *module, lp_diag *diag) {
  const lp_pass *const passes[] = {&lp_pass_fold, &lp_pass_bind_inputs, &lp_pass_fold};
  lp_request request = {.generation = true};
  lp_pass_context context = {.diag = diag, .request = &request, .scratch = lp_arena_create()};
  for (size_t i = 0; i < LP_COUNT(passes); i++) {
    if (passes[i]->run(module, &context) != LP_OK) break;
    verify(module, diag);
    lp_arena_reset(context.scratch);
  }
  lp_arena_free(context.scratch);
}

static void import(const char *path) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = NULL;
  lp_import_options options = {.weights_absent_ok = true};
  lp_status status = lp_onnx_import(path, &options, &module, diag);
  if ((status == LP_OK) != (lp_diag_error_count(diag) == 0)) abort();
  if (status == LP_OK) {
    verify(module, diag);
    run_passes(module, diag);
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
  if ((status == LP_OK) != (lp_diag_error_count(diag) == 0)) abort();
  lp_arena_free(arena);
  lp_diag_free(diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char path[64];
  int file = memfd_create("fuzz.onnx", 0);
  if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
  snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
  import(path);
  read_tensor(path);
  close(file);
  return 0;
}
