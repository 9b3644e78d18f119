/* Fits on a small table made by a known law: steps of 64 tokens, 2 % of noise. */
#include "tests/hwmodels/expect.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Uniform in [-1, 1], the same on every machine. */
static double noise(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 11) / (double)(UINT64_C(1) << 52) - 1;
}

static double linear_us(double m, double n, double k) {
  double tokens = ceil(m / 64) * 64;
  return 5 + fmax(2 * tokens * n * k / 200e6, 2 * n * k / 1.5e6);
}

static void add_linear(lp_buf *csv, int64_t m, int64_t n, int64_t k, double us) {
  lp_buf_printf(csv, "linear,%" PRId64 ",%" PRId64 ",%" PRId64 ",,,,,,,f16,%.3f\n", m, n, k, us);
}

static const char header[] = "op,m,n,k,batch,q_len,kv_len,heads,kv_heads,head_dim,dtype,time_us\n";

/* Sizes of `rest` modulo 3 of three shapes, of decode attention and of a norm. */
static void make_table(bool train, lp_buf *csv) {
  static const int64_t shapes[][2] = {{4096, 4096}, {12288, 4096}, {4096, 11008}};
  uint64_t state = train ? 1 : 2;
  lp_buf_puts(csv, header);
  for (int64_t i = 0; i < 128; i++) {
    if ((i % 3 == 1) == train) continue;
    int64_t m = 16 * (i + 1), kv = 32 * (i + 1);
    for (size_t s = 0; s < LP_COUNT(shapes); s++)
      add_linear(csv, m, shapes[s][0], shapes[s][1],
                 linear_us((double)m, (double)shapes[s][0], (double)shapes[s][1]) * (1 + 0.02 * noise(&state)));
    lp_buf_printf(csv, "attention,,,,8,1,%" PRId64 ",32,8,128,f16,%.3f\n", kv,
                  (10 + (double)kv * 8 * 8 * 128 * 4 / 1.2e6) * (1 + 0.02 * noise(&state)));
    lp_buf_printf(csv, "norm,%" PRId64 ",4096,,,,,,,,f16,%.3f\n", m,
                  (3 + (double)m * 4096 * 4 / 1e6) * (1 + 0.02 * noise(&state)));
  }
}

static void parse(const lp_buf *csv, lp_hw_samples *samples) {
  ck_assert_int_eq(lp_hw_samples_parse("t.csv", csv->data, csv->size, samples, NULL), LP_OK);
}

static lp_machine *fit(const char *base, const lp_buf *csv, lp_hw_fit_result *result) {
  lp_hw_samples samples = {0};
  lp_machine *machine = NULL;
  parse(csv, &samples);
  ck_assert_int_eq(lp_hw_load(base, &machine, NULL), LP_OK);
  ck_assert_int_eq(lp_hw_fit(machine, &samples, &(lp_hw_fit_options){.knots = 32, .source = "a test"}, result, NULL),
                   LP_OK);
  lp_vec_free(&samples);
  return machine;
}

static const lp_hw_errors *find(const lp_hw_errors *errors, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++)
    if (lp_streq(errors[i].name, name)) return &errors[i];
  ck_abort_msg("no errors of '%s'", name);
}

LP_TEST(left_out_points_are_predicted_and_covered) {
  lp_buf train = {0}, test = {0};
  make_table(true, &train);
  make_table(false, &test);
  lp_hw_fit_result result;
  lp_machine *machine = fit("a100", &train, &result);
  ck_assert_uint_eq(result.impossible, 0);
  lp_hw_samples held = {0};
  parse(&test, &held);
  lp_hw_errors errors[LP_HW_ERRORS];
  size_t impossible = 1, count = lp_hw_evaluate(machine, &held, errors, &impossible);
  ck_assert_uint_eq(impossible, 0);
  static const char *const names[] = {"linear", "attention_decode", "norm", "all"};
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    const lp_hw_errors *e = find(errors, count, names[i]);
    ck_assert_msg(e->mape_pct < 3, "%s: %.2f %%", names[i], e->mape_pct);
    ck_assert_msg(e->coverage90 > 0.8 && e->coverage90 <= 1, "%s: %.2f", names[i], e->coverage90);
    ck_assert(e->median_pct <= e->p90_pct);
  }
  lp_vec_free(&held);
  lp_hw_free(machine);
  lp_buf_free(&train);
  lp_buf_free(&test);
}

