/* Verifying one model: compiles it for this machine, runs its ONNX test data and compares. */
#include "base/path.h"
#include "tools/equal/check.h"
#include "tools/verify/compile.h"

#include "frontend/frontend.h"

#include <dirent.h>

/* ---- data sets --------------------------------------------------------------------------------------------------- */

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

/* Reads KIND_0.pb, KIND_1.pb, ... up to the first that is absent. */
static lp_status read_arrays(const char *dir, const char *kind, lp_arena *arena, arrays *out, lp_diag *diag) {
  for (int n = 0;; n++) {
    const char *path = lp_arena_format(arena, "%s/%s_%d.pb", dir, kind, n), *name;
    if (!lp_path_exists(path)) return LP_OK;
    lp_array array;
    LP_TRY(lp_onnx_read_tensor(path, arena, &array, &name, diag));
    lp_vec_push(out, array);
  }
}

/* Converts test data to an input. Old test data stores bf16 as integers with its bits. */
static lp_verify_array as_input(const lp_array *array, const lp_verify_input *of) {
  bool bits = of && of->dtype == LP_BF16 && array->dtype == LP_U16;
  lp_verify_array input = {.name = of ? of->name : "",
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
                                 const lp_verify_options *options, lp_verify_outcome *outcome) {
  if (wanted->count > count) {
    lp_buf_printf(&outcome->why, "the model has %zu outputs, the test data %zu", count, wanted->count);
    return LP_MISMATCH;
  }
  for (size_t i = 0; i < wanted->count; i++)
    if (lp_verify_compare(&found[i], &wanted->data[i], &options->tolerance, outcome) != LP_OK) return LP_MISMATCH;
  return LP_OK;
}

static lp_status run_arrays(lp_verify_bundle *bundle, const lp_verify_graph *graph, const arrays *given,
                            const arrays *wanted, const lp_verify_options *options, lp_verify_outcome *outcome,
                            lp_diag *diag) {
  size_t count = lp_verify_output_count(bundle);
  LP_OWNED(lp_free_at) lp_verify_array *inputs = lp_alloc((given->count + 1) * sizeof *inputs);
  LP_OWNED(lp_free_at) lp_verify_array *found = lp_alloc((count + 1) * sizeof *found);
  size_t used = 0;
  for (size_t i = 0; i < given->count; i++) {
    const lp_verify_input *of = i < graph->count ? &graph->input[i] : NULL;
    if (!of || !of->bound) inputs[used++] = as_input(&given->data[i], of);
  }
  lp_status status = lp_verify_run(bundle, inputs, used, found, diag);
  if (status == LP_OK) status = compare_outputs(found, count, wanted, options, outcome);
  for (size_t i = 0; i < count; i++)
    free(found[i].data);
  return status;
}

static lp_status run_set(lp_verify_bundle *bundle, const lp_verify_graph *graph, const char *dir,
                         const lp_verify_options *options, lp_verify_outcome *outcome, lp_diag *diag) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  LP_OWNED(lp_free_at) arrays given = {0}, wanted = {0};
  LP_TRY(read_arrays(dir, "input", arena, &given, diag));
  LP_TRY(read_arrays(dir, "output", arena, &wanted, diag));
  return run_arrays(bundle, graph, &given, &wanted, options, outcome, diag);
}

/* ---- a model ----------------------------------------------------------------------------------------------------- */

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

/* Writes "a, b": the inputs that had to be constants. */
static void put_bound(const lp_verify_graph *graph, const lp_verify_options *options, lp_buf *out) {
  for (size_t i = 0; i < graph->count; i++) {
    bool own = false; /* inputs that the user bound are not mentioned */
    LP_FOR_VEC_REFS(const char, text, &options->bind) {
      size_t length = strlen(graph->input[i].name);
      own |= strncmp(text, graph->input[i].name, length) == 0 && text[length] == '=';
    }
    if (graph->input[i].bound && !own) lp_buf_printf(out, "%s%s", out->size ? ", " : "", graph->input[i].name);
  }
}

static void judge_set(lp_verify_bundle *bundle, const lp_verify_graph *graph, const char *set,
                      const lp_verify_options *options, lp_verify_results *results, lp_diag *diag) {
  size_t before = lp_diag_count(diag);
  lp_verify_outcome outcome = {0};
  LP_OWNED(lp_buf_free) lp_buf bound = {0};
  char *name = lp_strdup(lp_path_base(set));
  lp_status status = run_set(bundle, graph, set, options, &outcome, diag);
  char *error = status == LP_OK || status == LP_MISMATCH ? NULL : lp_verify_first_error(diag, before);
  put_bound(graph, options, &bound);
  lp_verify_result result = {.name = name,
                             .bound = bound.data,
                             .reason = error ? error : outcome.why.data,
                             .max_error = error ? -1 : outcome.worst};
  result.status = status == LP_OK ? LP_VERIFY_PASSED : LP_VERIFY_FAILED;
  lp_verify_add(results, &result);
  free(error);
  free(name);
  lp_buf_free(&outcome.why);
}

