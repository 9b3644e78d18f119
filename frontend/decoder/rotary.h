/* The frequencies of rotary positions. */
#pragma once

#include "frontend/decoder/decoder.h"

typedef enum { LP_ROPE_DEFAULT, LP_ROPE_LINEAR, LP_ROPE_LLAMA3, LP_ROPE_YARN, LP_ROPE_LONG } lp_rope_kind;

/* The scaling of frequencies for longer contexts, with the names of transformers' rope_scaling. */
typedef struct {
  lp_rope_kind kind;
  double theta, factor;
  double low_freq_factor, high_freq_factor; /* LLAMA3 */
  double beta_fast, beta_slow;              /* YARN */
  bool truncate;                            /* YARN: bounds are whole numbers */
  double attention_factor;                  /* YARN, LONG: of cosines and sines */
  double original_context;                  /* LLAMA3, YARN, LONG */
  const float *short_factor, *long_factor; /* LONG: divisors of each frequency, up to the original context and beyond */
} lp_rope;

/* Frequencies for `dim` rotated elements of a head, in `arena`. Each step rounds to f32 as transformers' does.
 * Sources: Su et al., "RoFormer", eq. 15; Llama 3.1's apply_scaling; Peng et al., "YaRN", eq. 17 to 23; Ding et al.,
 * "LongRoPE", eq. 3. */
lp_rotary lp_rotary_create(lp_arena *arena, int64_t dim, const lp_rope *rope);
/* The scales of cosines and sines for a context that is `factor` times longer: YaRN, eq. 22, and Phi-3's. */
double lp_rotary_yarn_scale(double factor, double mscale);
double lp_rotary_long_scale(double factor, double original_context);
