/* The parts of tokenizer.json one by one: what each pre-tokenizer cuts, each decoder joins and each template adds, as
 * in Hugging Face's tokenizers, and the files around it that are refused. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dir.h"
#include "base/file.h"
#include "base/path.h"
#include "runtime/runtime.h"
#include "runtime/tokenizer/internal.h"
#include "tests/suite.h"

enum { MOST_PIECES = 8 };

static lp_diag *diag;
static char *dir;
static void setup(void) {
  char path[] = "/tmp/llmpart-parts-XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(path));
  dir = lp_strdup(path);
  diag = lp_diag_create();
}
static void teardown(void) {
  lp_diag_free(diag);
  lp_dir_abandon(dir);
  free(dir);
}

LP_CASE(.setup = setup, .teardown = teardown);

static const char *first_error(void) {
  return lp_diag_count(diag) > 0 ? lp_diag_get(diag, 0)->text : "";
}

static lp_tokenizer *parse(const char *json) {
  lp_tokenizer *tokenizer = NULL;
  lp_status status = lp_tokenizer_parse("t.json", json, strlen(json), &tokenizer, diag);
  ck_assert_msg(status == LP_OK, "%s", first_error());
  return tokenizer;
}

static void expect_refusal(const char *json, const char *wanted) {
  lp_tokenizer *tokenizer = NULL;
  lp_buf found = {0};
  lp_diag_clear(diag);
  ck_assert_int_eq(lp_tokenizer_parse("t.json", json, strlen(json), &tokenizer, diag), LP_FAILED);
  lp_diag_format(lp_diag_get(diag, 0), &found);
  ck_assert_ptr_nonnull(strstr(found.data, wanted));
  ck_assert_str_eq(strstr(found.data, wanted), wanted);
  lp_buf_free(&found);
}

/* A tokenizer in which each piece is a token, with its index as id. The first of equal pieces counts. */
static lp_tokenizer *tokens_of(const char *rest, const char *const *pieces, int32_t ids[MOST_PIECES], size_t *count) {
  lp_buf json = {0};
  lp_buf_printf(&json, "{%s\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"[none]\",\"vocab\":{\"[none]\":99", rest);
  for (*count = 0; *count < MOST_PIECES && pieces[*count]; ++*count) {
    size_t same = 0;
    while (strcmp(pieces[same], pieces[*count]) != 0)
      same++;
    ids[*count] = (int32_t)same;
    if (same == *count) lp_buf_printf(&json, ",\"%s\":%zu", pieces[same], same);
  }
  lp_buf_puts(&json, "}}}");
  lp_tokenizer *tokenizer = parse(json.data);
  lp_buf_free(&json);
  return tokenizer;
}

/* ---- pre-tokenizers ---------------------------------------------------------------------------------------------- */

#define BAR "\xE2\x96\x81"
#define METASPACE "\"type\":\"Metaspace\",\"replacement\":\"" BAR "\""

#define FIRST_OF_PARTS                                                                                                 \
  "\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Punctuation\"},{" METASPACE ",\"prepend_scheme\":\"first\"}]"

