/* Patterns of tokenizer.json on PCRE2.
 *
 * `tokenizers` gives them to Oniguruma in Ruby's syntax. Constructs that differ in PCRE2 are rewritten (\s, \w, \u,
 * {,n}, anchors at lines); those that cannot be rewritten are refused by name, so that a pattern either means the same
 * or does not load. Only the tables differ: Debian 12's PCRE2 has Unicode 14, `tokenizers` Unicode 16, so newer
 * characters split differently. */
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

/* An escape with another meaning or set of characters than PCRE2's. NULL: it becomes a class of its own. */
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
  lp_buf out;
} translator;

static bool next_is(const translator *t, const char *text) {
  size_t size = strlen(text);
  return t->size - t->at >= size && memcmp(t->text + t->at, text, size) == 0;
}

static void copy(translator *t, size_t count, lp_buf *out) {
  if (count > t->size - t->at) count = t->size - t->at;
  lp_buf_append(out, t->text + t->at, count);
  t->at += count;
}

static void copy_braces(translator *t, lp_buf *out) {
  const char *end = memchr(t->text + t->at, '}', t->size - t->at);
  copy(t, !end ? 1 : (size_t)(end - (t->text + t->at)) + 1, out);
}

static bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static const char *translate_escape(translator *t, bool in_class, lp_buf *out) {
  if (t->size - t->at < 2) return "ends in a backslash";
  char letter = t->text[t->at + 1];
  for (size_t i = 0; i < LP_COUNT(escapes); i++) {
    if (escapes[i].letter != letter) continue;
    const char *form = in_class ? escapes[i].inside : escapes[i].outside;
    lp_buf_puts(out, form);
    t->at += 2;
    return NULL;
  }
  if (letter == 'u') {
    size_t digits = 0;
    while (digits < 4 && t->at + 2 + digits < t->size && is_hex(t->text[t->at + 2 + digits]))
      digits++;
    if (digits != 4) return "has \\u without four hexadecimal digits";
    lp_buf_puts(out, "\\x{");
    t->at += 2;
    copy(t, 4, out);
    lp_buf_puts(out, "}");
    return NULL;
  }
  copy(t, 2, out);
  if (next_is(t, "{")) copy_braces(t, out); /* \p{L}, \x{41} */
  return NULL;
}

/* ---- character classes ------------------------------------------------------------------------------------------- */

enum { MAX_NESTING = 32 };

/* One operand of a class: PCRE2 nests no classes, so those inside become alternatives of a group. */
typedef struct {
  lp_buf plain;  /* the text between a pair of brackets */
  lp_buf nested; /* "|[..]|[..]" */
} class_set;

static void append_set(const class_set *set, bool negated, lp_buf *out) {
  if (set->nested.size == 0) {
    lp_buf_printf(out, negated ? "[^%s]" : "[%s]", lp_buf_text(&set->plain));
    return;
  }
  const char *nested = lp_buf_text(&set->nested);
  if (negated) lp_buf_puts(out, "(?:(?!");
  if (set->plain.size > 0)
    lp_buf_printf(out, "(?:[%s]%s)", lp_buf_text(&set->plain), nested);
  else
    lp_buf_printf(out, "(?:%s)", nested + 1);
  if (negated) lp_buf_puts(out, ")(?s:.))");
}

static const char *translate_class(translator *t, int depth, lp_buf *out);

/* Rewrites items up to "]" or "&&". The negation of a class of bytes (\W) becomes one more class in it. */
static const char *translate_items(translator *t, int depth, class_set *set) {
  bool start = true;
  for (; t->at < t->size && !next_is(t, "&&") && (start || !next_is(t, "]")); start = false) {
    const char *why = t->text[t->at] == '\0' ? "has a NUL in a character class" : NULL;
    if (why) return why;
    if (next_is(t, "[:")) {
      const char *end = memchr(t->text + t->at, ']', t->size - t->at);
      if (!end) return "has an open character class";
      copy(t, (size_t)(end - (t->text + t->at)) + 1, &set->plain);
    } else if (next_is(t, "[")) {
      lp_buf_puts(&set->nested, "|");
      why = translate_class(t, depth + 1, &set->nested);
    } else if (next_is(t, "\\W") || next_is(t, "\\H")) {
      lp_buf_puts(&set->nested, "|");
      why = translate_escape(t, false, &set->nested);
    } else if (next_is(t, "\\")) {
      why = translate_escape(t, true, &set->plain);
    } else {
      copy(t, 1, &set->plain);
    }
    if (why) return why;
  }
  if (t->at >= t->size) return "has an open character class";
  return set->plain.size + set->nested.size > 0 ? NULL : "intersects with an empty character class";
}

