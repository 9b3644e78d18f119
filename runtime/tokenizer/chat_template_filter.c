/* Filters, tests and methods of chat templates, with the behaviour of Jinja and Python. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/chat_template.h"

static lp_status unsupported(const lp_chat *chat, const lp_chat_node *node, const char *what, const char *name,
                             const lp_chat_value *value) {
  return lp_chat_error(chat, node->at, "the %s '%s' of %s with these arguments is not supported", what, name,
                       lp_chat_kind_name(value));
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

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

static bool plain_test(const char *name, const lp_chat_value *value, bool *out) {
  lp_chat_value_kind kind = value->kind;
  bool integral = lp_chat_is_integral(value), sequence = kind == LP_CHAT_STRING || kind == LP_CHAT_LIST;
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
      {"number", integral || kind == LP_CHAT_REAL},
      {"integer", kind == LP_CHAT_NUMBER},
      {"float", kind == LP_CHAT_REAL},
      {"mapping", kind == LP_CHAT_DICT},
      {"iterable", sequence || kind == LP_CHAT_DICT || kind == LP_CHAT_UNDEFINED},
      {"sequence", sequence || kind == LP_CHAT_DICT || kind == LP_CHAT_UNDEFINED},
      {"callable", kind == LP_CHAT_MACRO},
      {"odd", integral && value->integer % 2 != 0},
      {"even", integral && value->integer % 2 == 0},
      {"lower", has_case(value, 'a', 'z')},
      {"upper", has_case(value, 'A', 'Z')},
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
  if (args->count == 0 && plain_test(name, value, out)) return LP_OK;
  if (first && compare_test(name, &op)) {
    LP_TRY(lp_chat_binary(chat, node, op, value, first, &made));
    *out = lp_chat_is_true(&made);
    return LP_OK;
  }
  if (first && lp_streq(name, "sameas")) {
    *out = value->kind == first->kind && value->kind <= LP_CHAT_NUMBER && lp_chat_equals(value, first);
    return LP_OK;
  }
  if (first && lp_streq(name, "divisibleby") && lp_chat_is_integral(value) && lp_chat_is_integral(first) &&
      first->integer != 0) {
    *out = first->integer == -1 || value->integer % first->integer == 0;
    return LP_OK;
  }
  return lp_chat_error(chat, node->at, "the test '%s' is not supported", name);
}

/* ---- filters of texts -------------------------------------------------------------------------------------------- */

static size_t count_characters(const lp_chat_value *value) {
  size_t count = 0;
  for (size_t i = 0; i < value->size; i++)
    count += ((uint8_t)value->text[i] & 0xC0) != 0x80;
  return count;
}

/* indent(width=4, first=false, blank=false) */
static lp_status indent(const lp_chat *chat, const lp_chat_value *value, const lp_chat_args *args, lp_chat_value *out) {
  const lp_chat_value *width = lp_chat_arg(args, 0, "width"), *first = lp_chat_arg(args, 1, "first"),
                      *blank = lp_chat_arg(args, 2, "blank");
  lp_buf text = {0}, pad = {0};
  if (width && width->kind == LP_CHAT_STRING) lp_buf_append(&pad, width->text, width->size);
  int64_t spaces = !width ? 4 : lp_chat_is_integral(width) ? width->integer : 0;
  for (int64_t i = 0; i < spaces && i < 1000; i++)
    lp_buf_puts(&pad, " ");
  for (size_t at = 0; at <= value->size;) {
    const char *end = at < value->size ? memchr(value->text + at, '\n', value->size - at) : NULL;
    size_t size = end ? (size_t)(end - value->text) - at : value->size - at;
    bool padded = at == 0 ? first && lp_chat_is_true(first) : size > 0 || (blank && lp_chat_is_true(blank));
    if (padded) lp_buf_append(&text, lp_buf_text(&pad), pad.size);
    lp_buf_append(&text, value->text + at, size + (end ? 1 : 0));
    at += size + 1;
  }
  lp_buf_free(&pad);
  *out = lp_chat_keep(chat, &text);
  return LP_OK;
}

static lp_status escape(const lp_chat *chat, const lp_chat_value *value, lp_chat_value *out) {
  static const char from[] = "&<>'\"";
  static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  lp_buf text = {0};
  for (size_t i = 0; i < value->size; i++) {
    const char *hit = value->text[i] ? strchr(from, value->text[i]) : NULL;
    if (hit)
      lp_buf_puts(&text, to[hit - from]);
    else
      lp_buf_append(&text, value->text + i, 1);
  }
  *out = lp_chat_keep(chat, &text);
  return LP_OK;
}

