/* Text quoted for the formats of reports and sweeps. */
#include "passes/plan/report/report.h"

#include <string.h>

void lp_report_quote(const char *text, lp_buf *out) {
  lp_buf_puts(out, "\"");
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\')
      lp_buf_printf(out, "\\%c", c);
    else if (c < 0x20)
      lp_buf_printf(out, "\\u%04x", c);
    else
      lp_buf_append(out, text, 1);
  }
  lp_buf_puts(out, "\"");
}

void lp_report_quote_csv(const char *text, lp_buf *out) {
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
