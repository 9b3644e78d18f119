/* Reads the header of a GGUF file: see file.h. */
#include "frontend/gguf/file.h"

enum { MOST_TENSORS = 1 << 20, MOST_VALUES = 1 << 16, MOST_ELEMENTS = 1 << 24, DEFAULT_ALIGNMENT = 32 };

typedef struct {
  lp_gguf *file;
  size_t at;
  lp_diag *diag;
} cursor;

static const size_t widths[LP_GGUF_TYPE_COUNT] = {
    [LP_GGUF_U8] = 1,  [LP_GGUF_I8] = 1,   [LP_GGUF_U16] = 2, [LP_GGUF_I16] = 2, [LP_GGUF_U32] = 4, [LP_GGUF_I32] = 4,
    [LP_GGUF_F32] = 4, [LP_GGUF_BOOL] = 1, [LP_GGUF_U64] = 8, [LP_GGUF_I64] = 8, [LP_GGUF_F64] = 8};

static lp_status damaged(const cursor *c, const char *what) {
  return lp_error(c->diag, LP_LOC_FILE(c->file->path), "not a GGUF file: %s at byte %zu", what, c->at);
}

static lp_status skip(cursor *c, uint64_t bytes, const uint8_t **out) {
  if (bytes > c->file->size - c->at) return damaged(c, "it ends");
  *out = c->file->data + c->at;
  c->at += (size_t)bytes;
  return LP_OK;
}

static lp_status read_number(cursor *c, size_t width, uint64_t *out) {
  const uint8_t *at;
  LP_TRY(skip(c, width, &at));
  *out = 0;
  for (size_t i = 0; i < width; i++)
    *out |= (uint64_t)at[i] << (8 * i);
  return LP_OK;
}

static lp_status read_text(cursor *c, lp_gguf_text *out) {
  uint64_t size;
  const uint8_t *at;
  LP_TRY(read_number(c, 8, &size));
  LP_TRY(skip(c, size, &at));
  *out = (lp_gguf_text){(const char *)at, (size_t)size};
  return LP_OK;
}

/* A key or a name, which holds no NUL. */
static lp_status read_name(cursor *c, const char **out) {
  lp_gguf_text text;
  LP_TRY(read_text(c, &text));
  if (memchr(text.data, 0, text.size)) return damaged(c, "a name holds NUL");
  *out = lp_arena_strndup(c->file->arena, text.data, text.size);
  return LP_OK;
}

static lp_status read_elements(cursor *c, lp_gguf_value *v) {
  if (v->type == LP_GGUF_STRING) {
    lp_gguf_text *list = LP_NEW_ARRAY(c->file->arena, lp_gguf_text, v->count + 1);
    for (uint64_t i = 0; i < v->count; i++)
      LP_TRY(read_text(c, &list[i]));
    v->text = list;
    return LP_OK;
  }
  return skip(c, v->count * widths[v->type], &v->data);
}

static lp_status read_value(cursor *c) {
  lp_gguf_value *v = LP_NEW(c->file->arena, lp_gguf_value);
  uint64_t type;
  LP_TRY(read_name(c, &v->key));
  LP_TRY(read_number(c, 4, &type));
  v->count = 1;
  if (type == LP_GGUF_ARRAY) {
    v->is_array = true;
    LP_TRY(read_number(c, 4, &type));
    LP_TRY(read_number(c, 8, &v->count));
  }
  if (type >= LP_GGUF_TYPE_COUNT || type == LP_GGUF_ARRAY) return damaged(c, "a value has an unknown type");
  /* Every element takes at least a byte, so that a small file cannot ask for much memory. */
  if (v->count > MOST_ELEMENTS || v->count > c->file->size - c->at) return damaged(c, "a list is too long");
  v->type = (lp_gguf_type)type;
  LP_TRY(read_elements(c, v));
  if (lp_map_put(c->file->values, v->key, v)) return damaged(c, "a key occurs twice");
  return LP_OK;
}

static lp_status read_tensor(cursor *c, lp_gguf_tensor *t) {
  uint64_t rank, dim, type;
  LP_TRY(read_name(c, &t->name));
  LP_TRY(read_number(c, 4, &rank));
  if (rank > LP_GGUF_MAX_RANK) return damaged(c, "a tensor has too many axes");
  t->rank = (int32_t)rank;
  for (int32_t i = t->rank - 1; i >= 0; i--) {
    LP_TRY(read_number(c, 8, &dim));
    if (dim > INT64_MAX / 8) return damaged(c, "a tensor is too large");
    t->dim[i] = (int64_t)dim;
  }
  LP_TRY(read_number(c, 4, &type));
  t->type = (uint32_t)type;
  return read_number(c, 8, &t->offset);
}