/* *known is false when there is no such filter. */
static lp_status text_filter(const lp_chat *chat, const lp_chat_node *node, const char *name,
                             const lp_chat_value *value, const lp_chat_args *args, bool *known, lp_chat_value *out) {
  *known = true;
  if (lp_streq(name, "indent")) return indent(chat, value, args, out);
  if (args->count == 0 && (lp_streq(name, "escape") || lp_streq(name, "e"))) return escape(chat, value, out);
  if (args->count == 0 && (lp_streq(name, "string") || lp_streq(name, "safe"))) {
    *out = *value;
    return LP_OK;
  }
  bool method = lp_streq(name, "lower") || lp_streq(name, "upper") || lp_streq(name, "capitalize") ||
                lp_streq(name, "title") || lp_streq(name, "replace");
  if (lp_streq(name, "trim")) return lp_chat_text_method(chat, node, value, "strip", args, known, out);
  *known = false;
  return method ? lp_chat_text_method(chat, node, value, name, args, known, out) : LP_OK;
}

/* ---- filters of numbers ------------------------------------------------------------------------------------------ */

static bool to_number(const lp_chat_value *value, bool whole, lp_chat_value *out) {
  char *end = NULL;
  if (whole && lp_chat_is_integral(value)) {
    *out = lp_chat_number(value->integer);
    return true;
  }
  double real = value->kind == LP_CHAT_REAL ? value->real : lp_chat_is_integral(value) ? (double)value->integer : 0;
  if (value->kind == LP_CHAT_STRING && value->size > 0) {
    real = strtod(value->text, &end);
    if (*end != '\0') real = 0;
  }
  if (whole && !(fabs(real) < 9e18)) return false;
  *out = whole ? lp_chat_number((int64_t)real) : (lp_chat_value){.kind = LP_CHAT_REAL, .real = real};
  return true;
}

static bool number_filter(const char *name, const lp_chat_value *value, const lp_chat_args *args, lp_chat_value *out) {
  if (args->count > 0) return false;
  if (lp_streq(name, "int")) return to_number(value, true, out);
  if (lp_streq(name, "float")) return to_number(value, false, out);
  if (!lp_streq(name, "abs") || !lp_chat_is_integral(value) || value->integer == INT64_MIN) return false;
  *out = lp_chat_number(value->integer < 0 ? -value->integer : value->integer);
  return true;
}

/* ---- filters of lists -------------------------------------------------------------------------------------------- */

/* The member of that dotted name. */
static lp_status attribute(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *item,
                           const lp_chat_value *name, lp_chat_value *out) {
  *out = *item;
  if (name->kind != LP_CHAT_STRING) return lp_chat_index(chat, node, item, name, out);
  for (const char *at = name->text; at;) {
    const char *dot = strchr(at, '.');
    lp_chat_value object = *out;
    const char *part = lp_arena_strndup(chat->arena, at, dot ? (size_t)(dot - at) : strlen(at));
    LP_TRY(lp_chat_member(chat, node, &object, part, out));
    at = dot ? dot + 1 : NULL;
  }
  return LP_OK;
}

static lp_status join(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *list,
                      const lp_chat_args *args, lp_chat_value *out) {
  const lp_chat_value *by = lp_chat_arg(args, 0, "d"), *name = lp_chat_arg(args, 1, "attribute");
  lp_buf text = {0};
  lp_status status = LP_OK;
  for (size_t i = 0; i < list->size && status == LP_OK; i++) {
    lp_chat_value item = list->items[i];
    if (i > 0 && by) status = lp_chat_print(chat, node->at, by, &text);
    if (status == LP_OK && name) status = attribute(chat, node, &list->items[i], name, &item);
    if (status == LP_OK) status = lp_chat_print(chat, node->at, &item, &text);
  }
  *out = lp_chat_keep(chat, &text);
  return status;
}

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
  lp_chat_value *items = LP_NEW_ARRAY(chat->arena, lp_chat_value, list->size);
  lp_chat_args rest = rest_of(args, test + 1);
  if (args->count < test || (args->count > test && args->value[test].kind != LP_CHAT_STRING))
    return unsupported(chat, node, "filter", name, list);
  for (size_t i = 0; i < list->size; i++) {
    lp_chat_value value = list->items[i];
    if (by_attribute) LP_TRY(attribute(chat, node, &list->items[i], &args->value[0], &value));
    truth = lp_chat_is_true(&value);
    if (args->count > test) LP_TRY(lp_chat_test(chat, node, args->value[test].text, &value, &rest, &truth));
    if (truth == wanted) items[made++] = list->items[i];
  }
  *out = lp_chat_list(items, made);
  return LP_OK;
}

