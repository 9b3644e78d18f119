/* llmpart verify: compiles models for this machine, runs ONNX test data through them and compares. */
#include "tools/verify/verify.h"
#include "base/dir.h"
#include "base/path.h"
#include "frontend/frontend.h"

/* Verifies with test data from the folder that --test-data names or, for --against=expected, from the model's. */
static lp_status verify_in(const char *model, const char *temporary, lp_verify_options *options,
                           lp_verify_results *results, lp_diag *diag) {
  if (options->against && !lp_streq(options->against, "expected"))
    return lp_verify_against(model, temporary, options, results, diag);
  LP_OWNED(lp_free_at) char *folder = lp_path_dir(model);
  options->against = NULL;
  lp_status status =
      lp_verify_model(model, options->test_data ? options->test_data : folder, temporary, options, results, diag);
  return status;
}

static lp_status verify_one(const char *model, lp_verify_options *options, lp_verify_results *results, lp_diag *diag) {
  char *temporary = NULL;
  LP_TRY(lp_dir_temporary("llmpart-verify", &temporary, diag));
  lp_status status = verify_in(model, temporary, options, results, diag);
  lp_dir_abandon(temporary);
  free(temporary);
  if (status != LP_OK && lp_streq(options->output, "json")) { /* a script reads the refusal from the result */
    char *reason = lp_verify_first_error(diag, 0);
    char *name = lp_strdup(lp_path_base(model));
    lp_verify_add(
        results, &(lp_verify_result){.name = name, .reason = reason, .status = LP_VERIFY_UNSUPPORTED, .max_error = -1});
    free(name);
    free(reason);
  }
  return status;
}

static lp_status check_bindings(const lp_texts *texts, lp_diag *diag) {
  lp_input_binding *bindings = NULL;
  lp_status status = lp_bindings_read(texts, &bindings, diag);
  lp_bindings_free(bindings, texts->count);
  return status;
}

static lp_status check_usage(const lp_verify_options *options, const lp_texts *args, lp_diag *diag) {
  LP_TRY(check_bindings(&options->bind, diag));
  if (options->suite && (args->count || options->test_data || options->split || options->bind.count))
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "--suite takes no model, --test-data, --split or --bind");
  if (!options->suite && !args->count)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "no model and no --suite=DIR is given");
  if (options->against && (options->suite || options->test_data || options->split))
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "--against takes no --suite, --test-data or --split");
  if (!options->suite && !options->test_data && !options->against)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "no test data is given: --test-data=DIR");
  if (options->against && lp_streq(options->against, "onnxruntime") && options->bind.count)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "--against=onnxruntime takes no --bind");
  if (!options->suite && options->tests)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "--tests chooses from a suite: --suite=DIR");
  return LP_OK;
}

/* A difference is a mismatch. A model that cannot be compiled is a failure when it is verified by itself, but not in a
 * suite. */
static lp_status verify(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  lp_verify_options *options = command->user;
  lp_verify_results results = {0};
  options->shows_progress = lp_tool_shows_progress(command->voice);
  LP_TRY(check_usage(options, args, diag));
  if (options->suite && options->threads == 0) options->threads = 1;
  lp_status status =
      options->suite ? lp_verify_suite(options, &results, diag) : verify_one(args->data[0], options, &results, diag);
  if (results.count) {
    lp_status reported = lp_verify_report(&results, options->output, diag);
    if (status == LP_OK) status = reported;
  }
  if (status == LP_OK && lp_verify_count(&results, LP_VERIFY_FAILED) > 0) status = LP_MISMATCH;
  lp_verify_results_free(&results);
  return status;
}

int lp_tool_verify(int argc, char **argv) {
  lp_verify_options options = {
      .march = "native", .opt_level = "2", .output = "text", .tolerance = {1e-3, 1e-5}, .time_limit_ms = 60000};
  const lp_option table[] = {
      {"--against", LP_OPTION_CHOICE, &options.against, "reference|onnxruntime|expected",
       "compare steps of a generation with an interpreter of the graph, or with ONNX Runtime (by $LLMPART_PYTHON, or "
       "python3), or compare with the test data beside the model"},
      {"--test-data", LP_OPTION_TEXT, &options.test_data, "DIR",
       "read input_N.pb and output_N.pb of DIR, or of its folders test_data_set_N"},
      {"--suite", LP_OPTION_TEXT, &options.suite, "DIR",
       "verify every folder below DIR that holds model.onnx and test data"},
      {"--tests", LP_OPTION_TEXT, &options.tests, "GLOB", "verify only the tests of the suite whose names match"},
      {"--jobs", LP_OPTION_POSITIVE, &options.jobs, "N", "run N tests of a suite at once (all cores)"},
      {"--time-limit", LP_OPTION_TIME, &options.time_limit_ms, "TIME", "stop a test of a suite after this time (60s)"},
      LP_BIND_OPTION(options.bind),
      {"--split", LP_OPTION_TEXT, &options.split, "NODE|auto",
       "run the model in two halves: NODE and what it needs, and the rest"},
      {"--rtol", LP_OPTION_F64, &options.tolerance.rtol, "X", "set the relative tolerance (1e-3)"},
      {"--atol", LP_OPTION_F64, &options.tolerance.atol, "X", "set the absolute tolerance (1e-5)"},
      {"--march", LP_OPTION_TEXT, &options.march, "CPU", "emit code for this processor, as compile does (native)"},
      {"-O", LP_OPTION_CHOICE, &options.opt_level, "0|1|2|3", "set how much code is optimised (2)"},
      {"--threads", LP_OPTION_COUNT, &options.threads, "N", "use N threads (all cores; 1 for each test of a suite)"},
      {"-o", LP_OPTION_CHOICE, &options.output, "text|json", "choose the form of the result (text)"}};
  const lp_command command = {
      .usage = "llmpart verify MODEL.onnx --test-data=DIR [--split=auto|NODE] [-o text|json]\n"
               "       llmpart verify MODEL --against=reference|onnxruntime|expected [-o text|json]\n"
               "       llmpart verify --suite=DIR [--tests=GLOB] [--jobs=N] [-o text|json]",
      .summary =
          "Compiles models for this machine, runs ONNX test data and compares. A suite's tests run in processes of\n"
          "their own; what cannot be compiled is `unsupported`, with operator, domain and opset. Exit status 4:\n"
          "something differs.",
      LP_OPTIONS(table),
      .args = {0, 1},
      .act = verify,
      .user = &options};
  lp_tool_tidy_when_interrupted();
  int status = lp_tool_main(&command, argc, argv);
  lp_vec_free(&options.bind);
  return status;
}
