/* Reads and makes the W3C trace context of a request. */
#include "runtime/serve/trace.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static void draw_hex(char *out, size_t digits) {
  unsigned char bytes[LP_TRACE_ID / 2] = {1};
  if (getrandom(bytes, sizeof bytes, 0) < 0) bytes[0] = 1;
  for (size_t i = 0; i < digits / 2; i++)
    (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* Lower-case hexadecimal digits, not all of them 0. */
static bool is_hex(const char *text, size_t digits) {
  return strspn(text, "0123456789abcdef") >= digits && strspn(text, "0") < digits;
}

void lp_trace_read(const char *header, char out[LP_TRACE_ID + 1]) {
  enum { SIZE = 3 + LP_TRACE_ID + 1 + 16 + 3 };
  bool good = header && strlen(header) == SIZE && lp_has_prefix(header, "00-") && is_hex(header + 3, LP_TRACE_ID) &&
              header[3 + LP_TRACE_ID] == '-' && is_hex(header + 4 + LP_TRACE_ID, 16);
  if (!good) draw_hex(out, LP_TRACE_ID);
  if (good) memcpy(out, header + 3, LP_TRACE_ID);
  out[LP_TRACE_ID] = 0;
}

void lp_trace_write_header(const char trace[LP_TRACE_ID + 1], lp_buf *out) {
  char span[17];
  draw_hex(span, 16);
  lp_buf_printf(out, "traceparent: 00-%s-%s-01", trace, span);
}
