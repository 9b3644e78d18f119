/* Imports whole mixtures of experts in the forms of exporters, a NonZero for each expert, and compares their results
 * with a sum over each token's choices in C. Those of known forms have products of chosen experts only. */
#include <string.h>

#include "frontend/frontend.h"
#include "tests/frontend/onnx_writer.h"
#include "tests/suite.h"

enum { TOKENS = 4, WIDTH = 2, EXPERTS = 4, CHOICES = 2, SYMBOLS = 64 };

ONNX_CASE;

/* The last token's scores are equal: it chooses experts 0 and 1. */
static const float inputs[TOKENS][WIDTH] = {{1, 2}, {3, -4}, {-5, 6}, {2, 7}};
static const float router[TOKENS][EXPERTS] = {{0, 8, 2, 1}, {5, 0, 1, 7}, {4, 3, 1, 0}, {6, 6, 6, 6}};
/* The two matrices of each expert, and the bias between. */
static const float first[EXPERTS][WIDTH][WIDTH] = {
    {{1, 2}, {-1, 1}}, {{3, 0}, {1, -2}}, {{0, 1}, {2, 2}}, {{-2, 1}, {1, 4}}};
static const float second[EXPERTS][WIDTH][WIDTH] = {
    {{2, 1}, {0, 3}}, {{1, -1}, {2, 5}}, {{4, 1}, {1, 0}}, {{-3, 2}, {2, 1}}};
static const float bias[EXPERTS][WIDTH] = {{1, -2}, {3, 4}, {-5, 6}, {7, 8}};

/* ---- models: '~' is the expert's number, '+' the next, '@' and '#' the axes of tokens and choices ---------------- */

typedef struct {
  const char *mask;   /* makes "mask~" of "indices" */
  const char *token;  /* makes "token~" and "choice~" of "places~" */
  const char *taken;  /* makes "taken~" of "x" and "token~" */
  const char *expert; /* makes "made~" of "taken~", "first~", "bias~" and "second~" */
  const char *weight; /* makes "scaled~" of "made~" and "values" */
  const char *sum;    /* makes "y+" of "y~", "token~" and "scaled~" */
  const char *odd;    /* `expert` of expert 2, or NULL */
  int count;          /* of experts in the file */
  bool turned;        /* the mask is [choices, tokens] */
} form;

static const form usual = {
    .mask = "Equal indices s~ > mask~",
    .token = "Gather places~ s@ > token~; Gather places~ s# > choice~",
    .taken = "Gather x token~ > taken~",
    .expert = "MatMul taken~ first~ > up~; Add up~ bias~ > sum~; Relu sum~ > on~; MatMul on~ second~ > made~",
    .weight = "Flatten values > flat~ axis=2; Mul token~ s2 > base~; Add choice~ base~ > flat_at~;"
              "Gather flat~ flat_at~ > column~; Mul made~ column~ > scaled~",
    .sum = "Unsqueeze token~ v1 > at~; ScatterND y~ at~ scaled~ > y+ reduction=add",
    .count = EXPERTS,
};

static void integers(lp_buf *graph, const char *name, const char *dims, int count, const int64_t *values) {
  onnx_initializer(graph, onnx_tensor(name, ONNX_I64, dims, values, (size_t)count * sizeof *values));
}

static void put_constants(lp_buf *graph) {
  for (int64_t i = 0; i <= EXPERTS; i++) {
    char name[] = {'s', (char)('0' + i), 0};
    integers(graph, name, "", 1, &i);
    name[0] = 'v';
    integers(graph, name, "1", 1, &i);
  }
  integers(graph, "e0", "1", 1, (const int64_t[]){1});
  integers(graph, "e1", "1", 1, (const int64_t[]){2});
  integers(graph, "m1", "1", 1, (const int64_t[]){-1});
  integers(graph, "m1_2", "2", 2, (const int64_t[]){-1, WIDTH});
  integers(graph, "two_ones", "2", 2, (const int64_t[]){1, 1});
  integers(graph, "depth", "1", 1, (const int64_t[]){EXPERTS});
  integers(graph, "off_on", "2", 2, (const int64_t[]){0, 1});
  integers(graph, "numbers", "4", 4, (const int64_t[]){0, 1, 2, 3});
  for (int e = 0; e < EXPERTS; e++) {
    char name[] = {'f', 'i', 'r', 's', 't', (char)('0' + e), 0}, after[] = "second0", between[] = "bias0";
    after[6] = between[4] = name[5];
    onnx_initializer(graph, onnx_tensor(name, ONNX_F32, "2 2", first[e], sizeof first[e]));
    onnx_initializer(graph, onnx_tensor(after, ONNX_F32, "2 2", second[e], sizeof second[e]));
    onnx_initializer(graph, onnx_tensor(between, ONNX_F32, "2", bias[e], sizeof bias[e]));
  }
}

