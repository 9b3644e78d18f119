/* Whole models through reader, shape inference, folding and the reference interpreter, against the outputs that another
 * runtime gave: every test_data_set of tests/models, and, where they exist, those of ../shared/models,
 * ../shared/onnx-node-* and Debian's libonnx-testdata. A model that the importer refuses as unsupported is skipped, and
 * so is one with operators that a later pass decomposes; each wrong number fails. */
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/poly.h"
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "tests/suite.h"

LP_CASE(.timeout = 300);

extern const lp_pass lp_pass_fold;

enum { MAX_INPUTS = 256 };

typedef struct {
  lp_diag *diag;
  lp_module *module;
  lp_arena *arena;
  const char *folder;
  lp_binding bindings[MAX_INPUTS];
  size_t count;
  int64_t *sym;
} run;

static const char *path_of(const run *r, int set, const char *what, int index) {
  return lp_arena_format(r->arena, "%s/test_data_set_%d/%s_%d.pb", r->folder, set, what, index);
}

/* Sizes of the symbols, from the inputs with a dimension that is a single symbol. */
static void bind_symbols(run *r, const lp_type *type, const lp_array *array) {
  for (int32_t i = 0; i < type->rank; i++) {
    const lp_poly *dim = type->dim[i];
    if (dim->count == 1 && dim->term[0].coef == 1 && dim->term[0].symbol[0] && !dim->term[0].symbol[1])
      r->sym[dim->term[0].symbol[0] - 1] = array->dim[i];
  }
}

static void bind_inputs(run *r, int set) {
  const lp_op *func = lp_module_find_func(r->module, "main");
  const lp_attr *names = lp_op_attr(func, "inputs");
  r->count = 0;
  r->sym = LP_NEW_ARRAY(r->arena, int64_t, r->module->symbols.names.count + 1);
  for (int32_t i = 0; i < func->region->arg_count; i++) {
    lp_array array;
    const char *name;
    int32_t at = i;
    ck_assert_int_eq(lp_onnx_read_tensor(path_of(r, set, "input", i), r->arena, &array, &name, r->diag), LP_OK);
    for (int32_t k = 0; k < names->count; k++)
      if (lp_streq(names->ss[k], name)) at = k;
    bind_symbols(r, &func->region->arg[at]->type, &array);
    r->bindings[r->count++] = (lp_binding){func->region->arg[at], array};
  }
}

static double element(const lp_array *array, int64_t index) {
  lp_tensor tensor = {.type = {.dtype = array->dtype}, .data = array->data};
  return lp_tensor_f64(&tensor, index);
}

/* The tolerance for sums in another order, in single and half precision. */
static double tolerance(lp_dtype dtype) {
  return dtype == LP_F16 ? 2e-2 : dtype == LP_BF16 ? 2e-1 : 1e-4;
}

static void compare(const run *r, int32_t output, const lp_array *found, const lp_array *wanted) {
  int64_t count = 1;
  ck_assert_msg(found->dtype == wanted->dtype && found->rank == wanted->rank, "%s: output %d has another type",
                r->folder, output);
  for (int32_t i = 0; i < found->rank; i++) {
    ck_assert_msg(found->dim[i] == wanted->dim[i], "%s: output %d: axis %d differs", r->folder, output, i);
    count *= found->dim[i];
  }
  for (int64_t i = 0; i < count; i++) {
    double a = element(found, i), b = element(wanted, i);
    bool equal = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance(found->dtype) * (1 + fabs(b));
    ck_assert_msg(equal, "%s: output %d[%lld] is %g, should be %g", r->folder, output, (long long)i, a, b);
  }
}

/* The standard corrected Attention after 1.21, in place: a softcap comes before the mask, and modes 1 and 2 of
 * qk_matmul_output changed places. These tests have the old meaning. Others store bfloat16 as uint16. */
static bool is_outdated(const char *folder) {
  bool old_modes = strstr(folder, "qk_matmul_bias") && !strstr(folder, "_expanded");
  return old_modes || strstr(folder, "qk_matmul_softcap") || strstr(folder, "BFLOAT16");
}

