/* What a side has to run: programs, segments, and each operator as a call of a launcher. */
#include "backend/gpu/gpu_internal.h"
#include "base/map.h"
#include "base/poly.h"

#include <stdlib.h>
#include <string.h>

const lp_op *gpu_value_cache(const lp_value *value) {
  return value && lp_op_is(value->def, LP_OP_KV_APPEND) ? value->def : NULL;
}

/* ---- references ----------------------------------------------------------------------------------------------------- */

static int32_t add_ref(gpu_builder *b, gpu_ref ref) {
  lp_vec_push(&b->refs, ref);
  return (int32_t)b->refs.count - 1;
}

static int32_t fail(gpu_builder *b, const char *what) {
  if (b->status == LP_OK)
    b->status = lp_error(b->plan->diag, b->op->loc, "%s of '%s' has no buffer on this side", what,
                         lp_op_info_get(b->op->kind)->name);
  return -1;
}

static int32_t ref_buffer(gpu_builder *b, const lp_value *value, const char *what) {
  int64_t buffer = lp_value_buffer(value, b->plan->side);
  if (buffer < 0 || buffer >= b->program->buffer_count) return fail(b, what);
  gpu_ref ref = {.place = GPU_AT_BUFFER, .index = buffer};
  ref.rows = lp_type_rows(b->plan->module, value->type, &ref.row_bytes);
  if (ref.rows == LP_ROWS_NONE) ref.row_bytes = 0;
  return add_ref(b, ref);
}

int32_t gpu_ref_constant(gpu_builder *b, const gpu_constant *constant) {
  if (!constant) return -1;
  return add_ref(b, (gpu_ref){.place = GPU_AT_WEIGHT, .constant = constant});
}

int32_t gpu_ref_state(gpu_builder *b, int64_t state) {
  return add_ref(b, (gpu_ref){.place = GPU_AT_STATE, .index = state});
}

int32_t gpu_ref_value(gpu_builder *b, lp_value *value, gpu_form form) {
  if (!value) return -1;
  value = lp_value_base(value);
  const lp_op *cache = gpu_value_cache(value);
  if (cache) return gpu_ref_state(b, lp_op_i64(cache, "state", 0));
  if (!lp_value_is_constant(value)) return ref_buffer(b, value, "an operand");
  return gpu_ref_constant(b, gpu_constant_get(b, value, form));
}

int32_t gpu_ref_in(gpu_builder *b, int32_t operand, gpu_form form) {
  return gpu_ref_value(b, lp_op_in(b->op, operand), form);
}

int32_t gpu_ref_out(gpu_builder *b, int32_t result) {
  return ref_buffer(b, b->op->out[result], "a result");
}

void gpu_add_scratch(gpu_builder *b, const lp_poly *bytes, const lp_poly *few, int64_t most) {
  lp_vec_push(&b->program->scratch, ((gpu_scratch){bytes, few, most, false}));
  b->program->narrowed = NULL;
}

/* ---- calls ---------------------------------------------------------------------------------------------------------- */

static void describe_product(const gpu_gemm *product, lp_buf *key) {
  lp_buf_printf(key, "product %" PRId64 "x%" PRId64 " %s *%s %s", product->n, product->k, lp_dtype_name(product->dtype),
                product->scale, product->epilogue);
}

static void describe_grid(const gpu_plan *plan, const gpu_launch *launch, lp_buf *key) {
  lp_buf_printf(key, "%s %d", launch->kernel->name, launch->threads);
  for (int axis = 0; axis < 2; axis++) {
    lp_buf_printf(key, " /%" PRId64 " ", launch->grid[axis].per);
    lp_poly_print(launch->grid[axis].size, &plan->module->symbols, key);
  }
}

/* What makes two launchers the same; refs count by number only. */
static void describe(const gpu_plan *plan, const gpu_builder *b, lp_buf *key) {
  for (size_t i = 0; i < b->launches.count; i++) {
    const gpu_launch *launch = &b->launches.data[i];
    if (launch->product)
      describe_product(launch->product, key);
    else
      describe_grid(plan, launch, key);
    lp_buf_printf(key, " by %d", (int)launch->by);
    if (launch->few) {
      lp_buf_printf(key, " %" PRId64 "..%" PRId64 " ", launch->least, launch->most);
      lp_poly_print(launch->few, &plan->module->symbols, key);
    }
    lp_buf_printf(key, " sm %d", launch->least_sm);
    for (int32_t k = 0; k < launch->arg_count; k++) {
      lp_buf_printf(key, " %d:%d ", launch->arg[k].kind, launch->arg[k].ref);
      if (launch->arg[k].size) lp_poly_print(launch->arg[k].size, &plan->module->symbols, key);
    }
    lp_buf_puts(key, ";");
  }
}

