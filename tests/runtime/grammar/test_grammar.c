/* Grammars of JSON schemas: texts that they take and refuse, and keywords that are refused by name. */
#include <stdlib.h>
#include <string.h>

#include "runtime/grammar/automaton.h"
#include "runtime/grammar/grammar.h"
#include "tests/runtime/grammar/slow_grammar.h"
#include "tests/suite.h"

static lp_grammar *make(const char *schema, lp_diag *diag) {
  lp_json_document *document = NULL;
  lp_grammar *grammar = NULL;
  ck_assert_int_eq(lp_json_parse("schema", schema, strlen(schema), 0, &document, NULL), LP_OK);
  lp_json root = lp_json_root("schema", document);
  lp_status status = lp_grammar_of_schema(&root, &grammar, diag);
  ck_assert_int_eq(status == LP_OK, grammar != NULL);
  lp_json_free(document);
  return grammar;
}

/* Tells whether the grammar takes the whole text, byte by byte, as the oracle does. */
static bool takes(const lp_grammar *grammar, const char *text) {
  lp_automaton *automaton = lp_automaton_create(grammar, NULL);
  slow_grammar *slow = slow_grammar_begin(grammar);
  lp_automaton_grant(automaton, INT64_MAX, true);
  bool good = lp_automaton_allows(automaton, text, strlen(text)) == LP_MATCH_YES;
  ck_assert_int_eq(good, slow_grammar_allows(slow, text, strlen(text)));
  for (size_t i = 0; good && text[i]; i++) {
    ck_assert_int_eq(lp_automaton_take(automaton, text + i, 1), LP_MATCH_YES);
    slow_grammar_take(slow, text + i, 1);
    ck_assert_int_eq(lp_automaton_can_end(automaton), slow_grammar_can_end(slow));
  }
  good = good && lp_automaton_can_end(automaton);
  lp_automaton_free(automaton);
  slow_grammar_free(slow);
  return good;
}

