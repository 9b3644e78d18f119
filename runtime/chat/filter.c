/* Filters and methods of chat templates, with the behaviour of Jinja and Python. */
#include <errno.h>
#include <math.h>

#include "runtime/chat/filters.h"

/* ---- filters of texts -------------------------------------------------------------------------------------------- */

/* indent(width=4, first=false, blank=false) */
static lp_status indent(const lp_chat *chat, const lp_chat_value *value, const lp_chat_args *args, lp_chat_value *out) {
  const lp_chat_value *width = lp_chat_arg(args, 0, "width"), *first = lp_chat_arg(args, 1, "first"),
                      *blank = lp_chat_arg(args, 2, "blank");
  lp_buf text = {.arena = chat->arena}, pad = {.arena = chat->arena};
  if (width && width->kind == LP_CHAT_STRING) lp_buf_append(&pad, width->text, width->size);
  int64_t spaces = !width ? 4 : lp_chat_is_integral(width) ? width->integer : 0;
  for (int64_t i = 0; i < spaces && i < 1000; i++)
    lp_buf_puts(&pad, " ");
  for (size_t at = 0; at <= value->size && lp_chat_charge(chat, 1);) {
    const char *end = at < value->size ? memchr(value->text + at, '\n', value->size - at) : NULL;
    size_t size = end ? (size_t)(end - value->text) - at : value->size - at;
    bool padded = at == 0 ? first && lp_chat_is_true(first) : size > 0 || (blank && lp_chat_is_true(blank));
    if (padded) lp_buf_append(&text, lp_buf_text(&pad), pad.size);
    lp_buf_append(&text, value->text + at, size + (end ? 1 : 0));
    at += size + 1;
  }
  *out = lp_chat_keep(&text);
  return LP_OK;
}

/* *known is false when there is no such filter. */
static lp_status text_filter(const lp_chat *chat, const lp_chat_node *node, const char *name,
                             const lp_chat_value *value, const lp_chat_args *args, bool *known, lp_chat_value *out) {
  *known = true;
  if (lp_streq(name, "indent")) return indent(chat, value, args, out);
  if (args->count == 0 && (lp_streq(name, "escape") || lp_streq(name, "e"))) {
    *out = lp_chat_escape(chat, value);
    return LP_OK;
  }
  if (args->count == 0 && lp_streq(name, "forceescape")) {
    lp_chat_value plain = *value;
    plain.safe = false;
    *out = lp_chat_escape(chat, &plain);
    return LP_OK;
  }
  if (args->count == 0 && lp_streq(name, "title")) return lp_chat_title(chat, node, value, out);
  LP_TRY(lp_chat_word_filter(chat, node, name, value, args, known, out));
  if (*known) return LP_OK;
  *known = true;
  if (lp_streq(name, "format")) return lp_chat_format(chat, node, value, args->value, args->count, out);
  if (args->count == 0 && (lp_streq(name, "string") || lp_streq(name, "safe"))) {
    *out = *value;
    out->safe = value->safe || name[1] == 'a';
    return LP_OK;
  }
  bool method =
      lp_streq(name, "lower") || lp_streq(name, "upper") || lp_streq(name, "capitalize") || lp_streq(name, "replace");
  if (lp_streq(name, "trim")) return lp_chat_text_method(chat, node, value, "strip", args, known, out);
  *known = false;
  return method ? lp_chat_text_method(chat, node, value, name, args, known, out) : LP_OK;
}

/* ---- filters of numbers ------------------------------------------------------------------------------------------ */

/* Tells whether a number that ends at `end` is the whole text but for spaces. */
static bool is_whole_text(const char *text, size_t size, const char *end) {
  return end != text && end + strspn(end, " \t\n\v\f\r") == text + size;
}

/* Reads a text as Python's int does. */
static bool read_integer(const lp_chat *chat, const lp_chat_value *value, int64_t *out) {
  const char *text = lp_chat_string(chat, value);
  char *end = NULL;
  errno = 0;
  *out = strtoll(text, &end, 10);
  return errno == 0 && is_whole_text(text, value->size, end);
}

