/* The tokenizer's parts by hand: UTF-8, patterns, splits, decoders; and a message for everything that can be wrong. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "runtime/runtime.h"
#include "runtime/tokenizer/internal.h"
#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/steps.h"
#include "tests/suite.h"

LP_CASE(.timeout = 120);

#define DATA LP_TEST_DIR "/"

/* A file around the parts under test; the vocabulary holds every printable ASCII character at its own code. */
static char *make_json(const char *rest, const char *model_rest) {
  lp_buf text = {0};
  lp_buf_printf(&text, "{%s%s\"model\":{\"type\":\"BPE\",%s%s\"vocab\":{", rest, rest[0] ? "," : "", model_rest,
                model_rest[0] ? "," : "");
  for (int c = 32; c < 127; c++)
    lp_buf_printf(&text, "\"%s%c\":%d,", c == '"' || c == '\\' ? "\\" : "", c, c);
  lp_buf_puts(&text, "\"ab\":200,\"abc\":201,\"bc\":202,\"<0xC3>\":203,\"<0xA9>\":204,\"<u>\":205,\"\\u0000\":206,"
                     "\"\xC4\xA0\":207,\"\xE2\x96\x81\":208},\"merges\":[\"b c\",[\"a\",\"b\"],\"ab c\"]}}");
  return text.data;
}

static lp_tokenizer *load(const char *rest, const char *model_rest) {
  lp_diag *diag = lp_diag_create();
  lp_tokenizer *tokenizer = NULL;
  char *json = make_json(rest, model_rest);
  lp_status status = lp_tokenizer_parse("t.json", json, strlen(json), &tokenizer, diag);
  ck_assert_msg(status == LP_OK, "%s", lp_diag_count(diag) ? lp_diag_get(diag, 0)->text : "");
  lp_diag_free(diag);
  free(json);
  return tokenizer;
}

static void expect_ids(const lp_tokenizer *tokenizer, const char *text, size_t size, bool special,
                       const char *expected) {
  lp_tokens ids = {0};
  lp_buf found = {0};
  ck_assert_int_eq(lp_tokenizer_encode(tokenizer, text, size, special, &ids, NULL), LP_OK);
  for (size_t i = 0; i < ids.count; i++)
    lp_buf_printf(&found, "%s%d", i == 0 ? "" : " ", ids.data[i]);
  ck_assert_str_eq(lp_buf_text(&found), expected);
  lp_buf_free(&found);
  lp_vec_free(&ids);
}

static void expect_encoding(const char *rest, const char *model_rest, const char *text, const char *expected) {
  lp_tokenizer *tokenizer = load(rest, model_rest);
  expect_ids(tokenizer, text, strlen(text), true, expected);
  lp_tokenizer_free(tokenizer);
}

static void expect_text(const char *decoder, const int32_t *ids, size_t count, const char *expected) {
  lp_buf rest = {0}, text = {0};
  if (decoder) lp_buf_printf(&rest, "\"decoder\":%s", decoder);
  lp_tokenizer *tokenizer = load(lp_buf_text(&rest), "");
  lp_tokenizer_decode(tokenizer, ids, count, false, &text);
  ck_assert_str_eq(lp_buf_text(&text), expected);
  lp_tokenizer_free(tokenizer);
  lp_buf_free(&rest);
  lp_buf_free(&text);
}

/* ---- UTF-8 ------------------------------------------------------------------------------------------------------- */

LP_TEST(damaged_utf8_is_repaired_by_maximal_subparts) {
  static const struct {
    const char *text, *expected;
  } cases[] = {
      {"a\xC3\xA9z", "a\xC3\xA9z"},
      {"\x80", "\xEF\xBF\xBD"},
      {"\xE2\x82x", "\xEF\xBF\xBDx"},                           /* one for a cut character */
      {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},                 /* overlong */
      {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* a surrogate */
      {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xF0\x9F\x98", "\xEF\xBF\xBD"},
  };
  lp_buf out = {0};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_buf_clear(&out);
    lp_utf8_repair(cases[i].text, strlen(cases[i].text), &out);
    ck_assert_str_eq(lp_buf_text(&out), cases[i].expected);
  }
  lp_buf_free(&out);
}

LP_TEST(every_byte_has_one_stand_in) {
  for (int byte = 0; byte < 256; byte++)
    ck_assert_int_eq(lp_char_byte(lp_byte_char((uint8_t)byte)), byte);
  ck_assert_uint_eq(lp_byte_char(' '), 0x120); /* GPT-2's capital G with a dot */
  ck_assert_int_eq(lp_char_byte(0x144), -1);
  ck_assert_int_eq(lp_char_byte(' '), -1);
}

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
}

