/* Imports mixtures of experts in the forms of exporters: NonZero of an expert's mask gives the tokens that chose it.
 * Each form is evaluated and compared with a sum over tokens and choices in C. */
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "passes/passes.h"
#include "tests/frontend/onnx_writer.h"
#include "tests/suite.h"

extern const lp_pass lp_pass_decompose;

enum { TOKENS = 3, WIDTH = 2, EXPERTS = 4, CHOICES = 2, SYMBOLS = 64 };

ONNX_CASE;

/* Expert 1 is the first choice of token 0, the second of token 2, and none of token 1. */
static const float inputs[TOKENS][WIDTH] = {{1, 2}, {3, -4}, {-5, 6}};
static const float router[TOKENS][EXPERTS] = {{0, 8, 2, 1}, {5, 0, 1, 7}, {4, 3, 1, 0}};
static const float chosen_weight[TOKENS] = {8, 0, 3};
static const bool chosen[TOKENS] = {true, false, true};

/* ---- models ------------------------------------------------------------------------------------------------------ */

typedef struct {
  const char *mask;   /* makes "mask" of "indices" */
  const char *token;  /* makes "token" and "choice" of "places" */
  const char *expert; /* makes "made" of "taken" */
  const char *weight; /* makes "scaled" of "made" */
  const char *sum;    /* makes "y" of "x", "token" and "scaled" */
  bool turned;        /* the mask is [choices, tokens] */
} form;

static const form usual = {"Equal indices s1 > mask",
                           "Gather places s@ > token; Gather places s# > choice",
                           "Neg taken > made",
                           "Identity made > scaled",
                           "Unsqueeze token v1 > at; ScatterND x at scaled > y reduction=add",
                           false};

static void integers(lp_buf *graph, const char *name, const char *dims, int count, const int64_t *values) {
  onnx_initializer(graph, onnx_tensor(name, ONNX_I64, dims, values, (size_t)count * sizeof *values));
}

/* s0 .. s3 and v0 .. v3 are numbers and vectors of one; "n1" and "m1" those of -1. */
static void put_constants(lp_buf *graph) {
  static const float w[] = {2, -1, 0.5f, 3};
  for (int64_t i = -1; i < 4; i++) {
    char scalar[] = {i < 0 ? 'n' : 's', (char)('0' + (i < 0 ? -i : i)), 0},
         vector[] = {i < 0 ? 'm' : 'v', scalar[1], 0};
    integers(graph, scalar, "", 1, &i);
    integers(graph, vector, "1", 1, &i);
  }
  integers(graph, "depth", "1", 1, (const int64_t[]){EXPERTS});
  integers(graph, "off_on", "2", 2, (const int64_t[]){0, 1});
  integers(graph, "on_off", "2", 2, (const int64_t[]){1, 0});
  integers(graph, "two_ones", "2", 2, (const int64_t[]){1, 1});
  integers(graph, "one_two", "2", 2, (const int64_t[]){1, 2});
  integers(graph, "one_m1", "2", 2, (const int64_t[]){1, -1});
  integers(graph, "numbers", "4", 4, (const int64_t[]){0, 1, 2, 3});
  integers(graph, "m1_1_2", "3", 3, (const int64_t[]){-1, 1, 2});
  integers(graph, "far", "1", 1, (const int64_t[]){INT32_MAX});
  onnx_initializer(graph, onnx_tensor("w", ONNX_F32, "2 2", w, sizeof w));
  onnx_initializer(graph, onnx_tensor("b", ONNX_F32, "2", w, 2 * sizeof *w));
}

/* Adds nodes in text; '@' and '#' are the axes of tokens and choices. */
static void put_nodes(lp_buf *graph, const char *text, bool turned) {
  char *copy = lp_strdup(text);
  for (char *c = copy; *c; c++)
    if (*c == '@' || *c == '#') *c = (*c == '@') == turned ? '1' : '0';
  onnx_nodes(graph, copy);
  free(copy);
}

static lp_buf mixture(const form *f) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "n 2");
  onnx_input(&graph, "router", ONNX_F32, "n 4");
  put_constants(&graph);
  onnx_nodes(&graph, "TopK router v2 > values indices");
  onnx_nodes(&graph, f->turned ? "Transpose values > weights" : "Identity values > weights");
  put_nodes(&graph, f->mask, f->turned);
  onnx_nodes(&graph, "NonZero mask > places");
  put_nodes(&graph, f->token, f->turned);
  onnx_nodes(&graph, "Gather x token > taken");
  put_nodes(&graph, f->expert, f->turned);
  put_nodes(&graph, f->weight, f->turned);
  put_nodes(&graph, f->sum, f->turned);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return onnx_model(&graph, 17);
}

