/* The skeleton of an ONNX file: its protobuf message without the data of tensors, which stays small when it is
 * unpacked. */
#pragma once

#include "base/base.h"

/* The place of a tensor's bytes in the model file. In a skeleton every `raw_data` holds one of these instead of
 * data. */
typedef struct {
  uint64_t offset, length;
} lp_byte_range;

typedef enum { LP_MESSAGE_MODEL, LP_MESSAGE_TENSOR } lp_message;

/* Copies the message in data[0, size) to `out` without tensor bytes, documentation and other fields that the importer
 * never reads. Checks lengths, wire types and nesting. */
LP_MUST_USE lp_status lp_onnx_skeleton(const uint8_t *data, size_t size, lp_message kind, lp_buf *out, lp_diag *diag,
                                       lp_loc loc);
