/* What is known of a plan without its text: sizes of slots, symbols for the manifest. */
#include "backend/gpu/gpu_internal.h"
#include "base/poly.h"

/* ---- slots ---------------------------------------------------------------------------------------------------------- */

static void add_size(gpu_sizes *list, const lp_poly *size) {
  for (size_t i = 0; i < list->count; i++)
    if (lp_poly_equal(list->data[i], size)) return;
  lp_vec_push(list, size);
}

static void add_value(const gpu_plan *plan, const gpu_program *program, const lp_value *value, gpu_sizes *slots) {
  int64_t buffer = lp_value_buffer(value, plan->side);
  if (buffer < 0 || buffer >= program->buffer_count || gpu_value_cache(value)) return;
  add_size(&slots[program->slot[buffer]], lp_type_bytes(plan->module, value->type));
}

/* Arguments, the side's own results and what it receives. */
gpu_sizes *gpu_slot_sizes(const gpu_plan *plan, const gpu_program *program) {
  gpu_sizes *slots = LP_NEW_ARRAY(plan->arena, gpu_sizes, program->slot_count + 1);
  const lp_block *block = program->func->region;
  for (int32_t i = 0; i < block->arg_count; i++)
    add_value(plan, program, block->arg[i], slots);
  LP_FOR_OPS(op, block) {
    if (lp_op_has(op, LP_CONSTANT) || !lp_streq(lp_op_side(op), plan->side)) continue;
    for (int32_t i = 0; i < op->out_count; i++)
      add_value(plan, program, op->out[i], slots);
  }
  return slots;
}

/* ---- symbols -------------------------------------------------------------------------------------------------------- */

void gpu_describe(const gpu_plan *plan, const char *triple, const char *march, lp_arena *arena, lp_code *out) {
  lp_code_program *programs = LP_NEW_ARRAY(arena, lp_code_program, plan->programs.count);
  for (size_t i = 0; i < plan->programs.count; i++) {
    const gpu_program *program = &plan->programs.data[i];
    int64_t count = 0;
    for (size_t k = 0; k < program->segments.count; k++)
      if (program->segments.data[k]->index >= count) count = program->segments.data[k]->index + 1;
    const char **segment = LP_NEW_ARRAY(arena, const char *, count);
    for (size_t k = 0; k < program->segments.count; k++)
      segment[program->segments.data[k]->index] = lp_arena_strdup(arena, program->segments.data[k]->symbol);
    programs[i] = (lp_code_program){.name = program->name,
                                    .layout = lp_arena_strdup(arena, program->layout),
                                    .buffers = program->buffer_count + 1, /* scratch */
                                    .segment_count = count,
                                    .segment = segment};
  }
  *out = (lp_code){.triple = triple,
                   .march = march,
                   .program_count = (int32_t)plan->programs.count,
                   .program = programs,
                   .weight_bytes = plan->weight_bytes};
}