/* Reads a text as Python's float does, which knows neither hexadecimal digits nor "nan(..)". */
static bool read_real(const lp_chat *chat, const lp_chat_value *value, double *out) {
  const char *text = lp_chat_string(chat, value);
  char *end = NULL;
  *out = strtod(text, &end);
  return is_whole_text(text, value->size, end) && !strpbrk(text, "xX(");
}

/* int(default=0) and float(default=0.0) */
static bool to_number(const lp_chat *chat, const lp_chat_value *value, const lp_chat_value *otherwise, bool whole,
                      lp_chat_value *out) {
  if (value->kind == LP_CHAT_STRING && !lp_chat_charge_text(chat, value->size)) return false;
  int64_t integer = value->integer;
  bool numeric = value->kind == LP_CHAT_REAL || lp_chat_is_integral(value);
  if (whole && (lp_chat_is_integral(value) || (value->kind == LP_CHAT_STRING && read_integer(chat, value, &integer)))) {
    *out = lp_chat_number(integer);
    return true;
  }
  double real = value->kind == LP_CHAT_REAL ? value->real : lp_chat_is_integral(value) ? (double)value->integer : 0;
  if (value->kind == LP_CHAT_STRING) {
    numeric = read_real(chat, value, &real);
    if (!numeric) real = 0;
  }
  if (!numeric && otherwise) {
    *out = *otherwise;
    return true;
  }
  if (whole && !(fabs(real) < 9e18)) return false;
  *out = whole ? lp_chat_number((int64_t)real) : (lp_chat_value){.kind = LP_CHAT_REAL, .real = real};
  return true;
}

/* round(precision=0, method="common"); false: this rounding is not supported. */
static bool round_number(const lp_chat_value *value, const lp_chat_args *args, lp_chat_value *out) {
  const lp_chat_value *digits = lp_chat_arg(args, 0, "precision"), *method = lp_chat_arg(args, 1, "method");
  bool integral = lp_chat_is_integral(value);
  const lp_chat_value usual = lp_chat_text("common", 6), *how = method ? method : &usual;
  int64_t places = !digits ? 0 : lp_chat_is_integral(digits) ? digits->integer : -1;
  if ((!integral && value->kind != LP_CHAT_REAL) || places < 0 || places > 15) return false;
  double real = integral ? (double)value->integer : value->real, scale = pow(10, (double)places);
  if (!isfinite(real)) return false;
  *out = (lp_chat_value){.kind = LP_CHAT_REAL};
  if (lp_chat_is_text(how, "ceil") || lp_chat_is_text(how, "floor")) {
    out->real = (how->text[0] == 'c' ? ceil(real * scale) : floor(real * scale)) / scale;
  } else if (lp_chat_is_text(how, "common") && integral) {
    *out = lp_chat_number(value->integer);
  } else {
    char text[400]; /* the digits of the greatest double, and 15 more */
    snprintf(text, sizeof text, "%.*f", (int)places, real);
    out->real = strtod(text, NULL); /* as Python does: the nearest to the exact value, of a tie the even one */
    return lp_chat_is_text(how, "common");
  }
  return true;
}

static bool number_filter(const lp_chat *chat, const char *name, const lp_chat_value *value, const lp_chat_args *args,
                          lp_chat_value *out) {
  const lp_chat_value *otherwise = lp_chat_arg(args, 0, "default");
  if (lp_streq(name, "round")) return round_number(value, args, out);
  if (args->count > 1) return false;
  if (lp_streq(name, "int")) return to_number(chat, value, otherwise, true, out);
  if (lp_streq(name, "float")) return to_number(chat, value, otherwise, false, out);
  if (args->count > 0) return false;
  if (lp_streq(name, "abs") && value->kind == LP_CHAT_REAL) {
    *out = (lp_chat_value){.kind = LP_CHAT_REAL, .real = fabs(value->real)};
    return true;
  }
  if (!lp_streq(name, "abs") || !lp_chat_is_integral(value) || value->integer == INT64_MIN) return false;
  *out = lp_chat_number(value->integer < 0 ? -value->integer : value->integer);
  return true;
}

