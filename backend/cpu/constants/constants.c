/* Constants in the forms that kernels read: finds the type in which each is stored, and the operands that share one.
 * Nothing here reads a weight. */
#include "backend/cpu/constants/constants.h"

#include "backend/constants.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/pack.h"
#include "backend/cpu/operands.h"
#include "backend/values.h"
#include "base/map.h"

lpk_group_form cpu_group_form(const cpu_constant *c) {
  return (lpk_group_form){.n = c->n,
                          .k = c->k,
                          .group = c->group,
                          .bits = c->bits,
                          .scale = cpu_kernel_dtype(c->scale_dtype),
                          .zeros = c->zeros,
                          .super = c->super};
}

static void static_shape(cpu_constant *constant) {
  constant->stored.rank = constant->value->type.rank;
  lp_static_shape(constant->value->type, constant->stored.dim);
}

static void packed_shape(cpu_constant *constant) {
  lp_stored_constant *stored = &constant->stored;
  int64_t panels = constant->experts * LPK_PANELS(constant->n) * (constant->gated ? 2 : 1);
  if (constant->form == CPU_FORM_GROUPS) {
    lpk_group_form form = cpu_group_form(constant);
    stored->rank = 2;
    stored->dim[0] = panels, stored->dim[1] = (int64_t)lpk_group_panel_bytes(&form);
    return;
  }
  if (constant->form == CPU_FORM_PANELS) {
    stored->rank = 3;
    stored->dim[0] = panels, stored->dim[1] = constant->k, stored->dim[2] = LPK_PANEL;
  } else {
    stored->rank = 2;
    stored->dim[0] = panels, stored->dim[1] = LPK_PANEL;
  }
}

/* The dtype that the weight of a linear is stored in: the attribute `weight_dtype`, else its own; f64 becomes f32. */
static lp_dtype weight_dtype(const lp_op *op, lp_dtype own) {
  const char *asked = lp_op_str(op, "weight_dtype", NULL);
  lp_dtype dtype = own;
  if (asked && !lp_dtype_parse(asked, &dtype)) dtype = own;
  return dtype == LP_F16 || dtype == LP_BF16 ? dtype : LP_F32;
}

/* A table of an embedding in a form of a linear's weight: rows of the table are columns. */
static void describe_table(const lp_op *op, cpu_constant *constant) {
  lp_type type = constant->value->type;
  constant->transpose = true;
  lp_type_static_dim(type, 0, &constant->n);
  lp_type_static_dim(type, 1, &constant->k);
  constant->stored.dtype = weight_dtype(op, type.dtype);
  if (constant->form == CPU_FORM_GROUPS) {
    cpu_describe_groups(op, constant);
    constant->stored.dtype = LP_U8;
  }
  packed_shape(constant);
}

static void describe(const lp_op *op, int32_t index, cpu_constant *constant) {
  lp_value *value = constant->value;
  switch (constant->form) {
  case CPU_FORM_PANELS:
  case CPU_FORM_GROUPS:
  case CPU_FORM_BIAS: {
    if (op->kind == LP_OP_GATHER) {
      describe_table(op, constant);
      break;
    }
    lp_value *w = lp_value_base(lp_op_in(op, 1)), *gate = lp_op_in(op, 4);
    constant->transpose = lp_op_bool(op, "transpose_b", false);
    lp_type_static_dim(lp_op_in(op, 0)->type, -1, &constant->k);
    lp_type_static_dim(w->type, constant->transpose ? 0 : 1, &constant->n);
    constant->experts = lp_op_i64(op, "experts", 1);
    constant->n /= constant->experts;
    constant->gated = gate != NULL;
    if (gate && index == 1) constant->gate = lp_value_base(gate);
    constant->stored.dtype = index == 1 ? weight_dtype(op, w->type.dtype) : LP_F32;
    if (index == 1) cpu_describe_groups(op, constant);
    if (constant->form == CPU_FORM_GROUPS) constant->stored.dtype = LP_U8;
    packed_shape(constant);
    break;
  }
  case CPU_FORM_F32:
    constant->stored.dtype = lp_dtype_is_float(value->type.dtype) ? LP_F32 : value->type.dtype;
    static_shape(constant);
    break;
  default:
    constant->stored.dtype = value->type.dtype;
    static_shape(constant);
  }
}

