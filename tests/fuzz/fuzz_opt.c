/* libFuzzer: `llmpart opt` on any text. The first line is the pipeline, the rest the module. A module that verifies
 * must go through the passes without a crash, and the result must verify and parse again. Pipelines that name machines
 * are left out: those are files, or a measurement of this one. */
#include "tests/fuzz/fuzz_passes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(const char *pipeline, const char *text, size_t size) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = NULL, *again = NULL;
  lp_buf printed = {0};
  lp_status status = lp_module_parse("fuzz", text, size, &module, diag);
  if (status == LP_OK) status = lp_module_verify(module, diag);
  fuzz_check_reported(status, diag);
  if (status == LP_OK && fuzz_run_passes(module, pipeline, true, diag)) {
    lp_module_print(module, true, &printed);
    status = lp_module_parse("fuzz", lp_buf_text(&printed), printed.size, &again, diag);
    fuzz_check_reported(status, diag);
    if (status != LP_OK) abort();
  }
  lp_buf_free(&printed);
  lp_module_free(again);
  lp_module_free(module);
  lp_diag_free(diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
  if (!end) return 0;
  size_t length = (size_t)(end - data);
  char *pipeline = lp_alloc(length + 1);
  memcpy(pipeline, data, length);
  bool machines = strstr(pipeline, "device=") || strstr(pipeline, "cloud=") || strstr(pipeline, "link=");
  if (!machines) run(pipeline, (const char *)end + 1, size - length - 1);
  free(pipeline);
  return 0;
}
