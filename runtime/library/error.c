/* Messages, and structs that begin with their size. */
#include "runtime/library/internal.h"

enum { MESSAGE_BYTES = 2048 };

static _Thread_local char message[MESSAGE_BYTES];
static llmpart_log *log_line;
static void *log_user;

const char *llmpart_version(void) {
  return LP_VERSION;
}

const char *llmpart_error(void) {
  return message;
}

void llmpart_set_log(llmpart_log *log, void *user) {
  log_line = log;
  log_user = user;
}

static void pass_on(void *user, const lp_diag_entry *entry) {
  (void)user;
  if (entry->severity != LP_WARNING || !log_line) return;
  LP_OWNED(lp_buf_free) lp_buf line = {0};
  lp_diag_format(entry, &line);
  log_line(log_user, lp_buf_text(&line));
}

lp_diag *lp_library_begin(void) {
  lp_diag *diag = lp_diag_create();
  lp_diag_set_sink(diag, pass_on, NULL);
  return diag;
}

/* The first error and the notes that belong to it, a line each. */
static void keep_message(const lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  bool found = false;
  for (size_t i = 0; i < lp_diag_count(diag); i++) {
    const lp_diag_entry *entry = lp_diag_get(diag, i);
    if (found && entry->severity != LP_NOTE) break;
    if (!found && entry->severity != LP_ERROR) continue;
    if (found) lp_buf_puts(&text, "\n");
    lp_diag_format(entry, &text);
    found = true;
  }
  snprintf(message, sizeof message, "%s", lp_buf_text(&text));
}

bool lp_library_end(lp_diag *diag, lp_status status) {
  if (status != LP_OK && diag) keep_message(diag);
  lp_diag_free(diag);
  return status == LP_OK;
}

static size_t size_of(const void *given) {
  size_t size;
  memcpy(&size, given, sizeof size);
  return size;
}

lp_status lp_library_options(const void *given, void *out, size_t size, const char *what, lp_diag *diag) {
  if (!given) return LP_OK;
  size_t own = size_of(given);
  if (own < sizeof own)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "%s: its size is not set: begin with {.size = sizeof(%s)}", what,
                       what);
  for (size_t i = size; i < own; i++)
    if (((const char *)given)[i])
      return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "%s: this library, version %s, does not know all its fields",
                         what, LP_VERSION);
  memcpy(out, given, own < size ? own : size);
  return LP_OK;
}

void lp_library_result(const void *from, size_t size, void *out) {
  size_t own = size_of(out);
  if (own > size) own = size;
  if (own > sizeof own) memcpy((char *)out + sizeof own, (const char *)from + sizeof own, own - sizeof own);
}
