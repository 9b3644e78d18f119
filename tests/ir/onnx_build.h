/* Builds single onnx.* operators for the tests of inference and evaluation. A module with arguments of symbolic sizes
 * is there for each test; attributes are set before the operator that takes them. */
#ifndef LP_TESTS_ONNX_BUILD_H
#define LP_TESTS_ONNX_BUILD_H

#include "tests/suite.h"

#include "ir/ir.h"

extern lp_module *test_module;
extern lp_diag *test_diag;
extern lp_block *test_block;

void test_open(void); /* a checked fixture */
void test_close(void);

/* An argument; dims separated by commas: "b,s,8". */
lp_value *test_arg(lp_dtype dtype, const char *dims);
lp_value *test_ints(int count, const int64_t *values); /* a vector; count -1: a scalar of values[0] */
lp_value *test_floats(const char *dims, const float *values);
#define INTS(...)                                                                                                      \
  test_ints((int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})
#define INT(value) test_ints(-1, (const int64_t[]){value})

/* Attributes of the next operator. */
void with_i64(const char *name, int64_t value);
void with_f64(const char *name, double value);
void with_str(const char *name, const char *value);
void with_i64s(const char *name, int count, const int64_t *values);

/* Creates and infers; NULL when inference refuses. */
lp_op *test_node(lp_kind kind, int out_count, int in_count, lp_value *const *in);
#define NODES(kind, outs, ...)                                                                                         \
  test_node(LP_ONNX_##kind, outs, (int)(sizeof((lp_value *[]){__VA_ARGS__}) / sizeof(lp_value *)),                     \
            (lp_value *[]){__VA_ARGS__})
#define NODE(kind, ...) NODES(kind, 1, __VA_ARGS__)

/* Result 0 (or `index`) has this type: "f32[b,s,8]". */
void gives(lp_op *op, const char *type);
void gives_at(lp_op *op, int index, const char *type);
/* Its elements are known to be these, separated by spaces: "b s+p 1"; "?" when nothing is known. */
void knows(lp_op *op, const char *elements);
/* Inference gave one error with this text. */
void refuses(const lp_op *op, const char *text);
lp_value *of(lp_op *op); /* result 0; asserts that it was made */

#endif
