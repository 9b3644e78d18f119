/* Members, items and slices of the values of chat templates, with Python's behaviour. */

#include "runtime/chat/value.h"

/* The value of that key, or NULL. */
static const lp_chat_value *find_entry(const lp_chat *chat, const lp_chat_value *dict, const char *key) {
  size_t size = strlen(key);
  if (!lp_chat_charge_names(chat, dict->size)) return NULL;
  for (size_t i = 0; i < dict->size; i++) {
    const lp_chat_value *at = &dict->items[2 * i];
    if (at->kind == LP_CHAT_STRING && at->size == size && memcmp(at->text, key, size) == 0) return at + 1;
  }
  return NULL;
}

static lp_status loop_member(const lp_chat *chat, const lp_chat_node *node, const lp_chat_loop *loop, const char *name,
                             lp_chat_value *out) {
  int64_t index = (int64_t)loop->index, count = (int64_t)loop->list.size;
  const struct {
    const char *name;
    int64_t value;
  } numbers[] = {{"index0", index},
                 {"index", index + 1},
                 {"revindex", count - index},
                 {"revindex0", count - index - 1},
                 {"length", count},
                 {"depth", 1},
                 {"depth0", 0}};
  for (size_t i = 0; i < LP_COUNT(numbers); i++) {
    if (!lp_streq(name, numbers[i].name)) continue;
    *out = lp_chat_number(numbers[i].value);
    return LP_OK;
  }
  if (lp_streq(name, "first"))
    *out = lp_chat_bool(index == 0);
  else if (lp_streq(name, "last"))
    *out = lp_chat_bool(index == count - 1);
  else if (lp_streq(name, "previtem"))
    *out = index > 0 ? loop->list.items[index - 1] : (lp_chat_value){0};
  else if (lp_streq(name, "nextitem"))
    *out = index + 1 < count ? loop->list.items[index + 1] : (lp_chat_value){0};
  else
    return lp_chat_error(chat, node->at, "'loop.%s' is not supported", name);
  return LP_OK;
}

bool lp_chat_has_method(const lp_chat_value *object, const char *name) {
  static const char texts[] =
      " capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha "
      "isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower "
      "lstrip maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split "
      "splitlines startswith strip swapcase title translate upper zfill ";
  static const char mappings[] = " copy fromkeys get items keys values ", lists[] = " copy count index ";
  const char *names = object->kind == LP_CHAT_STRING ? texts
                      : object->kind == LP_CHAT_DICT ? mappings
                      : object->kind == LP_CHAT_LIST ? lists
                                                     : "";
  size_t size = strlen(name);
  if (size == 0 || strchr(name, ' ')) return false;
  for (const char *at = names; (at = strstr(at, name)); at++)
    if (at[-1] == ' ' && at[size] == ' ') return true;
  return false;
}

lp_status lp_chat_member(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object, const char *name,
                         lp_chat_value *out) {
  const lp_chat_value *entry;
  const lp_chat_variable *variable;
  *out = (lp_chat_value){0};
  switch (object->kind) {
  case LP_CHAT_DICT:
    entry = find_entry(chat, object, name);
    if (entry) *out = *entry;
    return LP_OK;
  case LP_CHAT_LOOP:
    return loop_member(chat, node, object->loop, name, out);
  case LP_CHAT_SPACE:
    variable = lp_chat_find_variable(chat, *object->space, name);
    if (variable) *out = variable->value;
    return LP_OK;
  case LP_CHAT_UNDEFINED:
    return lp_chat_error(chat, node->at, "an undefined value has no member '%s'", name);
  case LP_CHAT_LIST:
    if (object->group && lp_streq(name, "grouper")) *out = object->items[0];
    if (object->group && lp_streq(name, "list")) *out = object->items[1];
    return LP_OK;
  default:
    return LP_OK; /* undefined, as in Jinja */
  }
}

/* The characters of a text, or the items of a list. */
static int64_t count_items(const lp_chat *chat, const lp_chat_value *object) {
  int64_t count = 0;
  if (object->kind == LP_CHAT_LIST) return (int64_t)object->size;
  for (size_t at = 0; at < object->size; at += lp_chat_character_length(object, at))
    count++;
  return lp_chat_charge_text(chat, object->size) ? count : 0;
}

