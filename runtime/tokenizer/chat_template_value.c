/* Values of chat templates: truth, printing, operators, members, tests. As Python does it. */
#include <string.h>

#include "runtime/runtime.h"
#include "runtime/tokenizer/chat_template.h"

lp_chat_value lp_chat_text(const char *text, size_t size) {
  return (lp_chat_value){.kind = LP_CHAT_STRING, .size = size, .text = text};
}

lp_chat_value lp_chat_bool(bool value) {
  return (lp_chat_value){.kind = LP_CHAT_BOOL, .integer = value};
}

lp_chat_value lp_chat_number(int64_t value) {
  return (lp_chat_value){.kind = LP_CHAT_NUMBER, .integer = value};
}

bool lp_chat_is_true(const lp_chat_value *value) {
  switch (value->kind) {
  case LP_CHAT_UNDEFINED:
  case LP_CHAT_NONE:
    return false;
  case LP_CHAT_BOOL:
  case LP_CHAT_NUMBER:
    return value->integer != 0;
  case LP_CHAT_STRING:
  case LP_CHAT_LIST:
    return value->size > 0;
  case LP_CHAT_MESSAGE:
  case LP_CHAT_LOOP:
  case LP_CHAT_SPACE:
    return true;
  }
  return false;
}

const char *lp_chat_kind_name(const lp_chat_value *value) {
  static const char *const names[] = {"an undefined value", "none",   "a boolean",  "a number", "a text", "a list",
                                      "a message",          "a loop", "a namespace"};
  return names[value->kind];
}

bool lp_chat_is_integral(const lp_chat_value *value) {
  return value->kind == LP_CHAT_NUMBER || value->kind == LP_CHAT_BOOL;
}

lp_status lp_chat_print(const lp_chat *chat, size_t at, const lp_chat_value *value, lp_buf *out) {
  switch (value->kind) {
  case LP_CHAT_UNDEFINED:
    return LP_OK;
  case LP_CHAT_NONE:
    lp_buf_puts(out, "None");
    return LP_OK;
  case LP_CHAT_BOOL:
    lp_buf_puts(out, value->integer ? "True" : "False");
    return LP_OK;
  case LP_CHAT_NUMBER:
    lp_buf_printf(out, "%" PRId64, value->integer);
    return LP_OK;
  case LP_CHAT_STRING:
    lp_buf_append(out, value->text, value->size);
    return LP_OK;
  default:
    return lp_chat_error(chat, at, "%s cannot be printed", lp_chat_kind_name(value));
  }
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static bool equals(const lp_chat_value *a, const lp_chat_value *b) {
  if (lp_chat_is_integral(a) && lp_chat_is_integral(b)) return a->integer == b->integer;
  if (a->kind != b->kind) return false;
  if (a->kind == LP_CHAT_STRING) return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
  if (a->kind == LP_CHAT_MESSAGE)
    return lp_streq(a->message->role, b->message->role) && lp_streq(a->message->content, b->message->content);
  if (a->kind != LP_CHAT_LIST) return a->kind == LP_CHAT_UNDEFINED || a->kind == LP_CHAT_NONE;
  bool same = a->size == b->size;
  for (size_t i = 0; same && i < a->size; i++)
    same = equals(&a->items[i], &b->items[i]);
  return same;
}

static lp_status mismatch(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *a,
                          const lp_chat_value *b) {
  return lp_chat_error(chat, node->at, "'%s' of %s and %s is not supported", node->text, lp_chat_kind_name(a),
                       lp_chat_kind_name(b));
}

lp_chat_value lp_chat_keep(const lp_chat *chat, lp_buf *text) {
  lp_chat_value value = lp_chat_text(lp_arena_strndup(chat->arena, lp_buf_text(text), text->size), text->size);
  lp_buf_free(text);
  return value;
}

static lp_status concatenate(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *a,
                             const lp_chat_value *b, lp_chat_value *out) {
  lp_buf text = {0};
  lp_status status = lp_chat_print(chat, node->at, a, &text);
  if (status == LP_OK) status = lp_chat_print(chat, node->at, b, &text);
  *out = lp_chat_keep(chat, &text);
  return status;
}

/* Python's // and % round towards minus infinity. */
static lp_status divide(const lp_chat *chat, const lp_chat_node *node, int64_t a, int64_t b, lp_chat_value *out) {
  if (b == 0) return lp_chat_error(chat, node->at, "division by zero");
  if (b == -1) { /* INT64_MIN / -1 does not fit */
    int64_t negative;
    if (!lp_i64_mul(a, -1, &negative)) return lp_chat_error(chat, node->at, "the number is too large");
    *out = lp_chat_number(node->text[0] == '%' ? 0 : negative);
    return LP_OK;
  }
  int64_t quotient = a / b, rest = a % b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    quotient--;
    rest += b;
  }
  *out = lp_chat_number(node->text[0] == '%' ? rest : quotient);
  return LP_OK;
}