static void expect(const char *schema, const char *const *good, const char *const *bad) {
  lp_grammar *grammar = make(schema, NULL);
  ck_assert_ptr_nonnull(grammar);
  for (; *good; good++)
    ck_assert_msg(takes(grammar, *good), "%s refuses %s", schema, *good);
  for (; *bad; bad++)
    ck_assert_msg(!takes(grammar, *bad), "%s takes %s", schema, *bad);
  lp_grammar_free(grammar);
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void refuse(const char *schema, const char *why) {
  lp_diag *diag = lp_diag_create();
  ck_assert_ptr_null(make(schema, diag));
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  ck_assert_msg(strstr(lp_diag_get(diag, 0)->text, why) != NULL, "%s: %s", schema, lp_diag_get(diag, 0)->text);
  lp_diag_free(diag);
}

LP_TEST(scalars) {
  expect("{\"type\":\"integer\"}", TEXTS("0", "-7", "120", " 5"), TEXTS("01", "1.5", "", "-", "1234567890123456"));
  expect("{\"type\":\"number\"}", TEXTS("0", "-7.25", "1e9", "1.5E-3"), TEXTS("1.", ".5", "1e", "NaN"));
  expect("{\"type\":[\"boolean\",\"null\"]}", TEXTS("true", "false", "null"), TEXTS("True", "nul", "\"true\""));
  expect("{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
         TEXTS("\"ab\"", "\"a\\n\"", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""),
         TEXTS("\"a\"", "\"abcd\"", "\"a\nb\"", "\"\xc3\xc3\"", "\"\xed\xa0\x80z\""));
  expect("{\"enum\":[\"a\",1,null],\"type\":[\"string\",\"null\"]}", TEXTS("\"a\"", "null"), TEXTS("1", "\"b\""));
  expect("{\"const\":{\"a\":[1,2]}}", TEXTS("{\"a\":[1,2]}"), TEXTS("{\"a\":[1]}", "{}"));
}

LP_TEST(objects) {
  const char *schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"boolean\"},"
                       "\"c\":{\"type\":\"null\"}},\"required\":[\"b\"],\"additionalProperties\":false}";
  expect(schema,
         TEXTS("{\"b\":true}", "{\"a\": 1, \"b\": false, \"c\": null}", "{\n  \"b\":true,\"c\":null\n}",
               "{\"a\":1,\"b\":true}"),
         TEXTS("{}", "{\"a\":1}", "{\"b\":true,\"a\":1}", "{\"b\":true,}", "{\"b\":true,\"d\":1}", "{,\"b\":true}"));
  expect("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}", TEXTS("{}", "{\"x\":1,\"y\": 2}"),
         TEXTS("{\"x\":\"1\"}", "{\"x\"}", "{\"x\":1 \"y\":2}"));
  expect("{\"type\":\"object\",\"properties\":{\"q\\\"\":{\"type\":\"null\"}},\"required\":[\"q\\\"\"]}",
         TEXTS("{\"q\\\"\":null}"), TEXTS("{}", "{\"q\":null}"));
  expect("{\"type\":\"object\",\"properties\":{}}", TEXTS("{}", "{ }"), TEXTS("{\"a\":1}"));
  expect("{\"properties\":{},\"additionalProperties\":true}", TEXTS("{}", "{\"a\":1}"), TEXTS("{\"a\"}"));
  expect("{\"type\":\"object\"}", TEXTS("{}", "{\"a\":1}"), TEXTS("[]"));
}

LP_TEST(arrays) {
  expect("{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", TEXTS("[]", "[1]", "[1, 2,3]", "[ 1 ]"),
         TEXTS("[1,]", "[,1]", "[1 2]", "[\"a\"]"));
  expect("{\"type\":\"array\",\"items\":{\"type\":\"null\"},\"minItems\":2,\"maxItems\":3}",
         TEXTS("[null,null]", "[null, null, null]"), TEXTS("[]", "[null]", "[null,null,null,null]"));
  expect("{\"type\":\"array\",\"items\":{\"type\":\"null\"},\"minItems\":2}",
         TEXTS("[null,null]", "[null,null,null,null]"), TEXTS("[null]"));
  expect("{\"type\":\"array\",\"uniqueItems\":false,\"$anchor\":\"a\"}", TEXTS("[1,1]"), TEXTS("[1,]"));
  expect("{\"type\":\"array\",\"maxItems\":0}", TEXTS("[]"), TEXTS("[1]"));
}

/* What is within a limit on the one hand, and each keyword without its usual companion on the other. */
LP_TEST(keywords_by_themselves) {
  expect("{\"allOf\":[{\"type\":\"null\"}]}", TEXTS("null"), TEXTS("1"));
  expect("{\"minLength\":2}", TEXTS("\"ab\"", "\"abc\""), TEXTS("\"a\"", "1"));
  expect("{\"maxLength\":1}", TEXTS("\"\"", "\"a\""), TEXTS("\"ab\""));
  expect("{\"minLength\":2,\"maxLength\":2}", TEXTS("\"ab\""), TEXTS("\"a\"", "\"abc\""));
  expect("{\"minLength\":0}", TEXTS("\"\"", "\"ab\""), TEXTS("1"));
  expect("{\"enum\":[1,1.5,\"a\"],\"type\":\"number\"}", TEXTS("1", "1.5"), TEXTS("\"a\""));
  expect("{\"type\":\"object\",\"additionalProperties\":false}", TEXTS("{}", "{ }"), TEXTS("{\"a\":1}"));
  expect("{\"type\":\"object\",\"required\":[],\"nullable\":false}", TEXTS("{}", "{\"a\":1}"), TEXTS("null"));
}

/* 64 schemas within each other are read, one more is not. */
LP_TEST(deep_schemas) {
  for (int depth = 64; depth <= 65; depth++) {
    lp_buf schema = {0}, text = {0};
    for (int i = 0; i < depth; i++)
      lp_buf_puts(&schema, "{\"items\":"), lp_buf_puts(&text, "[");
    lp_buf_puts(&schema, "{}");
    for (int i = 0; i < depth; i++)
      lp_buf_puts(&schema, "}"), lp_buf_puts(&text, "]");
    if (depth == 64)
      expect(lp_buf_text(&schema), TEXTS(lp_buf_text(&text)), TEXTS("{}"));
    else
      refuse(lp_buf_text(&schema), "the schema is too large");
    lp_buf_free(&schema);
    lp_buf_free(&text);
  }
}

LP_TEST(references) {
  expect("{\"$defs\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"integer\"}},\"anyOf\":[{\"$ref\":\"#/$defs/a\"},"
         "{\"$ref\":\"#/$defs/b\"},{\"$ref\":\"#/$defs/a\"}]}",
         TEXTS("null", "1"), TEXTS("true"));
  expect("{\"$defs\":{\"%zz%00~2~\":{\"type\":\"null\"}},\"$ref\":\"#/$defs/%zz%00~2~\"}", TEXTS("null"), TEXTS("1"));
  expect("{\"$ref\":\"#/$defs/tree\",\"$defs\":{\"tree\":{\"type\":\"object\",\"properties\":{\"left\":{\"anyOf\":["
         "{\"$ref\":\"#/$defs/tree\"},{\"type\":\"null\"}]}},\"required\":[\"left\"]}}}",
         TEXTS("{\"left\":null}", "{\"left\":{\"left\":{\"left\":null}}}"), TEXTS("{}", "{\"left\":{}}"));
  expect("{\"$defs\":{\"a/b~c d%\":{\"type\":\"null\"}},\"$ref\":\"#/$defs/a~1b~0c%20d%\"}", TEXTS("null"), TEXTS("1"));
  expect("{\"$defs\":{\"~01%2\":{\"type\":\"null\"}},\"$ref\":\"#/$defs/%7E001%2\"}", TEXTS("null"), TEXTS("1"));
}

/* All values of a long list, and no others. */
LP_TEST(many_values) {
  enum { COUNT = 6000 };
  lp_buf schema = {0};
  char value[16];
  lp_buf_puts(&schema, "{\"enum\":[\"\"");
  for (int i = 0; i < COUNT; i++)
    lp_buf_printf(&schema, ",\"v%d\"", i);
  lp_buf_puts(&schema, ",1,12,\"v7\"]}");
  lp_grammar *grammar = make(lp_buf_text(&schema), NULL);
  for (int i = 0; i < COUNT; i += 37) {
    (void)snprintf(value, sizeof value, "\"v%d\"", i);
    ck_assert_msg(takes(grammar, value), "%s", value);
  }
  const char *const good[] = {"\"\"", "1", "12", "\"v0\"", "\"v5999\""}, *const bad[] = {"\"v6000\"", "\"v\"", "2", ""};
  for (size_t i = 0; i < LP_COUNT(good); i++)
    ck_assert(takes(grammar, good[i]));
  for (size_t i = 0; i < LP_COUNT(bad); i++)
    ck_assert(!takes(grammar, bad[i]));
  lp_grammar_free(grammar);
  lp_buf_free(&schema);
}

static char *repeated(const char *before, const char *each, int count, const char *after) {
  lp_buf text = {0};
  lp_buf_puts(&text, before);
  for (int i = 0; i < count; i++)
    lp_buf_printf(&text, each, i > 0 ? "," : "", i);
  lp_buf_puts(&text, after);
  return text.data;
}

LP_TEST(any_json) {
  expect("true", TEXTS("1", "\"a\"", "{\"a\":[1,{\"b\":null}]}", "[]"), TEXTS("", "{", "a"));
  lp_json none = {0};
  lp_grammar *grammar = NULL;
  ck_assert_int_eq(lp_grammar_of_schema(&none, &grammar, NULL), LP_OK);
  ck_assert(takes(grammar, "{\"a\":[1,{\"b\":null}]}"));
  ck_assert(!takes(grammar, "[1]"));
  lp_grammar_free(grammar);
}

/* Annotations of anyone restrict nothing. */
LP_TEST(annotations) {
  lp_grammar *grammar =
      make("{\"type\":\"integer\",\"x-foo\":{\"a\":1},\"$id\":\"a\",\"markdownDescription\":\"b\"}", NULL);
  ck_assert(takes(grammar, "12"));
  ck_assert(!takes(grammar, "\"a\""));
  lp_grammar_free(grammar);
}

LP_TEST(refusals) {
  refuse("{\"type\":\"string\",\"pattern\":\"a\"}", "'pattern' is not supported");
  refuse("{\"type\":\"integer\",\"minimum\":1}", "'minimum' is not supported");
  refuse("{\"oneOf\":[{}]}", "'oneOf' is not supported");
  refuse("{\"type\":\"moon\"}", "type 'moon' is unknown");
  refuse("{\"anyOf\":[{\"type\":\"null\"}],\"type\":\"object\"}", "'anyOf' beside other keywords");
  refuse("{\"$ref\":\"#/$defs/no\"}", "'$ref' finds nothing");
  refuse("{\"type\":\"object\",\"required\":[\"a\"]}", "requires 'a', which 'properties' lacks");
  refuse("{\"enum\":[1],\"type\":\"string\"}", "no values of its type");
  refuse("{\"type\":\"array\",\"minItems\":3,\"maxItems\":2}", "'minItems' exceeds");
  refuse("{\"type\":\"array\",\"maxItems\":100000}", "whole number up to 1024");
  refuse("[]", "a schema must be an object");
  refuse("{\"type\":\"array\",\"uniqueItems\":true}", "'uniqueItems' is not supported");
  refuse("{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"}]}}}",
         "refers to itself");
  refuse("{\"$ref\":\"#\"}", "refers to itself");
  refuse("{\"anyOf\":[]}", "a list of 0 alternatives");
  refuse("false", "a schema must be an object");
  refuse("{\"type\":\"string\",\"nullable\":true}", "'nullable' is not supported: use a type 'null'");
  refuse("{\"type\":\"object\",\"properties\":{\"a\":{}},\"required\":[\"a\",1]}", "requires '?'");
  refuse("{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", "'minLength' exceeds 'maxLength'");
  refuse("{\"type\":[]}", "'type' must be a name or a list of names");
  refuse("{\"type\":[\"null\",\"moon\"]}", "type 'moon' is unknown");
  refuse("{\"allOf\":[{},{}]}", "'allOf' has several schemas");
  refuse("{\"enum\":[1.5],\"type\":\"integer\"}", "no values of its type");
  static const char *const around[][2] = {{"{\"allOf\":[", "]}"},
                                          {"{\"items\":", "}"},
                                          {"{\"anyOf\":[{},", ",{}]}"},
                                          {"{\"properties\":{\"a\":", "}}"},
                                          {"{\"additionalProperties\":", "}"},
                                          {"{\"$defs\":{\"a\":", "},\"$ref\":\"#/$defs/a\"}"}};
  for (size_t i = 0; i < LP_COUNT(around); i++) { /* a part of a schema is refused like a schema */
    lp_buf schema = {0};
    lp_buf_printf(&schema, "%s{\"type\":\"moon\"}%s", around[i][0], around[i][1]);
    refuse(lp_buf_text(&schema), "type 'moon' is unknown");
    lp_buf_free(&schema);
  }
  static const char *const long_of[][4] = {
      {"{\"anyOf\":[", "%s{\"const\":%d}", "]}", "a list of 1025 alternatives"},
      {"{\"properties\":{", "%s\"p%d\":{}", "}}", "'properties' has 1025 members"}};
  for (size_t i = 0; i < LP_COUNT(long_of); i++) {
    char *most = repeated(long_of[i][0], long_of[i][1], 1024, long_of[i][2]),
         *more = repeated(long_of[i][0], long_of[i][1], 1025, long_of[i][2]);
    lp_grammar *grammar = make(most, NULL);
    ck_assert_ptr_nonnull(grammar);
    ck_assert(takes(grammar, i == 0 ? "0" : "{\"p1023\":1}") && takes(grammar, i == 0 ? "1023" : "{}"));
    refuse(more, long_of[i][3]);
    lp_grammar_free(grammar);
    free(most);
    free(more);
  }
}

