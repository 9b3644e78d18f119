/* The states of a module: each pass leaves the state that it declares, and is refused where that state is missing. */
#include "base/file.h"
#include "ir/ir.h"
#include "passes/build.h"
#include "passes/state.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>

/* The passes in the order in which a compilation runs them, each with the options that it needs here. */
static const char *const steps[] = {"fold",
                                    "bind-inputs",
                                    "decompose",
                                    "recognise",
                                    "raise",
                                    "exits",
                                    "lower",
                                    "kv-cache",
                                    "fuse",
                                    "tie-weights",
                                    "mark-sensitive",
                                    "divide-experts",
                                    "annotate",
                                    "place{scheduler=cut,cut=0}",
                                    "insert-comm",
                                    "shard{ranks=1}",
                                    "join{place=device}",
                                    "plan-memory",
                                    "outline"};

static const lp_pass *pass_of(const char *step) {
  char name[32];
  size_t length = strcspn(step, "{");
  ck_assert_uint_lt(length, sizeof name);
  memcpy(name, step, length);
  name[length] = 0;
  const lp_pass *pass = lp_pass_find(name);
  ck_assert_ptr_nonnull(pass);
  return pass;
}

/* A decoder of one layer, as the frontend leaves it. */
static lp_module *imported(void) {
  char *text = NULL;
  size_t size = 0;
  lp_module *module = NULL;
  ck_assert_int_eq(lp_file_read(LP_TEST_DIR "/runner/Inputs/decoder.mlir", &text, &size, NULL), LP_OK);
  ck_assert_int_eq(lp_module_parse("decoder.mlir", text, size, &module, NULL), LP_OK);
  free(text);
  return module;
}

static lp_module *after(size_t count) {
  lp_module *module = imported();
  for (size_t i = 0; i < count; i++)
    ck_assert_int_eq(lp_passes_run(module, steps[i], NULL, NULL, NULL), LP_OK);
  return module;
}

LP_TEST(every_pass_is_a_step) {
  const lp_pass *const *list;
  ck_assert_uint_eq(lp_pass_list(&list), LP_COUNT(steps));
  for (size_t i = 0; i < LP_COUNT(steps); i++)
    ck_assert_ptr_eq(pass_of(steps[i]), list[i]);
}

LP_TEST(states_have_names_and_meanings) {
  for (int i = 0; i < LP_STATE_COUNT; i++) {
    ck_assert_str_ne(lp_module_state_name((lp_module_state)i), "");
    ck_assert_str_ne(lp_module_state_meaning((lp_module_state)i), "");
    for (int k = 0; k < i; k++)
      ck_assert_str_ne(lp_module_state_name((lp_module_state)i), lp_module_state_name((lp_module_state)k));
  }
}

static lp_module *parsed(const char *text) {
  lp_module *module = NULL;
  ck_assert_int_eq(lp_module_parse("text.mlir", text, strlen(text), &module, NULL), LP_OK);
  return module;
}

/* Lowering gives each result a buffer of its own, constants too. */
LP_TEST(constants_are_not_lowered_before_the_pass) {
  lp_module *module =
      parsed("\"builtin.module\"() ({\n"
             "  \"llmpart.func\"() ({\n"
             "    %0 = \"llmpart.constant\"() {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>\n"
             "    \"llmpart.return\"(%0) : (tensor<1xi64>) -> ()\n"
             "  }) {sym_name = \"main\"} : () -> ()\n"
             "}) : () -> ()\n");
  ck_assert_int_eq(lp_module_state_of(module), LP_STATE_RAISED);
  ck_assert_int_eq(lp_passes_run(module, "annotate", NULL, NULL, NULL), LP_FAILED);
  ck_assert_int_eq(lp_passes_run(module, "lower", NULL, NULL, NULL), LP_OK);
  ck_assert_int_eq(lp_module_state_of(module), LP_STATE_LOWERED);
  ck_assert_int_eq(lp_passes_run(module, "annotate", NULL, NULL, NULL), LP_OK);
  ck_assert_int_eq(lp_module_state_of(module), LP_STATE_ANNOTATED);
  lp_module_free(module);
}