/* A && B becomes a lookahead for B, followed by A. A negation applies to the whole. */
static const char *translate_operands(translator *t, int depth, bool negated, lp_buf *out) {
  class_set set = {0};
  lp_buf first = {0}, others = {0};
  const char *why = translate_items(t, depth, &set);
  if (!why && next_is(t, "]")) {
    append_set(&set, negated, out);
  } else if (!why) {
    append_set(&set, false, &first);
    while (!why && next_is(t, "&&")) {
      t->at += 2;
      lp_buf_clear(&set.plain);
      lp_buf_clear(&set.nested);
      why = translate_items(t, depth, &set);
      lp_buf_puts(&others, "(?=");
      if (!why) append_set(&set, false, &others);
      lp_buf_puts(&others, ")");
    }
    lp_buf_printf(out, negated ? "(?:(?!%s%s)(?s:.))" : "(?:%s%s)", lp_buf_text(&others), lp_buf_text(&first));
  }
  lp_buf_free(&set.plain);
  lp_buf_free(&set.nested);
  lp_buf_free(&first);
  lp_buf_free(&others);
  return why;
}

/* Translates the class that begins with the "[" here. */
static const char *translate_class(translator *t, int depth, lp_buf *out) {
  if (depth > MAX_NESTING) return "nests character classes too deeply";
  bool negated = next_is(t, "[^");
  t->at += negated ? 2 : 1;
  const char *why = translate_operands(t, depth, negated, out);
  t->at++; /* the "]" */
  return why;
}

/* ---- outside of classes ------------------------------------------------------------------------------------------ */

/* Ruby's (?m) lets '.' match a newline; PCRE2 calls that (?s). */
static const char *translate_group(translator *t) {
  for (size_t i = t->at + 2; i < t->size && strchr("imsxadu-", t->text[i]) && t->text[i] != '\0'; i++)
    if (strchr("msadu", t->text[i])) return "sets an option other than i or x, which is not supported";
  copy(t, 2, &t->out);
  return NULL;
}

/* In Ruby {,n} counts from 0, and {n,m}+ is no possessive form but repeats the repetition. */
static const char *translate_count(translator *t) {
  if (next_is(t, "{,")) {
    lp_buf_puts(&t->out, "{0");
    t->at++;
    copy(t, 1, &t->out);
    return NULL;
  }
  copy_braces(t, &t->out);
  return next_is(t, "+") ? "repeats a counted repetition, which is not supported" : NULL;
}

static const char *translate_outside(translator *t) {
  if (next_is(t, "(?")) return translate_group(t);
  if (next_is(t, "{")) return translate_count(t);
  if (next_is(t, "[")) return translate_class(t, 0, &t->out);
  copy(t, 1, &t->out);
  return NULL;
}

/* Translates the pattern. Returns NULL, or the reason why it cannot be translated. */
static const char *translate(translator *t) {
  while (t->at < t->size) {
    const char *why = t->text[t->at] == '\\' ? translate_escape(t, false, &t->out) : translate_outside(t);
    if (why) return why;
  }
  return NULL;
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
  if (literal) copy(&t, size, &t.out);
  if (problem) {
    *why = lp_strdup(problem);
  } else {
    /* \C would cut characters, and the next steps rely on UTF-8. */
    uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C);
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)lp_buf_text(&t.out), t.out.size, options, &error, &offset, NULL);
    if (!code) {
      *why = compile_message(error, offset);
    } else {
      pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without JIT the interpreter runs */
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

/* The JIT's stack is small; the interpreter handles texts that need more. */
static int match_at(lp_matcher *m) {
  PCRE2_SPTR text = (PCRE2_SPTR)m->text;
  int rc = pcre2_match(m->pattern->code, text, m->size, m->from, PCRE2_NO_UTF_CHECK, m->data, NULL);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
    rc = pcre2_match(m->pattern->code, text, m->size, m->from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data, NULL);
  return rc;
}

/* As in Oniguruma's find_iter, an empty match right after the last match is skipped. */
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
