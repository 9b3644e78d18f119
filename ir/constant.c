/* Constants, weights and parts of them. Small data is held; large data stays in its file, which is mapped at the first
 * use. */
#include "base/file.h"
#include "base/map.h"
#include "base/number.h"
#include "base/path.h"
#include "ir/blocks.h"
#include "ir/ir.h"
#include "ir/ir_internal.h"

#include <assert.h>

lp_op *lp_constant_create(lp_module *module, lp_loc loc, lp_tensor tensor) {
  lp_op *op = lp_op_create(module, LP_OP_CONSTANT, loc, 0, NULL, 1, &tensor.type);
  lp_op_set_tensor(module, op, "value", tensor);
  return op;
}

lp_op *lp_weight_create(lp_module *module, lp_loc loc, lp_type type, const char *file, int64_t offset, int64_t length) {
  lp_op *op = lp_op_create(module, LP_OP_WEIGHT, loc, 0, NULL, 1, &type);
  lp_op_set_str(module, op, "file", file);
  lp_op_set_i64(module, op, "offset", offset);
  lp_op_set_i64(module, op, "length", length);
  return op;
}

bool lp_value_is_constant(const lp_value *value) {
  return value && lp_op_has(value->def, LP_CONSTANT);
}

bool lp_value_constant(const lp_value *value, lp_tensor *out) {
  if (!value || !lp_op_is(value->def, LP_OP_CONSTANT)) return false;
  *out = lp_op_attr(value->def, "value")->tensor;
  return true;
}

/* Files that the importer has not mapped must lie in the module's folder. A module read from text has no more rights
 * than a model. */
static lp_status source_open(lp_module *module, lp_loc loc, const char *file, const lp_mapping **out, lp_diag *diag) {
  if (!file[0]) file = lp_path_base(module->name);
  lp_mapping *mapping = lp_map_get(module->sources, file);
  if (!mapping) {
    const char *why;
    mapping = LP_NEW(module->arena, lp_mapping);
    lp_found found = lp_file_map_beneath(module->directory, file, mapping, &why);
    if (found == LP_FILE_ABSENT) return lp_error(diag, loc, "its weight file '%s' does not exist", file);
    if (found == LP_FILE_REFUSED) return lp_error(diag, loc, "its weight file '%s' %s", file, why);
    lp_map_put(module->sources, file, mapping);
  }
  *out = mapping;
  return LP_OK;
}

/* Writes a matrix [rows][columns] that is stored as [columns][rows], in tiles that fit a first-level cache. */
static void turn(const uint8_t *from, int64_t rows, int64_t columns, size_t element, uint8_t *out) {
  enum { TILE = 32 };
  for (int64_t top = 0; top < rows; top += TILE)
    for (int64_t left = 0; left < columns; left += TILE)
      for (int64_t row = top; row < rows && row < top + TILE; row++)
        for (int64_t column = left; column < columns && column < left + TILE; column++)
          memcpy(out + (size_t)(row * columns + column) * element, from + (size_t)(column * rows + row) * element,
                 element);
}

/* Where the parts of a stack lie: in memory, or in files. */
typedef struct {
  lp_module *module;
  int64_t parts, rows, columns, bytes; /* [rows][columns] of a part of the result */
  size_t element;
  bool turned;
} stack;

static lp_op *stack_constants(const stack *s, lp_loc loc, lp_type type, lp_value *const *values, int64_t count) {
  lp_tensor tensor, part;
  uint8_t *data = lp_arena_alloc(s->module->arena, (size_t)(s->parts * s->bytes) + 1);
  for (int64_t i = 0; i < s->parts; i++) {
    if (!lp_value_constant(values[count == 1 ? 0 : i], &part)) return NULL;
    const uint8_t *from = (const uint8_t *)part.data + (count == 1 ? i * s->bytes : 0);
    if (s->turned)
      turn(from, s->rows, s->columns, s->element, data + i * s->bytes);
    else
      memcpy(data + i * s->bytes, from, (size_t)s->bytes);
  }
  tensor = (lp_tensor){type, data, (size_t)(s->parts * s->bytes)};
  return lp_constant_create(s->module, loc, tensor);
}

