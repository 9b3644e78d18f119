/* The report as one self-contained page: the text, and the operators as a table with their sides in colour. */
#include "base/side.h"
#include "passes/plan/report/report.h"

#include "base/chart.h"

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>llmpart report</title>\n<style>\n"
    "body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em; color: #1b1f24; "
    "background: #fff; }\n"
    "pre { background: #f6f8fa; padding: 1em; overflow-x: auto; }\n"
    "table { border-collapse: collapse; width: 100%; }\n"
    "th, td { text-align: right; padding: 2px 10px; border-bottom: 1px solid #d9dee3; }\n"
    "th { position: sticky; top: 0; background: #fff; }\n"
    "th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }\n"
    ".cloud { background: #e7f0fd; }\n.device { background: #fdf3e2; }\n"
    "@media (prefers-color-scheme: dark) { body, th { background: #14171a; color: #e4e7ea; } pre { background: "
    "#1e2327; } "
    "th, td { border-color: #343b42; } .cloud { background: #17304f; } .device { background: #4a3413; } }\n"
    "</style>\n</head>\n<body>\n";

static void put_operators(const lp_report *report, lp_stage stage, lp_buf *out) {
  lp_buf_printf(out,
                "<h2>%s</h2>\n<table>\n<tr><th>operator</th><th>kind</th><th>layer</th><th>side</th><th>MFLOP</th>"
                "<th>kB</th><th>FLOP/B</th><th>device &micro;s</th><th>cloud &micro;s</th></tr>\n",
                lp_stage_names[stage]);
  for (int32_t i = 0; i < report->operator_count; i++) {
    const lp_report_operator *item = &report->operators[i];
    if (item->stage != stage) continue;
    const lp_plan_op *op = item->op;
    double bytes = op->bytes[item->side];
    lp_buf_printf(out, "<tr class=\"%s\"><td>", lp_side_name(item->side));
    lp_markup_text(lp_op_str(op->op, "name", ""), out);
    lp_buf_printf(out,
                  "</td><td>%s</td><td>%" PRId64 "</td><td>%s</td><td>%.4g</td><td>%.4g</td><td>%.3g</td><td>%.4g</td>"
                  "<td>%.4g</td></tr>\n",
                  lp_op_info_get(op->op->kind)->name, lp_op_i64(op->op, "layer", -1), lp_side_name(item->side),
                  op->flops * 1e-6, bytes * 1e-3, bytes > 0 ? op->flops / bytes : 0, op->ms[LP_SIDE_DEVICE] * 1e3,
                  op->ms[LP_SIDE_CLOUD] * 1e3);
  }
  lp_buf_puts(out, "</table>\n");
}

void lp_report_html(const lp_report *report, lp_buf *out) {
  lp_buf text = {0};
  lp_report_text(report, &text);
  lp_buf_puts(out, head);
  lp_buf_puts(out, "<h1>");
  lp_markup_text(report->name, out);
  lp_buf_puts(out, "</h1>\n<pre>");
  lp_markup_text(lp_buf_text(&text), out);
  lp_buf_puts(out, "</pre>\n");
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    put_operators(report, (lp_stage)stage, out);
  lp_buf_puts(out, "</body>\n</html>\n");
  lp_buf_free(&text);
}