static lp_status calculate(const lp_chat *chat, const lp_chat_node *node, int64_t a, int64_t b, lp_chat_value *out) {
  int64_t value = 0;
  bool fits = true;
  switch (node->text[0]) {
  case '+':
    fits = lp_i64_add(a, b, &value);
    break;
  case '-':
    fits = b != INT64_MIN && lp_i64_add(a, -b, &value);
    break;
  case '*':
    fits = lp_i64_mul(a, b, &value);
    break;
  case '%':
    return divide(chat, node, a, b, out);
  default:
    if (lp_streq(node->text, "//")) return divide(chat, node, a, b, out);
    return lp_chat_error(chat, node->at, "the operator '%s' is not supported", node->text);
  }
  *out = lp_chat_number(value);
  return fits ? LP_OK : lp_chat_error(chat, node->at, "the number is too large");
}

const char *lp_chat_find(const lp_chat_value *in, const lp_chat_value *what, size_t from) {
  for (size_t at = from; at + what->size <= in->size; at++)
    if (memcmp(in->text + at, what->text, what->size) == 0) return in->text + at;
  return NULL;
}

bool lp_chat_is_key(const char *name) {
  return lp_streq(name, "role") || lp_streq(name, "content");
}

static lp_status contains(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *item,
                          const lp_chat_value *in, bool *out) {
  *out = false;
  if (in->kind == LP_CHAT_LIST) {
    for (size_t i = 0; i < in->size && !*out; i++)
      *out = equals(item, &in->items[i]);
    return LP_OK;
  }
  if (item->kind != LP_CHAT_STRING) return mismatch(chat, node, item, in);
  if (in->kind == LP_CHAT_STRING) {
    *out = lp_chat_find(in, item, 0) != NULL;
    return LP_OK;
  }
  if (in->kind != LP_CHAT_MESSAGE) return mismatch(chat, node, item, in);
  *out = lp_chat_is_key(item->text);
  return LP_OK;
}

static lp_status compare(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *a, const lp_chat_value *b,
                         lp_chat_value *out) {
  int order;
  if (lp_chat_is_integral(a) && lp_chat_is_integral(b)) {
    order = a->integer < b->integer ? -1 : a->integer > b->integer;
  } else if (a->kind == LP_CHAT_STRING && b->kind == LP_CHAT_STRING) {
    size_t size = a->size < b->size ? a->size : b->size;
    order = memcmp(a->text, b->text, size);
    if (order == 0) order = a->size < b->size ? -1 : a->size > b->size;
  } else {
    return mismatch(chat, node, a, b);
  }
  bool or_equal = node->text[1] == '=' && order == 0;
  *out = lp_chat_bool(or_equal || (node->text[0] == '<' ? order < 0 : order > 0));
  return LP_OK;
}

lp_status lp_chat_binary(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *a, const lp_chat_value *b,
                         lp_chat_value *out) {
  const char *op = node->text;
  bool truth = false;
  if (lp_streq(op, "==") || lp_streq(op, "!=")) {
    *out = lp_chat_bool(equals(a, b) == (op[0] == '='));
    return LP_OK;
  }
  if (lp_streq(op, "in") || lp_streq(op, "not in")) {
    LP_TRY(contains(chat, node, a, b, &truth));
    *out = lp_chat_bool(truth == (op[0] == 'i'));
    return LP_OK;
  }
  if (op[0] == '<' || op[0] == '>') return compare(chat, node, a, b, out);
  if (op[0] == '~') return concatenate(chat, node, a, b, out);
  if (op[0] == '+' && a->kind == LP_CHAT_STRING && b->kind == LP_CHAT_STRING) return concatenate(chat, node, a, b, out);
  if (!lp_chat_is_integral(a) || !lp_chat_is_integral(b)) return mismatch(chat, node, a, b);
  return calculate(chat, node, a->integer, b->integer, out);
}

