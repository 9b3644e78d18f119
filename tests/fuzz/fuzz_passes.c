/* Pipelines under libFuzzer: see fuzz_passes.h. */
#include "tests/fuzz/fuzz_passes.h"
#include "passes/plan/plan.h"

#include <stdlib.h>
#include <string.h>

static void stop(const lp_diag *diag) {
  for (size_t i = 0; i < lp_diag_count(diag); i++) {
    lp_buf text = {0};
    lp_diag_format(lp_diag_get(diag, i), &text);
    fprintf(stderr, "%s\n", lp_buf_text(&text));
    lp_buf_free(&text);
  }
  abort();
}

void fuzz_check_reported(lp_status status, lp_diag *diag) {
  if (lp_diag_error_count(diag) != (status == LP_OK ? 0 : 1)) stop(diag);
  lp_diag_clear(diag);
}

void fuzz_verify(const lp_module *module, lp_diag *diag) {
  if (lp_module_verify(module, diag) != LP_OK) stop(diag);
}

/* Loaded once: they are the compiler's, not the input's. */
static const lp_compile_request *request_of(bool generation) {
  static lp_machine *device, *cloud;
  static lp_link *link;
  static lp_compile_request requests[2];
  if (!device) {
    if (lp_hw_load("jetson-nano", &device, NULL) != LP_OK || lp_hw_load("v100s", &cloud, NULL) != LP_OK ||
        lp_link_load("lan", &link, NULL) != LP_OK)
      abort();
    for (int i = 0; i < 2; i++)
      requests[i] = (lp_compile_request){.device = device,
                                         .cloud = cloud,
                                         .link = link,
                                         .isl = 32,
                                         .osl = 8,
                                         .batch = 1,
                                         .scheduler = i ? "layer" : "greedy",
                                         .objective = "cost",
                                         .ttft_ms = 2000,
                                         .generation = i};
  }
  return &requests[generation];
}

bool fuzz_run_passes(lp_module *module, const char *pipeline, bool generation, lp_diag *diag) {
  const lp_run_options options = {.verify_each = true};
  const lp_compile_request *request = request_of(generation);
  lp_status status = lp_passes_run(module, pipeline, request, &options, diag);
  const lp_diag_entry *last = lp_diag_count(diag) > 0 ? lp_diag_get(diag, lp_diag_count(diag) - 1) : NULL;
  if (status != LP_OK && last && lp_has_prefix(last->text, "after pass ")) stop(diag);
  fuzz_check_reported(status, diag);
  if (status != LP_OK) return false;
  lp_buf text = {0};
  lp_report *report = NULL;
  status = lp_report_create(module, request, &report, diag);
  if (status == LP_OK) status = lp_report_write(report, "json", true, &text, diag);
  fuzz_check_reported(status, diag);
  lp_report_free(report);
  lp_buf_free(&text);
  return true;
}
