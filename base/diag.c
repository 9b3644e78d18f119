/* Diagnostics: a list of located messages, their text form, and names that are nearly right. */
#include "base/base.h"

struct lp_diag {
  lp_arena *arena; /* texts of the entries and their locations */
  LP_VEC(lp_diag_entry) entries;
  size_t error_count;
  lp_diag_sink *sink;
  void *sink_user;
};

lp_diag *lp_diag_create(void) {
  lp_diag *diag = lp_alloc(sizeof *diag);
  diag->arena = lp_arena_create();
  return diag;
}

void lp_diag_free(lp_diag *diag) {
  if (!diag) return;
  lp_arena_free(diag->arena);
  lp_vec_free(&diag->entries);
  free(diag);
}

void lp_diag_set_sink(lp_diag *diag, lp_diag_sink *sink, void *user) {
  diag->sink = sink;
  diag->sink_user = user;
}

size_t lp_diag_count(const lp_diag *diag) {
  return diag->entries.count;
}

const lp_diag_entry *lp_diag_get(const lp_diag *diag, size_t index) {
  return &diag->entries.data[index];
}

size_t lp_diag_error_count(const lp_diag *diag) {
  return diag->error_count;
}

void lp_diag_clear(lp_diag *diag) {
  lp_arena_reset(diag->arena);
  diag->entries.count = 0;
  diag->error_count = 0;
}

static const char *keep(lp_diag *diag, const char *text) {
  return text ? lp_arena_strdup(diag->arena, text) : NULL;
}

/* Copies the texts of `from`. */
static void push(lp_diag *diag, const lp_diag_entry *from) {
  lp_diag_entry entry = {
      .severity = from->severity, .loc = from->loc, .text = lp_arena_strdup(diag->arena, from->text)};
  entry.loc.file = keep(diag, from->loc.file);
  entry.loc.node = keep(diag, from->loc.node);
  entry.loc.op = keep(diag, from->loc.op);
  entry.loc.domain = keep(diag, from->loc.domain);
  entry.option = keep(diag, from->option);
  lp_vec_push(&diag->entries, entry);
  if (entry.severity == LP_ERROR) diag->error_count++;
  if (diag->sink) diag->sink(diag->sink_user, &entry);
}

void lp_diag_append(lp_diag *to, const lp_diag *from) {
  for (size_t i = 0; to && i < from->entries.count; i++)
    push(to, &from->entries.data[i]);
}

static void add(lp_diag *diag, lp_severity severity, lp_loc loc, const char *option, const char *format, va_list args)
    LP_PRINTF(5, 0);
static void add(lp_diag *diag, lp_severity severity, lp_loc loc, const char *option, const char *format, va_list args) {
  if (!diag) return;
  lp_buf text = {0};
  lp_buf_vprintf(&text, format, args);
  lp_buf_puts(&text, ""); /* also an empty text is one */
  push(diag, &(lp_diag_entry){.severity = severity, .loc = loc, .text = text.data, .option = option});
  lp_buf_free(&text);
}

void lp_report_error(lp_diag *diag, lp_loc loc, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(diag, LP_ERROR, loc, NULL, format, args);
  va_end(args);
}

void lp_warning(lp_diag *diag, lp_loc loc, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(diag, LP_WARNING, loc, NULL, format, args);
  va_end(args);
}

void lp_note(lp_diag *diag, lp_loc loc, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(diag, LP_NOTE, loc, NULL, format, args);
  va_end(args);
}

void lp_note_option(lp_diag *diag, lp_loc loc, const char *option, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(diag, LP_NOTE, loc, option, format, args);
  va_end(args);
}

enum { LONGEST_NAME_SHOWN = 256, LONGEST_TEXT_SHOWN = 1000 };

/* Names come from files: none may move the cursor of a terminal, imitate a diagnostic or fill the screen. */
static void put_part(lp_buf *out, const char *text, size_t longest) {
  size_t length = strlen(text), shown = length < longest ? length : longest;
  for (size_t i = 0; i < shown; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c < 0x20 || c == 0x7f)
      lp_buf_printf(out, "\\x%02x", c);
    else
      lp_buf_append(out, &text[i], 1);
  }
  if (shown < length) lp_buf_printf(out, "... (%zu bytes)", length);
}

