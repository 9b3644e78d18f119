/* The header of a GGUF file: metadata by key, tensors by name. Everything points into the mapped bytes.
 * Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian. */
#pragma once

#include "base/base.h"
#include "base/map.h"

typedef enum {
  LP_GGUF_U8,
  LP_GGUF_I8,
  LP_GGUF_U16,
  LP_GGUF_I16,
  LP_GGUF_U32,
  LP_GGUF_I32,
  LP_GGUF_F32,
  LP_GGUF_BOOL,
  LP_GGUF_STRING,
  LP_GGUF_ARRAY,
  LP_GGUF_U64,
  LP_GGUF_I64,
  LP_GGUF_F64,
  LP_GGUF_TYPE_COUNT
} lp_gguf_type;

typedef struct {
  const char *data; /* not NUL-terminated */
  size_t size;
} lp_gguf_text;

/* One value, or the elements of an array. */
typedef struct {
  const char *key;
  lp_gguf_type type; /* of the elements */
  bool is_array;
  uint64_t count;
  const uint8_t *data;      /* numbers, side by side */
  const lp_gguf_text *text; /* [count], of strings */
} lp_gguf_value;

enum { LP_GGUF_MAX_RANK = 4 };

typedef struct {
  const char *name;
  int32_t rank;
  int64_t dim[LP_GGUF_MAX_RANK]; /* the fastest axis last; the file has it first */
  uint32_t type;                 /* of ggml */
  uint64_t offset;               /* in the file */
} lp_gguf_tensor;

typedef struct {
  const char *path;
  const uint8_t *data;
  size_t size;
  lp_arena *arena;
  lp_map *values; /* key -> lp_gguf_value */
  size_t tensor_count;
  lp_gguf_tensor *tensor;
} lp_gguf;

/* Reads the header; `file` holds path, data, size and the arena, and is released with lp_gguf_release. */
LP_MUST_USE lp_status lp_gguf_read(lp_gguf *file, lp_diag *diag);
void lp_gguf_release(lp_gguf *file);
/* Names a key that has another type than the one that is read (keys.c). */
LP_MUST_USE lp_status lp_gguf_check_types(const lp_gguf *file, lp_diag *diag);

bool lp_gguf_is_read(const lp_gguf *file, const char *key); /* keys.c */

const lp_gguf_value *lp_gguf_find(const lp_gguf *file, const char *key); /* NULL: absent */
/* Returns `otherwise` when the key is absent or not a single value of this type. */
int64_t lp_gguf_i64(const lp_gguf *file, const char *key, int64_t otherwise);
double lp_gguf_f64(const lp_gguf *file, const char *key, double otherwise);
bool lp_gguf_bool(const lp_gguf *file, const char *key, bool otherwise);
/* Returns the text in the arena; NULL when the key is absent, is not a single text, or holds NUL. */
const char *lp_gguf_string(const lp_gguf *file, const char *key);
/* Returns element `index` of an array, or the value itself at 0. */
double lp_gguf_number(const lp_gguf_value *value, uint64_t index);