/* The matrices as codes, a row for each output: the first in 4 bits around 8, the second in 8 bits around zero
 * points. */
static void put_codes(lp_buf *graph) {
  static const float scale[WIDTH] = {1, 1};
  static const uint8_t zero[WIDTH] = {100, 30};
  onnx_initializer(graph, onnx_tensor("scale", ONNX_F32, "2", scale, sizeof scale));
  onnx_initializer(graph, onnx_tensor("zero", ONNX_U8, "2", zero, sizeof zero));
  onnx_initializer(graph, onnx_tensor("eights", ONNX_U8, "2", (const uint8_t[]){8, 8}, 2));
  for (int e = 0; e < EXPERTS; e++) {
    uint8_t four[WIDTH][8] = {{0}}, eight[WIDTH][16] = {{0}}; /* rows of one block */
    char name[] = {'f', 'o', 'u', 'r', (char)('0' + e), 0}, after[] = {'e', 'i', 'g', 'h', 't', name[4], 0};
    for (int n = 0; n < WIDTH; n++) {
      four[n][0] = (uint8_t)((int)first[e][0][n] + 8 + 16 * ((int)first[e][1][n] + 8));
      for (int k = 0; k < WIDTH; k++)
        eight[n][k] = (uint8_t)((int)second[e][k][n] + zero[n]);
    }
    onnx_initializer(graph, onnx_tensor(name, ONNX_U8, "2 1 8", four, sizeof four));
    onnx_initializer(graph, onnx_tensor(after, ONNX_U8, "2 1 16", eight, sizeof eight));
  }
}

static void put_nodes(lp_buf *graph, const char *text, int expert, bool turned) {
  lp_buf nodes = {0};
  for (const char *c = text; *c; c++)
    if (*c == '~' || *c == '+')
      lp_buf_printf(&nodes, "%d", expert + (*c == '+'));
    else if (*c == '@' || *c == '#')
      lp_buf_printf(&nodes, "%d", (*c == '@') == turned);
    else
      lp_buf_printf(&nodes, "%c", *c);
  onnx_nodes(graph, nodes.data);
  lp_buf_free(&nodes);
}

static lp_buf mixture(const form *f, const char *end) {
  lp_buf graph = {0};
  onnx_input(&graph, "x", ONNX_F32, "n 2");
  onnx_input(&graph, "router", ONNX_F32, "n 4");
  put_constants(&graph);
  put_codes(&graph);
  onnx_nodes(&graph, "TopK router v2 > values indices; Shape x > size; ConstantOfShape size > y0");
  for (int e = 0; e < f->count; e++) {
    put_nodes(&graph, f->mask, e, f->turned);
    put_nodes(&graph, "NonZero mask~ > places~", e, f->turned);
    put_nodes(&graph, f->token, e, f->turned);
    put_nodes(&graph, f->taken, e, f->turned);
    put_nodes(&graph, f->odd && e == 2 ? f->odd : f->expert, e, f->turned);
    put_nodes(&graph, f->weight, e, f->turned);
    put_nodes(&graph, f->sum, e, f->turned);
  }
  put_nodes(&graph, end, f->count, f->turned);
  onnx_output(&graph, "y", ONNX_F32, NULL);
  return onnx_model(&graph, 17);
}

/* ---- the oracle -------------------------------------------------------------------------------------------------- */

static void add_expert(int e, const float *x, float share, float *y) {
  float inner[WIDTH];
  for (int j = 0; j < WIDTH; j++) {
    inner[j] = x[0] * first[e][0][j] + x[1] * first[e][1][j] + bias[e][j];
    if (inner[j] < 0) inner[j] = 0;
  }
  for (int j = 0; j < WIDTH; j++)
    y[j] += share * (inner[0] * second[e][0][j] + inner[1] * second[e][1][j]);
}