LP_TEST(unseen_shapes_are_near_and_say_how_far) {
  lp_buf train = {0};
  make_table(true, &train);
  lp_hw_fit_result result;
  lp_machine *machine = fit("a100", &train, &result);
  lp_op_facts facts = {.m = 512, .n = 8192, .k = 4096, .dtype = LP_F16};
  lp_hw_op_facts(LP_HW_LINEAR, &facts);
  lp_prediction p = lp_hw_predict(machine, &facts);
  ck_assert_double_eq_tol(p.time_ms * 1e3 / linear_us(512, 8192, 4096), 1, 0.05);
  ck_assert(p.low_ms < p.time_ms && p.time_ms < p.high_ms);
  ck_assert(p.distance > 0.5 && p.distance < 1.5);
  facts.n = 4096;
  facts.m = 528;
  lp_hw_op_facts(LP_HW_LINEAR, &facts);
  ck_assert_double_lt(lp_hw_predict(machine, &facts).distance, 0.1);
  lp_hw_free(machine);
  lp_buf_free(&train);
}

/* Heads of models are measured for one row, where they are four times as fast for their size here. That says nothing of
 * 64 rows. */
LP_TEST(shapes_of_one_size_do_not_count_for_others) {
  lp_buf csv = {0};
  lp_buf_puts(&csv, header);
  for (int64_t n = 1000; n <= 4000; n *= 2)
    for (int64_t m = 1; m <= 128; m *= 2)
      add_linear(&csv, m, n, 1000, 20 + 1e-4 * (double)(m * n));
  for (int64_t n = 1100; n <= 4000; n += 200)
    add_linear(&csv, 1, n, 1000, 5);
  lp_hw_fit_result result;
  lp_machine *machine = fit("a100", &csv, &result);
  lp_op_facts facts = {.m = 64, .n = 3000, .k = 1000, .dtype = LP_F16};
  lp_hw_op_facts(LP_HW_LINEAR, &facts);
  ck_assert_double_eq_tol(lp_hw_predict(machine, &facts).time_ms * 1e3 / (20 + 1e-4 * 64 * 3000), 1, 0.1);
  lp_buf_free(&csv);
  lp_hw_free(machine);
}

LP_TEST(impossible_points_go) {
  lp_buf csv = {0};
  make_table(true, &csv);
  add_linear(&csv, 4096, 4096, 4096, 10); /* 13.7 PFLOP/s */
  add_linear(&csv, 4096, 4096, 4096, 440);
  lp_buf_puts(&csv, "norm,65536,4096,,,,,,,,f16,1\n"); /* 1 GiB in 1 us */
  lp_hw_fit_result result;
  lp_machine *machine = fit("a100", &csv, &result);
  ck_assert_uint_eq(result.impossible, 3); /* 440 us are 312.4 TFLOP/s */
  lp_hw_free(machine);
  lp_buf_free(&csv);
}

/* Exactly as fast as the machine can be is possible, for what computes and for what moves bytes. */
LP_TEST(the_fastest_possible_point) {
  lp_machine *machine = NULL;
  ck_assert_int_eq(lp_hw_load("a100", &machine, NULL), LP_OK);
  const double peak = lp_hw_peak(machine, LP_F16), cache = machine->figure[LP_HW_CACHE];
  ck_assert_double_gt(cache, 0);
  lp_hw_sample computes = {.facts = {.dtype = LP_F16, .flops = 1e12, .bytes = 1}}, moves = computes;
  computes.time_us = computes.facts.flops / peak * 1e6;
  moves.facts.flops = 1;
  moves.facts.bytes = cache + 1e9;
  moves.time_us = (moves.facts.bytes - cache) / machine->figure[LP_HW_BANDWIDTH] * 1e6;
  ck_assert(lp_hw_is_possible(machine, &computes) && lp_hw_is_possible(machine, &moves));
  computes.time_us *= 0.999999;
  moves.time_us *= 0.999999;
  ck_assert(!lp_hw_is_possible(machine, &computes) && !lp_hw_is_possible(machine, &moves));
  lp_hw_free(machine);
}

