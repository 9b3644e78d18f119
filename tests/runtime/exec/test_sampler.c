/* The sampler: greedy and its ties, the filters' edges, the distribution, repeatability, damaged logits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/sampler.h"
#include "runtime/runtime.h"
#include "tests/suite.h"

LP_CASE(.timeout = 120);

#define DRAWS 100000
enum { MAX_VOCAB = 64 };

static lp_sample draw(const lp_sampling *sampling, const float *logits, int32_t vocab, uint64_t position) {
  lp_buf scratch = {0};
  lp_sample sample = lp_sampler_draw(sampling, logits, vocab, 0, position, &scratch);
  lp_buf_free(&scratch);
  return sample;
}

static void count_draws(const lp_sampling *sampling, const float *logits, int32_t vocab, int *counts) {
  lp_buf scratch = {0};
  for (int i = 0; i < vocab; i++)
    counts[i] = 0;
  for (uint64_t i = 0; i < DRAWS; i++) {
    int32_t token = lp_sampler_draw(sampling, logits, vocab, i % 7, i / 7, &scratch).token;
    if (token < 0 || token >= vocab) ck_abort_msg("token %d of %d", token, vocab);
    counts[token]++;
  }
  lp_buf_free(&scratch);
}

/* Expects a count within five standard deviations of the probability's. */
static void expect_share(int count, double probability) {
  double deviation = sqrt(DRAWS * probability * (1 - probability));
  ck_assert_double_le(fabs(count - DRAWS * probability), 5 * deviation + 0.5);
}

LP_TEST(greedy_takes_the_lowest_of_equals) {
  static const float logits[] = {1, 3, -2, 3, 0};
  lp_sampling sampling = {.temperature = 0, .top_p = 1};
  lp_sample sample = draw(&sampling, logits, 5, 0);
  ck_assert_int_eq(sample.token, 1);
  double sum = 0;
  for (int i = 0; i < 5; i++)
    sum += exp(logits[i] - 3);
  ck_assert_double_eq_tol(sample.confidence, 1 / sum, 1e-7);
  sampling.temperature = NAN;
  ck_assert_int_eq(draw(&sampling, logits, 5, 0).token, 1);
}

/* Vocabularies with every remainder modulo the vector's width, with the greatest logit anywhere, and NaN and small
 * logits between. */
LP_TEST(long_vocabularies_are_looked_at_whole) {
  enum { MOST = 2100 };
  static float logits[MOST];
  lp_sampling sampling = {.temperature = 0, .top_p = 1};
  for (int32_t vocab = 1000; vocab < MOST; vocab += 37) {
    for (int32_t i = 0; i < vocab; i++)
      logits[i] = i % 11 == 0 ? NAN : i % 7 == 0 ? -200.0f : 4 * sinf((float)i);
    int32_t greatest = vocab % 2 ? vocab - 1 : vocab * 3 / 7;
    logits[greatest] = 4.5f;
    double sum = 0;
    for (int32_t i = 0; i < vocab; i++)
      if (!isnan(logits[i])) sum += exp((double)logits[i] - 4.5);
    lp_sample sample = draw(&sampling, logits, vocab, 0);
    ck_assert_int_eq(sample.token, greatest);
    ck_assert_double_eq_tol(sample.confidence, 1 / sum, 1e-6 / sum);
    logits[greatest] = INFINITY;
    ck_assert_int_eq(draw(&sampling, logits, vocab, 0).token, greatest);
    ck_assert_double_eq(draw(&sampling, logits, vocab, 0).confidence, 1);
  }
}

LP_TEST(draws_follow_the_distribution) {
  static const float logits[] = {0, 1, 2, -1, 0.5f, -100};
  static const double temperatures[] = {1, 0.5, 2};
  for (size_t t = 0; t < LP_COUNT(temperatures); t++) {
    lp_sampling sampling = {.temperature = temperatures[t], .top_p = 1, .seed = 11};
    int counts[6];
    double sum = 0;
    for (int i = 0; i < 6; i++)
      sum += exp(logits[i] / temperatures[t]);
    count_draws(&sampling, logits, 6, counts);
    for (int i = 0; i < 6; i++)
      expect_share(counts[i], exp(logits[i] / temperatures[t]) / sum);
  }
}

LP_TEST(top_k_keeps_the_k_greatest) {
  static const float logits[] = {0, 1, 1, 1, -1};
  int counts[5];
  lp_sampling sampling = {.temperature = 1, .top_k = 2, .top_p = 1, .seed = 5};
  count_draws(&sampling, logits, 5, counts);
  expect_share(counts[1], 0.5); /* of equals, the lower ids */
  expect_share(counts[2], 0.5);
  sampling.top_k = 1;
  count_draws(&sampling, logits, 5, counts);
  ck_assert_int_eq(counts[1], DRAWS);
  sampling.top_k = 1000; /* more than there are */
  count_draws(&sampling, logits, 5, counts);
  ck_assert_int_gt(counts[4], 0);
}

