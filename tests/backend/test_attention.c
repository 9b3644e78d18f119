/* op.attention, op.kv_append, op.rotary: head sizes, grouped queries, layouts, masks, windows, past tokens. */
#include "harness.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>

LP_CASE(.timeout = 600);

typedef struct {
  int64_t heads, kv_heads, d;
  const char *layout, *mask; /* dims of the mask, or NULL */
  int64_t window;
  double softcap;
  lp_dtype mask_dtype;
  bool causal, cache;
  lp_dtype cache_dtype;
} attention_case;

static const attention_case attentions[] = {
    {3, 3, 32, "bshd", NULL, 0, 0, LP_F32, true, true, LP_F32},
    {9, 3, 64, "bshd", NULL, 0, 0, LP_F32, true, true, LP_F32},
    {4, 1, 96, "bhsd", NULL, 0, 0, LP_F32, true, true, LP_F32},
    {2, 2, 128, "bshd", NULL, 3, 0, LP_F32, true, true, LP_F32},
    {8, 2, 80, "bhsd", NULL, 0, 20, LP_F32, true, true, LP_F32},
    {2, 1, 256, "bshd", NULL, 0, 0, LP_F32, true, true, LP_F32},
    {4, 2, 24, "bshd", "b,1,s,p + s", 0, 0, LP_BOOL, false, true, LP_F32},
    {4, 4, 40, "bhsd", "s,p + s", 0, 0, LP_F32, false, true, LP_F32},
    {6, 2, 64, "bshd", "1,6,1,p + s", 0, 0, LP_F32, true, true, LP_F32},
    {4, 2, 64, "bhsd", NULL, 0, 0, LP_F32, false, false, LP_F32},
    {4, 4, 33, "bshd", "b,1,1,11", 0, 0, LP_BOOL, false, false, LP_F32},
};
/* Keys and values of 16 bits. Where there are tensor cores, they compute these, with probabilities of 16 bits. */
static const attention_case halves[] = {
    {8, 2, 64, "bshd", NULL, 0, 0, LP_F32, true, true, LP_F16},
    {4, 2, 128, "bhsd", NULL, 40, 0, LP_F32, true, true, LP_BF16},
    {3, 1, 80, "bshd", NULL, 0, 20, LP_F32, true, true, LP_F16},
    {2, 2, 32, "bhsd", NULL, 3, 0, LP_F32, true, true, LP_BF16},
    {2, 1, 256, "bshd", NULL, 0, 0, LP_F32, true, true, LP_F16},
    {2, 2, 192, "bhsd", NULL, 90, 30, LP_F32, true, true, LP_BF16},
    {4, 4, 24, "bshd", "b,1,s,p + s", 0, 0, LP_BOOL, false, true, LP_F16},
    {6, 2, 96, "bhsd", "1,6,1,p + s", 0, 0, LP_F32, true, true, LP_F16},
    {2, 1, 33, "bshd", NULL, 0, 0, LP_F32, true, true, LP_F16},
};

/* Keys and values in codes. */
static const attention_case coded[] = {
    {8, 2, 64, "bshd", NULL, 0, 0, LP_F32, true, true, LP_I8},
    {4, 2, 128, "bhsd", NULL, 40, 0, LP_F32, true, true, LP_U8},
    {3, 1, 96, "bshd", NULL, 0, 20, LP_F32, true, true, LP_I8},
    {2, 2, 32, "bhsd", NULL, 3, 0, LP_F32, true, true, LP_U8},
    {9, 3, 64, "bshd", NULL, 0, 0, LP_F32, true, true, LP_U8},
    {2, 1, 256, "bshd", NULL, 0, 0, LP_F32, true, true, LP_I8},
    {6, 2, 96, "bhsd", "1,6,1,p + s", 0, 0, LP_F32, true, true, LP_I8},
};

/* Adds the attention of q to k and v, which come from caches, or have 11 tokens of their own. */
static lp_value *add_attention(harness *h, const attention_case *c, lp_value *const in[4]) {
  lp_value *operands[4] = {in[0], in[1], in[2], in[3]};
  for (int i = 1; i <= 2 && c->cache; i++)
    operands[i] = harness_append_as(h, c->cache_dtype, in[i], c->layout, c->kv_heads, c->d);
  lp_value *y = harness_op1(h, LP_OP_ATTENTION, 4, operands, in[0]->type);
  harness_i64(h, harness_i64(h, harness_i64(h, y, "heads", c->heads), "kv_heads", c->kv_heads), "head_dim", c->d);
  harness_f64(h, harness_str(h, y, "layout", c->layout), "scale", 1 / sqrt((double)c->d));
  if (c->causal) harness_bool(h, y, "causal", true);
  if (c->window) harness_i64(h, y, "window", c->window);
  if (c->softcap > 0) harness_f64(h, y, "softcap", c->softcap);
  return y;
}