static lp_op *stack_weights(const stack *s, lp_loc loc, lp_type type, lp_value *const *values, int64_t count) {
  lp_arena *arena = s->module->arena;
  const char **files = LP_NEW_ARRAY(arena, const char *, s->parts);
  int64_t *offsets = LP_NEW_ARRAY(arena, int64_t, s->parts);
  bool together = !s->turned;
  for (int64_t i = 0; i < s->parts; i++) {
    const lp_op *op = values[count == 1 ? 0 : i]->def;
    if (op->kind != LP_OP_WEIGHT || lp_op_attr(op, "offsets") || lp_op_attr(op, "blocks") ||
        lp_op_i64(op, "length", 0) != s->bytes * (count == 1 ? s->parts : 1))
      return NULL;
    files[i] = lp_op_str(op, "file", "");
    offsets[i] = lp_op_i64(op, "offset", 0) + (count == 1 ? i * s->bytes : 0);
    together &= lp_streq(files[i], files[0]) && offsets[i] == offsets[0] + i * s->bytes;
  }
  lp_op *op = lp_weight_create(s->module, loc, type, files[0], offsets[0], s->parts * s->bytes);
  if (together) return op;
  lp_op_set_strs(s->module, op, "files", files, (int32_t)s->parts);
  lp_op_set_i64s(s->module, op, "offsets", offsets, (int32_t)s->parts);
  if (s->turned) lp_op_set_bool(s->module, op, "turned", true);
  return op;
}

lp_op *lp_constant_stack(lp_module *module, lp_loc loc, int64_t parts, lp_value *const *values, int64_t count,
                         bool turned) {
  const lp_type one = values[0]->type;
  const int32_t axis = one.rank - 2, bits = lp_dtype_bits(one.dtype);
  stack s = {.module = module, .parts = parts, .element = (size_t)bits / 8, .turned = turned};
  int64_t dim[2] = {1, 1}, all;
  const bool fits = count == 1 ? axis == 1 : axis == 0 || (axis >= -1 && !turned);
  bool known = axis < 0 || lp_type_static_dim(one, axis, &dim[0]);
  for (int32_t i = 0; i < axis && count > 1; i++)
    known = known && lp_type_static_dim(one, i, &all) && lp_i64_mul(dim[0], all, &dim[0]);
  if (!fits || bits % 8 != 0 || !known || !lp_type_static_dim(one, -1, &dim[1]) ||
      !lp_i64_mul(dim[0], dim[1], &s.bytes) || !lp_i64_mul(s.bytes, bits / 8, &s.bytes) ||
      !lp_i64_mul(s.bytes, parts, &all))
    return NULL;
  for (int64_t i = 1; i < count; i++)
    if (!lp_type_equal(values[i]->type, one) || values[i]->def->kind != values[0]->def->kind) return NULL;
  s.rows = dim[turned ? 1 : 0];
  s.columns = dim[turned ? 0 : 1];
  const lp_type type = lp_type_static(module, one.dtype, 2, (int64_t[]){parts * s.rows, s.columns});
  return values[0]->def->kind == LP_OP_CONSTANT ? stack_constants(&s, loc, type, values, count)
                                                : stack_weights(&s, loc, type, values, count);
}

/* The type of `count` of the `parts` equal parts of a constant along its first axis; false where there are none. */
static bool part_type(lp_module *module, const lp_value *whole, int64_t parts, int64_t count, lp_type *out) {
  int64_t dim[LP_MAX_RANK];
  for (int32_t i = 0; i < whole->type.rank; i++)
    if (!lp_type_static_dim(whole->type, i, &dim[i])) return false;
  if (!lp_type_divides(whole->type, 0, parts)) return false;
  dim[0] = dim[0] / parts * count;
  *out = lp_type_static(module, whole->type.dtype, whole->type.rank, dim);
  return true;
}

static lp_op *select_constant(lp_module *module, const lp_op *op, lp_type type, int64_t parts, const int64_t *part,
                              int64_t count) {
  const lp_tensor from = lp_op_attr(op, "value")->tensor;
  const size_t bytes = from.bytes / (size_t)parts;
  uint8_t *data = lp_arena_alloc(module->arena, bytes * (size_t)count + 1);
  for (int64_t i = 0; i < count; i++)
    memcpy(data + (size_t)i * bytes, (const uint8_t *)from.data + (size_t)part[i] * bytes, bytes);
  return lp_constant_create(module, op->loc, (lp_tensor){type, data, bytes * (size_t)count});
}

