/* libFuzzer: the IR parser. A text that parses is verified, printed and parsed again; the second printed text must
 * equal the first. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ir/ir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(lp_module *module, lp_diag *diag) {
  lp_buf first = {0}, second = {0};
  lp_module *again = NULL;
  lp_module_print(module, true, &first);
  if (lp_module_parse("fuzz", lp_buf_text(&first), first.size, &again, diag) != LP_OK) abort();
  lp_module_print(again, true, &second);
  if (strcmp(lp_buf_text(&first), lp_buf_text(&second)) != 0) abort();
  lp_module_free(again);
  lp_buf_free(&first);
  lp_buf_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lp_diag *diag = lp_diag_create();
  lp_module *module = NULL;
  if (lp_module_parse("fuzz", (const char *)data, size, &module, diag) == LP_OK) {
    if (lp_module_verify(module, diag) == LP_OK) check_round_trip(module, diag);
    lp_module_free(module);
  } else if (lp_diag_error_count(diag) == 0) {
    abort(); /* a failure without a diagnostic */
  }
  lp_diag_free(diag);
  return 0;
}
