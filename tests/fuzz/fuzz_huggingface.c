/* libFuzzer: any bytes as config.json and, after a NUL, as model.safetensors. An imported module must verify and become
 * operators without a crash; every other input must give exactly one error. */
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "frontend/frontend.h"
#include "tests/fuzz/fuzz_passes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_file(const char *folder, const char *name, const uint8_t *data, size_t size) {
  char *path = lp_path_join(folder, name);
  if (lp_file_write(path, data, size, NULL) != LP_OK) abort();
  free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *end = memchr(data, 0, size);
  size_t config = end ? (size_t)(end - data) : size, skipped = end ? config + 1 : size;
  char *folder;
  lp_diag *diag = lp_diag_create();
  lp_module *module = NULL;
  if (lp_dir_temporary("fuzz-huggingface", &folder, NULL) != LP_OK) abort();
  write_file(folder, "config.json", data, config);
  write_file(folder, "model.safetensors", data + skipped, size - skipped);
  lp_status status = lp_model_import(folder, NULL, &module, diag);
  fuzz_check_reported(status, diag);
  if (status == LP_OK) {
    fuzz_verify(module, diag);
    fuzz_run_passes(module, lp_pipeline_ops, true, diag);
  }
  lp_module_free(module);
  lp_diag_free(diag);
  lp_dir_abandon(folder);
  free(folder);
  return 0;
}
