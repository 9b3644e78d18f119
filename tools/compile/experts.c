/* How often tokens choose the experts of mixtures, as `llmpart calibrate --experts` measured it, and how many of them
 * the device's memory holds. */
#include "tools/compile/compile.h"

#include <stdlib.h>

static int greater_first(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

static lp_status read_file(const char *file, lp_arena *arena, lp_map *out, lp_diag *diag) {
  LP_TRY(lp_compile_read_vectors(file, "llmpart.experts/1", "chosen", 1, arena, out, diag));
  for (size_t i = 0; i < lp_map_count(out); i++) {
    const lp_measured_vector *share = lp_map_value_at(out, i);
    qsort(share->value, (size_t)share->count, sizeof *share->value, greater_first);
  }
  return LP_OK;
}

/* Counts the products with experts, all of which the file names with as many experts. */
static lp_status check_mixtures(const lp_compile *compile, const lp_module *module, const lp_map *uses, int64_t *count,
                                lp_diag *diag) {
  LP_FOR_FUNCS(func, module) {
    LP_FOR_OPS(op, func->region) {
      if (op->kind != LP_OP_EXPERTS) continue;
      *count += 1;
      if (!uses) continue;
      const char *name = lp_op_in(op, 1)->name;
      const lp_measured_vector *use = name ? lp_map_get(uses, name) : NULL;
      const int64_t experts = lp_op_i64(op, "experts", 0);
      if (!use || use->count != experts)
        return lp_error(diag, LP_LOC_FILE(compile->experts),
                        "it does not say how the %" PRId64 " experts '%.80s' are chosen: is it of another model?",
                        experts, name ? name : lp_op_str(op, "name", ""));
    }
  }
  return LP_OK;
}

/* Code for GPUs has all weights in the GPU's memory. */
static lp_status check_device(const lp_compile *compile, lp_diag *diag) {
  const lp_loc loc = LP_LOC_FILE("--device-experts");
  if (compile->has_more_places) return lp_error_as(LP_USAGE, diag, loc, "it is for a device and a cloud");
  const lp_machine *device = compile->request.device;
  if (device->kind != LP_MACHINE_CPU)
    return lp_error_as(LP_USAGE, diag, loc, "the device '%.80s' is no processor, which maps weights from storage",
                       device->name);
  if (device->figure[LP_HW_LOAD_BANDWIDTH] > 0) return LP_OK;
  const lp_status status =
      lp_error_as(LP_USAGE, diag, loc, "'%.80s' does not say how fast its storage is", device->name);
  lp_note(diag, loc, "write --device=%s,load_bandwidth=900MB/s", device->name);
  return status;
}

lp_status lp_compile_read_experts(const lp_compile *compile, const lp_module *module, lp_map **out, lp_diag *diag) {
  int64_t count = 0;
  if (!compile->experts && !compile->request.device_experts) return LP_OK;
  if (compile->request.device_experts) LP_TRY(check_device(compile, diag));
  if (compile->experts) {
    *out = lp_map_create();
    LP_TRY(read_file(compile->experts, module->arena, *out, diag));
  }
  LP_TRY(check_mixtures(compile, module, *out, &count, diag));
  if (count > 0) return LP_OK;
  return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(compile->given), "it has no mixture of experts that runs sparsely");
}
