/* Schemas that hold at once, alternatives, opposites, and objects that count their properties. */
#include <stdio.h>
#include <string.h>

#include "tests/runtime/grammar/expect.h"
#include "tests/suite.h"

/* Schemas that hold at once. */
LP_TEST(joined_schemas) {
#define IS(type) "{\"type\":\"" type "\"}"
#define HAS(name, of) "{\"properties\":{\"" name "\":" of "},\"required\":[\"" name "\"]}"
  expect_texts("{\"allOf\":[{},{}]}", TEXTS("1", "{}"), TEXTS(""));
  expect_texts("{\"allOf\":[]}", TEXTS("1"), TEXTS(""));
  expect_texts("{\"allOf\":[{\"minimum\":3},{\"maximum\":5,\"type\":\"integer\"},{\"minimum\":2,\"maximum\":9}]}",
               TEXTS("3", "5"), TEXTS("2", "6", "3.5"));
  expect_texts("{\"allOf\":[{\"minLength\":2,\"maxLength\":4},{\"minLength\":1,\"maxLength\":3}]}",
               TEXTS("\"ab\"", "\"abc\""), TEXTS("\"a\"", "\"abcd\""));
  expect_texts("{\"allOf\":[{\"multipleOf\":2},{\"multipleOf\":6,\"type\":\"integer\"}]}", TEXTS("6", "12"),
               TEXTS("2", "4"));
  expect_texts("{\"allOf\":[{\"type\":[\"string\",\"number\",\"null\"]},{\"type\":[\"integer\",\"null\"]}]}",
               TEXTS("1", "null"), TEXTS("1.5", "\"a\""));
  expect_texts("{\"allOf\":[" HAS("a", IS("integer")) "," HAS("b", "{}") "],\"properties\":{\"c\":{}}}",
               TEXTS("{\"c\":1,\"a\":1,\"b\":2}", "{\"a\":1,\"b\":null}"), TEXTS("{\"a\":1}", "{\"a\":\"x\",\"b\":1}"));
  expect_texts("{\"allOf\":[" HAS("a", IS("number")) "," HAS("a", "{\"enum\":[1,\"x\"]}") "]}", TEXTS("{\"a\":1}"),
               TEXTS("{\"a\":\"x\"}", "{\"a\":2}"));
  expect_texts("{\"allOf\":[{\"properties\":{\"a\":{}},\"additionalProperties\":false},{\"properties\":{\"b\":{}}}]}",
               TEXTS("{\"a\":1}", "{}"), TEXTS("{\"b\":1}"));
  expect_texts("{\"allOf\":[{\"additionalProperties\":" IS("null") "},{\"properties\":{\"b\":{}}}]}",
               TEXTS("{\"b\":null}"), TEXTS("{\"b\":1}"));
  expect_texts("{\"properties\":{\"ab\":{},\"c\":{}},\"patternProperties\":{\"^a\":" IS("null") "}}",
               TEXTS("{\"ab\":null,\"c\":1}"), TEXTS("{\"ab\":1}"));
  expect_texts("{\"properties\":{\"ab\":{},\"Ab\":{}},\"propertyNames\":{\"pattern\":\"^[a-z]+$\"}}",
               TEXTS("{\"ab\":1}", "{}"), TEXTS("{\"Ab\":1}"));
  expect_texts("{\"allOf\":[{\"items\":" IS("number") "},{\"prefixItems\":[{\"const\":1}],\"items\":" IS(
                   "integer") "}],\"minItems\":2}",
               TEXTS("[1,2]", "[1,2,3]"), TEXTS("[1]", "[2,2]", "[1,2.5]"));
  expect_texts("{\"type\":\"object\",\"required\":[\"a\"]}", TEXTS("{\"a\":1}"), TEXTS("{}", "{\"b\":1}"));
  expect_texts("{\"required\":[\"a\"],\"additionalProperties\":" IS("null") "}", TEXTS("{\"a\":null}"),
               TEXTS("{\"a\":1}"));
  expect_texts("{\"$ref\":\"#/$defs/a\",\"maximum\":3,\"$defs\":{\"a\":" IS("integer") "}}", TEXTS("3"),
               TEXTS("4", "1.5"));
  expect_texts("{\"enum\":[1,2,3,\"a\"],\"minimum\":2,\"type\":\"integer\"}", TEXTS("2", "3"), TEXTS("1", "\"a\""));
  expect_texts("{\"enum\":[1,2],\"anyOf\":[{\"const\":2},{\"const\":3}]}", TEXTS("2"), TEXTS("1", "3"));
  expect_texts("{\"type\":\"string\",\"nullable\":true}", TEXTS("\"a\""), TEXTS("null", "1"));
}