/* map(attribute=name, default=value) or map(filter, ...) */
static lp_status map_items(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *list,
                           const lp_chat_args *args, lp_chat_value *out) {
  const lp_chat_value *name = lp_chat_arg(args, LP_CHAT_MOST_ARGS, "attribute"),
                      *otherwise = lp_chat_arg(args, LP_CHAT_MOST_ARGS, "default");
  lp_chat_value *items = LP_NEW_ARRAY(chat->arena, lp_chat_value, list->size);
  lp_chat_args rest = rest_of(args, 1);
  if (!name && (args->count == 0 || args->value[0].kind != LP_CHAT_STRING))
    return unsupported(chat, node, "filter", "map", list);
  for (size_t i = 0; i < list->size; i++) {
    if (!name) {
      LP_TRY(lp_chat_filter(chat, node, args->value[0].text, &list->items[i], &rest, &items[i]));
      continue;
    }
    LP_TRY(attribute(chat, node, &list->items[i], name, &items[i]));
    if (items[i].kind == LP_CHAT_UNDEFINED && otherwise) items[i] = *otherwise;
  }
  *out = lp_chat_list(items, list->size);
  return LP_OK;
}

/* A stable insertion sort, since lists in templates are short and bounded. */
enum { MOST_SORTED = 2000 };

static lp_status sort_items(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *list, bool reverse,
                            lp_chat_value *out) {
  lp_chat_value *items = LP_NEW_ARRAY(chat->arena, lp_chat_value, list->size);
  if (list->size > MOST_SORTED) return lp_chat_error(chat, node->at, "the list is too long to be sorted");
  for (size_t i = 0; i < list->size; i++) {
    size_t at = i;
    for (int order; at > 0; at--) {
      if (!lp_chat_order(&items[at - 1], &list->items[i], &order))
        return unsupported(chat, node, "filter", "sort", list);
      if (reverse ? order >= 0 : order <= 0) break;
      items[at] = items[at - 1];
    }
    items[at] = list->items[i];
  }
  *out = lp_chat_list(items, list->size);
  return LP_OK;
}

static lp_chat_value unique_items(const lp_chat *chat, const lp_chat_value *list) {
  lp_chat_value *items = LP_NEW_ARRAY(chat->arena, lp_chat_value, list->size);
  size_t made = 0;
  for (size_t i = 0; i < list->size && i < MOST_SORTED; i++) {
    bool seen = false;
    for (size_t j = 0; j < made && !seen; j++)
      seen = lp_chat_equals(&items[j], &list->items[i]);
    if (!seen) items[made++] = list->items[i];
  }
  return lp_chat_list(items, made);
}

static lp_chat_value reverse_items(const lp_chat *chat, const lp_chat_value *list) {
  lp_chat_value *items = LP_NEW_ARRAY(chat->arena, lp_chat_value, list->size);
  for (size_t i = 0; i < list->size; i++)
    items[i] = list->items[list->size - 1 - i];
  return lp_chat_list(items, list->size);
}

/* min, max and sum, of values that can be compared or added. */
static lp_status reduce(const lp_chat *chat, const lp_chat_node *node, const char *name, const lp_chat_value *list,
                        lp_chat_value *out) {
  bool sum = lp_streq(name, "sum");
  *out = sum ? lp_chat_number(0) : (lp_chat_value){0};
  for (size_t i = 0; i < list->size; i++) {
    lp_chat_value so_far = *out;
    int order = 0;
    if (sum) {
      LP_TRY(lp_chat_binary(chat, node, "+", &so_far, &list->items[i], out));
      continue;
    }
    if (i > 0 && !lp_chat_order(&list->items[i], &so_far, &order)) return unsupported(chat, node, "filter", name, list);
    if (i == 0 || (name[1] == 'i' ? order < 0 : order > 0)) *out = list->items[i];
  }
  return LP_OK;
}

