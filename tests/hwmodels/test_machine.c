#include "base/page/chart.h"
#include "tests/hwmodels/expect.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static lp_machine *load(const char *text) {
  lp_machine *machine = NULL;
  ck_assert_msg(lp_hw_load(text, &machine, NULL) == LP_OK, "'%s' does not load", text);
  return machine;
}

/* The figures of P1's study. */
LP_TEST(machines_of_the_study) {
  static const struct {
    const char *name;
    double f16, bandwidth, price;
  } rows[] = {{"v100s-p1", 130e12, 1134e9, 1.5e-5},
              {"a100-p1", 312e12, 2039e9, 4e-5},
              {"jetson-nano-p1", 0.47e12, 25.6e9, 0},
              {"snapdragon-8s-gen3-p1", 8.5e12, 76.6e9, 0}};
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    lp_machine *m = load(rows[i].name);
    ck_assert_double_eq(lp_hw_peak(m, LP_F16), rows[i].f16);
    ck_assert_double_eq(m->figure[LP_HW_BANDWIDTH], rows[i].bandwidth);
    ck_assert_double_eq(m->figure[LP_HW_PRICE], rows[i].price);
    lp_hw_free(m);
  }
  lp_machine *nano = load("jetson-nano");
  ck_assert_double_eq(nano->figure[LP_HW_MEMORY], 4294967296.0);
  lp_hw_free(nano);
  lp_hw_free(NULL);
}

static double price_of(const char *name) {
  lp_machine *m = load(name);
  const double price = m->figure[LP_HW_PRICE];
  lp_hw_free(m);
  return price;
}

static bool is_of_the_study(const char *name) {
  return lp_has_suffix(name, "-p1");
}

/* Prices of GPUs come from one list of one date, so that plans compare them. The study's machines keep its prices. */
LP_TEST(prices_of_gpus_have_one_provenance) {
  const char *const *names = NULL;
  size_t count = lp_hw_names(&names), priced = 0;
  for (size_t i = 0; i < count; i++) {
    lp_machine *m = load(names[i]);
    if (m->kind == LP_MACHINE_GPU && m->figure[LP_HW_PRICE] > 0) {
      const char *wanted =
          is_of_the_study(names[i]) ? "P1, 2024" : "docs.runpod.io/serverless/pricing, read in November 2026";
      ck_assert_msg(strstr(m->source[LP_HW_PRICE], wanted), "%s: %s", names[i], m->source[LP_HW_PRICE]);
      priced++;
    }
    lp_hw_free(m);
  }
  ck_assert_uint_ge(priced, 12);
  ck_assert_double_gt(price_of("a100"), price_of("l4"));
  ck_assert_double_gt(price_of("h100"), price_of("a100"));
}

/* Only the study's machines reach their peak without a launch. */
LP_TEST(shipped_machines_reach_a_share_of_their_peak) {
  const char *const *names = NULL;
  size_t count = lp_hw_names(&names);
  for (size_t i = 0; i < count; i++) {
    lp_machine *m = load(names[i]);
    const double *figure = m->figure;
    const bool ideal =
        figure[LP_HW_COMPUTE_UTILISATION] == 1 || figure[LP_HW_MEMORY_UTILISATION] == 1 || figure[LP_HW_LAUNCH] == 0;
    ck_assert_msg(ideal == is_of_the_study(names[i]), "%s", names[i]);
    lp_hw_free(m);
  }
  lp_machine *nano = load("jetson-nano");
  ck_assert_double_eq(nano->figure[LP_HW_COMPUTE_UTILISATION], 0.52);
  ck_assert_double_eq(nano->figure[LP_HW_MEMORY_UTILISATION], 0.82);
  ck_assert_double_eq_tol(nano->figure[LP_HW_LAUNCH], 0.03277, 1e-12);
  lp_hw_free(nano);
}

