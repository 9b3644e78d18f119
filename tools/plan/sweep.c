/* llmpart sweep: a table of plans for capacity planning. */
#include "passes/plan/sweep/sweep.h"
#include "base/units.h"
#include "tools/compile/link.h"
#include "tools/mpi/mpi.h"
#include "tools/plan/model.h"
#include "tools/tools.h"

#include <unistd.h>

enum { MOST_SHARDS = 100000 };

typedef struct {
  const char *journal, *shard_text;
  lp_sweep_shard shard;
  bool merge;
  lp_peers peers; /* count 0: not under mpirun */
  lp_mpi_end_function *end_mpi;
  lp_texts outputs;
  int64_t threads;
  bool stats, shows_progress;
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
  LP_FOR_VEC_REFS(const char, output, &flags->outputs) {
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
    if (status == LP_OK) status = lp_tool_write(path, &text, diag);
    lp_buf_free(&text);
    LP_TRY(status);
  }
  return LP_OK;
}

/* ---- progress ---------------------------------------------------------------------------------------------------- */

static void show_progress(void *user, size_t done, size_t rows, uint64_t evaluations, double ms) {
  (void)user, (void)evaluations; /* a row may take a second */
  char time[32], bar[31] = "..............................";
  for (size_t i = 0; i < 30 * done / rows; i++)
    bar[i] = '#';
  fprintf(stderr, "\r[%s] %zu/%zu rows in %s%s", bar, done, rows, lp_format_ms(ms, time), done == rows ? "\n" : "  ");
}

static void print_stats(const sweep_flags *flags, const lp_sweep_result *result) {
  fprintf(stderr, "%zu rows, %zu of them from %s; %" PRIu64 " plan evaluations in %.3f s: %.3g per second\n",
          result->rows, result->resumed, flags->merge ? "journals" : "the journal", result->evaluations,
          result->ms * 1e-3, result->ms > 0 ? 1e3 * (double)result->evaluations / result->ms : 0);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* Imports the model and runs the passes up to the operator graph with its costs. */
/* SPEC.yaml.journal, or SPEC.yaml.shard-I-of-N. */
static void default_journal(const sweep_flags *flags, const lp_sweep_spec *spec, lp_buf *out) {
  if (flags->shard.count)
    lp_buf_printf(out, "%s.shard-%" PRId32 "-of-%" PRId32, spec->path, flags->shard.index, flags->shard.count);
  else
    lp_buf_printf(out, "%s.journal", spec->path);
}

static lp_status compute(const sweep_flags *flags, const lp_sweep_spec *spec, lp_module *module, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf journal = {0};
  default_journal(flags, spec, &journal);
  const lp_sweep_options options = {.threads = (int32_t)flags->threads,
                                    .journal = flags->journal ? flags->journal : lp_buf_text(&journal),
                                    .journal_is_ours = !flags->journal && !flags->shard.count,
                                    .shard = flags->shard,
                                    .peers = flags->peers.count ? &flags->peers : NULL,
                                    .progress = flags->shows_progress ? show_progress : NULL};
  lp_sweep_result result;
  lp_status status = lp_sweep_run(spec, module, &options, &result, diag);
  bool leads = flags->peers.rank == 0; /* the process that has the result */
  if (status == LP_OK && flags->stats && leads) print_stats(flags, &result);
  if (status == LP_OK && leads) status = write_outputs(flags, spec, &result, diag);
  /* The sweep is complete, so no later run needs the journal; that of a shard is its result. */
  if (status == LP_OK && options.journal_is_ours && leads) (void)unlink(options.journal);
  lp_sweep_result_free(&result);
  return status;
}

static lp_status merge(const sweep_flags *flags, const lp_sweep_spec *spec, const lp_module *module,
                       const lp_texts *args, lp_diag *diag) {
  lp_sweep_result result;
  lp_status status = lp_sweep_merge(spec, module, args->data + 1, args->count - 1, &result, diag);
  if (status == LP_OK && flags->stats) print_stats(flags, &result);
  if (status == LP_OK) status = write_outputs(flags, spec, &result, diag);
  lp_sweep_result_free(&result);
  return status;
}

/* Reads "I/N". */
static lp_status read_shard(sweep_flags *flags, lp_diag *diag) {
  const char *text = flags->shard_text;
  int size = 0;
  int32_t index = 0, count = 0;
  bool good = sscanf(text, "%9" SCNd32 "/%9" SCNd32 "%n", &index, &count, &size) == 2 && !text[size] && index >= 1 &&
              index <= count && count <= MOST_SHARDS;
  if (!good)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--shard"),
                       "'%s' is not I/N with a shard I from 1 to N and N at most %d", text, MOST_SHARDS);
  flags->shard = (lp_sweep_shard){index, count};
  return LP_OK;
}

