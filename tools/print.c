/* Prints diagnostics and results. */
#include "base/file.h"
#include "tools/tools.h"

#include <unistd.h>

bool lp_tool_is_coloured(FILE *stream) {
  const char *plain = getenv("NO_COLOR"), *terminal = getenv("TERM");
  return isatty(fileno(stream)) && !(plain && plain[0]) && terminal && !lp_streq(terminal, "dumb");
}

bool lp_tool_shows_progress(const lp_tool_voice *voice) {
  return isatty(STDERR_FILENO) && !voice->quiet;
}

/* With --quiet only errors and their notes are printed. */
static bool is_wanted(lp_tool_voice *voice, lp_severity severity) {
  if (severity != LP_NOTE) voice->follows_error = severity == LP_ERROR;
  return !voice->quiet || voice->follows_error;
}

static void print_entry(void *user, const lp_diag_entry *entry) {
  static const lp_diag_style colours = {
      "\x1b[1m", {[LP_NOTE] = "\x1b[1;36m", [LP_WARNING] = "\x1b[1;35m", [LP_ERROR] = "\x1b[1;31m"}, "\x1b[0m"};
  lp_tool_voice *voice = user;
  if (!is_wanted(voice, entry->severity)) return;
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  if (voice->is_coloured)
    lp_diag_format_styled(entry, &colours, &text);
  else
    lp_diag_format(entry, &text);
  fprintf(stderr, "%s\n", lp_buf_text(&text));
}

lp_diag *lp_tool_diag(lp_tool_voice *voice) {
  lp_diag *diag = lp_diag_create();
  voice->is_coloured = lp_tool_is_coloured(stderr);
  lp_diag_set_sink(diag, print_entry, voice);
  return diag;
}

lp_status lp_tool_write(const char *path, lp_buf *text, lp_diag *diag) {
  lp_status status = lp_file_write(path, lp_buf_text(text), text->size, diag);
  lp_buf_free(text);
  return status;
}

lp_json_writer lp_tool_json(lp_buf *out, int digits, const char *schema) {
  return lp_json_document_begin(out, (lp_json_style){.indent = 2, .digits = digits, .marks_reals = true}, schema);
}

bool lp_tool_wants(const char *out, const char *form) {
  if (!out) return false;
  const char *dot = strrchr(out, '.');
  return lp_streq(out, form) || (dot && lp_streq(dot + 1, form));
}

lp_status lp_tool_write_as(const char *out, lp_buf *text, lp_diag *diag) {
  static const char *const forms[] = {"text", "yaml", "json", "csv", "html", "svg"};
  const char *path = out ? out : "-";
  for (size_t i = 0; i < LP_COUNT(forms); i++)
    if (lp_streq(path, forms[i])) path = "-";
  return lp_tool_write(path, text, diag);
}