LP_TEST(every_figure_has_a_source) {
  const char *const *names = NULL;
  size_t count = lp_hw_names(&names);
  ck_assert_uint_ge(count, 25);
  for (size_t i = 0; i < count; i++) {
    lp_machine *m = load(names[i]);
    ck_assert_str_eq(m->name, names[i]);
    for (int f = 0; f < LP_HW_FIGURE_COUNT; f++)
      ck_assert_msg(m->figure[f] == 0 || m->source[f], "%s: figure %d has no source", names[i], f);
    lp_hw_free(m);
  }
}

/* A type with a peak of its own is among the types that the machine computes in. */
LP_TEST(every_machine_names_its_target) {
  const char *const *names = NULL;
  size_t count = lp_hw_names(&names);
  for (size_t i = 0; i < count; i++) {
    lp_machine *m = load(names[i]);
    ck_assert_msg(m->target.cpu && m->target.os && m->target.isa, "%s names no target", names[i]);
    ck_assert_int_eq(m->kind == LP_MACHINE_GPU, m->target.gpu_interface != NULL);
    ck_assert(m->target.has_type[0]);
    for (int type = 0; type < LP_HW_TYPES && !lp_streq(names[i], "host"); type++)
      ck_assert_msg(m->figure[LP_HW_PEAK_F32 + type] == 0 || m->target.has_type[type],
                    "%s has a peak for %s, but not the type", names[i], lp_hw_type_names[type]);
    lp_hw_free(m);
  }
}

LP_TEST(targets_of_the_study) {
  static const struct {
    const char *name, *os, *isa, *cpu, *interface, *gpu;
    bool shared, bf16;
  } rows[] = {{"jetson-nano", "linux", "aarch64", "cortex-a57", "cuda", "sm_53", true, false},
              {"v100s", "linux", "x86-64", "x86-64-v3", "cuda", "sm_70", false, false},
              {"a100", "linux", "x86-64", "x86-64-v3", "cuda", "sm_80", false, true},
              {"snapdragon-8s-gen3", "android", "aarch64", "cortex-x4", "opencl", "3.0 adreno-735", true, false},
              {"raspberry-pi-5", "linux", "aarch64", "cortex-a76", NULL, NULL, false, false}};
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    lp_machine *m = load(rows[i].name);
    const lp_hw_target *target = &m->target;
    ck_assert(lp_streq(target->os, rows[i].os) && lp_streq(target->isa, rows[i].isa));
    ck_assert(lp_streq(target->cpu, rows[i].cpu) && lp_streq(target->gpu_interface, rows[i].interface));
    ck_assert(lp_streq(target->gpu, rows[i].gpu));
    ck_assert_int_eq(target->shared_memory, rows[i].shared);
    ck_assert_int_eq(target->has_type[LP_HW_PEAK_BF16 - LP_HW_PEAK_F32], rows[i].bf16);
    lp_hw_free(m);
  }
}

static void same_machine(const lp_machine *a, const lp_machine *b) {
  ck_assert(lp_streq(a->target.os, b->target.os) && lp_streq(a->target.isa, b->target.isa));
  ck_assert(lp_streq(a->target.cpu, b->target.cpu) && lp_streq(a->target.gpu, b->target.gpu));
  ck_assert(lp_streq(a->target.gpu_interface, b->target.gpu_interface));
  ck_assert_int_eq(a->target.shared_memory, b->target.shared_memory);
  ck_assert_mem_eq(a->target.has_type, b->target.has_type, sizeof a->target.has_type);

  ck_assert_str_eq(a->name, b->name);
  ck_assert_str_eq(a->title, b->title);
  ck_assert_int_eq(a->kind, b->kind);
  for (int f = 0; f < LP_HW_FIGURE_COUNT; f++) {
    ck_assert_double_eq(a->figure[f], b->figure[f]);
    ck_assert(lp_streq(a->source[f], b->source[f]));
  }
}

