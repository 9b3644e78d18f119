/* Grammars of JSON schemas: texts that they take and refuse, and keywords that are refused by name. */
#include <stdlib.h>
#include <string.h>

#include "runtime/grammar/automaton.h"
#include "runtime/grammar/grammar.h"
#include "tests/runtime/grammar/expect.h"
#include "tests/suite.h"

LP_TEST(scalars) {
  expect_texts("{\"type\":\"integer\"}", TEXTS("0", "-7", "120", " 5"),
               TEXTS("01", "1.5", "", "-", "1234567890123456"));
  expect_texts("{\"type\":\"number\"}", TEXTS("0", "-7.25", "1e9", "1.5E-3"), TEXTS("1.", ".5", "1e", "NaN"));
  expect_texts("{\"type\":[\"boolean\",\"null\"]}", TEXTS("true", "false", "null"), TEXTS("True", "nul", "\"true\""));
  expect_texts("{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
               TEXTS("\"ab\"", "\"a\\n\"", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""),
               TEXTS("\"a\"", "\"abcd\"", "\"a\nb\"", "\"\xc3\xc3\"", "\"\xed\xa0\x80z\""));
  expect_texts("{\"enum\":[\"a\",1,null],\"type\":[\"string\",\"null\"]}", TEXTS("\"a\"", "null"), TEXTS("1", "\"b\""));
  expect_texts("{\"const\":{\"a\":[1,2]}}", TEXTS("{\"a\":[1,2]}"), TEXTS("{\"a\":[1]}", "{}"));
}

LP_TEST(objects) {
  const char *schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"boolean\"},"
                       "\"c\":{\"type\":\"null\"}},\"required\":[\"b\"],\"additionalProperties\":false}";
  expect_texts(
      schema,
      TEXTS("{\"b\":true}", "{\"a\": 1, \"b\": false, \"c\": null}", "{\n  \"b\":true,\"c\":null\n}",
            "{\"a\":1,\"b\":true}"),
      TEXTS("{}", "{\"a\":1}", "{\"b\":true,\"a\":1}", "{\"b\":true,}", "{\"b\":true,\"d\":1}", "{,\"b\":true}"));
  expect_texts("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}",
               TEXTS("{}", "{\"x\":1,\"y\": 2}"), TEXTS("{\"x\":\"1\"}", "{\"x\"}", "{\"x\":1 \"y\":2}"));
  expect_texts("{\"type\":\"object\",\"properties\":{\"q\\\"\":{\"type\":\"null\"}},\"required\":[\"q\\\"\"]}",
               TEXTS("{\"q\\\"\":null}"), TEXTS("{}", "{\"q\":null}"));
  expect_texts("{\"type\":\"object\",\"properties\":{}}", TEXTS("{}", "{ }"), TEXTS("{\"a\":1}"));
  expect_texts("{\"properties\":{},\"additionalProperties\":true}", TEXTS("{}", "{\"a\":1}"), TEXTS("{\"a\"}"));
  expect_texts("{\"type\":\"object\"}", TEXTS("{}", "{\"a\":1}"), TEXTS("[]"));
}

LP_TEST(arrays) {
  expect_texts("{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", TEXTS("[]", "[1]", "[1, 2,3]", "[ 1 ]"),
               TEXTS("[1,]", "[,1]", "[1 2]", "[\"a\"]"));
  expect_texts("{\"type\":\"array\",\"items\":{\"type\":\"null\"},\"minItems\":2,\"maxItems\":3}",
               TEXTS("[null,null]", "[null, null, null]"), TEXTS("[]", "[null]", "[null,null,null,null]"));
  expect_texts("{\"type\":\"array\",\"items\":{\"type\":\"null\"},\"minItems\":2}",
               TEXTS("[null,null]", "[null,null,null,null]"), TEXTS("[null]"));
  expect_texts("{\"type\":\"array\",\"uniqueItems\":false,\"$anchor\":\"a\"}", TEXTS("[1,1]"), TEXTS("[1,]"));
  expect_texts("{\"type\":\"array\",\"maxItems\":0}", TEXTS("[]"), TEXTS("[1]"));
}

