/* Codes and scales of groups. */
#include "backend/quantise.h"

#include "base/number.h"

#include <assert.h>
#include <math.h>

/* A group in units of its largest element, padded with zeros; `weight` is what an element's squared error counts. */
typedef struct {
  float x[LP_WEIGHT_GROUP], weight[LP_WEIGHT_GROUP];
} group;

/* The largest element is tried at the codes first, first + step, ... */
typedef struct {
  float first, step;
  int count;
  float low, high; /* the codes that there are */
} candidates;

/* In int4 the largest element lies near -8, the one code without a counterpart. */
static const candidates plain_int4 = {-7.4f, -0.1f, 13, -8, 7};
static const candidates weighted_int4 = {-7, -0.3f, 61, -8, 7}, weighted_int8 = {103, 4, 19, -127, 127};

static float clamp(float x, float low, float high) {
  return x < low ? low : x > high ? high : x;
}

/* The nearest integer, of halves the even one, for |x| < 2^22. */
static float nearest(float x) {
  const float unit = 0x1.8p23f; /* floats of this size are integers */
  return (x + unit) - unit;
}

/* The element of the largest magnitude, with its sign; NaN when there is one. */
static float extreme(const float *w, int64_t count, int64_t step) {
  float most = 0;
  for (int64_t i = 0; i < count; i++)
    if (isnan(w[i * step]) || fabsf(w[i * step]) > fabsf(most)) most = w[i * step]; /* no number exceeds a NaN */
  return most;
}

static void weigh_by_size(group *g, int64_t count) {
  float mean = 0;
  for (int64_t i = 0; i < count; i++)
    mean += g->x[i] * g->x[i] / (float)count;
  for (int64_t i = 0; i < count; i++)
    g->weight[i] = sqrtf(mean + g->x[i] * g->x[i]);
}

/* `most` is the largest of the squares. An element that only zeros were multiplied by still counts a little. */
static void weigh_by_squares(group *g, const float *squares, float most, int64_t count) {
  float mean = 0;
  for (int64_t i = 0; i < count; i++)
    mean += squares[i] / most / (float)count;
  for (int64_t i = 0; i < count; i++)
    g->weight[i] = squares[i] / most + 1e-3f * mean;
}

/* The least-squares scale for the codes nearest to x * inverse; `gain` is the part of the weighted sum of squares that
 * it explains. */
static float fit(const group *g, float inverse, const candidates *among, float *gain) {
  enum { LANES = 8 }; /* of sums that a vector holds */
  float across[LANES] = {0}, squares[LANES] = {0}, numerator = 0, denominator = 0;
  for (int i = 0; i < LP_WEIGHT_GROUP; i += LANES)
    for (int j = 0; j < LANES; j++) {
      float code = clamp(nearest(g->x[i + j] * inverse), among->low, among->high), weighted = g->weight[i + j] * code;
      across[j] += weighted * g->x[i + j];
      squares[j] += weighted * code;
    }
  for (int j = 0; j < LANES; j++) {
    numerator += across[j];
    denominator += squares[j];
  }
  *gain = denominator > 0 ? numerator * numerator / denominator : 0;
  return denominator > 0 ? numerator / denominator : 0;
}

/* The scale, in units of the largest element. */
static float search(const group *g, const candidates *among) {
  float best = 0, best_gain = -1;
  for (int i = 0; i < among->count; i++) {
    float gain, scale = fit(g, among->first + among->step * (float)i, among, &gain);
    if (gain > best_gain) {
      best_gain = gain;
      best = scale;
    }
  }
  return best;
}

static float find_scale(const float *w, int64_t count, int64_t step, const float *squares, bool wide) {
  float most = extreme(w, count, step), most_square = squares ? extreme(squares, count, 1) : 0;
  if (!isfinite(most)) return NAN; /* no code can represent it: the group decodes to NaN */
  if (most == 0) return 0;
  bool weighted = most_square > 0;
  if (wide && !weighted) return fabsf(most) / 127;
  group g = {0};
  for (int64_t i = 0; i < count; i++)
    g.x[i] = w[i * step] / most;
  if (weighted)
    weigh_by_squares(&g, squares, most_square, count);
  else
    weigh_by_size(&g, count);
  return search(&g, wide ? &weighted_int8 : weighted ? &weighted_int4 : &plain_int4) * most;
}

static float rounded(float x, lp_dtype dtype) {
  if (dtype == LP_F16) return lp_f16_to_f32(lp_f32_to_f16(x));
  return dtype == LP_BF16 ? lp_bf16_to_f32(lp_f32_to_bf16(x)) : x;
}

float lp_quantise(const float *w, int64_t count, int64_t step, const float *squares, lp_dtype codes,
                  lp_dtype scale_dtype, uint8_t *out) {
  assert(count <= LP_WEIGHT_GROUP);
  bool wide = codes == LP_I8;
  float scale = rounded(find_scale(w, count, step, squares, wide), scale_dtype);
  for (int64_t i = 0; i < count; i++) {
    float code = isfinite(scale) && scale != 0 ? rintf(w[i * step] / scale) : 0;
    out[i * step] = wide ? (uint8_t)(int8_t)clamp(code, -127, 127) : (uint8_t)(clamp(code, -8, 7) + 8);
  }
  return scale;
}
