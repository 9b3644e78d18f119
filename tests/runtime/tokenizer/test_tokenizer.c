/* The tokenizer's parts by hand: UTF-8, splits, decoders; and a message for everything that can be wrong. */
#include <stdlib.h>
#include <string.h>

#include "base/json/reader.h"
#include "base/utf8.h"
#include "runtime/runtime.h"
#include "runtime/tokenizer/internal.h"
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
  double start = lp_suite_cpu_ms();
  ck_assert_int_eq(lp_tokenizer_encode(tokenizer, text, SIZE, false, &ids, NULL), LP_OK);
  ck_assert_double_lt(lp_suite_cpu_ms() - start, 60000); /* a quadratic merge takes hours */
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
  ck_assert_int_eq(lp_tokenizer_eos(tokenizer), 1);
  ck_assert(lp_tokenizer_has_chat_template(tokenizer));
  lp_buf text = {0};
  lp_chat_message message = {.role = "user", .content = "x"};
  ck_assert_int_eq(lp_tokenizer_chat(tokenizer, &message, 1, true, &text, NULL), LP_OK);
  ck_assert_str_eq(lp_buf_text(&text), "<s>user: x</s>!");
  lp_buf_free(&text);
  lp_tokenizer_free(tokenizer);
  ck_assert_int_eq(lp_tokenizer_load(DATA "sentencepiece.json", &tokenizer, NULL), LP_OK);
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

/* Token 0 is a token like others: it merges with the next. */
LP_TEST(the_first_token_merges) {
  static const char json[] = "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}";
  lp_tokenizer *tokenizer = NULL;
  ck_assert_int_eq(lp_tokenizer_parse("t.json", json, strlen(json), &tokenizer, NULL), LP_OK);
  expect_ids(tokenizer, "abab", 4, false, "2 2");
  expect_ids(tokenizer, "aab", 3, false, "0 2");
  lp_tokenizer_free(tokenizer);
}

LP_TEST(wrong_files_are_located) {
#define MODEL(rest) "{\"model\":{\"type\":\"BPE\"," rest "}}"
  expect_error("[]", "wanted an object, found an array");
  expect_error("{}", "model: wanted an object, found nothing");
  expect_error("{\"model\":{\"type\":\"Bigram\"}}", "model: the model 'Bigram' is not supported");
  expect_error(MODEL("\"merges\":[]"), "model.vocab: wanted an object, found nothing");
  expect_error(MODEL("\"vocab\":{},\"merges\":{}"), "model.merges: wanted an array, found an object");
  expect_error(MODEL("\"vocab\":{\"a\":-1},\"merges\":[]"), "model.vocab: the id of 'a'");
  expect_error(MODEL("\"vocab\":{\"a\":1,\"b\":1},\"merges\":[]"), "'a' and 'b' have the same id 1");
  expect_error(MODEL("\"vocab\":{\"a\":0,\"a\":2},\"merges\":[]"), "'a' is listed twice");
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
  expect_part_error("\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFX\"}]}",
                    "normalizer.normalizers[0]: the normalizer 'NFX' is not supported");
  expect_part_error("\"pre_tokenizer\":{\"type\":\"Words\"}",
                    "pre_tokenizer: the pre-tokenizer 'Words' is not supported");
  expect_part_error("\"decoder\":{\"type\":\"X\"}", "decoder: the decoder 'X' is not supported");
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
  expect_part_error("\"added_tokens\":[{\"id\":4194304,\"content\":\"new\"}]", "4194304 lies outside of 0..4194303");
  expect_part_error("\"added_tokens\":[7]", "added_tokens[0]: wanted an object, found an integer");
}

/* ---- normalizers ------------------------------------------------------------------------------------------------- */

