/* Builds the operator graph of a Llama of any size through the C API. It needs no file, so tests of planning and
 * profiles of machines use it. */
#include "passes/decoder.h"
#include "base/poly.h"
#include "passes/lower/kv_cache.h"

#include <math.h>

typedef struct {
  const lp_decoder_shape *shape;
  lp_dtype activations, caches;
  bool as_imported; /* the graph of an imported model: positions before heads, angles computed */
  lp_module *module;
  lp_block *block;
  lp_value *table, *cosine, *sine; /* table: of the embedding */
  int64_t offset;                  /* of the next weight */
  int64_t layer, states;
  const char *kind;
} builder;

static const lp_poly *number(builder *b, int64_t value) {
  return lp_dim_const(b->module, value);
}
static const lp_poly *symbol(builder *b, const char *name) {
  return lp_dim_symbol(b->module, name);
}

static lp_type type4(builder *b, const lp_poly *d0, const lp_poly *d1, const lp_poly *d2, const lp_poly *d3) {
  const lp_poly *dims[] = {d0, d1, d2, d3};
  return lp_type_make(b->module, b->activations, 4, dims);
}

static lp_type rows(builder *b, int64_t width) {
  const lp_poly *dims[] = {symbol(b, "b"), symbol(b, "s"), number(b, width)};
  return lp_type_make(b->module, b->activations, 3, dims);
}

static lp_op *add(builder *b, lp_kind kind, const char *name, int32_t count, lp_value *const *in, lp_type type) {
  lp_op *op = lp_op_create(b->module, kind, LP_LOC_NONE, count, in, 1, &type);
  const char *full = b->layer < 0 ? name : lp_arena_format(b->module->arena, "layer.%d.%s", (int)b->layer, name);
  if (!lp_op_has(op, LP_CONSTANT)) {
    lp_op_set_str(b->module, op, "name", full);
    lp_op_set_i64(b->module, op, "layer", b->layer);
    lp_op_set_str(b->module, op, "layer_kind", b->kind);
  }
  lp_op_append(b->block, op);
  return op;
}

static lp_value *weight_of(builder *b, lp_dtype dtype, int32_t rank, int64_t d0, int64_t d1) {
  int64_t dims[] = {d0, d1}, length = (rank == 2 ? d0 * d1 : d0) * lp_dtype_bits(dtype) / 8;
  lp_type type = lp_type_static(b->module, dtype, rank, dims);
  lp_op *op = lp_weight_create(b->module, LP_LOC_NONE, type, "weights.bin", b->offset, length);
  b->offset += length;
  lp_op_append(b->block, op);
  return op->out[0];
}

static lp_value *weight(builder *b, int32_t rank, int64_t d0, int64_t d1) {
  return weight_of(b, b->shape->dtype, rank, d0, d1);
}

static lp_value *linear(builder *b, const char *name, lp_value *x, int64_t k, int64_t n) {
  lp_value *in[] = {x, weight(b, 2, k, n)};
  lp_type type = x->type;
  const lp_poly *dims[] = {type.dim[0], type.dim[1], number(b, n)};
  return add(b, LP_OP_LINEAR, name, 2, in, lp_type_make(b->module, type.dtype, 3, dims))->out[0];
}

static lp_value *map(builder *b, const char *fn, const char *name, int32_t count, lp_value *x, lp_value *y) {
  lp_value *in[] = {x, y};
  lp_op *op = add(b, LP_OP_MAP, name, count, in, x->type);
  lp_op_set_str(b->module, op, "fn", fn);
  return op->out[0];
}

static lp_value *map_to(builder *b, const char *fn, const char *name, lp_type type, lp_value *x) {
  lp_op *op = add(b, LP_OP_MAP, name, 1, &x, type);
  lp_op_set_str(b->module, op, "fn", fn);
  return op->out[0];
}

static lp_value *norm(builder *b, const char *name, lp_value *x) {
  lp_value *in[] = {x, weight_of(b, b->activations, 1, b->shape->hidden, 0)};
  lp_op *op = add(b, LP_OP_NORM, name, 2, in, x->type);
  lp_op_set_str(b->module, op, "type", "rms");
  lp_op_set_f64(b->module, op, "epsilon", 1e-5);
  return op->out[0];
}

