/* The halves of `--emit=onnx`: imported again and run one after the other by the reference interpreter, they give the
 * outputs that another runtime gave for the whole model (tests/models). tests/e2e/onnx.sh runs them in ONNX Runtime if
 * it is installed. */
#include "backend/backend.h"
#include "base/dir.h"
#include "base/poly.h"
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "tests/suite.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TENSORS = 256 };

/* Tensors by name, which pass from one half to the next. */
typedef struct {
  lp_arena *arena;
  lp_diag *diag;
  const char *model, *set, *folder;
  struct {
    const char *name;
    lp_array array;
  } known[MOST_TENSORS];
  size_t count;
} bench;

static void must(const bench *b, lp_status status, const char *what) {
  if (status == LP_OK) return;
  lp_buf text = {0};
  lp_diag_format(lp_diag_get(b->diag, lp_diag_count(b->diag) - 1), &text);
  ck_abort_msg("%s: %s: %s", b->model, what, lp_buf_text(&text));
}

static void know(bench *b, const char *name, lp_array array) {
  ck_assert_uint_lt(b->count, MOST_TENSORS);
  b->known[b->count].name = lp_arena_strdup(b->arena, name);
  b->known[b->count++].array = array;
}

static const lp_array *find(const bench *b, const char *name) {
  for (size_t i = b->count; i-- > 0;)
    if (lp_streq(b->known[i].name, name)) return &b->known[i].array;
  ck_abort_msg("%s: nothing gives '%s'", b->model, name);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *scheduler, *pin;
  int64_t cut, opset;
} placement;