/* The text that a normalizer leaves, by way of bytes that are tokens. */
static void expect_normal(const char *normalizer, const char *text, const char *expected) {
  lp_buf json = {0}, found = {0};
  lp_tokens ids = {0};
  lp_tokenizer *tokenizer = NULL;
  lp_buf_printf(&json, "{\"normalizer\":%s,\"decoder\":{\"type\":\"ByteFallback\"},", normalizer);
  lp_buf_puts(&json, "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"merges\":[],\"vocab\":{");
  for (int byte = 0; byte < 256; byte++)
    lp_buf_printf(&json, "%s\"<0x%02X>\":%d", byte == 0 ? "" : ",", byte, byte);
  lp_buf_puts(&json, "}}}");
  ck_assert_int_eq(lp_tokenizer_parse("t.json", json.data, json.size, &tokenizer, NULL), LP_OK);
  ck_assert_int_eq(lp_tokenizer_encode(tokenizer, text, strlen(text), false, &ids, NULL), LP_OK);
  lp_tokenizer_decode(tokenizer, ids.data, ids.count, false, &found);
  ck_assert_str_eq(lp_buf_text(&found), expected);
  lp_tokenizer_free(tokenizer);
  lp_vec_free(&ids);
  lp_buf_free(&json);
  lp_buf_free(&found);
}

LP_TEST(normalizers_follow_unicode) {
  expect_normal("{\"type\":\"NFC\"}", "e\xCC\x81\xE1\x84\x80\xE1\x85\xA1", "\xC3\xA9\xEA\xB0\x80");
  expect_normal("{\"type\":\"NFD\"}", "\xC3\xA9\xEA\xB0\x80", "e\xCC\x81\xE1\x84\x80\xE1\x85\xA1");
  expect_normal("{\"type\":\"NFD\"}", "a\xCC\x81\xCC\xA3\xCC\x80", "a\xCC\xA3\xCC\x81\xCC\x80"); /* 220 before 230 */
  expect_normal("{\"type\":\"NFKC\"}", "\xEF\xBC\xA1\xEF\xAC\x81", "Afi");
  expect_normal("{\"type\":\"NFKD\"}", "\xC2\xBD",
                "1\xE2\x81\x84"
                "2");
  expect_normal("{\"type\":\"Lowercase\"}", "A\xC3\x89\xC4\xB0\xCE\xA3", "a\xC3\xA9i\xCC\x87\xCF\x83");
  expect_normal("{\"type\":\"StripAccents\"}", "e\xCC\x81\xE2\x83\x9D\xE0\xA4\xBE", "e"); /* Mn, Me and Mc */
  expect_normal("{\"type\":\"BertNormalizer\"}", "\xC3\x89\t\x01\xE4\xB8\xAD\xE0\xA4\xBE",
                "e  \xE4\xB8\xAD \xE0\xA4\xBE");
  expect_normal("{\"type\":\"BertNormalizer\",\"lowercase\":false}", "\xC3\x89", "\xC3\x89");
  const char *strips = "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}";
  expect_normal(strips, "\xE3\x80\x80 a\xC3\xA9\xC2\xA0 \xE3\x80\x80", "a\xC3\xA9");
  expect_normal(strips, "\xE3\x80\x80", "");
  expect_normal("{\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true}", " a ", " a");
  expect_normal("{\"type\":\"Nmt\"}",
                "a\x01\xE2\x80\x8B"
                "b",
                "a b");
}

/* "a" -> "xy" and "ab" -> "z": the shorter rule counts. The units are those of darts-clone. */
LP_TEST(a_damaged_charsmap_is_refused_or_does_nothing) {
  static const char *const damaged[] = {"AAAA", "BAAAAA==", "/////w==", "!!!!", "BAAAAAAAAA==="};
  lp_diag *diag = lp_diag_create();
  for (size_t i = 0; i < LP_COUNT(damaged); i++) {
    lp_tokenizer *tokenizer = NULL;
    lp_buf rest = {0};
    lp_buf_printf(&rest, "\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"%s\"}", damaged[i]);
    char *json = make_json(lp_buf_text(&rest), "");
    ck_assert_int_eq(lp_tokenizer_parse("t.json", json, strlen(json), &tokenizer, diag), LP_FAILED);
    ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, i)->text, "precompiled_charsmap: the map of characters is damaged"));
    free(json);
    lp_buf_free(&rest);
  }
  lp_diag_free(diag);
  expect_normal("{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAAAAP////8=\"}", "ab", "ab");
  /* a becomes zz; a byte that is no UTF-8 would never end the steps after this one */
  expect_normal("{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"DAAAAACAAQBhDQAAAAAAgHp6AA==\"}", "ab", "zzb");
  expect_normal("{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"DAAAAACAAQBhDQAAAAAAgP8A\"}", "ab", "ab");
  /* replacements "zz", of which that of the rule begins inside, at the end, and after the end */
  expect_normal("{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"DAAAAACAAQBhDQAAAQAAgHp6\"}", "ab", "zb");
  expect_normal("{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"DAAAAACAAQBhDQAAAgAAgHp6\"}", "ab", "b");
  expect_normal("{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"DAAAAACAAQBhDQAAAwAAgHp6\"}", "ab", "ab");
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