/* A norm with a bend that no base law has: smooth in the size, with a little noise. */
static double bent_us(double m) {
  return exp(3 + log(m / 64) + 0.6 * sin(1.5 * log(m / 64)));
}

static void make_bent(bool smooth, lp_buf *csv) {
  uint64_t state = 3;
  lp_buf_puts(csv, header);
  for (int64_t i = 0; i < 24; i++) {
    double m = ceil(64 * pow(1.35, (double)i)), factor = 1 + 0.0005 * noise(&state);
    if (!smooth) factor = 1 + 0.2 * noise(&state);
    lp_buf_printf(csv, "norm,%.0f,4096,,,,,,,,f16,%.5f\n", m, bent_us(m) * factor);
  }
}

/* The kind of the only curve, as a machine's file names it. */
static const char *kind_of(const lp_machine *machine, lp_buf *yaml) {
  lp_hw_print(machine, yaml);
  const char *at = strstr(yaml->data, "          kind: ");
  ck_assert_ptr_nonnull(at);
  return at + strlen("          kind: ");
}

LP_TEST(a_smooth_curve_is_a_spline) {
  lp_buf csv = {0}, yaml = {0};
  make_bent(true, &csv);
  lp_hw_fit_result result;
  lp_machine *machine = fit("a100", &csv, &result), *back = NULL;
  const char *kind = kind_of(machine, &yaml);
  ck_assert_msg(strncmp(kind, "linear", 6) != 0, "%.8s", kind);
  ck_assert_int_eq(lp_hw_parse("printed", yaml.data, yaml.size, &back, NULL), LP_OK);
  double error = 0, points = 0;
  for (int64_t m = 100; m < 40000; m += m / 7) {
    lp_op_facts facts = {.m = m, .n = 4096, .dtype = LP_F16};
    lp_hw_op_facts(LP_HW_NORM, &facts);
    double us = lp_hw_predict(machine, &facts).time_ms * 1e3;
    error += fabs(us / bent_us((double)m) - 1);
    points++;
    ck_assert_double_eq_tol(lp_hw_predict(back, &facts).time_ms * 1e3 / us, 1, 2e-3);
  }
  ck_assert_double_lt(error / points, 0.006); /* by lines: 0.0084 */
  lp_hw_free(back);
  lp_hw_free(machine);
  lp_buf_free(&yaml);
  lp_buf_free(&csv);
}

/* The file has the error of each kind at left-out sizes, and curves of the kind with the least. */
LP_TEST(the_kind_with_the_least_error_is_taken) {
  static const char *const kinds[] = {"linear", "steffen", "akima"};
  for (int smooth = 0; smooth < 2; smooth++) {
    lp_buf csv = {0}, yaml = {0};
    make_bent(smooth, &csv);
    lp_hw_fit_result result;
    lp_machine *machine = fit("a100", &csv, &result);
    const char *kind = kind_of(machine, &yaml), *errors = strstr(yaml.data, "left_out_pct: {");
    ck_assert_ptr_nonnull(errors);
    double error[LP_COUNT(kinds)];
    size_t least = 0;
    for (size_t k = 0; k < LP_COUNT(kinds); k++) {
      char key[16];
      (void)snprintf(key, sizeof key, " %s: ", kinds[k]);
      error[k] = strtod(strstr(errors, key) + strlen(key), NULL);
      ck_assert_double_gt(error[k], 0);
      if (error[k] < error[least]) least = k;
    }
    ck_assert_msg(strncmp(kind, kinds[least], strlen(kinds[least])) == 0, "%.8s, not %s", kind, kinds[least]);
    lp_hw_free(machine);
    lp_buf_free(&yaml);
    lp_buf_free(&csv);
  }
}