/* ---- filters of lists -------------------------------------------------------------------------------------------- */

/* The arguments from index `from` on. */
static lp_chat_args rest_of(const lp_chat_args *args, size_t from) {
  lp_chat_args rest = {0};
  for (size_t i = from; i < args->count; i++) {
    rest.name[rest.count] = args->name[i];
    rest.value[rest.count++] = args->value[i];
  }
  return rest;
}

/* select, reject (test, ...), selectattr, rejectattr (attribute, test, ...): the items that pass. */
static lp_status choose(const lp_chat *chat, const lp_chat_node *node, const char *name, const lp_chat_value *list,
                        const lp_chat_args *args, lp_chat_value *out) {
  bool by_attribute = lp_has_suffix(name, "attr"), wanted = name[0] == 's', truth = false;
  size_t test = by_attribute ? 1 : 0, made = 0;
  lp_chat_value *items = LP_CHAT_NEW(chat, lp_chat_value, list->size);
  LP_TRY(lp_chat_check(chat, node->at));
  lp_chat_args rest = rest_of(args, test + 1);
  if (args->count < test || (args->count > test && args->value[test].kind != LP_CHAT_STRING))
    return lp_chat_unsupported(chat, node, "filter", name, list);
  const char *name_of_test = args->count > test ? lp_chat_string(chat, &args->value[test]) : NULL;
  for (size_t i = 0; i < list->size && lp_chat_charge(chat, 1); i++) {
    lp_chat_value value = list->items[i];
    if (by_attribute) LP_TRY(lp_chat_attribute(chat, node, &list->items[i], &args->value[0], &value));
    truth = lp_chat_is_true(&value);
    if (name_of_test) LP_TRY(lp_chat_test(chat, node, name_of_test, &value, &rest, &truth));
    if (truth == wanted) items[made++] = list->items[i];
  }
  *out = lp_chat_iterator_over(chat, items, made);
  return LP_OK;
}

/* map(attribute=name, default=value) or map(filter, ...) */
static lp_status map_items(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *list,
                           const lp_chat_args *args, lp_chat_value *out) {
  const lp_chat_value *name = lp_chat_arg(args, LP_CHAT_MOST_ARGS, "attribute"),
                      *otherwise = lp_chat_arg(args, LP_CHAT_MOST_ARGS, "default");
  lp_chat_value *items = LP_CHAT_NEW(chat, lp_chat_value, list->size);
  LP_TRY(lp_chat_check(chat, node->at));
  lp_chat_args rest = rest_of(args, 1);
  if (!name && (args->count == 0 || args->value[0].kind != LP_CHAT_STRING))
    return lp_chat_unsupported(chat, node, "filter", "map", list);
  for (size_t i = 0; i < list->size && lp_chat_charge(chat, 1); i++) {
    if (!name) {
      LP_TRY(lp_chat_filter(chat, node, lp_chat_string(chat, &args->value[0]), &list->items[i], &rest, &items[i]));
      continue;
    }
    LP_TRY(lp_chat_attribute(chat, node, &list->items[i], name, &items[i]));
    if (items[i].kind == LP_CHAT_UNDEFINED && otherwise) items[i] = *otherwise;
  }
  *out = lp_chat_iterator_over(chat, items, list->size);
  return LP_OK;
}

/* The filters whose result is a generator; like Jinja they take whatever is false for an empty list. */
static bool is_lazy(const char *name) {
  return lp_streq(name, "select") || lp_streq(name, "reject") || lp_streq(name, "selectattr") ||
         lp_streq(name, "rejectattr") || lp_streq(name, "map");
}

