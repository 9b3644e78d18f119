/* The header of a safetensors file: an 8-byte length, a JSON object with the place of each tensor, and the data. The
 * bundle's weights and Hugging Face's checkpoints have this form. Source:
 * https://github.com/huggingface/safetensors#format */
#pragma once

#include "base/base.h"

enum { LP_SAFETENSORS_MAX_RANK = 8 };

typedef struct {
  const char *name;
  const char *dtype; /* "F32", "BF16", as the file says it */
  int32_t rank;
  int64_t dim[LP_SAFETENSORS_MAX_RANK];
  size_t offset, bytes; /* in the file */
} lp_safetensor;

typedef struct {
  size_t data_offset; /* the offset of the data section */
  size_t count;
  lp_safetensor *tensor; /* [count], in the order of the header */
} lp_safetensors;

/* Reads the header of the file's bytes into `arena`. Every tensor then lies inside the data section and has as many
 * bytes as its type and shape take; types that the format does not have are errors. The data section must begin at a
 * multiple of `alignment` (1: anywhere). `path` is for messages. */
LP_MUST_USE lp_status lp_safetensors_read(const char *path, const uint8_t *data, size_t size, size_t alignment,
                                          lp_arena *arena, lp_safetensors *out, lp_diag *diag);
