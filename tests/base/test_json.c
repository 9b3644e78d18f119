/* The JSON reader and writer: texts that the reader accepts and refuses, the locations of its errors, and round
 * trips. */
#include <stdlib.h>
#include <string.h>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/random.h"
#include "base/utf8.h"
#include "tests/suite.h"

static lp_json_document *parse(const char *text, size_t size, unsigned allow) {
  lp_json_document *document = NULL;
  ck_assert_int_eq(lp_json_parse("t.json", text, size, allow, &document, NULL), LP_OK);
  return document;
}

static void refuse(const char *text, const char *expected) {
  lp_diag *diag = lp_diag_create();
  lp_json_document *document = NULL;
  lp_buf found = {0};
  ck_assert_int_eq(lp_json_parse("t.json", text, strlen(text), 0, &document, diag), LP_FAILED);
  ck_assert_ptr_null(document);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  lp_diag_format(lp_diag_get(diag, 0), &found);
  ck_assert_str_eq(found.data, expected);
  lp_buf_free(&found);
  lp_diag_free(diag);
}

LP_TEST(damaged_json_is_refused_with_its_place) {
  refuse("", "t.json:1:1: error: not valid JSON: it ends too early");
  refuse("{\n \"a\": 1,\n \"a\": 2\n}", "t.json:4:1: error: not valid JSON: an object with two members of one name");
  refuse("[1] 2", "t.json:1:5: error: not valid JSON: text after the document");
  refuse("[-]", "t.json:1:3: error: not valid JSON: not a value");
  refuse("\"\\udc00\"", "t.json:1:8: error: not valid JSON: half of a surrogate pair");
  refuse("[1e999]", "t.json:1:7: error: not valid JSON: a number that is too large");
  refuse("[-1e999]", "t.json:1:8: error: not valid JSON: a number that is too large");
}

LP_TEST(nesting_has_a_limit) {
  lp_buf text = {0};
  for (int depth = LP_JSON_MAX_NESTING; depth <= LP_JSON_MAX_NESTING + 1; depth++) {
    lp_json_document *document = NULL;
    lp_buf_clear(&text);
    for (int i = 0; i < depth; i++)
      lp_buf_puts(&text, "[");
    for (int i = 0; i < depth; i++)
      lp_buf_puts(&text, "]");
    ck_assert_int_eq(lp_json_parse("t.json", text.data, text.size, 0, &document, NULL),
                     depth > LP_JSON_MAX_NESTING ? LP_FAILED : LP_OK);
    if (!document) continue;
    lp_buf out = {0};
    lp_json_writer w = lp_json_writer_begin(&out, (lp_json_style){0});
    lp_json root = lp_json_root("t.json", document);
    lp_json_put_value(&w, NULL, root.value);
    ck_assert_str_eq(out.data, text.data);
    lp_buf_free(&out);
    lp_json_free(document);
  }
  lp_buf_free(&text);
}

/* Keys that hash to one slot make the reader find equal keys by its other method. */
LP_TEST(duplicates_among_keys_that_collide_are_found) {
  enum { KEYS = 300, SLOTS = 1024 };
  lp_buf text = {0};
  char key[24], last[24] = "";
  lp_buf_puts(&text, "{");
  for (int found = 0, i = 0; found < KEYS; i++) {
    int size = snprintf(key, sizeof key, "%d", i);
    if (lp_hash_bytes(key, (size_t)size, 0) % SLOTS != 7) continue;
    lp_buf_printf(&text, "\"%s\": %d, ", key, i);
    memcpy(last, key, sizeof last);
    found++;
  }
  size_t size = text.size;
  lp_buf_puts(&text, "\"a\": 0}");
  lp_json_document *document = parse(text.data, text.size, 0);
  lp_json root = lp_json_root("t.json", document);
  ck_assert_uint_eq(lp_json_count(&root), KEYS + 1);
  lp_json_free(document);
  text.size = size;
  lp_buf_printf(&text, "\"%s\": 0}", last);
  ck_assert_int_eq(lp_json_parse("t.json", text.data, text.size, 0, &document, NULL), LP_FAILED);
  lp_buf_free(&text);
}