/* What is within a limit on the one hand, and each keyword without its usual companion on the other. */
LP_TEST(keywords_by_themselves) {
  expect_texts("{\"allOf\":[{\"type\":\"null\"}]}", TEXTS("null"), TEXTS("1"));
  expect_texts("{\"minLength\":2}", TEXTS("\"ab\"", "\"abc\""), TEXTS("\"a\"", "1"));
  expect_texts("{\"maxLength\":1}", TEXTS("\"\"", "\"a\""), TEXTS("\"ab\""));
  expect_texts("{\"minLength\":2,\"maxLength\":2}", TEXTS("\"ab\""), TEXTS("\"a\"", "\"abc\""));
  expect_texts("{\"minLength\":0}", TEXTS("\"\"", "\"ab\""), TEXTS("1"));
  expect_texts("{\"enum\":[1,1.5,\"a\"],\"type\":\"number\"}", TEXTS("1", "1.5"), TEXTS("\"a\""));
  expect_texts("{\"type\":\"object\",\"additionalProperties\":false}", TEXTS("{}", "{ }"), TEXTS("{\"a\":1}"));
  expect_texts("{\"type\":\"object\",\"required\":[],\"nullable\":false}", TEXTS("{}", "{\"a\":1}"), TEXTS("null"));
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
      expect_texts(lp_buf_text(&schema), TEXTS(lp_buf_text(&text)), TEXTS("{}"));
    else
      expect_refused(lp_buf_text(&schema), "the schema is too large");
    lp_buf_free(&schema);
    lp_buf_free(&text);
  }
}

LP_TEST(references) {
  expect_texts(
      "{\"$defs\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"integer\"}},\"anyOf\":[{\"$ref\":\"#/$defs/a\"},"
      "{\"$ref\":\"#/$defs/b\"},{\"$ref\":\"#/$defs/a\"}]}",
      TEXTS("null", "1"), TEXTS("true"));
  expect_texts("{\"$defs\":{\"%zz%00~2~\":{\"type\":\"null\"}},\"$ref\":\"#/$defs/%zz%00~2~\"}", TEXTS("null"),
               TEXTS("1"));
  expect_texts(
      "{\"$ref\":\"#/$defs/tree\",\"$defs\":{\"tree\":{\"type\":\"object\",\"properties\":{\"left\":{\"anyOf\":["
      "{\"$ref\":\"#/$defs/tree\"},{\"type\":\"null\"}]}},\"required\":[\"left\"]}}}",
      TEXTS("{\"left\":null}", "{\"left\":{\"left\":{\"left\":null}}}"), TEXTS("{}", "{\"left\":{}}"));
  expect_texts("{\"$defs\":{\"a/b~c d%\":{\"type\":\"null\"}},\"$ref\":\"#/$defs/a~1b~0c%20d%\"}", TEXTS("null"),
               TEXTS("1"));
  expect_texts("{\"$defs\":{\"~01%2\":{\"type\":\"null\"}},\"$ref\":\"#/$defs/%7E001%2\"}", TEXTS("null"), TEXTS("1"));
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
  lp_grammar *grammar = expect_made(lp_buf_text(&schema), NULL);
  for (int i = 0; i < COUNT; i += 37) {
    (void)snprintf(value, sizeof value, "\"v%d\"", i);
    ck_assert_msg(expect_takes(grammar, value), "%s", value);
  }
  const char *const good[] = {"\"\"", "1", "12", "\"v0\"", "\"v5999\""}, *const bad[] = {"\"v6000\"", "\"v\"", "2", ""};
  for (size_t i = 0; i < LP_COUNT(good); i++)
    ck_assert(expect_takes(grammar, good[i]));
  for (size_t i = 0; i < LP_COUNT(bad); i++)
    ck_assert(!expect_takes(grammar, bad[i]));
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
  expect_texts("true", TEXTS("1", "\"a\"", "{\"a\":[1,{\"b\":null}]}", "[]"), TEXTS("", "{", "a"));
  lp_json none = {0};
  lp_grammar *grammar = NULL;
  ck_assert_int_eq(lp_grammar_of_schema(&none, &grammar, NULL), LP_OK);
  ck_assert(expect_takes(grammar, "{\"a\":[1,{\"b\":null}]}"));
  ck_assert(!expect_takes(grammar, "[1]"));
  lp_grammar_free(grammar);
}

/* Annotations of anyone restrict nothing. */
LP_TEST(annotations) {
  lp_grammar *grammar =
      expect_made("{\"type\":\"integer\",\"x-foo\":{\"a\":1},\"$id\":\"a\",\"markdownDescription\":\"b\"}", NULL);
  ck_assert(expect_takes(grammar, "12"));
  ck_assert(!expect_takes(grammar, "\"a\""));
  lp_grammar_free(grammar);
}

