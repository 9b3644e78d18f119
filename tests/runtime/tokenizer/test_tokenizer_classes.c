/* Patterns, and what every code point is to them, to pre-tokenizers and to normalizers: compares with hashes of what
 * PyPI `tokenizers` makes of all 1,112,064 (classes.py --write). */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"
#include "runtime/runtime.h"
#include "runtime/tokenizer/internal.h"
#include "runtime/tokenizer/pattern.h"
#include "tests/suite.h"

LP_CASE(.timeout = 600);

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

static void expect_matches(const char *source, const char *text, const char *expected) {
  char *why = NULL;
  lp_buf found = {0};
  lp_pattern *pattern = lp_pattern_create(source, strlen(source), false, &why);
  ck_assert_msg(pattern != NULL, "%s: %s", source, why);
  lp_matcher matcher;
  size_t start, end;
  lp_matcher_init(&matcher, pattern);
  lp_matcher_reset(&matcher, text, strlen(text));
  while (lp_matcher_next(&matcher, &start, &end) == 1)
    lp_buf_printf(&found, "%zu-%zu ", start, end);
  ck_assert_str_eq(lp_buf_text(&found), expected);
  lp_matcher_free(&matcher);
  lp_pattern_free(pattern);
  lp_buf_free(&found);
}

LP_TEST(patterns_mean_what_oniguruma_means) {
  expect_matches("\\s+", "a\xC2\x85 b\xE1\xA0\x8E", "1-4 ");       /* U+0085 is a space, U+180E is none */
  expect_matches("\\w", "\xCC\x81_\xE2\x80\xBF!", "0-2 2-3 3-6 "); /* a mark and a connector */
  expect_matches("x*", "axb", "0-0 1-2 3-3 ");
  expect_matches("a{,2}b", "aaab", "1-4 ");
  expect_matches("^b", "a\nb", "2-3 ");
  expect_matches("[\\u0061\\h]", "gaf", "1-2 2-3 ");
  expect_matches("\\p{N}{1,3}|[^]]", "1234]", "0-3 3-4 ");
  expect_matches("[a[b-d]]+", "xabdz", "1-4 ");
  expect_matches("[^a[b-d]]+", "xabdz", "0-1 4-5 ");
  expect_matches("[a[^b]]", "ab\nc", "0-1 2-3 3-4 ");
  expect_matches("[a-z&&[^aeiou]&&[^x]]+", "abcxdaz", "1-3 4-5 6-7 ");
  expect_matches("[^a-z&&[^aeiou]]", "ab-", "0-1 2-3 ");
  expect_matches("[\\W_]", "a_-", "1-2 2-3 ");
}

/* Classes are those of Unicode 16, and scripts not script extensions; characters fold, and a border is one of words. */
LP_TEST(characters_are_those_of_oniguruma) {
  expect_matches("\\p{S}", "\xF0\x9F\xA9\xB7", "0-4 ");
  expect_matches("\\P{S}", "\xF0\x9F\xA9\xB7", "");
  expect_matches("\\p{Cn}", "\xF0\x9F\xA9\xB7\xCD\xB8", "4-6 ");
  expect_matches("\\p{Han}+", "\xE4\xB8\xAD\xE3\x80\x82", "0-3 ");
  expect_matches("\\w+", "\xE1\xB2\x89.", "0-3 ");
  expect_matches("[[:punct:]]|\\p{Punct}{2}", ".+!!", "0-1 1-2 2-3 3-4 ");
  expect_matches("[[:alpha:]]", "\xCD\xA3", "0-2 ");
  expect_matches("\\p{Punct}+", ".+!", "0-1 2-3 ");
  expect_matches("\\b", ".\xE1\xB2\x89.", "1-1 4-4 ");
  expect_matches("(?i)[\\x{1c8a}]", "\xE1\xB2\x89", "0-3 ");
  expect_matches("(?i)stra\xC3\x9F"
                 "e",
                 "STRASSE", "0-7 ");
  expect_matches("\\p{In_Kana_Extended_A}", "\xF0\x9B\x84\xB2", "");
  expect_matches("a{2}+|(?m)b.", "aaaab\n", "0-4 4-6 ");
}

/* A pattern that takes time exponential in the text ends. */
LP_TEST(a_hostile_pattern_ends) {
  static const char source[] = "(a|a)*$",
                    text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
  char *why = NULL;
  lp_pattern *pattern = lp_pattern_create(source, sizeof source - 1, false, &why);
  ck_assert_ptr_nonnull(pattern);
  lp_matcher matcher;
  size_t start, end;
  lp_matcher_init(&matcher, pattern);
  lp_matcher_reset(&matcher, text, sizeof text - 1);
  ck_assert_int_eq(lp_matcher_next(&matcher, &start, &end), -1);
  lp_matcher_free(&matcher);
  lp_pattern_free(pattern);
}

