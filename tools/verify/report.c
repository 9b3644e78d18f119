/* The results of llmpart verify as text and json. */
#include "tools/verify/verify.h"

static const char *const status_name[] = {
    [LP_VERIFY_PASSED] = "passed", [LP_VERIFY_FAILED] = "failed", [LP_VERIFY_UNSUPPORTED] = "unsupported"};

static void put_json(const lp_verify_results *results, lp_buf *out) {
  lp_json_writer json = lp_json_document_begin(out, (lp_json_style){.indent = 2, .digits = 3}, "llmpart.verify/1");
  for (size_t i = 0; i < LP_COUNT(status_name); i++)
    lp_json_put_integer(&json, status_name[i], lp_verify_count(results, (lp_verify_status)i));
  lp_json_put_array(&json, "tests");
  LP_FOR_VEC(const lp_verify_result, result, results) {
    lp_json_put_flat_object(&json, NULL);
    lp_json_put_text(&json, "name", result->name);
    lp_json_put_text(&json, "status", status_name[result->status]);
    lp_json_put_text(&json, "reason", result->reason);
    if (result->bound) lp_json_put_text(&json, "bound", result->bound);
    if (result->max_error >= 0) lp_json_put_number(&json, "max_error", result->max_error);
    lp_json_put_end(&json);
  }
  lp_json_put_end(&json);
  lp_json_document_end(&json);
}

static void put_text(const lp_verify_results *results, lp_buf *out) {
  int width = 24;
  for (size_t i = 0; i < results->count; i++) {
    int length = (int)strlen(results->data[i].name);
    if (length > width) width = length < 72 ? length : 72;
  }
  LP_FOR_VEC(const lp_verify_result, result, results) {
    lp_buf_printf(out, "%-*s %s", width, result->name, status_name[result->status]);
    if (result->bound) lp_buf_printf(out, ", bound: %s", result->bound);
    if (result->reason)
      lp_buf_printf(out, ": %s", result->reason);
    else if (result->max_error >= 0)
      lp_buf_printf(out, ", within %.3g", result->max_error);
    lp_buf_puts(out, "\n");
  }
  for (size_t i = 0; i < LP_COUNT(status_name); i++)
    lp_buf_printf(out, "%s%" PRId64 " %s", i ? ", " : "", lp_verify_count(results, (lp_verify_status)i),
                  status_name[i]);
  lp_buf_puts(out, "\n");
}

lp_status lp_verify_report(const lp_verify_results *results, const char *output, lp_diag *diag) {
  lp_buf out = {0};
  if (lp_streq(output, "json"))
    put_json(results, &out);
  else
    put_text(results, &out);
  return lp_tool_write("-", &out, diag);
}