/* A pattern takes the texts that it finds something in, as JSON writes them; one with a length, those of the length. */
LP_TEST(patterns) {
  expect_texts("{\"pattern\":\"^[a-c]+$\"}", TEXTS("\"a\"", "\"abcabc\""), TEXTS("\"\"", "\"abd\"", "\"A\""));
  expect_texts("{\"pattern\":\"b\"}", TEXTS("\"b\"", "\"abc\"", "\"\xc3\xa4 b\""), TEXTS("\"\"", "\"ac\""));
  expect_texts("{\"pattern\":\"^(a|bc){2,3}$\"}", TEXTS("\"aa\"", "\"abc\"", "\"bcabc\""),
               TEXTS("\"a\"", "\"aaaa\"", "\"ab\""));
  expect_texts("{\"pattern\":\"^(?:ab?|c*)$\"}", TEXTS("\"\"", "\"a\"", "\"ab\"", "\"ccc\""), TEXTS("\"b\"", "\"ac\""));
  expect_texts("{\"pattern\":\"^a$|^b\"}", TEXTS("\"a\"", "\"b\"", "\"bc\""), TEXTS("\"ab\"", "\"aa\""));
  expect_texts("{\"pattern\":\"(^a$|b$)\"}", TEXTS("\"a\"", "\"ab\""), TEXTS("\"aa\"", "\"ba\""));
  expect_texts("{\"pattern\":\"^\\\\d{4}-\\\\w\\\\s\\\\S\\\\.\\\\x41\\\\u00e4$\"}",
               TEXTS("\"2024-_ x.A\xc3\xa4\"", "\"2024-z\\tx.A\xc3\xa4\""),
               TEXTS("\"2024-- x.A\xc3\xa4\"", "\"2024-zx.A\xc3\xa4\""));
  expect_texts("{\"pattern\":\"^[^\\\"a-y]$\"}", TEXTS("\"z\"", "\"\xe2\x82\xac\"", "\"\xf0\x9f\x98\x80\"", "\"\\\\\""),
               TEXTS("\"b\"", "\"\\\"\"", "\"\"", "\"\xed\xa0\x80\""));
  expect_texts("{\"pattern\":\"^[\\\"\\\\\\\\\\n]$\"}", TEXTS("\"\\\"\"", "\"\\\\\"", "\"\\n\""),
               TEXTS("\"\\t\"", "\"a\""));
  expect_texts("{\"pattern\":\"^[\xc3\xa0-\xe2\x82\xac]$\"}",
               TEXTS("\"\xc3\xa0\"", "\"\xc3\xa4\"", "\"\xdf\xbf\"", "\"\xe0\xa0\x80\"", "\"\xe2\x82\xac\""),
               TEXTS("\"\xc3\x9f\"", "\"\xe2\x82\xad\"", "\"a\""));
  expect_texts("{\"pattern\":\"^[a-z]+$\",\"minLength\":2,\"maxLength\":4}", TEXTS("\"ab\"", "\"abcd\""),
               TEXTS("\"a\"", "\"abcde\"", "\"a1\""));
  expect_texts("{\"pattern\":\"^(ab)+$\",\"minLength\":3}", TEXTS("\"abab\"", "\"ababab\""),
               TEXTS("\"ab\"", "\"aba\""));
  expect_texts("{\"pattern\":\"^(ab)+$\",\"maxLength\":5}", TEXTS("\"ab\"", "\"abab\""),
               TEXTS("\"ababa\"", "\"ababab\""));
  expect_texts("{\"pattern\":\"^(?P<x>a)(?<y>b)??c{2}d{1,}e{,2}\\\\Z\"}", TEXTS("\"accde{,2}\"", "\"abccdde{,2}\""),
               TEXTS("\"acde{,2}\""));
  expect_texts("{\"pattern\":\"^(?!^[-+.]*$)[+-]?0*\\\\d*\\\\.?\\\\d*$\"}", TEXTS("\"1.5\"", "\"-7\""),
               TEXTS("\".\"", "\"\""));
  static const char *const wrong[][2] = {{"(?=a)", "a look at what follows or precedes"},
                                         {"(?<!a)b", "a look at what follows or precedes"},
                                         {"(a)\\\\1", "a reference to a group"},
                                         {"\\\\bword", "an end of a word"},
                                         {"\\\\p{L}", "a class of Unicode"},
                                         {"[a", "a class without its end"},
                                         {"[z-a]", "a range that is none"},
                                         {"[a-\\\\d]", "a range that is none"},
                                         {"(a", "a group without its end"},
                                         {"a)", "an end of a group without its beginning"},
                                         {"*a", "a repetition of nothing"},
                                         {"a{3,2}", "a repetition that is none"},
                                         {"a{1001}", "more than 1000 repetitions"},
                                         {"(a{1000}){1000}", "too many parts"},
                                         {"a^b", "a ^ or $ within it"},
                                         {"\\\\q", "an escape that is unknown"},
                                         {"\\\\u12", "an escape that is cut off"},
                                         {"a\\\\", "an escape that is cut off"}};
  for (size_t i = 0; i < LP_COUNT(wrong); i++) {
    lp_buf schema = {0};
    lp_buf_printf(&schema, "{\"pattern\":\"%s\"}", wrong[i][0]);
    expect_refused(lp_buf_text(&schema), wrong[i][1]);
    lp_buf_free(&schema);
  }
  /* what repeats nothing takes no time, and groups within each other end somewhere */
  lp_buf deep = {0};
  lp_buf_puts(&deep, "{\"pattern\":\"^");
  for (int i = 0; i < 30; i++)
    lp_buf_puts(&deep, "(");
  for (int i = 0; i < 30; i++)
    lp_buf_puts(&deep, "){1000}");
  lp_buf_puts(&deep, "$\"}");
  expect_texts(lp_buf_text(&deep), TEXTS("\"\""), TEXTS("\"a\""));
  lp_buf_free(&deep);
}

