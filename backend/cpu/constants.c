/* The constants of a side: each once per form, however many operators and programs read it. Nothing here reads a
 * weight's bytes. */
#include "backend/cpu/cpu_internal.h"
#include "base/map.h"

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/pack.h"

#include <stdlib.h>
#include <string.h>

/* Appends what tells one constant's content from another's. */
static void identity_key(const lp_value *value, lp_buf *key) {
  lp_tensor tensor;
  const lp_op *op = value->def;
  if (lp_value_constant(value, &tensor)) {
    lp_buf_printf(key, "data %" PRIx64 "%" PRIx64 " %zu", lp_hash_bytes(tensor.data, tensor.bytes, 1),
                  lp_hash_bytes(tensor.data, tensor.bytes, 2), tensor.bytes);
  } else {
    lp_buf_printf(key, "file %s %" PRId64 " %" PRId64, lp_op_str(op, "file", ""), lp_op_i64(op, "offset", 0),
                  lp_op_i64(op, "length", 0));
  }
  lp_buf_printf(key, " %s", lp_dtype_name(value->type.dtype));
}

static void static_shape(lp_type type, cpu_constant *constant) {
  constant->rank = type.rank;
  for (int32_t i = 0; i < type.rank; i++)
    if (!lp_type_static_dim(type, i, &constant->dim[i])) constant->dim[i] = 0;
}

static lpk_group_form group_form(const cpu_constant *c) {
  return (lpk_group_form){.n = c->n,
                          .k = c->k,
                          .group = c->group,
                          .bits = lp_dtype_bits(c->codes),
                          .scale = cpu_kernel_dtype(c->scale_dtype),
                          .zeros = c->zeros};
}

static void packed_shape(cpu_constant *constant) {
  int64_t panels = LPK_PANELS(constant->n) * (constant->gated ? 2 : 1);
  if (constant->form == CPU_FORM_GROUPS) {
    lpk_group_form form = group_form(constant);
    constant->rank = 2;
    constant->dim[0] = panels, constant->dim[1] = (int64_t)lpk_group_panel_bytes(&form);
    return;
  }
  if (constant->form == CPU_FORM_PANELS) {
    constant->rank = 3;
    constant->dim[0] = panels, constant->dim[1] = constant->k, constant->dim[2] = LPK_PANEL;
  } else {
    constant->rank = 2;
    constant->dim[0] = panels, constant->dim[1] = LPK_PANEL;
  }
}

/* The dtype a linear's weight is stored in: what `weight_dtype` asks for, else its own; f64 becomes f32. */
static lp_dtype weight_dtype(const lp_op *op, lp_dtype own) {
  const char *asked = lp_op_str(op, "weight_dtype", NULL);
  lp_dtype dtype = own;
  if (asked && !lp_dtype_parse(asked, &dtype)) dtype = own;
  return dtype == LP_F16 || dtype == LP_BF16 ? dtype : LP_F32;
}

static void describe(const lp_op *op, int32_t index, cpu_constant *constant) {
  lp_value *value = constant->value;
  switch (constant->form) {
  case CPU_FORM_PANELS:
  case CPU_FORM_GROUPS:
  case CPU_FORM_BIAS: {
    lp_value *w = lp_value_base(lp_op_in(op, 1)), *gate = lp_op_in(op, 4);
    constant->transpose = lp_op_bool(op, "transpose_b", false);
    lp_type_static_dim(lp_op_in(op, 0)->type, -1, &constant->k);
    lp_type_static_dim(w->type, constant->transpose ? 0 : 1, &constant->n);
    constant->gated = gate != NULL;
    if (gate && index == 1) constant->gate = lp_value_base(gate);
    constant->dtype = index == 1 ? weight_dtype(op, w->type.dtype) : LP_F32;
    if (index == 1) cpu_describe_groups(op, constant);
    if (constant->form == CPU_FORM_GROUPS) constant->dtype = LP_U8;
    packed_shape(constant);
    break;
  }
  case CPU_FORM_F32:
    constant->dtype = lp_dtype_is_float(value->type.dtype) ? LP_F32 : value->type.dtype;
    static_shape(value->type, constant);
    break;
  default:
    constant->dtype = value->type.dtype;
    static_shape(value->type, constant);
  }
}

/* A name no other constant of the file has. */
static const char *unique_name(cpu_plan *plan, const lp_op *op, const cpu_constant *constant) {
  static const char *const suffix[] = {"", "", ".f32", ".panels", ".groups", ".bias", ""};
  const char *base = constant->value->name;
  if (!base) base = lp_op_str(op, "name", lp_op_info_get(op->kind)->name);
  const char *name = lp_arena_format(plan->arena, "%s%s", base, suffix[constant->form]);
  for (int n = 2; lp_map_has(plan->names, name); n++)
    name = lp_arena_format(plan->arena, "%s%s.%d", base, suffix[constant->form], n);
  lp_map_put(plan->names, name, NULL);
  return name;
}

