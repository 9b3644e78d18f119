/* The constants that a side's code reads, each stored once, and the file that holds them. */
#pragma once

#include "base/file.h"
#include "base/map.h"
#include "ir/blocks.h"

/* A constant in the form of weights.safetensors. A backend's constant is a struct that begins with this one. */
typedef struct {
  const char *name; /* unique in the file */
  lp_dtype dtype;   /* of the stored elements */
  int32_t rank;
  int64_t dim[LP_MAX_RANK];
  int64_t bytes, offset; /* from the start of the data section */
} lp_stored_constant;

typedef struct {
  lp_arena *arena;
  lp_map *known; /* key -> a backend's constant, in order of first use */
  lp_map *names; /* taken */
  int64_t bytes; /* the sum of all constants, set by lp_constants_place */
} lp_constants;

void lp_constants_init(lp_constants *constants, lp_arena *arena);
void lp_constants_release(lp_constants *constants);
/* Returns "BASE" and the suffix, with a number after it when another constant has that name. */
const char *lp_constants_name(lp_constants *constants, const char *base, const char *suffix);
/* Sets every offset. safetensors allows no gaps, so the order must give the alignment: `rank_of` gives each constant a
 * class below `classes`, and constants of a lower class come first. */
void lp_constants_place(lp_constants *constants, int (*rank_of)(const lp_stored_constant *stored), int classes);

/* Writes the elements of one constant. */
typedef lp_status lp_constant_writer(void *user, lp_writer *writer, const lp_stored_constant *stored, lp_diag *diag);
/* Puts the header, then every constant in order of offset, and marks the end of each (lp_writer_mark). What the writer
 * kept of the file ends at such a mark, and is not made again. */
LP_MUST_USE lp_status lp_constants_write(const lp_constants *constants, lp_writer *writer, lp_constant_writer *write,
                                         void *user, lp_diag *diag);

/* Appends a key of the constant's content, which differs for different content; reads no weight. */
void lp_constant_identity(const lp_value *value, lp_buf *key);
/* Maps the elements of a constant; fails unless all are there. */
LP_MUST_USE lp_status lp_constant_data(lp_module *module, const lp_value *value, lp_tensor *out, lp_diag *diag);
/* A matrix [n][k] of f32 that is stored in blocks. A caller decodes one row at a time, so that the whole matrix is
 * never in memory as floats. */
typedef struct {
  const lp_block_form *form; /* NULL: the constant is no such matrix */
  const uint8_t *data;
  int64_t k;
} lp_block_rows;
LP_MUST_USE lp_status lp_block_rows_open(lp_module *module, const lp_value *value, lp_block_rows *out, lp_diag *diag);
/* Writes rows first .. first + count: [count][k]. */
void lp_block_rows_read(const lp_block_rows *rows, int64_t first, int64_t count, float *out);
/* The mean squares [k] of what a weight of k rows is multiplied by; NULL: unknown. */
const float *lp_constant_squares(const lp_module *module, const lp_value *value, int64_t k);
/* A constant as `count` units of `bytes` each, such as panels. `make` fills `out` with one; it runs in several threads,
 * each of which has `scratch` bytes of its own. */
typedef struct {
  int64_t count;
  size_t bytes, scratch;
  void (*make)(const void *user, int64_t index, void *scratch, void *out);
  const void *user;
} lp_units;
/* Makes the units on all cores, and puts them in order: the bytes are the same for any number of threads. */
void lp_put_units(lp_writer *writer, const lp_units *units);
/* Fills the sizes of a type [rank]; 0 for sizes that are not constant. */
void lp_static_shape(lp_type type, int64_t *dim);
/* Writes `count` elements as f32, a slice at a time. */
void lp_put_floats(lp_writer *writer, const lp_tensor *tensor, int64_t count);