/* Replaces operators that are not evaluated themselves. */
static void decompose(lp_module *module) {
  lp_compile_request request = {.generation = false};
  lp_pass_context context = {.diag = diag, .request = &request, .scratch = lp_arena_create()};
  ck_assert_msg(lp_pass_decompose.run(module, &context) == LP_OK, "%s", onnx_message(diag, 0));
  lp_arena_free(context.scratch);
}

/* The first result's numbers, [TOKENS][WIDTH], of the module's two inputs. */
static void evaluate(lp_module *module, float out[TOKENS][WIDTH]) {
  decompose(module);
  const lp_block *main = lp_module_find_func(module, "main")->region;
  lp_arena *arena = lp_arena_create();
  int64_t sym[SYMBOLS];
  for (size_t i = 0; i < SYMBOLS; i++)
    sym[i] = TOKENS;
  float x[TOKENS][WIDTH], r[TOKENS][EXPERTS];
  memcpy(x, inputs, sizeof x);
  memcpy(r, router, sizeof r);
  lp_binding bindings[] = {{main->arg[0], {LP_F32, 2, {TOKENS, WIDTH}, x}},
                           {main->arg_count > 1 ? main->arg[1] : NULL, {LP_F32, 2, {TOKENS, EXPERTS}, r}}};
  lp_array found;
  lp_value *y = onnx_result(module, 0)->out[0];
  ck_assert_msg(lp_value_eval(module, y, bindings, (size_t)main->arg_count, sym, arena, &found, diag) == LP_OK, "%s",
                onnx_message(diag, 0));
  ck_assert_int_eq(found.rank, 2);
  ck_assert_int_eq(found.dim[0] * found.dim[1], TOKENS * WIDTH);
  memcpy(out, found.data, sizeof x);
  lp_arena_free(arena);
}

/* The expert's result for every token. */
static void expert_of_all(const char *expert, float out[TOKENS][WIDTH]) {
  lp_buf graph = {0};
  onnx_input(&graph, "taken", ONNX_F32, "n 2");
  put_constants(&graph);
  onnx_nodes(&graph, expert);
  onnx_output(&graph, "made", ONNX_F32, NULL);
  lp_buf model = onnx_model(&graph, 17);
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(module, "%s: %s", expert, onnx_message(diag, 0));
  evaluate(module, out);
  lp_module_free(module);
}

static void bounds(const form *f, bool weighs, bool replaces) {
  float made[TOKENS][WIDTH], found[TOKENS][WIDTH];
  expert_of_all(f->expert, made);
  lp_buf model = mixture(f);
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(module, "%s; %s; %s: %s", f->mask, f->token, f->expert, onnx_message(diag, 0));
  ck_assert_int_eq(lp_module_verify(module, diag), LP_OK);
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region)
    ck_assert_int_ne(op->kind, LP_ONNX_NonZero);
  evaluate(module, found);
  for (int t = 0; t < TOKENS; t++)
    for (int i = 0; i < WIDTH; i++) {
      float scaled = made[t][i] * (weighs ? chosen_weight[t] : 1);
      float wanted = !chosen[t] ? inputs[t][i] : scaled + (replaces ? 0 : inputs[t][i]);
      ck_assert_msg(found[t][i] == wanted, "%s; %s; %s; %s; %s: token %d has %g, %g wanted", f->mask, f->token,
                    f->expert, f->weight, f->sum, t, (double)found[t][i], (double)wanted);
    }
  lp_module_free(module);
}

/* `reason`: a part of the note that follows. */
static void refuses(const form *f, const char *reason) {
  lp_buf model = mixture(f);
  lp_diag_clear(diag);
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(!module, "imported: %s; %s; %s", f->mask, f->expert, f->sum);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(onnx_message(diag, 0), "(NonZero): error: its result's shape depends on the data of input 0"),
                "%s: found '%s'", f->expert, onnx_message(diag, 0));
  ck_assert_msg(strstr(onnx_message(diag, lp_diag_count(diag) - 1), reason), "%s; %s: found '%s', '%s' wanted", f->mask,
                f->expert, onnx_message(diag, lp_diag_count(diag) - 1), reason);
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

