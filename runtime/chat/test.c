/* Tests of chat templates, `value is test(arguments)`, with the behaviour of Jinja and Python. */
#include "runtime/chat/filters.h"

/* Evaluates tests that compare with an argument; false: there is no such test. */
static bool compare_test(const char *name, const char **op) {
  static const char *const names[][2] = {{"equalto", "=="}, {"eq", "=="}, {"==", "=="},         {"ne", "!="},
                                         {"!=", "!="},      {"lt", "<"},  {"lessthan", "<"},    {"le", "<="},
                                         {"gt", ">"},       {"ge", ">="}, {"greaterthan", ">"}, {"in", "in"}};
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    if (!lp_streq(name, names[i][0])) continue;
    *op = names[i][1];
    return true;
  }
  return false;
}

static bool has_case(const lp_chat_value *value, char low, char high) {
  bool any = false;
  for (size_t i = 0; value->kind == LP_CHAT_STRING && i < value->size; i++) {
    char c = value->text[i];
    bool other = low == 'a' ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z';
    if (other) return false;
    any = any || (c >= low && c <= high);
  }
  return any;
}

static bool plain_test(const lp_chat *chat, const char *name, const lp_chat_value *value, bool *out) {
  lp_chat_value_kind kind = value->kind;
  bool integral = lp_chat_is_integral(value), sequence = kind == LP_CHAT_STRING || kind == LP_CHAT_LIST;
  bool iterator = kind == LP_CHAT_ITERATOR, reads = lp_streq(name, "lower") || lp_streq(name, "upper");
  if (reads) (void)lp_chat_charge_text(chat, value->size);
  const struct {
    const char *name;
    bool truth;
  } tests[] = {
      {"defined", kind != LP_CHAT_UNDEFINED},
      {"undefined", kind == LP_CHAT_UNDEFINED},
      {"none", kind == LP_CHAT_NONE},
      {"string", kind == LP_CHAT_STRING},
      {"boolean", kind == LP_CHAT_BOOL},
      {"true", kind == LP_CHAT_BOOL && value->integer == 1},
      {"false", kind == LP_CHAT_BOOL && value->integer == 0},
      {"escaped", kind == LP_CHAT_STRING && value->safe},
      {"number", integral || kind == LP_CHAT_REAL},
      {"integer", kind == LP_CHAT_NUMBER},
      {"float", kind == LP_CHAT_REAL},
      {"mapping", kind == LP_CHAT_DICT},
      {"iterable", sequence || iterator || kind == LP_CHAT_DICT || kind == LP_CHAT_UNDEFINED},
      {"sequence", sequence || kind == LP_CHAT_DICT || kind == LP_CHAT_UNDEFINED},
      {"callable", kind == LP_CHAT_MACRO || kind == LP_CHAT_FUNCTION || kind == LP_CHAT_UNDEFINED},
      {"odd", integral && value->integer % 2 != 0},
      {"even", integral && value->integer % 2 == 0},
      {"lower", reads && has_case(value, 'a', 'z')},
      {"upper", reads && has_case(value, 'A', 'Z')},
  };
  for (size_t i = 0; i < LP_COUNT(tests); i++) {
    if (!lp_streq(name, tests[i].name)) continue;
    *out = tests[i].truth;
    return true;
  }
  return false;
}

lp_status lp_chat_test(const lp_chat *chat, const lp_chat_node *node, const char *name, const lp_chat_value *value,
                       const lp_chat_args *args, bool *out) {
  const lp_chat_value *first = lp_chat_arg(args, 0, "other");
  const char *op;
  lp_chat_value made;
  if (args->count == 0 && plain_test(chat, name, value, out)) return LP_OK;
  if (first && compare_test(name, &op)) {
    LP_TRY(lp_chat_binary(chat, node, op, value, first, &made));
    *out = lp_chat_is_true(&made);
    return LP_OK;
  }
  if (first && lp_streq(name, "sameas")) {
    *out = value->kind == first->kind && value->kind <= LP_CHAT_NUMBER && lp_chat_equals(chat, value, first);
    return LP_OK;
  }
  if (first && lp_streq(name, "divisibleby") && lp_chat_is_integral(value) && lp_chat_is_integral(first) &&
      first->integer != 0) {
    *out = first->integer == -1 || value->integer % first->integer == 0;
    return LP_OK;
  }
  return lp_chat_error(chat, node->at, "the test '%s' is not supported", name);
}
