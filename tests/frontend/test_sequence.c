/* Imports sequences of tensors, loops and branches: what each element becomes, and the refusals. */
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/frontend/onnx_writer.h"
#include "tests/suite.h"

ONNX_CASE;

/* x = 1 .. 6 of f32[2,3], y = nodes(x), one node more unless NULL, and nodes after it. s0 .. s3 and n1 are numbers,
 * v0 .. v3 and m1 vectors of one; n1 and m1 hold -1. */
static lp_buf around_with(const char *nodes, lp_buf *node, const char *after) {
  static const float x[] = {1, 2, 3, 4, 5, 6};
  static const int64_t pair[] = {1, 2}, negative[] = {-1, 4}, short_by_one[] = {1, 1};
  lp_buf graph = {0};
  onnx_input(&graph, "given", ONNX_I64, "");
  onnx_input(&graph, "given2", ONNX_I64, "2");
  onnx_input(&graph, "open", ONNX_F32, "n 3");
  onnx_input(&graph, "long", ONNX_F32, "5000 1");
  onnx_initializer(&graph, onnx_tensor("x", ONNX_F32, "2 3", x, sizeof x));
  onnx_initializer(&graph, onnx_tensor("scalar", ONNX_F32, "", x, sizeof *x));
  onnx_initializer(&graph, onnx_tensor("floats", ONNX_F32, "2", x, 2 * sizeof *x));
  for (int64_t i = -1; i < 4; i++) {
    char scalar[] = {i < 0 ? 'n' : 's', (char)('0' + (i < 0 ? -i : i)), 0},
         vector[] = {i < 0 ? 'm' : 'v', scalar[1], 0};
    onnx_initializer(&graph, onnx_tensor(scalar, ONNX_I64, "", &i, sizeof i));
    onnx_initializer(&graph, onnx_tensor(vector, ONNX_I64, "1", &i, sizeof i));
  }
  onnx_initializer(&graph, onnx_tensor("pair", ONNX_I64, "2", pair, sizeof pair));
  onnx_initializer(&graph, onnx_tensor("negative", ONNX_I64, "2", negative, sizeof negative));
  onnx_initializer(&graph, onnx_tensor("short", ONNX_I64, "2", short_by_one, sizeof short_by_one));
  onnx_initializer(&graph, onnx_tensor("square", ONNX_I64, "1 2", pair, sizeof pair));
  onnx_nodes(&graph, nodes);
  if (node) onnx_add(&graph, *node);
  onnx_nodes(&graph, after);
  onnx_output(&graph, "y", 0, NULL);
  return onnx_model(&graph, 17);
}

static lp_buf around(const char *nodes) {
  return around_with(nodes, NULL, "");
}

/* The type and numbers of the result of constants: "f32[2]: 1 2". */
static void gives_model(lp_buf model, const char *nodes, const char *wanted) {
  lp_buf found = {0};
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(module, "%s: %s", nodes, onnx_message(diag, 0));
  ck_assert_int_eq(lp_module_verify(module, diag), LP_OK);
  lp_value *y = onnx_result(module, 0)->out[0];
  lp_arena *arena = lp_arena_create();
  int64_t sym[16] = {0}, count;
  lp_array out;
  ck_assert(lp_type_static_numel(y->type, &count));
  ck_assert_msg(lp_value_eval(module, y, NULL, 0, sym, arena, &out, diag) == LP_OK, "%s: %s", nodes,
                onnx_message(diag, 0));
  lp_buf_printf(&found, "%s:", onnx_type_text(module, y));
  for (int64_t i = 0; i < count; i++)
    lp_buf_printf(&found, " %g",
                  out.dtype == LP_F32 ? (double)((float *)out.data)[i] : (double)((int64_t *)out.data)[i]);
  ck_assert_msg(strcmp(lp_buf_text(&found), wanted) == 0, "%s: found %s, %s wanted", nodes, lp_buf_text(&found),
                wanted);
  lp_buf_free(&found);
  lp_arena_free(arena);
  lp_module_free(module);
}

static void gives(const char *nodes, const char *wanted) {
  gives_model(around(nodes), nodes, wanted);
}

static void refuses_model(lp_buf model, const char *nodes, const char *text) {
  lp_diag_clear(diag);
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(!module, "imported: %s", nodes);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(onnx_message(diag, 0), text), "%s: found '%s', expected '%s'", nodes, onnx_message(diag, 0),
                text);
}