LP_TEST(duplicates_among_many_members_are_found) {
  lp_buf text = {0};
  lp_buf_puts(&text, "{");
  for (int i = 0; i < 1000; i++)
    lp_buf_printf(&text, "\"k%d\": %d, ", i, i);
  size_t size = text.size;
  lp_buf_puts(&text, "\"k1000\": 1}");
  lp_json_document *document = parse(text.data, text.size, 0);
  lp_json root = lp_json_root("t.json", document), member = lp_json_member(&root, "k999");
  int64_t value;
  ck_assert_int_eq(lp_json_i64(&member, 0, 999, &value, NULL), LP_OK);
  ck_assert_int_eq(value, 999);
  lp_json_free(document);
  text.size = size;
  lp_buf_puts(&text, "\"k500\": 1}");
  ck_assert_int_eq(lp_json_parse("t.json", text.data, text.size, 0, &document, NULL), LP_FAILED);
  document = parse(text.data, text.size, LP_JSON_ALLOW_DUPLICATES);
  root = lp_json_root("t.json", document);
  member = lp_json_member(&root, "k500");
  ck_assert_int_eq(lp_json_i64(&member, 500, 500, &value, NULL), LP_OK);
  lp_json_free(document);
  lp_buf_free(&text);
}

LP_TEST(texts_may_hold_nul_where_bytes_are_asked_for) {
  const char text[] = "{\"\\u0000\": \"a\\u0000b\\ud83d\\ude00\"}";
  lp_json_document *document = parse(text, sizeof text - 1, 0);
  lp_json root = lp_json_root("t.json", document), member = lp_json_entry(&root, 0);
  const char *bytes;
  size_t size;
  ck_assert_uint_eq(root.value->items[0].size, 1);
  ck_assert_int_eq(lp_json_bytes(&member, &bytes, &size, NULL), LP_OK);
  ck_assert_uint_eq(size, 7);
  ck_assert_int_eq(memcmp(bytes, "a\0b\xF0\x9F\x98\x80", 8), 0);
  ck_assert_int_eq(lp_json_text(&member, &bytes, NULL), LP_FAILED);
  ck_assert_str_eq(lp_json_text_or(&member, "none"), "none");
  lp_json_free(document);
  ck_assert_int_eq(lp_json_parse("t.json", text, sizeof text - 1, LP_JSON_REFUSE_NUL, &document, NULL), LP_FAILED);
}

LP_TEST(integers_keep_64_bits) {
  const char text[] = "[9223372036854775807, -9223372036854775808, 9223372036854775808, 1.0]";
  lp_json_document *document = parse(text, sizeof text - 1, 0);
  lp_json root = lp_json_root("t.json", document);
  const int64_t expected[] = {INT64_MAX, INT64_MIN};
  for (size_t i = 0; i < 2; i++) {
    lp_json item = lp_json_item(&root, i);
    int64_t value;
    ck_assert_int_eq(lp_json_i64(&item, INT64_MIN, INT64_MAX, &value, NULL), LP_OK);
    ck_assert_int_eq(value, expected[i]);
  }
  for (size_t i = 2; i < 4; i++) {
    lp_json item = lp_json_item(&root, i);
    ck_assert(lp_json_is(&item, LP_JSON_REAL));
  }
  lp_json none = lp_json_item(&root, 4);
  ck_assert_ptr_null(none.value);
  lp_json_free(document);
}