static const char *unique_name(lp_constants *constants, const lp_op *op, const cpu_constant *constant) {
  static const char *const suffix[] = {"", "", ".f32", ".panels", ".groups", ".bias", ""};
  const char *base = constant->value->name;
  if (!base) base = lp_op_str(op, "name", lp_op_info_get(op->kind)->name);
  return lp_constants_name(constants, base, suffix[constant->form]);
}

static lp_status stored_bytes(const lp_op *op, cpu_constant *constant, lp_diag *diag) {
  size_t bits = (size_t)lp_dtype_bits(constant->stored.dtype);
  for (int32_t i = 0; i < constant->stored.rank; i++)
    if (constant->stored.dim[i] < 0 || !lp_size_mul(bits, (size_t)constant->stored.dim[i], &bits) ||
        bits > INT64_MAX / 2)
      return lp_error(diag, op->loc, "a constant of '%s' is too large", lp_op_info_get(op->kind)->name);
  constant->stored.bytes = (int64_t)(bits + 7) / 8;
  return LP_OK;
}

static void constant_key(const cpu_constant *constant, lp_buf *key) {
  lp_constant_identity(constant->value, key);
  if (constant->gate) {
    lp_buf_puts(key, " gate ");
    lp_constant_identity(constant->gate, key);
  }
  for (int i = 0; i < 2; i++) {
    if (constant->scale[i]) lp_constant_identity(constant->scale[i], key);
    if (constant->zero[i]) lp_constant_identity(constant->zero[i], key);
  }
  if (constant->form == CPU_FORM_GROUPS)
    lp_buf_printf(key, " %s by %" PRId64 " %s%s%s", lp_dtype_name(constant->codes), constant->group,
                  lp_dtype_name(constant->scale_dtype), constant->zeros ? " z" : "", constant->blocks ? " kept" : "");
  lp_buf_printf(key, " as %d %s%s%s %" PRId64, (int)constant->form, lp_dtype_name(constant->stored.dtype),
                constant->transpose ? " t" : "", constant->gated ? " g" : "", constant->experts);
  for (int32_t i = 0; i < constant->stored.rank; i++)
    lp_buf_printf(key, " %" PRId64, constant->stored.dim[i]);
}

/* A table [n][k] that a linear of this side reads as panels of the table's own type: an embedding reads its rows from
 * there, so that tied weights are stored once. NULL when there is none. */
static const cpu_constant *find_panels(const lp_constants *constants, lp_value *table) {
  cpu_constant wanted = {.value = table, .form = CPU_FORM_PANELS, .transpose = true, .experts = 1};
  wanted.stored.dtype = table->type.dtype;
  if (table->type.rank != 2 || !lp_type_static_dim(table->type, 0, &wanted.n) ||
      !lp_type_static_dim(table->type, 1, &wanted.k))
    return NULL;
  packed_shape(&wanted);
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  constant_key(&wanted, &key);
  return lp_map_get(constants->known, lp_buf_text(&key));
}

lp_status cpu_constant_get(lp_constants *constants, const lp_op *op, int32_t index, cpu_form form,
                           const cpu_constant **out, lp_diag *diag) {
  cpu_constant found = {.value = lp_value_base(lp_op_in(op, index)), .form = form, .experts = 1};
  if (form == CPU_FORM_TABLE) {
    *out = find_panels(constants, found.value);
    if (*out) return LP_OK;
    found.form = CPU_FORM_RAW;
  }
  describe(op, index, &found);
  lp_buf key = {0};
  constant_key(&found, &key);
  cpu_constant *known = lp_map_get(constants->known, lp_buf_text(&key));
  lp_status status = LP_OK;
  if (!known && (status = stored_bytes(op, &found, diag)) == LP_OK) {
    found.stored.name = unique_name(constants, op, &found);
    known = lp_arena_copy(constants->arena, &found, sizeof found);
    lp_map_put(constants->known, lp_buf_text(&key), known);
  }
  lp_buf_free(&key);
  *out = known;
  return status;
}

/* The order in the file: constants of a multiple of 64 bytes (all packed ones are), then by element size, the largest
 * first. */
static int placing_class(const lp_stored_constant *stored) {
  if (stored->bytes % 64 == 0) return 0;
  switch (cpu_dtype_bytes(stored->dtype)) {
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

void cpu_constants_place(lp_constants *constants) {
  lp_constants_place(constants, placing_class, 5);
}