LP_TEST(formats) {
  static const struct {
    const char *name, *good[4], *bad[4];
  } rows[] = {
      {"date", {"2024-02-28", "1999-12-31"}, {"2024-02-31", "2024-13-01", "24-1-1", "2024-02-28x"}},
      {"time", {"23:59:59Z", "00:00:00.5+01:00"}, {"24:00:00Z", "12:00:00", "12:60:00Z"}},
      {"date-time", {"2024-06-30T12:00:00Z"}, {"2024-06-31T12:00:00Z", "2024-06-30 12:00:00Z"}},
      {"duration", {"P3DT4H", "PT5M", "P2W"}, {"P", "PT", "3D", "P1W2D"}},
      {"uuid", {"123e4567-e89b-12d3-a456-426614174000"}, {"123e4567e89b12d3a456426614174000", "x"}},
      {"uuid4", {"123e4567-e89b-42d3-a456-426614174000"}, {"123e4567-e89b-12d3-a456-426614174000"}},
      {"email", {"a.b+c@mail.example.org"}, {"a", "a@b", "@b.org", "a b@c.org"}},
      {"hostname", {"example", "a-b.example.org"}, {"-a", "a..b", "a_b"}},
      {"ipv4", {"0.0.0.0", "255.249.199.9"}, {"256.0.0.1", "1.2.3", "01.2.3.4"}},
      {"ipv6", {"2001:db8:0:0:0:0:0:1", "2001:db8::1", "::1"}, {"1.2.3.4", "2001:db8", "g::1"}},
      {"uri", {"https://example.org/a?b=c#d", "http://localhost:8080"}, {"example.org", "https://", "http://a b"}},
      {"json-pointer", {"", "/a/0"}, {"a"}},
      {"int32", {"", "anything"}, {NULL}}};
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    char schema[80], text[80];
    (void)snprintf(schema, sizeof schema, "{\"type\":\"string\",\"format\":\"%s\"}", rows[i].name);
    lp_grammar *grammar = expect_made(schema, NULL);
    for (size_t k = 0; k < 8; k++) {
      const char *value = k < 4 ? rows[i].good[k] : rows[i].bad[k - 4];
      if (!value) continue;
      (void)snprintf(text, sizeof text, "\"%s\"", value);
      ck_assert_msg(expect_takes(grammar, text) == (k < 4), "%s: %s", rows[i].name, text);
    }
    lp_grammar_free(grammar);
  }
  expect_texts("{\"type\":\"string\",\"format\":\"uri\",\"minLength\":1,\"maxLength\":2083}",
               TEXTS("\"https://a.b/c\""), TEXTS("\"\""));
  expect_texts("{\"type\":\"integer\",\"format\":\"int64\"}", TEXTS("7"), TEXTS("\"7\""));
}

