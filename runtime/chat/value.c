/* Values of chat templates: truth, printing and operators, with Python's behaviour. */
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/chat/value.h"

bool lp_chat_is_true(const lp_chat_value *value) {
  switch (value->kind) {
  case LP_CHAT_UNDEFINED:
  case LP_CHAT_NONE:
    return false;
  case LP_CHAT_BOOL:
  case LP_CHAT_NUMBER:
    return value->integer != 0;
  case LP_CHAT_REAL:
    return value->real != 0;
  case LP_CHAT_STRING:
  case LP_CHAT_LIST:
  case LP_CHAT_DICT:
    return value->size > 0;
  case LP_CHAT_LOOP:
  case LP_CHAT_SPACE:
  case LP_CHAT_MACRO:
  case LP_CHAT_FUNCTION:
  case LP_CHAT_ITERATOR:
    return true;
  }
  return false;
}

const char *lp_chat_kind_name(const lp_chat_value *value) {
  static const char *const names[] = {
      "an undefined value", "none",   "a boolean",   "a number", "a real number", "a text",     "a list",
      "a mapping",          "a loop", "a namespace", "a macro",  "a function",    "an iterator"};
  return names[value->kind];
}

lp_status lp_chat_unsupported(const lp_chat *chat, const lp_chat_node *node, const char *what, const char *name,
                              const lp_chat_value *value) {
  return lp_chat_error(chat, node->at, "the %s '%s' of %s with these arguments is not supported", what, name,
                       lp_chat_kind_name(value));
}

bool lp_chat_is_integral(const lp_chat_value *value) {
  return value->kind == LP_CHAT_NUMBER || value->kind == LP_CHAT_BOOL;
}

static bool is_numeric(const lp_chat_value *value) {
  return lp_chat_is_integral(value) || value->kind == LP_CHAT_REAL;
}

static double real_of(const lp_chat_value *value) {
  return value->kind == LP_CHAT_REAL ? value->real : (double)value->integer;
}

const lp_chat_value *lp_chat_arg(const lp_chat_args *args, size_t index, const char *name) {
  if (index < args->count && !args->name[index]) return &args->value[index];
  for (size_t i = 0; i < args->count; i++)
    if (args->name[i] && lp_streq(args->name[i], name)) return &args->value[i];
  return NULL;
}

lp_status lp_chat_print(const lp_chat *chat, size_t at, const lp_chat_value *value, lp_buf *out) {
  if (value->kind == LP_CHAT_UNDEFINED) return LP_OK;
  if (value->kind == LP_CHAT_STRING) {
    lp_buf_append(out, value->text, value->size);
    return LP_OK;
  }
  return lp_chat_repr(value, out) ? LP_OK : lp_chat_error(chat, at, "%s cannot be printed", lp_chat_kind_name(value));
}

lp_chat_value lp_chat_keep(const lp_chat *chat, lp_buf *text) {
  lp_chat_value value = lp_chat_text(lp_arena_strndup(chat->arena, lp_buf_text(text), text->size), text->size);
  lp_buf_free(text);
  return value;
}

static size_t character_length(const lp_chat_value *text, size_t at) {
  size_t bad, length = lp_utf8_length(text->text + at, text->size - at, &bad);
  return length > 0 ? length : bad;
}

static lp_chat_value characters(const lp_chat *chat, const lp_chat_value *text) {
  lp_chat_value *items = LP_NEW_ARRAY(chat->arena, lp_chat_value, text->size);
  size_t count = 0;
  for (size_t at = 0, length; at < text->size; at += length) {
    length = character_length(text, at);
    items[count++] = lp_chat_text(lp_arena_strndup(chat->arena, text->text + at, length), length);
  }
  return lp_chat_list(items, count);
}

lp_chat_value lp_chat_iterator_over(const lp_chat *chat, const lp_chat_value *items, size_t size) {
  lp_chat_iterator *iterator = LP_NEW(chat->arena, lp_chat_iterator);
  *iterator = (lp_chat_iterator){.items = items, .size = size};
  return (lp_chat_value){.kind = LP_CHAT_ITERATOR, .iterator = iterator};
}

