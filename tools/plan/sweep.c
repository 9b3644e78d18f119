/* llmpart sweep: a table of plans for capacity planning. */
#include "passes/plan/sweep/sweep.h"
#include "frontend/frontend.h"
#include "tools/compile/link.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  const char *journal;
  lp_texts outputs;
  int64_t threads;
  bool stats;
} sweep_flags;

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

static const char *const formats[] = {"csv", "json", "html"};

/* "csv" means csv on stdout, "FILE.csv" a file. NULL: neither. */
static const char *format_of(const char *output, const char **path) {
  *path = output;
  for (size_t i = 0; i < LP_COUNT(formats); i++) {
    const char *dot = strrchr(output, '.');
    if (lp_streq(output, formats[i])) {
      *path = "-";
      return formats[i];
    }
    if (dot && lp_streq(dot + 1, formats[i])) return formats[i];
  }
  return NULL;
}

static lp_status check_outputs(const sweep_flags *flags, lp_diag *diag) {
  const char *path;
  int on_stdout = 0;
  for (size_t i = 0; i < flags->outputs.count; i++) {
    const char *output = flags->outputs.data[i];
    if (!format_of(output, &path))
      return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("-o"), "'%s' is none of csv, json, html and does not end in one",
                         output);
    if (lp_streq(path, "-") && on_stdout++)
      return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("-o"), "'%s' is the second format for stdout", output);
  }
  return LP_OK;
}

static lp_status write_outputs(const sweep_flags *flags, const lp_sweep_spec *spec, const lp_sweep_result *result,
                               lp_diag *diag) {
  for (size_t i = 0; i < flags->outputs.count; i++) {
    const char *path, *format = format_of(flags->outputs.data[i], &path);
    lp_buf text = {0};
    lp_status status = lp_sweep_write(spec, result, format, &text, diag);
    if (status == LP_OK) status = lp_tool_write(path, lp_buf_text(&text), text.size, diag);
    lp_buf_free(&text);
    LP_TRY(status);
  }
  return LP_OK;
}

/* ---- progress ---------------------------------------------------------------------------------------------------- */

static double per_s(uint64_t evaluations, double ms) {
  return ms > 0 ? 1e3 * (double)evaluations / ms : 0;
}

static void show_progress(void *user, size_t done, size_t rows, uint64_t evaluations, double ms) {
  (void)user;
  char bar[31] = "..............................";
  for (size_t i = 0; i < 30 * done / rows; i++)
    bar[i] = '#';
  fprintf(stderr, "\r[%s] %zu/%zu rows, %.3g evaluations/s%s", bar, done, rows, per_s(evaluations, ms),
          done == rows ? "\n" : "  ");
}

static void print_stats(const lp_sweep_spec *spec, const lp_sweep_result *result) {
  fprintf(stderr, "%zu rows, %zu of them from the journal; %" PRIu64 " plan evaluations in %.3f s: %.0f per second\n",
          spec->rows, result->resumed, result->evaluations, result->ms * 1e-3, per_s(result->evaluations, result->ms));
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* Imports the model and runs the passes up to the operator graph with its costs. */
static lp_status load_model(const lp_sweep_spec *spec, lp_module **out, lp_diag *diag) {
  size_t at[LP_SWEEP_AXES];
  lp_compile_request request = lp_sweep_request(spec, 0, at);
  const lp_run_options options = {.verify_each = true};
  const char *pipeline = "fuse,annotate";
  lp_status status = LP_OK;
  if (spec->model) {
    const lp_import_options import = {.weights_absent_ok = true, .frees_lengths = true};
    LP_TRY(lp_model_import(spec->model, &import, out, diag));
    pipeline = lp_pipeline_ops;
  } else {
    *out = lp_decoder_create(&spec->decoder);
  }
  status = lp_passes_run(*out, pipeline, &request, &options, diag);
  if (status == LP_OK) return LP_OK;
  lp_module_free(*out);
  *out = NULL;
  return status;
}

static lp_status sweep(const sweep_flags *flags, const lp_sweep_spec *spec, lp_diag *diag) {
  lp_module *module = NULL;
  LP_TRY(load_model(spec, &module, diag));
  lp_buf journal = {0};
  lp_buf_printf(&journal, "%s.journal", spec->path);
  const lp_sweep_options options = {.threads = (int32_t)flags->threads,
                                    .journal = flags->journal ? flags->journal : lp_buf_text(&journal),
                                    .journal_is_ours = !flags->journal,
                                    .progress = isatty(STDERR_FILENO) ? show_progress : NULL};
  lp_sweep_result result;
  lp_status status = lp_sweep_run(spec, module, &options, &result, diag);
  if (status == LP_OK && flags->stats) print_stats(spec, &result);
  if (status == LP_OK) status = write_outputs(flags, spec, &result, diag);
  /* The sweep is complete, so no later run needs the journal. */
  if (status == LP_OK && !flags->journal) (void)unlink(options.journal);
  lp_sweep_result_free(&result);
  lp_buf_free(&journal);
  lp_module_free(module);
  return status;
}

static lp_status run(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  sweep_flags *flags = command->user;
  lp_sweep_spec spec;
  if (!flags->outputs.count) lp_vec_push(&flags->outputs, "csv");
  LP_TRY(check_outputs(flags, diag));
  lp_status status = lp_sweep_spec_read(args->data[0], lp_tool_load_link, &spec, diag);
  if (status == LP_OK) status = sweep(flags, &spec, diag);
  lp_sweep_spec_free(&spec);
  return status;
}

int lp_tool_sweep(int argc, char **argv) {
  sweep_flags flags = {0};
  const lp_option options[] = {
      {"-o", LP_OPTION_TEXTS, &flags.outputs, "csv|json|html|FILE",
       "write a table to stdout, or to a file of that ending; html shows the Pareto fronts; repeatable (csv)", 0},
      {"--threads", LP_OPTION_COUNT, &flags.threads, "N", "use N threads (the machine's cores)", 0},
      {"--journal", LP_OPTION_TEXT, &flags.journal, "FILE",
       "keep finished rows in FILE for good (SPEC.yaml.journal, removed at the end)", 0},
      {"--stats", LP_OPTION_FLAG, &flags.stats, NULL, "print rows and plan evaluations per second on stderr", 0},
  };
  const lp_command command = {
      .usage = "llmpart sweep SPEC.yaml [-o csv|json|html|FILE]...",
      .summary = "Plans a model at every combination of machines, links, workloads, SLAs, types, schedulers and "
                 "sessions that SPEC.yaml\nlists, with the cost and the times of each. A sweep that was "
                 "interrupted continues where it stopped.",
      .options = options,
      .count = LP_COUNT(options),
      .min_args = 1,
      .max_args = 1,
      .act = run,
      .user = &flags};
  int status = lp_tool_main(&command, argc, argv);
  lp_vec_free(&flags.outputs);
  return status;
}