static lp_status encode_model(const char *json, const char *text, lp_tokens *ids, lp_diag *diag) {
  lp_tokenizer *tokenizer = NULL;
  ids->count = 0;
  ck_assert_int_eq(lp_tokenizer_parse("t.json", json, strlen(json), &tokenizer, diag), LP_OK);
  lp_status status = lp_tokenizer_encode(tokenizer, text, strlen(text), false, ids, diag);
  lp_tokenizer_free(tokenizer);
  return status;
}

LP_TEST(a_model_without_an_unknown_token_refuses_unknown_text) {
  static const char *const models[] = {
      "{\"model\":{\"type\":\"Unigram\",\"unk_id\":null,\"vocab\":[[\"a\",-1]]}}",
      "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":null,\"vocab\":{\"a\":0}}}",
      "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":null,\"vocab\":{\"a\":0}}}",
  };
  lp_diag *diag = lp_diag_create();
  lp_tokens ids = {0};
  for (size_t i = 0; i < LP_COUNT(models); i++) {
    ck_assert_int_eq(encode_model(models[i], "a", &ids, diag), LP_OK);
    ck_assert_uint_eq(ids.count, 1);
    ck_assert_int_eq(encode_model(models[i], "ab", &ids, diag), LP_FAILED);
    ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, i)->text, "a character that the tokenizer does not know"));
  }
  lp_vec_free(&ids);
  lp_diag_free(diag);
}

/* Time is linear in the text: marks that must be sorted, no space to split at, one long word. */
LP_TEST(long_texts_take_linear_time) {
  static const struct {
    const char *json, *part;
  } cases[] = {
      {"{\"normalizer\":{\"type\":\"NFC\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}",
       "\xCC\x81\xCC\xA3"},
      {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"u\",0],[\"ab\",-1],[\"a\",-2],[\"b\",-3]]}}",
       "abb"},
      {"{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"max_input_chars_per_word\":9000000,"
       "\"continuing_subword_prefix\":\"##\",\"vocab\":{\"a\":0,\"##a\":1,\"##aa\":2}}}",
       "aaa"},
      {"{\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\"},\"normalizer\":{\"type\":\"BertNormalizer\"},"
       "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}}}",
       "\xE4\xB8\xAD\xC3\x89"},
  };
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_buf text = {0};
    lp_tokens ids = {0};
    for (size_t n = 0; n < 300000; n++)
      lp_buf_puts(&text, cases[i].part);
    double start = lp_suite_cpu_ms();
    ck_assert_int_eq(encode_model(cases[i].json, text.data, &ids, NULL), LP_OK);
    ck_assert_double_lt(lp_suite_cpu_ms() - start, 60000);
    lp_buf_free(&text);
    lp_vec_free(&ids);
  }
}

/* ---- typed text -------------------------------------------------------------------------------------------------- */

static void expect_typed(const lp_tokenizer *tokenizer, const char *text, const char *expected) {
  lp_tokens ids = {0};
  lp_buf found = {0};
  ck_assert_int_eq(lp_tokenizer_encode_typed(tokenizer, text, strlen(text), false, &ids, NULL), LP_OK);
  for (size_t i = 0; i < ids.count; i++)
    lp_buf_printf(&found, "%s%d", i == 0 ? "" : " ", ids.data[i]);
  ck_assert_str_eq(lp_buf_text(&found), expected);
  lp_buf_free(&found);
  lp_vec_free(&ids);
}