LP_TEST(top_p_keeps_the_fewest_that_reach_p) {
  /* shares 0.5, 0.25, 0.125, 0.125 */
  static const float logits[] = {-2.0794415f, -0.6931472f, -1.3862944f, -2.0794415f};
  static const struct {
    double p;
    int kept;
  } cases[] = {{0, 1}, {-1, 1}, {0.4, 1}, {0.6, 2}, {0.74, 2}, {0.8, 3}, {0.9, 4}, {1, 4}, {2, 4}};
  for (size_t c = 0; c < LP_COUNT(cases); c++) {
    lp_sampling sampling = {.temperature = 1, .top_p = cases[c].p, .seed = 3};
    int counts[4], kept = 0;
    count_draws(&sampling, logits, 4, counts);
    for (int i = 0; i < 4; i++)
      kept += counts[i] > 0;
    ck_assert_int_eq(kept, cases[c].kept);
    ck_assert_int_gt(counts[1], 0);
    if (cases[c].kept == 2) expect_share(counts[1], 2.0 / 3);
    if (cases[c].kept == 3) ck_assert_int_gt(counts[0], 0); /* of equals, the lower id */
  }
}

LP_TEST(top_p_counts_shares_of_what_top_k_left) {
  static const float logits[] = {0, 0, 0, 0};
  lp_sampling sampling = {.temperature = 1, .top_k = 2, .top_p = 0.5, .seed = 3};
  int counts[4];
  count_draws(&sampling, logits, 4, counts);
  ck_assert_int_eq(counts[0], DRAWS); /* one half of the two that are left */
}

LP_TEST(the_number_depends_on_nothing_else) {
  float logits[MAX_VOCAB] = {0};
  lp_sampling sampling = {.temperature = 1, .top_p = 1, .seed = 1};
  lp_buf scratch = {0};
  int32_t first[3][100];
  int same_position = 0, same_seed = 0;
  for (uint64_t s = 0; s < 3; s++)
    for (uint64_t p = 0; p < 100; p++)
      first[s][p] = lp_sampler_draw(&sampling, logits, MAX_VOCAB, s, p, &scratch).token;
  for (uint64_t p = 100; p-- > 0;)
    for (uint64_t s = 3; s-- > 0;)
      ck_assert_int_eq(draw(&sampling, logits, MAX_VOCAB, p).token, first[0][p]);
  sampling.seed = 2;
  for (uint64_t p = 0; p < 100; p++) {
    same_position += first[0][p] == first[1][p];
    same_seed += first[0][p] == draw(&sampling, logits, MAX_VOCAB, p).token;
  }
  ck_assert_int_lt(same_position, 12);
  ck_assert_int_lt(same_seed, 12);
  lp_buf_free(&scratch);
}

/* The bits that a run on any machine must find again. */
LP_TEST(the_stream_is_fixed) {
  float logits[MAX_VOCAB] = {0};
  lp_sampling sampling = {.temperature = 1, .top_p = 1, .seed = 42};
  lp_buf found = {0};
  for (uint64_t p = 0; p < 8; p++)
    lp_buf_printf(&found, "%d ", draw(&sampling, logits, MAX_VOCAB, p).token);
  ck_assert_str_eq(found.data, "24 45 55 10 25 58 15 45 ");
  lp_buf_free(&found);
}

LP_TEST(damaged_logits_are_never_drawn) {
  static const float damaged[][4] = {{NAN, 1, NAN, 0}, {NAN, -INFINITY, 2, NAN}, {1, INFINITY, NAN, 0}};
  static const int32_t greatest[] = {1, 2, 1};
  for (size_t c = 0; c < LP_COUNT(damaged); c++) {
    for (int32_t k = 0; k < 4; k++) {
      for (int halves = 0; halves <= 2; halves++) {
        double p = 0.5 * halves;
        lp_sampling sampling = {.temperature = k == 0 && p == 0 ? 0 : 1, .top_k = k, .top_p = p, .seed = 9};
        for (uint64_t i = 0; i < 200; i++) {
          lp_sample sample = draw(&sampling, damaged[c], 4, i);
          ck_assert(!isnan(damaged[c][sample.token]) && damaged[c][sample.token] > -INFINITY);
          ck_assert(sample.confidence > 0 && sample.confidence <= 1);
          if (sampling.temperature == 0) ck_assert_int_eq(sample.token, greatest[c]);
        }
      }
    }
  }
}

LP_TEST(nothing_but_damage_still_gives_a_token) {
  static const float logits[] = {NAN, -INFINITY, NAN};
  lp_sampling sampling = {.temperature = 1, .top_p = 0.5, .top_k = 2};
  lp_sample sample = draw(&sampling, logits, 3, 0);
  ck_assert(sample.token >= 0 && sample.token < 3);
  sampling.temperature = 0;
  ck_assert_int_eq(draw(&sampling, logits, 3, 0).token, 0);
  ck_assert_int_eq(draw(&sampling, (float[]){-1e30f}, 1, 0).token, 0);
}