static lp_status check_flags(sweep_flags *flags, const lp_texts *args, lp_diag *diag) {
  const char *fault = NULL;
  if (flags->shard_text) LP_TRY(read_shard(flags, diag));
  if (flags->shard_text && flags->merge)
    fault = "--shard computes rows, and --merge joins those of all shards: give one of them";
  else if (flags->shard_text && flags->outputs.count)
    fault = "-o needs the rows of all shards: give it with --merge";
  else if (flags->merge && flags->journal)
    fault = "--merge computes no row, so that it has no --journal; journals to merge come after SPEC.yaml";
  else if (flags->merge && args->count < 2)
    fault = "--merge needs the journals of the shards after SPEC.yaml";
  else if (!flags->merge && args->count > 1)
    fault = "only --merge takes files after SPEC.yaml";
  if (fault) return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("llmpart sweep"), "%s", fault);
  if (!flags->outputs.count && !flags->shard_text) lp_vec_push(&flags->outputs, "csv");
  return check_outputs(flags, diag);
}

static lp_status run(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  sweep_flags *flags = command->user;
  flags->shows_progress = lp_tool_shows_progress(command->voice);
  flags->stats |= command->voice->verbose;
  lp_sweep_spec spec;
  lp_module *module = NULL;
  LP_TRY(check_flags(flags, args, diag));
  if (!flags->merge) LP_TRY(lp_tool_begin_mpi(&flags->peers, &flags->end_mpi, "--shard and --merge need none", diag));
  lp_status status = lp_sweep_spec_read(args->data[0], lp_tool_load_link, &spec, diag);
  if (status == LP_OK) {
    size_t at[LP_SWEEP_AXES];
    const lp_compile_request request = lp_sweep_request(&spec, 0, at);
    status = lp_tool_plan_model(spec.model, &spec.decoder, spec.model_loc, &request, &module, diag);
  }
  if (status == LP_OK)
    status = flags->merge ? merge(flags, &spec, module, args, diag) : compute(flags, &spec, module, diag);
  lp_module_free(module);
  lp_sweep_spec_free(&spec);
  if (flags->end_mpi) flags->end_mpi((int)status);
  return status;
}

int lp_tool_sweep(int argc, char **argv) {
  sweep_flags flags = {0};
  const lp_option options[] = {
      {"-o", LP_OPTION_TEXTS, &flags.outputs, "csv|json|html|FILE",
       "write a table to stdout, or to a file of that ending; html shows the Pareto fronts; repeatable (csv)"},
      {"--threads", LP_OPTION_COUNT, &flags.threads, "N", "use N threads (the machine's cores)"},
      {"--journal", LP_OPTION_TEXT, &flags.journal, "FILE",
       "keep finished rows in FILE for good (SPEC.yaml.journal, removed at the end)"},
      {"--shard", LP_OPTION_TEXT, &flags.shard_text, "I/N",
       "compute only part I of N, I from 1, and keep its rows in --journal (SPEC.yaml.shard-I-of-N)"},
      {"--merge", LP_OPTION_FLAG, &flags.merge, NULL,
       "take the FILEs of all --shard runs and write their table, without computing any row"},
      {"--stats", LP_OPTION_FLAG, &flags.stats, NULL, "print rows and plan evaluations per second on stderr"},
  };
  const lp_command command = {.usage = "llmpart sweep SPEC.yaml [-o csv|json|html|FILE]... [--merge FILE...]",
                              .summary = "Plans a model at every combination of machines, links, workloads, SLAs, "
                                         "types, schedulers and sessions that SPEC.yaml\nlists, with the cost and the "
                                         "times of each. A sweep that was interrupted continues where it stopped.",
                              LP_OPTIONS(options),
                              .args = {1, MOST_SHARDS + 1},
                              .act = run,
                              .user = &flags};
  int status = lp_tool_main(&command, argc, argv);
  lp_vec_free(&flags.outputs);
  return status;
}
