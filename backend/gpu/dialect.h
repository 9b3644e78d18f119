/* Dialects: the languages that kernels are printed in.
 *
 * A kernel's template (kernels/NAME.kernel) is C with two kinds of words to fill in: $NAME is a parameter, @name a word
 * of the dialect. A kernel's sizes are parameters of type @size, which converts to long: some languages pass them by
 * address, so that a recorded launch serves other sizes.
 */
#pragma once

#include "base/base.h"

typedef struct {
  const char *word, *means; /* "sync" -> "__syncthreads()" */
} gpu_word;

/* The GPUs that multiply halves faster than floats: none, those of some architectures, or those that say so
 * (runtime/gpu/opencl.c). */
typedef enum { GPU_HALVES_NEVER, GPU_HALVES_BY_ARCHITECTURE, GPU_HALVES_BY_DEVICE } gpu_halves;

typedef struct {
  const char *name;
  const gpu_word *words; /* ends with NULL */
  const char *prologue;  /* a template: text that all kernels need */
  const char *tensor;    /* a template: text that kernels on tensor cores need; NULL: the dialect has none */
  const char *rounded;   /* a template: text that products of rounded activations need */
  gpu_halves halves;
  bool products; /* the runtime may use a library of matrix products */
} gpu_dialect;

/* The template of that name, or NULL. */
const char *gpu_template(const char *name);
/* Appends `text` with the words of the dialect filled in. */
void gpu_print_text(const gpu_dialect *dialect, const char *text, lp_buf *out);
