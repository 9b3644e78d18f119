/* Reads the calls of a side from the module. The rule of each operator makes its launches; equal launchers are
 * shared. */
#include "backend/gpu/launches.h"

#include "backend/constants.h"
#include "backend/gpu/join.h"
#include "backend/gpu/rules.h"
#include "backend/program.h"
#include "backend/rows.h"
#include "backend/values.h"
#include "base/map.h"
#include "base/poly.h"

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void describe_product(const gpu_gemm *product, lp_buf *key) {
  lp_buf_printf(key, "product %" PRId64 "x%" PRId64 " %s *%" PRId32 " %s", product->n, product->k,
                lp_dtype_name(product->dtype), product->scale, product->epilogue);
}

static void describe_grid(const gpu_launch_list *list, const gpu_launch *launch, lp_buf *key) {
  lp_buf_printf(key, "%s %d", launch->kernel->name, launch->threads);
  for (int axis = 0; axis < 2; axis++) {
    lp_buf_printf(key, " /%" PRId64 " ", launch->grid[axis].per);
    lp_poly_print(launch->grid[axis].size, &list->module->symbols, key);
  }
}

/* The key of a launcher. It has the numbers of refs, not the memory that they name, so that calls share launchers. */
static void describe(const gpu_launch_list *list, const gpu_builder *b, lp_buf *key) {
  LP_FOR_VEC(const gpu_launch, launch, &b->launches) {
    if (launch->product)
      describe_product(launch->product, key);
    else
      describe_grid(list, launch, key);
    lp_buf_printf(key, " by %d", (int)launch->by);
    if (launch->few) {
      lp_buf_printf(key, " %" PRId64 "..%" PRId64 " ", launch->least, launch->most);
      lp_poly_print(launch->few, &list->module->symbols, key);
    }
    lp_buf_printf(key, " sm %d..%d", launch->least_sm, launch->most_sm);
    for (int32_t k = 0; k < launch->arg_count; k++) {
      lp_buf_printf(key, " %d:%d ", launch->arg[k].kind, launch->arg[k].ref);
      if (launch->arg[k].size) lp_poly_print(launch->arg[k].size, &list->module->symbols, key);
    }
    lp_buf_puts(key, ";");
  }
}

static const gpu_launcher *find_launcher(gpu_launch_list *list, const gpu_builder *b) {
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  describe(list, b, &key);
  gpu_launcher *launcher = lp_map_get(list->launchers, lp_buf_text(&key));
  if (!launcher) {
    launcher = LP_NEW(list->arena, gpu_launcher);
    launcher->name = lp_arena_format(list->arena, "run_%zu_%s", lp_map_count(list->launchers),
                                     lp_op_info_get(b->op->kind)->name + strlen("op."));
    launcher->what = lp_op_info_get(b->op->kind)->name;
    launcher->launch_count = (int32_t)b->launches.count;
    if (b->launches.count)
      launcher->launch = lp_arena_copy(list->arena, b->launches.data, sizeof *b->launches.data * b->launches.count);
    lp_map_put(list->launchers, lp_buf_text(&key), launcher);
  }
  return launcher;
}

/* Tells whether the operator makes nothing, for any sizes. */
static bool is_empty(const lp_op *op) {
  for (int32_t i = 0; i < op->out_count; i++)
    if (!gpu_type_is_empty(op->out[i]->type)) return false;
  return op->out_count > 0;
}

/* The operators of the call in which `op` runs. */
static gpu_group group_of(const gpu_launch_list *list, const lp_side_program *program, lp_op *op) {
  const gpu_rule *rule = gpu_rule_find(op->kind);
  gpu_group group;
  gpu_group_find(&list->programs, program, op, &group);
  bool joins = rule->joins && rule->joins(&group);
  for (int32_t i = 0; i < group.count && joins; i++)
    joins = !is_empty(group.op[i]) && !lp_op_only_reads(group.op[i]);
  return joins ? group : (gpu_group){.op = {op}, .count = 1};
}

