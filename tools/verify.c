/* llmpart verify: compiles a model for this machine, runs ONNX test data through it and compares. */
#include "tools/tools.h"

#include "backend/backend.h"
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "tools/verify_compare.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  const char *test_data, *split, *march, *output;
  lp_tolerance tolerance;
  int64_t threads;
} verify_options;

/* How one data set came out. */
typedef struct {
  char *name, *reason; /* reason NULL when passed */
  lp_status status;    /* LP_OK, LP_MISMATCH: compared; LP_FAILED: could not be run */
} verify_result;

typedef LP_VEC(verify_result) verify_results;

/* The graph's own names, in order: test data is numbered by them. */
typedef struct {
  lp_arena *arena;
  const char **inputs;
  int32_t input_count;
} graph_names;

/* ---- compiling --------------------------------------------------------------------------------------------------------- */

static void keep_names(const lp_module *module, graph_names *names) {
  const lp_op *main = lp_module_find_func(module, "main");
  const lp_attr *inputs = main ? lp_op_attr(main, "inputs") : NULL;
  if (!inputs || inputs->kind != LP_ATTR_STRS) return;
  names->input_count = inputs->count;
  names->inputs = LP_NEW_ARRAY(names->arena, const char *, inputs->count);
  for (int32_t i = 0; i < inputs->count; i++)
    names->inputs[i] = lp_arena_strdup(names->arena, inputs->ss[i]);
}

static lp_status compile_module(lp_module *module, const verify_options *options, const char *bundle, lp_diag *diag) {
  const lp_request request = {.isl = 128,
                              .osl = 1,
                              .batch = 1,
                              .scheduler = options->split ? "cut" : "device-only",
                              .cut_node = options->split,
                              .objective = "cost"};
  const lp_run_options run = {.verify_each = true};
  LP_TRY(lp_passes_run(module, lp_pipeline_full, &request, &run, diag));
  const lp_bundle_request write = {.device = lp_backend_find("cpu"),
                                   .cloud = lp_backend_find("cpu"),
                                   .device_options = {.side = "device", .march = options->march, .opt_level = 2},
                                   .cloud_options = {.side = "cloud", .march = options->march, .opt_level = 2}};
  return lp_bundle_write(module, &write, bundle, diag);
}

static lp_status compile_model(const char *model, const verify_options *options, const char *bundle, graph_names *names,
                               lp_diag *diag) {
  const lp_import_options import = {.weights_absent_ok = false};
  lp_module *module = NULL;
  LP_TRY(lp_onnx_import(model, &import, &module, diag));
  keep_names(module, names);
  lp_status status = compile_module(module, options, bundle, diag);
  lp_module_free(module);
  return status;
}

/* ---- data sets --------------------------------------------------------------------------------------------------------- */

