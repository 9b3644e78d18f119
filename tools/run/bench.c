/* llmpart bench: measures the speed of a bundle, in the rows of llama-bench. */
#include "base/page/page.h"
#include "base/path.h"
#include "base/units.h"
#include "runtime/runtime.h"
#include "tools/gate/gate.h"
#include "tools/run/addresses.h"
#include "tools/tools.h"

#include <time.h>

extern const char lp_bench_page_js[];

typedef struct {
  lp_sides_options sides;
  lp_texts clouds;
  int64_t threads;
  lp_bench_options bench;
  const char *format, *baseline;
  double regression;
  bool profile;
} bench_flags;

typedef struct {
  const char *name;
  double load_ms;
  lp_bench_result result;
} bench_report;

static void print_md(const bench_report *report, lp_buf *out) {
  char weights[32], peak[32];
  lp_format_bytes((double)report->result.weight_bytes, weights);
  lp_format_bytes((double)report->result.peak_bytes, peak);
  lp_buf_puts(out, "| bundle | weights | threads | test | tokens/s | GB/s | load ms | peak memory |\n"
                   "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |\n");
  LP_FOR_EACH(const lp_bench_row, row, report->result.row, report->result.rows) {
    lp_buf_printf(out, "| %s | %s | %d | %s | %.2f ± %.2f | ", report->name, weights, report->result.threads, row->name,
                  row->tokens_per_s, row->deviation);
    if (row->gbytes_per_s > 0) lp_buf_printf(out, "%.2f", row->gbytes_per_s);
    lp_buf_printf(out, " | %.1f | %s |\n", report->load_ms, peak);
  }
}

static void print_csv(const bench_report *report, lp_buf *out) {
  lp_buf_puts(out, "bundle,weight_bytes,threads,test,tokens,tokens_per_s,deviation_tokens_per_s,gbytes_per_s,load_ms,"
                   "peak_bytes\n");
  LP_FOR_EACH(const lp_bench_row, row, report->result.row, report->result.rows)
    lp_buf_printf(out, "%s,%" PRId64 ",%d,%s,%" PRId64 ",%.4f,%.4f,%.4f,%.3f,%" PRId64 "\n", report->name,
                  report->result.weight_bytes, report->result.threads, row->name, row->tokens, row->tokens_per_s,
                  row->deviation, row->gbytes_per_s, report->load_ms, report->result.peak_bytes);
}

static void print_json(const bench_report *report, lp_buf *out) {
  lp_json_writer json = lp_tool_json(out, 9, "llmpart.bench/1");
  lp_json_put_text(&json, "bundle", report->name);
  lp_json_put_integer(&json, "threads", report->result.threads);
  lp_json_put_integer(&json, "weight_bytes", report->result.weight_bytes);
  lp_json_put_number(&json, "load_ms", report->load_ms);
  lp_json_put_integer(&json, "peak_bytes", report->result.peak_bytes);
  lp_json_put_array(&json, "tests");
  LP_FOR_EACH(const lp_bench_row, row, report->result.row, report->result.rows) {
    lp_json_put_object(&json, NULL);
    lp_json_put_text(&json, "test", row->name);
    lp_json_put_integer(&json, "tokens", row->tokens);
    lp_json_put_number(&json, "tokens_per_s", row->tokens_per_s);
    lp_json_put_number(&json, "deviation_tokens_per_s", row->deviation);
    lp_json_put_number(&json, "gbytes_per_s", row->gbytes_per_s);
    lp_json_put_end(&json);
  }
  lp_json_put_end(&json);
  lp_json_document_end(&json);
}

static void put_pair(lp_json_writer *json, const char *key, const char *value) {
  lp_json_put_object(json, NULL);
  lp_json_put_text(json, "key", key);
  lp_json_put_text(json, "value", value);
  lp_json_put_end(json);
}

static void put_metric(lp_json_writer *json, const char *test, const char *figure, double value) {
  char key[96];
  (void)snprintf(key, sizeof key, "%s%s%s", test, *test ? "/" : "", figure);
  for (char *at = strchr(key, '@'); at; at = strchr(at, '@'))
    *at = '-'; /* MLflow takes letters, digits, spaces and _-./: only */
  lp_json_put_object(json, NULL);
  lp_json_put_text(json, "key", key);
  lp_json_put_number(json, "value", value);
  lp_json_put_integer(json, "timestamp", (int64_t)time(NULL) * 1000);
  lp_json_put_integer(json, "step", 0);
  lp_json_put_end(json);
}