bool lp_chat_iterate(const lp_chat *chat, const lp_chat_value *value, lp_chat_value *out) {
  *out = lp_chat_list(NULL, 0);
  if (value->kind == LP_CHAT_UNDEFINED) return true;
  if (value->kind == LP_CHAT_ITERATOR) {
    lp_chat_iterator *from = value->iterator;
    *out = lp_chat_list(from->items + from->at, from->size - from->at);
    from->at = from->size;
    return true;
  }
  if (value->kind == LP_CHAT_LIST) *out = *value;
  if (value->kind == LP_CHAT_STRING) *out = characters(chat, value);
  if (value->kind == LP_CHAT_DICT) {
    lp_chat_value *keys = LP_NEW_ARRAY(chat->arena, lp_chat_value, value->size);
    for (size_t i = 0; i < value->size; i++)
      keys[i] = value->items[2 * i];
    *out = lp_chat_list(keys, value->size);
  }
  return value->kind == LP_CHAT_LIST || value->kind == LP_CHAT_STRING || value->kind == LP_CHAT_DICT;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static bool equal_dicts(const lp_chat_value *a, const lp_chat_value *b) {
  bool same = a->size == b->size;
  for (size_t i = 0; same && i < a->size; i++) {
    bool found = false;
    for (size_t j = 0; j < b->size && !found; j++)
      found = lp_chat_equals(&a->items[2 * i], &b->items[2 * j]) &&
              lp_chat_equals(&a->items[2 * i + 1], &b->items[2 * j + 1]);
    same = found;
  }
  return same;
}

bool lp_chat_equals(const lp_chat_value *a, const lp_chat_value *b) {
  if (lp_chat_is_integral(a) && lp_chat_is_integral(b)) return a->integer == b->integer;
  if (is_numeric(a) && is_numeric(b)) return real_of(a) == real_of(b);
  if (a->kind != b->kind) return false;
  if (a->kind == LP_CHAT_STRING) return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
  if (a->kind == LP_CHAT_DICT) return equal_dicts(a, b);
  if (a->kind != LP_CHAT_LIST) return a->kind == LP_CHAT_UNDEFINED || a->kind == LP_CHAT_NONE;
  bool same = a->size == b->size && a->tuple == b->tuple;
  for (size_t i = 0; same && i < a->size; i++)
    same = lp_chat_equals(&a->items[i], &b->items[i]);
  return same;
}

static bool order_lists(const lp_chat_value *a, const lp_chat_value *b, int *out) {
  for (size_t i = 0; i < a->size && i < b->size; i++) {
    if (lp_chat_equals(&a->items[i], &b->items[i])) continue;
    return lp_chat_order(&a->items[i], &b->items[i], out);
  }
  *out = a->size < b->size ? -1 : a->size > b->size;
  return true;
}

bool lp_chat_order(const lp_chat_value *a, const lp_chat_value *b, int *out) {
  if (a->kind == LP_CHAT_LIST && b->kind == LP_CHAT_LIST && a->tuple == b->tuple) return order_lists(a, b, out);
  if (lp_chat_is_integral(a) && lp_chat_is_integral(b)) {
    *out = a->integer < b->integer ? -1 : a->integer > b->integer;
  } else if (is_numeric(a) && is_numeric(b)) {
    *out = real_of(a) < real_of(b) ? -1 : real_of(a) > real_of(b);
  } else if (a->kind == LP_CHAT_STRING && b->kind == LP_CHAT_STRING) {
    size_t size = a->size < b->size ? a->size : b->size;
    *out = memcmp(a->text, b->text, size);
    if (*out == 0) *out = a->size < b->size ? -1 : a->size > b->size;
  } else {
    return false;
  }
  return true;
}

static lp_status mismatch(const lp_chat *chat, const lp_chat_node *node, const char *op, const lp_chat_value *a,
                          const lp_chat_value *b) {
  return lp_chat_error(chat, node->at, "'%s' of %s and %s is not supported", op, lp_chat_kind_name(a),
                       lp_chat_kind_name(b));
}

lp_chat_value lp_chat_escape(const lp_chat *chat, const lp_chat_value *value) {
  static const char from[] = "&<>'\"";
  static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  lp_buf text = {0};
  if (value->safe) return *value;
  for (size_t i = 0; i < value->size; i++) {
    const char *hit = value->text[i] ? strchr(from, value->text[i]) : NULL;
    if (hit)
      lp_buf_puts(&text, to[hit - from]);
    else
      lp_buf_append(&text, value->text + i, 1);
  }
  lp_chat_value out = lp_chat_keep(chat, &text);
  out.safe = true;
  return out;
}

static lp_status concatenate(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *a,
                             const lp_chat_value *b, lp_chat_value *out) {
  lp_buf text = {0};
  lp_status status = lp_chat_print(chat, node->at, a, &text);
  if (status == LP_OK) status = lp_chat_print(chat, node->at, b, &text);
  *out = lp_chat_keep(chat, &text);
  return status;
}

/* The sum of two texts, of which one that is safe escapes the other. */
static lp_status add_texts(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *a,
                           const lp_chat_value *b, lp_chat_value *out) {
  if (!a->safe && !b->safe) return concatenate(chat, node, a, b, out);
  lp_chat_value left = lp_chat_escape(chat, a), right = lp_chat_escape(chat, b);
  LP_TRY(concatenate(chat, node, &left, &right, out));
  out->safe = true;
  return LP_OK;
}

/* Python's // and % round towards minus infinity. */
static lp_status divide(const lp_chat *chat, const lp_chat_node *node, const char *op, int64_t a, int64_t b,
                        lp_chat_value *out) {
  if (b == 0) return lp_chat_error(chat, node->at, "division by zero");
  if (b == -1) { /* INT64_MIN / -1 does not fit */
    int64_t negative;
    if (!lp_i64_mul(a, -1, &negative)) return lp_chat_error(chat, node->at, "the number is too large");
    *out = lp_chat_number(op[0] == '%' ? 0 : negative);
    return LP_OK;
  }
  int64_t quotient = a / b, rest = a % b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    quotient--;
    rest += b;
  }
  *out = lp_chat_number(op[0] == '%' ? rest : quotient);
  return LP_OK;
}

