/* Numbers of named weights, as `llmpart calibrate` measured them. */
#include "base/json/reader.h"
#include "tools/compile/compile.h"

static lp_status read_vector(const lp_json *at, const char *member, double most, lp_arena *arena, lp_map *out,
                             lp_diag *diag) {
  lp_json name = lp_json_member(at, "name"), list = lp_json_member(at, member);
  const char *weight = NULL;
  LP_TRY(lp_json_text(&name, &weight, diag));
  LP_TRY(lp_json_array(&list, diag));
  const size_t count = lp_json_count(&list);
  lp_measured_vector *vector = LP_NEW(arena, lp_measured_vector);
  *vector = (lp_measured_vector){(int64_t)count, LP_NEW_ARRAY(arena, double, count + 1)};
  LP_FOR_ITEMS(item, &list)
    LP_TRY(lp_json_number(&item, 0, most, &vector->value[item.index], diag));
  if (lp_map_has(out, weight)) return lp_json_error(&name, diag, "'%.80s' is there twice", weight);
  lp_map_put(out, weight, vector);
  return LP_OK;
}

static lp_status read_vectors(const lp_json *root, const char *schema, const char *member, double most, lp_arena *arena,
                              lp_map *out, lp_diag *diag) {
  lp_json found = lp_json_member(root, "schema"), weights = lp_json_member(root, "weights");
  if (!lp_json_equals(&found, schema))
    return lp_json_error(root, diag, "it is no file of `llmpart calibrate` for this option: wanted schema %s", schema);
  LP_TRY(lp_json_array(&weights, diag));
  LP_FOR_ITEMS(item, &weights)
    LP_TRY(read_vector(&item, member, most, arena, out, diag));
  return LP_OK;
}

lp_status lp_compile_read_vectors(const char *file, const char *schema, const char *member, double most,
                                  lp_arena *arena, lp_map *out, lp_diag *diag) {
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  LP_TRY(lp_json_load(file, 0, &document, diag));
  lp_json root = lp_json_root(file, document);
  return read_vectors(&root, schema, member, most, arena, out, diag);
}