static int compare_texts(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "test_data_set_N" folders of `dir`, or `dir` itself when it holds the data. Release each with free(). */
static lp_status list_sets(const char *dir, lp_texts *out, lp_diag *diag) {
  DIR *opened = opendir(dir);
  if (!opened) return lp_error(diag, LP_LOC_FILE(dir), "cannot be read as a folder of test data");
  bool own = false;
  for (struct dirent *entry; (entry = readdir(opened));) {
    if (lp_has_prefix(entry->d_name, "test_data_set_")) lp_vec_push(out, lp_path_join(dir, entry->d_name));
    if (lp_has_prefix(entry->d_name, "input_") || lp_has_prefix(entry->d_name, "output_")) own = true;
  }
  (void)closedir(opened);
  if (own) lp_vec_push(out, lp_strdup(dir));
  if (!out->count) return lp_error(diag, LP_LOC_FILE(dir), "holds no test data: input_0.pb or test_data_set_0");
  qsort(out->data, out->count, sizeof *out->data, compare_texts);
  return LP_OK;
}

typedef LP_VEC(lp_array) arrays;

/* KIND_0.pb, KIND_1.pb, ... as far as they go. */
static lp_status read_arrays(const char *dir, const char *kind, lp_arena *arena, arrays *out, lp_diag *diag) {
  for (int n = 0;; n++) {
    const char *path = lp_arena_format(arena, "%s/%s_%d.pb", dir, kind, n), *name;
    if (!lp_path_exists(path)) return LP_OK;
    lp_array array;
    LP_TRY(lp_onnx_read_tensor(path, arena, &array, &name, diag));
    lp_vec_push(out, array);
  }
}

static lp_verify_array as_input(const lp_array *array, const char *name) {
  lp_verify_array input = {
      .name = name, .dtype = lp_dtype_name(array->dtype), .rank = array->rank, .data = array->data};
  size_t count = 1;
  for (int32_t i = 0; i < array->rank; i++) {
    input.dim[i] = array->dim[i];
    count *= (size_t)array->dim[i];
  }
  input.size = (count * (size_t)lp_dtype_bits(array->dtype) + 7) / 8;
  return input;
}

static lp_status compare_outputs(const lp_verify_array *found, size_t count, const arrays *wanted,
                                 const verify_options *options, lp_buf *why) {
  if (wanted->count > count) {
    lp_buf_printf(why, "the model has %zu outputs, the test data %zu", count, wanted->count);
    return LP_MISMATCH;
  }
  for (size_t i = 0; i < wanted->count; i++)
    if (lp_verify_compare(&found[i], &wanted->data[i], &options->tolerance, why) != LP_OK) return LP_MISMATCH;
  return LP_OK;
}

static lp_status run_arrays(lp_verify_bundle *bundle, const graph_names *names, const arrays *given,
                            const arrays *wanted, const verify_options *options, lp_buf *why, lp_diag *diag) {
  size_t count = lp_verify_output_count(bundle);
  lp_verify_array *inputs = lp_alloc((given->count + 1) * sizeof *inputs);
  lp_verify_array *found = lp_alloc((count + 1) * sizeof *found);
  for (size_t i = 0; i < given->count; i++)
    inputs[i] = as_input(&given->data[i], i < (size_t)names->input_count ? names->inputs[i] : "");
  lp_status status = lp_verify_run(bundle, inputs, given->count, found, diag);
  if (status == LP_OK) status = compare_outputs(found, count, wanted, options, why);
  for (size_t i = 0; i < count; i++)
    free(found[i].data);
  free(found);
  free(inputs);
  return status;
}

static lp_status run_set(lp_verify_bundle *bundle, const graph_names *names, const char *dir,
                         const verify_options *options, lp_buf *why, lp_diag *diag) {
  lp_arena *arena = lp_arena_create();
  arrays given = {0}, wanted = {0};
  lp_status status = read_arrays(dir, "input", arena, &given, diag);
  if (status == LP_OK) status = read_arrays(dir, "output", arena, &wanted, diag);
  if (status == LP_OK) status = run_arrays(bundle, names, &given, &wanted, options, why, diag);
  lp_vec_free(&given);
  lp_vec_free(&wanted);
  lp_arena_free(arena);
  return status;
}

/* ---- a model ----------------------------------------------------------------------------------------------------------- */

static void add_result(verify_results *results, const char *name, lp_status status, const char *reason) {
  verify_result result = {lp_strdup(name), reason ? lp_strdup(reason) : NULL, status};
  lp_vec_push(results, result);
}

/* The text of the first error that came since `from`. */
static char *first_error(const lp_diag *diag, size_t from) {
  for (size_t i = from; i < lp_diag_count(diag); i++) {
    const lp_diag_entry *entry = lp_diag_get(diag, i);
    if (entry->severity != LP_ERROR) continue;
    lp_buf text = {0};
    lp_diag_format(entry, &text);
    return text.data;
  }
  return lp_strdup("failed");
}

static lp_status run_sets(const char *path, const graph_names *names, const lp_texts *sets,
                          const verify_options *options, verify_results *results, lp_diag *diag) {
  lp_verify_bundle *bundle = NULL;
  LP_TRY(lp_verify_open(path, options->threads, &bundle, diag));
  for (size_t i = 0; i < sets->count; i++) {
    size_t before = lp_diag_count(diag);
    lp_buf why = {0};
    lp_status status = run_set(bundle, names, sets->data[i], options, &why, diag);
    char *reason = status == LP_OK         ? NULL
                   : status == LP_MISMATCH ? lp_strdup(lp_buf_text(&why))
                                           : first_error(diag, before);
    add_result(results, lp_path_base(sets->data[i]), status, reason);
    free(reason);
    lp_buf_free(&why);
  }
  lp_verify_close(bundle);
  return LP_OK;
}

/* A folder of its own under $TMPDIR; removed with lp_dir_abandon. */
static lp_status make_temporary(char **out, lp_diag *diag) {
  const char *base = getenv("TMPDIR");
  char *path = lp_path_join(base && base[0] ? base : "/tmp", "llmpart-verify-XXXXXX");
  if (!mkdtemp(path)) {
    lp_status status = lp_error(diag, LP_LOC_FILE(path), "cannot create a temporary folder");
    free(path);
    return status;
  }
  *out = path;
  return LP_OK;
}

static lp_status verify_model(const char *model, const verify_options *options, verify_results *results,
                              lp_diag *diag) {
  lp_texts sets = {0};
  char *temporary = NULL, *bundle = NULL;
  graph_names names = {.arena = lp_arena_create()};
  lp_status status = list_sets(options->test_data, &sets, diag);
  if (status == LP_OK) status = make_temporary(&temporary, diag);
  if (status == LP_OK) {
    bundle = lp_path_join(temporary, "model.llmpart");
    status = compile_model(model, options, bundle, &names, diag);
  }
  if (status == LP_OK) status = run_sets(bundle, &names, &sets, options, results, diag);
  if (temporary) lp_dir_abandon(temporary);
  for (size_t i = 0; i < sets.count; i++)
    free((void *)(uintptr_t)sets.data[i]);
  lp_vec_free(&sets);
  free(temporary);
  free(bundle);
  lp_arena_free(names.arena);
  return status;
}

/* ---- the outcome --------------------------------------------------------------------------------------------------------- */

static const char *status_name(lp_status status) {
  return status == LP_OK ? "passed" : status == LP_MISMATCH ? "failed" : "unsupported";
}

static int64_t count_status(const verify_results *results, const char *name) {
  int64_t count = 0;
  for (size_t i = 0; i < results->count; i++)
    count += lp_streq(status_name(results->data[i].status), name);
  return count;
}

static void put_quoted(lp_buf *out, const char *text) {
  lp_buf_puts(out, "\"");
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\')
      lp_buf_printf(out, "\\%c", c);
    else if (c < 0x20)
      lp_buf_printf(out, "\\u%04x", c);
    else
      lp_buf_append(out, text, 1);
  }
  lp_buf_puts(out, "\"");
}

