/* Functions of chat templates: those of Jinja and of transformers. */
#include "runtime/chat/filters.h"

#include <time.h>

/* namespace(mapping, name=value, ...) */
static lp_status make_namespace(const lp_chat *chat, const lp_chat_node *node, const lp_chat_args *args,
                                lp_chat_value *out) {
  lp_chat_variable **space = LP_CHAT_NEW(chat, lp_chat_variable *, 1);
  if (!space) return lp_chat_check(chat, node->at);
  for (size_t i = 0; i < args->count; i++) {
    if (!args->name[i]) return lp_chat_error(chat, node->at, "'namespace' takes keyword arguments only");
    lp_chat_variable *variable = LP_CHAT_NEW(chat, lp_chat_variable, 1);
    if (!variable) return lp_chat_check(chat, node->at);
    *variable = (lp_chat_variable){.name = args->name[i], .value = args->value[i], .next = *space};
    *space = variable;
  }
  *out = (lp_chat_value){.kind = LP_CHAT_SPACE, .space = space};
  return LP_OK;
}

/* Sets a key of a mapping with room for it. */
static void put(const lp_chat *chat, lp_chat_value *items, size_t *count, const lp_chat_value *key,
                const lp_chat_value *value) {
  size_t at = 0;
  while (at < *count && !lp_chat_equals(chat, &items[2 * at], key))
    at++;
  items[2 * at] = *key;
  items[2 * at + 1] = *value;
  if (at == *count) (*count)++;
}

/* dict(mapping, name=value, ...) */
static lp_status make_dict(const lp_chat *chat, const lp_chat_node *node, const lp_chat_args *args,
                           lp_chat_value *out) {
  const lp_chat_value *from = args->count > 0 && !args->name[0] ? &args->value[0] : NULL;
  size_t first = from ? 1 : 0, count = 0;
  if (from && from->kind != LP_CHAT_DICT)
    return lp_chat_error(chat, node->at, "'dict' of %s is not supported", lp_chat_kind_name(from));
  lp_chat_value *items = LP_CHAT_NEW(chat, lp_chat_value, 2 * (args->count + (from ? from->size : 0)));
  if (!items) return lp_chat_check(chat, node->at);
  for (size_t i = 0; from && i < from->size; i++)
    put(chat, items, &count, &from->items[2 * i], &from->items[2 * i + 1]);
  for (size_t i = first; i < args->count; i++) {
    if (!args->name[i]) return lp_chat_error(chat, node->at, "'dict' takes one mapping");
    lp_chat_value key = lp_chat_text(args->name[i], strlen(args->name[i]));
    put(chat, items, &count, &key, &args->value[i]);
  }
  *out = (lp_chat_value){.kind = LP_CHAT_DICT, .size = count, .items = items};
  return LP_OK;
}

enum { MOST_RANGE = 100 * 1000 };

static lp_status make_range(const lp_chat *chat, const lp_chat_node *node, const lp_chat_args *args,
                            lp_chat_value *out) {
  int64_t numbers[3] = {0, 0, 1};
  for (size_t i = 0; i < args->count && i < 3; i++) {
    if (!lp_chat_is_integral(&args->value[i])) return lp_chat_error(chat, node->at, "'range' takes whole numbers");
    numbers[i] = args->value[i].integer;
  }
  int64_t from = args->count > 1 ? numbers[0] : 0, to = args->count > 1 ? numbers[1] : numbers[0], step = numbers[2];
  bool small = from > -INT32_MAX && from < INT32_MAX && to > -INT32_MAX && to < INT32_MAX && step > -INT32_MAX &&
               step < INT32_MAX && step != 0;
  int64_t count = !small ? MOST_RANGE + 1 : step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step;
  if (count < 0) count = 0;
  if (count > MOST_RANGE) return lp_chat_error(chat, node->at, "the range is too long");
  lp_chat_value *items = LP_CHAT_NEW(chat, lp_chat_value, count);
  if (!items) return lp_chat_check(chat, node->at);
  for (int64_t i = 0; i < count; i++)
    items[i] = lp_chat_number(from + i * step);
  *out = lp_chat_list(items, (size_t)count);
  return LP_OK;
}

static lp_status format_now(const lp_chat *chat, const lp_chat_node *node, const lp_chat_args *args,
                            lp_chat_value *out) {
  char text[256];
  time_t now = time(NULL);
  struct tm parts;
  if (args->count != 1 || args->value[0].kind != LP_CHAT_STRING || !localtime_r(&now, &parts))
    return lp_chat_error(chat, node->at, "'strftime_now' takes a format");
  size_t size = strftime(text, sizeof text, lp_chat_string(chat, &args->value[0]), &parts);
  *out = lp_chat_text(lp_chat_strndup(chat, text, size), size);
  return LP_OK;
}

const char *const lp_chat_functions[] = {"range",  "dict",   "namespace", "raise_exception", "strftime_now", "lipsum",
                                         "cycler", "joiner", NULL};

lp_status lp_chat_call(const lp_chat *chat, const lp_chat_node *node, const char *name, const lp_chat_args *args,
                       lp_chat_value *out) {
  if (lp_streq(name, "raise_exception") && args->count == 1 && args->value[0].kind == LP_CHAT_STRING)
    return lp_chat_error(chat, node->at, "the template refuses these messages: %s",
                         lp_chat_string(chat, &args->value[0]));
  if (lp_streq(name, "range") && args->count >= 1 && args->count <= 3) return make_range(chat, node, args, out);
  if (lp_streq(name, "strftime_now")) return format_now(chat, node, args, out);
  if (lp_streq(name, "dict")) return make_dict(chat, node, args, out);
  if (lp_streq(name, "namespace")) return make_namespace(chat, node, args, out);
  return lp_chat_error(chat, node->at, "the function '%s' is not supported", name);
}