static const char *layout(const builder *b) {
  return b->as_imported ? "bshd" : "bhsd";
}

/* [b, s, heads * d] as [b, s, heads, d], or with heads first. */
static lp_value *split_heads(builder *b, lp_value *x, int64_t heads) {
  static const int64_t swap[] = {0, 2, 1, 3};
  const lp_poly *d = number(b, b->shape->hidden / b->shape->heads), *h = number(b, heads);
  x = add(b, LP_OP_RESHAPE, "split", 1, &x, type4(b, symbol(b, "b"), symbol(b, "s"), h, d))->out[0];
  if (b->as_imported) return x;
  lp_op *op = add(b, LP_OP_TRANSPOSE, "heads", 1, &x, type4(b, symbol(b, "b"), h, symbol(b, "s"), d));
  lp_op_set_i64s(b->module, op, "perm", swap, 4);
  return op->out[0];
}

static lp_value *rotary(builder *b, const char *name, lp_value *x) {
  lp_value *in[] = {x, b->cosine, b->sine};
  lp_op *op = add(b, LP_OP_ROTARY, name, 3, in, x->type);
  lp_op_set_i64(b->module, op, "rotary_dim", b->shape->hidden / b->shape->heads);
  lp_op_set_str(b->module, op, "layout", layout(b));
  return op->out[0];
}

static lp_value *append(builder *b, const char *name, lp_value *x) {
  const lp_decoder_shape *s = b->shape;
  const lp_poly *total = lp_poly_add(b->module->arena, symbol(b, "p"), symbol(b, "s"));
  const int64_t row = lp_cache_row(b->caches, s->hidden / s->heads);
  const lp_poly *shape[] = {symbol(b, "b"), number(b, s->kv_heads), symbol(b, "c"), number(b, row)};
  lp_op *state = lp_op_create(b->module, LP_OP_STATE, LP_LOC_NONE, 0, NULL, 0, NULL);
  lp_op_set_i64(b->module, state, "index", b->states);
  lp_op_set_str(b->module, state, "name", lp_arena_format(b->module->arena, "layer.%d.%s", (int)b->layer, name));
  lp_op_set_str(b->module, state, "dtype", lp_dtype_name(b->caches));
  lp_op_set_polys(b->module, state, "shape", shape, 4);
  lp_op_set_i64(b->module, state, "append_axis", 2);
  lp_op_insert_before(b->block->parent, state);
  const lp_poly *dims[] = {shape[0], shape[1], total, shape[3]};
  lp_op *op = add(b, LP_OP_KV_APPEND, name, 1, &x, lp_type_make(b->module, b->caches, 4, dims));
  lp_op_set_i64(b->module, op, "state", b->states++);
  lp_op_set_str(b->module, op, "layout", layout(b));
  return op->out[0];
}

static lp_value *positions_first(builder *b, lp_value *x) {
  static const int64_t swap[] = {0, 2, 1, 3};
  const lp_decoder_shape *s = b->shape;
  if (b->as_imported) return x;
  lp_type type = type4(b, symbol(b, "b"), symbol(b, "s"), number(b, s->heads), number(b, s->hidden / s->heads));
  lp_op *op = add(b, LP_OP_TRANSPOSE, "positions", 1, &x, type);
  lp_op_set_i64s(b->module, op, "perm", swap, 4);
  return op->out[0];
}