/* The items from `from` up to `to`, in place. */
static lp_chat_value part(const lp_chat_value *object, int64_t from, int64_t to) {
  size_t start = 0, size = 0;
  if (from >= to) return object->kind == LP_CHAT_LIST ? lp_chat_list(NULL, 0) : lp_chat_text("", 0);
  if (object->kind == LP_CHAT_LIST) return lp_chat_list(object->items + from, (size_t)(to - from));
  for (int64_t i = 0; i < from; i++)
    start += lp_chat_character_length(object, start);
  for (int64_t i = from; i < to; i++)
    size += lp_chat_character_length(object, start + size);
  return lp_chat_text(object->text + start, size);
}

lp_status lp_chat_index(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                        const lp_chat_value *key, lp_chat_value *out) {
  if (key->kind == LP_CHAT_STRING) {
    const char *name = lp_chat_string(chat, key);
    if (!lp_chat_charge_bytes(chat, key->size)) return lp_chat_check(chat, node->at);
    LP_TRY(lp_chat_member(chat, node, object, name, out));
    if (out->kind == LP_CHAT_UNDEFINED && lp_chat_has_method(object, name))
      *out = (lp_chat_value){.kind = LP_CHAT_FUNCTION, .text = name};
    return LP_OK;
  }
  *out = (lp_chat_value){0};
  if (object->kind == LP_CHAT_ITERATOR) return LP_OK; /* undefined, as in Jinja */
  if (object->kind == LP_CHAT_DICT) {
    for (size_t i = 0; i < object->size; i++)
      if (lp_chat_equals(chat, &object->items[2 * i], key)) *out = object->items[2 * i + 1];
    return LP_OK;
  }
  bool sequence = object->kind == LP_CHAT_LIST || object->kind == LP_CHAT_STRING;
  if (!sequence || !lp_chat_is_integral(key))
    return lp_chat_error(chat, node->at, "%s as an index of %s is not supported", lp_chat_kind_name(key),
                         lp_chat_kind_name(object));
  int64_t at = key->integer, count = count_items(chat, object);
  if (at < 0) at += count;
  if (at < 0 || at >= count) return LP_OK;
  *out = object->kind == LP_CHAT_LIST ? object->items[at] : part(object, at, at + 1);
  return LP_OK;
}

/* One bound of a slice, counted from the end when negative, and clamped to [least, most]. */
static int64_t bound(const lp_chat_value *value, int64_t count, int64_t least, int64_t most, int64_t otherwise) {
  if (!lp_chat_is_integral(value)) return otherwise;
  int64_t at = value->integer < 0 ? value->integer + count : value->integer;
  return at < least ? least : at > most ? most : at;
}

lp_status lp_chat_slice(const lp_chat *chat, const lp_chat_node *node, const lp_chat_value *object,
                        const lp_chat_value bounds[3], lp_chat_value *out) {
  lp_chat_value list;
  lp_buf text = {.arena = chat->arena};
  for (int i = 0; i < 3; i++)
    if (!lp_chat_is_integral(&bounds[i]) && bounds[i].kind != LP_CHAT_NONE && bounds[i].kind != LP_CHAT_UNDEFINED)
      return lp_chat_error(chat, node->at, "a number was expected");
  if (object->kind != LP_CHAT_LIST && object->kind != LP_CHAT_STRING)
    return lp_chat_error(chat, node->at, "a slice of %s is not supported", lp_chat_kind_name(object));
  int64_t step = lp_chat_is_integral(&bounds[2]) ? bounds[2].integer : 1, count = count_items(chat, object);
  if (step == 0) return lp_chat_error(chat, node->at, "a slice's step is zero");
  if (step > count) step = count + 1; /* the next step leaves the list */
  if (step < -count) step = -count - 1;
  bool back = step < 0;
  int64_t least = back ? -1 : 0, most = back ? count - 1 : count;
  int64_t from = bound(&bounds[0], count, least, most, back ? most : least);
  int64_t to = bound(&bounds[1], count, least, most, back ? least : most);
  if (step == 1) {
    *out = part(object, from, to);
    out->tuple = object->tuple;
    return LP_OK;
  }
  (void)lp_chat_iterate(chat, object, &list);
  lp_chat_value *items = LP_CHAT_NEW(chat, lp_chat_value, list.size);
  LP_TRY(lp_chat_check(chat, node->at));
  size_t made = 0;
  for (int64_t at = from; back ? at > to : at < to; at += step) {
    if (object->kind == LP_CHAT_STRING) lp_buf_append(&text, list.items[at].text, list.items[at].size);
    items[made++] = list.items[at];
  }
  *out = object->kind == LP_CHAT_STRING ? lp_chat_keep(&text) : lp_chat_list(items, made);
  out->tuple = object->tuple;
  return LP_OK;
}
