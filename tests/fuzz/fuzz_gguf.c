/* libFuzzer: any bytes as a GGUF file. An imported module must verify and become operators without a crash; every other
 * file must give exactly one error. If the header can be read, the tokenizer is written too. */
#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "frontend/frontend.h"
#include "tests/fuzz/fuzz_passes.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *folder;
  lp_diag *diag = lp_diag_create();
  lp_module *module = NULL;
  if (lp_dir_temporary("fuzz-gguf", &folder, NULL) != LP_OK) abort();
  char *path = lp_path_join(folder, "m.gguf");
  if (lp_file_write(path, data, size, NULL) != LP_OK) abort();
  lp_status status = lp_model_import(path, NULL, &module, diag);
  fuzz_check_reported(status, diag);
  if (status == LP_OK) {
    fuzz_verify(module, diag);
    fuzz_run_passes(module, lp_pipeline_ops, true, diag);
  }
  lp_module_free(module);
  lp_diag_clear(diag);
  fuzz_check_reported(lp_gguf_write_companions(path, folder, diag), diag);
  lp_diag_free(diag);
  lp_dir_abandon(folder);
  free(folder);
  free(path);
  return 0;
}