static lp_status make_call(void *user, lp_side_program *program, lp_op *op, lp_diag *diag) {
  gpu_launch_list *list = user;
  char why[64] = "";
  if (!gpu_op_runs(op, why))
    return lp_error(diag, op->loc, "no GPU kernel can run '%s': %s", lp_op_info_get(op->kind)->name, why);
  if (lp_op_has(op, LP_ALIAS) || lp_op_only_reads(op) || is_empty(op)) return LP_OK;
  const gpu_group group = group_of(list, program, op);
  if (group.op[0] != op) return LP_OK; /* it runs in the call of an earlier one */
  gpu_builder b = {.list = list, .program = (gpu_program *)program, .op = op, .group = &group};
  gpu_rule_find(op->kind)->lower(&b);
  if (b.status == LP_OK) {
    gpu_call *call = LP_NEW(list->arena, gpu_call);
    *call = (gpu_call){.base = {op, lp_op_is_joint(list->module, op)}, .ref_count = (int32_t)b.refs.count};
    call->launcher = find_launcher(list, &b);
    call->ref = lp_arena_copy(list->arena, b.refs.data ? (void *)b.refs.data : "", sizeof *b.refs.data * b.refs.count);
    lp_program_add(&list->programs, program, &call->base);
  }
  lp_vec_free(&b.refs);
  lp_vec_free(&b.launches);
  return b.status;
}

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

static void segment_key(void *user, const lp_side_program *program, const lp_side_segment *segment, lp_buf *key) {
  (void)user;
  lp_buf_printf(key, "%" PRId64, program->buffer_count);
  for (size_t i = 0; i < segment->calls.count; i++) {
    const gpu_call *call = gpu_call_at(segment, i);
    lp_buf_printf(key, "\n%s%s", call->base.joint ? "joint " : "", call->launcher->name);
    for (int32_t k = 0; k < call->ref_count; k++)
      lp_buf_printf(key, " %d:%" PRId64 "+%d*%" PRId64, call->ref[k].place,
                    call->ref[k].constant ? call->ref[k].constant->stored.offset : call->ref[k].index,
                    call->ref[k].rows, call->ref[k].row_bytes);
  }
}

static void layout_key(void *user, const lp_side_program *program, lp_buf *key) {
  const gpu_launch_list *list = user;
  const gpu_program *of = (const gpu_program *)program;
  for (int64_t i = 0; i < program->buffer_count; i++)
    lp_buf_printf(key, " %" PRId64, program->slot[i]);
  LP_FOR_OPS(op, program->func->region) {
    if (lp_op_has(op, LP_CONSTANT) || lp_op_at(op) != list->programs.side) continue;
    for (int32_t i = 0; i < op->out_count; i++) {
      lp_buf_printf(key, " %" PRId64 ":", lp_value_buffer(op->out[i], list->programs.side));
      const lp_poly *bytes = lp_type_bytes(list->module, op->out[i]->type);
      if (bytes) lp_poly_print(bytes, &list->module->symbols, key);
    }
  }
  for (size_t i = 0; i < of->scratch.count; i++) {
    lp_buf_printf(key, " scratch%s %" PRId64 " ", of->scratch.data[i].library ? " library" : "",
                  of->scratch.data[i].most);
    lp_poly_print(of->scratch.data[i].bytes, &list->module->symbols, key);
    lp_poly_print(of->scratch.data[i].few, &list->module->symbols, key);
  }
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

lp_status gpu_launches_create(lp_module *module, lp_place side, const gpu_dialect *dialect, lp_arena *arena,
                              gpu_launch_list **out, lp_diag *diag) {
  gpu_launch_list *list = LP_NEW(arena, gpu_launch_list);
  *list = (gpu_launch_list){.module = module,
                            .arena = arena,
                            .diag = diag,
                            .tensor = dialect->tensor != NULL,
                            .halves = dialect->halves,
                            .products = dialect->products,
                            .programs = {.module = module, .arena = arena, .side = side},
                            .kernels = lp_map_create(),
                            .kernel_names = lp_map_create(),
                            .launchers = lp_map_create()};
  lp_constants_init(&list->constants, arena);
  lp_status status = lp_programs_read(&list->programs, sizeof(gpu_program), make_call, list, diag);
  if (status != LP_OK) {
    gpu_launches_free(list);
    return status;
  }
  gpu_constants_place(&list->constants);
  lp_programs_name(&list->programs, &(lp_program_keys){.layout = layout_key, .segment = segment_key, .user = list});
  *out = list;
  return LP_OK;
}

void gpu_launches_free(gpu_launch_list *list) {
  if (!list) return;
  for (size_t i = 0; i < list->programs.list.count; i++)
    lp_vec_free(&((gpu_program *)list->programs.list.data[i])->scratch);
  lp_programs_free(&list->programs);
  lp_constants_release(&list->constants);
  lp_map_free(list->kernels);
  lp_map_free(list->kernel_names);
  lp_map_free(list->launchers);
}

void gpu_launches_describe(const gpu_launch_list *list, const char *triple, const char *march, lp_arena *arena,
                           lp_code *out) {
  *out = (lp_code){.triple = triple,
                   .march = march,
                   .weight_bytes = list->constants.bytes,
                   .activations = list->any_bytes ? "int8" : NULL};
  lp_programs_describe(&list->programs, arena, out);
}