LP_TEST(reports_name_the_way_to_a_value) {
  const char text[] = "{\"a\": [{\"b\": null}]}";
  lp_diag *diag = lp_diag_create();
  lp_json_document *document = parse(text, sizeof text - 1, 0);
  lp_json root = lp_json_root("t.json", document), a = lp_json_member(&root, "a"), item = lp_json_item(&a, 0);
  lp_json b = lp_json_member(&item, "b"), c = lp_json_member(&item, "c");
  ck_assert(!lp_json_is_given(&b) && !lp_json_is_given(&c) && lp_json_is(&b, LP_JSON_NULL));
  ck_assert_int_eq(lp_json_object(&b, diag), LP_FAILED);
  ck_assert_int_eq(lp_json_array(&c, diag), LP_FAILED);
  ck_assert_str_eq(lp_diag_get(diag, 0)->text, "a[0].b: wanted an object, found null");
  ck_assert_str_eq(lp_diag_get(diag, 1)->text, "a[0].c: wanted an array, found nothing");
  lp_json_free(document);
  lp_diag_free(diag);
}

/* ---- the writer -------------------------------------------------------------------------------------------------- */

LP_TEST(documents_have_the_asked_layout) {
  lp_buf out = {0};
  lp_json_writer w = lp_json_writer_begin(&out, (lp_json_style){.indent = 2, .digits = 12});
  lp_json_put_object(&w, NULL);
  lp_json_put_text(&w, "a", "b");
  lp_json_put_array(&w, "empty");
  lp_json_put_end(&w);
  lp_json_put_array(&w, "list");
  lp_json_put_flat_object(&w, NULL);
  lp_json_put_number(&w, "x", 0.1);
  lp_json_put_array(&w, "y");
  lp_json_put_integer(&w, NULL, -1);
  lp_json_put_bool(&w, NULL, true);
  lp_json_put_end(&w);
  lp_json_put_end(&w);
  lp_json_put_number(&w, NULL, 0.0 / 0.0);
  lp_json_put_end(&w);
  lp_json_put_end(&w);
  ck_assert_str_eq(out.data,
                   "{\n  \"a\": \"b\",\n  \"empty\": [],\n  \"list\": [\n    {\"x\": 0.1, \"y\": [-1, true]},\n"
                   "    null\n  ]\n}");
  lp_buf_free(&out);
}

LP_TEST(lists_in_lines_break_flat_containers) {
  lp_buf out = {0};
  lp_json_writer w = lp_json_writer_begin(&out, (lp_json_style){.indent = 2});
  lp_json_put_object(&w, NULL);
  lp_json_put_flat_object(&w, "a");
  lp_json_put_integer(&w, "n", 1);
  lp_json_put_lines(&w, "list");
  for (int i = 0; i < 2; i++) {
    lp_json_put_object(&w, NULL);
    lp_json_put_integer(&w, "x", i);
    lp_json_put_array(&w, "y");
    lp_json_put_integer(&w, NULL, i);
    lp_json_put_end(&w);
    lp_json_put_end(&w);
  }
  lp_json_put_end(&w);
  lp_json_put_bool(&w, "b", true);
  lp_json_put_end(&w);
  lp_json_put_lines(&w, "none");
  lp_json_put_end(&w);
  lp_json_put_end(&w);
  ck_assert_str_eq(out.data, "{\n  \"a\": {\"n\": 1, \"list\": [\n    {\"x\": 0, \"y\": [0]},\n    {\"x\": 1, \"y\": "
                             "[1]}], \"b\": true},\n  \"none\": []\n}");
  lp_buf_free(&out);
}

