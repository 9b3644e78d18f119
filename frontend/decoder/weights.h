/* The tensors of a checkpoint by name, and their values in a graph. */
#pragma once

#include "ir/blocks.h"

/* One tensor as it lies in a file that module->sources has mapped. */
typedef struct {
  const char *name, *file;
  lp_dtype dtype;
  int32_t rank;
  int64_t dim[LP_MAX_RANK]; /* row-major, the fastest last */
  int64_t offset, bytes;
  const lp_block_form *form; /* the blocks of values of `dtype`; NULL: elements */
  /* Of a matrix in codes of `dtype`: the codes along a row that share a scale, the files of scales, f32, and of zero
   * points, like the codes (NULL: none), both [rows][columns / group]; 0: it is in no codes. */
  int64_t group;
  const char *scales, *zeros;
  bool used;
} lp_stored;

typedef struct {
  lp_module *module;
  lp_block *block; /* the block to which operators are appended */
  lp_map *tensors; /* name -> lp_stored */
  const char *path;
  bool absent_ok; /* builds only the graph: no data is converted */
  /* There is no checkpoint, and every tensor that a function below is asked for is assumed in this type, except for
   * biases; LP_DTYPE_COUNT: the tensors are those of `tensors`. With absent_ok only. */
  lp_dtype assumed;
  lp_diag *diag;
} lp_weights;

/* Rows [first, first + rows) of the matrix `name`, which has `all` rows and `columns` columns, as the right operand of
 * a product: f32 [columns][rows]. With `transposed` the file stores it as [columns][rows], and all rows are taken. */
typedef struct {
  int64_t first, rows, all, columns;
  bool transposed;
} lp_weight_part;

/* Rows [first, first + rows) of the matrix of each expert, which has `all` rows and `columns` columns: one tensor
 * [experts][all][columns], or one for each expert. */
typedef struct {
  int64_t experts, first, rows, all, columns;
} lp_weight_stack;

/* Returns NULL when the file has no such tensor. */
lp_stored *lp_weights_find(const lp_weights *w, const char *name);
/* The bytes of its elements or blocks, as long as the module lives. */
const uint8_t *lp_weights_bytes(const lp_weights *w, const lp_stored *t);
/* Moves the tensor to `size` bytes of memory that the module keeps under a name of its own; `*data` is where the caller
 * writes them. */
LP_MUST_USE lp_status lp_weights_move(lp_weights *w, lp_stored *t, size_t size, uint8_t **data);
/* The functions below report a tensor that is absent, or has another shape or type. */
LP_MUST_USE lp_status lp_weights_matrix(lp_weights *w, const char *name, lp_weight_part part, lp_value **out);
/* The matrices of experts one after the other, as llmpart.Experts reads them; `names` has `count` names, one or as many
 * as there are experts. */
LP_MUST_USE lp_status lp_weights_stack(lp_weights *w, int64_t count, const char *const *names, lp_weight_stack part,
                                       lp_value **out);
/* The same rows of each head of one matrix [heads * all][columns]; `transposed`: each head's [columns][rows]. A matrix
 * in blocks becomes bf16. */
LP_MUST_USE lp_status lp_weights_heads(lp_weights *w, const char *name, lp_weight_stack part, bool transposed,
                                       lp_value **out);
/* Elements [first, first + count) of the vector of `all` elements, in f32, each plus `offset`. */
LP_MUST_USE lp_status lp_weights_vector(lp_weights *w, const char *name, int64_t first, int64_t count, int64_t all,
                                        double offset, lp_value **out);
/* Rows of the table [rows][columns] by `index`, in f32. */
LP_MUST_USE lp_status lp_weights_rows(lp_weights *w, const char *name, int64_t rows, int64_t columns, lp_value *index,
                                      lp_value **out);
/* Refuses the first tensor that no call has used. */
LP_MUST_USE lp_status lp_weights_check_used(const lp_weights *w);