static void put_json(const verify_results *results, lp_buf *out) {
  lp_buf_printf(out, "{\n  \"schema\": \"llmpart.verify/1\",\n  \"passed\": %" PRId64 ",\n  \"failed\": %" PRId64 ",\n",
                count_status(results, "passed"), count_status(results, "failed"));
  lp_buf_printf(out, "  \"unsupported\": %" PRId64 ",\n  \"tests\": [", count_status(results, "unsupported"));
  for (size_t i = 0; i < results->count; i++) {
    const verify_result *result = &results->data[i];
    lp_buf_puts(out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
    put_quoted(out, result->name);
    lp_buf_printf(out, ", \"status\": \"%s\", \"reason\": ", status_name(result->status));
    if (result->reason)
      put_quoted(out, result->reason);
    else
      lp_buf_puts(out, "null");
    lp_buf_puts(out, "}");
  }
  lp_buf_puts(out, "\n  ]\n}\n");
}

static void put_text(const verify_results *results, lp_buf *out) {
  for (size_t i = 0; i < results->count; i++) {
    const verify_result *result = &results->data[i];
    lp_buf_printf(out, "%-24s %s%s%s\n", result->name, status_name(result->status), result->reason ? ": " : "",
                  result->reason ? result->reason : "");
  }
  lp_buf_printf(out, "%" PRId64 " passed, %" PRId64 " failed, %" PRId64 " unsupported\n",
                count_status(results, "passed"), count_status(results, "failed"), count_status(results, "unsupported"));
}

/* The worst status: a data set that could not be run counts more than one that differs. */
static lp_status report_results(const verify_options *options, const verify_results *results, lp_diag *diag) {
  lp_buf out = {0};
  if (lp_streq(options->output, "json"))
    put_json(results, &out);
  else
    put_text(results, &out);
  lp_status status = lp_tool_write("-", lp_buf_text(&out), out.size, diag);
  lp_buf_free(&out);
  for (size_t i = 0; i < results->count; i++) {
    lp_status own = results->data[i].status;
    if (own == LP_FAILED || (own == LP_MISMATCH && status == LP_OK)) status = own;
  }
  return status;
}

static lp_status verify(const char *model, const verify_options *options, lp_diag *diag) {
  verify_results results = {0};
  lp_status status = LP_OK;
  if (!options->test_data) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "no test data is given: --test-data=DIR");
  status = verify_model(model, options, &results, diag);
  if (status != LP_OK && lp_streq(options->output, "json")) {
    char *reason = first_error(diag, 0);
    add_result(&results, lp_path_base(model), LP_FAILED, reason);
    free(reason);
  }
  if (results.count) {
    lp_status reported = report_results(options, &results, diag);
    if (status == LP_OK) status = reported;
  }
  for (size_t i = 0; i < results.count; i++) {
    free(results.data[i].name);
    free(results.data[i].reason);
  }
  lp_vec_free(&results);
  return status;
}

