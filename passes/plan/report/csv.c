/* The report's operators as CSV: one row each, for spreadsheets. */
#include "base/side.h"
#include "passes/plan/report/report.h"

#include <string.h>

/* RFC 4180: quoted where it must be. */
static void put_field(lp_buf *out, const char *text) {
  if (!strpbrk(text, ",\"\n")) {
    lp_buf_puts(out, text);
    return;
  }
  lp_buf_puts(out, "\"");
  for (; *text; text++) {
    if (*text == '"') lp_buf_puts(out, "\"");
    lp_buf_append(out, text, 1);
  }
  lp_buf_puts(out, "\"");
}

void lp_report_csv(const lp_report *report, lp_buf *out) {
  lp_buf_puts(out, "name,kind,layer,stage,side,flops,bytes,ratio,device_ms,cloud_ms\n");
  for (int32_t i = 0; i < report->operator_count; i++) {
    const lp_report_operator *item = &report->operators[i];
    const lp_plan_op *op = item->op;
    double bytes = op->bytes[item->side];
    put_field(out, lp_op_str(op->op, "name", ""));
    lp_buf_printf(out, ",%s,%" PRId64 ",%s,%s,%.12g,%.12g,%.12g,%.12g,%.12g\n", lp_op_info_get(op->op->kind)->name,
                  lp_op_i64(op->op, "layer", -1), lp_stage_names[item->stage], lp_side_name(item->side), op->flops,
                  bytes, bytes > 0 ? op->flops / bytes : 0, op->ms[LP_SIDE_DEVICE], op->ms[LP_SIDE_CLOUD]);
  }
}
