/* Patterns of tokenizer.json on PCRE2.
 *
 * `tokenizers` hands them to Oniguruma in Ruby's syntax. What differs from PCRE2 is rewritten (\s, \w, \u, {,n},
 * anchors at lines); what cannot be is refused by name, so that a pattern either means the same or does not load. Only
 * the tables differ: Debian 12's PCRE2 knows Unicode 14, `tokenizers` Unicode 16, so characters that are newer split
 * differently.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/tokenizer/pattern.h"

struct lp_pattern {
  pcre2_code *code;
};

#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"

/* An escape with another meaning or repertoire than PCRE2's. A NULL text means that there is no such form. */
static const struct {
  char letter;
  const char *outside, *inside;
} escapes[] = {
    {'s', "\\p{White_Space}", "\\p{White_Space}"},
    {'S', "\\P{White_Space}", "\\P{White_Space}"},
    {'w', "[" WORD "]", WORD},
    {'W', "[^" WORD "]", NULL},
    {'h', "[0-9A-Fa-f]", "0-9A-Fa-f"},
    {'H', "[^0-9A-Fa-f]", NULL},
};

typedef struct {
  const char *text;
  size_t size, at;
  bool in_class;
  lp_buf out;
} translator;

static bool next_is(const translator *t, const char *text) {
  size_t size = strlen(text);
  return t->size - t->at >= size && memcmp(t->text + t->at, text, size) == 0;
}

static void copy(translator *t, size_t count) {
  if (count > t->size - t->at) count = t->size - t->at;
  lp_buf_append(&t->out, t->text + t->at, count);
  t->at += count;
}

static void copy_braces(translator *t) {
  const char *end = memchr(t->text + t->at, '}', t->size - t->at);
  copy(t, !end ? 1 : (size_t)(end - (t->text + t->at)) + 1);
}

static bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static const char *translate_escape(translator *t) {
  if (t->size - t->at < 2) return "ends in a backslash";
  char letter = t->text[t->at + 1];
  for (size_t i = 0; i < LP_COUNT(escapes); i++) {
    if (escapes[i].letter != letter) continue;
    const char *form = t->in_class ? escapes[i].inside : escapes[i].outside;
    if (!form) return "has a negated escape inside a character class, which is not supported";
    lp_buf_puts(&t->out, form);
    t->at += 2;
    return NULL;
  }
  if (letter == 'u') {
    size_t digits = 0;
    while (digits < 4 && t->at + 2 + digits < t->size && is_hex(t->text[t->at + 2 + digits]))
      digits++;
    if (digits != 4) return "has \\u without four hexadecimal digits";
    lp_buf_puts(&t->out, "\\x{");
    t->at += 2;
    copy(t, 4);
    lp_buf_puts(&t->out, "}");
    return NULL;
  }
  copy(t, 2);
  if (next_is(t, "{")) copy_braces(t); /* \p{L}, \x{41} */
  return NULL;
}

static const char *translate_in_class(translator *t) {
  if (next_is(t, "[:")) {
    const char *end = memchr(t->text + t->at, ']', t->size - t->at);
    if (!end) return "has an open character class";
    copy(t, (size_t)(end - (t->text + t->at)) + 1);
    return NULL;
  }
  if (next_is(t, "[")) return "has a nested character class, which is not supported";
  if (next_is(t, "&&")) return "intersects character classes, which is not supported";
  if (next_is(t, "]")) t->in_class = false;
  copy(t, 1);
  return NULL;
}

/* Ruby's (?m) lets '.' match a newline; PCRE2 calls that (?s). */
static const char *translate_group(translator *t) {
  for (size_t i = t->at + 2; i < t->size && strchr("imsxadu-", t->text[i]) && t->text[i] != '\0'; i++)
    if (strchr("msadu", t->text[i])) return "sets an option other than i or x, which is not supported";
  copy(t, 2);
  return NULL;
}