/* The new weight has a file and an offset for each chosen part: those of the whole one, or others computed from it. */
static lp_op *select_weight(lp_module *module, const lp_op *op, lp_type type, int64_t parts, const int64_t *part,
                            int64_t count) {
  static const char *const kept[] = {"blocks", "turned", "scale_of"};
  const lp_attr *files = lp_op_attr(op, "files"), *offsets = lp_op_attr(op, "offsets");
  const int64_t length = lp_op_i64(op, "length", 0), bytes = length / parts;
  const char **file = LP_NEW_ARRAY(module->arena, const char *, count);
  int64_t *offset = LP_NEW_ARRAY(module->arena, int64_t, count);
  if (length % parts != 0 || (offsets && (!files || offsets->count != parts || files->count != parts))) return NULL;
  for (int64_t i = 0; i < count; i++) {
    file[i] = offsets ? files->ss[part[i]] : lp_op_str(op, "file", "");
    offset[i] = offsets ? offsets->is[part[i]] : lp_op_i64(op, "offset", 0) + part[i] * bytes;
  }
  lp_op *own = lp_weight_create(module, op->loc, type, file[0], offset[0], bytes * count);
  for (size_t i = 0; i < LP_COUNT(kept); i++)
    if (lp_op_attr(op, kept[i])) lp_op_set_attr(module, own, lp_op_attr(op, kept[i]));
  if (count == 1 && !lp_op_bool(op, "turned", false)) return own;
  lp_op_set_strs(module, own, "files", file, (int32_t)count);
  lp_op_set_i64s(module, own, "offsets", offset, (int32_t)count);
  return own;
}

lp_value *lp_constant_select(lp_module *module, const lp_value *whole, int64_t parts, const int64_t *at,
                             int64_t count) {
  const lp_op *op = whole->def;
  lp_type type;
  if ((op->kind != LP_OP_CONSTANT && op->kind != LP_OP_WEIGHT) || count < 1 ||
      !part_type(module, whole, parts, count, &type))
    return NULL;
  lp_op *own = op->kind == LP_OP_CONSTANT ? select_constant(module, op, type, parts, at, count)
                                          : select_weight(module, op, type, parts, at, count);
  if (!own) return NULL;
  own->out[0]->name = whole->name;
  return own->out[0];
}