static lp_status read_all(cursor *c) {
  lp_gguf *f = c->file;
  uint64_t magic, version, tensors, values;
  LP_TRY(read_number(c, 4, &magic));
  if (magic != 0x46554747) return damaged(c, "it does not begin with GGUF");
  LP_TRY(read_number(c, 4, &version));
  if (version != 0 && (version & 0xFFFF) == 0)
    return lp_error(c->diag, LP_LOC_FILE(f->path), "a big-endian GGUF file is not supported");
  if (version != 2 && version != 3)
    return lp_error(c->diag, LP_LOC_FILE(f->path), "GGUF of version %" PRIu64 " is not supported: 2 or 3", version);
  LP_TRY(read_number(c, 8, &tensors));
  LP_TRY(read_number(c, 8, &values));
  if (tensors > MOST_TENSORS || tensors > f->size || values > MOST_VALUES)
    return damaged(c, "its counts are too large");
  for (uint64_t i = 0; i < values; i++)
    LP_TRY(read_value(c));
  f->tensor = LP_NEW_ARRAY(f->arena, lp_gguf_tensor, tensors + 1);
  for (; f->tensor_count < tensors; f->tensor_count++)
    LP_TRY(read_tensor(c, &f->tensor[f->tensor_count]));
  int64_t alignment = lp_gguf_i64(f, "general.alignment", DEFAULT_ALIGNMENT);
  if (alignment < 1 || alignment > 1 << 20) return damaged(c, "the alignment is not a valid size");
  uint64_t start = (c->at + (uint64_t)alignment - 1) / (uint64_t)alignment * (uint64_t)alignment;
  for (size_t i = 0; i < f->tensor_count; i++) {
    if (f->tensor[i].offset > f->size || start > f->size - f->tensor[i].offset)
      return lp_error(c->diag, LP_LOC_FILE(f->path), "tensor '%s' lies outside the file", f->tensor[i].name);
    f->tensor[i].offset += start;
  }
  return LP_OK;
}

lp_status lp_gguf_read(lp_gguf *file, lp_diag *diag) {
  cursor c = {.file = file, .diag = diag};
  file->values = lp_map_create();
  return read_all(&c);
}

void lp_gguf_release(lp_gguf *file) {
  lp_map_free(file->values);
  file->values = NULL;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

const lp_gguf_value *lp_gguf_find(const lp_gguf *file, const char *key) {
  return lp_map_get(file->values, key);
}

double lp_gguf_number(const lp_gguf_value *value, uint64_t index) {
  const uint8_t *at = value->data + index * widths[value->type];
  uint64_t bits = 0;
  for (size_t i = 0; i < widths[value->type]; i++)
    bits |= (uint64_t)at[i] << (8 * i);
  float single;
  double number;
  switch (value->type) {
  case LP_GGUF_F32:
    memcpy(&single, at, sizeof single);
    return (double)single;
  case LP_GGUF_F64:
    memcpy(&number, at, sizeof number);
    return number;
  case LP_GGUF_I8:
    return (int8_t)bits;
  case LP_GGUF_I16:
    return (int16_t)bits;
  case LP_GGUF_I32:
    return (int32_t)bits;
  case LP_GGUF_I64:
    return (double)(int64_t)bits;
  default:
    return (double)bits;
  }
}

static bool is_single(const lp_gguf_value *value, bool text) {
  return value && !value->is_array && (value->type == LP_GGUF_STRING) == text;
}

double lp_gguf_f64(const lp_gguf *file, const char *key, double otherwise) {
  const lp_gguf_value *value = lp_gguf_find(file, key);
  return is_single(value, false) ? lp_gguf_number(value, 0) : otherwise;
}

int64_t lp_gguf_i64(const lp_gguf *file, const char *key, int64_t otherwise) {
  double number = lp_gguf_f64(file, key, (double)otherwise);
  return number >= -9e15 && number <= 9e15 ? (int64_t)number : otherwise;
}

bool lp_gguf_bool(const lp_gguf *file, const char *key, bool otherwise) {
  return lp_gguf_i64(file, key, otherwise) != 0;
}

const char *lp_gguf_string(const lp_gguf *file, const char *key) {
  const lp_gguf_value *value = lp_gguf_find(file, key);
  if (!is_single(value, true) || memchr(value->text->data, 0, value->text->size)) return NULL;
  return lp_arena_strndup(file->arena, value->text->data, value->text->size);
}