/* Each whole number near the bounds is taken or not, as the arithmetic says. */
LP_TEST(bounds_of_integers) {
  static const struct {
    const char *keywords;
    int least, most, multiple; /* of -1200 to 1200 */
  } rows[] = {{"\"minimum\":3,\"maximum\":118", 3, 118, 1},
              {"\"minimum\":0", 0, 9999, 1},
              {"\"exclusiveMinimum\":-7,\"exclusiveMaximum\":1005", -6, 1004, 1},
              {"\"minimum\":2,\"exclusiveMinimum\":true", 3, 9999, 1}, /* OpenAPI 3.0 */
              {"\"minimum\":5,\"exclusiveMinimum\":2", 5, 9999, 1},
              {"\"minimum\":-0.5,\"maximum\":10.5", 0, 10, 1},
              {"\"maximum\":-99", -9999, -99, 1},
              {"\"minimum\":-1e300,\"maximum\":1e300", -9999, 9999, 1},
              {"\"multipleOf\":7", -9999, 9999, 7},
              {"\"multipleOf\":0.5", -9999, 9999, 1},
              {"\"multipleOf\":100,\"minimum\":1", 100, 9999, 100},
              {"\"multipleOf\":12,\"minimum\":-30,\"maximum\":600", -24, 600, 12},
              {"\"minimum\":1000,\"maximum\":1000", 1000, 1000, 1}};
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    char schema[120], text[24];
    (void)snprintf(schema, sizeof schema, "{\"type\":\"integer\",%s}", rows[i].keywords);
    lp_grammar *grammar = expect_made(schema, NULL);
    for (int n = -1200; n <= 1200; n += n > -130 && n < 130 ? 1 : 5) {
      const bool good = n >= rows[i].least && n <= rows[i].most && n % rows[i].multiple == 0;
      (void)snprintf(text, sizeof text, "%d", n);
      ck_assert_msg(expect_takes(grammar, text) == good, "%s: %s", schema, text);
    }
    ck_assert(!expect_takes(grammar, "-0") && !expect_takes(grammar, "007") && !expect_takes(grammar, "5.0"));
    lp_grammar_free(grammar);
  }
  expect_texts("{\"type\":\"integer\",\"minimum\":100000000000000}", TEXTS("100000000000000", "999999999999999"),
               TEXTS("99999999999999"));
}

LP_TEST(bounds_of_numbers) {
  expect_texts("{\"type\":\"number\",\"minimum\":0,\"maximum\":1}",
               TEXTS("0", "1", "0.5", "1.0", "0.000001", "1.000000"),
               TEXTS("1.1", "-0.1", "2", "1.000001", "-0", "1e0"));
  expect_texts("{\"type\":\"number\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":1}",
               TEXTS("0.5", "0.999999", "0.000001"), TEXTS("0", "1", "0.0", "1.0"));
  expect_texts("{\"type\":\"number\",\"minimum\":-2.75,\"maximum\":-0.125}",
               TEXTS("-2.75", "-2", "-0.125", "-0.126", "-1.999999"), TEXTS("-2.76", "-0.124", "0", "1", "-3", "-0.1"));
  expect_texts("{\"minimum\":0.1,\"maximum\":123.456}", TEXTS("0.1", "0.10", "99.9", "123.456", "123"),
               TEXTS("0.09", "123.457", "124", "0"));
  expect_texts("{\"type\":\"number\",\"multipleOf\":0.25}", TEXTS("0", "0.25", "-1.5", "3", "10.75"),
               TEXTS("0.3", "0.251", "0.125"));
  expect_texts("{\"type\":\"number\",\"multipleOf\":0.01,\"minimum\":0}", TEXTS("0", "19.99", "5.1"),
               TEXTS("0.001", "-1"));
  expect_texts("{\"type\":\"number\",\"multipleOf\":5}", TEXTS("0", "15", "-5"), TEXTS("7", "5.5"));
  expect_texts("{\"multipleOf\":1,\"minimum\":0.5,\"maximum\":3.25}", TEXTS("1", "3"), TEXTS("0.5", "0.8", "1.5", "4"));
  expect_texts("{\"type\":[\"integer\",\"null\"],\"minimum\":1}", TEXTS("null", "1"), TEXTS("0", "-1"));
}

LP_TEST(lists_with_a_beginning) {
  const char *pair = "{\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"null\"}],\"minItems\":2,\"maxItems\":2}";
  expect_texts(pair, TEXTS("[1,null]", "[ 1, null ]"), TEXTS("[]", "[1]", "[null,1]", "[1,null,1]"));
  expect_texts("{\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}", TEXTS("[]", "[1]", "[1,null]"),
               TEXTS("[null]", "[1,null,2]"));
  expect_texts("{\"prefixItems\":[{\"type\":\"integer\"}],\"items\":{\"type\":\"null\"}}",
               TEXTS("[]", "[1]", "[1,null,null]"), TEXTS("[null]", "[1,1]"));
  expect_texts("{\"prefixItems\":[{\"type\":\"integer\"}],\"items\":{\"type\":\"null\"},\"minItems\":3}",
               TEXTS("[1,null,null]", "[1,null,null,null]"), TEXTS("[1,null]", "[1]"));
  expect_texts("{\"items\":[{\"type\":\"integer\"}],\"additionalItems\":false}", TEXTS("[]", "[1]"),
               TEXTS("[1,1]", "[null]"));
  expect_texts("{\"prefixItems\":[{\"type\":\"integer\"},{}],\"maxItems\":1}", TEXTS("[]", "[1]"), TEXTS("[1,1]"));
  expect_texts("{\"type\":\"array\",\"items\":{\"type\":\"null\"},\"maxItems\":1,\"uniqueItems\":true}",
               TEXTS("[]", "[null]"), TEXTS("[null,null]"));
  expect_texts("{\"type\":\"array\",\"maxItems\":100000}", TEXTS("[]", "[1,2]"), TEXTS("[1,]"));
}