/* Whatever the lengths of the plain characters and of the classes in an operand, none is empty. */
LP_TEST(operands_of_any_length) {
  static const char letters[] = "abcdefgh";
  for (int i = 0; i <= 8; i++) {
    char source[64];
    (void)snprintf(source, sizeof source, "[a-z&&%.*s[xy]]", i, letters);
    expect_matches(source, "-y-", "1-2 ");
  }
}

LP_TEST(a_pattern_that_is_wrong_is_refused) {
  static const char *const sources[] = {"[a[b]",          "[a",          "(", "\\u12", "a\\", "[z-a]", "\\p{Nonsense}",
                                        "\\p{Diacritic}", "(?<=a*b*)\\1"};
  for (size_t i = 0; i < LP_COUNT(sources); i++) {
    char *why = NULL;
    ck_assert_ptr_null(lp_pattern_create(sources[i], strlen(sources[i]), false, &why));
    ck_assert_ptr_nonnull(why);
    free(why);
  }
}

/* ---- every code point -------------------------------------------------------------------------------------------- */

static uint32_t hash(uint32_t value, uint32_t item) {
  return (value ^ item) * 0x01000193u;
}

static void write_code(uint32_t code, lp_buf *out) {
  if (code < 0xD800 || code > 0xDFFF) lp_utf8_write(code, out);
}

/* All code points; `lines`: each by itself on a line, and all backwards. */
static void write_all(bool lines, lp_buf *out) {
  for (uint32_t code = 0; code <= 0x10FFFF; code++) {
    if (lines && code > 0 && (code < 0xD800 || code > 0xDFFF)) lp_buf_puts(out, "\n");
    write_code(code, out);
  }
  for (uint32_t code = 0x110000; lines && code-- > 0;)
    write_code(code, out);
}

static uint32_t answer(const char *json, bool normalizer) {
  lp_tokenizer *tokenizer = NULL;
  lp_diag *diag = lp_diag_create();
  lp_work work = {.diag = diag};
  lp_buf document = {0};
  uint32_t value = 0x811C9DC5u, code;
  lp_buf_printf(&document, "{\"%s\":%s,\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0},\"unk_token\":\"a\"}}",
                normalizer ? "normalizer" : "pre_tokenizer", json);
  lp_status status = lp_tokenizer_parse("t.json", document.data, document.size, &tokenizer, diag);
  ck_assert_msg(status == LP_OK, "%s: %s", json, lp_diag_count(diag) > 0 ? lp_diag_get(diag, 0)->text : "");
  write_all(normalizer, &work.next.text);
  lp_work_add(&work, 0, -1, 1);
  lp_work_swap(&work);
  status = lp_steps_run(normalizer ? &tokenizer->normalizer : &tokenizer->pre_tokenizer, &work);
  ck_assert_msg(status == LP_OK, "%s: %s", json, lp_diag_count(diag) > 0 ? lp_diag_get(diag, 0)->text : "");
  for (size_t i = 0; i < work.now.list.count; i++) {
    lp_piece piece = work.now.list.data[i];
    if (!normalizer) value = hash(hash(value, (uint32_t)piece.start), (uint32_t)(piece.start + piece.size));
    for (size_t at = 0; normalizer && at < piece.size; value = hash(value, code))
      at += lp_utf8_next(work.now.text.data + piece.start + at, &code);
  }
  lp_work_free(&work);
  lp_buf_free(&document);
  lp_diag_free(diag);
  lp_tokenizer_free(tokenizer);
  return value;
}

LP_TEST(every_code_point) {
  char *expected;
  size_t size, count = 0, bad = 0;
  ck_assert_int_eq(lp_file_read(LP_TEST_DIR "/classes.expected", &expected, &size, NULL), LP_OK);
  for (char *line = expected, *end; (end = strchr(line, '\n')); line = end + 1, count++) {
    *end = '\0';
    const char *json = strchr(line, '{');
    uint32_t found = answer(json, strncmp(line + 9, "normalizer", 10) == 0);
    if (found == (uint32_t)strtoul(line, NULL, 16)) continue;
    fprintf(stderr, "%s: found %08x\n", line, found);
    bad++;
  }
  ck_assert_uint_eq(bad, 0);
  ck_assert_uint_gt(count, 150);
  free(expected);
}
