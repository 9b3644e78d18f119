/* The report in a bundle, beside what a run measures. */
#include "base/file.h"
#include "base/json/reader.h"
#include "base/path.h"
#include "base/units.h"
#include "tools/run/print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double number(const lp_json *object, const char *key) {
  lp_json at = lp_json_member(object, key);
  double value = NAN;
  if (lp_json_number(&at, 0, 1e15, &value, NULL) != LP_OK) return NAN;
  return value;
}

/* "TTFT 4.39 ms (link 4.29 ms; 10.1 ms when the weights load)" */
static void put_time(const char *name, double ms, double link_ms, double cold_ms, lp_buf *out) {
  char text[32];
  lp_buf_printf(out, "%s %s", name, lp_format_ms(ms, text));
  if (link_ms > 0) lp_buf_printf(out, " (link %s)", lp_format_ms(link_ms, text));
  if (!isnan(cold_ms)) lp_buf_printf(out, ", %s when the weights load", lp_format_ms(cold_ms, text));
}

static void put_prediction(const lp_json *root, lp_buf *out) {
  lp_json plan = lp_json_member(root, "plan"), workload = lp_json_member(root, "workload"),
          link = lp_json_member(root, "link"), name = lp_json_member(&link, "name");
  const char *over = lp_json_text_or(&name, "the link"); /* a link without a name is named after its figures */
  const double ttft_ms = number(&plan, "ttft_ms"), tpot_ms = number(&plan, "tpot_ms");
  if (isnan(ttft_ms) || isnan(tpot_ms)) return;
  lp_buf_printf(out, "predicted for %.0f tokens", number(&workload, "isl"));
  if (number(&plan, "prefill_link_ms") > 0 || number(&plan, "decode_link_ms") > 0)
    lp_buf_printf(out, " over %s", strchr(over, '=') ? "the link" : over);
  put_time(": TTFT", ttft_ms, number(&plan, "prefill_link_ms"), number(&plan, "cold_ttft_ms"), out);
  put_time("; TPOT", tpot_ms, number(&plan, "decode_link_ms"), NAN, out);
  lp_buf_puts(out, "\n");
}

void lp_run_print_prediction(const char *bundle, lp_buf *out) {
  char *path = lp_path_join(bundle, "report.json"), *text = NULL;
  size_t size = 0;
  lp_json_document *document = NULL;
  if (lp_file_read(path, &text, &size, NULL) == LP_OK && lp_json_parse(path, text, size, 0, &document, NULL) == LP_OK) {
    lp_json root = lp_json_root(path, document), schema = lp_json_member(&root, "schema");
    if (lp_json_equals(&schema, "llmpart.report/1")) put_prediction(&root, out);
  }
  lp_json_free(document);
  free(text);
  free(path);
}