static const struct {
  const char *text;
  bool turned;
} masks[] = {
    {"Equal indices s1 > mask", false},
    {"Equal v1 indices > mask", false},
    {"Equal indices s1 > same; Cast same > mask to=7", false},
    {"Identity indices > own; Equal own s1 > same; Identity same > mask", false},
    {"Transpose indices > own; Equal own s1 > mask", true},
    {"Equal indices s1 > same; Transpose same > mask perm=1,0", true},
    {"OneHot indices depth off_on > hot axis=-1; Transpose hot > last perm=2,1,0; Gather last s1 > mask", true},
    {"OneHot indices depth off_on > hot; Transpose hot > last; Gather last s1 > mask axis=-3", true},
    {"OneHot indices depth off_on > hot; Gather hot s1 > mask axis=2", false},
    {"OneHot indices depth off_on > hot axis=0; Gather hot v1 > one; Squeeze one v0 > mask", false},
    {"OneHot indices depth off_on > hot axis=1; Gather hot s1 > mask axis=1", false},
    {"OneHot indices depth off_on > hot axis=1; Slice hot v1 v2 v1 > one; Squeeze one v1 > mask", false},
    {"Unsqueeze indices m1 > own; Equal own numbers > all; Slice all v1 v2 v2 > one; Squeeze one m1 > mask", false},
    {"Unsqueeze indices v0 > own; Equal own s1 > all; Squeeze all v0 > mask", false},
};

LP_LOOP_TEST(bounds_masks, 0, LP_COUNT(masks)) {
  form f = usual;
  f.mask = masks[_i].text;
  f.turned = masks[_i].turned;
  f.weight = "Transpose places > both; GatherND weights both > one_each; Unsqueeze one_each v1 > column;"
             "Mul made column > scaled";
  bounds(&f, true, false);
}

static const char *const other_masks[] = {
    "OneHot indices depth on_off > hot; Gather hot s1 > mask axis=2", /* the tokens that did not choose it */
    "Cast indices > own to=1; Cast s1 > number to=1; Equal values number > mask",
    "Equal indices one_two > mask", /* a token may have both */
    "Less indices s2 > mask",
    "Gather indices v0 > first axis=1; Equal first s1 > mask",
    "Slice indices v0 v1 v1 > first; Equal first s1 > mask",
    "Equal indices s1 > same; Gather same on_off > mask axis=1",
    "Equal indices indices > mask",
    "Equal indices s1 > same; Not same > mask",
};

LP_LOOP_TEST(refuses_other_masks, 0, LP_COUNT(other_masks)) {
  form f = usual;
  f.mask = other_masks[_i];
  refuses(&f, "its operand is not a vector, and no mask of the tokens that chose an expert");
}

/* ---- tokens and choices ------------------------------------------------------------------------------------------ */

static const char *const tokens[] = {
    "Gather places v@ > row; Squeeze row v0 > token; Gather places v# > other; Reshape other m1 > choice",
    "Split places > row0 row1 axis=0; Squeeze row@ v0 > token; Squeeze row# v0 > choice",
    "Transpose places > both; Split both > tall0 tall1 axis=1; Reshape tall@ m1 > token; Reshape tall# m1 > choice",
    "Transpose places > both perm=1,0; Gather both s@ > token axis=-1; Gather both s# > choice axis=1",
    "Transpose places > both perm=0,1; Gather both s@ > token; Gather both s# > choice",
    "Identity places > both; Gather both s@ > own; Cast own > token to=7; Gather both s# > choice",
    "Gather places s@ > own; Unsqueeze own v1 > tall; Reshape tall m1 > token; Gather places s# > choice",
    "Transpose places > once; Transpose once > both; Gather both s@ > token; Gather both s# > choice",
    "Gather places s@ > token; Gather places s# > other; Cast other > short to=6; Cast short > choice to=7",
};

static const char *const weights[] = {
    "Transpose places > index; GatherND weights index > one_each; Unsqueeze one_each v1 > column;"
    "Mul made column > scaled",
    "Flatten values > flat axis=2; Mul token s2 > base; Add choice base > at_flat; Gather flat at_flat > column;"
    "Mul made column > scaled",
    "Flatten values > flat axis=2; Mul v2 token > base; Add base choice > at_flat; Gather flat at_flat > column;"
    "Mul made column > scaled",
    "Reshape values m1 > flat; Mul token s2 > base; Add choice base > at_flat; Gather flat at_flat > one_each;"
    "Unsqueeze one_each v1 > column; Mul made column > scaled",
};