LP_TEST(what_patterns_cannot_say_is_refused) {
  static const char *const sources[] = {"[a&&b]", "[a[b]]", "(?m)a", "[\\W]", "a{2}+", "[a", "(", "\\u12", "a\\"};
  for (size_t i = 0; i < LP_COUNT(sources); i++) {
    char *why = NULL;
    ck_assert_ptr_null(lp_pattern_create(sources[i], strlen(sources[i]), false, &why));
    ck_assert_ptr_nonnull(why);
    free(why);
  }
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

LP_TEST(the_lowest_rank_merges_first) {
  expect_encoding("", "", "abc", "97 202"); /* "b c" before "a b" */
  expect_encoding("", "\"ignore_merges\":true", "abc", "201");
  expect_encoding("", "", "", "");
}

LP_TEST(unknown_characters_become_unk_bytes_or_nothing) {
  expect_encoding("", "",
                  "a\xC3\xA9"
                  "a",
                  "97 97");
  expect_encoding("", "\"unk_token\":\"<u>\"",
                  "\xC3\xA9\xC3\xA8"
                  "a",
                  "205 205 97");
  expect_encoding("", "\"unk_token\":\"<u>\",\"fuse_unk\":true",
                  "\xC3\xA9\xC3\xA8"
                  "a",
                  "205 97");
  expect_encoding("", "\"unk_token\":\"<u>\",\"byte_fallback\":true", "\xC3\xA9\xC3\xA8", "203 204 205");
}

LP_TEST(nul_is_a_character) {
  lp_tokenizer *tokenizer = load("", "");
  expect_ids(tokenizer, "a\0b", 3, false, "97 206 98");
  lp_tokenizer_free(tokenizer);
}

LP_TEST(splits_keep_merges_apart) {
#define SPLIT(how) "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"b\"},\"behavior\":\"" how "\"}"
  expect_encoding(SPLIT("Isolated"), "", "abcbc", "97 98 99 98 99");
  expect_encoding(SPLIT("Removed"), "", "abcbc", "97 99 99");
  expect_encoding(SPLIT("MergedWithPrevious"), "", "abcbc", "200 99 98 99");
  expect_encoding(SPLIT("MergedWithNext"), "", "abcbc", "97 202 202");
  expect_encoding(SPLIT("Contiguous"), "", "abbc", "97 98 98 99");
  expect_encoding("\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\"}", "", "a b",
                  "208 97 208 98");
  expect_encoding("\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "", "abc", "207 97 202");
}

#define ADDED(id, text, more) "{\"id\":" #id ",\"content\":\"" text "\",\"normalized\":false" more "}"

LP_TEST(added_tokens_are_cut_out_first) {
  expect_encoding("\"added_tokens\":[" ADDED(300, "<x>", ",\"special\":true") "," ADDED(301, "<x>y", "") "]", "",
                  "a<x>b<x>y", "97 300 98 301"); /* the longest wins */
  expect_encoding("\"added_tokens\":[" ADDED(300, "<x>", ",\"lstrip\":true,\"rstrip\":true") "]", "", "a  <x> b",
                  "97 300 98");
  expect_encoding("\"added_tokens\":[" ADDED(300, "one", ",\"single_word\":true") "]", "", "one (one)xone",
                  "300 32 40 300 41 120 111 110 101");
}

LP_TEST(template_goes_around_the_text) {
  lp_tokenizer *tokenizer = load(
      "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"B\",\"type_id\":0}},"
      "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{\"B\":{\"id\":\"B\",\"ids\":[66],"
      "\"tokens\":[\"B\"]}}}",
      "");
  expect_ids(tokenizer, "a", 1, true, "66 97");
  expect_ids(tokenizer, "a", 1, false, "97");
  lp_tokenizer_free(tokenizer);
}

LP_TEST(long_words_take_time_in_proportion) {
  enum { SIZE = 1 << 20 };
  lp_tokenizer *tokenizer = load("", "");
  char *text = lp_alloc(SIZE);
  lp_tokens ids = {0};
  for (size_t i = 0; i < SIZE; i++)
    text[i] = "abc"[i % 3];
  double start = lp_now_ms();
  ck_assert_int_eq(lp_tokenizer_encode(tokenizer, text, SIZE, false, &ids, NULL), LP_OK);
  ck_assert_double_lt(lp_now_ms() - start, 20000); /* a quadratic merge takes hours */
  ck_assert_uint_ge(ids.count, SIZE / 3);
  free(text);
  lp_vec_free(&ids);
  lp_tokenizer_free(tokenizer);
}

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

LP_TEST(decoders_turn_tokens_to_text) {
  expect_text(NULL, (int32_t[]){97, 200}, 2, "a ab");
  expect_text("{\"type\":\"Fuse\"}", (int32_t[]){97, 200, 5000, -1, 199}, 5, "aab"); /* unknown ids vanish */
  expect_text("{\"type\":\"ByteFallback\"}", (int32_t[]){97, 203, 204, 97}, 4,
              "a\xC3\xA9"
              "a");
  expect_text("{\"type\":\"ByteFallback\"}", (int32_t[]){203, 97, 203, 203}, 4,
              "\xEF\xBF\xBD"
              "a\xEF\xBF\xBD\xEF\xBF\xBD");
  expect_text("{\"type\":\"ByteLevel\"}", (int32_t[]){207, 97}, 2, " a");
  expect_text("{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\"}", (int32_t[]){208, 97, 208, 98}, 4, "a b");
  expect_text("{\"type\":\"Strip\",\"content\":\"a\",\"start\":1,\"stop\":0}", (int32_t[]){200, 97, 98}, 3, "bb");
  expect_text("{\"type\":\"Replace\",\"pattern\":{\"String\":\"b\"},\"content\":\"--\"}", (int32_t[]){200, 98}, 2,
              "a----");
  expect_text("{\"type\":\"BPEDecoder\",\"suffix\":\"c\"}", (int32_t[]){202, 202}, 2, "b b");
}

LP_TEST(special_tokens_can_be_left_out) {
  lp_tokenizer *tokenizer =
      load("\"added_tokens\":[" ADDED(300, "<x>", ",\"special\":true") "],\"decoder\":{\"type\":\"Fuse\"}", "");
  int32_t ids[] = {97, 300};
  lp_buf text = {0};
  lp_tokenizer_decode(tokenizer, ids, 2, true, &text);
  ck_assert_str_eq(lp_buf_text(&text), "a");
  lp_tokenizer_decode(tokenizer, ids, 2, false, &text);
  ck_assert_str_eq(lp_buf_text(&text), "aa<x>");
  ck_assert_int_eq(lp_tokenizer_vocab_size(tokenizer), 301);
  ck_assert_int_eq(lp_tokenizer_token_id(tokenizer, "<x>"), 300);
  ck_assert_int_eq(lp_tokenizer_token_id(tokenizer, "abc"), 201);
  ck_assert_int_eq(lp_tokenizer_token_id(tokenizer, "none"), -1);
  lp_buf_free(&text);
  lp_tokenizer_free(tokenizer);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

LP_TEST(config_beside_the_file_is_read) {
  lp_tokenizer *tokenizer;
  ck_assert_int_eq(lp_tokenizer_load(DATA "with-config/tokenizer.json", &tokenizer, NULL), LP_OK);
  ck_assert_int_eq(lp_tokenizer_bos(tokenizer), 0);
  ck_assert_int_eq(lp_tokenizer_eos(tokenizer), 1);
  ck_assert(lp_tokenizer_has_chat_template(tokenizer));
  lp_buf text = {0};
  lp_chat_message message = {.role = "user", .content = "x"};
  ck_assert_int_eq(lp_tokenizer_chat(tokenizer, &message, 1, true, &text, NULL), LP_OK);
  ck_assert_str_eq(lp_buf_text(&text), "<s>user: x</s>!");
  lp_buf_free(&text);
  lp_tokenizer_free(tokenizer);
  ck_assert_int_eq(lp_tokenizer_load(DATA "sentencepiece.json", &tokenizer, NULL), LP_OK);
  ck_assert_int_eq(lp_tokenizer_bos(tokenizer), 1); /* by its usual name */
  ck_assert_int_eq(lp_tokenizer_eos(tokenizer), 2);
  ck_assert(!lp_tokenizer_has_chat_template(tokenizer));
  lp_tokenizer_free(tokenizer);
}

static void expect_error(const char *json, const char *expected) {
  lp_diag *diag = lp_diag_create();
  lp_tokenizer *tokenizer = NULL;
  lp_buf found = {0};
  ck_assert_int_eq(lp_tokenizer_parse("t.json", json, strlen(json), &tokenizer, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  lp_diag_format(lp_diag_get(diag, 0), &found);
  ck_assert_msg(strstr(found.data, expected) != NULL, "found '%s', expected '%s'", found.data, expected);
  lp_buf_free(&found);
  lp_diag_free(diag);
}

LP_TEST(damaged_json_is_located) {
  expect_error("", "t.json:1:1: error: not valid JSON: it ends too early");
  expect_error("{\n  \"a\": tru\n}", "t.json:2:8: error: not valid JSON: not a value");
  expect_error("{\"a\" 1}", "':' was expected");
  expect_error("[1 2]", "',' or ']' was expected");
  expect_error("[1,]", "not a value");
  expect_error("{1:2}", "a key was expected");
  expect_error("[01]", "not a value");
  expect_error("[1.]", "not a number");
  expect_error("\"\\ud800\"", "half of a surrogate pair");
  expect_error("\"\\x\"", "an unknown escape");
  expect_error("\"\xFF\"", "not UTF-8");
  expect_error("\"a\nb\"", "a control character");
  expect_error("{} {}", "text after the document");
  lp_buf deep = {0};
  for (int i = 0; i < 100000; i++)
    lp_buf_puts(&deep, "[");
  expect_error(deep.data, "nested too deeply");
  lp_buf_free(&deep);
}

LP_TEST(wrong_files_are_located) {
#define MODEL(rest) "{\"model\":{\"type\":\"BPE\"," rest "}}"
  expect_error("[]", "wanted an object, found an array");
  expect_error("{}", "model: wanted an object, found nothing");
  expect_error("{\"model\":{\"type\":\"Unigram\"}}", "model: the model 'Unigram' is not supported");
  expect_error(MODEL("\"merges\":[]"), "model.vocab: wanted an object, found nothing");
  expect_error(MODEL("\"vocab\":{},\"merges\":{}"), "model.merges: wanted an array, found an object");
  expect_error(MODEL("\"vocab\":{\"a\":-1},\"merges\":[]"), "model.vocab: the id of 'a'");
  expect_error(MODEL("\"vocab\":{\"a\":1,\"b\":1},\"merges\":[]"), "'a' and 'b' have the same id 1");
  expect_error(MODEL("\"vocab\":{\"a\":1,\"a\":2},\"merges\":[]"), "'a' is listed twice");
  expect_error(MODEL("\"vocab\":{\"a\":0},\"merges\":[\"a b\"]"), "model.merges[0]: 'b' is not in the vocabulary");
  expect_error(MODEL("\"vocab\":{\"a\":0,\"b\":1},\"merges\":[[\"a\",\"b\"]]"),
               "model.merges[0]: 'ab' is not in the vocabulary");
  expect_error(MODEL("\"vocab\":{\"a\":0},\"merges\":[\"a a a\"]"), "model.merges[0]: wanted");
  expect_error(MODEL("\"vocab\":{},\"merges\":[],\"dropout\":0.1"), "model.dropout: random merges");
  expect_error(MODEL("\"vocab\":{},\"merges\":[],\"fuse_unk\":1"),
               "model.fuse_unk: wanted a boolean, found an integer");
}

static void expect_part_error(const char *rest, const char *expected) {
  char *json = make_json(rest, "");
  expect_error(json, expected);
  free(json);
}

LP_TEST(unsupported_parts_are_named) {
  expect_part_error("\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}]}",
                    "normalizer.normalizers[0]: the normalizer 'NFC' is not supported");
  expect_part_error("\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}",
                    "pre_tokenizer: the pre-tokenizer 'UnicodeScripts' is not supported");
  expect_part_error("\"decoder\":{\"type\":\"CTC\"}", "decoder: the decoder 'CTC' is not supported");
  expect_part_error("\"post_processor\":{\"type\":\"X\"}", "the post-processor 'X' is not supported");
  expect_part_error("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Removed\"}",
                    "pre_tokenizer.pattern: the pattern '(' does not compile");
  expect_part_error("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Eaten\"}",
                    "pre_tokenizer.behavior: unknown behavior 'Eaten'");
  expect_part_error("\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"ab\"}",
                    "pre_tokenizer.replacement: wanted one character");
  expect_part_error("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[],\"special_tokens\":{}}",
                    "post_processor.single: the template lacks the sequence");
  expect_part_error("\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"a\",4000],\"sep\":[\"a\",1]}",
                    "post_processor.cls[1]: there is no token of id 4000");
  expect_part_error("\"added_tokens\":[{\"id\":97,\"content\":\"new\"}]", "'a' and 'new' have the same id 97");
  expect_part_error("\"added_tokens\":[7]", "added_tokens[0]: wanted an object, found an integer");
}

LP_TEST(lowercase_is_for_ascii) {
  lp_diag *diag = lp_diag_create();
  lp_tokens ids = {0};
  expect_encoding("\"normalizer\":{\"type\":\"Lowercase\"}", "", "ABC", "97 202");
  lp_tokenizer *tokenizer = load("\"normalizer\":{\"type\":\"Lowercase\"}", "");
  ck_assert_int_eq(lp_tokenizer_encode(tokenizer, "\xC3\x89", 2, false, &ids, diag), LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  lp_tokenizer_free(tokenizer);
  lp_vec_free(&ids);
  lp_diag_free(diag);
}
