/* Writes a page around its data. */
#include "base/page/page.h"

#include "base/page/chart.h"

extern const char lp_page_css[], lp_page_js[];

/* Inside a script element nothing may look like its end; in JSON '<' stands only in texts. */
static void put_data(const char *json, lp_buf *out) {
  for (; *json; json++)
    if (*json == '<')
      lp_buf_puts(out, "\\u003c");
    else
      lp_buf_append(out, json, 1);
}

void lp_page_write(const lp_page *page, lp_buf *out) {
  lp_buf_puts(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
  lp_markup_text(lp_buf_text(page->title), out);
  lp_buf_puts(out, "</title>\n<style>\n");
  lp_buf_puts(out, lp_page_css);
  lp_buf_puts(out, "</style>\n</head>\n<body>\n<main id=\"page\"></main>\n<noscript><pre>");
  lp_markup_text(lp_buf_text(page->text), out);
  lp_buf_puts(out, "</pre></noscript>\n<script type=\"application/json\" id=\"data\">");
  put_data(lp_buf_text(page->data), out);
  lp_buf_puts(out, "</script>\n<script>\n");
  lp_buf_puts(out, lp_page_js);
  lp_buf_puts(out, page->script);
  lp_buf_puts(out, "</script>\n</body>\n</html>\n");
  lp_buf_free(page->title);
  lp_buf_free(page->data);
  lp_buf_free(page->text);
}
