/* How often tokens choose the experts of mixtures, as `llmpart calibrate --experts` measured it, and how many of them
 * the device's memory holds or are placed apart. */
#include "tools/compile/compile.h"

/* Writes on each product with experts how often they are chosen, which the file says of all, and counts them. */
static lp_status set_shares(const lp_compile *compile, lp_module *module, const lp_map *uses, int64_t *count,
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
      lp_op_set_f64s(module, op, "shares", use->value, (int32_t)experts);
      lp_op_remove_costs(op);
    }
  }
  return LP_OK;
}

static lp_status read_shares(const lp_compile *compile, lp_module *module, int64_t *count, lp_diag *diag) {
  if (!compile->experts) return set_shares(compile, module, NULL, count, diag);
  LP_OWNED(lp_map_free_at) lp_map *uses = lp_map_create();
  lp_status status =
      lp_compile_read_vectors(compile->experts, "llmpart.experts/1", "chosen", 1, module->arena, uses, diag);
  if (status == LP_OK) status = set_shares(compile, module, uses, count, diag);
  return status;
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

lp_status lp_compile_read_experts(const lp_compile *compile, lp_module *module, lp_diag *diag) {
  const lp_compile_request *request = &compile->request;
  int64_t count = 0;
  if (!compile->experts && !request->device_experts && !request->hot_experts) return LP_OK;
  if (request->device_experts) LP_TRY(check_device(compile, diag));
  if (request->device_experts && (request->hot_experts || compile->hot_experts_auto))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--hot-experts"),
                       "it is for experts in memory, not --device-experts");
  LP_TRY(read_shares(compile, module, &count, diag));
  if (count == 0)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(compile->given), "it has no mixture of experts that runs sparsely");
  return lp_passes_run(module, request->hot_experts ? "divide-experts,annotate" : "annotate", request, NULL, diag);
}
