/* Types and tensors: the conversion of TypeProto and TensorProto. */
#pragma once

#include "frontend/onnx/importer.h"

const char *lp_onnx_dtype_name(int32_t data_type); /* "string", "float8e4m3fn"; "undefined" when unknown */
/* The type of an input of `graph`. */
LP_MUST_USE lp_status lp_import_type(lp_importer *im, const Onnx__GraphProto *graph, const Onnx__TypeProto *type,
                                     const char *name, lp_type *out);

/* A checked tensor: its type and the place of its bytes. */
typedef struct {
  lp_dtype dtype;
  int32_t rank;
  int64_t dim[LP_MAX_RANK];
  int64_t bytes;    /* size of the packed elements */
  const char *file; /* the file with the bytes; NULL: they are in `data` */
  int64_t offset;
  const void *data; /* `bytes` bytes in the scratch arena or the mapped file; NULL when absent or not read */
} lp_tensor_data;

/* Checks a TensorProto; small external data is read, large data stays where it is. */
LP_MUST_USE lp_status lp_tensor_check(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                                      lp_tensor_data *out);
/* Tells whether a tensor is small enough to be a constant that is read, and not a weight. */
bool lp_tensor_is_small(const lp_tensor_data *tensor);
/* The parts of lp_tensor_check: type and size; data in the model file; data in another file (external.c). */
LP_MUST_USE lp_status lp_tensor_size(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                                     lp_tensor_data *out);
LP_MUST_USE lp_status lp_tensor_own_data(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                                         lp_tensor_data *out);
/* Finds a tensor's external data: its file, `out->offset`, and the data itself where it is read. */
LP_MUST_USE lp_status lp_external_check(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                                        lp_tensor_data *out);
/* Reports data of another size than the shape asks for. */
LP_MUST_USE lp_status lp_tensor_wrong_size(lp_importer *im, lp_loc loc, const char *name, const lp_tensor_data *tensor,
                                           uint64_t found);
/* Warns when tensors share a part of their external data, which usually comes from an exporter that miscounted. */
void lp_external_report_overlaps(lp_importer *im);

/* Appends an llmpart.constant or llmpart.weight. */
LP_MUST_USE lp_status lp_import_tensor(lp_importer *im, const Onnx__TensorProto *tensor, lp_loc loc, const char *name,
                                       lp_value **out);
/* Makes a constant; copies the data. */
lp_value *lp_import_constant(lp_importer *im, lp_loc loc, lp_dtype dtype, int32_t rank, const int64_t *dim,
                             const void *data, size_t bytes);
