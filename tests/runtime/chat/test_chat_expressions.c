/* Expressions and statements of chat templates one by one, against the texts and refusals of expressions.jsonl. Jinja
 * wrote the texts there (expressions.py); what this engine refuses although Jinja renders it has its refusal. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/reader.h"
#include "runtime/chat/chat.h"
#include "runtime/runtime.h"
#include "tests/suite.h"

static const lp_chat_special specials[] = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};

static void expect_row(const lp_json *row, int line) {
  lp_json source = lp_json_member(row, "source"), text = lp_json_member(row, "text");
  lp_json refusal = lp_json_member(row, "refusal");
  const lp_json *wanted = refusal.value ? &refusal : &text;
  ck_assert(lp_json_is(&source, LP_JSON_TEXT) && lp_json_is(wanted, LP_JSON_TEXT));
  lp_diag *diag = lp_diag_create();
  lp_buf found = {0};
  const lp_chat_input input = {.file = "t", .specials = specials, .special_count = LP_COUNT(specials)};
  lp_status status = lp_chat_render(source.value->text, source.value->size, &input, &found, diag);
  if (status != LP_OK) lp_buf_clear(&found);
  if (status != LP_OK) lp_buf_puts(&found, lp_diag_get(diag, 0)->text);
  bool same = found.size == wanted->value->size && memcmp(lp_buf_text(&found), wanted->value->text, found.size) == 0;
  ck_assert_msg(same && (status == LP_OK) == !refusal.value, "line %d, %s: found '%s', wanted '%s'", line,
                source.value->text, lp_buf_text(&found), wanted->value->text);
  lp_buf_free(&found);
  lp_diag_free(diag);
}

LP_TEST(each_expression) {
  char *data = NULL;
  size_t size = 0;
  int line = 0;
  ck_assert_int_eq(lp_file_read(LP_TEST_DIR "/expressions.jsonl", &data, &size, NULL), LP_OK);
  for (const char *at = data; *at; at++) {
    size_t length = strcspn(at, "\n");
    lp_json_document *document = NULL;
    ck_assert_int_eq(lp_json_parse("expressions.jsonl", at, length, 0, &document, NULL), LP_OK);
    lp_json row = lp_json_root("expressions.jsonl", document);
    expect_row(&row, ++line);
    lp_json_free(document);
    at += length;
  }
  ck_assert_int_gt(line, 400);
  free(data);
}