static void refuses(const char *nodes, const char *text) {
  refuses_model(around(nodes), nodes, text);
}

/* ---- sequences --------------------------------------------------------------------------------------------------- */

static const struct {
  const char *nodes, *result;
} sequences[] = {
    {"SplitToSequence x > q; SequenceAt q s1 > y", "f32[1,3]: 4 5 6"},
    {"SplitToSequence x > q; SequenceAt q n1 > y", "f32[1,3]: 4 5 6"},
    {"SplitToSequence x > q keepdims=0; SequenceAt q s1 > y", "f32[3]: 4 5 6"},
    {"SplitToSequence x s1 > q keepdims=0; SequenceAt q s1 > y", "f32[1,3]: 4 5 6"}, /* ignored beside sizes */
    {"SplitToSequence x > q axis=-1 keepdims=0; SequenceAt q s2 > y", "f32[2]: 3 6"},
    {"SplitToSequence x s2 > q axis=1; SequenceAt q s0 > y", "f32[2,2]: 1 2 4 5"},
    {"SplitToSequence x s2 > q axis=1; SequenceAt q s1 > y", "f32[2,1]: 3 6"},
    {"SplitToSequence x s3 > q axis=1; SequenceLength q > y", "i64[]: 1"},
    {"SplitToSequence x s2 > q axis=1; SequenceLength q > y", "i64[]: 2"},
    {"SplitToSequence x s2 > q; SequenceLength q > y", "i64[]: 1"},
    {"SplitToSequence x pair > q axis=1; SequenceAt q s0 > y", "f32[2,1]: 1 4"},
    {"SplitToSequence x pair > q axis=-1; SequenceAt q s1 > y", "f32[2,2]: 2 3 5 6"},
    {"Shape scalar > none; SequenceConstruct x x > q; SequenceLength q > y", "i64[]: 2"},
    {"SequenceConstruct floats floats > q; ConcatFromSequence q > y axis=0", "f32[4]: 1 2 1 2"},
    {"SequenceConstruct floats floats > q; ConcatFromSequence q > y axis=0 new_axis=1", "f32[2,2]: 1 2 1 2"},
    {"SequenceConstruct floats floats > q; ConcatFromSequence q > y axis=-1 new_axis=1", "f32[2,2]: 1 1 2 2"},
    {"SplitToSequence x > q axis=1; ConcatFromSequence q > y axis=0", "f32[6,1]: 1 4 2 5 3 6"},
    {"SplitToSequence floats short > q; SequenceAt q s1 > y", "f32[1]: 2"},
    {"SequenceEmpty > e; SequenceLength e > y", "i64[]: 0"},
    {"SequenceEmpty > e; SequenceInsert e x > q; SequenceAt q n1 > y", "f32[2,3]: 1 2 3 4 5 6"},
    {"Neg floats > n; SequenceConstruct floats > a; SequenceInsert a n > q; ConcatFromSequence q > y axis=0",
     "f32[4]: 1 2 -1 -2"},
    {"Neg floats > n; SequenceConstruct floats > a; SequenceInsert a n s1 > q; ConcatFromSequence q > y axis=0",
     "f32[4]: 1 2 -1 -2"},
    {"Neg floats > n; SequenceConstruct floats > a; SequenceInsert a n n1 > q; ConcatFromSequence q > y axis=0",
     "f32[4]: -1 -2 1 2"},
};

LP_LOOP_TEST(unrolls_sequences, 0, LP_COUNT(sequences)) {
  gives(sequences[_i].nodes, sequences[_i].result);
}

LP_TEST(refuses_sequences_of_unknown_length) {
  const char *text = "node 'q' (SplitToSequence): error: the length of the sequence is not constant";
  refuses("SplitToSequence x given > q axis=1; SequenceAt q s0 > y", text);
  refuses("SplitToSequence x given2 > q axis=1; SequenceAt q s0 > y", text);
  refuses("SplitToSequence open s1 > q; SequenceAt q s0 > y", text);
  refuses("SplitToSequence x square > q axis=1; SequenceAt q s0 > y", text);
  refuses("SplitToSequence floats floats > q; SequenceAt q s0 > y", text);
}