static bool only_unsupported(const lp_diag *diag) {
  static const char *const reasons[] = {"not supported",        "is not known",     "is decomposed before",
                                        "depends on the",       "only tensors are", "is older than",
                                        "declares no opset of", "only an If with a"};
  for (size_t i = 0; i < lp_diag_count(diag); i++) {
    const lp_diag_entry *entry = lp_diag_get(diag, i);
    for (size_t k = 0; entry->severity == LP_ERROR && k < LP_COUNT(reasons); k++)
      if (strstr(entry->text, reasons[k])) return true;
  }
  return false;
}

/* false when the model is skipped */
static bool check_set(run *r, int set) {
  const lp_op *end = lp_block_terminator(lp_module_find_func(r->module, "main")->region);
  bind_inputs(r, set);
  r->module->eval_steps = INT64_MAX; /* the reference computes whole models */
  for (int32_t i = 0; i < end->in_count; i++) {
    lp_array found, wanted;
    const char *name;
    ck_assert_int_eq(lp_onnx_read_tensor(path_of(r, set, "output", i), r->arena, &wanted, &name, r->diag), LP_OK);
    lp_status status =
        lp_value_eval(r->module, lp_op_in(end, i), r->bindings, r->count, r->sym, r->arena, &found, r->diag);
    if (status != LP_OK && only_unsupported(r->diag)) return false;
    ck_assert_msg(status == LP_OK, "%s: output %d: %s", r->folder, i,
                  lp_diag_get(r->diag, lp_diag_count(r->diag) - 1)->text);
    compare(r, i, &found, &wanted);
  }
  return true;
}

static void fold(run *r) {
  lp_compile_request request = {.generation = false};
  lp_pass_context context = {.diag = r->diag, .request = &request, .scratch = lp_arena_create()};
  ck_assert_int_eq(lp_pass_fold.run(r->module, &context), LP_OK);
  ck_assert_int_eq(lp_module_verify(r->module, r->diag), LP_OK);
  lp_arena_free(context.scratch);
}

static bool check_model(const char *folder, bool folded) {
  run r = {.diag = lp_diag_create(), .arena = lp_arena_create(), .folder = folder};
  const char *path = lp_arena_format(r.arena, "%s/model.onnx", folder);
  bool done = false;
  if (lp_onnx_import(path, NULL, &r.module, r.diag) == LP_OK) {
    if (folded) fold(&r);
    done = true;
    for (int set = 0; done && lp_path_exists(path_of(&r, set, "output", 0)); set++)
      done = check_set(&r, set);
    lp_module_free(r.module);
  } else {
    ck_assert_msg(only_unsupported(r.diag), "%s: %s", folder, lp_diag_get(r.diag, 0)->text);
  }
  lp_arena_free(r.arena);
  lp_diag_free(r.diag);
  return done;
}

/* Every folder of the pattern that holds a model; at least `least` of them must run. Without any the test says that it
 * skips. */
static void check_all(const char *pattern, size_t least) {
  glob_t found;
  if (glob(pattern, 0, NULL, &found) != 0) {
    printf("skipped: there is no %s\n", pattern);
    fflush(stdout); /* Check ends the process with _exit */
    return;
  }
  size_t done = 0;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    char *folder = lp_path_dir(found.gl_pathv[i]);
    if (!is_outdated(folder) && check_model(folder, false) && check_model(folder, true)) done++;
    free(folder);
  }
  globfree(&found);
  ck_assert_msg(done >= least, "%zu of %s ran, at least %zu wanted", done, pattern, least);
}

LP_TEST(own_models) {
  check_all("tests/models/*/model.onnx", 1);
}

LP_TEST(shared_models) {
  check_all("../shared/models/*/model.onnx", 2);
}

LP_TEST(packaged_node_tests) {
  check_all("/usr/share/libonnx-testdata/data/node/*/model.onnx", 400);
}

LP_TEST(node_tests) {
  check_all("../shared/onnx-node-*/*/model.onnx", 100);
}
