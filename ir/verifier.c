/* Checks what generic assembly and mlir-opt do not: arity, attribute schemas, dominance, terminators, types of op.*
 * operators, and that costs written on an operator are the ones its types give. */
#include "base/map.h"
#include "base/poly.h"
#include "ir/ir.h"
#include "ir/ir_internal.h"

/* Attributes that any operator may have; passes add them. */
static const char common_attrs[] =
    "name?:str layer?:i64 layer_kind?:str side?:str stage?:str segment?:i64 join?:i64 exit?:i64 buffer?:i64s "
    "flops?:poly bytes_read?:poly bytes_written?:poly device_ms?:f64 cloud_ms?:f64 ratio?:f64 cheapest_side?:str "
    "weight_dtype?:str opset?:i64 place_ms?:f64s layout_note?:str";

static const char *const kind_names[] = {"bool", "i64",  "f64",  "str",   "poly",
                                         "i64s", "f64s", "strs", "polys", "tensor"};

/* Finds `name` in a schema; returns its type's text ("i64 b?:bool" style rest) or NULL. */
static const char *schema_find(const char *schema, const char *name) {
  size_t length = strlen(name);
  for (const char *at = schema; *at;) {
    size_t word = strcspn(at, "?: ");
    if (word == length && strncmp(at, name, length) == 0) return strchr(at, ':') + 1;
    at += strcspn(at, " ");
    at += strspn(at, " ");
  }
  return NULL;
}

static lp_status check_attr(const lp_op *op, const lp_attr *attr, const char *schema, lp_diag *diag) {
  const char *type = schema_find(schema, attr->name);
  if (!type) type = schema_find(common_attrs, attr->name);
  if (!type) return lp_error(diag, op->loc, "'%s' has no attribute '%s'", lp_op_info_get(op->kind)->name, attr->name);
  size_t length = strcspn(type, " ");
  if (strlen(kind_names[attr->kind]) == length && strncmp(kind_names[attr->kind], type, length) == 0) return LP_OK;
  return lp_error(diag, op->loc, "attribute '%s' of '%s' is %s, should be %.*s", attr->name,
                  lp_op_info_get(op->kind)->name, kind_names[attr->kind], (int)length, type);
}

static lp_status check_required(const lp_op *op, const char *schema, lp_diag *diag) {
  for (const char *at = schema; *at;) {
    size_t word = strcspn(at, "?: ");
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)word, at);
    if (at[word] == ':' && !lp_op_attr(op, name))
      return lp_error(diag, op->loc, "'%s' needs the attribute '%s'", lp_op_info_get(op->kind)->name, name);
    at += strcspn(at, " ");
    at += strspn(at, " ");
  }
  return LP_OK;
}

static lp_status check_attrs(const lp_op *op, lp_diag *diag) {
  const char *schema = lp_op_info_get(op->kind)->attrs;
  if (strcmp(schema, "*") == 0) return LP_OK;
  for (int32_t i = 0; i < op->attr_count; i++)
    LP_TRY(check_attr(op, &op->attr[i], schema, diag));
  return check_required(op, schema, diag);
}

static lp_status check_count(const lp_op *op, const char *what, int32_t count, int16_t min, int16_t max,
                             lp_diag *diag) {
  if (count >= min && (max < 0 || count <= max)) return LP_OK;
  const char *name = lp_op_info_get(op->kind)->name;
  if (max < 0) return lp_error(diag, op->loc, "'%s' has %d %s, needs at least %d", name, count, what, min);
  if (min == max) return lp_error(diag, op->loc, "'%s' has %d %s, needs %d", name, count, what, min);
  return lp_error(diag, op->loc, "'%s' has %d %s, needs %d to %d", name, count, what, min, max);
}

static lp_status check_operands(const lp_op *op, lp_diag *diag) {
  const lp_op_info *info = lp_op_info_get(op->kind);
  for (int32_t i = 0; i < op->in_count; i++) {
    const lp_value *value = op->in[i].value;
    if (!value && i < info->in_min && info->in_max >= 0)
      return lp_error(diag, op->loc, "'%s' needs operand %d", info->name, i);
    if (value && !value->scratch)
      return lp_error(diag, op->loc, "operand %d of '%s' is used before its definition", i, info->name);
  }
  return LP_OK;
}

