/* Codes and scales of groups. */
#include "backend/quantise.h"

#include "base/number.h"

#include <math.h>

static float clamp(float x, float low, float high) {
  return x < low ? low : x > high ? high : x;
}

/* The element of the largest magnitude, with its sign; NaN when there is one. */
static float extreme(const float *w, int64_t count, int64_t step) {
  float most = 0;
  for (int64_t i = 0; i < count; i++)
    if (isnan(w[i * step]) || fabsf(w[i * step]) > fabsf(most)) most = w[i * step]; /* no number exceeds a NaN */
  return most;
}

/* The least-squares scale for the codes round(w * inverse); `gain` is the part of the sum of squares it explains. */
static float fit(const float *w, int64_t count, int64_t step, float inverse, float *gain) {
  float across = 0, squares = 0;
  for (int64_t i = 0; i < count; i++) {
    float code = clamp(rintf(w[i * step] * inverse), -8, 7);
    across += w[i * step] * code;
    squares += code * code;
  }
  *gain = squares > 0 ? across * across / squares : 0;
  return squares > 0 ? across / squares : 0;
}

/* Tries scales that give the largest element a code near -8, the one code without a counterpart. */
static float search_int4(const float *w, int64_t count, int64_t step, float most) {
  float best = 0, best_gain = -1;
  for (int i = -6; i <= 6; i++) {
    float gain, scale = fit(w, count, step, -(8.0f + 0.1f * (float)i) / most, &gain);
    if (gain > best_gain) {
      best_gain = gain;
      best = scale;
    }
  }
  return best;
}

static float rounded(float x, lp_dtype dtype) {
  if (dtype == LP_F16) return lp_f16_to_f32(lp_f32_to_f16(x));
  return dtype == LP_BF16 ? lp_bf16_to_f32(lp_f32_to_bf16(x)) : x;
}

float lp_quantise(const float *w, int64_t count, int64_t step, lp_dtype codes, lp_dtype scale_dtype, uint8_t *out) {
  bool wide = codes == LP_I8;
  float most = extreme(w, count, step), scale = 0;
  if (!isfinite(most))
    scale = NAN; /* no code can represent it: the group decodes to NaN */
  else if (most != 0)
    scale = wide ? fabsf(most) / 127 : search_int4(w, count, step, most);
  scale = rounded(scale, scale_dtype);
  for (int64_t i = 0; i < count; i++) {
    float code = isfinite(scale) && scale != 0 ? rintf(w[i * step] / scale) : 0;
    out[i * step] = wide ? (uint8_t)(int8_t)clamp(code, -127, 127) : (uint8_t)(clamp(code, -8, 7) + 8);
  }
  return scale;
}
