/* What a model's weights are multiplied by, as `llmpart calibrate --activations` measured it: it weighs the errors of
 * rounding a weight's elements. */
#include "base/file.h"
#include "base/json/reader.h"
#include "tools/compile/compile.h"

#include <stdlib.h>

static lp_status read_weight(const lp_json *at, lp_arena *arena, lp_map *out, lp_diag *diag) {
  lp_json name = lp_json_member(at, "name"), list = lp_json_member(at, "mean_squares");
  const char *weight = NULL;
  LP_TRY(lp_json_text(&name, &weight, diag));
  LP_TRY(lp_json_array(&list, diag));
  size_t count = lp_json_count(&list);
  float *mean = LP_NEW_ARRAY(arena, float, count + 1);
  for (size_t i = 0; i < count; i++) {
    lp_json item = lp_json_item(&list, i);
    double value = 0;
    LP_TRY(lp_json_number(&item, 0, 1e30, &value, diag));
    mean[i] = (float)value;
  }
  const lp_input_squares found = {.count = (int64_t)count, .mean = mean};
  if (lp_map_has(out, weight)) return lp_json_error(&name, diag, "'%.80s' is there twice", weight);
  lp_map_put(out, weight, lp_arena_copy(arena, &found, sizeof found));
  return LP_OK;
}

static lp_status read_weights(const lp_json *root, lp_arena *arena, lp_map *out, lp_diag *diag) {
  lp_json schema = lp_json_member(root, "schema"), weights = lp_json_member(root, "weights");
  if (!lp_json_equals(&schema, "llmpart.activations/1"))
    return lp_json_error(root, diag, "these are no activations: wanted schema llmpart.activations/1");
  LP_TRY(lp_json_array(&weights, diag));
  for (size_t i = 0; i < lp_json_count(&weights); i++) {
    lp_json item = lp_json_item(&weights, i);
    LP_TRY(read_weight(&item, arena, out, diag));
  }
  return LP_OK;
}

lp_status lp_compile_read_activations(const lp_compile *compile, lp_arena *arena, lp_map *out, lp_diag *diag) {
  char *text = NULL;
  size_t size = 0;
  lp_json_document *document = NULL;
  if (!compile->weighs_by) return LP_OK;
  LP_TRY(lp_file_read(compile->weighs_by, &text, &size, diag));
  lp_status status = lp_json_parse(compile->weighs_by, text, size, 0, &document, diag);
  free(text);
  LP_TRY(status);
  lp_json root = lp_json_root(compile->weighs_by, document);
  status = read_weights(&root, arena, out, diag);
  lp_json_free(document);
  return status;
}

/* Counts the weights that a side rounds, and those of them with mean squares. */
static void count_weights(const lp_module *module, int64_t *all, int64_t *known) {
  enum { WEIGHT = 1, GATE = 4, SCALE = 5 };
  lp_storage storage;
  LP_FOR_FUNCS(func, module) {
    LP_FOR_OPS(op, func->region) {
      if (!lp_op_is_weighted(op) || lp_op_in(op, SCALE)) continue;
      if (!lp_storage_find(lp_op_str(op, "weight_dtype", NULL), &storage) || lp_dtype_is_float(storage.dtype) ||
          storage.packed)
        continue;
      for (int32_t i = WEIGHT; i <= GATE; i += GATE - WEIGHT) {
        const lp_value *weight = lp_op_in(op, i);
        if (!weight) continue;
        *all += 1;
        *known += weight->name && lp_map_has(module->input_squares, weight->name);
      }
    }
  }
}

lp_status lp_compile_check_activations(const lp_compile *compile, const lp_module *module, lp_diag *diag) {
  int64_t all = 0, known = 0;
  if (!compile->weighs_by) return LP_OK;
  count_weights(module, &all, &known);
  lp_loc loc = LP_LOC_FILE(compile->weighs_by);
  if (all > 0 && known == 0) return lp_error(diag, loc, "it names no weight that is rounded: is it of another model?");
  if (known < all) lp_note(diag, loc, "it names %" PRId64 " of %" PRId64 " weights that are rounded", known, all);
  return LP_OK;
}
