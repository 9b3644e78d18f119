/* recognise: finds idioms that exporters have taken apart (norms, activations, rotary positions, attention, causal
 * masks) and replaces them by the standard's own operators. It leaves everything else unchanged. */
#include "passes/recognise/recognise.h"

static lp_status run(lp_module *module, lp_pass_context *context) {
  static lp_idiom *const idioms[] = {lp_recognise_norms,     lp_recognise_activations, lp_recognise_rotary,
                                     lp_recognise_attention, lp_recognise_buffers,     lp_recognise_masks};
  lp_op *func = lp_module_find_func(module, "main");
  if (!func) return lp_error(context->diag, LP_LOC_FILE(module->name), "no function 'main' to recognise");
  for (size_t i = 0; i < LP_COUNT(idioms); i++) {
    LP_TRY(idioms[i](module, func->region, context->diag));
    lp_build_remove_dead(func->region);
  }
  return LP_OK;
}

const lp_pass lp_pass_recognise = {
    .name = "recognise",
    .summary = "put the standard's operators where exporters took them apart",
    .needs = LP_STATE_IMPORTED,
    .makes = LP_STATE_IMPORTED,
    .breaks = LP_STATE_RAISED,
    .run = run,
};