LP_TEST(maps) {
  expect_texts("{\"patternProperties\":{\"^x-\":{\"type\":\"null\"}},\"additionalProperties\":false}",
               TEXTS("{}", "{\"x-a\":null}"), TEXTS("{\"a\":null}", "{\"x-a\":1}"));
  expect_texts("{\"propertyNames\":{\"enum\":[\"a\",\"b\"]},\"additionalProperties\":{\"type\":\"null\"}}",
               TEXTS("{}", "{\"b\":null}"), TEXTS("{\"c\":null}"));
  expect_texts("{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"^a\",\"type\":\"string\"},\"minProperties\":1,"
               "\"maxProperties\":2}",
               TEXTS("{\"a\":1}", "{\"a\":1,\"ab\":2}"), TEXTS("{}", "{\"b\":1}", "{\"a\":1,\"ab\":2,\"ac\":3}"));
  expect_texts("{\"properties\":{\"a\":{}},\"required\":[\"a\"],\"minProperties\":1,\"maxProperties\":5}",
               TEXTS("{\"a\":1}"), TEXTS("{}"));
}

LP_TEST(one_of) {
  const char *pets = "{\"oneOf\":[{\"$ref\":\"#/$defs/cat\"},{\"$ref\":\"#/$defs/"
                     "dog\"}],\"discriminator\":{\"propertyName\":\"kind\"},"
                     "\"$defs\":{\"cat\":{\"properties\":{\"kind\":{\"const\":\"cat\"}},\"required\":[\"kind\"]},"
                     "\"dog\":{\"properties\":{\"kind\":{\"enum\":[\"dog\",\"wolf\"]}},\"required\":[\"kind\"]}}}";
  expect_texts(pets, TEXTS("{\"kind\":\"cat\"}", "{\"kind\":\"wolf\"}"), TEXTS("{}", "{\"kind\":\"cow\"}"));
  expect_texts("{\"oneOf\":[{\"type\":\"null\"},{\"type\":\"string\"}]}", TEXTS("null", "\"a\""), TEXTS("1"));
  expect_texts("{\"oneOf\":[{\"const\":1},{\"enum\":[2,3]}]}", TEXTS("1", "3"), TEXTS("4"));
}

/* Limits of length that no chain of nodes has. */
LP_TEST(long_strings) {
  static const int lengths[][2] = {{0, 2000}, {1500, 3000}, {5000, -1}, {17, 17}, {100, 100000}};
  for (size_t i = 0; i < LP_COUNT(lengths); i++) {
    const int least = lengths[i][0], most = lengths[i][1];
    char schema[80];
    (void)snprintf(schema, sizeof schema, most < 0 ? "{\"minLength\":%d}" : "{\"minLength\":%d,\"maxLength\":%d}",
                   least, most);
    lp_grammar *grammar = expect_made(schema, NULL);
    for (int length = least > 0 ? least - 1 : 0; length <= (most < 0 || most > 9999 ? least + 1 : most + 1);
         length += length + 2 < most && length > least ? most - length - 1 : 1) {
      lp_buf text = {0};
      lp_buf_puts(&text, "\"");
      for (int k = 0; k < length; k++)
        lp_buf_puts(&text, k % 5 ? "a" : "\xc3\xa4");
      lp_buf_puts(&text, "\"");
      lp_automaton *automaton = lp_automaton_create(grammar, NULL);
      lp_automaton_grant(automaton, INT64_MAX, true);
      for (size_t at = 0; at < text.size; at += 64)
        (void)lp_automaton_take(automaton, text.data + at, text.size - at < 64 ? text.size - at : 64);
      ck_assert_msg(lp_automaton_can_end(automaton) == (length >= least && (most < 0 || length <= most)), "%s: %d",
                    schema, length);
      lp_automaton_free(automaton);
      lp_buf_free(&text);
    }
    lp_grammar_free(grammar);
  }
}