static lp_status list_filter(const lp_chat *chat, const lp_chat_node *node, const char *name,
                             const lp_chat_value *value, const lp_chat_args *args, lp_chat_value *out) {
  lp_chat_value list = lp_chat_list(NULL, 0);
  bool lazy = is_lazy(name);
  if (value->kind == LP_CHAT_ITERATOR && lp_streq(name, "first")) {
    lp_chat_iterator *from = value->iterator;
    *out = from->at < from->size ? from->items[from->at++] : (lp_chat_value){0};
    return LP_OK;
  }
  bool empty = lazy && !lp_chat_is_true(value);
  if (!empty && !lp_chat_iterate(chat, value, &list)) return lp_chat_unsupported(chat, node, "filter", name, value);
  if (!lazy) return lp_chat_list_filter(chat, node, name, &list, args, out);
  return lp_streq(name, "map") ? map_items(chat, node, &list, args, out) : choose(chat, node, name, &list, args, out);
}

/* ---- filters by name --------------------------------------------------------------------------------------------- */

/* tojson(ensure_ascii=false, indent=none), as transformers sets it up */
static lp_status to_json(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value,
                         const lp_chat_args *args, lp_chat_value *out) {
  const lp_chat_value *ascii = lp_chat_arg(args, 0, "ensure_ascii"), *spaces = lp_chat_arg(args, 1, "indent");
  bool bad = (spaces && spaces->kind != LP_CHAT_NONE && !lp_chat_is_integral(spaces)) ||
             lp_chat_arg(args, 2, "separators") || lp_chat_arg(args, 3, "sort_keys");
  lp_buf text = {.arena = chat->arena};
  int64_t width = spaces && lp_chat_is_integral(spaces) ? spaces->integer < 0 ? 0 : spaces->integer : -1;
  bool done = !bad && lp_chat_to_json(chat, value, width, ascii && lp_chat_is_true(ascii), &text);
  *out = lp_chat_keep(&text);
  return done ? LP_OK : lp_chat_unsupported(chat, node, "filter", "tojson", value);
}

static lp_status count_items(const lp_chat *chat, const lp_chat_node *node, const char *name,
                             const lp_chat_value *value, lp_chat_value *out) {
  bool counts = value->kind == LP_CHAT_LIST || value->kind == LP_CHAT_DICT || value->kind == LP_CHAT_UNDEFINED;
  if (value->kind == LP_CHAT_STRING)
    *out = lp_chat_number((int64_t)lp_chat_count_characters(chat, value->text, value->size));
  else if (counts)
    *out = lp_chat_number((int64_t)value->size);
  else
    return lp_chat_unsupported(chat, node, "filter", name, value);
  return LP_OK;
}

static lp_status general_filter(const lp_chat *chat, const lp_chat_node *node, const char *name,
                                const lp_chat_value *value, const lp_chat_args *args, bool *known, lp_chat_value *out) {
  const lp_chat_value *otherwise = lp_chat_arg(args, 0, "default_value"), *falsy = lp_chat_arg(args, 1, "boolean");
  *known = true;
  if (lp_streq(name, "default") || lp_streq(name, "d")) {
    bool missing = value->kind == LP_CHAT_UNDEFINED || (falsy && lp_chat_is_true(falsy) && !lp_chat_is_true(value));
    *out = missing ? (otherwise ? *otherwise : lp_chat_text("", 0)) : *value;
    return LP_OK;
  }
  if (lp_streq(name, "attr") && args->count == 1 && args->value[0].kind == LP_CHAT_STRING) {
    bool has = value->kind == LP_CHAT_LOOP || value->kind == LP_CHAT_SPACE || value->group;
    *out = (lp_chat_value){0}; /* a mapping's keys are no attributes */
    return has ? lp_chat_member(chat, node, value, lp_chat_string(chat, &args->value[0]), out) : LP_OK;
  }
  if (lp_streq(name, "tojson")) return to_json(chat, node, value, args, out);
  if (args->count == 0 && (lp_streq(name, "length") || lp_streq(name, "count")))
    return count_items(chat, node, name, value, out);
  bool dict = value->kind == LP_CHAT_DICT || value->kind == LP_CHAT_UNDEFINED;
  if (dict && lp_streq(name, "dictsort")) return lp_chat_pairs(chat, node, value, args, out);
  if (dict && args->count == 0 && lp_streq(name, "items")) {
    LP_TRY(lp_chat_pairs(chat, node, value, NULL, out));
    *out = lp_chat_iterator_over(chat, out->items, out->size);
    return LP_OK;
  }
  *known = number_filter(chat, name, value, args, out);
  return LP_OK;
}

