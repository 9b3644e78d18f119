/* Values of chat templates: truth, printing and operators, with Python's behaviour. */
#include <math.h>

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

lp_chat_variable *lp_chat_find_variable(const lp_chat *chat, lp_chat_variable *first, const char *name) {
  size_t compared = 0;
  for (; first && !lp_streq(first->name, name); first = first->next)
    compared++;
  (void)lp_chat_charge_names(chat, compared);
  return first;
}

lp_status lp_chat_print(const lp_chat *chat, size_t at, const lp_chat_value *value, lp_buf *out) {
  if (value->kind == LP_CHAT_UNDEFINED) return LP_OK;
  if (value->kind == LP_CHAT_STRING) {
    lp_buf_append(out, value->text, value->size);
    return LP_OK;
  }
  return lp_chat_repr(chat, value, out) ? LP_OK
                                        : lp_chat_error(chat, at, "%s cannot be printed", lp_chat_kind_name(value));
}

lp_chat_value lp_chat_keep(const lp_buf *text) {
  return lp_chat_text(lp_buf_text(text), text->size);
}

const char *lp_chat_string(const lp_chat *chat, const lp_chat_value *text) {
  return text->text[text->size] == '\0' ? text->text : lp_chat_strndup(chat, text->text, text->size);
}

bool lp_chat_is_text(const lp_chat_value *value, const char *text) {
  return value->kind == LP_CHAT_STRING && value->size == strlen(text) && memcmp(value->text, text, value->size) == 0;
}

size_t lp_chat_count_characters(const lp_chat *chat, const char *text, size_t size) {
  size_t count = 0;
  if (!lp_chat_charge_bytes(chat, size)) return 0;
  for (size_t i = 0; i < size; i++)
    count += ((uint8_t)text[i] & 0xC0) != 0x80;
  return count;
}

size_t lp_chat_character_length(const lp_chat_value *text, size_t at) {
  size_t bad, length = lp_utf8_length(text->text + at, text->size - at, &bad);
  return length > 0 ? length : bad;
}

static lp_chat_value characters(const lp_chat *chat, const lp_chat_value *text) {
  size_t count = 0, made = 0;
  for (size_t at = 0; at < text->size; at += lp_chat_character_length(text, at))
    count++;
  lp_chat_value *items = LP_CHAT_NEW(chat, lp_chat_value, count);
  for (size_t at = 0, length; items && at < text->size; at += length) {
    length = lp_chat_character_length(text, at);
    items[made++] = lp_chat_text(text->text + at, length);
  }
  return lp_chat_list(items, made);
}

lp_chat_value lp_chat_iterator_over(const lp_chat *chat, const lp_chat_value *items, size_t size) {
  lp_chat_iterator *iterator = LP_CHAT_NEW(chat, lp_chat_iterator, 1);
  if (!iterator) return (lp_chat_value){0};
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
    lp_chat_value *keys = LP_CHAT_NEW(chat, lp_chat_value, value->size);
    for (size_t i = 0; keys && i < value->size; i++)
      keys[i] = value->items[2 * i];
    *out = lp_chat_list(keys, keys ? value->size : 0);
  }
  return value->kind == LP_CHAT_LIST || value->kind == LP_CHAT_STRING || value->kind == LP_CHAT_DICT;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static bool equal_dicts(const lp_chat *chat, const lp_chat_value *a, const lp_chat_value *b) {
  bool same = a->size == b->size;
  for (size_t i = 0; same && i < a->size; i++) {
    bool found = false;
    for (size_t j = 0; j < b->size && !found; j++)
      found = lp_chat_equals(chat, &a->items[2 * i], &b->items[2 * j]) &&
              lp_chat_equals(chat, &a->items[2 * i + 1], &b->items[2 * j + 1]);
    same = found;
  }
  return same;
}

static bool equal_lists(const lp_chat *chat, const lp_chat_value *a, const lp_chat_value *b) {
  bool same = a->size == b->size && a->tuple == b->tuple;
  for (size_t i = 0; same && i < a->size; i++)
    same = lp_chat_equals(chat, &a->items[i], &b->items[i]);
  return same;
}