static lp_status check_cost(lp_module *module, const lp_op *op, lp_diag *diag) {
  static const char *const names[] = {"flops", "bytes_read", "bytes_written"};
  if (lp_op_info_get(op->kind)->level != LP_LEVEL_OP || !lp_op_attr(op, "flops")) return LP_OK;
  lp_cost cost = lp_op_cost(module, op);
  const lp_poly *wanted[] = {cost.flops, cost.bytes_read, cost.bytes_written};
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    const lp_poly *found = lp_op_poly(op, names[i]);
    if (found && !lp_poly_equal(found, wanted[i]))
      return lp_error(diag, op->loc, "'%s' of '%s' differs from what its types give", names[i],
                      lp_op_info_get(op->kind)->name);
  }
  return LP_OK;
}

static lp_status check_block(lp_module *module, lp_block *block, lp_diag *diag);

static lp_status check_op(lp_module *module, lp_op *op, lp_diag *diag) {
  const lp_op_info *info = lp_op_info_get(op->kind);
  LP_TRY(check_count(op, "operands", op->in_count, info->in_min, info->in_max, diag));
  LP_TRY(check_count(op, "results", op->out_count, info->out_min, info->out_max, diag));
  LP_TRY(check_operands(op, diag));
  LP_TRY(check_attrs(op, diag));
  bool region = (info->traits & LP_HAS_REGION) != 0;
  if (region != (op->region != NULL))
    return lp_error(diag, op->loc, region ? "'%s' needs a region" : "'%s' takes no region", info->name);
  if ((info->traits & LP_TERMINATOR) && op->next)
    return lp_error(diag, op->loc, "'%s' is not last in its block", info->name);
  if (op->region) LP_TRY(check_block(module, op->region, diag));
  lp_arena_mark before = lp_arena_here(module->arena); /* rewound: the checks leave no memory in use */
  lp_status status = lp_op_check_types(module, op, diag);
  if (status == LP_OK) status = check_cost(module, op, diag);
  lp_arena_rewind(module->arena, before);
  LP_TRY(status);
  for (int32_t i = 0; i < op->out_count; i++)
    op->out[i]->scratch = op;
  return LP_OK;
}

static lp_status check_terminator(const lp_block *block, lp_diag *diag) {
  const lp_op *parent = block->parent;
  if (parent->kind == LP_OP_MODULE) return LP_OK;
  lp_kind wanted = parent->kind == LP_OP_FUNC ? LP_OP_RETURN : LP_OP_YIELD;
  if (!block->last || block->last->kind != wanted)
    return lp_error(diag, parent->loc, "block of '%s' does not end with '%s'", lp_op_info_get(parent->kind)->name,
                    lp_op_info_get(wanted)->name);
  if (wanted == LP_OP_YIELD && block->last->in_count != parent->out_count)
    return lp_error(diag, block->last->loc, "'llmpart.yield' has %d operands for %d results", block->last->in_count,
                    parent->out_count);
  return LP_OK;
}

static lp_status check_block(lp_module *module, lp_block *block, lp_diag *diag) {
  lp_block_forget(block);
  for (int32_t i = 0; i < block->arg_count; i++)
    block->arg[i]->scratch = block;
  lp_status status = check_terminator(block, diag);
  for (lp_op *op = block->first; op && status == LP_OK; op = op->next)
    status = check_op(module, op, diag);
  lp_block_forget(block);
  return status;
}

static lp_status check_symbols(const lp_module *module, lp_diag *diag) {
  LP_OWNED(lp_map_free_at) lp_map *names = lp_map_create();
  lp_status status = LP_OK;
  for (const lp_op *op = module->op->region->first; op && status == LP_OK; op = op->next) {
    if (op->kind != LP_OP_FUNC && op->kind != LP_OP_STATE) {
      status = lp_error(diag, op->loc, "'%s' stands outside a function", lp_op_info_get(op->kind)->name);
      break;
    }
    if (op->kind != LP_OP_FUNC) continue;
    const char *name = lp_op_str(op, "sym_name", NULL);
    if (!name)
      status = lp_error(diag, op->loc, "'llmpart.func' needs the attribute 'sym_name'");
    else if (lp_map_put(names, name, (void *)1))
      status = lp_error(diag, op->loc, "function '%s' is defined twice", name);
  }
  return status;
}

lp_status lp_module_verify(const lp_module *module, lp_diag *diag) {
  LP_TRY(check_symbols(module, diag));
  LP_TRY(lp_module_check_places(module, diag));
  return check_block((lp_module *)(uintptr_t)module, module->op->region, diag);
}