LP_TEST(tools) {
  static const char text[] = "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
                             "\"properties\":{\"x\":{\"type\":\"integer\"}},\"required\":[\"x\"]}}},"
                             "{\"type\":\"function\",\"function\":{\"name\":\"g\"}},"
                             "{\"type\":\"function\",\"function\":{\"name\":\"h\",\"parameters\":{}}}]";
  lp_json_document *document = NULL;
  lp_grammar *any = NULL, *one = NULL;
  ck_assert_int_eq(lp_json_parse("tools", text, strlen(text), 0, &document, NULL), LP_OK);
  lp_json root = lp_json_root("tools", document);
  ck_assert_int_eq(lp_grammar_of_tools(&root, NULL, &any, NULL), LP_OK);
  ck_assert_int_eq(lp_grammar_of_tools(&root, "f", &one, NULL), LP_OK);
  ck_assert(takes(any, "{\"name\": \"g\", \"arguments\": {}}"));
  ck_assert(!takes(any, "{\"name\": \"g\", \"arguments\": {\"a\": 1}}")); /* without parameters */
  ck_assert(takes(any, "{\"name\": \"h\", \"arguments\": {}}"));
  ck_assert(!takes(any, "{\"name\": \"h\", \"arguments\": false}"));
  ck_assert(takes(one, "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"));
  ck_assert(!takes(one, "{\"name\": \"g\", \"arguments\": {}}"));
  ck_assert(!takes(one, "{\"name\": \"f\", \"arguments\": {}}"));
  lp_grammar_free(any);
  lp_grammar_free(one);
  lp_json_free(document);
}