static void head_dims(char out[64], const attention_case *c, int64_t heads, bool own) {
  if (own)
    snprintf(out, 64, "b,%d,11,%d", (int)heads, (int)c->d);
  else if (lp_streq(c->layout, "bshd"))
    snprintf(out, 64, "b,s,%d,%d", (int)heads, (int)c->d);
  else
    snprintf(out, 64, "b,%d,s,%d", (int)heads, (int)c->d);
}

static const int64_t sizes[][3] = {{1, 1, 0},   {1, 1, 37}, {2, 1, 5},    {1, 3, 4},    {2, 9, 0},   {1, 70, 3},
                                   {1, 129, 0}, {3, 5, 80}, {1, 1, 1023}, {1, 3, 1100}, {1, 6, 1000}};

/* Of the sizes: models of ONNX are the same for all, so that the longest add nothing. */
static size_t size_count(void) {
  return getenv("LP_TEST_ONNX") ? 8 : LP_COUNT(sizes);
}

static void check_attentions(const attention_case *cases, size_t count, const int64_t size[3]) {
  harness *h = harness_create(size[0], size[1], size[2]);
  lp_value *in[LP_COUNT(attentions)][4] = {{NULL}};
  if (cases == halves) h->step = 1.0 / 32, h->atol = 4e-3; /* the operands fit, weights are rounded */
  for (size_t i = 0; i < count; i++) {
    const attention_case *c = &cases[i];
    char dims[64];
    for (int k = 0; k < 3; k++) {
      head_dims(dims, c, k ? c->kv_heads : c->heads, k && !c->cache);
      in[i][k] = harness_input(h, LP_F32, dims, -2, 2);
    }
    if (c->mask) in[i][3] = harness_input(h, c->mask_dtype, c->mask, -2, 0);
  }
  for (size_t i = 0; i < count; i++)
    harness_keep(h, add_attention(h, &cases[i], in[i]));
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}

LP_TEST(attention) {
  for (size_t i = 0; i < size_count(); i++)
    check_attentions(attentions, LP_COUNT(attentions), sizes[i]);
}

LP_TEST(attention_of_halves) {
  for (size_t i = 0; i < size_count(); i++)
    check_attentions(halves, LP_COUNT(halves), sizes[i]);
}

LP_TEST(attention_of_codes) {
  for (size_t i = 0; i < size_count(); i++)
    check_attentions(coded, LP_COUNT(coded), sizes[i]);
}

static const struct {
  const char *x, *table, *layout;
  int64_t rotary_dim;
  bool interleaved;
} rotaries[] = {
    {"b,s,3,64", "1,s,32", "bshd", 64, false}, {"b,3,s,64", "1,s,32", "bhsd", 64, false},
    {"b,s,2,96", "b,s,24", "bshd", 48, false}, {"b,s,4,32", "1,s,16", "bshd", 32, true},
    {"b,4,s,40", "b,s,10", "bhsd", 20, true},  {"b,s,1,128", "1,s,64", "bshd", 128, false},
};

LP_TEST(rotary) {
  harness *h = harness_create(2, 5, 0);
  lp_value *in[LP_COUNT(rotaries)][3];
  for (size_t i = 0; i < LP_COUNT(rotaries); i++) {
    in[i][0] = harness_input(h, LP_F32, rotaries[i].x, -2, 2);
    in[i][1] = harness_input(h, LP_F32, rotaries[i].table, -1, 1);
    in[i][2] = harness_input(h, LP_F32, rotaries[i].table, -1, 1);
  }
  for (size_t i = 0; i < LP_COUNT(rotaries); i++) {
    lp_value *y = harness_op1(h, LP_OP_ROTARY, 3, in[i], in[i][0]->type);
    harness_str(h, harness_i64(h, y, "rotary_dim", rotaries[i].rotary_dim), "layout", rotaries[i].layout);
    if (rotaries[i].interleaved) harness_bool(h, y, "interleaved", true);
    harness_keep(h, y);
  }
  harness_finish(h);
  harness_check_all(h);
  harness_free(h);
}
