/* What the files that read the metadata share. */
#pragma once

#include "frontend/gguf/architectures.h"
#include "frontend/gguf/gguf.h"

enum { LP_GGUF_MOST_LAYERS = 1 << 12, LP_GGUF_MOST_SIZE = 1 << 28, LP_GGUF_MOST_TAPS = 64 };

typedef struct {
  const lp_gguf *file;
  const lp_gguf_architecture *arch;
  lp_arena *arena;
  lp_weights *weights;
  lp_decoder *out;
  lp_diag *diag;
} lp_gguf_reader;

/* "block_count" -> "llama.block_count", in the arena (keys.c). */
const char *lp_gguf_key(const lp_gguf_reader *r, const char *name);
/* Reads a size of at least 1; a default of -1: the key is needed. */
LP_MUST_USE lp_status lp_gguf_size(const lp_gguf_reader *r, const char *name, int64_t otherwise, int64_t *out);
double lp_gguf_number_at(const lp_gguf_reader *r, const char *name, double otherwise);
/* Checks that each key of the architecture is one that is read, or one that does not affect the computation, and that
 * numbers are finite. */
LP_MUST_USE lp_status lp_gguf_check_keys(const lp_gguf_reader *r);
/* Reads the rotary positions (positions.c). */
LP_MUST_USE lp_status lp_gguf_read_rotary(const lp_gguf_reader *r);