lp_status lp_chat_filter(const lp_chat *chat, const lp_chat_node *node, const char *name, const lp_chat_value *value,
                         const lp_chat_args *args, lp_chat_value *out) {
  lp_chat_value text = *value;
  bool known;
  LP_TRY(general_filter(chat, node, name, value, args, &known, out));
  if (known) return LP_OK;
  bool items = value->kind == LP_CHAT_LIST || value->kind == LP_CHAT_DICT || value->kind == LP_CHAT_ITERATOR;
  bool prints = items ? lp_streq(name, "string") || lp_streq(name, "trim") : !is_lazy(name);
  if (prints && value->kind != LP_CHAT_STRING) {
    lp_buf printed = {.arena = chat->arena};
    lp_status status = lp_chat_print(chat, node->at, value, &printed);
    text = lp_chat_keep(&printed);
    LP_TRY(status);
  }
  if (text.kind == LP_CHAT_STRING) LP_TRY(text_filter(chat, node, name, &text, args, &known, out));
  if (known) return LP_OK;
  if (value->kind == LP_CHAT_STRING && lp_streq(name, "reverse")) {
    lp_chat_value bounds[3] = {{0}, {0}, lp_chat_number(-1)};
    return lp_chat_slice(chat, node, value, bounds, out);
  }
  return list_filter(chat, node, name, value, args, out);
}

/* ---- methods ----------------------------------------------------------------------------------------------------- */

static lp_status dict_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                             const char *name, const lp_chat_args *args, lp_chat_value *out) {
  if (args->count == 0 && lp_streq(name, "items")) return lp_chat_pairs(chat, node, object, NULL, out);
  if (args->count == 0 && lp_streq(name, "copy")) {
    *out = *object;
    return LP_OK;
  }
  if (args->count == 0 && (lp_streq(name, "keys") || lp_streq(name, "values"))) {
    lp_chat_value *items = LP_CHAT_NEW(chat, lp_chat_value, object->size);
    LP_TRY(lp_chat_check(chat, node->at));
    for (size_t i = 0; i < object->size; i++)
      items[i] = object->items[2 * i + (name[0] == 'v')];
    *out = lp_chat_list(items, object->size);
    return LP_OK;
  }
  const lp_chat_value *key = lp_chat_arg(args, 0, ""), *otherwise = lp_chat_arg(args, 1, "");
  if (!lp_streq(name, "get") || !key) return lp_chat_unsupported(chat, node, "method", name, object);
  *out = otherwise ? *otherwise : (lp_chat_value){.kind = LP_CHAT_NONE};
  for (size_t i = 0; i < object->size; i++)
    if (lp_chat_equals(chat, &object->items[2 * i], key)) *out = object->items[2 * i + 1];
  return LP_OK;
}

lp_status lp_chat_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object, const char *name,
                         const lp_chat_args *args, lp_chat_value *out) {
  bool known = false;
  if (object->kind == LP_CHAT_LOOP && lp_streq(name, "cycle") && args->count > 0) {
    *out = args->value[object->loop->index % args->count];
    return LP_OK;
  }
  if (object->kind == LP_CHAT_DICT) return dict_method(chat, node, object, name, args, out);
  if (object->kind == LP_CHAT_UNDEFINED)
    return lp_chat_error(chat, node->at, "an undefined value has no member '%s'", name);
  if (object->kind == LP_CHAT_STRING && lp_streq(name, "join") && args->count == 1) {
    lp_chat_args by = {.count = 1, .value = {*object}};
    lp_chat_value list;
    if (lp_chat_iterate(chat, &args->value[0], &list)) return lp_chat_join(chat, node, &list, &by, out);
  }
  if (object->kind == LP_CHAT_STRING) LP_TRY(lp_chat_text_method(chat, node, object, name, args, &known, out));
  return known ? LP_OK : lp_chat_unsupported(chat, node, "method", name, object);
}