static lp_status list_filter(const lp_chat *chat, const lp_chat_node *node, const char *name, const lp_chat_value *list,
                             const lp_chat_args *args, lp_chat_value *out) {
  const lp_chat_value *reverse = lp_chat_arg(args, 0, "reverse");
  *out = (lp_chat_value){0};
  if (lp_streq(name, "join")) return join(chat, node, list, args, out);
  if (lp_streq(name, "select") || lp_streq(name, "reject") || lp_streq(name, "selectattr") ||
      lp_streq(name, "rejectattr"))
    return choose(chat, node, name, list, args, out);
  if (lp_streq(name, "map")) return map_items(chat, node, list, args, out);
  if (lp_streq(name, "sort") && args->count <= 1)
    return sort_items(chat, node, list, reverse && lp_chat_is_true(reverse), out);
  if (args->count > 0) return unsupported(chat, node, "filter", name, list);
  if (lp_streq(name, "min") || lp_streq(name, "max") || lp_streq(name, "sum"))
    return reduce(chat, node, name, list, out);
  if (lp_streq(name, "list"))
    *out = *list;
  else if (lp_streq(name, "unique"))
    *out = unique_items(chat, list);
  else if (lp_streq(name, "reverse"))
    *out = reverse_items(chat, list);
  else if (!lp_streq(name, "first") && !lp_streq(name, "last"))
    return unsupported(chat, node, "filter", name, list);
  else if (list->size > 0)
    *out = list->items[lp_streq(name, "first") ? 0 : list->size - 1];
  return LP_OK;
}

/* ---- filters of mappings ----------------------------------------------------------------------------------------- */

/* The pairs of a mapping, each a list; in the order of their keys where `sorted`. */
static lp_status pairs_of(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *dict, bool sorted,
                          lp_chat_value *out) {
  lp_chat_value keys, *pairs = LP_NEW_ARRAY(chat->arena, lp_chat_value, dict->size);
  (void)lp_chat_iterate(chat, dict, &keys);
  if (sorted) LP_TRY(sort_items(chat, node, &keys, false, &keys));
  for (size_t i = 0; i < dict->size; i++) {
    lp_chat_value *pair = LP_NEW_ARRAY(chat->arena, lp_chat_value, 2);
    pair[0] = keys.items[i];
    pair[1] = dict->items[2 * i + 1];
    if (sorted) LP_TRY(lp_chat_index(chat, node, dict, &keys.items[i], &pair[1]));
    pairs[i] = lp_chat_list(pair, 2);
    pairs[i].tuple = true;
  }
  *out = lp_chat_list(pairs, dict->size);
  return LP_OK;
}

/* ---- filters by name --------------------------------------------------------------------------------------------- */

/* tojson(ensure_ascii=false, indent=none), as transformers sets it up */
static lp_status to_json(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *value,
                         const lp_chat_args *args, lp_chat_value *out) {
  const lp_chat_value *ascii = lp_chat_arg(args, 0, "ensure_ascii"), *spaces = lp_chat_arg(args, 1, "indent");
  bool bad = (spaces && spaces->kind != LP_CHAT_NONE && !lp_chat_is_integral(spaces)) ||
             lp_chat_arg(args, 2, "separators") || lp_chat_arg(args, 3, "sort_keys");
  lp_buf text = {0};
  int64_t width = spaces && lp_chat_is_integral(spaces) ? spaces->integer < 0 ? 0 : spaces->integer : -1;
  bool done = !bad && lp_chat_to_json(value, width, ascii && lp_chat_is_true(ascii), &text);
  *out = lp_chat_keep(chat, &text);
  return done ? LP_OK : unsupported(chat, node, "filter", "tojson", value);
}

