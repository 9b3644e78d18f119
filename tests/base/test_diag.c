#include "tests/base/expect.h"
#include "tests/suite.h"

static void expect(lp_loc loc, const char *wanted) {
  lp_diag *diag = lp_diag_create();
  ck_assert_int_eq(lp_error(diag, loc, "found %d", 3), LP_FAILED);
  char *text = formatted(diag, 0);
  ck_assert_str_eq(text, wanted);
  free(text);
  lp_diag_free(diag);
}

LP_TEST(locations_print) {
  expect(LP_LOC_NONE, "error: found 3");
  expect(LP_LOC_FILE("a.mlir"), "a.mlir: error: found 3");
  expect((lp_loc){.file = "a.mlir", .line = 4}, "a.mlir:4: error: found 3");
  expect((lp_loc){.file = "a.mlir", .line = 4, .col = 9}, "a.mlir:4:9: error: found 3");
  expect((lp_loc){.file = "m.onnx", .node = "/l/0", .op = "MatMul"}, "m.onnx: node '/l/0' (MatMul): error: found 3");
  expect((lp_loc){.file = "m.onnx", .node = "/l/0"}, "m.onnx: node '/l/0': error: found 3");
  expect((lp_loc){.op = "MatMul"}, "operator MatMul: error: found 3");
  expect((lp_loc){.op = "MatMul", .opset = 17}, "operator MatMul: error: found 3 [ai.onnx, opset 17]");
  expect((lp_loc){.file = "m.onnx", .node = "n", .op = "Gelu", .domain = "com.microsoft", .opset = 1},
         "m.onnx: node 'n' (Gelu): error: found 3 [com.microsoft, opset 1]");
}

LP_TEST(the_location_is_copied) {
  char file[] = "a.yaml";
  lp_diag *diag = lp_diag_create();
  lp_warning(diag, LP_LOC_FILE(file), "w");
  memset(file, 'z', sizeof file - 1);
  char *text = formatted(diag, 0);
  ck_assert_str_eq(text, "a.yaml: warning: w");
  free(text);
  lp_diag_free(diag);
}

LP_TEST(severities_and_statuses) {
  lp_diag *diag = lp_diag_create();
  lp_note(diag, LP_LOC_NONE, "n");
  lp_warning(diag, LP_LOC_NONE, "w");
  ck_assert_uint_eq(lp_diag_error_count(diag), 0);
  ck_assert_int_eq(lp_error_as(LP_INFEASIBLE, diag, LP_LOC_NONE, "e"), LP_INFEASIBLE);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_uint_eq(lp_diag_count(diag), 3);
  lp_diag_clear(diag);
  ck_assert_uint_eq(lp_diag_count(diag) + lp_diag_error_count(diag), 0);
  ck_assert_int_eq(lp_error(NULL, LP_LOC_NONE, "kept by nobody"), LP_FAILED);
  lp_diag_free(diag);
  lp_diag_free(NULL);
}

static void count_entry(void *user, const lp_diag_entry *entry) {
  ck_assert_str_eq(entry->text, "e");
  (*(int *)user)++;
}

LP_TEST(a_sink_sees_each_entry_once) {
  int seen = 0;
  lp_diag *diag = lp_diag_create();
  lp_diag_set_sink(diag, count_entry, &seen);
  lp_note(diag, LP_LOC_NONE, "e");
  lp_warning(diag, LP_LOC_NONE, "e");
  ck_assert_int_eq(seen, 2);
  lp_diag_free(diag);
}

LP_TEST(near_names_are_found) {
  static const char *const names[] = {"a100", "h100", "jetson-nano", "memory_bandwidth"};
  ck_assert_str_eq(lp_near_name("jetsonnano", names, 4), "jetson-nano");
  ck_assert_str_eq(lp_near_name("Jetson-Nano", names, 4), "jetson-nano");
  ck_assert_str_eq(lp_near_name("memroy_bandwith", names, 4), "memory_bandwidth");
  ck_assert_str_eq(lp_near_name("a10", names, 4), "a100");
  ck_assert_ptr_null(lp_near_name("rtx", names, 4));
  ck_assert_ptr_null(lp_near_name("", names, 4));
  ck_assert_ptr_null(lp_near_name("a100", names, 0));
  char longest[500];
  memset(longest, 'a', sizeof longest);
  longest[sizeof longest - 1] = 0;
  ck_assert_ptr_null(lp_near_name(longest, names, 4));
}

LP_TEST(a_near_name_is_a_note) {
  static const char *const names[] = {"greedy", "exact"};
  lp_diag *diag = lp_diag_create();
  lp_note_near(diag, LP_LOC_FILE("f"), "gredy", names, 2);
  lp_note_near(diag, LP_LOC_FILE("f"), "zzzzzz", names, 2);
  ck_assert_uint_eq(lp_diag_count(diag), 1);
  char *text = formatted(diag, 0);
  ck_assert_str_eq(text, "f: note: did you mean 'greedy'?");
  free(text);
  lp_diag_free(diag);
}
