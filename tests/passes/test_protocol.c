/* Decoders in the forms in which exporters wrap the generation protocol (tests/models/forms.py), with one thing
 * changed: bind-inputs binds the protocol or refuses it with an error, and later passes keep values (values.h). */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/passes/change.h"
#include "tests/passes/values.h"
#include "tests/suite.h"

LP_CASE(.timeout = 900);

static const values_step steps[] = {
    {"fold", false},        {"bind-inputs", true},     {"decompose", false}, {"recognise", false},
    {"raise", false},       {"lower", false},          {"kv-cache", true},   {"fuse", true},
    {"tie-weights", false}, {"mark-sensitive", false}, {"annotate", false},
};

/* The model with this change; NULL: there are not so many, or it does not verify. */
static lp_module *changed(const char *path, int64_t number, char what[CHANGE_NAME_SIZE], bool *more) {
  const lp_import_options options = {.frees_lengths = true};
  lp_module *module = NULL;
  ck_assert_int_eq(lp_onnx_import(path, &options, &module, NULL), LP_OK);
  lp_op *func = lp_module_find_func(module, "main");
  *more = number < 0 || change_function(module, func, &number, what);
  if (*more && lp_block_infer(module, func->region, NULL) == LP_OK && lp_module_verify(module, NULL) == LP_OK)
    return module;
  lp_module_free(module);
  return NULL;
}

/* The part `quick` tries every 97th change, another one of each model. */
static void try_model(const char *path, size_t model, values_tally *t) {
  const int64_t stride = lp_part("long") ? 5 : 97;
  char what[CHANGE_NAME_SIZE] = "unchanged", name[400];
  bool more = true;
  for (int64_t i = -1; more; i += i < 0 ? 1 + (int64_t)model % stride : stride) {
    lp_module *module = changed(path, i, what, &more);
    (void)snprintf(name, sizeof name, "%s, %s", strstr(path, "models/"), what);
    if (module) (void)values_keep(module, name, steps, LP_COUNT(steps), t);
    lp_module_free(module);
  }
}

LP_TEST(near_misses_of_the_protocol) {
  values_tally t = {0};
  glob_t found;
  ck_assert_int_eq(glob(LP_TEST_DIR "/../models/forms/*/model.onnx", 0, NULL, &found), 0);
  for (size_t i = 0; i < found.gl_pathc; i++)
    try_model(found.gl_pathv[i], i, &t);
  fprintf(stderr, "%d tried, %d computed, %d wrong\n", t.tried, t.computed, t.wrong);
  ck_assert_int_eq(t.wrong, 0);
  ck_assert_int_gt(t.computed, (int)found.gl_pathc);
  globfree(&found);
}
