/* Frequencies of rotary positions. The wanted numbers are those of transformers' formulas, computed in double
 * precision. */
#include <math.h>

#include "frontend/decoder/rotary.h"
#include "tests/suite.h"

static const struct {
  lp_rope rope;
  int64_t dim;
  double wanted[8];
} cases[] = {
    {{.theta = 10000}, 8, {1, 0.1, 0.01, 0.001}},
    {{.kind = LP_ROPE_LINEAR, .theta = 10000, .factor = 4}, 8, {0.25, 0.025, 0.0025, 0.00025}},
    {{LP_ROPE_YARN, 10000, 4, .beta_fast = 4, .beta_slow = 1, .original_context = 1024, .truncate = true},
     8,
     {1, 0.1, 0.00625, 0.00025}},
    {{LP_ROPE_YARN, 10000, 4, .beta_fast = 4, .beta_slow = 1, .original_context = 1024},
     8,
     {1, 0.1, 0.0051424288, 0.00025}},
    {{LP_ROPE_YARN, 10000, 4, .beta_fast = 32, .beta_slow = 1, .original_context = 8, .truncate = true},
     8,
     {1, 0.025, 0.0025, 0.00025}},
    {{LP_ROPE_YARN, 10000, 4, .beta_fast = 1, .beta_slow = 1, .original_context = 1024},
     8,
     {1, 0.1, 0.01, 0.00025}}, /* both bounds are one */
    {{LP_ROPE_LLAMA3, 10000, 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 1024},
     16,
     {1, 0.316227766, 0.1, 0.0316227766, 0.00308676097, 0.000395284708, 0.000125, 3.95284708e-05}},
};

LP_LOOP_TEST(frequencies, 0, LP_COUNT(cases)) {
  lp_arena *arena = lp_arena_create();
  lp_rotary found = lp_rotary_create(arena, cases[_i].dim, &cases[_i].rope);
  ck_assert_int_eq(found.dim, cases[_i].dim);
  for (int64_t i = 0; i < cases[_i].dim / 2; i++)
    ck_assert_msg(fabs((double)found.inverse[i] - cases[_i].wanted[i]) <= 2e-6 * cases[_i].wanted[i],
                  "frequency %d is %.9g, %.9g wanted", (int)i, (double)found.inverse[i], cases[_i].wanted[i]);
  lp_arena_free(arena);
}

LP_TEST(longrope_has_two_lists) {
  static const float near[] = {1, 2, 4, 8}, far[] = {2, 2, 2, 2};
  lp_arena *arena = lp_arena_create();
  lp_rope rope = {.kind = LP_ROPE_LONG, .theta = 10000, .attention_factor = 1.5, .original_context = 64};
  rope.short_factor = near;
  rope.long_factor = far;
  lp_rotary found = lp_rotary_create(arena, 8, &rope);
  ck_assert_double_eq(found.scale, 1.5);
  ck_assert_int_eq(found.limit, 64);
  ck_assert_float_eq_tol(found.inverse[3], 0.000125f, 1e-9f);
  ck_assert_float_eq_tol(found.inverse[1], 0.05f, 1e-7f);
  ck_assert_float_eq_tol(found.beyond[3], 0.0005f, 1e-9f);
  lp_arena_free(arena);
}

/* Only YaRN and LongRoPE scale cosines and sines. */
LP_TEST(scales) {
  lp_arena *arena = lp_arena_create();
  lp_rope rope = {.kind = LP_ROPE_LINEAR, .theta = 10000, .factor = 4, .attention_factor = 3};
  ck_assert_double_eq(lp_rotary_create(arena, 8, &rope).scale, 1);
  rope = (lp_rope){LP_ROPE_YARN, 10000, 4, .beta_fast = 4, .beta_slow = 1, .original_context = 64};
  rope.attention_factor = 3;
  ck_assert_double_eq(lp_rotary_create(arena, 8, &rope).scale, 3);
  ck_assert_double_eq_tol(lp_rotary_yarn_scale(4, 1), 1.138629436111989, 1e-12);
  ck_assert_double_eq_tol(lp_rotary_yarn_scale(4, 0.7), 1.0970406052783923, 1e-12);
  ck_assert_double_eq(lp_rotary_yarn_scale(1, 1), 1);
  ck_assert_double_eq(lp_rotary_yarn_scale(0.5, 1), 1);
  ck_assert_double_eq_tol(lp_rotary_long_scale(4, 1024), 1.0954451150103321, 1e-12);
  ck_assert_double_eq(lp_rotary_long_scale(1, 1024), 1);
  lp_arena_free(arena);
}