/* A key that is required but not evaluated is in no object; alternatives evaluate keys, too. */
LP_TEST(unevaluated_properties) {
#define CLOSED "\"unevaluatedProperties\":false"
  expect_refused("{\"type\":\"object\",\"required\":[\"a\"]," CLOSED "}", "properties.a: the schema accepts no value");
  expect_texts("{\"required\":[\"a\"],\"anyOf\":[" HAS("a", IS("null")) "," HAS("b", "{}") "]," CLOSED "}",
               TEXTS("{\"a\":null}"), TEXTS("{}", "{\"a\":1}", "{\"a\":null,\"b\":1}", "{\"b\":1,\"a\":1}"));
  expect_texts("{\"allOf\":[{\"required\":[\"a\"]},{\"properties\":{\"a\":{}}}],\"properties\":{\"b\":{}}," CLOSED "}",
               TEXTS("{\"b\":1,\"a\":1}", "{\"a\":1}"), TEXTS("{\"b\":1}"));
  expect_texts("{\"properties\":{\"a\":{},\"b\":{}},\"dependentRequired\":{\"a\":[\"c\"]}," CLOSED "}",
               TEXTS("{\"b\":1}", "{}"), TEXTS("{\"a\":1}", "{\"a\":1,\"c\":1}", "{\"c\":1}"));
#undef CLOSED
}

LP_TEST(joined_alternatives) {
  expect_texts("{\"properties\":{\"a\":{},\"b\":{}},\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
               TEXTS("{\"a\":1}", "{\"b\":1}", "{\"a\":1,\"b\":1}"), TEXTS("{}"));
  expect_texts("{\"properties\":{\"a\":{},\"b\":{}},\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
               TEXTS("{\"a\":1}", "{\"b\":1}"), TEXTS("{}", "{\"a\":1,\"b\":1}"));
  expect_texts("{\"oneOf\":[{\"properties\":{\"a\":{}},\"required\":[\"a\"],\"additionalProperties\":false}," HAS(
                   "b", "{}") "]}",
               TEXTS("{\"a\":1}", "{\"b\":1}"), TEXTS("{\"a\":1,\"b\":1}"));
  expect_texts(
      "{\"anyOf\":[" IS("integer") "," IS("string") "],\"oneOf\":[{\"minimum\":5,\"type\":\"number\"}," IS("null") "]}",
      TEXTS("5"), TEXTS("4", "\"a\"", "null", "5.5"));
  expect_texts("{\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"dependentRequired\":{\"a\":[\"b\"]}}",
               TEXTS("{}", "{\"c\":1}", "{\"a\":1,\"b\":1}", "{\"b\":1}"), TEXTS("{\"a\":1}", "{\"a\":1,\"c\":1}"));
  expect_texts("{\"properties\":{\"a\":{},\"b\":{}},\"dependencies\":{\"a\":{\"properties\":{\"b\":" IS("null") "}}}}",
               TEXTS("{\"b\":1}", "{\"a\":1,\"b\":null}", "{\"a\":1}"), TEXTS("{\"a\":1,\"b\":1}"));
  expect_texts("{\"anyOf\":[{\"enum\":[1],\"type\":\"string\"}," IS("null") "]}", TEXTS("null"), TEXTS("1"));
  expect_texts("{\"properties\":{\"a\":false,\"b\":{}}}", TEXTS("{}", "{\"b\":1}"), TEXTS("{\"a\":1}"));
  expect_texts("{\"items\":false}", TEXTS("[]"), TEXTS("[1]"));
  expect_texts("{\"prefixItems\":[{},false,{}]}", TEXTS("[]", "[1]"), TEXTS("[1,2]", "[1,2,3]"));
}

