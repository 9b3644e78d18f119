/* Prints diagnostics and results. */
#include "base/file.h"
#include "tools/tools.h"

#include <string.h>

static void print_entry(void *user, const lp_diag_entry *entry) {
  (void)user;
  lp_buf text = {0};
  lp_diag_format(entry, &text);
  fprintf(stderr, "%s\n", lp_buf_text(&text));
  lp_buf_free(&text);
}

lp_diag *lp_tool_diag(void) {
  lp_diag *diag = lp_diag_create();
  lp_diag_set_sink(diag, print_entry, NULL);
  return diag;
}

lp_status lp_tool_write(const char *path, const char *text, size_t size, lp_diag *diag) {
  return lp_file_write(path, text, size, diag);
}

lp_json_writer lp_tool_json(lp_buf *out, int digits) {
  return lp_json_writer_begin(out, (lp_json_style){.indent = 2, .digits = digits, .marks_reals = true});
}

bool lp_tool_wants(const char *out, const char *form) {
  if (!out) return false;
  const char *dot = strrchr(out, '.');
  return lp_streq(out, form) || (dot && lp_streq(dot + 1, form));
}

lp_status lp_tool_write_as(const char *out, const lp_buf *text, lp_diag *diag) {
  static const char *const forms[] = {"text", "yaml", "json", "csv", "svg"};
  const char *path = out ? out : "-";
  for (size_t i = 0; i < LP_COUNT(forms); i++)
    if (lp_streq(path, forms[i])) path = "-";
  return lp_tool_write(path, lp_buf_text(text), text->size, diag);
}
