/* Reads and writes W3C Trace Context, version 00. */
#include <string.h>

#include "runtime/spans/spans.h"

/* Lower-case hexadecimal digits, not all of them 0. */
static bool is_hex(const char *text, size_t digits) {
  return strspn(text, "0123456789abcdef") >= digits && strspn(text, "0") < digits;
}

void lp_traceparent_read(const char *text, char trace[LP_SPAN_TRACE + 1], char caller[LP_SPAN_ID + 1]) {
  enum { SPAN_AT = 3 + LP_SPAN_TRACE + 1, SIZE = SPAN_AT + LP_SPAN_ID + 3 };
  bool good = text && strlen(text) == SIZE && lp_has_prefix(text, "00-") && is_hex(text + 3, LP_SPAN_TRACE) &&
              text[SPAN_AT - 1] == '-' && is_hex(text + SPAN_AT, LP_SPAN_ID);
  lp_span_draw_id(trace);
  lp_span_draw_id(trace + LP_SPAN_ID);
  caller[0] = 0;
  if (!good) return;
  memcpy(trace, text + 3, LP_SPAN_TRACE);
  memcpy(caller, text + SPAN_AT, LP_SPAN_ID);
  caller[LP_SPAN_ID] = 0;
}

void lp_traceparent_write(const char *trace, const char *span, char out[LP_TRACE_CONTEXT + 1]) {
  (void)snprintf(out, LP_TRACE_CONTEXT + 1, "00-%s-%s-01", trace, span);
}