LP_TEST(opposites) {
  expect_texts("{\"not\":" IS("object") "}", TEXTS("1", "\"a\"", "[]", "null"), TEXTS("{}"));
  expect_texts("{\"not\":" IS("integer") "}", TEXTS("\"a\"", "{}"), TEXTS("1"));
  expect_texts("{\"not\":{\"not\":" IS("null") "}}", TEXTS("null"), TEXTS("1"));
  expect_texts("{\"not\":false}", TEXTS("1"), TEXTS(""));
  expect_texts("{\"enum\":[1,2,3],\"not\":{\"enum\":[2,4]}}", TEXTS("1", "3"), TEXTS("2", "4"));
  expect_texts("{\"type\":\"null\",\"not\":{\"const\":1}}", TEXTS("null"), TEXTS("1"));
  expect_texts("{\"type\":[\"boolean\",\"null\"],\"not\":{\"enum\":[true,7]}}", TEXTS("false", "null"),
               TEXTS("true", "7"));
  expect_texts("{\"properties\":{\"a\":{},\"b\":{}},\"not\":{\"required\":[\"a\",\"b\"]}}",
               TEXTS("{}", "{\"a\":1}", "{\"b\":1}"), TEXTS("{\"a\":1,\"b\":1}"));
  expect_texts(
      "{\"properties\":{\"a\":{\"enum\":[1,2]},\"b\":{}},\"required\":[\"a\"],\"if\":" HAS(
          "a", "{\"const\":1}") ",\"then\":{\"required\":[\"b\"]},\"else\":{\"properties\":{\"b\":" IS("null") "}}}",
      TEXTS("{\"a\":1,\"b\":1}", "{\"a\":2}", "{\"a\":2,\"b\":null}"), TEXTS("{\"a\":1}", "{\"a\":2,\"b\":1}"));
  expect_texts("{\"anyOf\":[" IS("string") "," IS("null") "," IS("boolean") "],\"not\":{\"anyOf\":[" IS("null") "," IS(
                   "boolean") "]}}",
               TEXTS("\"a\""), TEXTS("null", "true"));
}

/* Schemas that refer to themselves come to an end, joined or not. */
LP_TEST(joined_recursion) {
  expect_texts("{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/b\"}],\"$defs\":{"
               "\"a\":{\"properties\":{\"x\":{\"$ref\":\"#/$defs/a\"},\"y\":" IS(
                   "integer") "}},"
                              "\"b\":{\"properties\":{\"x\":{\"$ref\":\"#/$defs/b\"},\"y\":{\"maximum\":3}}}}}",
               TEXTS("{}", "{\"x\":{\"x\":{\"y\":3}},\"y\":1}"), TEXTS("{\"x\":{\"x\":{\"y\":4}}}", "{\"x\":1}"));
  expect_texts("{\"$ref\":\"#\",\"type\":\"null\"}", TEXTS("null"), TEXTS("1"));
  expect_texts(
      "{\"type\":\"object\",\"properties\":{\"v\":{},\"n\":{\"$ref\":\"#\"}},\"required\":[\"v\"],\"allOf\":[{}]}",
      TEXTS("{\"v\":1}", "{\"v\":1,\"n\":{\"v\":2}}"), TEXTS("{\"v\":1,\"n\":{}}"));
  /* An object that must hold itself accepts nothing; what was built within it is built anew elsewhere. */
  expect_texts("{\"properties\":{\"a\":{\"$ref\":\"#/$defs/a\"},\"b\":{\"$ref\":\"#/$defs/b\"}},\"$defs\":{"
               "\"a\":{\"type\":\"object\",\"required\":[\"x\",\"y\"],\"properties\":{\"x\":{\"$ref\":\"#/$defs/"
               "b\"},\"y\":false}},"
               "\"b\":{\"properties\":{\"c\":{\"$ref\":\"#/$defs/a\"},\"d\":{}}}}}",
               TEXTS("{}", "{\"b\":{\"d\":1}}"), TEXTS("{\"a\":{}}", "{\"b\":{\"c\""));
  expect_refused("{\"properties\":{\"a\":{}},\"propertyNames\":{\"$ref\":\"#\"}}", "the schema is too large");
  expect_refused("{\"properties\":{\"a\":{\"if\":{\"minLength\":2},\"then\":{\"pattern\":\"a\"}}}}",
                 "properties.a: the schema's keyword 'not' (or 'if') is not supported of 'minLength'");
#undef IS
#undef HAS
}

/* Objects that count their properties. */
LP_TEST(counted_properties) {
  for (int least = 0; least <= 3; least++)
    for (int most = least > 0 ? least : 1; most <= 4; most++) {
      char schema[200], text[64];
      (void)snprintf(schema, sizeof schema,
                     "{\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"required\":[\"b\"],\"minProperties\":%d,"
                     "\"maxProperties\":%d}",
                     least, most);
      lp_grammar *grammar = expect_made(schema, NULL);
      ck_assert_ptr_nonnull(grammar);
      for (int has = 0; has < 8; has++) {
        int count = 0, at = snprintf(text, sizeof text, "{");
        for (int i = 0; i < 3; i++)
          if (has >> i & 1)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s\"%c\":1", count++ ? "," : "", 'a' + i);
        (void)snprintf(text + at, sizeof text - (size_t)at, "}");
        const bool good = (has & 2) && count >= least && count <= most;
        ck_assert_msg(expect_takes(grammar, text) == good, "%s: %s", schema, text);
      }
      lp_grammar_free(grammar);
    }
}