static void write_halves(bench *b, const placement *where) {
  lp_machine *device, *cloud;
  lp_link *link;
  lp_module *module;
  must(b, lp_hw_load("jetson-nano", &device, b->diag), "the device");
  must(b, lp_hw_load("v100s", &cloud, b->diag), "the cloud");
  must(b, lp_link_load("lan", &link, b->diag), "the link");
  const lp_compile_request request = {.device = device,
                                      .cloud = cloud,
                                      .link = link,
                                      .isl = 32,
                                      .osl = 8,
                                      .batch = 1,
                                      .scheduler = where->scheduler,
                                      .cut = where->cut,
                                      .pins = &where->pin,
                                      .pin_count = where->pin != NULL,
                                      .generation = !strstr(b->model, "bert")};
  const lp_run_options quiet = {0};
  const lp_onnx_options options = {.opset = where->opset};
  must(b, lp_onnx_import(lp_arena_format(b->arena, "%s/model.onnx", b->model), NULL, &module, b->diag), "the model");
  must(b, lp_passes_run(module, lp_pipeline_placed, &request, &quiet, b->diag), "the passes");
  must(b, lp_onnx_write(module, &options, b->folder, b->diag), "writing");
  lp_module_free(module);
  lp_link_free(link);
  lp_hw_free(cloud);
  lp_hw_free(device);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Sizes of the symbols, from the inputs with a dimension that is a single symbol. */
static void bind_symbols(int64_t *sym, const lp_type *type, const lp_array *array) {
  for (int32_t i = 0; i < type->rank; i++) {
    const lp_poly *dim = type->dim[i];
    if (dim->count == 1 && dim->term[0].coef == 1 && dim->term[0].symbol[0] && !dim->term[0].symbol[1])
      sym[dim->term[0].symbol[0] - 1] = array->dim[i];
  }
}

/* An input that is a size decides shapes, so it is bound to a number first. */
static lp_module *import(bench *b, const char *file) {
  lp_module *module;
  lp_import_options options = {0};
  size_t count;
  const char *const *names;
  const char *path = lp_arena_format(b->arena, "%s/%s", b->folder, file);
  must(b, lp_onnx_input_names(path, b->arena, &names, &count, b->diag), file);
  lp_input_binding size = {.name = "size.p"};
  for (size_t i = 0; i < count; i++) {
    if (!lp_streq(names[i], size.name)) continue;
    size.value = lp_arena_format(b->arena, "%" PRId64, *(const int64_t *)find(b, names[i])->data);
    options = (lp_import_options){.bindings = &size, .binding_count = 1};
  }
  must(b, lp_onnx_import(path, &options, &module, b->diag), file);
  return module;
}

static void run_model(bench *b, const char *file) {
  lp_module *module = import(b, file);
  const lp_op *func = lp_module_find_func(module, "main"), *end = lp_block_terminator(func->region);
  const lp_attr *inputs = lp_op_attr(func, "inputs"), *outputs = lp_op_attr(func, "outputs");
  int64_t *sym = LP_NEW_ARRAY(b->arena, int64_t, module->symbols.names.count + 1);
  lp_binding bindings[MOST_TENSORS];
  module->eval_steps = INT64_MAX; /* the reference computes whole models */
  for (int32_t i = 0; i < inputs->count; i++) {
    bindings[i] = (lp_binding){func->region->arg[i], *find(b, inputs->ss[i])};
    bind_symbols(sym, &func->region->arg[i]->type, &bindings[i].array);
  }
  for (int32_t i = 0; i < end->in_count; i++) {
    lp_array out;
    must(b, lp_value_eval(module, lp_op_in(end, i), bindings, (size_t)inputs->count, sym, b->arena, &out, b->diag),
         outputs->ss[i]);
    size_t bytes = (size_t)lp_dtype_bits(out.dtype) / 8;
    for (int32_t k = 0; k < out.rank; k++)
      bytes *= (size_t)out.dim[k];
    out.data = lp_arena_copy(b->arena, out.data, bytes); /* it may lie in the module */
    know(b, outputs->ss[i], out);
  }
  lp_module_free(module);
}

/* The data set's tensors: past ones take the caches' names, in order. */
static void read_inputs(bench *b) {
  size_t count;
  const char *const *names;
  int past = 0;
  must(b, lp_onnx_input_names(lp_arena_format(b->arena, "%s/model.onnx", b->model), b->arena, &names, &count, b->diag),
       "its inputs");
  for (size_t i = 0; i < count; i++) {
    lp_array array;
    const char *name;
    const char *path = lp_arena_format(b->arena, "%s/%s/input_%zu.pb", b->model, b->set, i);
    must(b, lp_onnx_read_tensor(path, b->arena, &array, &name, b->diag), path);
    know(b, names[i], array);
    if (!strstr(names[i], "past") || strstr(names[i], "encoder")) continue;
    know(b, lp_arena_format(b->arena, "past.layer.%d.%s", past / 2, past % 2 ? "v" : "k"), array);
    past++;
  }
}

/* A model without past inputs begins with empty caches; the size that no input shows is that of the past. */
static void add_missing(bench *b, const json_t *input) {
  const char *name = json_string_value(json_object_get(input, "name"));
  const char *role = json_string_value(json_object_get(input, "role"));
  for (size_t i = 0; i < b->count; i++)
    if (lp_streq(b->known[i].name, name)) return;
  int64_t *past = lp_arena_alloc(b->arena, sizeof *past);
  for (size_t i = 0; i < b->count; i++)
    if (lp_streq(b->known[i].name, "past.layer.0.k")) *past = b->known[i].array.dim[2];
  lp_array array = {.dtype = LP_F32, .rank = 4, .data = past};
  if (lp_streq(role, "size")) {
    ck_assert_str_eq(name, "size.p");
    array = (lp_array){.dtype = LP_I64, .rank = 1, .dim = {1}, .data = past};
  } else if (!lp_streq(role, "past")) {
    return;
  }
  const json_t *shape = json_object_get(input, "shape");
  for (size_t i = 0; lp_streq(role, "past") && i < 4; i++) {
    const char *dim = json_string_value(json_array_get(shape, i));
    array.dim[i] = lp_streq(dim, "b") ? find(b, "input_ids")->dim[0] : lp_streq(dim, "p") ? 0 : atoll(dim);
  }
  know(b, name, array);
}

static void run_halves(bench *b) {
  json_t *root = json_load_file(lp_arena_format(b->arena, "%s/manifest.json", b->folder), 0, NULL);
  ck_assert_ptr_nonnull(root);
  const json_t *parts = json_object_get(json_object_get(root, "programs"), "decode"), *part, *input;
  size_t i, k;
  json_array_foreach(parts, i, part) {
    json_array_foreach(json_object_get(part, "inputs"), k, input) add_missing(b, input);
    run_model(b, json_string_value(json_object_get(part, "model")));
  }
  json_decref(root);
}

static double element(const lp_array *array, int64_t index) {
  lp_tensor tensor = {.type = {.dtype = array->dtype}, .data = array->data};
  return lp_tensor_f64(&tensor, index);
}

static void check_logits(bench *b) {
  lp_array wanted;
  const char *name;
  const char *path = lp_arena_format(b->arena, "%s/%s/output_0.pb", b->model, b->set);
  must(b, lp_onnx_read_tensor(path, b->arena, &wanted, &name, b->diag), path);
  const lp_array *found = find(b, name);
  int64_t count = 1;
  ck_assert_int_eq(found->rank, wanted.rank);
  for (int32_t i = 0; i < wanted.rank; i++) {
    ck_assert_int_eq(found->dim[i], wanted.dim[i]);
    count *= wanted.dim[i];
  }
  for (int64_t i = 0; i < count; i++)
    ck_assert_msg(fabs(element(found, i) - element(&wanted, i)) <= 1e-4, "%s: element %lld is %g, should be %g",
                  b->model, (long long)i, element(found, i), element(&wanted, i));
}

static const char *const models[][2] = {{"tests/models/llama", "test_data_set_0"},
                                        {"tests/models/gpt2", "test_data_set_0"},
                                        {"tests/models/families/phi-dynamo", "test_data_set_0"},
                                        {"tests/models/families/bloom-script", "test_data_set_0"},
                                        {"tests/models/families/gemma2-script-past", "test_data_set_1"},
                                        {"tests/models/families/whisper-decoder-script-past", "test_data_set_1"},
                                        {"tests/models/families/bert-script", "test_data_set_0"}};

static void check(int model, const placement *where) {
  bench b = {.arena = lp_arena_create(), .diag = lp_diag_create(), .model = models[model][0], .set = models[model][1]};
  b.folder = lp_arena_format(b.arena, "%s/lp_halves_%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
  write_halves(&b, where);
  read_inputs(&b);
  run_halves(&b);
  check_logits(&b);
  lp_dir_abandon(b.folder);
  lp_diag_free(b.diag);
  lp_arena_free(b.arena);
}

LP_LOOP_TEST(cut_between_layers, 0, LP_COUNT(models)) {
  check(_i, &(placement){.scheduler = "cut", .cut = 1, .opset = 21});
}

LP_LOOP_TEST(interleaved, 0, LP_COUNT(models)) {
  check(_i, &(placement){.scheduler = "cut", .cut = 1, .pin = "layer.0.attention=cloud", .opset = 21});
}

LP_LOOP_TEST(older_opset, 0, LP_COUNT(models)) {
  check(_i, &(placement){.scheduler = "cut", .cut = 1, .opset = 17});
}