/* ---- members ----------------------------------------------------------------------------------------------------- */

lp_chat_value lp_chat_message_member(const lp_chat_message *message, const char *name) {
  if (!lp_chat_is_key(name)) return (lp_chat_value){0};
  const char *text = name[0] == 'r' ? message->role : message->content;
  return text ? lp_chat_text(text, strlen(text)) : (lp_chat_value){.kind = LP_CHAT_NONE};
}

static lp_status loop_member(const lp_chat *chat, const lp_chat_node *node, const lp_chat_loop *loop, const char *name,
                             lp_chat_value *out) {
  size_t left = loop->count - loop->index;
  if (lp_streq(name, "first"))
    *out = lp_chat_bool(loop->index == 0);
  else if (lp_streq(name, "last"))
    *out = lp_chat_bool(left == 1);
  else if (lp_streq(name, "index0"))
    *out = lp_chat_number((int64_t)loop->index);
  else if (lp_streq(name, "index"))
    *out = lp_chat_number((int64_t)loop->index + 1);
  else if (lp_streq(name, "revindex"))
    *out = lp_chat_number((int64_t)left);
  else if (lp_streq(name, "revindex0"))
    *out = lp_chat_number((int64_t)left - 1);
  else if (lp_streq(name, "length"))
    *out = lp_chat_number((int64_t)loop->count);
  else
    return lp_chat_error(chat, node->at, "'loop.%s' is not supported", name);
  return LP_OK;
}

lp_status lp_chat_member(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object, const char *name,
                         lp_chat_value *out) {
  *out = (lp_chat_value){0};
  switch (object->kind) {
  case LP_CHAT_MESSAGE:
    *out = lp_chat_message_member(object->message, name);
    return LP_OK;
  case LP_CHAT_LOOP:
    return loop_member(chat, node, object->loop, name, out);
  case LP_CHAT_SPACE:
    for (const lp_chat_variable *v = *object->space; v; v = v->next) {
      if (!lp_streq(v->name, name)) continue;
      *out = v->value;
      return LP_OK;
    }
    return LP_OK;
  case LP_CHAT_UNDEFINED:
    return lp_chat_error(chat, node->at, "an undefined value has no member '%s'", name);
  default:
    return LP_OK; /* undefined, as in Jinja */
  }
}

lp_status lp_chat_index(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                        const lp_chat_value *key, lp_chat_value *out) {
  if (key->kind == LP_CHAT_STRING) return lp_chat_member(chat, node, object, key->text, out);
  *out = (lp_chat_value){0};
  bool sequence = object->kind == LP_CHAT_LIST || object->kind == LP_CHAT_STRING;
  if (!sequence || !lp_chat_is_integral(key))
    return lp_chat_error(chat, node->at, "%s as an index of %s is not supported", lp_chat_kind_name(key),
                         lp_chat_kind_name(object));
  int64_t at = key->integer, count = (int64_t)object->size;
  if (at < 0) at += count;
  if (at < 0 || at >= count) return LP_OK; /* undefined */
  if (object->kind == LP_CHAT_LIST) {
    *out = object->items[at];
    return LP_OK;
  }
  for (size_t i = 0; i < object->size; i++)
    if ((uint8_t)object->text[i] >= 0x80)
      return lp_chat_error(chat, node->at, "an index of a text is supported for ASCII only");
  *out = lp_chat_text(lp_arena_strndup(chat->arena, object->text + at, 1), 1);
  return LP_OK;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

lp_status lp_chat_test(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value, bool *out) {
  lp_chat_value_kind kind = value->kind;
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
      {"number", lp_chat_is_integral(value)},
      {"mapping", kind == LP_CHAT_MESSAGE},
      {"iterable", kind == LP_CHAT_STRING || kind == LP_CHAT_LIST || kind == LP_CHAT_MESSAGE},
      {"sequence", kind == LP_CHAT_STRING || kind == LP_CHAT_LIST || kind == LP_CHAT_MESSAGE},
      {"odd", lp_chat_is_integral(value) && value->integer % 2 != 0},
      {"even", lp_chat_is_integral(value) && value->integer % 2 == 0},
  };
  for (size_t i = 0; i < LP_COUNT(tests); i++) {
    if (!lp_streq(node->text, tests[i].name)) continue;
    *out = tests[i].truth != (node->integer != 0);
    return LP_OK;
  }
  return lp_chat_error(chat, node->at, "the test '%s' is not supported", node->text);
}
