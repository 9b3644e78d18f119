/* The architectures of GGUF files: the names of their tensors, and what llama.cpp has in its code and not in the
 * metadata. */
#pragma once

#include "frontend/decoder/decoder.h"

/* What the layers without attention are. */
typedef enum { LP_GGUF_ATTENDS, LP_GGUF_CONVOLVES, LP_GGUF_SCANS, LP_GGUF_DELTA, LP_GGUF_DELTA_TILED } lp_gguf_other;

/* Keys that only some architectures have (keys.c). */
enum {
  LP_GGUF_LATENT = 1,
  LP_GGUF_GATED = 2,
  LP_GGUF_FACTORS = 4,
  LP_GGUF_CONV = 8,
  LP_GGUF_STATE = 16,
  LP_GGUF_INTERVAL = 32,
  LP_GGUF_PREDICTS = 64,
  LP_GGUF_NARROWS = 128
};

typedef struct {
  const char *name;
  const char *const *names; /* [LP_ROLE_COUNT] */
  const char *const *apart; /* instead, in files without the tensor `of`; NULL: always `names` */
  const char *of;
  const char *activation;
  unsigned keys; /* LP_GGUF_LATENT.. */
  lp_norm_kind norm;
  bool neighbours; /* rotated pairs are neighbours */
  bool scales_embedding, norm_whole_heads;
  bool parallel;     /* attention and MLP read one norm's result */
  bool windows;      /* all layers have a window when the file states one */
  int64_t no_rope;   /* every such layer has no rotary positions; 0: all have them */
  int64_t pattern;   /* every pattern-th layer has no window, all others have it; 0: no layer has it */
  double local_base; /* base of rotary positions of layers with a window; 0: the same base as the others */
  /* A model with this number of layers scales scores by the hidden size over heads (the 27B models). */
  int64_t wide;
  bool capped;     /* logits and scores have soft caps */
  bool sparse;     /* each layer has experts; others have them where the file says how many */
  bool clamped;    /* the experts of gpt-oss, which the softmax of the greatest scores weighs */
  bool normalised; /* the weights of the chosen experts are divided by their sum */
  double least;    /* which is at least this much more */
  bool sigmoid;    /* the scores of experts are sigmoids, unless the file says otherwise */
  lp_gguf_other other;
  bool both;  /* the layers have attention as well */
  bool alone; /* a layer is an MLP, where its feed_forward_length is not 0, or what takes its place */
} lp_gguf_architecture;

/* NULL: there is none of this name. */
const lp_gguf_architecture *lp_gguf_architecture_find(const char *name);
/* All names, in `arena`. */
const char *lp_gguf_architecture_names(lp_arena *arena);
