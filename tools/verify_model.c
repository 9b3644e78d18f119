/* Verifying one model: compiles it for this machine, runs its ONNX test data and compares. */
#include "tools/verify.h"

#include "backend/backend.h"
#include "frontend/frontend.h"
#include "passes/passes.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The graph's own names, in order: test data is numbered by them. */
typedef struct {
  lp_arena *arena;
  const char **inputs;
  lp_dtype *dtypes;
  int32_t input_count;
} graph_names;

/* ---- compiling --------------------------------------------------------------------------------------------------------- */

static void keep_names(const lp_module *module, graph_names *names) {
  const lp_op *main = lp_module_find_func(module, "main");
  const lp_attr *inputs = main ? lp_op_attr(main, "inputs") : NULL;
  if (!inputs || inputs->kind != LP_ATTR_STRS) return;
  names->input_count = inputs->count;
  names->inputs = LP_NEW_ARRAY(names->arena, const char *, inputs->count);
  names->dtypes = LP_NEW_ARRAY(names->arena, lp_dtype, inputs->count);
  for (int32_t i = 0; i < inputs->count; i++) {
    names->inputs[i] = lp_arena_strdup(names->arena, inputs->ss[i]);
    names->dtypes[i] = main->region->arg[i]->type.dtype;
  }
}

static lp_status compile_module(lp_module *module, const lp_verify_options *options, const char *bundle,
                                lp_diag *diag) {
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

static lp_status compile_model(const char *model, const lp_verify_options *options, const char *bundle,
                               graph_names *names, lp_diag *diag) {
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

/* Test data `index` as the input of that place. Old test data keeps bf16 as the integers of its bits. */
static lp_verify_array as_input(const lp_array *array, const graph_names *names, size_t index) {
  bool known = index < (size_t)names->input_count;
  bool bits = known && names->dtypes[index] == LP_BF16 && array->dtype == LP_U16;
  lp_verify_array input = {.name = known ? names->inputs[index] : "",
                           .dtype = lp_dtype_name(bits ? LP_BF16 : array->dtype),
                           .rank = array->rank,
                           .data = array->data};
  size_t count = 1;
  for (int32_t i = 0; i < array->rank; i++) {
    input.dim[i] = array->dim[i];
    count *= (size_t)array->dim[i];
  }
  input.size = (count * (size_t)lp_dtype_bits(array->dtype) + 7) / 8;
  return input;
}

static lp_status compare_outputs(const lp_verify_array *found, size_t count, const arrays *wanted,
                                 const lp_verify_options *options, lp_buf *why) {
  if (wanted->count > count) {
    lp_buf_printf(why, "the model has %zu outputs, the test data %zu", count, wanted->count);
    return LP_MISMATCH;
  }
  for (size_t i = 0; i < wanted->count; i++)
    if (lp_verify_compare(&found[i], &wanted->data[i], &options->tolerance, why) != LP_OK) return LP_MISMATCH;
  return LP_OK;
}

static lp_status run_arrays(lp_verify_bundle *bundle, const graph_names *names, const arrays *given,
                            const arrays *wanted, const lp_verify_options *options, lp_buf *why, lp_diag *diag) {
  size_t count = lp_verify_output_count(bundle);
  lp_verify_array *inputs = lp_alloc((given->count + 1) * sizeof *inputs);
  lp_verify_array *found = lp_alloc((count + 1) * sizeof *found);
  for (size_t i = 0; i < given->count; i++)
    inputs[i] = as_input(&given->data[i], names, i);
  lp_status status = lp_verify_run(bundle, inputs, given->count, found, diag);
  if (status == LP_OK) status = compare_outputs(found, count, wanted, options, why);
  for (size_t i = 0; i < count; i++)
    free(found[i].data);
  free(found);
  free(inputs);
  return status;
}

static lp_status run_set(lp_verify_bundle *bundle, const graph_names *names, const char *dir,
                         const lp_verify_options *options, lp_buf *why, lp_diag *diag) {
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

char *lp_verify_first_error(const lp_diag *diag, size_t from) {
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
                          const lp_verify_options *options, lp_verify_results *results, lp_diag *diag) {
  lp_verify_bundle *bundle = NULL;
  LP_TRY(lp_verify_open(path, options->threads, &bundle, diag));
  for (size_t i = 0; i < sets->count; i++) {
    size_t before = lp_diag_count(diag);
    lp_buf why = {0};
    lp_status status = run_set(bundle, names, sets->data[i], options, &why, diag);
    char *reason = status == LP_OK         ? NULL
                   : status == LP_MISMATCH ? lp_strdup(lp_buf_text(&why))
                                           : lp_verify_first_error(diag, before);
    lp_verify_add(results, lp_path_base(sets->data[i]), status == LP_OK ? LP_VERIFY_PASSED : LP_VERIFY_FAILED, reason);
    free(reason);
    lp_buf_free(&why);
  }
  lp_verify_close(bundle);
  return LP_OK;
}

lp_status lp_verify_temporary(char **out, lp_diag *diag) {
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

lp_status lp_verify_model(const char *model, const char *test_data, const char *temporary,
                          const lp_verify_options *options, lp_verify_results *results, lp_diag *diag) {
  lp_texts sets = {0};
  char *bundle = lp_path_join(temporary, "model.llmpart");
  graph_names names = {.arena = lp_arena_create()};
  lp_status status = list_sets(test_data, &sets, diag);
  if (status == LP_OK) status = compile_model(model, options, bundle, &names, diag);
  if (status == LP_OK) status = run_sets(bundle, &names, &sets, options, results, diag);
  for (size_t i = 0; i < sets.count; i++)
    free((void *)(uintptr_t)sets.data[i]);
  lp_vec_free(&sets);
  free(bundle);
  lp_arena_free(names.arena);
  return status;
}