static void put_opset(const lp_loc *loc, lp_buf *out) {
  bool other = loc->domain && loc->domain[0];
  if (loc->opset <= 0 && !other) return;
  lp_buf_puts(out, " [");
  put_part(out, other ? loc->domain : "ai.onnx", LONGEST_NAME_SHOWN);
  if (loc->opset > 0)
    lp_buf_printf(out, ", opset %" PRId64 "]", loc->opset);
  else
    lp_buf_puts(out, ", no opset declared]");
}

static void put_place(const lp_loc *loc, lp_buf *out) {
  if (loc->file) {
    put_part(out, loc->file, LONGEST_TEXT_SHOWN);
    if (loc->line > 0) lp_buf_printf(out, ":%" PRId32, loc->line);
    if (loc->line > 0 && loc->col > 0) lp_buf_printf(out, ":%" PRId32, loc->col);
    lp_buf_puts(out, ": ");
  }
  if (loc->node) {
    lp_buf_puts(out, "node '");
    put_part(out, loc->node, LONGEST_NAME_SHOWN);
    lp_buf_puts(out, "'");
    if (loc->op) lp_buf_puts(out, " (");
    if (loc->op) put_part(out, loc->op, LONGEST_NAME_SHOWN);
    lp_buf_puts(out, loc->op ? "): " : ": ");
  } else if (loc->op) {
    lp_buf_puts(out, "operator ");
    put_part(out, loc->op, LONGEST_NAME_SHOWN);
    lp_buf_puts(out, ": ");
  }
}

void lp_diag_format_styled(const lp_diag_entry *entry, const lp_diag_style *style, lp_buf *out) {
  static const char *const severity[] = {[LP_NOTE] = "note", [LP_WARNING] = "warning", [LP_ERROR] = "error"};
  lp_buf_puts(out, style->place);
  put_place(&entry->loc, out);
  lp_buf_printf(out, "%s%s%s:%s ", style->end, style->severity[entry->severity], severity[entry->severity], style->end);
  put_part(out, entry->text, LONGEST_TEXT_SHOWN);
  if (entry->severity == LP_ERROR) put_opset(&entry->loc, out);
}

void lp_diag_format(const lp_diag_entry *entry, lp_buf *out) {
  lp_diag_format_styled(entry, &(lp_diag_style){"", {"", "", ""}, ""}, out);
}

void lp_diag_relay(lp_diag *to, lp_loc loc, const char *key, const lp_diag *from) {
  LP_FOR_VEC(const lp_diag_entry, entry, &from->entries) {
    LP_OWNED(lp_buf_free) lp_buf text = {0};
    if (entry->loc.file)
      lp_diag_format(entry, &text);
    else
      lp_buf_puts(&text, entry->text);
    if (entry->severity == LP_ERROR)
      lp_report_error(to, loc, "'%s': %s", key, lp_buf_text(&text));
    else
      lp_note(to, loc, "%s", lp_buf_text(&text));
  }
}

/* ---- names that are nearly right ---- */

enum { LONGEST_NAME = 64 };

static char lower(char c) {
  return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Edit distance with insertion, deletion, substitution and the swap of neighbours; case does not count. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
  size_t row[3][LONGEST_NAME + 1];
  for (size_t j = 0; j <= b_length; j++)
    row[0][j] = j;
  for (size_t i = 1; i <= a_length; i++) {
    size_t *now = row[i % 3], *before = row[(i - 1) % 3], *earlier = row[(i + 1) % 3];
    now[0] = i;
    for (size_t j = 1; j <= b_length; j++) {
      size_t best = before[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
      if (before[j] + 1 < best) best = before[j] + 1;
      if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
      bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped && earlier[j - 2] + 1 < best) best = earlier[j - 2] + 1;
      now[j] = best;
    }
  }
  return row[a_length % 3][b_length];
}

const char *lp_near_name(const char *found, const char *const *names, size_t count) {
  size_t length = strlen(found);
  if (length == 0 || length > LONGEST_NAME) return NULL;
  /* One edit in three letters is still near. */
  size_t best_distance = length / 3 + 2;
  const char *best = NULL;
  for (size_t i = 0; i < count; i++) {
    size_t name_length = strlen(names[i]);
    if (name_length > LONGEST_NAME) continue;
    size_t distance = edit_distance(found, length, names[i], name_length);
    if (distance >= best_distance || distance >= name_length) continue;
    best_distance = distance;
    best = names[i];
  }
  return best;
}

void lp_note_near(lp_diag *diag, lp_loc loc, const char *found, const char *const *names, size_t count) {
  const char *near = lp_near_name(found, names, count);
  if (near) lp_note(diag, loc, "did you mean '%s'?", near);
}