static const gpu_launcher *find_launcher(gpu_plan *plan, const gpu_builder *b) {
  lp_buf key = {0};
  describe(plan, b, &key);
  gpu_launcher *launcher = lp_map_get(plan->launchers, lp_buf_text(&key));
  if (!launcher) {
    launcher = LP_NEW(plan->arena, gpu_launcher);
    launcher->name = lp_arena_format(plan->arena, "run_%zu_%s", lp_map_count(plan->launchers),
                                     lp_op_info_get(b->op->kind)->name + strlen("op."));
    launcher->what = lp_op_info_get(b->op->kind)->name;
    launcher->launch_count = (int32_t)b->launches.count;
    if (b->launches.count)
      launcher->launch = lp_arena_copy(plan->arena, b->launches.data, sizeof *b->launches.data * b->launches.count);
    lp_map_put(plan->launchers, lp_buf_text(&key), launcher);
  }
  lp_buf_free(&key);
  return launcher;
}

static gpu_segment *find_segment(gpu_plan *plan, gpu_program *program, int64_t index) {
  for (size_t i = 0; i < program->segments.count; i++)
    if (program->segments.data[i]->index == index) return program->segments.data[i];
  gpu_segment *segment = LP_NEW(plan->arena, gpu_segment);
  segment->index = index;
  lp_vec_push(&program->segments, segment);
  return segment;
}

static lp_status add_call(gpu_plan *plan, gpu_program *program, const lp_op *op) {
  char why[64] = "";
  if (!gpu_op_runs(op, why))
    return lp_error(plan->diag, op->loc, "no GPU kernel can run '%s': %s", lp_op_info_get(op->kind)->name, why);
  if (lp_op_has(op, LP_ALIAS)) return LP_OK;
  gpu_builder b = {.plan = plan, .program = program, .op = op};
  gpu_rule_find(op->kind)->lower(&b);
  gpu_call call = {.op = op, .ref_count = (int32_t)b.refs.count, .joint = lp_op_is_joint(plan->module, op)};
  if (b.status == LP_OK) {
    call.launcher = find_launcher(plan, &b);
    call.ref = lp_arena_copy(plan->arena, b.refs.data ? (void *)b.refs.data : "", sizeof *b.refs.data * b.refs.count);
    lp_vec_push(&find_segment(plan, program, lp_op_i64(op, "segment", 0))->calls, call);
  }
  lp_vec_free(&b.refs);
  lp_vec_free(&b.launches);
  return b.status;
}

/* ---- programs ------------------------------------------------------------------------------------------------------- */

static lp_status read_slots(const gpu_plan *plan, gpu_program *program) {
  const lp_attr *slots = lp_func_side_attr(program->func, "slot", plan->side);
  if (!slots) return LP_OK; /* nothing of this side in it */
  program->buffer_count = slots->count;
  program->slot = slots->is;
  for (int32_t i = 0; i < slots->count; i++) {
    if (slots->is[i] < 0 || slots->is[i] >= slots->count)
      return lp_error(plan->diag, program->func->loc, "slot %" PRId64 " of buffer %" PRId32 " is out of range",
                      slots->is[i], i);
    if (slots->is[i] >= program->slot_count) program->slot_count = slots->is[i] + 1;
  }
  return LP_OK;
}

static lp_status add_program(gpu_plan *plan, const lp_op *func) {
  gpu_program program = {.func = func, .name = lp_op_str(func, "sym_name", "main")};
  LP_TRY(read_slots(plan, &program));
  lp_vec_push(&plan->programs, program);
  gpu_program *added = &plan->programs.data[plan->programs.count - 1];
  LP_FOR_OPS(op, func->region) {
    if (!lp_op_is_run(op) || !lp_streq(lp_op_side(op), plan->side)) continue;
    LP_TRY(add_call(plan, added, op));
  }
  return LP_OK;
}

static lp_status add_programs(gpu_plan *plan) {
  LP_FOR_OPS(op, lp_module_body(plan->module)) {
    if (op->kind == LP_OP_FUNC) LP_TRY(add_program(plan, op));
  }
  return LP_OK;
}

lp_status gpu_plan_create(lp_module *module, const char *side, const gpu_dialect *dialect, lp_arena *arena,
                          gpu_plan **out, lp_diag *diag) {
  gpu_plan *plan = LP_NEW(arena, gpu_plan);
  *plan = (gpu_plan){.module = module,
                     .arena = arena,
                     .diag = diag,
                     .side = side,
                     .tensor = dialect->tensor != NULL,
                     .products = dialect->products};
  plan->constants = lp_map_create();
  plan->names = lp_map_create();
  plan->kernels = lp_map_create();
  plan->kernel_names = lp_map_create();
  plan->launchers = lp_map_create();
  lp_status status = add_programs(plan);
  if (status != LP_OK) {
    gpu_plan_free(plan);
    return status;
  }
  gpu_plan_place_constants(plan);
  gpu_symbols_assign(plan);
  *out = plan;
  return LP_OK;
}

void gpu_plan_free(gpu_plan *plan) {
  if (!plan) return;
  for (size_t i = 0; i < plan->programs.count; i++) {
    gpu_program *program = &plan->programs.data[i];
    for (size_t k = 0; k < program->segments.count; k++)
      lp_vec_free(&program->segments.data[k]->calls);
    lp_vec_free(&program->segments);
    lp_vec_free(&program->scratch);
  }
  lp_vec_free(&plan->programs);
  lp_map *const maps[] = {plan->constants, plan->names, plan->kernels, plan->kernel_names, plan->launchers};
  for (size_t i = 0; i < LP_COUNT(maps); i++)
    lp_map_free(maps[i]);
}