/* The body of MLflow's REST call runs/log-batch (API 2.0), without its "run_id". */
static void print_mlflow(const bench_report *report, lp_buf *out) {
  lp_json_writer json = lp_json_writer_begin(out, (lp_json_style){.indent = 2, .digits = 9, .marks_reals = true});
  char threads[16];
  (void)snprintf(threads, sizeof threads, "%d", report->result.threads);
  lp_json_put_object(&json, NULL);
  lp_json_put_array(&json, "metrics");
  LP_FOR_EACH(const lp_bench_row, row, report->result.row, report->result.rows) {
    put_metric(&json, row->name, "tokens_per_s", row->tokens_per_s);
    put_metric(&json, row->name, "deviation_tokens_per_s", row->deviation);
    put_metric(&json, row->name, "gbytes_per_s", row->gbytes_per_s);
  }
  put_metric(&json, "", "load_ms", report->load_ms);
  put_metric(&json, "", "weight_bytes", (double)report->result.weight_bytes);
  put_metric(&json, "", "peak_bytes", (double)report->result.peak_bytes);
  lp_json_put_end(&json);
  lp_json_put_array(&json, "params");
  put_pair(&json, "bundle", report->name);
  put_pair(&json, "threads", threads);
  lp_json_put_end(&json);
  lp_json_put_array(&json, "tags");
  put_pair(&json, "llmpart.version", LP_VERSION);
  lp_json_put_end(&json);
  lp_json_document_end(&json);
}