LP_TEST(refuses_pieces) {
  refuses("SplitToSequence x s0 > q; SequenceAt q s0 > y", "pieces of size 0, at least 1 wanted");
  refuses("SplitToSequence x n1 > q; SequenceAt q s0 > y", "pieces of size -1, at least 1 wanted");
  refuses("SplitToSequence x negative > q axis=1; SequenceAt q s0 > y", "a piece of size -1");
  refuses("SplitToSequence x short > q axis=1; SequenceAt q s0 > y", "pieces of 2 elements in all, the axis has 3");
  refuses("SplitToSequence scalar > q; SequenceAt q s0 > y", "axis 0 of a tensor of rank 0");
  refuses("SplitToSequence x > q axis=-3; SequenceAt q s0 > y", "axis -3 of a tensor of rank 2");
  refuses("SplitToSequence long > q; SequenceAt q s0 > y", "a sequence of 5000 tensors, at most 4096 are supported");
  refuses("SplitToSequence x > q axis=0.5; SequenceAt q s0 > y", "attribute 'axis' is of type FLOAT, INT wanted");
  refuses("SplitToSequence x > q keepdims=no; SequenceAt q s0 > y",
          "attribute 'keepdims' is of type STRING, INT wanted");
  refuses("SplitToSequence nothing > q; SequenceAt q s0 > y",
          "input 'nothing' is no tensor that a node, an initializer or an input makes");
  refuses("SplitToSequence x nothing > q; SequenceAt q s0 > y", "input 'nothing' is no tensor that a node");
}