/* A machine made only of the table still finds rows that are far off. */
LP_TEST(a_table_speaks_for_itself) {
  lp_buf csv = {0};
  make_table(true, &csv);
  add_linear(&csv, 4096, 4096, 4096, 10);
  lp_hw_samples samples = {0};
  parse(&csv, &samples);
  lp_machine *machine = lp_hw_from_samples("mine", "A card", &samples);
  lp_hw_fit_result result;
  ck_assert_int_eq(lp_hw_fit(machine, &samples, &(lp_hw_fit_options){.knots = 8}, &result, NULL), LP_OK);
  ck_assert_uint_eq(result.impossible, 1);
  lp_buf text = {0};
  lp_machine *back = NULL;
  lp_hw_print(machine, &text);
  ck_assert_int_eq(lp_hw_parse("printed", text.data, text.size, &back, NULL), LP_OK);
  for (size_t i = 0; i < samples.count; i++) {
    double a = lp_hw_predict(machine, &samples.data[i].facts).time_ms;
    ck_assert_double_eq_tol(lp_hw_predict(back, &samples.data[i].facts).time_ms / a, 1, 2e-3);
  }
  lp_hw_free(back);
  lp_hw_free(machine);
  lp_vec_free(&samples);
  lp_buf_free(&text);
  lp_buf_free(&csv);
}

LP_TEST(changed_figures_are_a_roofline) {
  static const char *const rooflines[] = {"a100,predictor=roofline", "a100,compute_utilisation=0.8", "a100-p1"};
  lp_machine *machine = NULL;
  for (size_t i = 0; i < LP_COUNT(rooflines); i++) {
    ck_assert_int_eq(lp_hw_load(rooflines[i], &machine, NULL), LP_OK);
    ck_assert_ptr_eq(machine->predictor, &lp_hw_roofline);
    lp_hw_free(machine);
  }
  ck_assert_int_eq(lp_hw_load("a100,price_usd_per_s=1", &machine, NULL), LP_OK);
  ck_assert_ptr_eq(machine->predictor, &lp_hw_fitted);
  lp_hw_free(machine);
}

LP_TEST(shipped_fits_cover_decode_of_llama) {
  lp_machine *machine = NULL;
  ck_assert_int_eq(lp_hw_load("a100", &machine, NULL), LP_OK);
  lp_op_facts facts = {.m = 1, .n = 4096, .k = 4096, .dtype = LP_F16};
  lp_hw_op_facts(LP_HW_LINEAR, &facts);
  ck_assert_double_eq_tol(lp_hw_predict(machine, &facts).time_ms, 0.0255, 0.002);
  facts = (lp_op_facts){.m = 1, .n = 4096, .k = 4096, .dtype = LP_I8}; /* of another dtype: half the bytes, less sure */
  lp_hw_op_facts(LP_HW_LINEAR, &facts);
  lp_prediction p = lp_hw_predict(machine, &facts);
  ck_assert(p.time_ms < 0.02 && p.time_ms > 0.01 && p.distance >= 1);
  lp_hw_free(machine);
}

/* Reads at 100 GB/s while a pass fits 30 MB, at 25 beyond. */
static double read_us(double m, double n, double k, double pass) {
  double bytes = 4 * (m * k + k * n + m * n), flops = 2 * m * n * k;
  return 0.1 + fmax(flops / 3e5, bytes / (pass <= 3e7 ? 1e5 : 2.5e4));
}

static void add_pass(lp_buf *csv, int64_t m, int64_t n, int64_t k, double pass, uint64_t *state) {
  lp_buf_printf(csv, "linear,%" PRId64 ",%" PRId64 ",%" PRId64 ",f32,%.4f,%.0f\n", m, n, k,
                read_us((double)m, (double)n, (double)k, pass) * (1 + 0.02 * noise(state)), pass);
}