LP_TEST(what_is_printed_reads_back) {
  static const char *const texts[] = {
      "v100s",
      "a100",
      "h200",
      "host",
      "jetson-nano,launch=32.77us,power=0.1W",
      "a100,memory=12345678901,memory_bandwidth=1.2345678901234 TB/s,price_usd_per_s=1e-7"};
  for (size_t i = 0; i < LP_COUNT(texts); i++) {
    lp_machine *m = load(texts[i]), *back = NULL;
    lp_buf text = {0};
    lp_hw_print(m, &text);
    ck_assert_int_eq(lp_hw_parse("printed", text.data, text.size, &back, NULL), LP_OK);
    same_machine(m, back);
    lp_hw_free(m);
    lp_hw_free(back);
    lp_buf_free(&text);
  }
}

LP_TEST(a_text_with_quotes_reads_back) {
  static const char yaml[] = "{machine: \"a \\\"b\\\\ \\n\", kind: cpu, peak_f32: 1 GFLOP/s, memory: 1GiB, "
                             "memory_bandwidth: {value: 1 GB/s, source: '\xc3\xa4 \"'}}";
  lp_machine *m = NULL, *back = NULL;
  ck_assert_int_eq(lp_hw_parse("f", yaml, sizeof yaml - 1, &m, NULL), LP_OK);
  lp_buf text = {0};
  lp_hw_print(m, &text);
  ck_assert_int_eq(lp_hw_parse("printed", text.data, text.size, &back, NULL), LP_OK);
  same_machine(m, back);
  lp_hw_free(m);
  lp_hw_free(back);
  lp_buf_free(&text);
}

LP_TEST(figures_can_be_changed_behind_the_name) {
  lp_machine *m = load("a100,compute_utilisation=0.8,price_usd_per_s=1e-5");
  ck_assert_double_eq(m->figure[LP_HW_COMPUTE_UTILISATION], 0.8);
  ck_assert_double_eq(m->figure[LP_HW_PRICE], 1e-5);
  ck_assert_double_eq(m->figure[LP_HW_PEAK_F16], 312e12);
  lp_hw_free(m);
  m = load("host,memory=1GiB");
  ck_assert_double_eq(m->figure[LP_HW_MEMORY], 1073741824.0);
  lp_hw_free(m);
}

LP_TEST(the_host_is_measured_once) {
  lp_machine *first = load("host"), *second = load("host");
  same_machine(first, second);
  ck_assert_int_eq(first->kind, LP_MACHINE_CPU);
  ck_assert_double_gt(first->figure[LP_HW_PEAK_F32], 1e8);
  ck_assert_double_gt(first->figure[LP_HW_BANDWIDTH], 1e8);
  /* Multiply-adds in registers, and not of values in memory. */
  ck_assert_double_gt(first->figure[LP_HW_PEAK_F32], first->figure[LP_HW_BANDWIDTH]);
  if (first->figure[LP_HW_CACHE] > 0)
    ck_assert_double_ge(first->figure[LP_HW_CACHE_BANDWIDTH], first->figure[LP_HW_BANDWIDTH]);
  lp_hw_free(first);
  lp_hw_free(second);
}

LP_TEST(a_path_is_a_name) {
  static const char yaml[] =
      "machine: mine\nkind: cpu\npeak_f32: 10 GFLOP/s\nmemory_bandwidth: 5 GB/s\nmemory: 1 GiB\n";
  char path[] = "/tmp/llmpart-test-XXXXXX.yaml";
  int fd = mkstemps(path, 5);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, yaml, sizeof yaml - 1), sizeof yaml - 1);
  close(fd);
  lp_machine *m = load(path);
  ck_assert_str_eq(m->name, "mine");
  ck_assert_double_eq(m->figure[LP_HW_MEMORY_UTILISATION], 1);
  lp_hw_free(m);
  unlink(path);
}

