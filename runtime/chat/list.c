/* Filters of lists and mappings in chat templates, with the behaviour of Jinja: order, members and pairs. */

#include "runtime/chat/filters.h"

/* ---- members ----------------------------------------------------------------------------------------------------- */

/* The member of that dotted name, in which numbers are indices. */
lp_status lp_chat_attribute(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *item,
                            const lp_chat_value *name, lp_chat_value *out) {
  *out = *item;
  if (name->kind != LP_CHAT_STRING) return lp_chat_index(chat, node, item, name, out);
  for (const char *at = lp_chat_string(chat, name); at;) {
    const char *dot = strchr(at, '.');
    lp_chat_value object = *out;
    const char *part = lp_chat_strndup(chat, at, dot ? (size_t)(dot - at) : strlen(at));
    bool index = *part != '\0' && strlen(part) < 18 && part[strspn(part, "0123456789")] == '\0';
    lp_chat_value key = index ? lp_chat_number(strtoll(part, NULL, 10)) : lp_chat_text(part, strlen(part));
    LP_TRY(lp_chat_index(chat, node, &object, &key, out));
    at = dot ? dot + 1 : NULL;
  }
  return LP_OK;
}

lp_status lp_chat_join(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *list,
                       const lp_chat_args *args, lp_chat_value *out) {
  const lp_chat_value *by = lp_chat_arg(args, 0, "d"), *name = lp_chat_arg(args, 1, "attribute");
  lp_buf text = {.arena = chat->arena};
  lp_status status = LP_OK;
  for (size_t i = 0; i < list->size && status == LP_OK && lp_chat_charge(chat, 1); i++) {
    lp_chat_value item = list->items[i];
    if (i > 0 && by) status = lp_chat_print(chat, node->at, by, &text);
    if (status == LP_OK && name) status = lp_chat_attribute(chat, node, &list->items[i], name, &item);
    if (status == LP_OK) status = lp_chat_print(chat, node->at, &item, &text);
  }
  *out = lp_chat_keep(&text);
  return status;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* How values are compared: by a member, and texts in small letters unless `exact`. */
typedef struct {
  const lp_chat *chat;
  const lp_chat_node *node;
  const char *filter; /* its name, for messages */
  const lp_chat_value *attribute;
  bool exact;
} ordering;

static ordering ordering_of(const lp_chat *chat, const lp_chat_node *node, const char *filter,
                            const lp_chat_value *exact, const lp_chat_value *attribute) {
  if (attribute && attribute->kind == LP_CHAT_NONE) attribute = NULL;
  return (ordering){chat, node, filter, attribute, exact && lp_chat_is_true(exact)};
}

static lp_status fold(const ordering *o, lp_chat_value *value) {
  lp_chat_value text = *value;
  return o->exact || text.kind != LP_CHAT_STRING ? LP_OK : lp_chat_lower(o->chat, o->node, &text, value);
}

static lp_status key_of(const ordering *o, const lp_chat_value *item, lp_chat_value *key) {
  *key = *item;
  if (!lp_chat_charge(o->chat, 1)) return lp_chat_check(o->chat, o->node->at);
  if (o->attribute) LP_TRY(lp_chat_attribute(o->chat, o->node, item, o->attribute, key));
  return fold(o, key);
}

/* The key to sort by: a list of members where the attribute names several, as in "a,b". */
static lp_status sort_key_of(const ordering *o, const lp_chat_value *item, lp_chat_value *key) {
  const char *names =
      o->attribute && o->attribute->kind == LP_CHAT_STRING ? lp_chat_string(o->chat, o->attribute) : NULL;
  if (!names || !strchr(names, ',')) return key_of(o, item, key);
  size_t count = 1, made = 0;
  for (const char *at = names; *at; at++)
    count += *at == ',';
  lp_chat_value *keys = LP_CHAT_NEW(o->chat, lp_chat_value, count);
  LP_TRY(lp_chat_check(o->chat, o->node->at));
  for (const char *at = names; made < count; made++) {
    size_t size = strcspn(at, ",");
    lp_chat_value name = lp_chat_text(lp_chat_strndup(o->chat, at, size), size);
    ordering one = *o;
    one.attribute = &name;
    LP_TRY(key_of(&one, item, &keys[made]));
    at += size + 1;
  }
  *key = lp_chat_list(keys, count);
  return LP_OK;
}

/* A stable insertion sort, since lists in templates are short and bounded. */
enum { MOST_SORTED = 2000 };

static lp_status sort_items(const ordering *o, const lp_chat_value *list, bool reverse, lp_chat_value *out) {
  lp_chat_value *items = LP_CHAT_NEW(o->chat, lp_chat_value, list->size);
  lp_chat_value *keys = LP_CHAT_NEW(o->chat, lp_chat_value, list->size);
  LP_TRY(lp_chat_check(o->chat, o->node->at));
  if (list->size > MOST_SORTED) return lp_chat_error(o->chat, o->node->at, "the list is too long to be sorted");
  for (size_t i = 0; i < list->size; i++) {
    lp_chat_value key;
    size_t at = i;
    LP_TRY(sort_key_of(o, &list->items[i], &key));
    for (int order; at > 0; at--) {
      if (!lp_chat_order(o->chat, &keys[at - 1], &key, &order))
        return lp_chat_unsupported(o->chat, o->node, "filter", o->filter, list);
      if (reverse ? order >= 0 : order <= 0) break;
      items[at] = items[at - 1];
      keys[at] = keys[at - 1];
    }
    items[at] = list->items[i];
    keys[at] = key;
  }
  *out = lp_chat_list(items, list->size);
  return LP_OK;
}

static lp_status unique_items(const ordering *o, const lp_chat_value *list, lp_chat_value *out) {
  lp_chat_value *items = LP_CHAT_NEW(o->chat, lp_chat_value, list->size);
  lp_chat_value *keys = LP_CHAT_NEW(o->chat, lp_chat_value, list->size);
  LP_TRY(lp_chat_check(o->chat, o->node->at));
  size_t made = 0;
  for (size_t i = 0; i < list->size && i < MOST_SORTED; i++) {
    bool seen = false;
    LP_TRY(key_of(o, &list->items[i], &keys[made]));
    for (size_t j = 0; j < made && !seen; j++)
      seen = lp_chat_equals(o->chat, &keys[j], &keys[made]);
    if (!seen) items[made++] = list->items[i];
  }
  *out = lp_chat_iterator_over(o->chat, items, made);
  return LP_OK;
}

static lp_status extreme(const ordering *o, const lp_chat_value *list, bool least, lp_chat_value *out) {
  lp_chat_value key, best = {0};
  *out = (lp_chat_value){0};
  for (size_t i = 0; i < list->size; i++) {
    int order = 0;
    LP_TRY(key_of(o, &list->items[i], &key));
    if (i > 0 && !lp_chat_order(o->chat, &key, &best, &order))
      return lp_chat_unsupported(o->chat, o->node, "filter", o->filter, list);
    if (i > 0 && (least ? order >= 0 : order <= 0)) continue;
    best = key;
    *out = list->items[i];
  }
  return LP_OK;
}

/* sum(attribute, start=0) */
static lp_status sum_items(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *list,
                           const lp_chat_args *args, lp_chat_value *out) {
  const lp_chat_value *name = lp_chat_arg(args, 0, "attribute"), *start = lp_chat_arg(args, 1, "start");
  *out = start ? *start : lp_chat_number(0);
  for (size_t i = 0; i < list->size && lp_chat_charge(chat, 1); i++) {
    lp_chat_value so_far = *out, item = list->items[i];
    if (name && name->kind != LP_CHAT_NONE) LP_TRY(lp_chat_attribute(chat, node, &list->items[i], name, &item));
    LP_TRY(lp_chat_binary(chat, node, "+", &so_far, &item, out));
  }
  return LP_OK;
}

static lp_chat_value reverse_items(const lp_chat *chat, const lp_chat_value *list) {
  lp_chat_value *items = LP_CHAT_NEW(chat, lp_chat_value, list->size);
  for (size_t i = 0; items && i < list->size; i++)
    items[i] = list->items[list->size - 1 - i];
  return lp_chat_iterator_over(chat, items, items ? list->size : 0);
}

/* ---- parts of lists ---------------------------------------------------------------------------------------------- */

/* batch(count, fill_with=none): lists of `count` items each. */
static lp_status batch_items(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *list,
                             const lp_chat_args *args, lp_chat_value *out) {
  const lp_chat_value *count = lp_chat_arg(args, 0, "linecount"), *fill = lp_chat_arg(args, 1, "fill_with");
  bool fills = fill && fill->kind != LP_CHAT_NONE;
  if (!count || !lp_chat_is_integral(count) || count->integer < 1)
    return lp_chat_unsupported(chat, node, "filter", "batch", list);
  size_t every = count->integer > MOST_SORTED ? MOST_SORTED : (size_t)count->integer, made = 0;
  if (list->size > MOST_SORTED) return lp_chat_error(chat, node->at, "the list is too long to be split");
  lp_chat_value *parts = LP_CHAT_NEW(chat, lp_chat_value, list->size / every + 1);
  LP_TRY(lp_chat_check(chat, node->at));
  for (size_t at = 0; at < list->size; at += every) {
    size_t size = list->size - at < every ? list->size - at : every, full = fills ? every : size;
    lp_chat_value *items = LP_CHAT_NEW(chat, lp_chat_value, full);
    LP_TRY(lp_chat_check(chat, node->at));
    for (size_t i = 0; i < full; i++)
      items[i] = i < size ? list->items[at + i] : *fill;
    parts[made++] = lp_chat_list(items, full);
  }
  *out = lp_chat_iterator_over(chat, parts, made);
  return LP_OK;
}

/* slice(count, fill_with=none): `count` lists, of which the first are longer by one where the items do not divide. */
static lp_status slice_items(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *list,
                             const lp_chat_args *args, lp_chat_value *out) {
  const lp_chat_value *count = lp_chat_arg(args, 0, "slices"), *fill = lp_chat_arg(args, 1, "fill_with");
  bool fills = fill && fill->kind != LP_CHAT_NONE;
  if (!count || !lp_chat_is_integral(count) || count->integer < 1 || count->integer > MOST_SORTED)
    return lp_chat_unsupported(chat, node, "filter", "slice", list);
  size_t parts = (size_t)count->integer, every = list->size / parts, longer = list->size % parts, at = 0;
  lp_chat_value *made = LP_CHAT_NEW(chat, lp_chat_value, parts);
  LP_TRY(lp_chat_check(chat, node->at));
  for (size_t i = 0; i < parts; i++) {
    size_t size = every + (i < longer), full = size + (fills && i >= longer);
    lp_chat_value *items = LP_CHAT_NEW(chat, lp_chat_value, full);
    LP_TRY(lp_chat_check(chat, node->at));
    for (size_t k = 0; k < full; k++)
      items[k] = k < size ? list->items[at + k] : *fill;
    made[i] = lp_chat_list(items, full);
    at += size;
  }
  *out = lp_chat_iterator_over(chat, made, parts);
  return LP_OK;
}

/* groupby(attribute, default=none, case_sensitive=false): pairs of a key and its items, in the order of keys. */
static lp_status group_items(const ordering *o, const lp_chat_value *list, lp_chat_value *out) {
  const lp_chat *chat = o->chat;
  lp_chat_value sorted = {0}, key, next, *groups = LP_CHAT_NEW(chat, lp_chat_value, list->size);
  LP_TRY(lp_chat_check(chat, o->node->at));
  size_t made = 0;
  if (!o->attribute) return lp_chat_unsupported(chat, o->node, "filter", o->filter, list);
  LP_TRY(sort_items(o, list, false, &sorted));
  for (size_t i = 0, end; i < sorted.size; i = end) {
    LP_TRY(key_of(o, &sorted.items[i], &key));
    for (end = i + 1; end < sorted.size; end++) {
      LP_TRY(key_of(o, &sorted.items[end], &next));
      if (!lp_chat_equals(o->chat, &key, &next)) break;
    }
    lp_chat_value *pair = LP_CHAT_NEW(chat, lp_chat_value, 2);
    LP_TRY(lp_chat_check(chat, o->node->at));
    LP_TRY(lp_chat_attribute(chat, o->node, &sorted.items[i], o->attribute, &pair[0]));
    pair[1] = lp_chat_list(&sorted.items[i], end - i);
    groups[made] = lp_chat_list(pair, 2);
    groups[made].tuple = groups[made].group = true;
    made++;
  }
  *out = lp_chat_list(groups, made);
  return LP_OK;
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

/* dictsort(case_sensitive=false, by="key", reverse=false) of the pairs */
static lp_status sort_pairs(const lp_chat *chat, const lp_chat_node *node, const lp_chat_args *args,
                            lp_chat_value *pairs) {
  const lp_chat_value *by = lp_chat_arg(args, 1, "by"), *reverse = lp_chat_arg(args, 2, "reverse");
  bool value = by && lp_chat_is_text(by, "value");
  lp_chat_value index = lp_chat_number(value), list = *pairs;
  ordering o = ordering_of(chat, node, "dictsort", lp_chat_arg(args, 0, "case_sensitive"), &index);
  if (by && !value && !lp_chat_is_text(by, "key")) return lp_chat_unsupported(chat, node, "filter", "dictsort", pairs);
  return sort_items(&o, &list, reverse && lp_chat_is_true(reverse), pairs);
}

lp_status lp_chat_pairs(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *dict,
                        const lp_chat_args *args, lp_chat_value *out) {
  lp_chat_value *pairs = LP_CHAT_NEW(chat, lp_chat_value, dict->size);
  LP_TRY(lp_chat_check(chat, node->at));
  for (size_t i = 0; i < dict->size; i++) {
    pairs[i] = lp_chat_list(&dict->items[2 * i], 2);
    pairs[i].tuple = true;
  }
  *out = lp_chat_list(pairs, dict->size);
  return args ? sort_pairs(chat, node, args, out) : LP_OK;
}

/* ---- filters by name --------------------------------------------------------------------------------------------- */

lp_status lp_chat_list_filter(const lp_chat *chat, const lp_chat_node *node, const char *name,
                              const lp_chat_value *list, const lp_chat_args *args, lp_chat_value *out) {
  ordering o = ordering_of(chat, node, name, lp_chat_arg(args, 0, "case_sensitive"), lp_chat_arg(args, 1, "attribute"));
  *out = (lp_chat_value){0};
  if (lp_streq(name, "join")) return lp_chat_join(chat, node, list, args, out);
  if (lp_streq(name, "sort")) {
    const lp_chat_value *reverse = lp_chat_arg(args, 0, "reverse");
    o = ordering_of(chat, node, name, lp_chat_arg(args, 1, "case_sensitive"), lp_chat_arg(args, 2, "attribute"));
    return sort_items(&o, list, reverse && lp_chat_is_true(reverse), out);
  }
  if (lp_streq(name, "batch")) return batch_items(chat, node, list, args, out);
  if (lp_streq(name, "slice")) return slice_items(chat, node, list, args, out);
  if (lp_streq(name, "groupby") && !lp_chat_arg(args, 1, "default")) {
    o = ordering_of(chat, node, name, lp_chat_arg(args, 2, "case_sensitive"), lp_chat_arg(args, 0, "attribute"));
    return group_items(&o, list, out);
  }
  if (lp_streq(name, "unique")) return unique_items(&o, list, out);
  if (lp_streq(name, "min") || lp_streq(name, "max")) return extreme(&o, list, lp_streq(name, "min"), out);
  if (lp_streq(name, "sum")) return sum_items(chat, node, list, args, out);
  if (args->count > 0) return lp_chat_unsupported(chat, node, "filter", name, list);
  if (lp_streq(name, "list"))
    *out = lp_chat_list(list->items, list->size);
  else if (lp_streq(name, "reverse"))
    *out = reverse_items(chat, list);
  else if (!lp_streq(name, "first") && !lp_streq(name, "last"))
    return lp_chat_unsupported(chat, node, "filter", name, list);
  else if (list->size > 0)
    *out = list->items[lp_streq(name, "first") ? 0 : list->size - 1];
  return LP_OK;
}
