/* The size of a TensorProto, and its data when that lies in the model file itself. */
#include "frontend/onnx/importer.h"
#include "frontend/onnx/tensor.h"

/* Up to these sizes a tensor is an llmpart.constant with its data. The limit for integers is higher, because they are
 * shapes, indices and tables that fold reads. */
enum { SMALL_BYTES = 4096, SMALL_INTEGER_BYTES = 65536 };

typedef struct {
  lp_importer *im;
  const Onnx__TensorProto *tensor;
  lp_loc loc;
  const char *name;
  lp_tensor_data *out;
} check;

bool lp_tensor_is_small(const lp_tensor_data *t) {
  return t->bytes <= SMALL_BYTES || (!lp_dtype_is_float(t->dtype) && t->bytes <= SMALL_INTEGER_BYTES);
}

static lp_status check_shape(const check *c) {
  lp_tensor_data *t = c->out;
  lp_diag *diag = c->im->diag;
  if (!lp_dtype_from_onnx(c->tensor->data_type, &t->dtype))
    return lp_error(diag, c->loc, "tensor '%s' has elements of type '%s' (%d), which is not supported", c->name,
                    lp_onnx_dtype_name(c->tensor->data_type), (int)c->tensor->data_type);
  if (c->tensor->segment)
    return lp_error(diag, c->loc, "tensor '%s' is one segment of several, which is not supported", c->name);
  if (c->tensor->n_dims > LP_MAX_RANK)
    return lp_error(diag, c->loc, "tensor '%s' has %zu dimensions, at most %d are supported", c->name,
                    c->tensor->n_dims, LP_MAX_RANK);
  t->rank = (int32_t)c->tensor->n_dims;
  int64_t count = 1, bits;
  bool overflow = false, empty = false;
  for (int32_t i = 0; i < t->rank; i++) {
    t->dim[i] = c->tensor->dims[i];
    if (t->dim[i] < 0)
      return lp_error(diag, c->loc, "tensor '%s' has the negative dimension %" PRId64, c->name, t->dim[i]);
    empty = empty || t->dim[i] == 0;
    overflow = overflow || !lp_i64_mul(count, t->dim[i], &count);
  }
  if (empty) count = 0;
  if ((overflow && !empty) || !lp_i64_mul(count, lp_dtype_bits(t->dtype), &bits) || bits > INT64_MAX - 7)
    return lp_error(diag, c->loc, "the size of tensor '%s' overflows", c->name);
  t->bytes = (bits + 7) / 8;
  return LP_OK;
}

lp_status lp_tensor_wrong_size(lp_importer *im, lp_loc loc, const char *name, const lp_tensor_data *tensor,
                               uint64_t found) {
  LP_OWNED(lp_buf_free) lp_buf shape = {0};
  for (int32_t i = 0; i < tensor->rank; i++)
    lp_buf_printf(&shape, "%s%" PRId64, i ? "x" : "", tensor->dim[i]);
  return lp_error(im->diag, loc, "tensor '%s' of %s[%s] takes %" PRId64 " bytes, its data has %" PRIu64, name,
                  lp_dtype_name(tensor->dtype), lp_buf_text(&shape), tensor->bytes, found);
}

static lp_status wrong_size(const check *c, uint64_t found) {
  return lp_tensor_wrong_size(c->im, c->loc, c->name, c->out, found);
}

static lp_status check_span(const check *c) {
  lp_byte_range span;
  if (c->tensor->raw_data.len != sizeof span) return lp_error(c->im->diag, c->loc, "tensor '%s' is damaged", c->name);
  memcpy(&span, c->tensor->raw_data.data, sizeof span);
  if (span.length != (uint64_t)c->out->bytes) return wrong_size(c, span.length);
  if (span.offset > c->im->size || span.length > c->im->size - span.offset)
    return lp_error(c->im->diag, c->loc, "tensor '%s' is damaged", c->name);
  c->out->file = c->im->file;
  c->out->offset = (int64_t)span.offset;
  c->out->data = c->im->data + span.offset;
  return LP_OK;
}

/* Reads data from the field of its type. Narrow types take one int32 for each element. */
static lp_status check_fields(const check *c) {
  const Onnx__TensorProto *t = c->tensor;
  int32_t bits = lp_dtype_bits(c->out->dtype);
  size_t width = bits < 8 ? 1 : (size_t)bits / 8;
  const void *source = NULL;
  size_t count = 0, source_width = width;
  switch (c->out->dtype) {
  case LP_F32:
    source = t->float_data, count = t->n_float_data;
    break;
  case LP_F64:
    source = t->double_data, count = t->n_double_data;
    break;
  case LP_I64:
    source = t->int64_data, count = t->n_int64_data;
    break;
  case LP_U32:
  case LP_U64:
    source = t->uint64_data, count = t->n_uint64_data, source_width = 8;
    break;
  default:
    source = t->int32_data, count = t->n_int32_data, source_width = 4;
    break;
  }
  /* Packed types: an int32 holds one byte of elements, as raw_data would. */
  if (count * width != (size_t)c->out->bytes) return wrong_size(c, count * width);
  uint8_t *data = lp_arena_alloc(c->im->scratch, count * width + 1);
  for (size_t i = 0; i < count; i++) /* little-endian: the low bytes come first */
    memcpy(data + i * width, (const uint8_t *)source + i * source_width, width);
  c->out->data = data;
  return LP_OK;
}

lp_status lp_tensor_size(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                         lp_tensor_data *out) {
  *out = (lp_tensor_data){0};
  check c = {im, tensor, loc, name, out};
  return check_shape(&c);
}

lp_status lp_tensor_own_data(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                             lp_tensor_data *out) {
  check c = {im, tensor, loc, name, out};
  return tensor->has_raw_data ? check_span(&c) : check_fields(&c);
}