static lp_status count_items(const lp_chat *chat, const lp_chat_node *node, const char *name,
                             const lp_chat_value *value, lp_chat_value *out) {
  bool counts = value->kind == LP_CHAT_LIST || value->kind == LP_CHAT_DICT || value->kind == LP_CHAT_UNDEFINED;
  if (value->kind == LP_CHAT_STRING)
    *out = lp_chat_number((int64_t)count_characters(value));
  else if (counts)
    *out = lp_chat_number((int64_t)value->size);
  else
    return unsupported(chat, node, "filter", name, value);
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
  if (lp_streq(name, "tojson")) return to_json(chat, node, value, args, out);
  if (args->count == 0 && (lp_streq(name, "length") || lp_streq(name, "count")))
    return count_items(chat, node, name, value, out);
  bool dict = value->kind == LP_CHAT_DICT || value->kind == LP_CHAT_UNDEFINED;
  if (dict && args->count == 0 && (lp_streq(name, "items") || lp_streq(name, "dictsort")))
    return pairs_of(chat, node, value, lp_streq(name, "dictsort"), out);
  *known = number_filter(name, value, args, out);
  return LP_OK;
}

lp_status lp_chat_filter(const lp_chat *chat, const lp_chat_node *node, const char *name, const lp_chat_value *value,
                         const lp_chat_args *args, lp_chat_value *out) {
  lp_chat_value list, text = *value;
  bool known;
  LP_TRY(general_filter(chat, node, name, value, args, &known, out));
  if (known) return LP_OK;
  if (value->kind != LP_CHAT_STRING && value->kind != LP_CHAT_LIST && value->kind != LP_CHAT_DICT) {
    lp_buf printed = {0};
    lp_status status = lp_chat_print(chat, node->at, value, &printed);
    text = lp_chat_keep(chat, &printed);
    LP_TRY(status);
  }
  bool prints = lp_streq(name, "string") || lp_streq(name, "trim");
  if (prints && (value->kind == LP_CHAT_LIST || value->kind == LP_CHAT_DICT)) {
    lp_buf printed = {0};
    lp_status status = lp_chat_print(chat, node->at, value, &printed);
    text = lp_chat_keep(chat, &printed);
    LP_TRY(status);
  }
  if (text.kind == LP_CHAT_STRING) LP_TRY(text_filter(chat, node, name, &text, args, &known, out));
  if (known) return LP_OK;
  if (value->kind == LP_CHAT_STRING && lp_streq(name, "reverse")) {
    lp_chat_value bounds[3] = {{0}, {0}, lp_chat_number(-1)};
    return lp_chat_slice(chat, node, value, bounds, out);
  }
  if (!lp_chat_iterate(chat, value, &list)) return unsupported(chat, node, "filter", name, value);
  return list_filter(chat, node, name, &list, args, out);
}

/* ---- methods ----------------------------------------------------------------------------------------------------- */

static lp_status dict_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                             const char *name, const lp_chat_args *args, lp_chat_value *out) {
  if (args->count == 0 && lp_streq(name, "items")) return pairs_of(chat, node, object, false, out);
  if (args->count == 0 && (lp_streq(name, "keys") || lp_streq(name, "values"))) {
    lp_chat_value *items = LP_NEW_ARRAY(chat->arena, lp_chat_value, object->size);
    for (size_t i = 0; i < object->size; i++)
      items[i] = object->items[2 * i + (name[0] == 'v')];
    *out = lp_chat_list(items, object->size);
    return LP_OK;
  }
  const lp_chat_value *key = lp_chat_arg(args, 0, ""), *otherwise = lp_chat_arg(args, 1, "");
  if (!lp_streq(name, "get") || !key) return unsupported(chat, node, "method", name, object);
  LP_TRY(lp_chat_index(chat, node, object, key, out));
  if (out->kind == LP_CHAT_UNDEFINED) *out = otherwise ? *otherwise : (lp_chat_value){.kind = LP_CHAT_NONE};
  return LP_OK;
}

lp_status lp_chat_method(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object, const char *name,
                         const lp_chat_args *args, lp_chat_value *out) {
  bool known = false;
  if (object->kind == LP_CHAT_DICT) return dict_method(chat, node, object, name, args, out);
  if (object->kind == LP_CHAT_UNDEFINED)
    return lp_chat_error(chat, node->at, "an undefined value has no member '%s'", name);
  if (object->kind == LP_CHAT_STRING && lp_streq(name, "join") && args->count == 1) {
    lp_chat_args by = {.count = 1, .value = {*object}};
    lp_chat_value list;
    if (lp_chat_iterate(chat, &args->value[0], &list)) return join(chat, node, &list, &by, out);
  }
  if (object->kind == LP_CHAT_STRING) LP_TRY(lp_chat_text_method(chat, node, object, name, args, &known, out));
  return known ? LP_OK : unsupported(chat, node, "method", name, object);
}