/* "+" is an added token: the text after it is not the first. */
LP_LOOP_TEST(pieces_of_a_text, 0, 20) {
  static const struct {
    const char *part, *text, *pieces[MOST_PIECES];
  } rows[] = {
      {"\"type\":\"Digits\"", "a12b3", {"a", "12", "b", "3"}},
      {"\"type\":\"Digits\",\"individual_digits\":true", "a12b", {"a", "1", "2", "b"}},
      {"\"type\":\"Punctuation\"", "a,.b", {"a", ",", ".", "b"}},
      {"\"type\":\"Punctuation\",\"behavior\":\"Removed\"", "a,.b", {"a", "b"}},
      {"\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"", "a,.b", {"a", ",.", "b"}},
      {"\"type\":\"Punctuation\",\"behavior\":\"MergedWithPrevious\"", "a,.b", {"a,", ".", "b"}},
      {"\"type\":\"Punctuation\",\"behavior\":\"MergedWithNext\"", "a,.b", {"a", ",", ".b"}},
      {"\"type\":\"CharDelimiterSplit\",\"delimiter\":\"-\"", "-a--b", {"a", "b"}},
      {"\"type\":\"CharDelimiterSplit\",\"delimiter\":\".\"", "a.b-c", {"a", "b-c"}},
      {METASPACE, "a b", {BAR "a", BAR "b"}},
      {METASPACE ",\"split\":false", "a b", {BAR "a" BAR "b"}},
      {METASPACE ",\"add_prefix_space\":false", "a b", {"a", BAR "b"}},
      {METASPACE ",\"prepend_scheme\":\"never\"", "a b", {"a", BAR "b"}},
      {METASPACE ",\"prepend_scheme\":\"first\"", "a b", {BAR "a", BAR "b"}},
      {METASPACE ",\"prepend_scheme\":\"always\",\"add_prefix_space\":false", "a b", {"a", BAR "b"}},
      {FIRST_OF_PARTS, "a,b", {BAR "a", ",", "b"}}, /* only the text's first piece has a prefix */
      {FIRST_OF_PARTS, "+a,b", {"+", "a", ",", "b"}},
      {"\"type\":\"Whitespace\"", "a  b,c", {"a", "b", ",", "c"}},
      {"\"type\":\"WhitespaceSplit\"", "a  b,c", {"a", "b,c"}},
      {"\"type\":\"BertPreTokenizer\"", "a  b,c", {"a", "b", ",", "c"}},
  };
  lp_buf rest = {0};
  int32_t wanted[MOST_PIECES];
  size_t count;
  lp_tokens found = {0};
  lp_buf_printf(&rest, "\"added_tokens\":[{\"id\":98,\"content\":\"+\"}],\"pre_tokenizer\":{%s},", rows[_i].part);
  lp_tokenizer *tokenizer = tokens_of(rest.data, rows[_i].pieces, wanted, &count);
  ck_assert_int_eq(lp_tokenizer_encode(tokenizer, rows[_i].text, strlen(rows[_i].text), false, &found, diag), LP_OK);
  ck_assert_uint_eq(found.count, count);
  ck_assert_mem_eq(found.data, wanted, count * sizeof *wanted);
  lp_vec_free(&found);
  lp_tokenizer_free(tokenizer);
  lp_buf_free(&rest);
}

#define FIRST "\"pre_tokenizer\":{" METASPACE ",\"prepend_scheme\":\"first\"},"
#define STRIP "\"normalizer\":{\"type\":\"Strip\"},"
#define NO_SPACE(what) "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"" what "\"},\"content\":\"\"},"
#define ADDED                                                                                                          \
  "\"added_tokens\":[{\"id\":97,\"content\":\"+\",\"rstrip\":true},{\"id\":98,\"content\":\"\xE3\x80\x80\"},"          \
  "{\"id\":96,\"content\":\"-\",\"lstrip\":true}],"

/* The first piece is the one that begins with the text's first character, and not the first that is left. An added
 * token within the white space that belongs to the one before is found as well. */
LP_LOOP_TEST(beginnings_and_added_tokens, 0, 9) {
  static const struct {
    const char *rest, *text, *pieces[MOST_PIECES];
  } rows[] = {
      {STRIP FIRST, "a b", {BAR "a", BAR "b"}},
      {STRIP FIRST, " a b ", {"a", BAR "b"}},
      {NO_SPACE("^ ") FIRST, " a b", {"a", BAR "b"}},
      {NO_SPACE("b") FIRST, "ab", {BAR "a"}},
      {NO_SPACE("x+") FIRST, "xa", {"a"}},
      {ADDED, "+ \xE3\x80\x80 a", {"+", "\xE3\x80\x80", " a"}},
      {ADDED, "+  -a", {"+", "-", "a"}},
      {STRIP "\"added_tokens\":[{\"id\":97,\"content\":\" + \"}],", "a+b", {"a", " + ", "b"}},
      {ADDED, "+  a", {"+", "a"}},
  };
  int32_t wanted[MOST_PIECES];
  size_t count;
  lp_tokens found = {0};
  lp_tokenizer *tokenizer = tokens_of(rows[_i].rest, rows[_i].pieces, wanted, &count);
  ck_assert_int_eq(lp_tokenizer_encode(tokenizer, rows[_i].text, strlen(rows[_i].text), false, &found, diag), LP_OK);
  ck_assert_uint_eq(found.count, count);
  ck_assert_mem_eq(found.data, wanted, count * sizeof *wanted);
  lp_vec_free(&found);
  lp_tokenizer_free(tokenizer);
}

/* A byte of a text becomes a character of GPT-2's alphabet; parts run in the order of their list. */
LP_TEST(bytes_as_a_normalizer) {
  static const char *const pieces[MOST_PIECES] = {"\xC3\x83\xC2\xA9\xC4\xA0"
                                                  "a"};
  int32_t wanted[MOST_PIECES];
  size_t count;
  lp_tokens found = {0};
  lp_tokenizer *tokenizer = tokens_of("\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[null,{\"type\":"
                                      "\"Lowercase\"},{\"type\":\"ByteLevel\"}]},",
                                      pieces, wanted, &count);
  ck_assert_int_eq(lp_tokenizer_encode(tokenizer, "\xC3\x89 A", 4, false, &found, diag), LP_OK);
  ck_assert_uint_eq(found.count, 1);
  ck_assert_int_eq(found.data[0], 0);
  lp_vec_free(&found);
  lp_tokenizer_free(tokenizer);
}

/* ---- decoders ---------------------------------------------------------------------------------------------------- */

LP_LOOP_TEST(texts_of_tokens, 0, 19) {
  static const char ctc[] = "\"type\":\"CTC\",\"pad_token\":\"<pad>\",\"word_delimiter_token\":\"|\"",
                    ctc_raw[] =
                        "\"type\":\"CTC\",\"pad_token\":\"<pad>\",\"word_delimiter_token\":\"|\",\"cleanup\":false",
                    wordpiece[] = "\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true",
                    wordpiece_raw[] = "\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":false";
  static const struct {
    const char *part, *pieces[MOST_PIECES], *text;
  } rows[] = {
      {ctc, {"h", "h", "<pad>", "h", "|", "i", "i"}, "hh i"},
      {ctc_raw, {"h", "h", "<pad>", "h", "|", "i"}, "hh|i"},
      {ctc, {"a", "<pad>", "<pad>", "a"}, "aa"},
      {ctc, {"ab", "a", "ab"}, "abaab"},
      {wordpiece, {"a", ".", "##b", "!"}, "a.b!"},
      {wordpiece_raw, {"a", ".", "##b", "!"}, "a .b !"},
      {wordpiece, {"##a", "##b", "#"}, "##ab #"}, /* the first is a word as it is */
      {"\"type\":\"Strip\",\"content\":\"a\",\"start\":0,\"stop\":1", {"baa", "a", "b", "ab"}, "babab"},
      {"\"type\":\"Strip\",\"content\":\"a\",\"start\":0,\"stop\":2", {"baa", "aaa", "b"}, "bab"},
      {"\"type\":\"Strip\",\"content\":\"a\",\"start\":1,\"stop\":1", {"aaa", "a", "aba"}, "ab"},
      {"\"type\":\"ByteFallback\"", {"<0xc3>", "<0xA9>", "<0x+9>"}, "\xC3\xA9\t"},
      {"\"type\":\"ByteFallback\"", {"<0x4g>", "<0xg4>", "<0x4+>", "<0x4@>"}, "<0x4g><0xg4><0x4+><0x4@>"},
      {"\"type\":\"ByteFallback\"", {"<0X41>", "<0x41", "<0x410>", "<0x41)"}, "<0X41><0x41<0x410><0x41)"},
      {"\"type\":\"ByteFallback\"", {"<0x0f>", "<0x1F>"}, "\x0F\x1F"},
      {"\"type\":\"ByteLevel\"",
       {"\xC4\xA0"
        "a",
        "\xE2\x82\xAC\xC4\xA0"},
       " a\xE2\x82\xAC\xC4\xA0"},
      {"\"type\":\"ByteLevel\"", {"\xC3\x83", "\xC2\xA9"}, "\xC3\xA9"},
      {METASPACE ",\"prepend_scheme\":\"never\"", {BAR "a", BAR "b"}, " a b"},
      {METASPACE ",\"prepend_scheme\":\"first\"", {BAR "a", BAR "b"}, "a b"},
      {"\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"", {"a</w>", "b", "c</w>"}, "a bc"},
  };
  lp_buf rest = {0}, text = {0};
  int32_t ids[MOST_PIECES];
  size_t count;
  lp_buf_printf(&rest, "\"decoder\":{%s},", rows[_i].part);
  lp_tokenizer *tokenizer = tokens_of(rest.data, rows[_i].pieces, ids, &count);
  lp_tokenizer_decode(tokenizer, ids, count, false, &text);
  ck_assert_str_eq(lp_buf_text(&text), rows[_i].text);
  lp_tokenizer_free(tokenizer);
  lp_buf_free(&rest);
  lp_buf_free(&text);
}

/* The bytes of a token are what it adds to the text of the tokens before it. */
LP_LOOP_TEST(bytes_of_a_token, 0, 8) {
  static const struct {
    const char *part, *piece, *bytes;
  } rows[] = {
      {"null", "b", " b"},
      {"{\"type\":\"WordPiece\",\"prefix\":\"##\"}", "##b", "b"},
      {"{\"type\":\"WordPiece\",\"prefix\":\"##\"}", "b", " b"},
      {"{" METASPACE "}", BAR "b", " b"},
      {"{\"type\":\"ByteFallback\"}", "<0x41>", "A"},
      {"{\"type\":\"ByteLevel\"}", "\xC4\xA0", " "},
      {"{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"xyz\"}", "cab", "cxyzb"},
      {"{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"\"}", "cab", "cb"},
  };
  const char *const pieces[MOST_PIECES] = {"a", rows[_i].piece};
  lp_buf rest = {0}, text = {0}, bytes = {0};
  int32_t ids[MOST_PIECES];
  size_t count;
  bool special = true;
  lp_buf_printf(&rest, "\"decoder\":%s,", rows[_i].part);
  lp_tokenizer *tokenizer = tokens_of(rest.data, pieces, ids, &count);
  lp_tokenizer_token_bytes(tokenizer, ids[1], &bytes, &special);
  ck_assert_str_eq(lp_buf_text(&bytes), rows[_i].bytes);
  ck_assert(!special);
  lp_tokenizer_decode(tokenizer, ids, 1, false, &text);
  lp_buf_puts(&text, rows[_i].bytes);
  lp_buf_clear(&bytes);
  lp_tokenizer_decode(tokenizer, ids, 2, false, &bytes);
  ck_assert_str_eq(lp_buf_text(&bytes), lp_buf_text(&text));
  lp_buf_clear(&bytes);
  lp_tokenizer_token_bytes(tokenizer, 98, &bytes, &special); /* there is none of this id */
  ck_assert(bytes.size == 0 && !special);
  lp_tokenizer_free(tokenizer);
  lp_buf_free(&rest);
  lp_buf_free(&text);
  lp_buf_free(&bytes);
}

/* ---- templates --------------------------------------------------------------------------------------------------- */

#define SPECIAL(name) "{\"SpecialToken\":{\"id\":\"" name "\",\"type_id\":0}}"
#define SEQUENCE "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"
#define TEMPLATE(single)                                                                                               \
  "{\"type\":\"TemplateProcessing\",\"single\":[" single "],\"special_tokens\":{\"B\":{\"ids\":[1]},"                  \
  "\"E\":{\"ids\":[2,3]}}}"

LP_LOOP_TEST(tokens_around_a_text, 0, 5) {
  static const struct {
    const char *processor, *ids;
  } rows[] = {
      {TEMPLATE(SPECIAL("B") "," SEQUENCE "," SPECIAL("E")), "1 0 2 3"},
      {"{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"}," TEMPLATE(
           SPECIAL("B") "," SEQUENCE) "," TEMPLATE(SPECIAL("E") "," SEQUENCE "," SPECIAL("B")) "]}",
       "2 3 1 0 1"}, /* the later one goes around */
      {"{\"type\":\"RobertaProcessing\",\"cls\":[\"x\",1],\"sep\":[\"y\",3]}", "1 0 3"},
      {"{\"type\":\"BertProcessing\",\"cls\":[\"x\",3],\"sep\":[\"y\",1]}", "3 0 1"},
      {"null", "0"},
  };
  static const char *const pieces[MOST_PIECES] = {"a", "b", "c", "d"};
  lp_buf rest = {0}, text = {0};
  int32_t ids[MOST_PIECES];
  size_t count;
  lp_tokens found = {0};
  lp_buf_printf(&rest, "\"post_processor\":%s,", rows[_i].processor);
  lp_tokenizer *tokenizer = tokens_of(rest.data, pieces, ids, &count);
  ck_assert_int_eq(lp_tokenizer_encode(tokenizer, "a", 1, true, &found, diag), LP_OK);
  for (size_t i = 0; i < found.count; i++)
    lp_buf_printf(&text, "%s%d", i > 0 ? " " : "", found.data[i]);
  ck_assert_str_eq(lp_buf_text(&text), rows[_i].ids);
  lp_vec_free(&found);
  lp_tokenizer_free(tokenizer);
  lp_buf_free(&rest);
  lp_buf_free(&text);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

#define WORDS "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}}}"

LP_LOOP_TEST(parts_that_are_refused, 0, 23) {
  static const struct {
    const char *part, *refusal;
  } rows[] = {
      {"\"pre_tokenizer\":{" METASPACE ",\"prepend_scheme\":\"last\"}",
       "pre_tokenizer.prepend_scheme: unknown scheme 'last'"},
      {"\"pre_tokenizer\":{" METASPACE ",\"prepend_scheme\":1}", "wanted a string, found an integer"},
      {"\"pre_tokenizer\":{" METASPACE ",\"split\":1}", "wanted a boolean, found an integer"},
      {"\"pre_tokenizer\":{" METASPACE ",\"add_prefix_space\":1}", "wanted a boolean, found an integer"},
      {"\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\"}", "wanted one character, found ''"},
      {"\"pre_tokenizer\":{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"--\"}", "wanted one character, found '--'"},
      {"\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":\"x\"}", "wanted a boolean, found a string"},
      {"\"pre_tokenizer\":{\"type\":\"Punctuation\",\"behavior\":\"Eaten\"}", "unknown behavior 'Eaten'"},
      {"\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Removed\",\"invert\":1}",
       "wanted a boolean, found an integer"},
      {"\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Removed\",\"pattern\":\"a\"}",
       "wanted an object, found a string"},
      {"\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":{}}", "wanted an array, found an object"},
      {"\"pre_tokenizer\":[]", "wanted an object, found an array"},
      {"\"pre_tokenizer\":{}", "wanted a string, found nothing"},
      {"\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"use_regex\":1}", "wanted a boolean, found an integer"},
      {"\"normalizer\":{\"type\":\"Prepend\"}", "wanted a string, found nothing"},
      {"\"normalizer\":{\"type\":\"Strip\",\"strip_left\":1}", "wanted a boolean, found an integer"},
      {"\"normalizer\":{\"type\":\"Replace\",\"content\":\"a\"}", "wanted an object, found nothing"},
      {"\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":1}", "wanted a boolean, found an integer"},
      {"\"decoder\":{\"type\":\"CTC\",\"word_delimiter_token\":\"|\"}", "wanted a string, found nothing"},
      {"\"decoder\":{\"type\":\"CTC\",\"pad_token\":\"|\"}", "wanted a string, found nothing"},
      {"\"post_processor\":" TEMPLATE(SEQUENCE "," SEQUENCE), "a template with several sequences is not supported"},
      {"\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"a\"],\"sep\":[\"a\",0]}",
       "post_processor.cls: wanted a token and its id"},
      {"\"post_processor\":{\"type\":\"Sequence\",\"processors\":[7]}", "wanted an object, found an integer"},
  };
  lp_buf json = {0};
  lp_buf_printf(&json, "{%s,%s", rows[_i].part, WORDS);
  expect_refusal(json.data, rows[_i].refusal);
  lp_buf_free(&json);
}

/* 32 sequences within each other are read, one more is not. */
LP_LOOP_TEST(nested_parts, 0, 3) {
  static const char *const keys[][2] = {
      {"normalizer", "normalizers"}, {"decoder", "decoders"}, {"post_processor", "processors"}};
  for (int depth = 32; depth <= 33; depth++) {
    lp_buf json = {0};
    lp_buf_printf(&json, "{\"%s\":", keys[_i][0]);
    for (int i = 0; i < depth; i++)
      lp_buf_printf(&json, "{\"type\":\"Sequence\",\"%s\":[", keys[_i][1]);
    lp_buf_puts(&json, _i == 0 ? "{\"type\":\"NFC\"}" : "{\"type\":\"ByteLevel\"}");
    for (int i = 0; i < depth; i++)
      lp_buf_puts(&json, "]}");
    lp_buf_printf(&json, ",%s", WORDS);
    if (depth == 32)
      lp_tokenizer_free(parse(json.data));
    else
      expect_refusal(json.data, "nested too deeply");
    lp_buf_free(&json);
  }
}

#define BPE(rest) "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}," rest "}}"
#define NO_MERGE "model.merges[0]: wanted \"a b\" or [\"a\", \"b\"]"

LP_LOOP_TEST(models_that_are_refused, 0, 13) {
  static const struct {
    const char *json, *refusal;
  } rows[] = {
      {BPE("\"merges\":[7]"), NO_MERGE},
      {BPE("\"merges\":[\"ab\"]"), NO_MERGE},
      {BPE("\"merges\":[[\"a\"]]"), NO_MERGE},
      {BPE("\"merges\":[[\"a\",1]]"), NO_MERGE},
      {BPE("\"merges\":[[1,\"b\"]]"), NO_MERGE},
      {BPE("\"merges\":[[\"a\",\"b\",\"a\"]]"), NO_MERGE},
      {BPE("\"merges\":[\"c b\"]"), "'c' is not in the vocabulary"},
      {BPE("\"merges\":[\"a b\"],\"continuing_subword_prefix\":\"##\""),
       "'b' is shorter than the continuing_subword_prefix"},
      {BPE("\"merges\":[\"a b\"],\"merge_ranks\":[-1]"), "-1 lies outside of 0..4294967295"},
      {BPE("\"merges\":[],\"dropout\":1"), "random merges are not supported"},
      {"{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\":0.5}}}",
       "the id of 'a' is not an integer below 4194304"},
      {"{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\":4194304}}}",
       "the id of 'a' is not an integer below 4194304"},
      {BPE("\"merges\":[],\"unk_token\":1"), "wanted a string, found an integer"},
  };
  expect_refusal(rows[_i].json, rows[_i].refusal);
}

/* A line with the version of a list of merges is no merge; the least rank goes first; an unknown token that is not
 * there leaves characters out; no text merges at random with a dropout of zero. */
LP_TEST(models_with_unusual_members) {
  lp_tokenizer *tokenizer =
      parse("{\"model\":{\"type\":\"BPE\",\"dropout\":0,\"unk_token\":\"[none]\",\"vocab\":{\"a\":0,"
            "\"b\":1,\"ab\":2,\"bb\":3},\"merges\":[\"#version: 0.2\",\"a b\",[\"b\",\"b\"]],"
            "\"merge_ranks\":[0,9,4294967295]}}");
  lp_tokens found = {0};
  ck_assert_str_eq(first_error(),
                   "'model.unk_token': '[none]' is not in the vocabulary; unknown characters are left out");
  ck_assert_int_eq(lp_tokenizer_encode(tokenizer, "cabb", 4, false, &found, diag), LP_OK);
  ck_assert_uint_eq(found.count, 2);
  ck_assert_int_eq(found.data[0], 2);
  ck_assert_int_eq(found.data[1], 1);
  lp_vec_free(&found);
  lp_tokenizer_free(tokenizer);
}

/* ---- the files beside it ----------------------------------------------------------------------------------------- */

static void put_file(const char *name, const char *text) {
  char *path = lp_path_join(dir, name);
  ck_assert_int_eq(lp_file_write(path, text, strlen(text), NULL), LP_OK);
  free(path);
}

static lp_status load_with(const char *config, const char *chat, lp_tokenizer **out) {
  char *path = lp_path_join(dir, "tokenizer.json");
  put_file("tokenizer.json", "{" WORDS);
  put_file("tokenizer_config.json", config);
  if (chat) put_file("chat_template.jinja", chat);
  lp_status status = lp_tokenizer_load(path, out, diag);
  free(path);
  return status;
}

#define NAMED(name, text) "{\"name\":\"" name "\",\"template\":\"" text "\"}"

LP_LOOP_TEST(chat_templates_of_a_folder, 0, 8) {
  static const struct {
    const char *config, *chat, *text, *refusal;
  } rows[] = {
      {"{\"chat_template\":\"x{{ 1 + 1 }}\"}", NULL, "x2", NULL},
      {"{\"chat_template\":null}", NULL, NULL, NULL},
      {"{\"chat_template\":[" NAMED("tools", "t") "," NAMED("default", "d") "]}", NULL, "d", NULL},
      {"{\"chat_template\":\"x\"}", "y{{ 3 }}", "y3", NULL}, /* a file of its own goes first */
      {"{}", "z", "z", NULL},
      {"{\"chat_template\":[" NAMED("tools", "t") "]}", NULL, NULL, "none of the templates is named 'default'"},
      {"{\"chat_template\":7}", NULL, NULL, "wanted a string, found an integer"},
      {"{", NULL, NULL, "not valid JSON"},
  };
  lp_tokenizer *tokenizer = NULL;
  lp_buf text = {0};
  ck_assert_int_eq(load_with(rows[_i].config, rows[_i].chat, &tokenizer), rows[_i].refusal ? LP_FAILED : LP_OK);
  if (rows[_i].refusal) {
    ck_assert_ptr_nonnull(strstr(first_error(), rows[_i].refusal));
    return;
  }
  ck_assert_int_eq(lp_tokenizer_has_chat_template(tokenizer), rows[_i].text != NULL);
  const lp_chat_message message = {.role = "user", .content = "a"};
  if (rows[_i].text) ck_assert_int_eq(lp_tokenizer_chat(tokenizer, &message, 1, true, &text, diag), LP_OK);
  ck_assert_str_eq(lp_buf_text(&text), rows[_i].text ? rows[_i].text : "");
  lp_buf_free(&text);
  lp_tokenizer_free(tokenizer);
}

/* Templates print the special tokens that the files name, and requests with tools use the template for them. */
LP_LOOP_TEST(names_and_templates_of_a_folder, 0, 9) {
#define ALL "{{ pad_token }}{{ mask_token }}{{ image_token }}{{ own_token }}{{ eot_token }}{{ add_token }}"
  static const struct {
    const char *config, *map, *chat, *tool_chat, *plain, *with_tools;
  } rows[] = {
      {"{\"pad_token\":\"p\",\"mask_token\":{\"content\":\"m\"},\"own_token\":\"o\",\"add_token\":true,"
       "\"extra_special_tokens\":{\"image_token\":\"i\",\"eot_token\":{\"content\":\"e\"}}}",
       NULL, ALL, NULL, "pmioe", "pmioe"},
      {"{\"pad_token\":\"p\",\"extra_special_tokens\":[\"x\"]}",
       "{\"pad_token\":{\"content\":\"q\"},\"mask_token\":\"m\",\"extra_special_tokens\":{\"eot_token\":\"e\"}}", ALL,
       NULL, "qme", "qme"},
      {"{\"pad_token\":\"p\"}", "{\"pad_token\":null}", ALL, NULL, "", ""},
      /* as transformers: the older file does not count beside added_tokens_decoder */
      {"{\"pad_token\":\"p\",\"added_tokens_decoder\":{}}", "{\"pad_token\":\"q\"}", ALL, NULL, "p", "p"},
      {"{\"chat_template\":[" NAMED("tool_use", "t") "," NAMED("default", "d") "]}", NULL, NULL, NULL, "d", "t"},
      {"{}", NULL, "d", "t", "d", "t"},
      {"{\"chat_template\":[" NAMED("tool_use", "t") "," NAMED("default", "d") "]}", NULL, "e", NULL, "e", "e"},
      {"{\"chat_template\":[" NAMED("tool_use", "t") "," NAMED("default", "d") "]}", NULL, "e", "u", "e", "u"},
      {"{\"chat_template\":\"{{ 'bos' if bos_token is defined else 'none' }}\"}", NULL, NULL, NULL, "none", "none"},
  };
  lp_tokenizer *tokenizer = NULL;
  char *folder = lp_path_join(dir, "additional_chat_templates");
  if (rows[_i].map) put_file("special_tokens_map.json", rows[_i].map);
  if (rows[_i].tool_chat) {
    ck_assert_int_eq(mkdir(folder, 0777), 0);
    put_file("additional_chat_templates/tool_use.jinja", rows[_i].tool_chat);
  }
  free(folder);
  ck_assert_int_eq(load_with(rows[_i].config, rows[_i].chat, &tokenizer), LP_OK);
  for (int with_tools = 0; with_tools < 2; with_tools++) {
    lp_buf text = {0};
    ck_assert_int_eq(lp_tokenizer_render(tokenizer, (lp_chat_input){0}, with_tools != 0, &text, diag), LP_OK);
    ck_assert_str_eq(lp_buf_text(&text), with_tools ? rows[_i].with_tools : rows[_i].plain);
    lp_buf_free(&text);
  }
  lp_tokenizer_free(tokenizer);
}

LP_TEST(special_tokens_of_a_config) {
  lp_tokenizer *tokenizer = NULL;
  ck_assert_int_eq(load_with("{\"bos_token\":{\"content\":\"a\"},\"eos_token\":null}", NULL, &tokenizer), LP_OK);
  ck_assert_int_eq(lp_tokenizer_eos(tokenizer), -1);
  lp_tokenizer_free(tokenizer);
  ck_assert_int_eq(load_with("{\"bos_token\":7}", NULL, &tokenizer), LP_FAILED);
  ck_assert_ptr_nonnull(strstr(first_error(), "wanted a string, found an integer"));
}
