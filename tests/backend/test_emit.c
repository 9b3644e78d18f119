/* Properties of emission other than results: forms, determinism, targets, refusals. */
#include "harness.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>

LP_CASE(.timeout = 300);

/* y = silu(x . w + bias), then a norm: enough to have every kind of symbol. */
static harness *small_model(void) {
  harness *h = harness_create(1, 3, 0);
  lp_value *x = harness_input(h, LP_F32, "b,s,40", -1, 1);
  lp_value *w = harness_constant(h, LP_F32, "40,48", -1, 1), *bias = harness_constant(h, LP_F32, "48", -1, 1);
  lp_value *y = HARNESS_OP(h, LP_OP_LINEAR, harness_type(h, LP_F32, "b,s,48"), x, w, bias);
  harness_str(h, y, "epilogue", "silu");
  lp_value *z = HARNESS_OP(h, LP_OP_NORM, y->type, y);
  harness_f64(h, harness_str(h, z, "type", "rms"), "epsilon", 1e-5);
  harness_keep(h, z);
  harness_finish(h);
  return h;
}

static const lp_backend *cpu(void) {
  return lp_backend_find("cpu");
}

static lp_status emit(harness *h, const char *march, lp_emit_form form, lp_buf *out) {
  const lp_emit_options options = {.side = LP_SIDE_DEVICE, .march = march, .opt_level = 2};
  return cpu()->emit(h->module, &options, form, out, h->diag);
}

static const char *const marches[] = {"x86-64-v3", "x86-64-v4", "native", "armv8-a", "cortex-a76"};

LP_LOOP_TEST(two_emissions_are_equal, 0, LP_COUNT(marches)) {
  static const lp_emit_form forms[] = {LP_EMIT_LLVM_IR, LP_EMIT_ASM, LP_EMIT_OBJECT, LP_EMIT_SHARED};
  for (size_t i = 0; i < LP_COUNT(forms); i++) {
    if (!lp_part(forms[i] == LP_EMIT_OBJECT ? "quick" : "long")) continue;
    lp_buf text[2] = {{0}, {0}};
    for (int k = 0; k < 2; k++) {
      harness *h = small_model();
      if (emit(h, marches[_i], forms[i], &text[k]) != LP_OK) harness_fail(h, marches[_i]);
      harness_free(h);
    }
    ck_assert_uint_gt(text[0].size, 100);
    ck_assert_uint_eq(text[0].size, text[1].size);
    ck_assert_mem_eq(text[0].data, text[1].data, text[0].size);
    lp_buf_free(&text[0]);
    lp_buf_free(&text[1]);
  }
}

LP_TEST(forms_are_what_they_say) {
  harness *h = small_model();
  lp_buf text = {0};
  ck_assert_int_eq(emit(h, "x86-64-v3", LP_EMIT_LLVM_IR, &text), LP_OK);
  ck_assert_ptr_nonnull(strstr(text.data, "define void @lp_segment_0("));
  ck_assert_ptr_nonnull(strstr(text.data, "@lp_layout_0("));
  ck_assert_ptr_nonnull(strstr(text.data, "@lp_abi = "));
  ck_assert_ptr_nonnull(strstr(text.data, "@linear_silu_f32_48x40("));
  ck_assert_ptr_null(strstr(text.data, LP_TEST_DIR)); /* no path of the machine that built it */
  lp_buf_clear(&text);
  ck_assert_int_eq(emit(h, "x86-64-v3", LP_EMIT_ASM, &text), LP_OK);
  ck_assert_ptr_nonnull(strstr(text.data, "lp_segment_0:"));
  lp_buf_clear(&text);
  ck_assert_int_eq(emit(h, "x86-64-v3", LP_EMIT_SHARED, &text), LP_OK);
  ck_assert_mem_eq(text.data, "\177ELF", 4);
  lp_buf_free(&text);
  ck_assert_int_eq(emit(h, "x86-64-v3", LP_EMIT_SOURCE, &text), LP_FAILED);
  harness_free(h);
}

/* The code uses the widest vectors of the processor, and fused multiply-adds. */
LP_LOOP_TEST(target_is_used, 0, 3) {
  static const struct {
    const char *march, *must, *must_not;
  } cases[] = {{"x86-64-v3", "ymm", "zmm"}, {"x86-64-v4", "zmm", "fmla"}, {"armv8-a", "fmla", "ymm"}};
  harness *h = small_model();
  lp_buf text = {0};
  ck_assert_int_eq(emit(h, cases[_i].march, LP_EMIT_ASM, &text), LP_OK);
  ck_assert_msg(strstr(text.data, cases[_i].must) != NULL, "no %s", cases[_i].must);
  ck_assert_msg(strstr(text.data, cases[_i].must_not) == NULL, "%s", cases[_i].must_not);
  lp_buf_free(&text);
  harness_free(h);
}