/* The `wanted` greatest, lower ids first among equals, a NaN as minus infinity; `sum` as lp_gpu_find_top has it. */
static void find_top(const float *logits, int32_t vocab, int32_t wanted, float *value, int32_t *id, double *sum) {
  bool taken[MAX_VOCAB] = {false};
  for (int32_t k = 0; k < wanted; k++) {
    int32_t best = -1;
    for (int32_t i = 0; i < vocab; i++) {
      float x = isnan(logits[i]) ? -INFINITY : logits[i];
      if (!taken[i] && (best < 0 || x > value[k])) best = i, value[k] = x;
    }
    taken[best] = true;
    id[k] = best;
  }
  *sum = 0;
  for (int32_t i = 0; i < vocab; i++)
    if (!isnan(logits[i])) *sum += exp((double)logits[i] - (double)value[0]);
}

LP_TEST(the_greatest_are_enough) {
  static const lp_sampling cases[] = {{.temperature = 0, .top_p = 1},
                                      {.temperature = 1, .top_k = 1, .top_p = 1},
                                      {.temperature = 0.7, .top_k = 7, .top_p = 1, .seed = 3},
                                      {.temperature = 1.5, .top_k = 20, .top_p = 0.8, .seed = 4},
                                      {.temperature = 0.001, .top_k = 63, .top_p = 0.5, .seed = 5}};
  lp_buf scratch = {0};
  srand(1);
  for (int round = 0; round < 2000; round++) {
    const lp_sampling *sampling = &cases[round % 5];
    float logits[MAX_VOCAB], value[MAX_VOCAB];
    int32_t id[MAX_VOCAB], wanted = lp_sampler_wants(sampling, MAX_VOCAB);
    lp_sampler_top top = {.count = wanted, .logit = value, .id = id};
    for (int i = 0; i < MAX_VOCAB; i++) /* with many equals, and some damage */
      logits[i] = rand() % 40 == 0 ? NAN : (float)(rand() % 16) * 0.5f;
    ck_assert_int_eq(wanted, sampling->temperature > 0 ? sampling->top_k + 1 : 1);
    find_top(logits, MAX_VOCAB, wanted, value, id, &top.sum);
    lp_sample all = lp_sampler_draw(sampling, logits, MAX_VOCAB, 2, (uint64_t)round, &scratch);
    lp_sample few = lp_sampler_draw_top(sampling, &top, 2, (uint64_t)round, &scratch);
    ck_assert_int_eq(few.token, all.token);
    ck_assert_double_eq_tol(few.confidence, all.confidence, 1e-6);
  }
  ck_assert_int_eq(lp_sampler_wants(&(lp_sampling){.temperature = 1, .top_p = 0.9}, MAX_VOCAB), 0);
  ck_assert_int_eq(lp_sampler_wants(&(lp_sampling){.temperature = 1, .top_k = 64, .top_p = 1}, MAX_VOCAB), 0);
  lp_buf_free(&scratch);
}

/* Rows of logits, and of what a GPU found in them: each row gives its own token. */
LP_TEST(rows_are_apart) {
  enum { ROWS = 3, WIDTH = 4 };
  static const float row[ROWS * WIDTH] = {0, 9, 1, 2, 7, 1, 2, 3, 0, 1, 2, 8};
  static const int32_t greatest[ROWS] = {1, 0, 3};
  const lp_sampling greedy = {.temperature = 0, .top_p = 1};
  float found[ROWS * 3]; /* of each row the sum, the greatest logit and its number */
  lp_buf scratch = {0};
  for (int r = 0; r < ROWS; r++) {
    found[3 * r] = 1 + (float)r;
    found[3 * r + 1] = row[r * WIDTH + greatest[r]];
    memcpy(&found[3 * r + 2], &greatest[r], sizeof greatest[r]);
  }
  const lp_logits all = {.row = row, .vocab = WIDTH}, few = {.found = found, .wanted = 1, .vocab = WIDTH};
  for (int r = 0; r < ROWS; r++) {
    ck_assert_int_eq(lp_logits_draw(&all, r, &greedy, 0, 0, &scratch).token, greatest[r]);
    lp_sample sample = lp_logits_draw(&few, r, &greedy, 0, 0, &scratch);
    ck_assert_int_eq(sample.token, greatest[r]);
    ck_assert_double_eq_tol(sample.confidence, 1.0 / (1 + r), 1e-6);
  }
  lp_buf_free(&scratch);
}

LP_TEST(extreme_temperatures) {
  static const float logits[] = {0, 1e-3f, -5};
  int counts[3];
  lp_sampling sampling = {.temperature = 1e-300, .top_p = 1};
  count_draws(&sampling, logits, 3, counts);
  ck_assert_int_eq(counts[1], DRAWS);
  sampling.temperature = 1e300;
  count_draws(&sampling, logits, 3, counts);
  for (int i = 0; i < 3; i++)
    expect_share(counts[i], 1.0 / 3);
}
