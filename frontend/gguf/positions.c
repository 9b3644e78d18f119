/* The rotary positions of a GGUF file and their scaling. */
#include "base/file.h"
#include "frontend/gguf/config.h"

/* Finds a vector with a positive number for each rotated pair; NULL in *out: the file has none. */
static lp_status find_factors(const lp_gguf_reader *r, const char *name, int64_t size, const float **out) {
  lp_stored *t = lp_weights_find(r->weights, name);
  *out = NULL;
  if (!t) return LP_OK;
  t->used = true;
  if (t->form || t->dtype != LP_F32 || t->rank != 1 || t->dim[0] != size / 2)
    return lp_error(r->diag, LP_LOC_FILE(r->file->path),
                    "tensor '%s' is not a vector of %" PRId64 " elements of type f32", t->name, size / 2);
  float *factors = LP_NEW_ARRAY(r->arena, float, size / 2 + 1);
  const lp_mapping *part = lp_map_get(r->weights->module->sources, t->file);
  memcpy(factors, part->data + t->offset, (size_t)(size / 2) * sizeof *factors);
  for (int64_t i = 0; i < size / 2; i++)
    if (!(factors[i] > 0))
      return lp_error(r->diag, LP_LOC_FILE(r->file->path), "tensor '%s': %g is not positive", t->name,
                      (double)factors[i]);
  *out = factors;
  return LP_OK;
}

/* Each frequency is divided by an element of rope_freqs.weight, which is the scaling of Llama 3.1. */
static lp_status apply_factors(const lp_gguf_reader *r, lp_rotary *rotary) {
  const float *factors;
  LP_TRY(find_factors(r, "rope_freqs.weight", rotary->dim, &factors));
  if (!factors) return LP_OK;
  float *inverse = lp_arena_copy(r->arena, rotary->inverse, (size_t)(rotary->dim / 2) * sizeof *inverse);
  for (int64_t i = 0; i < rotary->dim / 2; i++)
    inverse[i] /= factors[i];
  rotary->inverse = inverse;
  return LP_OK;
}

/* Reads the scaling by the two lists of LongRoPE, which need no type: llama.cpp's converter writes none. */
static lp_status read_longrope(const lp_gguf_reader *r, int64_t size, lp_rope *rope) {
  LP_TRY(find_factors(r, "rope_factors_short.weight", size, &rope->short_factor));
  LP_TRY(find_factors(r, "rope_factors_long.weight", size, &rope->long_factor));
  if (!rope->short_factor && !rope->long_factor) return LP_OK;
  rope->kind = LP_ROPE_LONG;
  rope->attention_factor = lp_gguf_number_at(r, "rope.scaling.attn_factor", 1);
  rope->original_context = lp_gguf_number_at(r, "rope.scaling.original_context_length", 0);
  bool valid = rope->short_factor && rope->long_factor && rope->attention_factor > 0 && rope->original_context >= 1 &&
               rope->original_context <= (double)LP_GGUF_MOST_SIZE;
  return valid ? LP_OK
               : lp_error(r->diag, LP_LOC_FILE(r->file->path),
                          "the lists of longrope's factors or the original context are missing");
}

/* DeepSeek scales scores where others scale cosines and sines, which the file states by a tenth of mscale_all_dim. */
static lp_status scale_scores(const lp_gguf_reader *r, lp_rope *rope) {
  const double multiplier = lp_gguf_number_at(r, "rope.scaling.yarn_log_multiplier", 0);
  if (multiplier == 0) return LP_OK;
  const double scale = lp_rotary_yarn_scale(rope->factor, 10 * multiplier);
  r->out->attention_scale *= scale * scale;
  rope->attention_factor = 1;
  return LP_OK;
}

static lp_status read_yarn(const lp_gguf_reader *r, lp_rope *rope) {
  rope->kind = LP_ROPE_YARN;
  rope->truncate = true;
  rope->factor = lp_gguf_number_at(r, "rope.scaling.factor", 0);
  rope->beta_fast = lp_gguf_number_at(r, "rope.scaling.yarn_beta_fast", 32);
  rope->beta_slow = lp_gguf_number_at(r, "rope.scaling.yarn_beta_slow", 1);
  rope->original_context =
      lp_gguf_number_at(r, "rope.scaling.original_context_length", lp_gguf_number_at(r, "context_length", 0));
  rope->attention_factor = lp_gguf_number_at(r, "rope.scaling.attn_factor", 1) * lp_rotary_yarn_scale(rope->factor, 1);
  if ((r->arch->keys & LP_GGUF_LATENT)) LP_TRY(scale_scores(r, rope));
  bool valid = rope->factor > 0 && rope->beta_fast > 0 && rope->beta_slow > 0 && rope->original_context > 0 &&
               rope->attention_factor > 0;
  return valid ? LP_OK : lp_error(r->diag, LP_LOC_FILE(r->file->path), "the numbers of yarn are missing or not valid");
}

static lp_status read_scaling(const lp_gguf_reader *r, int64_t size, lp_rope *rope) {
  const char *scaling = lp_gguf_string(r->file, lp_gguf_key(r, "rope.scaling.type"));
  lp_loc loc = LP_LOC_FILE(r->file->path);
  if (scaling && lp_streq(scaling, "yarn")) return read_yarn(r, rope);
  if (scaling && lp_streq(scaling, "linear")) {
    rope->kind = LP_ROPE_LINEAR;
    rope->factor = lp_gguf_number_at(r, "rope.scaling.factor", 0);
    return rope->factor > 0 ? LP_OK : lp_error(r->diag, loc, "the factor of linear scaling is absent or not positive");
  }
  if (scaling && !lp_streq(scaling, "none") && !lp_streq(scaling, "longrope"))
    return lp_error(r->diag, loc, "the scaling '%.40s' of positions is not supported", scaling);
  LP_TRY(read_longrope(r, size, rope));
  if (rope->kind == LP_ROPE_DEFAULT && scaling && lp_streq(scaling, "longrope"))
    return lp_error(r->diag, loc, "the lists of longrope's factors or the original context are missing");
  return LP_OK;
}

lp_status lp_gguf_read_rotary(const lp_gguf_reader *r) {
  lp_rotary *rotary = LP_NEW_ARRAY(r->arena, lp_rotary, 2);
  lp_rope rope = {.theta = lp_gguf_number_at(r, "rope.freq_base", 10000)}, local = {.theta = r->arch->local_base};
  int64_t size;
  LP_TRY(lp_gguf_size(r, "rope.dimension_count", r->out->head_dim, &size));
  if (rope.theta <= 0 || size % 2 != 0 || size > r->out->head_dim)
    return lp_error(r->diag, LP_LOC_FILE(r->file->path),
                    "rotary positions over %" PRId64 " elements of a head with the base %g are not supported", size,
                    rope.theta);
  LP_TRY(read_scaling(r, size, &rope));
  rotary[0] = lp_rotary_create(r->arena, size, &rope);
  rotary[1] = lp_rotary_create(r->arena, size, r->arch->local_base > 0 ? &local : &rope);
  r->out->rotary = rotary;
  return apply_factors(r, &rotary[0]);
}
