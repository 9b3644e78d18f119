/* Puts the page together: page/page.js draws it and page/page.css is its style. */
#include "runtime/serve/http/page.h"

#include "base/base.h"

extern const char lp_serve_page_css[], lp_serve_page_js[];

char *lp_page_html(void) {
  lp_buf out = {0};
  lp_buf_puts(&out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<link rel=\"icon\" href=\"data:,\">\n<title>llmpart serve</title>\n<style>\n");
  lp_buf_puts(&out, lp_serve_page_css);
  lp_buf_puts(&out, "</style>\n</head>\n<body>\n<main id=\"page\"></main>\n"
                    "<noscript>The page requires JavaScript; /v1/status has the same as JSON.</noscript>\n<script>\n");
  lp_buf_puts(&out, lp_serve_page_js);
  lp_buf_puts(&out, "</script>\n</body>\n</html>\n");
  return out.data;
}
