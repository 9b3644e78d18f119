/* The forms in which weights are stored. */
#include "ir/blocks.h"

lp_storage lp_storage_of(lp_dtype own) {
  return (lp_storage){.name = lp_dtype_name(own), .dtype = own, .bits = (double)lp_dtype_bits(own)};
}

bool lp_storage_find(const char *name, lp_storage *out) {
  static const lp_storage forms[] = {{"f32", LP_F32, 32, false, 0},
                                     {"f16", LP_F16, 16, false, 0},
                                     {"bf16", LP_BF16, 16, false, 0},
                                     {"int8", LP_I8, 8 + 16.0 / (double)LP_WEIGHT_GROUP, false, 0},
                                     {"int4", LP_U4, 4 + 16.0 / (double)LP_WEIGHT_GROUP, false, 0}};
  for (size_t i = 0; i < LP_COUNT(forms); i++) {
    if (!name || strcmp(forms[i].name, name) != 0) continue;
    *out = forms[i];
    return true;
  }
  const lp_block_form *form = lp_block_form_named(name);
  if (form)
    *out = (lp_storage){form->name, form->bits <= 4 || form->book ? LP_U4 : LP_I8, lp_block_stored_bits(form), true, 0};
  return form != NULL;
}

enum { MOST_GROUP = 128 }; /* of codes that a GPU keeps; a longer group repeats its scale */

/* The elements that share a scale where a GPU keeps the operand's codes; 0: it cannot. */
static int64_t kept_group(const lp_op *op, int32_t operand, int64_t k) {
  const lp_value *w = lp_op_in(op, operand), *zero = lp_op_in(op, operand == 1 ? 6 : 8);
  const int64_t group = lp_op_i64(op, "group", 0);
  if (!lp_dtype_is_code(w->type.dtype) || (zero && zero->type.dtype != w->type.dtype)) return 0;
  for (int64_t kept = MOST_GROUP; kept >= LP_WEIGHT_GROUP; kept /= 2)
    if (k % kept == 0 && (group <= 0 || group >= k || group % kept == 0)) return kept;
  return 0;
}

/* The form of kept codes; that of a weight and of its gate is the same. */
static bool keeps_codes(const lp_op *op, int32_t operand, int64_t k, lp_storage *out) {
  const int32_t second = operand == 1 ? 4 : 1;
  const lp_value *other = lp_op_in(op, second);
  const lp_dtype own = lp_op_in(op, operand)->type.dtype;
  if (other && (other->type.dtype != own || kept_group(op, second, k) == 0)) return false;
  out->group = kept_group(op, operand, k);
  out->dtype = own == LP_F8E4M3FN ? own : lp_dtype_bits(own) > 4 ? LP_U8 : LP_I4;
  if (out->group == 0) return false;
  out->bits = lp_dtype_bits(out->dtype) + 32 / (double)out->group;
  return true;
}

lp_storage lp_storage_on_gpu(const lp_op *op, int32_t operand, const char *asked) {
  const lp_dtype own = lp_op_in(op, operand)->type.dtype;
  lp_storage stored = lp_storage_of(own);
  int64_t k = 0;
  (void)lp_type_static_dim(lp_op_in(op, 0)->type, -1, &k);
  const bool is_asked = lp_storage_find(asked, &stored);
  if (!is_asked && lp_dtype_is_code(own)) return keeps_codes(op, operand, k, &stored) ? stored : lp_storage_of(LP_F16);
  if (!lp_dtype_is_float(stored.dtype) && k % LP_WEIGHT_GROUP != 0) return lp_storage_of(LP_F16);
  return stored.dtype == LP_F64 ? lp_storage_of(LP_F32) : stored;
}