int lp_tool_verify(int argc, char **argv) {
  verify_options options = {.march = "native", .output = "text", .tolerance = {1e-3, 1e-5}};
  const lp_option table[] = {
      {"--test-data", LP_OPTION_TEXT, &options.test_data, "DIR", "input_N.pb and output_N.pb, or test_data_set_N", 0},
      {"--split", LP_OPTION_TEXT, &options.split, "NODE|auto", "run two halves: NODE and what it needs, and the rest",
       0},
      {"--rtol", LP_OPTION_F64, &options.tolerance.rtol, "X", "relative tolerance (1e-3)", 0},
      {"--atol", LP_OPTION_F64, &options.tolerance.atol, "X", "absolute tolerance (1e-5)", 0},
      {"--march", LP_OPTION_TEXT, &options.march, "CPU", "as for compile (native)", 0},
      {"--threads", LP_OPTION_I64, &options.threads, "N", "threads (all cores)", 0},
      {"-o", LP_OPTION_CHOICE, &options.output, "text|json", "the form of the result", 0}};
  const lp_command command = {.usage = "llmpart verify MODEL.onnx --test-data=DIR [--split=auto|NODE] [-o text|json]",
                              .summary = "Compiles a model for this machine, runs ONNX test data and compares. Exit "
                                         "status 4: something differs.",
                              .options = table,
                              .count = LP_COUNT(table),
                              .min_args = 1,
                              .max_args = 1};
  lp_diag *diag = lp_tool_diag();
  lp_texts args = {0};
  bool done = false;
  lp_status status = lp_options_read(&command, argc, argv, &args, &done, diag);
  if (status == LP_OK && !done) status = verify(args.data[0], &options, diag);
  lp_vec_free(&args);
  lp_diag_free(diag);
  return (int)status;
}