static void expected(int count, float y[TOKENS][WIDTH]) {
  memset(y, 0, sizeof(float[TOKENS][WIDTH]));
  for (int t = 0; t < TOKENS; t++) {
    bool taken[EXPERTS] = {false};
    for (int choice = 0; choice < CHOICES; choice++) {
      int best = -1;
      for (int e = 0; e < EXPERTS; e++)
        if (!taken[e] && (best < 0 || router[t][e] > router[t][best])) best = e;
      taken[best] = true;
      if (best < count) add_expert(best, inputs[t], router[t][best], y[t]);
    }
  }
}

static int count_of(const lp_module *module, lp_kind kind) {
  int count = 0;
  LP_FOR_OPS(op, lp_module_find_func(module, "main")->region)
    count += op->kind == kind;
  return count;
}

static void check_result(lp_module *module, const char *text, int count) {
  const lp_block *main = lp_module_find_func(module, "main")->region;
  lp_arena *arena = lp_arena_create();
  int64_t sym[SYMBOLS];
  for (size_t i = 0; i < SYMBOLS; i++)
    sym[i] = TOKENS;
  float x[TOKENS][WIDTH], r[TOKENS][EXPERTS], wanted[TOKENS][WIDTH];
  memcpy(x, inputs, sizeof x);
  memcpy(r, router, sizeof r);
  expected(count, wanted);
  lp_binding bindings[] = {{main->arg[0], {LP_F32, 2, {TOKENS, WIDTH}, x}},
                           {main->arg[1], {LP_F32, 2, {TOKENS, EXPERTS}, r}}};
  lp_array found;
  ck_assert_msg(lp_value_eval(module, onnx_result(module, 0)->out[0], bindings, 2, sym, arena, &found, diag) == LP_OK,
                "%s: %s", text, onnx_message(diag, 0));
  ck_assert_int_eq(found.dim[0] * found.dim[1], TOKENS * WIDTH);
  for (int t = 0; t < TOKENS; t++)
    for (int i = 0; i < WIDTH; i++) {
      const float value = ((const float *)found.data)[t * WIDTH + i];
      ck_assert_msg(value == wanted[t][i], "%s: token %d has %g, %g wanted", text, t, (double)value,
                    (double)wanted[t][i]);
    }
  lp_arena_free(arena);
}

/* `products` of chosen experts: 2, or 0 where each expert is computed for each token. */
static void imports(const form *f, const char *text, const char *end, int products) {
  lp_buf model = mixture(f, end);
  lp_diag_clear(diag);
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(module, "%s: %s", text, onnx_message(diag, 0));
  ck_assert_int_eq(lp_module_verify(module, diag), LP_OK);
  ck_assert_int_eq(count_of(module, LP_ONNX_NonZero), 0);
  ck_assert_msg(count_of(module, LP_ONNX_Experts) == products, "%s: %d products of chosen experts, %d wanted", text,
                count_of(module, LP_ONNX_Experts), products);
  ck_assert_msg((lp_diag_count(diag) > 0) == (products == 0), "%s: %zu notes", text, lp_diag_count(diag));
  if (products == 0)
    ck_assert_ptr_nonnull(strstr(onnx_message(diag, 0), "note: each expert is computed for each token"));
  check_result(module, text, f->count);
  lp_module_free(module);
}

static void gathers(const form *f, const char *text) {
  imports(f, text, "Identity y~ > y", 2);
}

/* ---- forms ------------------------------------------------------------------------------------------------------- */

static const struct {
  const char *text;
  bool turned;
} masks[] = {
    {"Equal indices s~ > mask~", false},
    {"Transpose indices > own~; Equal own~ s~ > same~; Cast same~ > mask~ to=7", true},
    {"OneHot indices depth off_on > hot~ axis=-1; Transpose hot~ > last~ perm=2,1,0; Gather last~ s~ > mask~", true},
    {"OneHot indices depth off_on > hot~; Transpose hot~ > last~ perm=2,0,1; Gather last~ s~ > mask~", false},
    {"OneHot indices depth off_on > hot~ axis=1; Slice hot~ v~ v+ v1 > one~; Squeeze one~ v1 > mask~", false},
    {"OneHot indices depth off_on > hot~ axis=0; Gather hot~ v~ > one~; Squeeze one~ v0 > mask~", false},
    {"Unsqueeze indices m1 > own~; Equal own~ numbers > all~; Transpose all~ > last~ perm=2,1,0;"
     "Gather last~ s~ > mask~",
     true},
    {"Unsqueeze indices v0 > own~; Equal own~ s~ > all~; Squeeze all~ v0 > mask~", false},
};