LP_TEST(refusals) {
  expect_refused("{\"type\":\"array\",\"contains\":{}}", "'contains' is not supported");
  expect_refused("{\"contains\":true}", "'contains' is not supported");
  expect_refused("{\"not\":{}}", "the schema accepts no value");
  expect_refused("{\"not\":true}", "the schema accepts no value");
  expect_refused("{\"type\":\"string\",\"not\":{\"pattern\":\"a\"}}", "'not' (or 'if') is not supported of 'pattern'");
  expect_refused("{\"type\":\"string\",\"not\":{\"const\":\"a\"}}",
                 "'not' (or 'if') is not supported of values of its type");
  expect_refused("{\"not\":7}", "not: a schema must be an object");
  expect_refused("{\"$ref\":\"#a\",\"$defs\":{\"a\":{\"$anchor\":\"a\"}}}", "'$ref' finds nothing at '#a'");
  expect_refused("{\"$ref\":\"#/a\",\"type\":\"null\"}", "'$ref' finds nothing at '#/a'");
  expect_refused("{\"oneOf\":[{},{}]}", "oneOf: the schema's keyword 'oneOf' is not supported where");
  expect_refused("{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}", "here those at 0 and 1: use 'anyOf'");
  expect_refused("{\"oneOf\":[{\"enum\":[1,2]},{\"enum\":[2,3]}]}", "'oneOf' is not supported");
  expect_refused("{\"type\":\"moon\"}", "type 'moon' is unknown");
  expect_refused("{\"anyOf\":[{\"type\":\"null\"}],\"type\":\"object\"}", "the schema accepts no value");
  expect_refused("{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"}]}", "has two 'pattern' that hold at once");
  expect_refused("{\"allOf\":[{\"multipleOf\":4},{\"multipleOf\":6}]}", "has two 'multipleOf' that hold at once");
  expect_refused("{\"allOf\":7}", "allOf: wanted an array");
  expect_refused("{\"allOf\":7,\"type\":\"null\"}", "allOf: wanted an array");
  expect_refused("{\"allOf\":[{\"patternProperties\":{\"a\":{}}},{\"patternProperties\":{\"b\":{}}}]}",
                 "two 'patternProperties'");
  expect_refused("{\"allOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "the schema accepts no value");
  expect_refused("{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":false}",
                 "the schema accepts no value");
  expect_refused("{\"$ref\":\"#/$defs/no\"}", "'$ref' finds nothing");
  expect_refused("{\"enum\":[1],\"type\":\"string\"}", "no values of its type");
  expect_refused("{\"type\":\"array\",\"minItems\":3,\"maxItems\":2}", "'minItems' exceeds");
  expect_refused("{\"type\":\"array\",\"minItems\":1025}", "whole number up to 1024");
  expect_refused("{\"type\":\"array\",\"maxItems\":1.5}", "whole number up to 1024");
  expect_refused("{\"type\":\"string\",\"minLength\":1e7}", "whole number up to 1048576");
  expect_refused("{\"type\":\"string\",\"pattern\":7}", "'pattern' must be text");
  expect_refused("{\"type\":\"string\",\"format\":\"regex\"}", "'format' regex is not supported");
  expect_refused("{\"type\":\"string\",\"format\":\"date\",\"pattern\":\"a\"}",
                 "'format' date is not supported beside");
  expect_refused("{\"type\":\"string\",\"format\":\"date\",\"maxLength\":9}", "format: no text of this length");
  expect_refused("{\"type\":\"integer\",\"minimum\":3,\"exclusiveMaximum\":3}", "no number lies within");
  expect_refused("{\"type\":\"integer\",\"multipleOf\":10007}", "'multipleOf' has too many digits");
  expect_refused("{\"type\":\"integer\",\"multipleOf\":9973}", "'multipleOf' needs too many states");
  expect_refused("{\"type\":\"integer\",\"minimum\":\"1\"}", "minimum: wanted a number");
  expect_refused("{\"type\":\"array\",\"prefixItems\":[{}],\"items\":false,\"minItems\":2}", "'minItems' exceeds");
  expect_refused("{\"type\":\"object\",\"properties\":{\"a\":{}},\"minProperties\":2}",
                 "'minProperties' exceeds its 'properties'");
  expect_refused("{\"type\":\"object\",\"properties\":{\"a\":{}},\"required\":[\"a\"],\"maxProperties\":0}",
                 "requires 'properties' that it does not accept");
  expect_refused("{\"type\":\"object\",\"minProperties\":2}", "'minProperties' must be a whole number up to 1");
  expect_refused("{\"propertyNames\":{\"type\":\"integer\"}}", "propertyNames: the schema's 'propertyNames' must be");
  expect_refused("{\"patternProperties\":{\"a\":{},\"b\":{}}}", "several patterns");
  expect_refused("{\"properties\":{\"a\":{\"items\":{\"anyOf\":[{},{\"contains\":{}}]}}}}",
                 "properties.a.items.anyOf[1]: the schema's keyword 'contains' is not supported");
  expect_refused("{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"items\":{\"contains\":{}}}}}",
                 "#/$defs/x.items: the schema's keyword 'contains' is not supported");
  expect_refused("[]", "a schema must be an object");
  expect_refused("{\"type\":\"array\",\"uniqueItems\":true}", "'uniqueItems' is not supported");
  expect_refused(
      "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"}]}}}",
      "refers to itself");
  expect_refused("{\"$ref\":\"#\"}", "refers to itself");
  expect_refused("{\"anyOf\":[]}", "a list of 0 alternatives");
  expect_refused("false", "the schema accepts no value");
  expect_refused("{\"type\":\"object\",\"properties\":{\"a\":{}},\"required\":[\"a\",1]}",
                 "'required' must be a list of names");
  expect_refused("{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", "'minLength' exceeds 'maxLength'");
  expect_refused("{\"enum\":{\"a\":7}}", "enum: wanted an array");
  expect_refused("{\"properties\":[7]}", "properties: wanted an object");
  expect_refused("{\"patternProperties\":[7]}", "patternProperties: wanted an object");
  expect_refused("{\"oneOf\":[{\"properties\":[7]},{\"properties\":{}}]}", "'oneOf' is not supported");
  expect_refused("{\"type\":[]}", "'type' must be a name or a list of names");
  expect_refused("{\"type\":[\"null\",\"moon\"]}", "type 'moon' is unknown");
  expect_refused("{\"enum\":[1.5],\"type\":\"integer\"}", "no values of its type");
}