/* a ** b for b >= 0; false: it does not fit. */
static bool power(int64_t a, int64_t b, int64_t *out) {
  bool fits = true;
  *out = 1;
  if (a >= -1 && a <= 1 && b > 1) b = 2 + b % 2;
  for (; b > 0 && fits; b--)
    fits = lp_i64_mul(*out, a, out);
  return fits;
}

static lp_status calculate(const lp_chat *chat, const lp_chat_node *node, const char *op, int64_t a, int64_t b,
                           lp_chat_value *out) {
  int64_t value = 0;
  bool fits = true;
  if (lp_streq(op, "%") || lp_streq(op, "//")) return divide(chat, node, op, a, b, out);
  if (lp_streq(op, "+"))
    fits = lp_i64_add(a, b, &value);
  else if (lp_streq(op, "-"))
    fits = b != INT64_MIN && lp_i64_add(a, -b, &value);
  else if (lp_streq(op, "*"))
    fits = lp_i64_mul(a, b, &value);
  else
    fits = power(a, b, &value);
  *out = lp_chat_number(value);
  return fits ? LP_OK : lp_chat_error(chat, node->at, "the number is too large");
}

static lp_status calculate_real(const lp_chat *chat, const lp_chat_node *node, const char *op, double a, double b,
                                lp_chat_value *out) {
  out->kind = LP_CHAT_REAL;
  if (lp_streq(op, "/")) {
    if (b == 0) return lp_chat_error(chat, node->at, "division by zero");
    out->real = a / b;
  } else if (lp_streq(op, "+") || lp_streq(op, "-")) {
    out->real = op[0] == '+' ? a + b : a - b;
  } else if (lp_streq(op, "*")) {
    out->real = a * b;
  } else if (lp_streq(op, "**") && (a > 0 || (a == 0 && b >= 0) || b == floor(b))) {
    if (a == 0 && b < 0) return lp_chat_error(chat, node->at, "division by zero");
    out->real = pow(a, b);
    if (!isfinite(out->real)) return lp_chat_error(chat, node->at, "the number is too large");
  } else {
    return lp_chat_error(chat, node->at, "the operator '%s' of real numbers is not supported", op);
  }
  return LP_OK;
}

const char *lp_chat_find(const lp_chat_value *in, const lp_chat_value *what, size_t from) {
  if (from > in->size) return NULL;
  if (what->size == 0) return in->text + from;
  return memmem(in->text + from, in->size - from, what->text, what->size);
}