/* One shape in passes of many sizes; others, in one pass each, take the curve from it. */
LP_TEST(what_a_pass_reads_decides_the_rate) {
  lp_buf csv = {0};
  uint64_t state = 3;
  lp_buf_puts(&csv, "op,m,n,k,dtype,time_us,pass_bytes\n");
  for (int i = 0; i < 14; i++)
    for (int64_t m = 1; m <= 256; m *= 4)
      add_pass(&csv, m, 512, 512, 5e6 * pow(1.4, i), &state);
  for (int64_t m = 1; m <= 256; m *= 4) {
    add_pass(&csv, m, 256, 256, 6e6, &state);
    add_pass(&csv, m, 1024, 1024, 2e8, &state);
  }
  lp_hw_samples samples = {0};
  parse(&csv, &samples);
  lp_machine *machine = lp_hw_from_samples("mine", "A processor", &samples), *back = NULL;
  machine->figure[LP_HW_CACHE] = 3e7;
  lp_hw_fit_result result;
  ck_assert_int_eq(lp_hw_fit(machine, &samples, &(lp_hw_fit_options){.knots = 16}, &result, NULL), LP_OK);
  ck_assert(lp_hw_asks_pass_bytes(machine));
  lp_buf text = {0}, table = {0};
  lp_hw_print(machine, &text);
  ck_assert_int_eq(lp_hw_parse("printed", text.data, text.size, &back, NULL), LP_OK);
  static const struct {
    int64_t m, n;
    double pass;
  } cases[] = {{1, 512, 1e7}, {1, 512, 3e8}, {1, 256, 3e8}, {1, 1024, 1e7}, {256, 512, 1e7}, {256, 512, 3e8}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_op_facts facts = {.m = cases[i].m, .n = cases[i].n, .k = cases[i].n, .dtype = LP_F32};
    lp_hw_op_facts(LP_HW_LINEAR, &facts);
    facts.pass_bytes = cases[i].pass;
    double wanted = read_us((double)facts.m, (double)facts.n, (double)facts.k, facts.pass_bytes);
    double found = lp_hw_predict(machine, &facts).time_ms * 1e3;
    ck_assert_msg(fabs(found / wanted - 1) < 0.12, "case %zu: %.3f us, not %.3f", i, found, wanted);
    ck_assert_double_eq_tol(lp_hw_predict(back, &facts).time_ms * 1e3 / found, 1, 2e-3);
    if (cases[i].pass < 1e8) continue;
    facts.pass_bytes = 0; /* not known: as of a large one */
    ck_assert_double_eq_tol(lp_hw_predict(machine, &facts).time_ms * 1e3 / found, 1, 0.08);
  }
  lp_hw_samples again = {0};
  lp_hw_samples_print(&samples, &table);
  parse(&table, &again);
  ck_assert_uint_eq(again.count, samples.count);
  ck_assert_double_eq(again.data[7].facts.pass_bytes, samples.data[7].facts.pass_bytes);
  lp_hw_free(back);
  lp_hw_free(machine);
  lp_vec_free(&samples);
  lp_vec_free(&again);
  lp_buf_free(&text);
  lp_buf_free(&table);
  lp_buf_free(&csv);
}

/* Weights that were measured in the cache only do not stream faster than memory gives them. */
LP_TEST(weights_stream_at_the_rate_of_memory) {
  lp_buf csv = {0};
  uint64_t state = 5;
  lp_buf_puts(&csv, "op,m,n,k,dtype,time_us,pass_bytes\n");
  for (int64_t m = 1; m <= 256; m *= 4)
    for (int64_t n = 256; n <= 1024; n *= 2)
      add_pass(&csv, m, n, n, 6e6, &state);
  lp_hw_samples samples = {0};
  parse(&csv, &samples);
  lp_machine *machine = lp_hw_from_samples("mine", "A processor", &samples);
  lp_hw_fit_result result;
  machine->figure[LP_HW_BANDWIDTH] = 2.5e10;
  machine->figure[LP_HW_CACHE] = 3e7;
  machine->figure[LP_HW_CACHE_BANDWIDTH] = 1e11;
  ck_assert_int_eq(lp_hw_fit(machine, &samples, &(lp_hw_fit_options){.knots = 16}, &result, NULL), LP_OK);
  ck_assert(lp_hw_asks_pass_bytes(machine)); /* although no family has a curve of passes */
  lp_op_facts facts = {.m = 1, .n = 4096, .k = 4096, .dtype = LP_F32};
  lp_hw_op_facts(LP_HW_LINEAR, &facts);
  const double passes[] = {6e6, 4.5e7, 3e8}, streamed[] = {0, 0.5, 1}; /* the share of the bytes that is not cached */
  for (size_t i = 0; i < LP_COUNT(passes); i++) {
    facts.pass_bytes = passes[i];
    const lp_prediction p = lp_hw_predict(machine, &facts);
    ck_assert_double_ge(p.time_ms * (1 + 1e-9), streamed[i] * facts.bytes / 2.5e10 * 1e3);
    ck_assert_double_ge(p.low_ms * (1 + 1e-9), streamed[i] * facts.bytes / 2.5e10 * 1e3);
    if (streamed[i] == 1) ck_assert_double_eq_tol(p.time_ms, facts.bytes / 2.5e10 * 1e3, 1e-6);
  }
  lp_hw_free(machine);
  lp_vec_free(&samples);
  lp_buf_free(&csv);
}