LP_TEST(types_without_a_rate_of_their_own) {
  lp_machine *m = load("v100s");
  ck_assert_double_eq(lp_hw_peak(m, LP_BF16), lp_hw_peak(m, LP_F32));
  ck_assert_double_eq(lp_hw_peak(m, LP_I4), lp_hw_peak(m, LP_I8));
  lp_hw_free(m);
  m = load("jetson-nano");
  ck_assert_double_eq(lp_hw_peak(m, LP_I8), lp_hw_peak(m, LP_F16));
  lp_hw_free(m);
}

static double ms_of(const lp_machine *m, lp_op_facts facts, double pass_bytes) {
  facts.pass_bytes = pass_bytes;
  return lp_hw_predict(m, &facts).time_ms;
}

/* A cache of 10 MB at 100 GB/s, memory at 10 GB/s: 1 MB takes 10 or 100 us. */
/* No line of a chart is wider than its frame, also where a row is blank. */
LP_TEST(charts_fit_their_frame) {
  static const char *const names[] = {"a100", "v100s", "jetson-nano", "a100-p1", "jetson-nano-p1"};
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    lp_machine *machine = NULL;
    lp_buf text = {0};
    ck_assert_int_eq(lp_hw_load(names[i], &machine, NULL), LP_OK);
    lp_hw_roofline_text(machine, &text);
    size_t rows = 0, frame = 0;
    for (const char *at = text.data; *at; at = strchr(at, '\n') + 1) {
      size_t length = strcspn(at, "\n");
      const char *bar = memchr(at, '|', length), *corner = memchr(at, '+', length);
      if (corner && corner[1] == '-') frame = length;
      if (!bar || frame > 0) continue;
      rows++;
      ck_assert_uint_le(length, 100);
    }
    ck_assert_uint_gt(rows, 8);
    ck_assert_uint_gt(frame, 40);
    lp_buf_clear(&text);
    lp_hw_roofline_svg(machine, &text);
    size_t texts = 0;
    for (const char *at = text.data; (at = strstr(at, "<text x=\"")); at++, texts++) {
      double x = strtod(at + strlen("<text x=\""), NULL);
      ck_assert(x >= 0 && x <= (double)LP_CHART_WIDTH);
    }
    ck_assert_uint_gt(texts, 8);
    lp_buf_free(&text);
    lp_hw_free(machine);
  }
}

LP_TEST(the_roofline_knows_the_cache) {
  lp_machine *m = load("jetson-nano,memory_bandwidth=10GB/s,memory_utilisation=1,launch=0us,cache=10MB,"
                       "cache_bandwidth=100GB/s");
  const lp_op_facts weights = {.kind = LP_OP_LINEAR, .flops = 1, .bytes = 1e6, .dtype = LP_F32};
  const lp_op_facts sums = {.kind = LP_OP_MAP, .flops = 1, .bytes = 1e6, .dtype = LP_F32};
  ck_assert(lp_hw_asks_pass_bytes(m));
  ck_assert_double_eq_tol(ms_of(m, weights, 10e6), 0.010, 1e-9);
  ck_assert_double_eq_tol(ms_of(m, weights, 15e6), 0.055, 1e-9);
  ck_assert_double_eq_tol(ms_of(m, weights, 20e6), 0.100, 1e-9);
  ck_assert_double_eq_tol(ms_of(m, weights, 0), 0.100, 1e-9); /* unknown: as a large pass */
  ck_assert_double_eq_tol(ms_of(m, sums, 80e6), 0.010, 1e-9); /* operands of the operator before */
  lp_hw_free(m);
  m = load("jetson-nano");
  ck_assert(!lp_hw_asks_pass_bytes(m));
  ck_assert_double_eq(ms_of(m, weights, 1e6), ms_of(m, weights, 1e9));
  lp_hw_free(m);
}

