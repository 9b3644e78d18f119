/* What the folders of backend/ share: the tables that backend.c lists, and questions about planned modules. */
#ifndef LP_BACKEND_INTERNAL_H
#define LP_BACKEND_INTERNAL_H

#include "backend/backend.h"
#include "base/file.h"

extern const lp_backend lp_backend_cpu;
extern const lp_backend lp_backend_cuda;
extern const lp_backend lp_backend_null;
extern const lp_backend lp_backend_opencl;

/* The buffer of a value on a side, -1 when it has none (values.c). */
int64_t lp_value_buffer(const lp_value *value, const char *side);
/* The attribute `name`_`side` of a function, i64s; NULL when absent. */
const lp_attr *lp_func_side_attr(const lp_op *func, const char *name, const char *side);
/* Looks through LP_ALIAS operators to the value whose memory it is. */
lp_value *lp_value_base(lp_value *value);
/* Is it computed by a backend: no constant, communication, terminator or declaration? */
bool lp_op_is_run(const lp_op *op);
/* The side that has an operator's results: "device" or "cloud". */
const char *lp_op_side(const lp_op *op);

/* Which values have a row for each new token, so that a pass over several sequences holds the rows of all in one buffer
 * (base/abi.h; rows.c). */
typedef enum { LP_ROWS_NONE, LP_ROWS_NEW, LP_ROWS_LAST } lp_rows; /* none; of the s new tokens; of the last r of them */
/* `bytes`: of a row. */
lp_rows lp_type_rows(const lp_module *module, lp_type type, int64_t *bytes);
/* Of a value as it is used and as it lies in memory. */
lp_rows lp_value_rows(const lp_module *module, lp_value *value);
/* Is each row of its results made of one row of its operands, so that it may run over the rows of all sequences at once? */
bool lp_op_is_joint(const lp_module *module, const lp_op *op);

/* Nearest codes and scale of `count` floats, `step` apart (quantise.c). int8: scale = max|w| / 127. int4 (codes 0 .. 15
 * about 8): of 13 scales about max|w| / 8 the one with the least squared error. The scale is rounded to `scale_dtype`;
 * of a group that holds an infinity or a NaN it is NaN. */
float lp_quantise(const float *w, int64_t count, int64_t step, lp_dtype codes, lp_dtype scale_dtype, uint8_t *out);

/* A tensor of a safetensors file: `offset` from the start of the data section. */
typedef struct {
  const char *name;
  lp_dtype dtype;
  int32_t rank;
  const int64_t *dim;
  int64_t offset, bytes;
} lp_safetensor;
/* Writes the header; the data follows at a multiple of 64 bytes, in the list's order and without gaps (safetensors.c). */
void lp_safetensors_header(lp_writer *writer, const lp_safetensor *list, size_t count);

#endif
