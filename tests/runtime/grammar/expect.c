/* Makes grammars of schemas and follows texts: see expect.h. */
#include "tests/runtime/grammar/expect.h"

#include <check.h>
#include <string.h>

#include "runtime/grammar/automaton.h"
#include "tests/runtime/grammar/slow_grammar.h"

lp_grammar *expect_made(const char *schema, lp_diag *diag) {
  lp_json_document *document = NULL;
  lp_grammar *grammar = NULL;
  ck_assert_int_eq(lp_json_parse("schema", schema, strlen(schema), 0, &document, NULL), LP_OK);
  lp_json root = lp_json_root("schema", document);
  lp_status status = lp_grammar_of_schema(&root, &grammar, diag);
  ck_assert_int_eq(status == LP_OK, grammar != NULL);
  lp_json_free(document);
  return grammar;
}

bool expect_takes(const lp_grammar *grammar, const char *text) {
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

void expect_texts(const char *schema, const char *const *good, const char *const *bad) {
  lp_grammar *grammar = expect_made(schema, NULL);
  ck_assert_ptr_nonnull(grammar);
  for (; *good; good++)
    ck_assert_msg(expect_takes(grammar, *good), "%s refuses %s", schema, *good);
  for (; *bad; bad++)
    ck_assert_msg(!expect_takes(grammar, *bad), "%s takes %s", schema, *bad);
  lp_grammar_free(grammar);
}

void expect_refused(const char *schema, const char *why) {
  lp_diag *diag = lp_diag_create();
  ck_assert_ptr_null(expect_made(schema, diag));
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  ck_assert_msg(strstr(lp_diag_get(diag, 0)->text, why) != NULL, "%s: %s", schema, lp_diag_get(diag, 0)->text);
  lp_diag_free(diag);
}
