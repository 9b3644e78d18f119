/* Decides which weights of op.linear are stored in groups, and in which form. Nothing here reads a weight. */
#include "backend/cpu/constants/constants.h"

#include "backend/cpu/kernels/kernels.h"
#include "backend/values.h"

enum { W = 1, GATE = 4, SCALE = 5, ZERO, GATE_SCALE, GATE_ZERO };
enum { WORD_ROWS = 16 };  /* the size of a group is a multiple of it */
enum { BLOCK_ROWS = 32 }; /* of activations that share a scale */

static int64_t inner_size(const lp_op *op) {
  int64_t k = 0;
  return lp_type_static_dim(lp_op_in(op, 0)->type, -1, &k) ? k : 0;
}

const lp_block_form *cpu_kept_blocks(const lp_op *op) {
  const bool table = op->kind == LP_OP_GATHER;
  const lp_value *weight = lp_op_in(op, table ? 0 : W), *gate = table ? NULL : lp_op_in(op, GATE);
  const lp_block_form *form = lp_weight_blocks(weight);
  int64_t k;
  if (!form || !lp_streq(lp_op_str(op, "weight_dtype", NULL), form->name) || (gate && lp_weight_blocks(gate) != form))
    return NULL;
  if (table) return form;
  return lp_op_bool(op, "transpose_b", false) && lp_type_static_dim(weight->type, 1, &k) && k == inner_size(op) ? form
                                                                                                                : NULL;
}

/* The type that `weight_dtype` asks for, if it is an integer type; blocks that are not kept become codes of 8 bits. */
static bool asked_codes(const lp_op *op, lp_dtype *codes) {
  lp_storage asked;
  bool integer = lp_storage_find(lp_op_str(op, "weight_dtype", NULL), &asked) && !lp_dtype_is_float(asked.dtype);
  *codes = integer && !asked.packed ? asked.dtype : LP_I8;
  return integer;
}

/* Tells whether codes and scales of the model are stored as they are. `weight_dtype` may ask otherwise of f8e4m3fn. */
static bool keeps_codes(const lp_op *op) {
  return lp_op_in(op, SCALE) && (lp_op_in(op, W)->type.dtype != LP_F8E4M3FN || !lp_op_str(op, "weight_dtype", NULL));
}

cpu_form cpu_linear_weight_form(const lp_op *op) {
  lp_dtype codes;
  if (!keeps_codes(op)) return asked_codes(op, &codes) ? CPU_FORM_GROUPS : CPU_FORM_PANELS;
  int64_t group = lp_op_i64(op, "group", 0);
  return group % WORD_ROWS == 0 || group >= inner_size(op) ? CPU_FORM_GROUPS : CPU_FORM_PANELS;
}

bool cpu_linear_is_integer(const lp_op *op) {
  const bool keeps = keeps_codes(op);
  if ((keeps && lp_op_in(op, W)->type.dtype == LP_F8E4M3FN) || !lp_streq(lp_op_str(op, "activations", NULL), "int8") ||
      cpu_linear_weight_form(op) != CPU_FORM_GROUPS)
    return false;
  int64_t group = keeps ? lp_op_i64(op, "group", 0) : LP_WEIGHT_GROUP;
  return group % BLOCK_ROWS == 0 || group >= inner_size(op);
}

bool cpu_op_asks_bf16(const lp_op *op) {
  if (!lp_streq(lp_op_str(op, "activations", NULL), "bf16")) return false;
  return op->kind == LP_OP_ATTENTION || (lp_op_is_weighted(op) && cpu_linear_weight_form(op) == CPU_FORM_PANELS);
}

static lp_dtype code_dtype(lp_dtype own) {
  if (own == LP_F8E4M3FN) return own;
  return lp_dtype_bits(own) == 8 ? LP_I8 : lp_dtype_bits(own) == 4 ? LP_U4 : LP_U2;
}

/* Scales keep their type if the kernels read it, and become f32 otherwise. */
static lp_dtype scale_dtype(lp_dtype own) {
  return own == LP_F16 || own == LP_BF16 ? own : LP_F32;
}

/* Tells whether the kernel assumes this zero point. Such zero points are not stored. */
static bool is_implied(const lp_value *zero, lp_dtype codes, lp_dtype own) {
  lp_tensor tensor;
  int64_t count;
  double at = 0;
  if (zero) {
    if (!lp_value_constant(zero, &tensor) || !lp_type_static_numel(tensor.type, &count) || count != 1) return false;
    at = lp_tensor_f64(&tensor, 0);
  }
  bool is_unsigned = own == LP_U8 || own == LP_U4 || own == LP_U2;
  return at == (is_unsigned ? 1 << (lp_dtype_bits(codes) - 1) : 0);
}

static void describe_kept(const lp_block_form *form, cpu_constant *constant) {
  const bool super = form->size > LP_WEIGHT_GROUP;
  constant->blocks = form;
  constant->group = form->group;
  constant->codes = form->bits == 8 && !form->book ? LP_I8 : LP_U4;
  constant->bits = form->bits;
  constant->scale_dtype = form->powers ? LP_BF16 : !super ? LP_F16 : form->mins ? LP_U8 : LP_I8;
  constant->zeros = form->mins ? LPK_MINIMA : form->book ? LPK_DOUBLES + (int)(form->book - LP_BOOK_DOUBLES) : 0;
  constant->super = super ? (int)form->size / form->group : 0;
}

static void describe_own(const lp_op *op, const lp_value *scale, cpu_constant *constant) {
  int64_t group = lp_op_i64(op, "group", 0);
  static const int32_t scales[] = {SCALE, GATE_SCALE}, zeros[] = {ZERO, GATE_ZERO};
  for (int i = 0; i < (constant->gate ? 2 : 1); i++) {
    constant->scale[i] = lp_value_base(lp_op_in(op, scales[i]));
    lp_value *zero = lp_op_in(op, zeros[i]);
    constant->zero[i] = zero ? lp_value_base(zero) : NULL;
  }
  lp_dtype own = lp_op_in(op, W)->type.dtype;
  constant->group = constant->own_group = group > 0 && group < constant->k ? group : constant->k;
  constant->codes = code_dtype(own);
  constant->bits = lp_dtype_bits(constant->codes);
  constant->scale_dtype = scale_dtype(scale->type.dtype);
  const bool implied = is_implied(constant->zero[0], constant->codes, own) &&
                       (!constant->gate || is_implied(constant->zero[1], constant->codes, own));
  constant->zeros = own == LP_F8E4M3FN ? LPK_E4M3 : implied ? 0 : LPK_ZEROS;
}

void cpu_describe_groups(const lp_op *op, cpu_constant *constant) {
  const lp_value *scale = lp_op_is_weighted(op) ? lp_op_in(op, SCALE) : NULL;
  if (!scale && cpu_kept_blocks(op)) {
    describe_kept(cpu_kept_blocks(op), constant);
    return;
  }
  if (scale) describe_own(op, scale, constant);
  if (scale && keeps_codes(op)) return;
  constant->group = constant->k < LP_WEIGHT_GROUP ? constant->k : LP_WEIGHT_GROUP;
  constant->scale_dtype = LP_F16;
  constant->zeros = 0;
  (void)asked_codes(op, &constant->codes);
  constant->bits = lp_dtype_bits(constant->codes);
}