static lp_status contains(const lp_chat *chat, const lp_chat_node *node, const char *op, const lp_chat_value *item,
                          const lp_chat_value *in, bool *out) {
  *out = false;
  if (in->kind == LP_CHAT_UNDEFINED) return LP_OK;
  if (in->kind == LP_CHAT_ITERATOR) {
    lp_chat_iterator *from = in->iterator;
    while (from->at < from->size && !*out)
      *out = lp_chat_equals(item, &from->items[from->at++]);
    return LP_OK;
  }
  if (in->kind == LP_CHAT_LIST || in->kind == LP_CHAT_DICT) {
    size_t step = in->kind == LP_CHAT_DICT ? 2 : 1;
    for (size_t i = 0; i < in->size && !*out; i++)
      *out = lp_chat_equals(item, &in->items[step * i]);
    return LP_OK;
  }
  if (item->kind != LP_CHAT_STRING || in->kind != LP_CHAT_STRING) return mismatch(chat, node, op, item, in);
  *out = lp_chat_find(in, item, 0) != NULL;
  return LP_OK;
}

static lp_chat_value join_lists(const lp_chat *chat, const lp_chat_value *a, const lp_chat_value *b) {
  lp_chat_value *items = LP_NEW_ARRAY(chat->arena, lp_chat_value, a->size + b->size);
  for (size_t i = 0; i < a->size + b->size; i++)
    items[i] = i < a->size ? a->items[i] : b->items[i - a->size];
  lp_chat_value joined = lp_chat_list(items, a->size + b->size);
  joined.tuple = a->tuple;
  return joined;
}

enum { MOST_REPEATED = 1 << 20 };

static lp_status repeat(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *text, int64_t times,
                        lp_chat_value *out) {
  lp_buf made = {0};
  if (times > 0 && text->size > 0 && (size_t)times > MOST_REPEATED / text->size)
    return lp_chat_error(chat, node->at, "the text is too long");
  for (int64_t i = 0; i < times; i++)
    lp_buf_append(&made, text->text, text->size);
  *out = lp_chat_keep(chat, &made);
  return LP_OK;
}

static lp_status compare(const lp_chat *chat, const lp_chat_node *node, const char *op, const lp_chat_value *a,
                         const lp_chat_value *b, lp_chat_value *out) {
  int order;
  if (!lp_chat_order(a, b, &order)) return mismatch(chat, node, op, a, b);
  bool or_equal = op[1] == '=' && order == 0;
  *out = lp_chat_bool(or_equal || (op[0] == '<' ? order < 0 : order > 0));
  return LP_OK;
}

lp_status lp_chat_binary(const lp_chat *chat, const lp_chat_node *node, const char *op, const lp_chat_value *a,
                         const lp_chat_value *b, lp_chat_value *out) {
  bool truth = false, plus = lp_streq(op, "+");
  if (lp_streq(op, "==") || lp_streq(op, "!=")) {
    *out = lp_chat_bool(lp_chat_equals(a, b) == (op[0] == '='));
    return LP_OK;
  }
  if (lp_streq(op, "in") || lp_streq(op, "not in")) {
    LP_TRY(contains(chat, node, op, a, b, &truth));
    *out = lp_chat_bool(truth == (op[0] == 'i'));
    return LP_OK;
  }
  if (op[0] == '<' || op[0] == '>') return compare(chat, node, op, a, b, out);
  if (lp_streq(op, "~")) return concatenate(chat, node, a, b, out);
  if (plus && a->kind == LP_CHAT_STRING && b->kind == LP_CHAT_STRING) return add_texts(chat, node, a, b, out);
  if (plus && a->kind == LP_CHAT_LIST && b->kind == LP_CHAT_LIST && a->tuple == b->tuple) {
    *out = join_lists(chat, a, b);
    return LP_OK;
  }
  if (lp_streq(op, "*") && a->kind == LP_CHAT_STRING && lp_chat_is_integral(b))
    return repeat(chat, node, a, b->integer, out);
  if (lp_streq(op, "*") && b->kind == LP_CHAT_STRING && lp_chat_is_integral(a))
    return repeat(chat, node, b, a->integer, out);
  if (!is_numeric(a) || !is_numeric(b)) return mismatch(chat, node, op, a, b);
  bool whole = !lp_streq(op, "/") && !(lp_streq(op, "**") && lp_chat_is_integral(b) && b->integer < 0);
  if (lp_chat_is_integral(a) && lp_chat_is_integral(b) && whole)
    return calculate(chat, node, op, a->integer, b->integer, out);
  return calculate_real(chat, node, op, real_of(a), real_of(b), out);
}