/* tools/run/page/page.js draws the JSON. */
static void print_html(const bench_report *report, lp_buf *out) {
  lp_buf data = {0}, title = {0}, text = {0};
  print_json(report, &data);
  print_md(report, &text);
  lp_buf_printf(&title, "%s: llmpart bench", report->name);
  lp_page_write(&(lp_page){&title, &data, &text, lp_bench_page_js}, out);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void put_parts_json(const char *test, const lp_profile *profile, lp_json_writer *json) {
  lp_json_put_object(json, NULL);
  lp_json_put_text(json, "test", test);
  lp_json_put_number(json, "total_ms", profile->total_ms);
  lp_json_put_array(json, "parts");
  for (size_t i = 0; i < profile->parts.count; i++) {
    lp_json_put_object(json, NULL);
    lp_json_put_text(json, "name", profile->parts.data[i].name);
    lp_json_put_number(json, "ms", profile->parts.data[i].ms);
    lp_json_put_end(json);
  }
  lp_json_put_end(json);
  lp_json_put_end(json);
}

static void put_parts_csv(const char *test, const lp_profile *profile, lp_buf *out) {
  for (size_t i = 0; i < profile->parts.count; i++)
    lp_buf_printf(out, "%s,%s,%.6f\n", test, profile->parts.data[i].name, profile->parts.data[i].ms);
}

static void put_parts_md(const char *test, const lp_profile *profile, lp_buf *out) {
  lp_buf_printf(out, "| %s: part | us | share |\n| --- | ---: | ---: |\n", test);
  LP_FOR_VEC(const lp_part_time, part, &profile->parts)
    lp_buf_printf(out, "| %s | %.1f | %.1f %% |\n", part->name, part->ms * 1e3, 100 * part->ms / profile->total_ms);
  lp_buf_printf(out, "| all | %.1f | |\n\n", profile->total_ms * 1e3);
}

/* Measures a prompt, and a token in the middle of a generation; `json` is inside a list, or NULL. */
static lp_status profile_tests(const bench_flags *flags, lp_session *session, lp_json_writer *json, lp_buf *out,
                               lp_diag *diag) {
  const lp_bench_options *bench = &flags->bench;
  int64_t middle = (bench->depth > 0 ? bench->depth : 1) + bench->generate / 2;
  const struct {
    const char *kind;
    int64_t past, count, tokens;
  } tests[] = {{"pp", bench->depth, bench->prompt, bench->prompt}, {"tg", middle, 1, bench->generate}};
  for (size_t i = 0; i < LP_COUNT(tests); i++) {
    if (tests[i].tokens == 0) continue;
    lp_profile profile;
    char name[48], several[24] = "";
    if (bench->batch > 1) (void)snprintf(several, sizeof several, " x %" PRId64, bench->batch);
    (void)snprintf(name, sizeof name, "%s%" PRId64 "%s", tests[i].kind, tests[i].tokens, several);
    lp_status status =
        lp_session_profile(session, bench->batch, tests[i].past, tests[i].count, bench->repetitions, &profile, diag);
    if (status == LP_OK && json)
      put_parts_json(name, &profile, json);
    else if (status == LP_OK)
      (lp_streq(flags->format, "csv") ? put_parts_csv : put_parts_md)(name, &profile, out);
    lp_vec_free(&profile.parts);
    if (status != LP_OK) return status;
  }
  return LP_OK;
}

static lp_status profile_session(const bench_flags *flags, lp_session *session, lp_buf *out, lp_diag *diag) {
  if (!lp_streq(flags->format, "json")) {
    if (lp_streq(flags->format, "csv")) lp_buf_puts(out, "test,part,ms\n");
    return profile_tests(flags, session, NULL, out, diag);
  }
  lp_json_writer json = lp_tool_json(out, 9, "llmpart.profile/1");
  lp_json_put_array(&json, "tests");
  LP_TRY(profile_tests(flags, session, &json, out, diag));
  lp_json_put_end(&json);
  lp_json_document_end(&json);
  return LP_OK;
}

static lp_status profile(const bench_flags *flags, const lp_sides *sides, lp_buf *out, lp_diag *diag) {
  lp_generate_options options = {.sampling = {.top_p = 1}, .ignore_eos = true, .threads = (int32_t)flags->threads};
  lp_session *session = NULL;
  LP_TRY(lp_session_open(sides->bundle, &options, &session, diag));
  lp_status status = profile_session(flags, session, out, diag);
  lp_session_close(session);
  return status;
}

static lp_status measure(const bench_flags *flags, const lp_sides *sides, bench_report *report, lp_diag *diag) {
  report->name = lp_path_base(flags->sides.bundle);
  report->load_ms = sides->load_ms;
  lp_generate_options options = {
      .cloud = sides->cloud, .sampling = {.top_p = 1}, .ignore_eos = true, .threads = (int32_t)flags->threads};
  options.clouds = sides->clouds;
  options.cloud_count = sides->cloud_count;
  lp_session *session = NULL;
  LP_TRY(lp_session_open(sides->bundle, &options, &session, diag));
  lp_status status = lp_session_bench(session, &flags->bench, &report->result, diag);
  lp_session_close(session);
  return status;
}

/* ---- baseline ---------------------------------------------------------------------------------------------------- */

static lp_status report_worse(const lp_changes *changes, const bench_flags *flags, lp_diag *diag) {
  char before[32], after[32];
  LP_FOR_VEC(const lp_figure_change, change, &changes->figures)
    if (change->is_worse)
      lp_report_error(diag, LP_LOC_FILE(flags->baseline), "%s was %s and is %s, %+.2f %%; %.4g %% is allowed",
                      change->name, lp_gate_format(change->name, change->old_value, before),
                      lp_gate_format(change->name, change->new_value, after), 100 * change->change,
                      100 * flags->regression);
  return changes->is_worse ? LP_MISMATCH : LP_OK;
}

/* Compares the measurement with that of --baseline. */
static lp_status compare_baseline(const bench_flags *flags, const bench_report *report, const lp_gate_report *before,
                                  lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_gate_report after = {0};
  lp_changes changes = {0};
  print_json(report, &text);
  lp_status status = lp_gate_report_read("the measurement", lp_buf_text(&text), text.size, &after, diag);
  if (status == LP_OK) status = lp_gate_compare(before, &after, flags->regression, &changes, diag);
  if (status == LP_OK) status = report_worse(&changes, flags, diag);
  lp_changes_free(&changes);
  lp_gate_report_free(&after);
  return status;
}

static const struct {
  const char *name;
  void (*print)(const bench_report *report, lp_buf *out);
} forms[] = {
    {"md", print_md}, {"json", print_json}, {"csv", print_csv}, {"html", print_html}, {"mlflow", print_mlflow}};

static lp_status bench(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  bench_flags *flags = command->user;
  flags->sides.bundle = args->data[0];
  if (flags->baseline && flags->profile)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--baseline"), "a profile is not compared: leave --profile out");
  if (flags->profile && (lp_streq(flags->format, "html") || lp_streq(flags->format, "mlflow")))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("-o"), "a profile is written as md, csv or json only");
  flags->sides.threads = (int32_t)flags->threads;
  if (flags->profile) flags->sides.in_process = true;
  lp_sides sides = {0};
  bench_report report = {0};
  lp_gate_report before = {0};
  lp_place_addresses clouds;
  lp_arena *text = lp_arena_create();
  lp_buf out = {0};
  lp_status status = lp_run_addresses_read(&flags->clouds, "--cloud", false, text, &clouds, diag);
  if (status == LP_OK && flags->baseline) status = lp_gate_report_load(flags->baseline, &before, diag);
  flags->sides.cloud = clouds.only;
  flags->sides.clouds = clouds.place;
  flags->sides.cloud_count = clouds.count;
  if (status == LP_OK) status = lp_sides_open(&flags->sides, &sides, diag);
  if (status == LP_OK)
    status = flags->profile ? profile(flags, &sides, &out, diag) : measure(flags, &sides, &report, diag);
  for (size_t i = 0; status == LP_OK && !flags->profile && i < LP_COUNT(forms); i++)
    if (lp_streq(flags->format, forms[i].name)) forms[i].print(&report, &out);
  if (status == LP_OK) status = lp_tool_write("-", &out, diag);
  if (status == LP_OK && flags->baseline) status = compare_baseline(flags, &report, &before, diag);
  lp_gate_report_free(&before);
  lp_buf_free(&out);
  lp_sides_close(&sides);
  lp_arena_free(text);
  lp_vec_free(&flags->clouds);
  return status;
}

