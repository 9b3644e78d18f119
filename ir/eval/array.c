/* Arrays of the reference interpreter: elements of any dtype as doubles or 64-bit integers. */
#include "base/number.h"
#include "base/poly.h"
#include "ir/eval/eval.h"

#include <math.h>

/* A tensor with more elements is a mistake in the model or an attack, not a test. */
enum { MAX_ELEMENTS = 1 << 30 };

lp_status lp_eval_fail(const lp_eval *e, const char *format, ...) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  va_list args;
  va_start(args, format);
  lp_buf_vprintf(&text, format, args);
  va_end(args);
  return lp_error(e->diag, e->op->loc, "%s", lp_buf_text(&text));
}

/* ---- elements ---- */

int64_t lp_array_numel(const lp_array *array) {
  int64_t count = 1;
  for (int32_t i = 0; i < array->rank; i++)
    count *= array->dim[i];
  return count;
}

size_t lp_array_bytes(const lp_array *array) {
  return ((size_t)lp_array_numel(array) * (size_t)lp_dtype_bits(array->dtype) + 7) / 8;
}

static lp_tensor as_tensor(const lp_array *array) {
  return (lp_tensor){.type = {.dtype = array->dtype}, .data = array->data};
}

int64_t lp_array_i64(const lp_array *array, int64_t index) {
  lp_tensor tensor = as_tensor(array);
  return lp_tensor_i64(&tensor, index);
}

double lp_array_f64(const lp_array *array, int64_t index) {
  if (array->dtype == LP_F32) return (double)((const float *)array->data)[index];
  lp_tensor tensor = as_tensor(array);
  return lp_tensor_f64(&tensor, index);
}

void lp_array_set_i64(lp_array *array, int64_t index, int64_t value) {
  void *data = array->data;
  switch (array->dtype) {
  case LP_I64:
  case LP_U64:
    ((int64_t *)data)[index] = value;
    return;
  case LP_I32:
  case LP_U32:
    ((uint32_t *)data)[index] = (uint32_t)value;
    return;
  case LP_I16:
  case LP_U16:
    ((uint16_t *)data)[index] = (uint16_t)value;
    return;
  case LP_I8:
  case LP_U8:
    ((uint8_t *)data)[index] = (uint8_t)value;
    return;
  case LP_BOOL:
    ((uint8_t *)data)[index] = value != 0;
    return;
  case LP_I4:
  case LP_U4:
  case LP_I2:
  case LP_U2:
    lp_packed_set(data, array->dtype, index, value);
    return;
  default:
    lp_array_set_f64(array, index, (double)value);
  }
}

static int64_t to_integer(double value) {
  if (isnan(value)) return 0;
  if (value >= 0x1p63) return INT64_MAX;
  if (value <= -0x1p63) return INT64_MIN;
  return (int64_t)value;
}

void lp_array_set_mini(lp_array *array, int64_t index, double value, bool saturate) {
  lp_mini mini = lp_dtype_mini(array->dtype);
  if (mini == LP_MINI_E8M0)
    ((uint8_t *)array->data)[index] = (uint8_t)lp_e8m0_encode((float)value, LP_E8M0_UP, saturate);
  else if (mini == LP_MINI_E2M1)
    lp_packed_set(array->data, array->dtype, index, lp_mini_encode((float)value, mini, true));
  else
    ((uint8_t *)array->data)[index] = (uint8_t)lp_mini_encode((float)value, mini, saturate);
}

void lp_array_set_f64(lp_array *array, int64_t index, double value) {
  void *data = array->data;
  switch (array->dtype) {
  case LP_F32:
    ((float *)data)[index] = (float)value;
    return;
  case LP_F64:
    ((double *)data)[index] = value;
    return;
  case LP_F16:
    ((uint16_t *)data)[index] = lp_f32_to_f16((float)value);
    return;
  case LP_BF16:
    ((uint16_t *)data)[index] = lp_f32_to_bf16((float)value);
    return;
  case LP_BOOL:
    ((uint8_t *)data)[index] = value != 0.0;
    return;
  default:
    if (lp_dtype_is_mini(array->dtype))
      lp_array_set_mini(array, index, value, true);
    else
      lp_array_set_i64(array, index, to_integer(value));
  }
}

void lp_array_copy(lp_array *to, int64_t at, const lp_array *from, int64_t index) {
  size_t bits = (size_t)lp_dtype_bits(to->dtype);
  if (bits < 8) {
    lp_packed_set(to->data, to->dtype, at, lp_packed_get(from->data, to->dtype, index));
    return;
  }
  memcpy((char *)to->data + (size_t)at * bits / 8, (const char *)from->data + (size_t)index * bits / 8, bits / 8);
}

/* ---- operands and results ---- */

const lp_array *lp_eval_in(const lp_eval *e, int32_t index) {
  return index < e->op->in_count ? e->in[index] : NULL;
}

