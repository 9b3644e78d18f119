/* The frequencies of rotary positions: see rotary.h. */
#include "frontend/decoder/rotary.h"

#include <math.h>

static const double two_pi = 6.283185307179586;

/* Stretches long waves, keeps short ones and blends those between. */
static float llama3(float inverse, const lp_rope *r) {
  double low = r->original_context / r->low_freq_factor, high = r->original_context / r->high_freq_factor;
  float wave = (float)two_pi / inverse, stretched = inverse / (float)r->factor;
  if ((double)wave > low) return stretched;
  if ((double)wave < high) return inverse;
  float smooth = ((float)r->original_context / wave - (float)r->low_freq_factor) /
                 (float)(r->high_freq_factor - r->low_freq_factor);
  return (1 - smooth) * inverse / (float)r->factor + smooth * inverse;
}

/* The index of the pair that makes `turns` turns over the original context. */
static double pair_of(double turns, double dim, const lp_rope *r) {
  return dim * log(r->original_context / (turns * two_pi)) / (2 * log(r->theta));
}

static float yarn(float power, int64_t pair, int64_t dim, const lp_rope *r) {
  double low = pair_of(r->beta_fast, (double)dim, r), high = pair_of(r->beta_slow, (double)dim, r);
  if (r->truncate) low = floor(low), high = ceil(high);
  low = fmax(low, 0);
  high = fmin(high, (double)dim - 1);
  if (low == high) high += 0.001;
  float ramp = ((float)pair - (float)low) / (float)(high - low);
  ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
  float kept = 1 - ramp;
  return 1 / ((float)r->factor * power) * (1 - kept) + 1 / power * kept;
}

double lp_rotary_yarn_scale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

double lp_rotary_long_scale(double factor, double original_context) {
  return factor <= 1 ? 1 : sqrt(1 + log(factor) / log(original_context));
}

/* 1 / (factor base^(2 i / dim)) */
static const float *divided(lp_arena *arena, int64_t dim, double theta, const float *factor) {
  float *inverse = LP_NEW_ARRAY(arena, float, dim / 2 + 1);
  for (int64_t i = 0; i < dim / 2; i++)
    inverse[i] = 1 / (factor[i] * powf((float)theta, (float)(2 * i) / (float)dim));
  return inverse;
}

lp_rotary lp_rotary_create(lp_arena *arena, int64_t dim, const lp_rope *rope) {
  if (rope->kind == LP_ROPE_LONG)
    return (lp_rotary){.dim = dim,
                       .inverse = divided(arena, dim, rope->theta, rope->short_factor),
                       .scale = rope->attention_factor,
                       .beyond = divided(arena, dim, rope->theta, rope->long_factor),
                       .limit = (int64_t)rope->original_context};
  float *inverse = LP_NEW_ARRAY(arena, float, dim / 2 + 1);
  for (int64_t i = 0; i < dim / 2; i++) {
    float power = powf((float)rope->theta, (float)(2 * i) / (float)dim);
    inverse[i] = 1 / power;
    if (rope->kind == LP_ROPE_LINEAR) inverse[i] /= (float)rope->factor;
    if (rope->kind == LP_ROPE_LLAMA3) inverse[i] = llama3(inverse[i], rope);
    if (rope->kind == LP_ROPE_YARN) inverse[i] = yarn(power, i, dim, rope);
  }
  return (lp_rotary){.dim = dim, .inverse = inverse, .scale = rope->kind == LP_ROPE_YARN ? rope->attention_factor : 1};
}