int lp_tool_bench(int argc, char **argv) {
  bench_flags flags = {
      .bench = {.prompt = 512, .generate = 128, .batch = 1, .repetitions = 5}, .format = "md", .regression = 0.05};
  const lp_option options[] = {
      {"-p", LP_OPTION_COUNT, &flags.bench.prompt, "N", "measure a prompt of N tokens (512); 0 leaves it out"},
      {"-n", LP_OPTION_COUNT, &flags.bench.generate, "N", "measure the generation of N tokens (128); 0 leaves it out"},
      {"-d", LP_OPTION_COUNT, &flags.bench.depth, "N", "begin with N tokens in the KV cache (0)"},
      {"-b", LP_OPTION_POSITIVE, &flags.bench.batch, "N", "run N sequences at once (1)"},
      {"-r", LP_OPTION_POSITIVE, &flags.bench.repetitions, "N", "repeat each test N times (5)"},
      {"-t", LP_OPTION_COUNT, &flags.threads, "N", "use N threads (the machine's cores)"},
      {"-o", LP_OPTION_CHOICE, &flags.format, "md|json|csv|html|mlflow",
       "choose the format (md); mlflow: the body of MLflow's runs/log-batch, without a run"},
      {"--baseline", LP_OPTION_TEXT, &flags.baseline, "FILE.json",
       "compare with an earlier measurement (-o json); exit status 4 when a figure is worse"},
      {"--max-regression", LP_OPTION_SHARE, &flags.regression, "SHARE",
       "with --baseline: allow figures to become worse by this share (5%)"},
      {"--cloud", LP_OPTION_TEXTS, &flags.clouds, "[NAME=]HOST:PORT",
       "use this worker, which serves the same bundle; with more than two places one for each, after its name: "
       "repeatable"},
      {"--profile", LP_OPTION_FLAG, &flags.profile, NULL,
       "print the time of each operator (of a bundle of `compile --profile`) or segment"},
      {"--in-process", LP_OPTION_FLAG, &flags.sides.in_process, NULL, "run all sides in this process"},
  };
  const lp_command command = {.usage =
                                  "llmpart bench BUNDLE [-p 512] [-n 128] [-d 0] [-b 1] [-r 5] [-t THREADS] [-o md]",
                              .summary = "Measures prompt processing (pp) and token generation (tg): mean and standard "
                                         "deviation of\ntokens per second, and the weights read per second.",
                              LP_OPTIONS(options),
                              .args = {1, 1},
                              .act = bench,
                              .user = &flags,
                              .model_first = true};
  return lp_tool_main(&command, argc, argv);
}