LP_TEST(numbers_show_that_they_are_real) {
  static const struct {
    double value;
    const char *marked, *plain;
  } cases[] = {{1, "[1.0]", "[1]"},
               {0.5, "[0.5]", "[0.5]"},
               {1e-5, "[1e-5]", "[1e-05]"},
               {1e300, "[1e300]", "[1e+300]"},
               {-0.0, "[-0.0]", "[-0]"}};
  for (size_t i = 0; i < LP_COUNT(cases); i++)
    for (int marks = 0; marks < 2; marks++) {
      lp_buf out = {0};
      lp_json_writer w =
          lp_json_writer_begin(&out, (lp_json_style){.digits = 9, .marks_reals = marks != 0, .has_no_space = true});
      lp_json_put_array(&w, NULL);
      lp_json_put_number(&w, NULL, cases[i].value);
      lp_json_put_end(&w);
      ck_assert_str_eq(out.data, marks ? cases[i].marked : cases[i].plain);
      lp_buf_free(&out);
    }
}

/* Random texts: controls, quotes, and characters of all lengths. */
static void random_text(uint64_t text, lp_buf *out) {
  static const uint32_t most[] = {0x20, 0x7F, 0x7FF, 0xD7FF, 0x10FFFF};
  size_t length = lp_random_bits(1, text, 0) % 20;
  lp_buf_clear(out);
  for (size_t i = 0; i < length; i++) {
    uint64_t bits = lp_random_bits(2, text, i);
    uint32_t code = 1 + (uint32_t)(bits >> 8) % most[bits % LP_COUNT(most)];
    lp_utf8_write(code >= 0xD800 && code < 0xE000 ? '"' : code, out);
  }
}

LP_TEST(what_is_written_reads_back) {
  enum { TEXTS = 2000 };
  lp_buf out = {0}, text = {0};
  lp_json_writer w = lp_json_writer_begin(&out, (lp_json_style){.indent = 1});
  lp_json_put_array(&w, NULL);
  for (uint64_t i = 0; i < TEXTS; i++) {
    random_text(i, &text);
    lp_json_put_object(&w, NULL);
    lp_json_put_number(&w, lp_buf_text(&text), lp_random_uniform(3, i, 0) * 1e-9);
    lp_json_put_end(&w);
  }
  lp_json_put_end(&w);
  lp_json_document *document = parse(out.data, out.size, 0);
  lp_json root = lp_json_root("t.json", document);
  ck_assert_uint_eq(lp_json_count(&root), TEXTS);
  for (uint64_t i = 0; i < TEXTS; i++) {
    random_text(i, &text);
    lp_json item = lp_json_item(&root, i), member = lp_json_entry(&item, 0);
    double value;
    ck_assert_str_eq(member.key, lp_buf_text(&text));
    ck_assert_int_eq(lp_json_number(&member, 0, 1, &value, NULL), LP_OK);
    ck_assert(!(value < lp_random_uniform(3, i, 0) * 1e-9) && !(value > lp_random_uniform(3, i, 0) * 1e-9));
  }
  lp_json_free(document);
  lp_buf_free(&out);
  lp_buf_free(&text);
}

LP_TEST(what_was_read_is_written_again) {
  const char text[] =
      "{\"\\u0000k\":\"a\\u0000\\\"\",\"list\":[1,-2.5,1e-30,null,true,false,{},[]],\"o\":{\"n\":9223372036854775807}}";
  lp_buf out = {0};
  lp_json_document *document = parse(text, sizeof text - 1, 0);
  lp_json root = lp_json_root("t.json", document), list = lp_json_member(&root, "list"), first = lp_json_item(&list, 1);
  ck_assert_str_eq(lp_json_text_or(&first, "none"), "none");
  lp_json_writer w =
      lp_json_writer_begin(&out, (lp_json_style){.has_no_space = true, .marks_reals = true, .digits = 9});
  lp_json_put_value(&w, NULL, root.value);
  ck_assert_str_eq(out.data, text);
  lp_buf_free(&out);
  lp_json_free(document);
}

LP_TEST(text_that_is_not_utf8_is_repaired) {
  lp_buf out = {0};
  lp_json_quote("a\xFF\n\x01\x7F", &out);
  ck_assert_str_eq(out.data, "\"a\xEF\xBF\xBD\\n\\u0001\x7F\"");
  lp_buf_free(&out);
}
