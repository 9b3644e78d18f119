/* Writes small ONNX models for tests, field by field in protobuf's wire format, so that damaged and impossible ones can
 * be written too. */
#ifndef LP_TESTS_ONNX_WRITER_H
#define LP_TESTS_ONNX_WRITER_H

#include "ir/ir.h"

/* Fields of a message; `onnx_sub` hands over and releases the message inside. */
void onnx_varint(lp_buf *to, uint32_t field, uint64_t value);
void onnx_bytes(lp_buf *to, uint32_t field, const void *data, size_t size);
void onnx_text(lp_buf *to, uint32_t field, const char *text);
void onnx_sub(lp_buf *to, uint32_t field, lp_buf *message);

/* A node: names separated by spaces, "-" is an absent one. */
lp_buf onnx_node(const char *op, const char *inputs, const char *outputs);
lp_buf onnx_named(const char *name, const char *op, const char *inputs, const char *outputs);
void onnx_domain(lp_buf *node, const char *domain);
/* Adds nodes in text, separated by ';': "Gather x index > y axis=1; Concat y y > z axis=0". "MS.Gelu" is Gelu of
 * com.microsoft. An attribute is text unless it begins as a number: a point makes it a float, a comma a list of
 * integers. */
void onnx_nodes(lp_buf *graph, const char *text);
void onnx_attr_i(lp_buf *node, const char *name, int64_t value);
void onnx_attr_f(lp_buf *node, const char *name, float value);
void onnx_attr_floats(lp_buf *node, const char *name, int count, const float *values);
void onnx_attr_s(lp_buf *node, const char *name, const char *value);
void onnx_attr_ints(lp_buf *node, const char *name, int count, const int64_t *values);
void onnx_attr_tensor(lp_buf *node, const char *name, lp_buf *tensor);
void onnx_attr_graph(lp_buf *node, const char *name, lp_buf *graph);
void onnx_attr_ref(lp_buf *node, const char *name, const char *of_function, uint64_t type);

/* A tensor of raw data; dims are numbers separated by spaces. Types are TensorProto.DataType. */
enum { ONNX_F32 = 1, ONNX_U8 = 2, ONNX_I32 = 6, ONNX_I64 = 7, ONNX_STRING = 8, ONNX_BOOL = 9 };
lp_buf onnx_tensor(const char *name, int type, const char *dims, const void *data, size_t size);
lp_buf onnx_external(const char *name, int type, const char *dims, const char *location, const char *offset,
                     const char *length);

/* A graph's parts; dims are numbers, names or "?" separated by spaces. */
void onnx_add(lp_buf *graph, lp_buf node);
void onnx_input(lp_buf *graph, const char *name, int type, const char *dims);
void onnx_output(lp_buf *graph, const char *name, int type, const char *dims);
void onnx_initializer(lp_buf *graph, lp_buf tensor);

/* The model around a graph (released) and functions; `opset` 0 leaves the import out. */
lp_buf onnx_model(lp_buf *graph, int64_t opset);
void onnx_function_field(lp_buf *model, lp_buf *function);

/* A list of diagnostics `diag` for each test of a file, and the removal of what the test wrote; needs tests/suite.h. */
#define ONNX_CASE                                                                                                      \
  static lp_diag *diag;                                                                                                \
  static void open_test(void) {                                                                                        \
    diag = lp_diag_create();                                                                                           \
  }                                                                                                                    \
  static void close_test(void) {                                                                                       \
    lp_diag_free(diag);                                                                                                \
    onnx_cleanup();                                                                                                    \
  }                                                                                                                    \
  LP_CASE(.setup = open_test, .teardown = close_test)

/* A folder of its own for the test's files, removed by onnx_cleanup. */
const char *onnx_folder(void);
const char *onnx_path(const char *name);
void onnx_cleanup(void);
/* Writes the bytes (released) to NAME in the folder and imports it. */
lp_module *onnx_import(lp_buf *model, lp_diag *diag);
lp_module *onnx_import_with(lp_buf *model, bool weights_absent_ok, lp_diag *diag);
void onnx_write(const char *name, const void *data, size_t size);

/* The operator that makes output `index` of @main. */
lp_op *onnx_result(const lp_module *module, int32_t index);
/* "f32[b,3]" of a value; in a buffer that the next call overwrites. */
const char *onnx_type_text(const lp_module *module, const lp_value *value);
/* Entry `index` as text; in a buffer that the next call overwrites. */
const char *onnx_message(const lp_diag *diag, size_t index);

#endif