/* In Ruby {,n} counts from 0, and {n,m}+ is no possessive form but repeats the repetition. */
static const char *translate_count(translator *t) {
  if (next_is(t, "{,")) {
    lp_buf_puts(&t->out, "{0");
    t->at++;
    copy(t, 1);
    return NULL;
  }
  copy_braces(t);
  return next_is(t, "+") ? "repeats a counted repetition, which is not supported" : NULL;
}

static const char *translate_outside(translator *t) {
  if (next_is(t, "(?")) return translate_group(t);
  if (next_is(t, "{")) return translate_count(t);
  if (!next_is(t, "[")) {
    copy(t, 1);
    return NULL;
  }
  t->in_class = true;
  copy(t, next_is(t, "[^") ? 2 : 1);
  if (next_is(t, "]")) copy(t, 1); /* a literal when it comes first */
  return NULL;
}

/* NULL or what is wrong. */
static const char *translate(translator *t) {
  while (t->at < t->size) {
    const char *why = t->text[t->at] == '\\' ? translate_escape(t)
                      : t->in_class          ? translate_in_class(t)
                                             : translate_outside(t);
    if (why) return why;
  }
  return t->in_class ? "has an open character class" : NULL;
}

static char *compile_message(int code, size_t offset) {
  char reason[128];
  char *message = lp_alloc(sizeof reason + 64);
  pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof reason);
  snprintf(message, sizeof reason + 64, "does not compile: %s at offset %zu", reason, offset);
  return message;
}

lp_pattern *lp_pattern_create(const char *text, size_t size, bool literal, char **why) {
  translator t = {.text = text, .size = size};
  lp_pattern *pattern = NULL;
  const char *problem = literal ? NULL : translate(&t);
  if (literal) copy(&t, size);
  if (problem) {
    *why = lp_strdup(problem);
  } else {
    uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE);
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)lp_buf_text(&t.out), t.out.size, options, &error, &offset, NULL);
    if (!code) {
      *why = compile_message(error, offset);
    } else {
      pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without it the interpreter serves */
      pattern = lp_alloc(sizeof *pattern);
      pattern->code = code;
    }
  }
  lp_buf_free(&t.out);
  return pattern;
}

void lp_pattern_free(lp_pattern *pattern) {
  if (!pattern) return;
  pcre2_code_free(pattern->code);
  free(pattern);
}

void lp_matcher_init(lp_matcher *matcher, const lp_pattern *pattern) {
  *matcher = (lp_matcher){.pattern = pattern};
  matcher->data = pcre2_match_data_create_from_pattern(pattern->code, NULL);
}

void lp_matcher_free(lp_matcher *matcher) {
  pcre2_match_data_free(matcher->data);
}

void lp_matcher_reset(lp_matcher *matcher, const char *text, size_t size) {
  matcher->text = text;
  matcher->size = size;
  matcher->from = 0;
  matcher->matched = false;
}

/* The JIT's stack is small; a text that needs more goes to the interpreter. */
static int match_at(lp_matcher *m) {
  PCRE2_SPTR text = (PCRE2_SPTR)m->text;
  int rc = pcre2_match(m->pattern->code, text, m->size, m->from, PCRE2_NO_UTF_CHECK, m->data, NULL);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
    rc = pcre2_match(m->pattern->code, text, m->size, m->from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data, NULL);
  return rc;
}

/* As Oniguruma's find_iter: an empty match right after the last one is skipped. */
int lp_matcher_next(lp_matcher *m, size_t *start, size_t *end) {
  while (m->from <= m->size) {
    int rc = match_at(m);
    if (rc == PCRE2_ERROR_NOMATCH) return 0;
    if (rc < 0) return -1;
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(m->data);
    *start = range[0];
    *end = range[1];
    if (*end < *start || *start < m->from) return -1; /* \K in a lookaround */
    if (*start == *end && m->matched && m->last_end == *end) {
      size_t bad, length = lp_utf8_length(m->text + m->from, m->size - m->from, &bad);
      m->from += length > 0 ? length : 1;
      continue;
    }
    m->from = m->last_end = *end;
    m->matched = true;
    return 1;
  }
  return 0;
}