/* P1's all-cloud decode: LLaMA2-7B reads 13,214,154,752 bytes of weights a token: 11.65 ms at 1134 GB/s. */
LP_TEST(the_roofline) {
  lp_machine *m = load("v100s-p1");
  lp_prediction memory =
      lp_hw_predict(m, &(lp_op_facts){.flops = 2 * 6607077376.0, .bytes = 13214154752.0, .dtype = LP_F16});
  ck_assert_double_eq_tol(memory.time_ms, 11.65269, 1e-4);
  ck_assert(memory.low_ms < memory.time_ms && memory.time_ms < memory.high_ms);
  lp_prediction compute = lp_hw_predict(m, &(lp_op_facts){.flops = 130e9, .bytes = 1, .dtype = LP_F16});
  ck_assert_double_eq_tol(compute.time_ms, 1, 1e-12);
  lp_hw_free(m);
  m = load("v100s-p1,memory_utilisation=0.5,launch=3ms");
  lp_prediction slow = lp_hw_predict(m, &(lp_op_facts){.bytes = 1134e6, .dtype = LP_F16});
  ck_assert_double_eq_tol(slow.time_ms, 2 + 3, 1e-12);
  lp_hw_free(m);
}

/* The study's machines are at their peaks, and have its prices. */
LP_TEST(the_table_names_what_can_be_bought) {
  lp_buf text = {0};
  lp_hw_list(&text);
  const char *const *names = NULL;
  size_t count = lp_hw_names(&names);
  for (size_t i = 0; i < count; i++)
    ck_assert_int_eq(strstr(lp_buf_text(&text), names[i]) == NULL, is_of_the_study(names[i]));
  lp_buf_free(&text);
}

static void refuses(const char *text, const char *wanted, const char *note) {
  lp_diag *diag = lp_diag_create();
  lp_machine *machine = NULL;
  ck_assert_int_eq(lp_hw_load(text, &machine, diag), LP_FAILED);
  ck_assert_ptr_null(machine);
  expect_error(diag, wanted, note);
}

LP_TEST(bad_names) {
  refuses("a10", "error: unknown machine 'a10'", "note: did you mean 'a100'?");
  refuses("hots", "error: unknown machine 'hots'", "note: did you mean 'host'?");
  refuses("", "error: unknown machine ''", NULL);
  refuses("/no/such.yaml", "/no/such.yaml: error: cannot open: No such file or directory", NULL);
  refuses("a100,memry=1", "a100,memry=1: error: a machine has no figure 'memry'",
          "a100,memry=1: note: did you mean 'memory'?");
  refuses("a100,memory", "a100,memory: error: 'memory' after the machine's name is not a change such as 'peak_f32=...'",
          NULL);
  refuses("host,power=x", "host,power=x: error: 'x' is not a power such as 250 W", NULL);
  refuses("a100,compute_utilisation=1.5",
          "a100,compute_utilisation=1.5: error: 'compute_utilisation' is '1.5', but the share of the peak reached is "
          "from 1e-06 to 1",
          NULL);
}

static void refuses_yaml(const char *yaml, size_t size, const char *wanted, const char *note) {
  lp_diag *diag = lp_diag_create();
  lp_machine *machine = NULL;
  ck_assert_int_eq(lp_hw_parse("m.yaml", yaml, size, &machine, diag), LP_FAILED);
  ck_assert_ptr_null(machine);
  expect_error(diag, wanted, note);
}

