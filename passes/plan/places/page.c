/* The report over places as a page. The data is the report's JSON, and page/page.js draws it. */
#include "base/page/page.h"
#include "passes/plan/places/model.h"

extern const char lp_places_page_js[];

void lp_places_html(const lp_places_facts *facts, lp_buf *out) {
  lp_buf text = {0}, data = {0}, title = {0};
  lp_places_text(facts, &text);
  lp_places_json(facts, true, &data);
  lp_buf_printf(&title, "%s: llmpart report", facts->name);
  lp_page_write(&(lp_page){lp_buf_text(&title), lp_buf_text(&data), lp_places_page_js, lp_buf_text(&text)}, out);
  lp_buf_free(&text);
  lp_buf_free(&data);
  lp_buf_free(&title);
}