LP_LOOP_TEST(gathers_masks, 0, LP_COUNT(masks)) {
  form f = usual;
  f.mask = masks[_i].text;
  f.turned = masks[_i].turned;
  gathers(&f, f.mask);
}

static const char *const tokens[] = {
    "Transpose places~ > both~; Split both~ two_ones > tall0~ tall1~ axis=1; Squeeze tall@~ v1 > token~;"
    "Squeeze tall#~ v1 > choice~",
    "Transpose places~ > both~ perm=1,0; Gather both~ s@ > token~ axis=-1; Gather both~ s# > choice~ axis=1",
    "Transpose places~ > both~; Slice both~ v@ e@ v1 > col_t~; Slice both~ v# e# v1 > col_c~; Squeeze col_t~ v1 > "
    "token~;"
    "Squeeze col_c~ v1 > choice~",
};

static const char *const taken[] = {
    "Gather x token~ > taken~",
    "Unsqueeze x v0 > wide~; Gather wide~ token~ > rows~ axis=1; Reshape rows~ m1_2 > taken~",
    "Unsqueeze x v1 > wide~; Unsqueeze token~ v1 > col~; GatherND wide~ col~ > rows~; Squeeze rows~ v1 > taken~",
};

LP_LOOP_TEST(gathers_rows, 0, LP_COUNT(tokens)) {
  for (size_t i = 0; i < LP_COUNT(taken); i++)
    for (int turned = 0; turned < 2; turned++) {
      form f = usual;
      f.turned = turned;
      if (turned) f.mask = masks[1].text;
      f.token = tokens[_i];
      f.taken = taken[i];
      gathers(&f, f.token);
    }
}

static const char *const experts[] = {
    "Transpose first~ > turned~; Gemm taken~ turned~ bias~ > sum~ transB=1; Relu sum~ > on~; Gemm on~ second~ > made~",
    "Identity first~ > own~; MatMul taken~ own~ > up~; Unsqueeze up~ v0 > deep~; Squeeze deep~ v0 > flat_up~;"
    "Add bias~ flat_up~ > sum~; Relu sum~ > on~; MatMul on~ second~ > made~",
    "MatMul taken~ first~ > up~; Add up~ bias~ > sum~; Split sum~ two_ones > left~ right~ axis=-1; Relu left~ > l~;"
    "Slice sum~ v1 v2 m1 > r~; Relu r~ > rr~; Max right~ rr~ > rm~; Mul rm~ l~ > cross~; Sub cross~ cross~ > none~;"
    "Relu sum~ > on~; Add on~ none~ > on_too~; MatMul on_too~ second~ > made~",
};

LP_LOOP_TEST(gathers_experts, 0, LP_COUNT(experts)) {
  form f = usual;
  f.expert = experts[_i];
  gathers(&f, f.expert);
}

static const char *const weights[] = {
    "Unsqueeze values v2 > deep~; Unsqueeze token~ v1 > t~; Unsqueeze choice~ v1 > c~; Concat t~ c~ > pair~ axis=-1;"
    "GatherND deep~ pair~ > column~; Mul made~ column~ > scaled~",
    "Gather values token~ > shares~; Unsqueeze choice~ v1 > c~; GatherElements shares~ c~ > column~ axis=1;"
    "Mul made~ column~ > scaled~",
    "Reshape values m1 > flat~; Mul s2 token~ > base~; Add base~ choice~ > flat_at~; Gather flat~ flat_at~ > each~;"
    "Unsqueeze each~ v1 > column~; Mul column~ made~ > scaled~",
};

LP_LOOP_TEST(gathers_weights, 0, LP_COUNT(weights)) {
  form f = usual;
  f.weight = weights[_i];
  gathers(&f, f.weight);
}

LP_TEST(gathers_pairs_of_coordinates) {
  form f = usual;
  f.weight = "Transpose places~ > pair~; GatherND values pair~ > each~; Unsqueeze each~ v1 > column~;"
             "Mul made~ column~ > scaled~";
  gathers(&f, f.weight);
}