/* The fit recognises times in whole microseconds: predictions are not rounded, but are compared as the clock would show
 * them. */
LP_TEST(a_coarse_clock_is_known) {
  lp_buf csv = {0};
  lp_buf_puts(&csv, header);
  for (int m = 1; m <= 256; m++)
    lp_buf_printf(&csv, "norm,%d,4096,,,,,,,,f16,%.0f\n", m, round(2 + 0.03 * m));
  lp_hw_fit_result result;
  lp_machine *machine = fit("a100", &csv, &result);
  lp_hw_samples samples = {0};
  parse(&csv, &samples);
  lp_prediction p = lp_hw_predict(machine, &samples.data[25].facts);
  ck_assert_double_eq_tol(p.tick_ms, 1e-3, 1e-12);
  ck_assert_double_eq_tol(p.time_ms * 1e3, 2 + 0.03 * 26, 0.25);
  lp_hw_errors errors[LP_HW_ERRORS];
  size_t impossible, count = lp_hw_evaluate(machine, &samples, errors, &impossible);
  ck_assert_double_lt(find(errors, count, "norm")->mape_pct, 3); /* 5 % if the times are not rounded */
  lp_buf text = {0};
  lp_hw_print(machine, &text);
  ck_assert_ptr_nonnull(strstr(lp_buf_text(&text), "tick_us: 1\n"));
  lp_buf_free(&text);
  lp_vec_free(&samples);
  lp_hw_free(machine);
  lp_buf_free(&csv);
}

LP_TEST(blanks_around_fields_do_not_count) {
  static const char *const tables[] = {"op,m,n,k,dtype,time_us\nlinear,16,32,48,f16,5.5\n",
                                       " op , m,n\t,k,dtype\t ,\ttime_us\r\nlinear\t,16 , 32,\t48,  f16 , 5.5 \r\n"};
  lp_buf printed[2] = {0};
  for (size_t i = 0; i < LP_COUNT(tables); i++) {
    lp_hw_samples samples = {0};
    ck_assert_int_eq(lp_hw_samples_parse("t.csv", tables[i], strlen(tables[i]), &samples, NULL), LP_OK);
    ck_assert_uint_eq(samples.count, 1);
    ck_assert_double_eq(samples.data[0].time_us, 5.5);
    lp_hw_samples_print(&samples, &printed[i]);
    lp_vec_free(&samples);
  }
  ck_assert_str_eq(lp_buf_text(&printed[0]), lp_buf_text(&printed[1]));
  for (size_t i = 0; i < LP_COUNT(printed); i++)
    lp_buf_free(&printed[i]);
}

static void refuses(const char *csv, const char *wanted, const char *note) {
  lp_diag *diag = lp_diag_create();
  lp_hw_samples samples = {0};
  ck_assert_int_eq(lp_hw_samples_parse("t.csv", csv, strlen(csv), &samples, diag), LP_FAILED);
  expect_error(diag, wanted, note);
  lp_vec_free(&samples);
}

