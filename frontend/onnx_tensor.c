/* TensorProto: checks that its bytes fit its shape and says where they lie. Large ones become references. */
#include "frontend/frontend_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Up to these sizes a tensor is an llmpart.constant with its data: integers are shapes, indices and tables that folding
 * wants to read. */
enum { SMALL_BYTES = 4096, SMALL_INTEGER_BYTES = 65536, MAX_PARTS = 64 };

typedef struct {
  bool present;
  int64_t size;
  lp_mapping mapping; /* of small data only */
} lp_external;

typedef struct {
  lp_importer *im;
  const Onnx__TensorProto *tensor;
  lp_loc loc;
  const char *name;
  lp_tensor_data *out;
} check;

static bool is_small(const lp_tensor_data *t) {
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

static lp_status wrong_size(const check *c, uint64_t found) {
  lp_buf shape = {0};
  for (int32_t i = 0; i < c->out->rank; i++)
    lp_buf_printf(&shape, "%s%" PRId64, i ? "x" : "", c->out->dim[i]);
  lp_status status =
      lp_error(c->im->diag, c->loc, "tensor '%s' of %s[%s] takes %" PRId64 " bytes, its data has %" PRIu64, c->name,
               lp_dtype_name(c->out->dtype), lp_buf_text(&shape), c->out->bytes, found);
  lp_buf_free(&shape);
  return status;
}

/* ---- data in the file ---- */

static lp_status check_span(const check *c) {
  lp_span span;
  if (c->tensor->raw_data.len != sizeof(span)) return lp_error(c->im->diag, c->loc, "tensor '%s' is damaged", c->name);
  memcpy(&span, c->tensor->raw_data.data, sizeof(span));
  if (span.length != (uint64_t)c->out->bytes) return wrong_size(c, span.length);
  if (span.offset > c->im->size || span.length > c->im->size - span.offset)
    return lp_error(c->im->diag, c->loc, "tensor '%s' is damaged", c->name);
  c->out->file = c->im->file;
  c->out->offset = (int64_t)span.offset;
  c->out->data = c->im->data + span.offset;
  return LP_OK;
}

/* Data in the fields of its type: narrow types lie one to an int32. */
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

/* ---- data in another file ---- */

static const char *external_entry(const Onnx__TensorProto *tensor, const char *key) {
  for (size_t i = 0; i < tensor->n_external_data; i++)
    if (lp_streq(lp_text(tensor->external_data[i]->key), key)) return lp_text(tensor->external_data[i]->value);
  return NULL;
}

/* Inside the model's folder: not absolute, no part "..". */
static bool is_inside(const char *location) {
  if (!location[0] || location[0] == '/') return false;
  for (const char *part = location; part; part = strchr(part, '/')) {
    if (*part == '/') part++;
    size_t length = strcspn(part, "/");
    if (length == 2 && part[0] == '.' && part[1] == '.') return false;
  }
  return true;
}

static lp_status external_number(const check *c, const char *key, int64_t otherwise, int64_t *out) {
  const char *text = external_entry(c->tensor, key);
  *out = otherwise;
  if (!text) return LP_OK;
  char *end;
  errno = 0;
  *out = strtoll(text, &end, 10);
  if (errno || end == text || *end || *out < 0)
    return lp_error(c->im->diag, c->loc, "tensor '%s': the external %s '%s' is not a size", c->name, key, text);
  return LP_OK;
}

static lp_external *open_external(lp_importer *im, const char *location) {
  lp_external *file = lp_map_get(im->external, location);
  if (file) return file;
  file = LP_NEW(im->scratch, lp_external);
  char *dir = lp_path_dir(im->path);
  char *path = lp_path_join(dir, location);
  struct stat info;
  file->present = stat(path, &info) == 0 && S_ISREG(info.st_mode);
  file->size = file->present ? (int64_t)info.st_size : 0;
  free(path);
  free(dir);
  lp_map_put(im->external, location, file);
  return file;
}

/* Small external data is read now: folding needs it. */
static lp_status read_external(const check *c, const char *location) {
  char *dir = lp_path_dir(c->im->path);
  char *path = lp_path_join(dir, location);
  lp_mapping mapping = {0};
  lp_status status = lp_file_map(path, &mapping, c->im->diag);
  if (status == LP_OK) {
    c->out->data = lp_arena_copy(c->im->scratch, mapping.data + c->out->offset, (size_t)c->out->bytes);
    lp_file_unmap(&mapping);
  }
  free(path);
  free(dir);
  return status;
}

static lp_status check_external(const check *c) {
  lp_diag *diag = c->im->diag;
  const char *location = external_entry(c->tensor, "location");
  int64_t length;
  if (!location) return lp_error(diag, c->loc, "tensor '%s' has external data without a location", c->name);
  if (!is_inside(location))
    return lp_error(diag, c->loc, "tensor '%s': its location '%s' is outside of the model's folder", c->name, location);
  LP_TRY(external_number(c, "offset", 0, &c->out->offset));
  LP_TRY(external_number(c, "length", c->out->bytes, &length));
  if (length != c->out->bytes) return wrong_size(c, (uint64_t)length);
  lp_external *file = open_external(c->im, location);
  if (!file->present && !c->im->weights_absent_ok)
    return lp_error(diag, c->loc, "tensor '%s': its file '%s' is not there", c->name, location);
  if (file->present && (c->out->offset > file->size || length > file->size - c->out->offset))
    return lp_error(diag, c->loc, "tensor '%s' ends at byte %" PRIu64 " of '%s', which has %" PRId64, c->name,
                    (uint64_t)c->out->offset + (uint64_t)length, location, file->size);
  c->out->file = lp_arena_strdup(c->im->scratch, location);
  if (!file->present || !is_small(c->out) || length == 0) return LP_OK;
  return read_external(c, location);
}

lp_status lp_tensor_check(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                          lp_tensor_data *out) {
  *out = (lp_tensor_data){0};
  check c = {im, tensor, loc, name, out};
  LP_TRY(check_shape(&c));
  if (tensor->has_data_location && tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
    return check_external(&c);
  return tensor->has_raw_data ? check_span(&c) : check_fields(&c);
}

/* ---- operators ---- */

lp_value *lp_import_constant(lp_importer *im, lp_loc loc, lp_dtype dtype, int32_t rank, const int64_t *dim,
                             const void *data, size_t bytes) {
  lp_tensor tensor = {.type = lp_type_static(im->module, dtype, rank, dim), .bytes = bytes};
  tensor.data = bytes > 0 ? lp_arena_copy(im->module->arena, data, bytes) : lp_arena_alloc(im->module->arena, 1);
  lp_op *op = lp_constant_create(im->module, loc, tensor);
  lp_op_append(im->block, op);
  im->node_count++;
  return lp_op_out(op, 0);
}

lp_status lp_import_tensor(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                           lp_value **out) {
  lp_tensor_data t;
  LP_TRY(lp_tensor_check(im, tensor, loc, name, &t));
  if (t.bytes == 0 || (t.data && (is_small(&t) || !t.file))) {
    *out = lp_import_constant(im, loc, t.dtype, t.rank, t.dim, t.data, (size_t)t.bytes);
  } else {
    lp_type type = lp_type_static(im->module, t.dtype, t.rank, t.dim);
    const char *file = lp_arena_strdup(im->module->arena, t.file);
    lp_op *op = lp_weight_create(im->module, loc, type, file, t.offset, t.bytes);
    lp_op_append(im->block, op);
    im->node_count++;
    *out = lp_op_out(op, 0);
  }
  (*out)->name = lp_arena_strdup(im->module->arena, name);
  return LP_OK;
}
