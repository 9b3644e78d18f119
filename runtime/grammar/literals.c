/* Values that a schema lists. */

#include "base/json/writer.h"
#include "runtime/grammar/builder.h"

static bool has_type(const lp_json_value *value, const lp_json *type) {
  static const char *const names[] = {
      [LP_JSON_NULL] = "null",   [LP_JSON_BOOL] = "boolean", [LP_JSON_INTEGER] = "integer", [LP_JSON_REAL] = "number",
      [LP_JSON_TEXT] = "string", [LP_JSON_ARRAY] = "array",  [LP_JSON_OBJECT] = "object"};
  if (lp_json_equals(type, names[value->kind])) return true;
  if (value->kind == LP_JSON_INTEGER && lp_json_equals(type, "number")) return true;
  LP_FOR_ITEMS(item, type)
    if (has_type(value, &item)) return true;
  return false;
}

typedef LP_VEC(char *) texts;

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The remaining bytes of `count` sorted texts as a trie. Their first `at` bytes are equal. A byte then has few possible
 * values, even when there are many texts. */
static int32_t trie(lp_builder *b, char *const *text_of, size_t count, size_t at) {
  const char *first = text_of[0], *last = text_of[count - 1];
  size_t same = at;
  while (first[same] && first[same] == last[same])
    same++;
  LP_VEC(int32_t) ways = {0};
  size_t from = 0;
  while (from < count && !text_of[from][same]) /* equal texts end here */
    from++;
  if (from > 0) lp_vec_push(&ways, b->done);
  while (from < count) {
    size_t to = from + 1;
    char byte = text_of[from][same];
    while (to < count && text_of[to][same] == byte)
      to++;
    int32_t rest = trie(b, text_of + from, to - from, same + 1);
    lp_vec_push(&ways, range(b, (uint8_t)byte, (uint8_t)byte, rest));
    from = to;
  }
  int32_t node = text(b, first + at, same - at, lp_builder_any_of(b, ways.data, ways.count));
  lp_vec_free(&ways);
  return node;
}

lp_status lp_builder_literals(lp_builder *b, const lp_json *schema, const lp_json *values, const lp_json *type,
                              int32_t *out) {
  texts all = {0};
  LP_TRY(lp_json_array(values, b->diag));
  for (size_t i = 0; i < lp_json_count(values); i++) {
    const lp_json_value *value = lp_json_item(values, i).value;
    if (lp_json_is_given(type) && !has_type(value, type)) continue;
    lp_buf json = {0};
    lp_json_writer writer = lp_json_writer_begin(&json, (lp_json_style){.has_no_space = true});
    lp_json_put_value(&writer, NULL, value);
    lp_vec_push(&all, json.data);
  }
  if (all.count > 0) {
    qsort(all.data, all.count, sizeof *all.data, by_bytes);
    *out = trie(b, all.data, all.count, 0);
  }
  for (size_t i = 0; i < all.count; i++)
    free(all.data[i]);
  const bool has = all.count > 0;
  lp_vec_free(&all);
  return has ? LP_OK : lp_builder_none(b, schema, "the schema's 'enum' lists no values of its type", out);
}