static lp_status run_sets(const lp_verify_compilation *c, const char *const *sets, size_t count,
                          lp_verify_results *results, lp_diag *diag) {
  lp_verify_bundle *bundle = NULL;
  LP_TRY(lp_verify_open(c->bundle, c->options->threads, &bundle, diag));
  for (size_t i = 0; i < count; i++)
    judge_set(bundle, c->graph, sets[i], c->options, results, diag);
  lp_verify_close(bundle);
  return LP_OK;
}

static lp_status run_model(const lp_verify_compilation *c, const lp_texts *sets, lp_verify_results *results,
                           lp_diag *diag) {
  bool each = false;
  lp_status status = lp_verify_compile(c, NULL, &each, diag);
  if (status == LP_OK) return run_sets(c, sets->data, sets->count, results, diag);
  if (!each) return status;
  for (size_t i = 0; i < sets->count; i++) {
    LP_TRY(lp_verify_compile(c, sets->data[i], NULL, diag));
    LP_TRY(run_sets(c, &sets->data[i], 1, results, diag));
  }
  return LP_OK;
}

lp_status lp_verify_model(const char *model, const char *test_data, const char *temporary,
                          const lp_verify_options *options, lp_verify_results *results, lp_diag *diag) {
  LP_OWNED(lp_free_at) lp_texts sets = {0};
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  LP_OWNED(lp_free_at) char *bundle = lp_path_join(temporary, "model.llmpart");
  lp_verify_graph graph = {0};
  const lp_verify_compilation compilation = {.model = model, .bundle = bundle, .options = options, .graph = &graph};
  lp_status status = list_sets(test_data, &sets, diag);
  if (status == LP_OK) status = lp_verify_read_graph(model, arena, &graph, diag);
  if (status == LP_OK) status = run_model(&compilation, &sets, results, diag);
  for (size_t i = 0; i < sets.count; i++)
    free((void *)(uintptr_t)sets.data[i]);
  return status;
}

/* Only ONNX files have inputs to bind, and only they can be run by ONNX Runtime. */
static lp_status read_compared_graph(const char *model, const lp_verify_options *options, lp_arena *arena,
                                     lp_verify_graph *out, lp_diag *diag) {
  if (lp_model_form_of(model) == LP_MODEL_ONNX) return lp_verify_read_graph(model, arena, out, diag);
  out->arena = arena;
  if (!lp_streq(options->against, "onnxruntime")) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(model), "is no ONNX model, so ONNX Runtime cannot run it: use --against=reference");
}

/* Compares the model with `encoder` (NULL: none), which is in another file. */
static lp_status against(const char *model, const char *encoder, const char *temporary,
                         const lp_verify_options *options, lp_verify_results *results, lp_diag *diag) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_verify_graph graph = {0};
  lp_input_binding *bindings = NULL;
  LP_OWNED(lp_free_at) char *bundle = lp_path_join(temporary, "model.llmpart");
  const lp_verify_compilation c = {
      .model = model, .bundle = bundle, .encoder = encoder, .options = options, .graph = &graph};
  lp_status status = read_compared_graph(model, options, arena, &graph, diag);
  if (status == LP_OK) status = lp_verify_compile(&c, NULL, NULL, diag);
  if (status == LP_OK) status = lp_bindings_read(&options->bind, &bindings, diag);
  const lp_import_options import = {
      .bindings = bindings, .binding_count = options->bind.count, .encoder = encoder, .frees_lengths = true};
  const lp_check_request check = {.model = model,
                                  .bundle = bundle,
                                  .import = &import,
                                  .threads = options->threads,
                                  .onnxruntime = lp_streq(options->against, "onnxruntime"),
                                  .limit = options->tolerance.rtol};
  if (status == LP_OK) status = lp_check_bundle(&check, results, diag);
  lp_bindings_free(bindings, options->bind.count);
  return status;
}

/* ONNX Runtime runs one file, so it is compared with the decoder by itself. */
lp_status lp_verify_against(const char *model, const char *temporary, const lp_verify_options *options,
                            lp_verify_results *results, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *decoder = NULL, *encoder = NULL;
  bool joined = lp_model_find_files(model, &decoder, &encoder);
  return against(joined ? decoder : model, lp_streq(options->against, "onnxruntime") ? NULL : encoder, temporary,
                 options, results, diag);
}
