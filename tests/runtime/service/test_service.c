#include "runtime/service/service.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Figures of the paper's Fig. 5: mean generation delay of 1,000 tokens, slope of the delay over the share of quality
 * tasks with 0.1 s of backhaul, and lengths that break even: (P - dTTFT - t_back) / dTPOT. */
LP_TEST(published_pairs) {
  static const struct {
    const char *name;
    double edge, cloud, slope, rate_edge, rate_cloud;
  } rows[] = {{"llama3", 13.563, 31.670, 18.207, 75, 32},
              {"gemma-gemini", 6.682, 17.661, 11.080, 155, 58},
              {"llama2", 11.466, 25.420, 14.054, 89, 40}};
  double before[LP_SITE_COUNT] = {INFINITY, INFINITY};
  static const int order[] = {0, 2, 1}; /* Llama 3 is the slowest, Gemma the fastest */
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    lp_service *service = NULL;
    ck_assert_int_eq(lp_service_load(rows[order[i]].name, &service, NULL), LP_OK);
    const double wanted[] = {rows[order[i]].edge, rows[order[i]].cloud};
    for (int site = 0; site <= LP_SITE_CLOUD; site++) {
      const lp_service_model *model = &service->at[site];
      double delay = lp_generation_s(model, 0, 1000, LP_COUNT_PAPER);
      ck_assert_double_eq_tol(delay, wanted[site], 1e-3);
      ck_assert_double_lt(delay, before[site]);
      before[site] = delay;
      ck_assert_double_eq_tol(delay - lp_generation_s(model, 0, 1000, LP_COUNT_ONCE), model->tpot_s, 1e-12);
      ck_assert_double_eq_tol(lp_generation_s(model, 0, 0, LP_COUNT_ONCE), model->ttft_s, 1e-12);
    }
    ck_assert_double_eq_tol(lp_service_slope_s(service, 1000, 0.1, LP_COUNT_PAPER), rows[order[i]].slope, 1e-3);
    double slower = 1 / rows[order[i]].rate_cloud - 1 / rows[order[i]].rate_edge;
    for (int p = 1; p <= 20; p++) {
      double length = lp_service_break_even(service, p, 0.1, LP_COUNT_PAPER);
      ck_assert_double_eq_tol(length, (p - 0.19 - 0.1) / slower, 1e-3);
      /* There the two rewards are equal. */
      double edge = lp_service_reward(60, lp_generation_s(&service->at[0], 0, length, LP_COUNT_PAPER), p, true);
      double cloud = lp_service_reward(60, lp_generation_s(&service->at[1], 0, length, LP_COUNT_PAPER) + 0.1, p, false);
      ck_assert_double_eq_tol(edge, cloud, 1e-9);
    }
    lp_service_free(service);
  }
}

/* 1,000 tokens of 4 bytes are 32 kbit: 68 ms at 470.6 kbit/s; a factor of 8 would not show in a delay of 22 s. */
LP_TEST(transmission) {
  ck_assert_double_eq_tol(lp_transmission_s(1000, 4, 32e3, LP_SITE_EDGE, 0.1), 1, 1e-12);
  ck_assert_double_eq_tol(lp_transmission_s(1000, 4, 32e3, LP_SITE_CLOUD, 0.1), 1.1, 1e-12);
  ck_assert_double_eq_tol(lp_transmission_s(1000, 4, 470588.235, LP_SITE_EDGE, 0.1), 0.068, 1e-6);
  ck_assert_double_eq(lp_transmission_s(1000, 4, INFINITY, LP_SITE_EDGE, 0.1), 0);
}

LP_TEST(print_and_read_back) {
  const char *const *names = NULL;
  size_t count = lp_service_names(&names);
  ck_assert_uint_eq(count, 3);
  for (size_t i = 0; i < count; i++) {
    lp_service *service = NULL, *back = NULL;
    lp_buf text = {0};
    ck_assert_int_eq(lp_service_load(names[i], &service, NULL), LP_OK);
    lp_service_print(service, &text);
    ck_assert_int_eq(lp_service_parse("printed", text.data, text.size, &back, NULL), LP_OK);
    for (int site = 0; site < LP_SITE_COUNT; site++)
      ck_assert_double_eq_tol(back->at[site].tpot_s, service->at[site].tpot_s, 1e-12);
    lp_buf_free(&text);
    lp_service_free(service);
    lp_service_free(back);
  }
}

LP_TEST(bad_files) {
  static const struct {
    const char *text, *wanted;
  } rows[] = {
      {"service: x\nedge: {ttft: 1s, tpot: 1s}\n", "s.yaml:1:1: error: the service lacks 'cloud'"},
      {"service: x\nedge: {ttft: 1s}\ncloud: {}\n", "s.yaml:2:7: error: 'edge' wants one of 'tpot' and 'tokens_per_s'"},
      {"service: x\nedge: {tpot: 1s}\ncloud: {}\n", "s.yaml:2:7: error: 'edge' lacks 'ttft'"},
      {"service: x\nedge: {tpot: 0s}\ncloud: {}\n", "s.yaml:2:7: error: 'edge' lacks 'ttft'"},
      {"service: x\nedge: {ttft: 0s}\ncloud: {}\n", "s.yaml:2:7: error: 'edge' wants one of 'tpot' and 'tokens_per_s'"},
      {"service: x\nedge: {ttft: 0s, tpot: 0s, bench: a}\ncloud: {}\n",
       "s.yaml:2:7: error: 'edge' wants one of 'bench', 'report', or figures ('ttft' and 'tpot')"},
      {"service: x\nedge: {ttft: 0s, tpot: 0s, tokens_per_s: 1}\ncloud: {}\n",
       "s.yaml:2:7: error: 'edge' wants one of 'tpot' and 'tokens_per_s'"},
      {"service: x\nedge: {}\ncloud: {}\n",
       "s.yaml:2:7: error: 'edge' wants one of 'bench', 'report', or figures ('ttft' and 'tpot')"},
      {"service: x\nedge: {ttft: 1s, tpot: 1s}\ncloud: {bench: a, report: b}\n",
       "s.yaml:3:8: error: 'cloud' wants one of 'bench', 'report', or figures ('ttft' and 'tpot')"},
      {"service: x\nedge: {ttft: 1s, tpto: 1s}\ncloud: {}\n", "s.yaml:2:18: error: unknown key 'tpto'"},
      {"service: x\nedge: {bench: none.json}\ncloud: {}\n",
       "./none.json: error: cannot open: No such file or directory"},
  };
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    lp_diag *diag = lp_diag_create();
    lp_service *service = NULL;
    ck_assert_int_eq(lp_service_parse("s.yaml", rows[i].text, strlen(rows[i].text), &service, diag), LP_FAILED);
    ck_assert_ptr_null(service);
    lp_buf found = {0};
    lp_diag_format(lp_diag_get(diag, 0), &found);
    ck_assert_str_eq(found.data, rows[i].wanted);
    ck_assert_uint_eq(lp_diag_error_count(diag), 1);
    lp_buf_free(&found);
    lp_diag_free(diag);
  }
}
