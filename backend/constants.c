/* Constants: their identity, their places, and the file weights.safetensors. Weights are mapped and written slice by
 * slice, so that a model is never in memory as a whole. */
#include "backend/constants.h"

#include "base/cores.h"
#include "base/file.h"
#include "base/json/writer.h"
#include "base/map.h"

#include <math.h>
#include <pthread.h>

void lp_constants_init(lp_constants *constants, lp_arena *arena) {
  *constants = (lp_constants){.arena = arena, .known = lp_map_create(), .names = lp_map_create()};
}

void lp_constants_release(lp_constants *constants) {
  lp_map_free(constants->known);
  lp_map_free(constants->names);
}

const char *lp_constants_name(lp_constants *constants, const char *base, const char *suffix) {
  const char *name = lp_arena_format(constants->arena, "%s%s", base, suffix);
  for (int n = 2; lp_map_has(constants->names, name); n++)
    name = lp_arena_format(constants->arena, "%s%s.%d", base, suffix, n);
  lp_map_put(constants->names, name, NULL);
  return name;
}

void lp_constants_place(lp_constants *constants, int (*rank_of)(const lp_stored_constant *stored), int classes) {
  for (int rank = 0; rank < classes; rank++)
    for (size_t i = 0; i < lp_map_count(constants->known); i++) {
      lp_stored_constant *stored = lp_map_value_at(constants->known, i);
      if (rank_of(stored) != rank) continue;
      stored->offset = constants->bytes;
      constants->bytes += stored->bytes;
    }
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* The format has no type under 8 bits: packed constants are bytes. */
static const char *safetensors_dtype(lp_dtype dtype) {
  static const char *const names[LP_DTYPE_COUNT] = {
      [LP_F32] = "F32", [LP_F16] = "F16", [LP_BF16] = "BF16", [LP_F64] = "F64", [LP_I8] = "I8",
      [LP_I16] = "I16", [LP_I32] = "I32", [LP_I64] = "I64",   [LP_U8] = "U8",   [LP_U16] = "U16",
      [LP_U32] = "U32", [LP_U64] = "U64", [LP_BOOL] = "BOOL"};
  return names[dtype] ? names[dtype] : "U8";
}

static void put_description(lp_json_writer *w, const lp_stored_constant *stored) {
  bool packed = lp_dtype_bits(stored->dtype) < 8;
  lp_json_put_object(w, stored->name);
  lp_json_put_text(w, "dtype", safetensors_dtype(stored->dtype));
  lp_json_put_array(w, "shape");
  if (packed) lp_json_put_integer(w, NULL, stored->bytes);
  for (int32_t k = 0; k < stored->rank && !packed; k++)
    lp_json_put_integer(w, NULL, stored->dim[k]);
  lp_json_put_end(w);
  lp_json_put_array(w, "data_offsets");
  lp_json_put_integer(w, NULL, stored->offset);
  lp_json_put_integer(w, NULL, stored->offset + stored->bytes);
  lp_json_put_end(w);
  lp_json_put_end(w);
}

/* Makes the length of the JSON text, then the text, padded with spaces so that the data begins at a multiple of 64
 * bytes. */
static lp_buf make_header(const lp_stored_constant *const *list, size_t count) {
  lp_buf text = {0}, header = {0};
  lp_json_writer json = lp_json_writer_begin(&text, (lp_json_style){.has_no_space = true});
  lp_json_put_object(&json, NULL);
  for (size_t i = 0; i < count; i++)
    put_description(&json, list[i]);
  lp_json_put_end(&json);
  while ((text.size + 8) % 64 != 0)
    lp_buf_puts(&text, " ");
  unsigned char length[8];
  for (int i = 0; i < 8; i++)
    length[i] = (unsigned char)((uint64_t)text.size >> (8 * i));
  lp_buf_append(&header, (const char *)length, sizeof length);
  lp_buf_append(&header, text.data, text.size);
  lp_buf_free(&text);
  return header;
}

static int by_offset(const void *a, const void *b) {
  const lp_stored_constant *x = *(const lp_stored_constant *const *)a, *y = *(const lp_stored_constant *const *)b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* an empty constant comes first */
}

lp_status lp_constants_write(const lp_constants *constants, lp_writer *writer, lp_constant_writer *write, void *user,
                             lp_diag *diag) {
  const uint64_t kept = lp_writer_offset(writer);
  lp_status status = LP_OK;
  size_t count = lp_map_count(constants->known);
  const lp_stored_constant **list = LP_NEW_ARRAY(constants->arena, const lp_stored_constant *, count + 1);
  for (size_t i = 0; i < count; i++)
    list[i] = lp_map_value_at(constants->known, i);
  qsort(list, count, sizeof *list, by_offset);
  LP_OWNED(lp_buf_free) lp_buf header = make_header(list, count);
  if (kept == 0) lp_writer_put(writer, header.data, header.size);
  for (size_t i = 0; i < count && status == LP_OK; i++) {
    if (header.size + (uint64_t)(list[i]->offset + list[i]->bytes) <= kept) continue;
    status = write(user, writer, list[i], diag);
    if (status == LP_OK) lp_writer_mark(writer);
  }
  return status;
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

typedef struct {
  const lp_units *units;
  lp_writer *writer; /* belongs to the thread of the turn that is put next */
  int64_t batch;     /* units of a turn */
  pthread_mutex_t lock;
  pthread_cond_t has_put;
  int64_t taken, put; /* turns */
} assembly;

/* Makes one turn after another, and puts each after the turn before it. */
static void *assemble(void *user) {
  assembly *a = user;
  const lp_units *units = a->units;
  LP_OWNED(lp_free_at) char *data = lp_alloc((size_t)a->batch * units->bytes), *scratch = lp_alloc(units->scratch + 1);
  (void)pthread_mutex_lock(&a->lock);
  for (int64_t turn; (turn = a->taken) * a->batch < units->count;) {
    const int64_t first = turn * a->batch, left = units->count - first, count = left < a->batch ? left : a->batch;
    a->taken++;
    (void)pthread_mutex_unlock(&a->lock);
    for (int64_t i = 0; i < count; i++)
      units->make(units->user, first + i, scratch, data + (size_t)i * units->bytes);
    (void)pthread_mutex_lock(&a->lock);
    while (a->put != turn)
      (void)pthread_cond_wait(&a->has_put, &a->lock);
    (void)pthread_mutex_unlock(&a->lock);
    lp_writer_put(a->writer, data, (size_t)count * units->bytes);
    (void)pthread_mutex_lock(&a->lock);
    a->put++;
    (void)pthread_cond_broadcast(&a->has_put);
  }
  (void)pthread_mutex_unlock(&a->lock);
  return NULL;
}

void lp_put_units(lp_writer *writer, const lp_units *units) {
  enum {
    TURN_BYTES = 1 << 18
  }; /* with fewer, threads wait for each other more often; with more, each takes more memory */
  const int64_t fit = units->bytes > 0 ? TURN_BYTES / (int64_t)units->bytes : 1;
  assembly a = {.units = units, .writer = writer, .batch = fit > 0 ? fit : 1};
  const int64_t turns = (units->count + a.batch - 1) / a.batch, cores = lp_machine_threads();
  (void)pthread_mutex_init(&a.lock, NULL);
  (void)pthread_cond_init(&a.has_put, NULL);
  lp_threads_run((int32_t)(turns < cores ? turns : cores), assemble, &a);
  (void)pthread_cond_destroy(&a.has_put);
  (void)pthread_mutex_destroy(&a.lock);
}

/* ---- one constant ------------------------------------------------------------------------------------------------ */

void lp_constant_identity(const lp_value *value, lp_buf *key) {
  lp_tensor tensor;
  const lp_op *op = value->def;
  if (op->kind == LP_OP_SHARD) {
    lp_constant_identity(lp_op_in(op, 0), key);
    lp_buf_printf(key, " shard %" PRId64 " of %" PRId64, lp_op_i64(op, "axis", 0), lp_op_i64(op, "parts", 1));
    return;
  }
  if (lp_value_constant(value, &tensor))
    lp_buf_printf(key, "data %" PRIx64 " %" PRIx64 " %zu", lp_hash_bytes(tensor.data, tensor.bytes, 1),
                  lp_hash_bytes(tensor.data, tensor.bytes, 2), tensor.bytes);
  else
    lp_buf_printf(key, "file %s %" PRId64 " %" PRId64, lp_op_str(op, "file", ""), lp_op_i64(op, "offset", 0),
                  lp_op_i64(op, "length", 0));
  const lp_attr *offsets = lp_op_attr(op, "offsets"), *files = lp_op_attr(op, "files");
  for (int32_t i = 0; offsets && files && i < offsets->count && i < files->count; i++)
    lp_buf_printf(key, " %s %" PRId64, files->ss[i], offsets->is[i]);
  lp_buf_printf(key, "%s %s", lp_op_bool(op, "turned", false) ? " turned" : "", lp_dtype_name(value->type.dtype));
}

/* Runtimes differ in what they compute with a scale that is infinite or NaN. */
static lp_status check_scale(const lp_value *value, const lp_tensor *tensor, int64_t count, lp_diag *diag) {
  if (value->def->kind == LP_OP_SHARD) value = lp_op_in(value->def, 0);
  const char *owner = lp_op_is(value->def, LP_OP_WEIGHT) ? lp_op_str(value->def, "scale_of", NULL) : NULL;
  for (int64_t i = 0; i < count && owner; i++)
    if (!isfinite(lp_tensor_f64(tensor, i)))
      return lp_error(diag, value->def->loc, "'%s' has a scale that is not finite", owner);
  return LP_OK;
}

lp_status lp_constant_data(lp_module *module, const lp_value *value, lp_tensor *out, lp_diag *diag) {
  int64_t numel;
  size_t bits;
  LP_TRY(lp_weight_data(module, value, out, diag));
  if (!lp_type_static_numel(value->type, &numel) ||
      !lp_size_mul((size_t)numel, (size_t)lp_dtype_bits(value->type.dtype), &bits) || out->bytes < (bits + 7) / 8)
    return lp_error(diag, value->def->loc, "constant has %zu bytes, fewer than its shape takes", out->bytes);
  out->bytes = (bits + 7) / 8;
  return check_scale(value, out, numel, diag);
}

lp_status lp_block_rows_open(lp_module *module, const lp_value *value, lp_block_rows *out, lp_diag *diag) {
  lp_tensor stored;
  *out = (lp_block_rows){.form = lp_weight_blocks(value)};
  if (!out->form) return LP_OK;
  LP_TRY(lp_weight_stored(module, value, &stored, diag));
  out->data = stored.data;
  return lp_type_static_dim(value->type, 1, &out->k) ? LP_OK : LP_FAILED;
}

void lp_block_rows_read(const lp_block_rows *rows, int64_t first, int64_t count, float *out) {
  const int64_t blocks = rows->k / rows->form->size;
  lp_blocks_decode(rows->form, rows->data + first * blocks * rows->form->bytes, count * blocks, out);
}

const float *lp_constant_squares(const lp_module *module, const lp_value *value, int64_t k) {
  const lp_input_squares *found =
      module->input_squares && value->name ? lp_map_get(module->input_squares, value->name) : NULL;
  return found && found->count == k ? found->mean : NULL;
}

void lp_static_shape(lp_type type, int64_t *dim) {
  for (int32_t i = 0; i < type.rank; i++)
    if (!lp_type_static_dim(type, i, &dim[i])) dim[i] = 0;
}

void lp_put_floats(lp_writer *writer, const lp_tensor *tensor, int64_t count) {
  enum { SLICE_ELEMENTS = 1 << 16 };
  LP_OWNED(lp_free_at) float *slice = lp_alloc(sizeof *slice * SLICE_ELEMENTS);
  for (int64_t i = 0; i < count;) {
    int64_t n = 0;
    for (; n < SLICE_ELEMENTS && i < count; n++, i++)
      slice[n] = (float)lp_tensor_f64(tensor, i);
    lp_writer_put(writer, slice, sizeof *slice * (size_t)n);
  }
}
