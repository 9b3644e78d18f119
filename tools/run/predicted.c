/* The report in a bundle, beside what a run measures: its plan is priced at the run's own lengths and link. */
#include "base/json/reader.h"
#include "base/path.h"
#include "base/units.h"
#include "tools/run/print.h"

#include <math.h>

/* ---- the report -------------------------------------------------------------------------------------------------- */

struct lp_run_planned {
  char *path;
  lp_json_document *document;
  lp_json root;
};

lp_run_planned *lp_run_planned_open(const char *bundle) {
  lp_run_planned *planned = lp_alloc(sizeof *planned);
  *planned = (lp_run_planned){.path = lp_path_join(bundle, "report.json")};
  if (lp_json_load(planned->path, 0, &planned->document, NULL) == LP_OK) {
    planned->root = lp_json_root(planned->path, planned->document);
    if (!lp_json_equals(LP_MEMBER(&planned->root, "schema"), "llmpart.report/1")) planned->root = (lp_json){0};
  }
  return planned;
}

void lp_run_planned_close(lp_run_planned *planned) {
  if (!planned) return;
  lp_json_free(planned->document);
  free(planned->path);
  free(planned);
}

static double number(const lp_json *object, const char *key) {
  double value = NAN;
  if (lp_json_number(LP_MEMBER(object, key), 0, 1e15, &value, NULL) != LP_OK) return NAN;
  return value;
}

static const char *name_of(const lp_json *root, const char *role) {
  return lp_json_text_of(LP_MEMBER(root, role), "name");
}

void lp_run_planned_json(const lp_run_planned *planned, lp_json_writer *json) {
  const lp_json *root = &planned->root;
  if (!lp_json_text_of(root, "placement")) return;
  lp_json_put_object(json, "planned");
  lp_json_put_text(json, "model", name_of(root, "model"));
  lp_json_put_text(json, "device", name_of(root, "device"));
  lp_json_put_text(json, "cloud", name_of(root, "cloud"));
  lp_json_put_text(json, "placement", lp_json_text_of(root, "placement"));
  lp_json_put_end(json);
}

/* ---- the link ---------------------------------------------------------------------------------------------------- */

static const char *const kinds[] = {[LP_RUN_NO_LINK] = "none",
                                    [LP_RUN_LOOPBACK] = "loopback",
                                    [LP_RUN_EMULATED] = "emulated",
                                    [LP_RUN_NETWORK] = "network"};

void lp_run_link_json(const lp_run_link *link, lp_json_writer *json) {
  lp_json_put_object(json, "link");
  lp_json_put_text(json, "kind", kinds[link->kind]);
  lp_json_put_bool(json, "measured", link->measured);
  lp_json_put_number(json, "rtt_ms", link->rtt_ms);
  lp_json_put_number(json, "up_bps", link->up_bps);
  lp_json_put_number(json, "down_bps", link->down_bps);
  lp_json_put_end(json);
}

/* ---- a prediction ------------------------------------------------------------------------------------------------ */

/* A column of the table at `tokens`, linear between lengths. */
static double at_tokens(const lp_json *table, const char *stage, const char *column, double tokens) {
  const lp_json lengths = lp_json_member(table, "tokens"), of = lp_json_member(table, stage),
                values = lp_json_member(&of, column);
  const size_t count = lp_json_count(&lengths);
  if (count < 2 || lp_json_count(&values) != count) return NAN;
  double x[2] = {0}, y[2] = {0};
  for (size_t i = 0; i < count; i++) {
    lp_json length = lp_json_item(&lengths, i), value = lp_json_item(&values, i);
    x[0] = x[1];
    y[0] = y[1];
    if (lp_json_number(&length, 0, 1e12, &x[1], NULL) != LP_OK || lp_json_number(&value, 0, 1e15, &y[1], NULL) != LP_OK)
      return NAN;
    if (i > 0 && x[1] >= tokens) break;
  }
  return y[0] + (y[1] - y[0]) * (tokens - x[0]) / (x[1] - x[0]);
}

/* The time that a stage's messages take over the run's link; figures that are unknown do not limit. */
static double link_ms(const lp_json *table, const char *stage, double tokens, const lp_run_link *link) {
  double ms = at_tokens(table, stage, "round_trips", tokens) * (isnan(link->rtt_ms) ? 0 : link->rtt_ms);
  if (link->up_bps > 0) ms += at_tokens(table, stage, "up_bytes", tokens) * 8e3 / link->up_bps;
  if (link->down_bps > 0) ms += at_tokens(table, stage, "down_bytes", tokens) * 8e3 / link->down_bps;
  return ms;
}

static double stage_ms(const lp_json *table, const char *stage, double tokens) {
  return at_tokens(table, stage, "device_ms", tokens) + at_tokens(table, stage, "cloud_ms", tokens);
}

/* "TTFT 4.39 ms (link 4.29 ms)" */
static void put_time(const char *name, double ms, double over_ms, lp_buf *out) {
  char text[32];
  lp_buf_printf(out, "%s %s", name, lp_format_ms(ms + over_ms, text));
  if (over_ms > 0) lp_buf_printf(out, " (link %s)", lp_format_ms(over_ms, text));
}

static void put_link(const lp_run_link *link, lp_buf *out) {
  char text[32];
  if (link->kind == LP_RUN_NO_LINK) return;
  if (isnan(link->rtt_ms)) {
    lp_buf_puts(out, " without its link, which was not measured");
    return;
  }
  lp_buf_printf(out, " over its link of %s", lp_format_ms(link->rtt_ms, text));
  if (link->up_bps > 0 && link->up_bps < 1e17) lp_buf_printf(out, " and %s", lp_format_rate(link->up_bps, text));
}

void lp_run_print_prediction(const lp_run_planned *planned, const lp_generation *made, int64_t prompt_tokens,
                             const lp_run_link *link, lp_buf *out) {
  const lp_json *root = &planned->root, plan = lp_json_member(root, "plan"),
                workload = lp_json_member(root, "workload"), predictions = lp_json_member(root, "predictions");
  const lp_json table = lp_json_item(&predictions, (size_t)(made->plan > 0 ? made->plan : 0));
  const double prompt = (double)prompt_tokens, middle = prompt + floor((double)made->generated / 2);
  const double ttft_ms = stage_ms(&table, "prefill", prompt), tpot_ms = stage_ms(&table, "decode", middle);
  if (isnan(ttft_ms) || isnan(tpot_ms)) return;
  if (number(&workload, "batch") != (double)made->batch) {
    lp_buf_printf(out, "no prediction: the plan is for a batch of %.0f\n", number(&workload, "batch"));
    return;
  }
  lp_buf_printf(out, "predicted for %" PRId64 " and %" PRId64 " tokens", prompt_tokens, made->generated);
  put_link(link, out);
  put_time(": TTFT", ttft_ms, link_ms(&table, "prefill", prompt, link), out);
  const double cold_ms = number(&plan, "cold_ttft_ms");
  char text[32];
  if (!isnan(cold_ms) && number(&workload, "isl") == prompt)
    lp_buf_printf(out, ", %s when the weights load", lp_format_ms(cold_ms, text));
  put_time("; TPOT", tpot_ms, link_ms(&table, "decode", middle, link), out);
  lp_buf_puts(out, "\n");
}