LP_TEST(refusals_of_parts_and_lengths) {
  static const char *const around[][2] = {{"{\"allOf\":[", "]}"},
                                          {"{\"items\":", "}"},
                                          {"{\"anyOf\":[{},", ",{}]}"},
                                          {"{\"properties\":{\"a\":", "}}"},
                                          {"{\"additionalProperties\":", "}"},
                                          {"{\"$defs\":{\"a\":", "},\"$ref\":\"#/$defs/a\"}"}};
  for (size_t i = 0; i < LP_COUNT(around); i++) { /* a part of a schema is refused like a schema */
    lp_buf schema = {0};
    lp_buf_printf(&schema, "%s{\"type\":\"moon\"}%s", around[i][0], around[i][1]);
    expect_refused(lp_buf_text(&schema), "type 'moon' is unknown");
    lp_buf_free(&schema);
  }
  static const char *const long_of[][4] = {
      {"{\"anyOf\":[", "%s{\"const\":%d}", "]}", "a list of 1025 alternatives"},
      {"{\"properties\":{", "%s\"p%d\":{}", "}}", "'properties' has 1025 members"}};
  for (size_t i = 0; i < LP_COUNT(long_of); i++) {
    char *most = repeated(long_of[i][0], long_of[i][1], 1024, long_of[i][2]),
         *more = repeated(long_of[i][0], long_of[i][1], 1025, long_of[i][2]);
    lp_grammar *grammar = expect_made(most, NULL);
    ck_assert_ptr_nonnull(grammar);
    ck_assert(expect_takes(grammar, i == 0 ? "0" : "{\"p1023\":1}") && expect_takes(grammar, i == 0 ? "1023" : "{}"));
    expect_refused(more, long_of[i][3]);
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
  ck_assert(expect_takes(any, "{\"name\": \"g\", \"arguments\": {}}"));
  ck_assert(!expect_takes(any, "{\"name\": \"g\", \"arguments\": {\"a\": 1}}")); /* without parameters */
  ck_assert(expect_takes(any, "{\"name\": \"h\", \"arguments\": {}}"));
  ck_assert(!expect_takes(any, "{\"name\": \"h\", \"arguments\": false}"));
  ck_assert(expect_takes(one, "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"));
  ck_assert(!expect_takes(one, "{\"name\": \"g\", \"arguments\": {}}"));
  ck_assert(!expect_takes(one, "{\"name\": \"f\", \"arguments\": {}}"));
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
       "[0].function.parameters: the schema's type 'moon' is unknown"},
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