lp_value *lp_constant_part(lp_module *module, const lp_value *whole, int64_t part, int64_t parts) {
  const lp_op *op = whole->def;
  const bool is_apart = lp_op_is(op, LP_OP_WEIGHT) && lp_op_attr(op, "offsets") && whole->type.rank == 2;
  return is_apart ? lp_constant_select(module, whole, parts, &part, 1) : NULL;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* A constant cut along an axis: `outer` runs of `parts` chunks of `chunk` bytes each. */
typedef struct {
  size_t outer, chunk;
  int64_t parts;
} cut;

static bool cut_along(lp_type type, int32_t axis, int64_t parts, cut *out) {
  size_t bits = (size_t)lp_dtype_bits(type.dtype);
  *out = (cut){.outer = 1, .parts = parts};
  if (axis < 0 || axis >= type.rank || parts < 1) return false;
  for (int32_t i = 0; i < type.rank; i++) {
    int64_t size;
    if (!lp_type_static_dim(type, i, &size) || size < 0 || (i == axis && size % parts != 0)) return false;
    if (i == axis) size /= parts;
    if (!lp_size_mul((size_t)size, i < axis ? out->outer : bits, i < axis ? &out->outer : &bits)) return false;
  }
  out->chunk = bits / 8;
  return bits % 8 == 0;
}

bool lp_type_divides(lp_type type, int32_t axis, int64_t parts) {
  cut ignored;
  return cut_along(type, axis, parts, &ignored);
}

static lp_status fail(const lp_op *op, const char *what, lp_diag *diag) {
  return lp_error(diag, op->loc, "'llmpart.shard': %s", what);
}

lp_status lp_shard_check(const lp_op *op, lp_diag *diag) {
  int64_t axis = lp_op_i64(op, "axis", -1), parts = lp_op_i64(op, "parts", 0), ranks = lp_op_i64(op, "ranks", 0);
  const lp_value *whole = lp_op_in(op, 0);
  if (!lp_value_is_constant(whole)) return fail(op, "its operand is no constant", diag);
  lp_type from = whole->type, to = op->out[0]->type;
  if (parts < 1 || ranks < 1 || ranks % parts != 0) return fail(op, "`parts` does not divide `ranks`", diag);
  if (axis < 0 || axis >= from.rank || !lp_type_divides(from, (int32_t)axis, parts))
    return fail(op, "its operand has no equal parts along the axis", diag);
  bool same = from.dtype == to.dtype && from.rank == to.rank;
  for (int32_t i = 0; same && i < to.rank; i++) {
    int64_t size = 0, part = 0;
    same = lp_type_static_dim(from, i, &size) && lp_type_static_dim(to, i, &part) &&
           part == (i == axis ? size / parts : size);
  }
  return same ? LP_OK : fail(op, "its result has not the type of a part", diag);
}

/* The part of module->rank of an llmpart.shard. */
static lp_status shard_data(lp_module *module, const lp_op *op, lp_tensor *out, lp_diag *diag) {
  const lp_value *whole = lp_op_in(op, 0);
  lp_tensor from;
  cut how;
  LP_TRY(lp_weight_data(module, whole, &from, diag));
  if (!cut_along(whole->type, (int32_t)lp_op_i64(op, "axis", 0), lp_op_i64(op, "parts", 1), &how))
    return fail(op, "its operand has no equal parts along the axis", diag);
  size_t part = (size_t)(module->rank * how.parts / lp_op_i64(op, "ranks", 1)), bytes = how.outer * how.chunk;
  if (from.bytes / (size_t)how.parts < bytes)
    return lp_error(diag, op->loc, "constant has %zu bytes, fewer than its shape takes", from.bytes);
  const char *data = (const char *)from.data + part * how.chunk;
  *out = (lp_tensor){op->out[0]->type, data, bytes};
  if (how.outer == 1) return LP_OK;
  char *copy = lp_alloc(bytes);
  for (size_t i = 0; i < how.outer; i++)
    memcpy(copy + i * how.chunk, data + i * how.chunk * (size_t)how.parts, how.chunk);
  lp_vec_push(&module->shards, copy);
  out->data = copy;
  return LP_OK;
}

/* Checks that a file, which a weight refers to, has `length` bytes at `offset`; `*mapped` is NULL if it is made. */
static lp_status range_check(lp_module *module, const lp_op *op, const char *file, int64_t offset, int64_t length,
                             const uint8_t **mapped, lp_diag *diag) {
  const lp_made_file *made = lp_map_get(module->made, file);
  const lp_mapping *mapping = NULL;
  int64_t end;
  if (!made) LP_TRY(source_open(module, op->loc, file, &mapping, diag));
  const size_t size = made ? made->size : mapping->size;
  if (!lp_i64_add(offset, length, &end) || offset < 0 || length < 0 || (uint64_t)end > size)
    return lp_error(diag, op->loc, "the weight needs %" PRId64 " bytes at offset %" PRId64 " of '%s', which has %zu",
                    length, offset, file, size);
  *mapped = made ? NULL : size > 0 ? mapping->data : (const uint8_t *)"";
  return LP_OK;
}

/* `length` bytes at `offset` of a file; those of a file that is made are in memory that lp_shards_release frees. */
static lp_status range_data(lp_module *module, const lp_op *op, const char *file, int64_t offset, int64_t length,
                            const uint8_t **out, lp_diag *diag) {
  LP_TRY(range_check(module, op, file, offset, length, out, diag));
  if (!*out) {
    const lp_made_file *made = lp_map_get(module->made, file);
    uint8_t *copy = lp_alloc(made->size + 1);
    made->make(made, copy);
    lp_vec_push(&module->shards, copy);
    *out = copy;
  }
  *out += offset;
  return LP_OK;
}

/* The size of the parts of a weight that are stored transposed: [rows][columns] of `element` bytes. */
static bool turned_size(const lp_op *op, int64_t parts, int64_t *rows, int64_t *columns, size_t *element) {
  const lp_type type = op->out[0]->type;
  const int bits = lp_dtype_bits(type.dtype);
  int64_t bytes;
  *element = (size_t)bits / 8;
  if (type.rank != 2 || bits % 8 != 0 || !lp_type_static_dim(type, 0, rows) || !lp_type_static_dim(type, 1, columns) ||
      *rows % parts != 0 || !lp_i64_mul(*rows, *columns, &bytes) || !lp_i64_mul(bytes, bits / 8, &bytes))
    return false;
  *rows /= parts;
  return bytes == lp_op_i64(op, "length", 0);
}

/* Joins the parts of a weight in memory that lp_shards_release frees. */
static lp_status joined_data(lp_module *module, const lp_op *op, lp_tensor *out, lp_diag *diag) {
  const lp_attr *files = lp_op_attr(op, "files"), *offsets = lp_op_attr(op, "offsets");
  int64_t length = lp_op_i64(op, "length", 0), count = offsets->count, part = count > 0 ? length / count : 0;
  if (!files || files->count != count || count < 1 || length < 0 || length % count != 0)
    return lp_error(diag, op->loc, "the weight has no file and no offset for each of its equal parts");
  const bool turned = lp_op_bool(op, "turned", false);
  int64_t rows = 0, columns = 0;
  size_t element = 0;
  if (turned && !turned_size(op, count, &rows, &columns, &element))
    return lp_error(diag, op->loc, "the weight's parts are not transposed matrices of whole elements");
  for (int64_t i = 0; i < count; i++) { /* before memory is taken, because a file may ask for any length */
    const uint8_t *from;
    LP_TRY(range_check(module, op, files->ss[i], offsets->is[i], part, &from, diag));
  }
  char *copy = lp_alloc((size_t)length + 1);
  lp_vec_push(&module->shards, copy);
  const size_t kept = module->shards.count;
  for (int64_t i = 0; i < count; i++) {
    const uint8_t *from;
    LP_TRY(range_data(module, op, files->ss[i], offsets->is[i], part, &from, diag));
    if (turned)
      turn(from, rows, columns, element, (uint8_t *)copy + i * part);
    else
      memcpy(copy + i * part, from, (size_t)part);
    if (module->shards.count > kept) free(module->shards.data[--module->shards.count]);
  }
  *out = (lp_tensor){op->out[0]->type, copy, (size_t)length};
  return LP_OK;
}

const lp_block_form *lp_weight_blocks(const lp_value *value) {
  const lp_op *op = value ? value->def : NULL;
  const lp_block_form *form = lp_op_is(op, LP_OP_WEIGHT) ? lp_block_form_named(lp_op_str(op, "blocks", NULL)) : NULL;
  int64_t rows, columns, blocks;
  if (!form || value->type.dtype != LP_F32 || value->type.rank != 2 || !lp_type_static_dim(value->type, 0, &rows) ||
      !lp_type_static_dim(value->type, 1, &columns) || columns % form->size != 0 ||
      !lp_i64_mul(rows, columns / form->size * form->bytes, &blocks) || blocks != lp_op_i64(op, "length", 0))
    return NULL;
  return form;
}

/* The values of blocks, in a copy. */
static lp_status decoded(lp_module *module, const lp_value *value, lp_tensor *out, lp_diag *diag) {
  const lp_block_form *form = lp_weight_blocks(value);
  LP_TRY(lp_weight_stored(module, value, out, diag));
  const int64_t count = (int64_t)out->bytes / form->bytes;
  float *copy = lp_alloc((size_t)(count * form->size) * sizeof *copy + 1);
  lp_blocks_decode(form, out->data, count, copy);
  lp_vec_push(&module->shards, copy);
  *out = (lp_tensor){value->type, copy, (size_t)(count * form->size) * sizeof *copy};
  return LP_OK;
}

lp_status lp_weight_data(lp_module *module, const lp_value *value, lp_tensor *out, lp_diag *diag) {
  if (lp_value_constant(value, out)) return LP_OK;
  if (value->def->kind == LP_OP_SHARD) return shard_data(module, value->def, out, diag);
  return lp_weight_blocks(value) ? decoded(module, value, out, diag) : lp_weight_stored(module, value, out, diag);
}

lp_status lp_weight_stored(lp_module *module, const lp_value *value, lp_tensor *out, lp_diag *diag) {
  const lp_op *op = value->def;
  assert(lp_op_is(op, LP_OP_WEIGHT));
  if (lp_op_attr(op, "offsets")) return joined_data(module, op, out, diag);
  const uint8_t *data;
  const int64_t length = lp_op_i64(op, "length", 0);
  LP_TRY(range_data(module, op, lp_op_str(op, "file", ""), lp_op_i64(op, "offset", 0), length, &data, diag));
  *out = (lp_tensor){value->type, data, (size_t)length};
  return LP_OK;
}

lp_status lp_weight_open(lp_module *module, const lp_op *op, lp_diag *diag) {
  const char *file = lp_op_str(op, "file", "");
  const lp_attr *files = lp_op_attr(op, "files");
  const lp_mapping *mapping;
  if (!lp_map_has(module->made, file)) LP_TRY(source_open(module, op->loc, file, &mapping, diag));
  for (int32_t i = 0; files && i < files->count; i++)
    if (!lp_map_has(module->made, files->ss[i])) LP_TRY(source_open(module, op->loc, files->ss[i], &mapping, diag));
  return LP_OK;
}

uint8_t lp_packed_get(const void *data, lp_dtype dtype, int64_t index) {
  int bits = lp_dtype_bits(dtype), in_byte = 8 / bits;
  return (uint8_t)(((const uint8_t *)data)[index / in_byte] >> (index % in_byte * bits) & ((1 << bits) - 1));
}

void lp_packed_set(void *data, lp_dtype dtype, int64_t index, int64_t value) {
  int bits = lp_dtype_bits(dtype), in_byte = 8 / bits, shift = (int)(index % in_byte) * bits, mask = (1 << bits) - 1;
  uint8_t *at = (uint8_t *)data + index / in_byte;
  *at = (uint8_t)((*at & ~(mask << shift)) | ((int)(value & mask) << shift));
}

/* An element of a machine that stores the lowest byte first, as all do that this runs on. */
static inline uint64_t bytes_at(const uint8_t *data, int64_t index, size_t size) {
  uint64_t bits = 0;
  memcpy(&bits, data + index * (int64_t)size, size);
  return bits;
}

int64_t lp_tensor_i64(const lp_tensor *tensor, int64_t index) {
  const uint8_t *at = tensor->data;
  switch (tensor->type.dtype) {
  case LP_I8:
    return (int8_t)at[index];
  case LP_U8:
    return at[index];
  case LP_BOOL:
    return at[index] != 0;
  case LP_I16:
    return (int16_t)bytes_at(at, index, 2);
  case LP_U16:
    return (uint16_t)bytes_at(at, index, 2);
  case LP_I32:
    return (int32_t)bytes_at(at, index, 4);
  case LP_U32:
    return (uint32_t)bytes_at(at, index, 4);
  case LP_I64:
  case LP_U64:
    return (int64_t)bytes_at(at, index, 8);
  case LP_U4:
  case LP_U2:
    return lp_packed_get(at, tensor->type.dtype, index);
  case LP_I4: {
    int64_t v = lp_packed_get(at, LP_I4, index);
    return v > 7 ? v - 16 : v;
  }
  case LP_I2: {
    int64_t v = lp_packed_get(at, LP_I2, index);
    return v > 1 ? v - 4 : v;
  }
  default:
    return (int64_t)lp_tensor_f64(tensor, index);
  }
}

double lp_tensor_f64(const lp_tensor *tensor, int64_t index) {
  const uint8_t *at = tensor->data;
  switch (tensor->type.dtype) {
  case LP_F32: {
    float v;
    memcpy(&v, at + 4 * index, 4);
    return (double)v;
  }
  case LP_F64: {
    double v;
    memcpy(&v, at + 8 * index, 8);
    return v;
  }
  case LP_F16:
    return (double)lp_f16_to_f32((uint16_t)bytes_at(at, index, 2));
  case LP_BF16:
    return (double)lp_bf16_to_f32((uint16_t)bytes_at(at, index, 2));
  case LP_U64:
    return (double)bytes_at(at, index, 8);
  case LP_F4E2M1:
    return (double)lp_mini_decode(lp_packed_get(at, LP_F4E2M1, index), LP_MINI_E2M1);
  case LP_F8E4M3FN:
  case LP_F8E4M3FNUZ:
  case LP_F8E5M2:
  case LP_F8E5M2FNUZ:
  case LP_F8E8M0:
    return (double)lp_mini_decode(at[index], lp_dtype_mini(tensor->type.dtype));
  default:
    return (double)lp_tensor_i64(tensor, index);
  }
}