static const char *const sums[] = {
    "Unsqueeze token~ v1 > col~; Shape scaled~ > rows~; Expand col~ rows~ > at~;"
    "ScatterElements y~ at~ scaled~ > y+ axis=0 reduction=add",
    "Gather y~ token~ > old~; Add old~ scaled~ > new~; Unsqueeze token~ v1 > at~; ScatterND y~ at~ new~ > y+",
    "Shape y~ > all~; ConstantOfShape all~ > zero~; Unsqueeze token~ v1 > col~; Shape scaled~ > rows~;"
    "Expand col~ rows~ > at~; ScatterElements zero~ at~ scaled~ > own~ axis=0; Add y~ own~ > y+",
};

LP_LOOP_TEST(gathers_sums, 0, LP_COUNT(sums)) {
  form f = usual;
  f.sum = sums[_i];
  gathers(&f, f.sum);
}

/* What keeps its form is computed in full. */
LP_TEST(keeps_other_mixtures) {
  form f = usual;
  f.odd = "MatMul taken~ first~ > up~; Add bias~ up~ > sum~; Relu sum~ > on~; MatMul on~ second~ > made~";
  imports(&f, "another order of operands", "Identity y~ > y", 0);
  f.odd = NULL;
  f.count = EXPERTS - 1;
  imports(&f, "an expert is missing", "Identity y~ > y", 0);
  f.count = EXPERTS;
  f.expert = "MatMul taken~ first~ > up~; Add up~ bias~ > sum~; Relu sum~ > on~; MatMul on~ second~ > made~;"
             "ReduceSum on~ v1 > unused~";
  gathers(&f, "an operator that nothing reads");
}

/* A sum of some experts that is read elsewhere keeps these experts. */
LP_TEST(keeps_sums_that_are_read) {
  lp_buf model = mixture(&usual, "Sub y2 y2 > none; Add y~ none > y");
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(module, "%s", onnx_message(diag, 0));
  check_result(module, "a sum of two experts is read", EXPERTS);
  lp_module_free(module);
}

/* torch.onnx writes the repeats of repeat_interleave as OneHot with the values 1 and the number of choices. */
LP_TEST(knows_repeats_by_one_hot) {
  static const struct {
    const char *index, *type;
  } cases[] = {{"v0", "f32[3*n,2]"}, {"v1", "f32[n,6]"}, {"m1", "f32[n,6]"}, {"v2", "f32[n,2]"}};
  for (size_t i = 0; i < LP_COUNT(cases); i++) {
    lp_buf graph = {0}, nodes = {0};
    onnx_input(&graph, "x", ONNX_F32, "n 2");
    put_constants(&graph);
    integers(&graph, "one_three", "2", 2, (const int64_t[]){1, 3});
    lp_buf_printf(&nodes, "OneHot %s s2 one_three > hot; Reshape hot m1 > repeats; Tile x repeats > y", cases[i].index);
    onnx_nodes(&graph, nodes.data);
    lp_buf_free(&nodes);
    onnx_output(&graph, "y", ONNX_F32, NULL);
    lp_buf model = onnx_model(&graph, 17);
    lp_module *module = onnx_import(&model, diag);
    ck_assert_msg(module, "%s: %s", cases[i].index, onnx_message(diag, 0));
    ck_assert_str_eq(onnx_type_text(module, onnx_result(module, 0)->out[0]), cases[i].type);
    lp_module_free(module);
  }
}

/* Weights in codes stay so, one stack of all experts; zero points that end within a byte are not stacked. */
LP_TEST(gathers_packed_products) {
  form f = usual;
  f.expert = "MS.MatMulNBits taken~ four~ scale - - bias~ > sum~ K=2 N=2 bits=4 block_size=16; Relu sum~ > on~;"
             "MS.MatMulNBits on~ eight~ scale zero > made~ K=2 N=2 bits=8 block_size=16";
  gathers(&f, f.expert);
  f.expert = "MS.MatMulNBits taken~ four~ scale eights - bias~ > sum~ K=2 N=2 bits=4 block_size=16; Relu sum~ > on~;"
             "MS.MatMulNBits on~ eight~ scale zero > made~ K=2 N=2 bits=8 block_size=16";
  lp_buf model = mixture(&f, "Identity y~ > y");
  lp_module *module = onnx_import(&model, diag);
  ck_assert_msg(module, "%s", onnx_message(diag, 0));
  ck_assert_int_eq(count_of(module, LP_ONNX_MsMatMulNBits), 2 * EXPERTS);
  ck_assert_int_eq(count_of(module, LP_ONNX_Experts), 0);
  lp_module_free(module);
}