/* Exactly the state that it makes: the steps have no pass that changes nothing. */
LP_LOOP_TEST(a_pass_makes_the_state_that_it_declares, 0, LP_COUNT(steps)) {
  lp_module *module = after((size_t)_i);
  const lp_pass *pass = pass_of(steps[_i]);
  lp_module_state before = lp_module_state_of(module);
  ck_assert_int_ge(before, pass->needs);
  ck_assert_int_eq(lp_passes_run(module, steps[_i], NULL, NULL, NULL), LP_OK);
  ck_assert_int_eq(lp_module_state_of(module), pass->makes);
  lp_module_free(module);
}

/* The last step after which the module still lacks the state that the pass needs. */
LP_LOOP_TEST(a_pass_is_refused_before_its_state, 0, LP_COUNT(steps)) {
  const lp_pass *pass = pass_of(steps[_i]);
  size_t count = 0;
  for (size_t i = 0; i < LP_COUNT(steps) && pass_of(steps[i])->makes < pass->needs; i++)
    count = i + 1;
  if (pass->needs == LP_STATE_IMPORTED) return; /* there is nothing before it */
  lp_module *module = after(count);
  lp_diag *diag = lp_diag_create();
  lp_buf wanted = {0};
  lp_buf_printf(&wanted, "pass '%s' needs a module that is %s, this one is %s", pass->name,
                lp_module_state_name(pass->needs), lp_module_state_name(lp_module_state_of(module)));
  ck_assert_int_eq(lp_passes_run(module, steps[_i], NULL, NULL, diag), LP_FAILED);
  ck_assert_str_eq(lp_diag_get(diag, 0)->text, lp_buf_text(&wanted));
  lp_buf_free(&wanted);
  lp_diag_free(diag);
  lp_module_free(module);
}

LP_LOOP_TEST(passes_of_main_refuse_a_placed_module, 0, LP_COUNT(steps)) {
  const lp_pass *pass = pass_of(steps[_i]);
  lp_module *module = after(LP_COUNT(steps));
  lp_diag *diag = lp_diag_create();
  bool of_main = pass->needs < LP_STATE_PLACED;
  ck_assert_int_eq(lp_passes_run(module, steps[_i], NULL, NULL, diag), of_main ? LP_FAILED : LP_OK);
  ck_assert_int_eq(lp_module_state_of(module), LP_STATE_OUTLINED);
  if (of_main) ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, "works on '@main', this module is outlined"));
  lp_diag_free(diag);
  lp_module_free(module);
}

/* A pass with a `breaks` that does not name the state that it undoes. */
LP_TEST(a_pass_that_undoes_a_state_is_reported) {
  lp_module *module = after(7); /* lowered */
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_passes_run(module, "raise", NULL, NULL, diag), LP_FAILED);
  ck_assert_str_eq(lp_diag_get(diag, 0)->text, "pass 'raise' left a module that is raised, should be lowered");
  lp_diag_free(diag);
  lp_module_free(module);
}

/* A constant counts as a number if it has one element. */
LP_TEST(numbers_are_constants_of_one_element) {
  lp_module *module = imported();
  lp_build build = lp_build_at(module, lp_module_body(module)->first, NULL);
  static const int64_t data[] = {7, 8}, one = 1, two = 2, none = 0;
  double found = 0;
  ck_assert(lp_scalar_constant(lp_build_constant(&build, LP_I64, 0, NULL, data), &found));
  ck_assert_double_eq(found, 7);
  ck_assert(lp_scalar_constant(lp_build_constant(&build, LP_I64, 1, &one, data + 1), &found));
  ck_assert_double_eq(found, 8);
  ck_assert(!lp_scalar_constant(lp_build_constant(&build, LP_I64, 1, &two, data), &found));
  ck_assert(!lp_scalar_constant(lp_build_constant(&build, LP_I64, 1, &none, data), &found));
  lp_module_free(module);
}