LP_TEST(tools_that_are_refused) {
  static const struct {
    const char *tools, *name, *refusal;
  } rows[] = {
      {"[{\"type\":\"function\",\"function\":{}}]", NULL, "a tool must have 'function' with a 'name'"},
      {"[7]", NULL, "a tool must have 'function' with a 'name'"},
      {"[]", NULL, "'tools' has no function ''"},
      {"[{\"function\":{\"name\":\"f\"}},{\"function\":{\"name\":\"g\"}}]", "h", "'tools' has no function 'h'"},
      {"[{\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"moon\"}}},{}]", "f",
       "the schema's type 'moon' is unknown"},
  };
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    lp_json_document *document = NULL;
    lp_grammar *grammar = NULL;
    lp_diag *diag = lp_diag_create();
    ck_assert_int_eq(lp_json_parse("tools", rows[i].tools, strlen(rows[i].tools), 0, &document, NULL), LP_OK);
    lp_json root = lp_json_root("tools", document);
    ck_assert_int_eq(lp_grammar_of_tools(&root, rows[i].name, &grammar, diag), LP_FAILED);
    ck_assert_ptr_null(grammar);
    ck_assert_uint_eq(lp_diag_count(diag), 1);
    ck_assert_str_eq(lp_diag_get(diag, 0)->text, rows[i].refusal);
    lp_grammar_free(grammar);
    lp_diag_free(diag);
    lp_json_free(document);
  }
}