lp_status lp_eval_need(const lp_eval *e, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (!lp_eval_in(e, i)) return lp_eval_fail(e, "input %d is missing", i);
  return LP_OK;
}

lp_status lp_eval_out(const lp_eval *e, int32_t index, lp_dtype dtype, int32_t rank, const int64_t *dim,
                      lp_array **out) {
  int64_t count = 1;
  if (rank > LP_MAX_RANK) return lp_eval_fail(e, "its result has %d axes, at most %d are supported", rank, LP_MAX_RANK);
  *out = index < e->op->out_count ? &e->out[index] : LP_NEW(e->arena, lp_array);
  **out = (lp_array){.dtype = dtype, .rank = rank};
  for (int32_t i = 0; i < rank; i++) {
    (*out)->dim[i] = dim[i];
    if (dim[i] < 0) return lp_eval_fail(e, "axis %d of its result would have the size %" PRId64, i, dim[i]);
    if (!lp_i64_mul(count, dim[i], &count) || count > MAX_ELEMENTS)
      return lp_eval_fail(e, "its result has more than %d elements", MAX_ELEMENTS);
  }
  (*out)->data = lp_arena_array(e->arena, (size_t)count + 1, (size_t)(lp_dtype_bits(dtype) + 7) / 8);
  return LP_OK;
}

lp_status lp_eval_out_typed(const lp_eval *e, int32_t index, lp_array **out) {
  lp_type type = e->op->out[index]->type;
  int64_t dim[LP_MAX_RANK];
  for (int32_t i = 0; i < type.rank; i++)
    dim[i] = lp_poly_eval(type.dim[i], e->sym, e->m->symbols.names.count);
  return lp_eval_out(e, index, type.dtype, type.rank, dim, out);
}

lp_status lp_eval_begins(const lp_eval *e) {
  const lp_symbol p = lp_symbols_find(&e->m->symbols, "p");
  if (p == 0 || e->sym[p - 1] == 0) return LP_OK;
  return lp_eval_fail(e, "the past of cache %" PRId64 " is not bound", lp_op_state(e->op));
}

double *lp_eval_doubles(const lp_eval *e, const lp_array *array) {
  int64_t count = lp_array_numel(array);
  double *values = LP_NEW_ARRAY(e->arena, double, count + 1);
  for (int64_t i = 0; i < count; i++)
    values[i] = lp_array_f64(array, i);
  return values;
}

lp_status lp_eval_i64s(const lp_eval *e, int32_t index, int64_t *values, int32_t room, int32_t *count) {
  const lp_array *array = lp_eval_in(e, index);
  if (!array) return lp_eval_fail(e, "input %d is missing", index);
  int64_t found = lp_array_numel(array);
  if (found > room) return lp_eval_fail(e, "input %d has %" PRId64 " elements, at most %d wanted", index, found, room);
  *count = (int32_t)found;
  for (int32_t i = 0; i < *count; i++)
    values[i] = lp_array_i64(array, i);
  return LP_OK;
}

lp_status lp_eval_axis(const lp_eval *e, int64_t axis, int32_t rank, int32_t *out) {
  if (axis < -rank || axis >= rank) return lp_eval_fail(e, "axis %" PRId64 " of a tensor with %d axes", axis, rank);
  *out = (int32_t)(axis < 0 ? axis + rank : axis);
  return LP_OK;
}

/* ---- broadcasting ---- */

lp_status lp_eval_broadcast(const lp_eval *e, int32_t *rank, int64_t *dim, int32_t with_rank, const int64_t *with) {
  int64_t result[LP_MAX_RANK];
  int32_t all = *rank > with_rank ? *rank : with_rank;
  for (int32_t i = 1; i <= all; i++) {
    int64_t a = i <= *rank ? dim[*rank - i] : 1, b = i <= with_rank ? with[with_rank - i] : 1;
    if (a != b && a != 1 && b != 1) return lp_eval_fail(e, "sizes %" PRId64 " and %" PRId64 " do not broadcast", a, b);
    result[all - i] = a == 1 ? b : a;
  }
  *rank = all;
  memcpy(dim, result, (size_t)all * sizeof *dim);
  return LP_OK;
}

int64_t lp_broadcast_index(const lp_array *array, int64_t at, int32_t rank, const int64_t *dim) {
  int64_t stride = 1, offset = 0;
  for (int32_t i = 1; i <= array->rank; i++) {
    int64_t own = array->dim[array->rank - i], size = dim[rank - i];
    if (own > 1) offset += at % size * stride;
    stride *= own;
    at /= size;
  }
  return offset;
}

void lp_array_split(const lp_array *array, int32_t axis, int64_t *outer, int64_t *size, int64_t *inner) {
  *outer = *inner = 1;
  for (int32_t i = 0; i < axis; i++)
    *outer *= array->dim[i];
  for (int32_t i = axis + 1; i < array->rank; i++)
    *inner *= array->dim[i];
  *size = axis < array->rank ? array->dim[axis] : 1;
}