static void expect_error(harness *h, const char *text) {
  ck_assert_uint_eq(lp_diag_error_count(h->diag), 1);
  const char *found = lp_diag_get(h->diag, 0)->text;
  ck_assert_msg(strstr(found, text) != NULL, "'%s' does not say '%s'", found, text);
  harness_free(h);
}

LP_LOOP_TEST(unfit_march_is_refused, 0, 3) {
  static const char *const cases[][2] = {
      {"x86-64-v2", "lacks AVX2"}, {"x86-64", "x86-64-v3"}, {"znver9", "unknown march"}};
  harness *h = small_model();
  lp_buf out = {0};
  ck_assert_int_eq(emit(h, cases[_i][0], LP_EMIT_OBJECT, &out), LP_FAILED);
  ck_assert_uint_eq(out.size, 0);
  expect_error(h, cases[_i][1]);
}

LP_TEST(missing_linker_is_named) {
  harness *h = small_model();
  lp_buf out = {0};
  setenv("PATH", "/nonexistent", 1);
  ck_assert_int_eq(emit(h, "x86-64-v3", LP_EMIT_SHARED, &out), LP_FAILED);
  ck_assert_str_eq(lp_diag_get(h->diag, 0)->loc.file, "ld.lld-19");
  expect_error(h, "cannot run the linker");
}

LP_TEST(unfit_operator_is_named) {
  harness *h = harness_create(1, 1, 0);
  lp_value *x = harness_input(h, LP_F64, "b,s,8", -1, 1);
  lp_value *y = HARNESS_OP(h, LP_OP_SOFTMAX, x->type, x);
  y->def->loc = (lp_loc){.file = "m.onnx", .node = "/attn/Softmax", .op = "Softmax"};
  harness_keep(h, y);
  harness_finish(h);
  lp_buf out = {0};
  char why[64] = "";
  ck_assert(!cpu()->runs(y->def, why));
  ck_assert_str_eq(why, "it computes in f32, found f64");
  ck_assert_int_eq(emit(h, "x86-64-v3", LP_EMIT_OBJECT, &out), LP_FAILED);
  ck_assert_str_eq(lp_diag_get(h->diag, 0)->loc.node, "/attn/Softmax");
  expect_error(h, "cpu cannot run 'op.softmax'");
}

static int count_linears(harness *h) {
  lp_buf text = {0};
  ck_assert_int_eq(emit(h, "x86-64-v3", LP_EMIT_LLVM_IR, &text), LP_OK);
  int found = 0;
  for (const char *at = text.data; (at = strstr(at, "define ")); at += 7) {
    const char *end = strchr(at, '\n'), *name = strstr(at, "@linear_");
    found += name && name < end;
  }
  lp_buf_free(&text);
  return found;
}

/* Equal operators are one function, however often they occur. */
LP_TEST(equal_operators_share_code) {
  harness *h = harness_create(1, 3, 0);
  lp_value *x = harness_input(h, LP_F32, "b,s,64", -1, 1);
  for (int i = 0; i < 12; i++)
    x = HARNESS_OP(h, LP_OP_LINEAR, x->type, x, harness_constant(h, LP_F32, "64,64", -0.2, 0.2));
  harness_keep(h, x);
  harness_finish(h);
  ck_assert_int_eq(count_linears(h), 1);
  harness_check(h, "cpu", "native", 2);
  harness_free(h);
}

/* The last layers run on the rows with logits. They share the functions of the others, and give the right values. */
LP_LOOP_TEST(last_rows_share_code, 1, 3) {
  harness *h = harness_create(_i, 7, 4);
  lp_value *x = harness_input(h, LP_F32, "b,s,64", -1, 1);
  lp_value *y = HARNESS_OP(h, LP_OP_LINEAR, x->type, x, harness_constant(h, LP_F32, "64,64", -0.2, 0.2));
  lp_value *last = harness_last_rows(h, y);
  harness_keep(h, y);
  harness_keep(h, HARNESS_OP(h, LP_OP_LINEAR, last->type, last, harness_constant(h, LP_F32, "64,64", -0.2, 0.2)));
  harness_finish(h);
  ck_assert_int_eq(count_linears(h), 1);
  harness_check(h, "cpu", "native", 2);
  harness_free(h);
}
