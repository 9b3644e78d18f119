/* What the files that build a decoder's layers share: the state, and parts of which layers consist. */
#pragma once

#include "frontend/decoder/decoder.h"
#include "frontend/decoder/graph.h"

typedef struct {
  lp_graph g;
  const lp_decoder *d;
  lp_weights *w;
  lp_value *ids, *positions;
  lp_value *cosine[2], *sine[2]; /* [b, s, dim / 2] of each rotary, made at the first use */
  lp_value *numbers;             /* [b, s, heads]: the number of each head, made at the first use */
  int64_t index;                 /* of the layer; -1 outside of layers */
  lp_value *const *past;         /* the layer's caches */
  lp_value *chunk, *tuning; /* [b, 1, s, p + s]: the positions of a token's chunk; [b, s, 1]: a factor of queries */
} lp_builder;

/* Outputs [first, first + count) of the `all` outputs of a product, with its bias where the file has one. */
typedef struct {
  int64_t first, count, all;
} lp_span;

/* The caches of a layer: keys and values, latents only, the columns of a convolution, or these and a state, and then
 * perhaps keys and values. */
static inline int32_t lp_decoder_caches(const lp_decoder *d, int64_t layer) {
  const lp_decoder_layer *l = &d->layer[layer];
  if (l->only_feeds) return 0;
  if (l->scans) return l->both ? 4 : 2;
  return d->latent.rank > 0 || l->taps > 0 ? 1 : 2;
}

/* The channels of a layer's convolution. */
static inline int64_t lp_decoder_channels(const lp_decoder *d, int64_t layer) {
  const lp_scan *m = &d->scan;
  return d->layer[layer].scans ? m->heads * m->width + 2 * m->groups * m->state : d->hidden;
}

/* The name of the role's weight in the layer: "model.layers.3.mlp.up_proj" + ".weight". */
const char *lp_part_name(const lp_builder *b, lp_role role, const char *suffix);
bool lp_part_has(const lp_builder *b, lp_role role, const char *suffix);
/* Gives the role's name to the nodes of the operators that follow. */
void lp_part_enter(lp_builder *b, lp_role role);
/* Keeps the first failure; returns NULL, as the functions below do after it. */
lp_value *lp_part_fail(lp_builder *b, lp_status status);

/* Outputs of x times the role's matrix, with its bias where the file has one. */
lp_value *lp_part_linear(lp_builder *b, lp_value *x, lp_role role, int64_t inputs, lp_span out);
lp_value *lp_part_whole(lp_builder *b, lp_value *x, lp_role role, int64_t inputs, int64_t outputs);
lp_value *lp_part_scaled(lp_builder *b, lp_value *x, double factor);
lp_value *lp_part_unsqueezed(lp_builder *b, lp_value *x, int64_t axis);
/* Sizes of 0 stay as they are. */
lp_value *lp_part_reshaped(lp_builder *b, lp_value *x, int64_t rank, const int64_t *sizes);
/* Parts of the last axis; all NULL after a failure. */
void lp_part_split(lp_builder *b, lp_value *x, int32_t count, const int64_t *widths, lp_value **parts);
/* Both along the last axis. */
lp_value *lp_part_joined(lp_builder *b, lp_value *x, lp_value *y);
/* Makes the tensor `name`, of any rank, a vector. */
void lp_part_flatten(lp_builder *b, const char *name);
/* All elements of the tensor `name`, of any rank, as a vector. */
lp_value *lp_part_vector(lp_builder *b, const char *name, int64_t count);
/* Builds a norm over the last axis, which has `size` elements. */
lp_value *lp_part_norm(lp_builder *b, lp_value *x, lp_role role, int64_t size, double epsilon);
/* The same without a scale. */
lp_value *lp_part_normalised(lp_builder *b, lp_value *x, int64_t size, double epsilon);
lp_value *lp_part_activated(lp_builder *b, lp_value *x, const char *activation);
/* act(gate x) * up x, or act(up x) where `gate` has no name, then down */
lp_value *lp_part_gated(lp_builder *b, lp_value *x, lp_role gate, lp_role up, lp_role down, int64_t ffn);
/* The MLP of layers without experts. */
lp_value *lp_part_mlp(lp_builder *b, lp_value *x);
/* In place of attention: LFM2's gated short convolution, the mixer of Mamba 2, and a gated delta net (recurrent.c). */
lp_value *lp_part_convolution(lp_builder *b, lp_value *x, lp_value **present);
lp_value *lp_part_scan(lp_builder *b, lp_value *x, lp_value **present);
lp_value *lp_part_delta(lp_builder *b, lp_value *x, lp_value **present);
/* The layer's attention; `present` gets its caches, lp_decoder_caches of them (attention.c). */
lp_value *lp_part_attention(lp_builder *b, lp_value *x, lp_value **present);
/* The sum of the experts that each token chooses, and of the shared MLP (mixture.c). */
lp_value *lp_part_mixture(lp_builder *b, lp_value *x);
