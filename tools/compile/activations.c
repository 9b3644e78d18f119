/* What a model's weights are multiplied by, as `llmpart calibrate --activations` measured it: it weighs the errors of
 * rounding a weight's elements. */
#include "tools/compile/compile.h"

lp_status lp_compile_read_activations(const lp_compile *compile, lp_arena *arena, lp_map *out, lp_diag *diag) {
  if (!compile->weighs_by) return LP_OK;
  LP_OWNED(lp_map_free_at) lp_map *found = lp_map_create();
  lp_status status =
      lp_compile_read_vectors(compile->weighs_by, "llmpart.activations/1", "mean_squares", 1e30, arena, found, diag);
  for (size_t i = 0; status == LP_OK && i < lp_map_count(found); i++) {
    const lp_measured_vector *vector = lp_map_value_at(found, i);
    float *mean = LP_NEW_ARRAY(arena, float, vector->count + 1);
    for (int64_t k = 0; k < vector->count; k++)
      mean[k] = (float)vector->value[k];
    const lp_input_squares squares = {.count = vector->count, .mean = mean};
    lp_map_put(out, lp_map_key_at(found, i), lp_arena_copy(arena, &squares, sizeof squares));
  }
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