static lp_value *attention(builder *b, lp_value *x) {
  const lp_decoder_shape *s = b->shape;
  int64_t d = s->hidden / s->heads;
  lp_value *q = linear(b, "q", x, s->hidden, s->hidden), *k = linear(b, "k", x, s->hidden, s->kv_heads * d);
  lp_value *v = linear(b, "v", x, s->hidden, s->kv_heads * d);
  q = rotary(b, "q.rotary", split_heads(b, q, s->heads));
  k = append(b, "k.cache", rotary(b, "k.rotary", split_heads(b, k, s->kv_heads)));
  v = append(b, "v.cache", split_heads(b, v, s->kv_heads));
  lp_value *in[] = {q, k, v};
  lp_op *op = add(b, LP_OP_ATTENTION, "attention", 3, in, q->type);
  lp_op_set_i64(b->module, op, "heads", s->heads);
  lp_op_set_i64(b->module, op, "kv_heads", s->kv_heads);
  lp_op_set_i64(b->module, op, "head_dim", d);
  lp_op_set_f64(b->module, op, "scale", 1 / sqrt((double)d));
  lp_op_set_bool(b->module, op, "causal", s->causal);
  lp_op_set_str(b->module, op, "layout", layout(b));
  lp_value *back = positions_first(b, op->out[0]),
           *y = add(b, LP_OP_RESHAPE, "join", 1, &back, rows(b, s->hidden))->out[0];
  return linear(b, "o", y, s->hidden, s->hidden);
}

static lp_value *layer(builder *b, lp_value *x) {
  const lp_decoder_shape *s = b->shape;
  b->kind = "norm";
  lp_value *y = norm(b, "norm", x);
  b->kind = "attention";
  x = map(b, "add", "add", 2, x, attention(b, y));
  b->kind = "norm";
  y = norm(b, "mlp_norm", x);
  b->kind = "mlp";
  lp_value *gate = linear(b, "gate", y, s->hidden, s->ffn), *up = linear(b, "up", y, s->hidden, s->ffn);
  y = map(b, "mul", "mul", 2, map(b, "silu", "silu", 1, gate, NULL), up);
  return map(b, "add", "mlp_add", 2, x, linear(b, "down", y, s->ffn, s->hidden));
}

/* Rows p .. p + s of a table [context, d / 2], as [1, s, d / 2]. */
static lp_value *angle_table(builder *b, const char *name, lp_value *positions) {
  int64_t half = b->shape->hidden / b->shape->heads / 2;
  lp_value *in[] = {weight(b, 2, b->shape->context, half), positions};
  const lp_poly *dims[] = {number(b, 1), symbol(b, "s"), number(b, half)};
  lp_op *op = add(b, LP_OP_GATHER, name, 2, in, lp_type_make(b->module, b->activations, 2, dims + 1));
  lp_op_set_i64(b->module, op, "axis", 0);
  return add(b, LP_OP_RESHAPE, name, 1, op->out, lp_type_make(b->module, b->activations, 3, dims))->out[0];
}

/* The cosines and sines of the angles at every position. */
static void angles(builder *b, lp_value *positions) {
  const int64_t half = b->shape->hidden / b->shape->heads / 2;
  const lp_poly *dims[] = {symbol(b, "b"), symbol(b, "s"), number(b, half)},
                *column[] = {dims[0], dims[1], number(b, 1)};
  const lp_type row = lp_type_make(b->module, LP_F32, 3, dims);
  lp_value *x = add(b, LP_OP_EXPAND, "positions", 1, &positions, lp_type_make(b->module, LP_I64, 2, dims))->out[0];
  x = map_to(b, "cast", "rotary", lp_type_make(b->module, LP_F32, 2, dims), x);
  x = add(b, LP_OP_RESHAPE, "rotary", 1, &x, lp_type_make(b->module, LP_F32, 3, column))->out[0];
  lp_value *in[] = {x, weight_of(b, LP_F32, 1, half, 0)};
  lp_op *angle = add(b, LP_OP_MAP, "rotary", 2, in, row);
  lp_op_set_str(b->module, angle, "fn", "mul");
  b->cosine = map_to(b, "cos", "cos", row, angle->out[0]);
  b->sine = map_to(b, "sin", "sin", row, angle->out[0]);
}