LP_TEST(a_special_token_that_a_user_types_is_text) {
  lp_tokenizer *tokenizer =
      load("\"added_tokens\":[{\"id\":300,\"content\":\"<x>\",\"special\":true,\"normalized\":false},"
           "{\"id\":301,\"content\":\"<y>\",\"special\":true},"
           "{\"id\":302,\"content\":\"<z>\",\"special\":false}]",
           "");
  expect_ids(tokenizer, "<x>ab<y><z>", 11, false, "300 200 301 302");
  expect_typed(tokenizer, "<x>ab<y><z>", "60 120 62 200 60 121 62 302");
  expect_typed(tokenizer, "<<x>", "60 60 120 62");
  expect_typed(tokenizer, "", "");
  lp_tokenizer_free(tokenizer);
}

LP_TEST(a_special_token_in_a_message_is_text) {
  lp_tokenizer *tokenizer = load("\"added_tokens\":[{\"id\":300,\"content\":\"<x>\",\"special\":true}]", "");
  const lp_chat_message message = {.role = "user", .content = "a<x>\xEF\xB7\x90"}; /* and a mark of ours */
  lp_tokens ids = {0};
  static const char source[] = "<x>{{ messages[0].content }}<x>";
  static const int32_t expected[] = {300, 97, 60, 120, 62, 300};
  tokenizer->chat = (lp_chat_template){source, "t.jinja", sizeof source - 1};
  ck_assert_int_eq(lp_tokenizer_encode_chat(tokenizer, &message, 1, NULL, &ids, NULL), LP_OK);
  ck_assert_uint_eq(ids.count, LP_COUNT(expected));
  for (size_t i = 0; i < ids.count; i++)
    ck_assert_int_eq(ids.data[i], expected[i]);
  lp_vec_free(&ids);
  lp_tokenizer_free(tokenizer);
}

/* A template reads contents as texts, the arguments of calls as values, and all other members as they are; a special
 * token that a text spells stays text. */
LP_TEST(a_chat_with_tools) {
  static const char source[] = "{{ messages | tojson }}{{ tools | tojson }}<x>";
  static const char body[] =
      "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\","
      "\"text\":\"<x>\"}]},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"i\",\"function\":{"
      "\"name\":\"f\",\"arguments\":\"{\\\"k\\\":[1,true]}\"}},{\"function\":{\"name\":\"g\",\"arguments\":\"{\"}}]}],"
      "\"tools\":[{\"name\":\"f\",\"n\":1.5}]}";
  static const char wanted[] =
      "[{\"role\": \"user\", \"content\": \"a<x>\"}, {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{"
      "\"id\": \"i\", \"function\": {\"name\": \"f\", \"arguments\": {\"k\": [1, true]}}}, {\"function\": {\"name\": "
      "\"g\", \"arguments\": \"{\"}}]}][{\"name\": \"f\", \"n\": 1.5}]";
  lp_tokenizer *tokenizer = load("\"added_tokens\":[{\"id\":300,\"content\":\"<x>\",\"special\":true}]", "");
  lp_json_document *document = NULL;
  lp_tokens ids = {0};
  ck_assert_int_eq(lp_json_parse("body", body, sizeof body - 1, 0, &document, NULL), LP_OK);
  lp_json root = lp_json_root("body", document), messages = lp_json_member(&root, "messages"),
          tools = lp_json_member(&root, "tools");
  lp_diag *diag = lp_diag_create();
  ck_assert_int_ne(lp_tokenizer_encode_chat_json(tokenizer, messages.value, tools.value, NULL, NULL, &ids, diag),
                   LP_OK);
  ck_assert_str_eq(lp_diag_get(diag, 0)->text, "the tokenizer has no chat template");
  tokenizer->chat = (lp_chat_template){source, "t.jinja", sizeof source - 1};
  ck_assert_int_eq(lp_tokenizer_encode_chat_json(tokenizer, messages.value, tools.value, NULL, NULL, &ids, diag),
                   LP_OK);
  ck_assert_uint_eq(ids.count, sizeof wanted);
  for (size_t i = 0; i < sizeof wanted - 1; i++)
    ck_assert_int_eq(ids.data[i], wanted[i]);
  ck_assert_int_eq(ids.data[sizeof wanted - 1], 300);
  lp_diag_free(diag);
  lp_json_free(document);
  lp_vec_free(&ids);
  lp_tokenizer_free(tokenizer);
}
