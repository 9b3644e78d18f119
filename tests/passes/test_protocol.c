/* Exported decoders, among them those of the forms in which exporters wrap the generation protocol
 * (tests/models/forms.py), with one thing changed: bind-inputs binds the protocol or refuses it with an error, and
 * later passes keep values (values.h). */
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

/* Tries every `stride`-th change, from another one on for each model. */
static void try_model(const char *path, size_t model, int64_t stride, values_tally *t) {
  char what[CHANGE_NAME_SIZE] = "unchanged", name[400];
  bool more = true;
  for (int64_t i = -1; more; i += i < 0 ? 1 + (int64_t)model % stride : stride) {
    lp_module *module = changed(path, i, what, &more);
    (void)snprintf(name, sizeof name, "%s, %s", strstr(path, "/../") + 4, what);
    if (module) (void)values_keep(module, name, steps, LP_COUNT(steps), t);
    lp_module_free(module);
  }
}

/* GPT-2 is left out: where a change makes the variance of its norms 0, they magnify what rounding leaves. */
static const struct {
  const char *pattern;
  int64_t quick, all; /* the strides of the parts */
} groups[] = {{"models/forms/*/model.onnx", 97, 5},
              {"models/families/*/model.onnx", 499, 499},
              {"models/llama*/model.onnx", 499, 499},
              {"conformance/decoders/*.onnx", 199, 199}};

LP_LOOP_TEST(near_misses_of_the_protocol, 0, LP_COUNT(groups)) {
  values_tally t = {0};
  glob_t found;
  lp_buf pattern = {0};
  lp_buf_printf(&pattern, "%s/../%s", LP_TEST_DIR, groups[_i].pattern);
  ck_assert_int_eq(glob(lp_buf_text(&pattern), 0, NULL, &found), 0);
  for (size_t i = 0; i < found.gl_pathc; i++)
    try_model(found.gl_pathv[i], i, lp_part("soak") ? groups[_i].all : groups[_i].quick, &t);
  fprintf(stderr, "%s: %d tried, %d computed, %d wrong\n", groups[_i].pattern, t.tried, t.computed, t.wrong);
  ck_assert_int_eq(t.wrong, 0);
  ck_assert_int_ge(t.computed, (int)found.gl_pathc);
  globfree(&found);
  lp_buf_free(&pattern);
}
