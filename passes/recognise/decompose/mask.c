/* Builds the masks of com.microsoft's attention operators from lengths, first and last positions, zeros and ones. */
#include "base/poly.h"
#include "passes/recognise/decompose/rewrite.h"

static lp_value *sequence_rows(lp_rewrite *r, lp_value *lengths) {
  return lp_rw_unsqueeze(r, lp_rw_cast(r, lengths, LP_I64), LP_RW_INTS(r, 1, 2, 3));
}

/* [b]: each sequence's length. [2 b]: the ends of all sequences, exclusive, then their beginnings. */
static lp_value *position_mask(lp_rewrite *r, lp_value *mask, lp_value *query, lp_value *total) {
  lp_arena *arena = r->b.module->arena;
  const lp_poly *batch = query->type.dim[0], *size = mask->type.dim[0];
  lp_value *keys = lp_rw_count(r, total), *ends = mask, *begins = NULL;
  if (!lp_poly_equal(size, batch) && lp_poly_equal(size, lp_poly_scale(arena, batch, 2))) {
    lp_value *middle = lp_rw_unsqueeze(r, lp_rw_size(r, query, 0), LP_RW_INTS(r, 0));
    lp_value *last = lp_rw_unsqueeze(r, lp_rw_size(r, mask, 0), LP_RW_INTS(r, 0));
    ends = lp_rw_slice(r, mask, 0, LP_RW_INTS(r, 0), middle);
    begins = lp_rw_slice(r, mask, 0, middle, last);
    if (!begins) return NULL;
  } else if (!lp_poly_equal(size, batch)) {
    (void)lp_rw_refuse(r, "has a mask whose size is neither the batch nor twice it");
    return NULL;
  }
  lp_value *end = sequence_rows(r, ends);
  lp_value *may = keys && end ? lp_rw_op(r, LP_ONNX_Less, keys, end) : NULL;
  if (!begins || !may) return may;
  lp_value *from = lp_rw_op(r, LP_ONNX_GreaterOrEqual, keys, sequence_rows(r, begins));
  return from ? lp_rw_op(r, LP_ONNX_And, may, from) : NULL;
}

/* [b, 1, positions, positions] at a model's greatest length: takes the rows and columns of the current positions. */
static lp_value *square_mask(lp_rewrite *r, lp_value *mask, lp_value *query, lp_value *total) {
  lp_value *zero = LP_RW_INTS(r, 0), *end = lp_rw_unsqueeze(r, total, LP_RW_INTS(r, 0));
  lp_value *rows = lp_rw_unsqueeze(r, lp_rw_size(r, query, 2), LP_RW_INTS(r, 0));
  lp_value *begin = end && rows ? lp_rw_op(r, LP_ONNX_Sub, end, rows) : NULL;
  return lp_rw_slice(r, lp_rw_slice(r, mask, 2, begin, end), 3, zero, end);
}

lp_status lp_rw_padding_mask(lp_rewrite *r, lp_value *mask, lp_value *query, lp_value *total, lp_value **out) {
  int64_t width = 0;
  *out = NULL;
  if (!total) return LP_FAILED;
  if (mask->type.rank == 2 && lp_type_static_dim(mask->type, 1, &width) && width == 1 &&
      (r->op->kind == LP_ONNX_MsAttention || r->op->kind == LP_ONNX_MsQAttention))
    return LP_OK; /* exporters pass a mask [b, 1] where there is none, because MsAttention wants the operand */
  if (mask->type.rank == 1)
    *out = position_mask(r, mask, query, total);
  else if (mask->type.rank == 2)
    *out = lp_rw_unsqueeze(r, lp_rw_cast(r, mask, LP_BOOL), LP_RW_INTS(r, 1, 2));
  else if (mask->type.rank == 3)
    *out = lp_rw_unsqueeze(r, lp_rw_cast(r, mask, LP_BOOL), LP_RW_INTS(r, 1));
  else if (mask->type.rank == 4)
    *out = lp_rw_cast(r, square_mask(r, mask, query, total), LP_BOOL);
  else
    return lp_rw_refuse(r, "has a mask of more than 4 axes");
  return *out ? LP_OK : LP_FAILED;
}