LP_LOOP_TEST(bounds_tokens, 0, LP_COUNT(tokens)) {
  for (size_t i = 0; i < LP_COUNT(weights); i++)
    for (int turned = 0; turned < 2; turned++) {
      form f = usual;
      f.turned = turned;
      f.mask = turned ? "Transpose indices > own_mask; Equal own_mask s1 > mask" : usual.mask;
      f.token = tokens[_i];
      f.weight = weights[i];
      bounds(&f, true, false);
    }
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static const struct {
  const char *text;
  bool replaces;
} sums[] = {
    {"Unsqueeze token v1 > at; ScatterND x at scaled > y reduction=add", false},
    {"Unsqueeze token v1 > at; ScatterND x at scaled > y", true},
    {"Unsqueeze token v1 > at; ScatterND x at scaled > y reduction=none", true},
    {"Unsqueeze token v1 > column; Shape scaled > size; Expand column size > at;"
     "ScatterElements x at scaled > y axis=0 reduction=add",
     false},
    {"Unsqueeze token v1 > column; Shape scaled > size; Expand column size > at;"
     "ScatterElements x at scaled > y axis=-2 reduction=add",
     false},
    {"Unsqueeze token v1 > column; Shape scaled > size; Expand column size > at;"
     "ScatterElements x at scaled > y axis=0",
     true},
    /* an index that is no longer known to be the token */
    {"Add token s0 > sum; Unsqueeze sum v1 > at; ScatterND x at scaled > y reduction=add", false},
};

LP_LOOP_TEST(bounds_sums, 0, LP_COUNT(sums)) {
  form f = usual;
  f.sum = sums[_i].text;
  bounds(&f, false, sums[_i].replaces);
}

static const struct {
  const char *text, *user;
} other_sums[] = {
    {"Unsqueeze token v1 > at; ScatterND x at scaled > y reduction=mul", "onnx.ScatterND"},
    {"Add token s0 > sum; Unsqueeze sum v1 > at; ScatterND x at scaled > y", "onnx.ScatterND"},
    {"Transpose scaled > flat; Transpose x > all; Unsqueeze token v0 > row; Shape flat > size; Expand row size > at;"
     "ScatterElements all at flat > y axis=0 reduction=add",
     "onnx.ScatterElements"},
    {"ReduceSum scaled v0 > y", "onnx.ReduceSum"},
};

LP_LOOP_TEST(refuses_other_sums, 0, LP_COUNT(other_sums)) {
  form f = usual;
  char reason[64];
  snprintf(reason, sizeof reason, "its rows are used by '%s', and", other_sums[_i].user);
  f.sum = other_sums[_i].text;
  refuses(&f, reason);
}

/* ---- row-wise operators ------------------------------------------------------------------------------------------ */

static const char *const experts[] = {
    "Identity taken > made",
    "Transpose taken > columns; Neg columns > other; Transpose other > made perm=1,0",
    "Unsqueeze taken v1 > deep; Exp deep > other; Squeeze other v1 > made",
    "Unsqueeze taken v0 > deep; Exp deep > other; Squeeze other v0 > made",
    "MS.Gelu taken > made",
    "MS.FastGelu taken b > made",
    "MS.BiasGelu taken b > made",
    "MS.QuickGelu taken > made alpha=1.5",
    "Reshape taken m1_1_2 > deep; Neg deep > other; Squeeze other v1 > made",
    "Flatten taken > other axis=1; Neg other > made",
    "ReduceSum taken v1 > one; Shape taken > size; Expand one size > made",
    "ReduceMean taken > one axes=1, keepdims=0; Unsqueeze one v1 > column; Add taken column > made",
    "ReduceMax taken > one axes=-1,; Sub taken one > made",
    "ReduceMin taken > one axes=1,; Sub taken one > made",
    "Shape taken > size; ConstantOfShape size > zero; Add zero b > made",
    "Gather taken on_off > made axis=1",
    "Gather taken on_off > made axis=-1",
    "Greater taken b > more; Cast more > which to=7; GatherElements taken which > made axis=1",
    "MatMul taken w > made",
    "Unsqueeze taken v2 > deep; MatMul w deep > other; Squeeze other v2 > made",
    "Gemm taken w b > made",
    "Gemm taken w b > made transB=1 alpha=2.0",
    "MS.FusedMatMul taken w > made alpha=2.0",
    "Slice taken v0 v1 v1 > first; Slice taken v1 v2 v1 v1 > second; Concat second first > made axis=1",
    "Split taken > first second axis=1; Concat second first > made axis=-1",
    "Softmax taken > made",
    "Softmax taken > made axis=1",
    "LogSoftmax taken > made axis=-1",
    "LayerNormalization taken b > made",
    "LayerNormalization taken b > made axis=1",
    "SimplifiedLayerNormalization taken b > made epsilon=0.01",
    "MS.SimplifiedLayerNormalization taken b > made axis=-1",
    "Greater taken b > more; Where more taken b > made",
    "Add taken b > other; Mul other taken > made",
    "Cast taken > half to=11; Cast half > made to=1",
};

LP_LOOP_TEST(bounds_row_wise_experts, 0, LP_COUNT(experts)) {
  form f = usual;
  f.expert = experts[_i];
  bounds(&f, false, false);
}

static const struct {
  const char *text, *user;
} other_experts[] = {
    {"Softmax taken > made axis=0", "onnx.Softmax"},
    {"LogSoftmax taken > made axis=-2", "onnx.LogSoftmax"},
    {"CumSum taken s0 > made", "onnx.CumSum"},
    {"Transpose taken > columns; MatMul columns taken > square; MatMul taken square > made", "onnx.MatMul"},
    {"Transpose taken > columns; MatMul taken columns > square; MatMul square taken > made", "onnx.MatMul"},
    {"Transpose taken > columns; Gemm columns w > made transA=1", "onnx.Gemm"},
    {"Transpose taken > columns; MS.FusedMatMul columns w > made transA=1", "com.microsoft.FusedMatMul"},
    {"Slice taken v1 far v0 > rest; ReduceMax rest > most axes=0,; Sub taken most > made", "onnx.Slice"},
    {"Slice taken m1 m1 v1 m1 > none; Concat none taken > made axis=1", "onnx.Slice"},
    {"Concat taken taken > two axis=0; ReduceMax two > most axes=0,; Sub taken most > made", "onnx.Concat"},
    {"Gather taken v0 > first; Sub taken first > made", "onnx.Gather"},
    {"ReduceMax taken > most axes=0,; Sub taken most > made", "onnx.ReduceMax"},
    {"ArgMax taken > best axis=0; GatherElements taken best > most axis=0; Mul taken most > made", "onnx.ArgMax"},
    {"LayerNormalization taken b > made axis=0", "onnx.LayerNormalization"},
    {"Reshape taken one_m1 > flat; Neg flat > other; Shape taken > size; Reshape other size > made", "onnx.Reshape"},
    {"Transpose taken > columns; Softmax columns > soft; Transpose soft > made", "onnx.Softmax"},
    {"Transpose taken > columns; LayerNormalization columns s1 > soft; Transpose soft > made", "onnx."},
};

LP_LOOP_TEST(refuses_other_experts, 0, LP_COUNT(other_experts)) {
  form f = usual;
  char reason[64];
  snprintf(reason, sizeof reason, "its rows are used by '%s", other_experts[_i].user);
  f.expert = other_experts[_i].text;
  refuses(&f, reason);
}

/* The number of rows would have to be that of another tensor. */
LP_TEST(refuses_rows_of_certain_number) {
  form f = usual;
  f.sum = "Unsqueeze token v1 > at; ScatterND scaled at x > y reduction=add";
  lp_buf model = mixture(&f);
  ck_assert_ptr_null(onnx_import(&model, diag));
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_ptr_nonnull(strstr(onnx_message(diag, 0), "model.onnx: error: the number of rows of a NonZero, which "
                                                      "depends on data, would have to equal another size"));
}

/* No operator reads the indices, so the NonZero is removed. */
LP_TEST(drops_unused_places) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "n 2");
  onnx_nodes(&graph, "NonZero x > places; Neg x > y");
  onnx_output(&graph, "y", ONNX_F32, NULL);
  lp_buf model = onnx_model(&graph, 17);
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(module, "%s", onnx_message(diag, lp_diag_count(diag) - 1));
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region)
    ck_assert_int_ne(op->kind, LP_ONNX_NonZero);
  lp_module_free(module);
}