LP_TEST(refuses_uses_of_sequences) {
  refuses("SequenceConstruct x > a; SequenceInsert a x s2 > q; SequenceLength q > y", "index 2 into a sequence of 1");
  refuses("SequenceConstruct x > a; SequenceInsert a x given > q; SequenceLength q > y",
          "index into the sequence is not constant");
  refuses("SplitToSequence x > q more; SequenceAt q s0 > y", "node 'q' (SplitToSequence): error: 2 outputs, 1 wanted");
  refuses("SplitToSequence x > -; Neg x > y", "(SplitToSequence): error: 1 outputs, 1 wanted");
  refuses("SequenceConstruct x x > q; SequenceConstruct x > q; SequenceAt q s0 > y", "value 'q' is defined twice");
  refuses("Neg x > q; SequenceConstruct x > q; Neg q > y", "value 'q' is defined twice");
  refuses("SequenceConstruct x > q; Neg x > q; Neg q > y", "value 'q' is defined twice");
  refuses("SequenceConstruct x x > q; SequenceAt q s2 > y", "index 2 into a sequence of 2");
  refuses("SequenceConstruct x x > q; SequenceAt q > y", "input '' is no tensor");
  refuses("SequenceLength x > y", "input 'x' is no sequence of constant length");
  refuses("ConcatFromSequence x > y axis=0", "input 'x' is no sequence of constant length");
  refuses("SequenceConstruct > q; ConcatFromSequence q > y axis=0", "the sequence is empty");
  refuses("SequenceConstruct x > q; ConcatFromSequence q > y axis=0.5",
          "attribute 'axis' is of type FLOAT, INT wanted");
  refuses("SequenceConstruct x > q; ConcatFromSequence q > y axis=0 new_axis=0.5",
          "attribute 'new_axis' is of type FLOAT, INT wanted");
  refuses("SequenceConstruct x > q; ConcatFromSequence q > y axis=7", "axis");
  refuses("SequenceConstruct x > y", "output 'y' is made by no node");
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* A Loop's body: i, k and the carried v; its condition "on", the carried "w" and, with `scan`, the scanned "e". */
static lp_buf repeat(const char *inputs, const char *outputs, const char *body, const char *scan_dims) {
  lp_buf graph = {0}, node = onnx_named("repeat", "Loop", inputs, outputs);
  onnx_nodes(&graph, body);
  onnx_input(&graph, "i", ONNX_I64, "");
  onnx_input(&graph, "k", ONNX_BOOL, "");
  onnx_input(&graph, "v", ONNX_F32, "2");
  onnx_output(&graph, "on", ONNX_BOOL, "");
  onnx_output(&graph, "w", ONNX_F32, "2");
  if (scan_dims) onnx_output(&graph, "e", ONNX_F32, scan_dims);
  onnx_attr_graph(&node, "body", &graph);
  return node;
}

static const char conditions[] = "Equal given s1 > asked; Equal s0 s1 > never; Equal s0 s0 > always";

static void loops(lp_buf node, const char *wanted) {
  gives_model(around_with(conditions, &node, ""), "Loop", wanted);
}

static void refuses_loop(lp_buf node, const char *text) {
  refuses_model(around_with(conditions, &node, ""), "Loop", text);
}

LP_TEST(unrolls_loops) {
  static const char body[] = "Add v v > w; Identity k > on";
  static const char scanning[] = "Add v v > w; Identity k > on; Neg w > e";
  static const char counting[] = "Add v v > w; Less i s1 > on; Neg w > e";
  loops(repeat("s2 - floats", "y", body, NULL), "f32[2]: 4 8");
  loops(repeat("s2 always floats", "y", body, NULL), "f32[2]: 4 8");
  loops(repeat("s2 never floats", "y", body, NULL), "f32[2]: 1 2");
  loops(repeat("s0 - floats", "y", body, NULL), "f32[2]: 1 2");
  loops(repeat("n1 - floats", "y", body, NULL), "f32[2]: 1 2");
  loops(repeat("- - floats", "y", counting, "2"), "f32[2]: 4 8");
  loops(repeat("s2 - floats", "- y", scanning, "2"), "f32[2,2]: -2 -4 -4 -8");
  loops(repeat("s0 - floats", "- y", scanning, "2"), "f32[0,2]:");
  loops(repeat("s2 never floats", "last y", scanning, ""), "f32[0]:");
}

/* As exporters write repeat_interleave: each trip inserts into the sequence that is carried. */
LP_TEST(loops_carry_sequences) {
  lp_buf node = repeat("s3 - e", "q", "Add floats floats > d; SequenceInsert v d > w; Identity k > on", NULL);
  gives_model(around_with("SequenceEmpty > e", &node, "ConcatFromSequence q > y axis=0"), "Loop",
              "f32[6]: 2 4 2 4 2 4");
  node = repeat("s2 asked e", "q", "SequenceInsert v floats > w; Identity k > on", NULL);
  refuses_model(around_with("Equal given s1 > asked; SequenceEmpty > e", &node, "SequenceLength q > y"), "Loop",
                "the length of the sequence 'w' depends on the input");
  node = repeat("s2 - e", "q", "Neg floats > w; Identity k > on", NULL);
  refuses_model(around_with("SequenceEmpty > e", &node, "SequenceLength q > y"), "Loop",
                "result 'w' is no sequence of constant length");
}

LP_TEST(refuses_other_loops) {
  static const char body[] = "Add v v > w; Identity k > on", scanning[] = "Add v v > w; Identity k > on; Neg w > e";
  lp_buf bare = onnx_named("repeat", "Loop", "s2 - floats", "y");
  refuses_loop(bare, "node 'repeat' (Loop): error: attribute 'body' is missing");
  refuses_loop(repeat("nothing - floats", "y", body, NULL), "input 'nothing' is made by no node");
  refuses_loop(repeat("s2 nothing floats", "y", body, NULL), "input 'nothing' is made by no node");
  refuses_loop(repeat("s2 - nothing", "y", body, NULL), "input 'nothing' is made by no node");
  refuses_loop(repeat("s2 floats floats", "y", body, NULL), "its condition is not of type bool");
  refuses_loop(repeat("- asked floats", "y", body, NULL),
               "its number of trips depends on the input, and no trip count limits it");
  refuses_loop(repeat("s2 asked floats", "- y", scanning, "2"),
               "its number of trips depends on the input, and so does the size of a result");
  refuses_loop(repeat("s0 - floats", "- y", scanning, "m"),
               "it makes no trip, and the size of its result 'e' is not constant");
  refuses_loop(repeat("s0 - floats", "- y", scanning, "1 1 1 1 1 1 1 1"),
               "it makes no trip, and the size of its result 'e' is not constant");
  refuses_loop(repeat("s1 - floats", "y", "Add v v > w", NULL), "output 'on' is made by no node");
}

/* ---- branches ---------------------------------------------------------------------------------------------------- */

static lp_buf branch(const char *nodes) {
  lp_buf graph = {0};
  onnx_nodes(&graph, nodes);
  onnx_output(&graph, "r", 0, NULL);
  return graph;
}

static lp_buf choose(const char *inputs, const char *outputs, const char *yes, const char *no) {
  lp_buf node = onnx_named("choose", "If", inputs, outputs), graph;
  if (yes) graph = branch(yes), onnx_attr_graph(&node, "then_branch", &graph);
  if (no) graph = branch(no), onnx_attr_graph(&node, "else_branch", &graph);
  return node;
}

LP_TEST(takes_known_branches) {
  loops(choose("always", "y", "Neg floats > r", "Abs x > r"), "f32[2]: -1 -2");
  loops(choose("never", "y", "Neg floats > r", "Shape x > r"), "i64[2]: 2 3");
  loops(choose("never", "y", NULL, "Abs floats > r"), "f32[2]: 1 2");
}

LP_TEST(refuses_other_branches) {
  const char *text = "its condition depends on the input, and the shape or type of a result depends on the condition";
  refuses_loop(choose("always", "y", NULL, "Abs floats > r"), "attribute 'then_branch' is missing");
  refuses_loop(choose("asked", "y", "Abs floats > r", NULL), "attribute 'else_branch' is missing");
  refuses_loop(choose("asked always", "y", "Neg x > r", "Neg x > r"), "an If takes exactly one input, its condition");
  refuses_loop(choose("nothing", "y", "Neg x > r", "Neg x > r"), "an If takes exactly one input, its condition");
  refuses_loop(choose("floats", "y", "Neg x > r", "Neg x > r"), "its condition is not of type bool");
  refuses_loop(choose("always", "y z", "Neg x > r", "Neg x > r"), "its branch has 1 outputs, 2 wanted");
  refuses_loop(choose("asked", "y", "Neg x > r", "Neg floats > r"), text);
  refuses_loop(choose("asked", "y", "Neg x > r", "Shape x > r"), text);
  refuses_loop(choose("asked", "y", "Identity floats > r", "Identity scalar > r"), text);
  refuses_loop(choose("always", "y", "Neg x > q", "Neg x > r"), "output 'r' is made by no node");
  refuses_loop(choose("always", "y", "SequenceConstruct x > r", "Neg x > r"),
               "output 'r' is a sequence, which is not supported as a result");
  lp_buf node = choose("both", "y", "Neg x > r", "Neg x > r");
  refuses_model(around_with("Equal given2 s1 > both", &node, ""), "If", "its condition is not one element");
}

/* Constant tables that differ in their count of rows: the shorter is lengthened by zeros. */
static lp_module *choose_table(const char *yes, const char *no) {
  lp_buf branches[2] = {{0}, {0}};
  for (int i = 0; i < 2; i++) {
    onnx_nodes(&branches[i], "Neg three > unused");
    onnx_output(&branches[i], i ? no : yes, 0, NULL);
  }
  static const float rows[] = {1, 2, 3, 4, 5, 6};
  lp_buf graph = {0}, node = onnx_named("choose", "If", "asked", "y");
  onnx_attr_graph(&node, "then_branch", &branches[0]);
  onnx_attr_graph(&node, "else_branch", &branches[1]);
  onnx_input(&graph, "asked", ONNX_BOOL, "1");
  onnx_initializer(&graph, onnx_tensor("three", ONNX_F32, "3 2", rows, sizeof rows));
  onnx_initializer(&graph, onnx_tensor("one", ONNX_F32, "1 2", rows, 2 * sizeof *rows));
  onnx_initializer(&graph, onnx_tensor("wide", ONNX_F32, "1 3", rows, 3 * sizeof *rows));
  onnx_initializer(&graph, onnx_tensor("flat", ONNX_F32, "6", rows, sizeof rows));
  onnx_initializer(&graph, onnx_tensor("whole", ONNX_I32, "1 2", rows, 2 * sizeof *rows));
  onnx_add(&graph, node);
  onnx_output(&graph, "y", 0, NULL);
  lp_buf model = onnx_model(&graph, 17);
  lp_diag_clear(diag);
  return onnx_import(&model, diag);
}

LP_TEST(lengthens_the_shorter_table) {
  static const float full[] = {1, 2, 3, 4, 5, 6}, padded[] = {1, 2, 0, 0, 0, 0};
  static const char *const tables[] = {"one", "three"};
  for (int which = 0; which < 2; which++)
    for (int asked = 0; asked < 2; asked++) {
      lp_module *module = choose_table(tables[which], tables[!which]);
      ck_assert_msg(module, "%s", onnx_message(diag, 0));
      const lp_block *main = lp_module_find_func(module, "main")->region;
      lp_arena *arena = lp_arena_create();
      bool flag = asked;
      int64_t sym[16] = {0};
      lp_binding binding = {main->arg[0], {LP_BOOL, 1, {1}, &flag}};
      lp_array out;
      ck_assert_msg(lp_value_eval(module, onnx_result(module, 0)->out[0], &binding, 1, sym, arena, &out, diag) == LP_OK,
                    "%s", onnx_message(diag, 0));
      const float *wanted = (which == 0) == (asked == 1) ? padded : full;
      ck_assert_str_eq(onnx_type_text(module, onnx_result(module, 0)->out[0]), "f32[3,2]");
      for (int i = 0; i < 6; i++)
        ck_assert_float_eq(((const float *)out.data)[i], wanted[i]);
      lp_arena_free(arena);
      lp_module_free(module);
    }
  ck_assert_ptr_null(choose_table("three", "wide"));
  ck_assert_ptr_null(choose_table("three", "flat"));
  ck_assert_ptr_null(choose_table("flat", "three"));
  ck_assert_ptr_null(choose_table("three", "whole"));
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
}

/* ---- equations --------------------------------------------------------------------------------------------------- */

static lp_buf equation(const char *text, const char *inputs, const char *outputs) {
  lp_buf node = onnx_named("n", "Einsum", inputs, outputs);
  onnx_attr_s(&node, "equation", text);
  return node;
}

LP_TEST(reads_equations) {
  loops(equation("ij -> ji", "x", "y"), "f32[3,2]: 1 4 2 5 3 6");
  loops(equation("Ij->jI", "x", "y"), "f32[3,2]: 1 4 2 5 3 6");
  loops(equation("ji", "x", "y"), "f32[3,2]: 1 4 2 5 3 6"); /* in order of the alphabet */
  loops(equation("ij", "x", "y"), "f32[2,3]: 1 2 3 4 5 6");
  loops(equation("...j->j...", "x", "y"), "f32[3,2]: 1 4 2 5 3 6");
  loops(equation("...j,...j", "x x", "y"), "f32[2]: 14 77");
  loops(equation("i,i", "floats floats", "y"), "f32[]: 5");
  loops(equation("i,->i", "floats scalar", "y"), "f32[2]: 1 2");
  loops(equation("ij,ij->ij", "x x", "y"), "f32[2,3]: 1 4 9 16 25 36");
  lp_buf diagonal = equation("iji->ji", "cube", "y");
  gives_model(around_with("Unsqueeze x v0 > once; Concat once once > deep axis=0; Transpose deep > cube perm=0,2,1",
                          &diagonal, ""),
              "iji->ji", "f32[3,2]: 1 4 2 5 3 6");
}

LP_TEST(refuses_other_equations) {
  static const struct {
    const char *text, *inputs;
  } other[] = {
      {"i1->i", "x"},     {"i@->i", "x"}, {"i{->i", "x"}, {"i[->i", "x"},    {"ij->ii", "x"},
      {"ij->i,j", "x"},   {"ij-ji", "x"}, {"ij", "x x"},  {"ij->ij", "x x"}, {"ij->ijk", "x"},
      {"ij,jk->ik", "x"}, {"i->i", "x"},  {"ii->i", "x"}, {"ij,", "x x x"},  {"ij,ik->jkl", "x x"},
  };
  for (size_t i = 0; i < LP_COUNT(other); i++) {
    char text[128];
    snprintf(text, sizeof text, "node 'n' (Einsum): error: the equation '%s' is not supported", other[i].text);
    refuses_loop(equation(other[i].text, other[i].inputs, "y"), text);
  }
  refuses_loop(equation("ij->ij", "x", "y z"), "2 outputs, 1 wanted");
  refuses_loop(equation("ij->ij", "nothing", "y"), "input 'nothing' is made by no node, initializer or graph input");
  refuses_model(around("Einsum x > y equation=3"), "equation=3", "attribute 'equation' is of type INT, STRING wanted");
}
