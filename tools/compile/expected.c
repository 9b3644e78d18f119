/* Compares diagnostics with the expectations written into the input. */
#include "tools/compile/expected.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  lp_severity severity;
  int32_t line;     /* the expected line; 0: any line, or none */
  int32_t written;  /* the line of the expectation */
  const char *text; /* part of the message, not terminated */
  size_t size;
  bool seen;
} expectation;

typedef LP_VEC(expectation) expectations;

static const struct {
  const char *mark;
  lp_severity severity;
} marks[] = {{"expected-error", LP_ERROR}, {"expected-warning", LP_WARNING}, {"expected-note", LP_NOTE}};

/* Reads the "@+1 {{text}}" that follows a mark; false when there is none. */
static bool read_expectation(const char *at, const char *line_end, int32_t line, expectation *out) {
  out->line = out->written = line;
  if (*at == '@') {
    if (lp_has_prefix(at, "@unknown"))
      out->line = 0;
    else
      out->line = line + (int32_t)strtol(at + 1, NULL, 10);
  }
  const char *open = memmem(at, (size_t)(line_end - at), "{{", 2);
  const char *close = open ? memmem(open, (size_t)(line_end - open), "}}", 2) : NULL;
  if (!close) return false;
  out->text = open + 2;
  out->size = (size_t)(close - open - 2);
  return true;
}

static void read_line(const char *start, const char *end, int32_t line, expectations *out) {
  for (size_t i = 0; i < LP_COUNT(marks); i++) {
    const char *at = memmem(start, (size_t)(end - start), marks[i].mark, strlen(marks[i].mark));
    expectation found = {.severity = marks[i].severity};
    if (at && read_expectation(at + strlen(marks[i].mark), end, line, &found)) lp_vec_push(out, found);
  }
}

static bool matches(const expectation *expected, const lp_diag_entry *entry) {
  return !expected->seen && expected->severity == entry->severity && expected->line == entry->loc.line &&
         memmem(entry->text, strlen(entry->text), expected->text, expected->size);
}

static lp_status take(expectations *expected, const lp_diag_entry *entry, lp_diag *diag) {
  for (size_t i = 0; i < expected->count; i++)
    if (matches(&expected->data[i], entry)) {
      expected->data[i].seen = true;
      return LP_OK;
    }
  if (entry->severity == LP_NOTE) return LP_OK; /* notes need not be expected */
  return lp_error(diag, entry->loc, "unexpected: %s", entry->text);
}

lp_status lp_expected_check(const char *file, const char *text, size_t size, const lp_diag *found, lp_diag *diag) {
  expectations expected = {0};
  lp_status worst = LP_OK;
  int32_t line = 1;
  for (const char *at = text, *end = text + size; at < end; line++) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) stop = end;
    read_line(at, stop, line, &expected);
    at = stop + 1;
  }
  for (size_t i = 0; i < lp_diag_count(found); i++)
    if (take(&expected, lp_diag_get(found, i), diag) != LP_OK) worst = LP_FAILED;
  for (size_t i = 0; i < expected.count; i++) {
    const expectation *missing = &expected.data[i];
    if (missing->seen) continue;
    worst = lp_error(diag, (lp_loc){.file = file, .line = missing->written, .col = 1},
                     "expected '%.*s' was not reported", (int)missing->size, missing->text);
  }
  lp_vec_free(&expected);
  return worst;
}