static lp_status stored_bytes(const lp_op *op, cpu_constant *constant, lp_diag *diag) {
  size_t bits = (size_t)lp_dtype_bits(constant->dtype);
  for (int32_t i = 0; i < constant->rank; i++)
    if (constant->dim[i] < 0 || !lp_size_mul(bits, (size_t)constant->dim[i], &bits) || bits > INT64_MAX / 2)
      return lp_error(diag, op->loc, "a constant of '%s' is too large", lp_op_info_get(op->kind)->name);
  constant->bytes = (int64_t)(bits + 7) / 8;
  return LP_OK;
}

static void constant_key(const cpu_constant *constant, lp_buf *key) {
  identity_key(constant->value, key);
  if (constant->gate) {
    lp_buf_puts(key, " gate ");
    identity_key(constant->gate, key);
  }
  for (int i = 0; i < 2; i++) {
    if (constant->scale[i]) identity_key(constant->scale[i], key);
    if (constant->zero[i]) identity_key(constant->zero[i], key);
  }
  if (constant->form == CPU_FORM_GROUPS)
    lp_buf_printf(key, " %s by %" PRId64 " %s%s", lp_dtype_name(constant->codes), constant->group,
                  lp_dtype_name(constant->scale_dtype), constant->zeros ? " z" : "");
  lp_buf_printf(key, " as %d %s%s%s", (int)constant->form, lp_dtype_name(constant->dtype),
                constant->transpose ? " t" : "", constant->gated ? " g" : "");
  for (int32_t i = 0; i < constant->rank; i++)
    lp_buf_printf(key, " %" PRId64, constant->dim[i]);
}

/* A table [n][k] that a linear of this side multiplies by, in panels of the table's own type: an embedding reads its rows
 * from there, so that tied weights are stored once. NULL when there is none. */
static const cpu_constant *find_panels(cpu_plan *plan, lp_value *table) {
  cpu_constant wanted = {.value = table, .form = CPU_FORM_PANELS, .transpose = true, .dtype = table->type.dtype};
  if (table->type.rank != 2 || !lp_type_static_dim(table->type, 0, &wanted.n) ||
      !lp_type_static_dim(table->type, 1, &wanted.k))
    return NULL;
  packed_shape(&wanted);
  lp_buf key = {0};
  constant_key(&wanted, &key);
  const cpu_constant *found = lp_map_get(plan->constants, lp_buf_text(&key));
  lp_buf_free(&key);
  return found;
}

lp_status cpu_plan_constant(cpu_plan *plan, const lp_op *op, int32_t index, cpu_form form, const cpu_constant **out,
                            lp_diag *diag) {
  cpu_constant found = {.value = lp_value_base(lp_op_in(op, index)), .form = form};
  if (form == CPU_FORM_TABLE) {
    *out = find_panels(plan, found.value);
    if (*out) return LP_OK;
    found.form = CPU_FORM_RAW;
  }
  describe(op, index, &found);
  lp_buf key = {0};
  constant_key(&found, &key);
  cpu_constant *known = lp_map_get(plan->constants, lp_buf_text(&key));
  lp_status status = LP_OK;
  if (!known && (status = stored_bytes(op, &found, diag)) == LP_OK) {
    found.name = unique_name(plan, op, &found);
    known = lp_arena_copy(plan->arena, &found, sizeof found);
    lp_map_put(plan->constants, lp_buf_text(&key), known);
  }
  lp_buf_free(&key);
  *out = known;
  return status;
}

/* safetensors allows no gaps, so alignment comes from order: multiples of 64 bytes first (every packed one is), then by
 * element size from the largest. */
static int placing_class(const cpu_constant *constant) {
  if (constant->bytes % 64 == 0) return 0;
  switch (cpu_dtype_bytes(constant->dtype)) {
  case 8:
    return 1;
  case 4:
    return 2;
  case 2:
    return 3;
  default:
    return 4;
  }
}

void cpu_plan_place_constants(cpu_plan *plan) {
  int64_t offset = 0;
  for (int class = 0; class <= 4; class ++)
    for (size_t i = 0; i < lp_map_count(plan->constants); i++) {
      cpu_constant *constant = lp_map_value_at(plan->constants, i);
      if (placing_class(constant) != class) continue;
      constant->offset = offset;
      offset += constant->bytes;
    }
  plan->weight_bytes = offset;
}