bool lp_chat_equals(const lp_chat *chat, const lp_chat_value *a, const lp_chat_value *b) {
  if (lp_chat_is_integral(a) && lp_chat_is_integral(b)) return lp_chat_charge(chat, 1) && a->integer == b->integer;
  if (is_numeric(a) && is_numeric(b)) return lp_chat_charge(chat, 1) && real_of(a) == real_of(b);
  if (a->kind == LP_CHAT_STRING && b->kind == LP_CHAT_STRING)
    return lp_chat_charge_bytes(chat, a->size == b->size ? a->size : 0) && a->size == b->size &&
           memcmp(a->text, b->text, a->size) == 0;
  if (!lp_chat_enter(chat)) return false;
  bool same =
      a->kind == b->kind && (a->kind == LP_CHAT_DICT   ? equal_dicts(chat, a, b)
                             : a->kind == LP_CHAT_LIST ? equal_lists(chat, a, b)
                                                       : a->kind == LP_CHAT_UNDEFINED || a->kind == LP_CHAT_NONE);
  chat->budget->depth--;
  return same;
}

static bool order_lists(const lp_chat *chat, const lp_chat_value *a, const lp_chat_value *b, int *out) {
  for (size_t i = 0; i < a->size && i < b->size; i++) {
    if (lp_chat_equals(chat, &a->items[i], &b->items[i])) continue;
    if (!lp_chat_enter(chat)) return false;
    bool has_order = lp_chat_order(chat, &a->items[i], &b->items[i], out);
    chat->budget->depth--;
    return has_order;
  }
  *out = a->size < b->size ? -1 : a->size > b->size;
  return true;
}

bool lp_chat_order(const lp_chat *chat, const lp_chat_value *a, const lp_chat_value *b, int *out) {
  if (a->kind == LP_CHAT_LIST && b->kind == LP_CHAT_LIST && a->tuple == b->tuple) return order_lists(chat, a, b, out);
  if (lp_chat_is_integral(a) && lp_chat_is_integral(b)) {
    *out = a->integer < b->integer ? -1 : a->integer > b->integer;
  } else if (is_numeric(a) && is_numeric(b)) {
    *out = real_of(a) < real_of(b) ? -1 : real_of(a) > real_of(b);
  } else if (a->kind == LP_CHAT_STRING && b->kind == LP_CHAT_STRING) {
    size_t size = a->size < b->size ? a->size : b->size;
    if (!lp_chat_charge_bytes(chat, size)) return false;
    *out = memcmp(a->text, b->text, size);
    if (*out == 0) *out = a->size < b->size ? -1 : a->size > b->size;
  } else {
    return false;
  }
  return lp_chat_charge(chat, 1);
}

static lp_status mismatch(const lp_chat *chat, const lp_chat_node *node, const char *op, const lp_chat_value *a,
                          const lp_chat_value *b) {
  return lp_chat_error(chat, node->at, "'%s' of %s and %s is not supported", op, lp_chat_kind_name(a),
                       lp_chat_kind_name(b));
}

lp_chat_value lp_chat_escape(const lp_chat *chat, const lp_chat_value *value) {
  static const char from[] = "&<>'\"";
  static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  lp_buf text = {.arena = chat->arena};
  if (value->safe) return *value;
  for (size_t i = 0; i < value->size; i++) {
    const char *hit = value->text[i] ? strchr(from, value->text[i]) : NULL;
    if (hit)
      lp_buf_puts(&text, to[hit - from]);
    else
      lp_buf_append(&text, value->text + i, 1);
  }
  lp_chat_value out = lp_chat_keep(&text);
  out.safe = true;
  return out;
}

static lp_status as_text(const lp_chat *chat, const lp_chat_node *node, lp_chat_value *value) {
  lp_buf text = {.arena = chat->arena};
  if (value->kind == LP_CHAT_STRING) return LP_OK;
  LP_TRY(lp_chat_print(chat, node->at, value, &text));
  *value = lp_chat_keep(&text);
  return LP_OK;
}

static lp_status concatenate(const lp_chat *chat, const lp_chat_node *node, lp_chat_value a, lp_chat_value b,
                             lp_chat_value *out) {
  LP_TRY(as_text(chat, node, &a));
  LP_TRY(as_text(chat, node, &b));
  bool grows = a.grows;
  const void *data = lp_chat_append(chat, (lp_chat_bytes){a.text, a.size}, &grows, (lp_chat_bytes){b.text, b.size});
  LP_TRY(lp_chat_check(chat, node->at));
  *out = lp_chat_text(data, a.size + b.size);
  out->grows = grows;
  return LP_OK;
}

static lp_status join_lists(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *a,
                            const lp_chat_value *b, lp_chat_value *out) {
  bool grows = a->grows;
  const void *data = lp_chat_append(chat, (lp_chat_bytes){a->items, a->size * sizeof *a}, &grows,
                                    (lp_chat_bytes){b->items, b->size * sizeof *b});
  LP_TRY(lp_chat_check(chat, node->at));
  *out = lp_chat_list(data, a->size + b->size);
  out->tuple = a->tuple;
  out->grows = grows;
  return LP_OK;
}

