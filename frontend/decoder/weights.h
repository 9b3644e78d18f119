/* The tensors of a checkpoint by name, and their values in a graph. */
#ifndef LP_DECODER_WEIGHTS_H
#define LP_DECODER_WEIGHTS_H

#include "frontend/decoder/blocks.h"
#include "ir/ir.h"

/* One tensor as it lies in a file that module->sources has mapped. */
typedef struct {
  const char *name, *file;
  lp_dtype dtype;
  int32_t rank;
  int64_t dim[LP_MAX_RANK]; /* row-major, the fastest last */
  int64_t offset, bytes;
  const lp_block_form *form; /* how blocks lie; NULL: elements of `dtype` */
  int64_t scales;            /* after blocks were turned into codes: where their scales begin */
  bool used;
} lp_stored;

typedef struct {
  lp_module *module;
  lp_block *block; /* where operators are appended */
  lp_map *tensors; /* name -> lp_stored */
  const char *path;
  bool absent_ok; /* only the graph is wanted: blocks are not decoded */
  lp_diag *diag;
} lp_weights;

/* Rows [first, first + rows) of the matrix `name`, of `all` rows and `columns` columns, as f32 [columns][rows]: what
 * x is multiplied by. With `transposed` the file has it as [columns][rows], and all rows are taken. */
typedef struct {
  int64_t first, rows, all, columns;
  bool transposed;
} lp_part;

/* NULL: the file has no such tensor. */
lp_stored *lp_weights_find(const lp_weights *w, const char *name);
/* The others report what is wrong with the tensor's shape or type, and that there is none. */
LP_MUST_USE lp_status lp_weights_matrix(lp_weights *w, const char *name, lp_part part, lp_value **out);
/* Elements [first, first + count) of the vector of `all` elements, in f32, each plus `offset`. */
LP_MUST_USE lp_status lp_weights_vector(lp_weights *w, const char *name, int64_t first, int64_t count, int64_t all,
                                        double offset, lp_value **out);
/* Rows of the table [rows][columns] by `index`, in f32. */
LP_MUST_USE lp_status lp_weights_rows(lp_weights *w, const char *name, int64_t rows, int64_t columns, lp_value *index,
                                      lp_value **out);
/* Refuses the first tensor that no call has asked for. */
LP_MUST_USE lp_status lp_weights_check_used(const lp_weights *w);

#endif