static lp_value *embed(builder *b) {
  const lp_decoder_shape *s = b->shape;
  const lp_poly *s_dim = symbol(b, "s");
  lp_op *positions = add(b, LP_OP_IOTA, "positions", 0, NULL, lp_type_make(b->module, LP_I64, 1, &s_dim));
  lp_op_set_poly(b->module, positions, "start", symbol(b, "p"));
  lp_op_set_poly(b->module, positions, "step", number(b, 1));
  if (b->as_imported) {
    angles(b, positions->out[0]);
  } else {
    b->cosine = angle_table(b, "cos", positions->out[0]);
    b->sine = angle_table(b, "sin", positions->out[0]);
  }
  b->table = weight(b, 2, s->vocab, s->hidden);
  lp_value *in[] = {b->table, b->block->arg[0]};
  lp_op *op = add(b, LP_OP_GATHER, "embedding", 2, in, rows(b, s->hidden));
  lp_op_set_i64(b->module, op, "axis", 0);
  return op->out[0];
}

static lp_value *head(builder *b, lp_value *x) {
  const lp_decoder_shape *s = b->shape;
  if (!s->tied) return linear(b, "lm_head", x, s->hidden, s->vocab);
  lp_value *in[] = {x, b->table};
  const lp_poly *dims[] = {x->type.dim[0], x->type.dim[1], number(b, s->vocab)};
  lp_op *op = add(b, LP_OP_LINEAR, "lm_head", 2, in, lp_type_make(b->module, x->type.dtype, 3, dims));
  lp_op_set_bool(b->module, op, "transpose_b", true);
  return op->out[0];
}

/* The last r of s rows. */
static lp_value *last_rows(builder *b, lp_value *x) {
  const lp_poly *zero = number(b, 0), *r = symbol(b, "r");
  const lp_poly *starts[] = {zero, lp_poly_sub(b->module->arena, symbol(b, "s"), r), zero};
  const lp_poly *dims[] = {symbol(b, "b"), r, number(b, b->shape->hidden)};
  static const int64_t steps[] = {1, 1, 1};
  lp_op *op = add(b, LP_OP_SLICE, "last", 1, &x, lp_type_make(b->module, b->activations, 3, dims));
  lp_op_set_polys(b->module, op, "starts", starts, 3);
  lp_op_set_i64s(b->module, op, "steps", steps, 3);
  return op->out[0];
}

lp_module *lp_decoder_create(const lp_decoder_shape *shape, const lp_dtype *kv_dtype) {
  static const char *const inputs[] = {"input_ids"}, *const outputs[] = {"logits"};
  builder b = {.shape = shape,
               .activations = kv_dtype ? LP_F32 : shape->dtype,
               .as_imported = kv_dtype != NULL,
               .caches = kv_dtype ? *kv_dtype : shape->dtype,
               .module = lp_module_create("llama"),
               .layer = -1,
               .kind = "embedding"};
  const lp_poly *dims[] = {symbol(&b, "b"), symbol(&b, "s")};
  lp_type tokens = lp_type_make(b.module, LP_I64, 2, dims);
  lp_op *func = lp_module_add_func(b.module, "main", 1, &tokens);
  lp_op_set_strs(b.module, func, "inputs", inputs, 1);
  lp_op_set_strs(b.module, func, "outputs", outputs, 1);
  b.block = func->region;
  lp_value *x = embed(&b);
  for (b.layer = 0; b.layer < shape->layers; b.layer++)
    x = layer(&b, x);
  b.layer = -1;
  b.kind = "norm";
  x = norm(&b, "norm", b.as_imported ? x : last_rows(&b, x));
  b.kind = "lm_head";
  x = head(&b, x);
  lp_op_append(b.block, lp_op_create(b.module, LP_OP_RETURN, LP_LOC_NONE, 1, &x, 0, NULL));
  if (b.as_imported) lp_kv_take_last_rows(b.module, b.block, NULL);
  return b.module;
}

int64_t lp_decoder_weight_bytes(const lp_module *module) {
  int64_t end = 0;
  LP_FOR_FUNCS(func, module) {
    LP_FOR_OPS(op, func->region) {
      int64_t last = op->kind == LP_OP_WEIGHT ? lp_op_i64(op, "offset", 0) + lp_op_i64(op, "length", 0) : 0;
      if (last > end) end = last;
    }
  }
  return end;
}