/* The sum of two texts, of which one that is safe escapes the other. */
static lp_status add_texts(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *a,
                           const lp_chat_value *b, lp_chat_value *out) {
  if (!a->safe && !b->safe) return concatenate(chat, node, *a, *b, out);
  lp_chat_value left = lp_chat_escape(chat, a), right = lp_chat_escape(chat, b);
  LP_TRY(concatenate(chat, node, left, right, out));
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

const char *lp_chat_find(const lp_chat *chat, const lp_chat_value *in, const lp_chat_value *what, size_t from) {
  if (from > in->size) return NULL;
  const char *start = in->text + from;
  const char *hit = what->size == 0 ? start : memmem(start, in->size - from, what->text, what->size);
  return lp_chat_charge_bytes(chat, hit ? (size_t)(hit - start) : in->size - from) ? hit : NULL;
}

static lp_status contains(const lp_chat *chat, const lp_chat_node *node, const char *op, const lp_chat_value *item,
                          const lp_chat_value *in, bool *out) {
  *out = false;
  if (in->kind == LP_CHAT_UNDEFINED) return LP_OK;
  if (in->kind == LP_CHAT_ITERATOR) {
    lp_chat_iterator *from = in->iterator;
    while (from->at < from->size && !*out)
      *out = lp_chat_equals(chat, item, &from->items[from->at++]);
    return LP_OK;
  }
  if (in->kind == LP_CHAT_LIST || in->kind == LP_CHAT_DICT) {
    size_t step = in->kind == LP_CHAT_DICT ? 2 : 1;
    for (size_t i = 0; i < in->size && !*out; i++)
      *out = lp_chat_equals(chat, item, &in->items[step * i]);
    return LP_OK;
  }
  if (item->kind != LP_CHAT_STRING || in->kind != LP_CHAT_STRING) return mismatch(chat, node, op, item, in);
  *out = lp_chat_find(chat, in, item, 0) != NULL;
  return LP_OK;
}

static lp_status repeat(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *text, int64_t times,
                        lp_chat_value *out) {
  size_t total = 0;
  if (times > 0 && !lp_size_mul(text->size, (size_t)times, &total)) total = SIZE_MAX - 1;
  char *made = LP_CHAT_NEW(chat, char, total + 1);
  LP_TRY(lp_chat_check(chat, node->at));
  for (size_t at = 0; at < total; at += text->size)
    memcpy(made + at, text->text, text->size);
  *out = lp_chat_text(made, total);
  return LP_OK;
}

static lp_status compare(const lp_chat *chat, const lp_chat_node *node, const char *op, const lp_chat_value *a,
                         const lp_chat_value *b, lp_chat_value *out) {
  int order;
  if (!lp_chat_order(chat, a, b, &order)) return mismatch(chat, node, op, a, b);
  bool or_equal = op[1] == '=' && order == 0;
  *out = lp_chat_bool(or_equal || (op[0] == '<' ? order < 0 : order > 0));
  return LP_OK;
}

lp_status lp_chat_negate(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value,
                         lp_chat_value *out) {
  *out = *value;
  if (value->kind == LP_CHAT_REAL) {
    out->real = -value->real;
    return LP_OK;
  }
  if (value->kind != LP_CHAT_NUMBER || value->integer == INT64_MIN)
    return lp_chat_error(chat, node->at, "'-' of %s is not supported", lp_chat_kind_name(value));
  out->integer = -value->integer;
  return LP_OK;
}

lp_status lp_chat_binary(const lp_chat *chat, const lp_chat_node *node, const char *op, const lp_chat_value *a,
                         const lp_chat_value *b, lp_chat_value *out) {
  bool truth = false, plus = lp_streq(op, "+");
  if (lp_streq(op, "==") || lp_streq(op, "!=")) {
    *out = lp_chat_bool(lp_chat_equals(chat, a, b) == (op[0] == '='));
    return LP_OK;
  }
  if (lp_streq(op, "in") || lp_streq(op, "not in")) {
    LP_TRY(contains(chat, node, op, a, b, &truth));
    *out = lp_chat_bool(truth == (op[0] == 'i'));
    return LP_OK;
  }
  if (op[0] == '<' || op[0] == '>') return compare(chat, node, op, a, b, out);
  if (lp_streq(op, "~")) return concatenate(chat, node, *a, *b, out);
  if (plus && a->kind == LP_CHAT_STRING && b->kind == LP_CHAT_STRING) return add_texts(chat, node, a, b, out);
  if (plus && a->kind == LP_CHAT_LIST && b->kind == LP_CHAT_LIST && a->tuple == b->tuple)
    return join_lists(chat, node, a, b, out);
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