LP_TEST(bad_tables) {
  refuses("op,m,n,k\n", "t.csv:1: error: the table lacks the column 'time_us'", NULL);
  refuses("op,m,n,k,dtype,time_ms\n", "t.csv:1: error: the table lacks the column 'time_us'",
          "t.csv:1: note: did you mean 'time_ms'?");
  refuses("op,m,n,time_us\nlinear,1,2,3\n", "t.csv:1: error: the table lacks the column 'k'",
          "t.csv:2: note: 'linear' needs it");
  refuses("op,m,n,k,time_us\nlinear,1,2,,3\n", "t.csv:2:12: error: 'k' is empty, but 'linear' needs it", NULL);
  refuses("op,m,n,k,time_us\nlinear,1,2,3,nan\n",
          "t.csv:2:14: error: 'time_us' is 'nan', not a number of microseconds above 0", NULL);
  refuses("op,m,n,k,time_us\nlinear,1,2,3,60us\n",
          "t.csv:2:14: error: 'time_us' is '60us', not a number of microseconds above 0", NULL);
  refuses("op,m,n,k,time_us\nlinear,-1,2,3,60\n", "t.csv:2:8: error: 'm' is '-1', not a whole number from 1 to 2^40",
          NULL);
  refuses("op,m,n,k,time_us\nlienar,1,2,3,60\n", "t.csv:2:1: error: unknown operator 'lienar'",
          "t.csv:2:1: note: did you mean 'linear'?");
  refuses("op,m,n,k,dtype,time_us\nlinear,1,2,3,f17,60\n",
          "t.csv:2:14: error: 'dtype' is 'f17', not a type such as f16", NULL);
  refuses("op,m,n,k,time_us\nlinear,1,2,3\n", "t.csv:2: error: has 4 fields, but the header has 5", NULL);
  refuses("op,m,n,k,time_us,pass_bytes\nlinear,1,2,3,60,-5\n",
          "t.csv:2:17: error: 'pass_bytes' is '-5', not a number of bytes above 0", NULL);
  refuses("op,m,n,k,time_us\nlinear,1, \t-2,3,60\n",
          "t.csv:2:12: error: 'n' is '-2', not a whole number from 1 to 2^40", NULL);
  refuses("op,m,n,k,time_us\nlinear,1, ,3,60\n", "t.csv:2:11: error: 'n' is empty, but 'linear' needs it", NULL);
  refuses("op,m,time_us,m\n", "t.csv:1:14: error: the column 'm' occurs twice", NULL);
  refuses("op,time_us\n", "t.csv: error: holds no measurement", NULL);
}

static void refuses_yaml(const char *measured, const char *wanted, const char *note) {
  lp_buf yaml = {0};
  lp_buf_printf(&yaml,
                "{machine: a, kind: gpu, peak_f32: 1 TFLOP/s, memory: 1GiB, memory_bandwidth: 1 GB/s,\nmeasured: %s}",
                measured);
  lp_diag *diag = lp_diag_create();
  lp_machine *machine = NULL;
  ck_assert_int_eq(lp_hw_parse("m.yaml", yaml.data, yaml.size, &machine, diag), LP_FAILED);
  expect_error(diag, wanted, note);
  lp_buf_free(&yaml);
}

LP_TEST(bad_measured_parts) {
  refuses_yaml("{}", "m.yaml:2:11: error: 'measured' lacks 'families'", NULL);
  refuses_yaml("{famlies: []}", "m.yaml:2:12: error: unknown key 'famlies'",
               "m.yaml:2:12: note: did you mean 'families'?");
  refuses_yaml("{families: [{op: linear}]}", "m.yaml:2:23: error: the family lacks 'curves'", NULL);
  refuses_yaml("{families: [{op: linear, curves: [{}], flops_per_us: 1, bytes_per_us: -1}]}",
               "m.yaml:2:81: error: 'bytes_per_us' is '-1', not a number from 1e-06 to 1e+18", NULL);
  refuses_yaml("{families: [{op: norm, flops_per_us: 1, bytes_per_us: 1, curves: [{shape: {n: 4}, size: [1, 2], "
               "factor: [1]}]}]}",
               "m.yaml:2:77: error: the curve has 2 'size' and 1 'factor', not as many of both", NULL);
  refuses_yaml("{families: [{op: linear, pass: {bytes: [1, 2], share: [1]}}]}",
               "m.yaml:2:42: error: 'pass' has 2 'bytes' and 1 'share', not as many of both", NULL);
  refuses_yaml("{families: [{op: linear, pass: {rate: [1]}}]}", "m.yaml:2:43: error: unknown key 'rate'", NULL);
  refuses_yaml("{families: [{op: linear, left_out_pct: {cubic: 1}}]}", "m.yaml:2:51: error: unknown key 'cubic'", NULL);
  refuses_yaml("{families: [{op: norm, flops_per_us: 1, bytes_per_us: 1, curves: [{shape: {k: 4}}]}]}",
               "m.yaml:2:86: error: unknown key 'k'", NULL);
  refuses_yaml("{families: [{op: norm, flops_per_us: 1, bytes_per_us: 1, curves: [{size: [2, 1]}]}]}",
               "m.yaml:2:88: error: 'size' does not ascend", NULL);
}