LP_TEST(bad_yaml) {
  static const struct {
    const char *yaml, *wanted, *note;
  } rows[] = {
      {"", "m.yaml: error: holds no YAML document", NULL},
      {"- 1\n", "m.yaml:1:1: error: is not a mapping of keys to values", NULL},
      {"machine: [\n", "m.yaml:2:1: error: is not YAML: did not find expected node content", NULL},
      {"machine: a\nkind: tpu\n", "m.yaml:2:7: error: 'kind' is 'tpu', neither 'gpu' nor 'cpu'", NULL},
      {"machine: a\nkidn: gpu\n", "m.yaml:2:1: error: unknown key 'kidn'", "m.yaml:2:1: note: did you mean 'kind'?"},
      {"machine: a\nmachine: b\n", "m.yaml:2:1: error: 'machine' is given twice", NULL},
      {"machine: a\npower: 1 W\npower: 2 W\n", "m.yaml:3:1: error: 'power' is given twice", NULL},
      {"machine: a\npower: -1 W\n", "m.yaml:2:8: error: '-1 W' is not a power such as 250 W", NULL},
      {"machine: a\nmemory_bandwidth: -5 GB/s\n", "m.yaml:2:19: error: '-5 GB/s' is not a rate such as 2039 GB/s",
       "m.yaml:2:19: note: it is given for 'memory_bandwidth', the bandwidth of memory"},
      {"machine: a\nmemory: [1]\n", "m.yaml:2:9: error: 'memory' is neither a value nor { value, source }", NULL},
      {"machine: a\nmemory: {source: x}\n", "m.yaml:2:9: error: 'memory' lacks 'value'", NULL},
      {"machine: a\nmemory: {valeu: x}\n", "m.yaml:2:10: error: unknown key 'valeu'",
       "m.yaml:2:10: note: did you mean 'value'?"},
      {"machine: a\nmemory: {value: 1, value: 2}\n", "m.yaml:2:20: error: 'value' is given twice", NULL},
      {"kind: cpu\n", "m.yaml:1:1: error: lacks 'machine', the name", NULL},
      {"machine: a\n", "m.yaml:1:1: error: lacks 'kind': gpu or cpu", NULL},
      {"machine: \"\"\n", "m.yaml:1:10: error: 'machine' is empty or holds a NUL character", NULL},
      {"machine: \"a\\0b\"\n", "m.yaml:1:10: error: 'machine' is empty or holds a NUL character", NULL},
      {"machine: [a]\n", "m.yaml:1:10: error: 'machine' is not a single value", NULL},
      {"? [a]\n: b\n", "m.yaml:1:3: error: 'a key' is not a single value", NULL},
      {"machine: a\nkind: cpu\n", "m.yaml:1:1: error: the machine lacks 'peak_f32': the peak rate in f32", NULL},
      {"&a {machine: *a}\n", "m.yaml:1:1: error: 'machine' is not a single value", NULL},
  };
  for (size_t i = 0; i < LP_COUNT(rows); i++)
    refuses_yaml(rows[i].yaml, strlen(rows[i].yaml), rows[i].wanted, rows[i].note);
  refuses_yaml("a: \xff", 4, "m.yaml: error: is not YAML: invalid leading UTF-8 octet at byte 3", NULL);
}

/* The type in which tensor cores multiply, and the first architectures that do, of our kernel and of a library. */
LP_TEST(tensor_cores_by_stored_type) {
  const lp_hw_tensor bf16 = lp_hw_tensor_of(LP_BF16), f16 = lp_hw_tensor_of(LP_F16), codes = lp_hw_tensor_of(LP_I8);
  ck_assert(bf16.dtype == LP_BF16 && bf16.sm == 80 && bf16.sm_of_library == 80);
  ck_assert(f16.dtype == LP_F16 && f16.sm == 75 && f16.sm_of_library == 70);
  ck_assert(codes.dtype == LP_F16 && codes.sm == 75 && codes.sm_of_library == 80);
  ck_assert_int_eq(lp_hw_attention_tensor_from(LP_BF16, 64, 128), 80);
  ck_assert_int_eq(lp_hw_attention_tensor_from(LP_F16, 8, 8), 75);
  ck_assert_int_eq(lp_hw_attention_tensor_from(LP_F32, 64, 64), 0);
  ck_assert_int_eq(lp_hw_attention_tensor_from(LP_F16, 60, 64), 0);
  ck_assert_int_eq(lp_hw_attention_tensor_from(LP_F16, 64, 60), 0);
}
