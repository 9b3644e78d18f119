/* kv-cache: gives every causal self-attention of a generating model a KV cache. Past inputs and present outputs become
 * the cache where the model has them; where it has none, positions are counted from p instead of 0. The operators that
 * only the logits need are then computed for the last r rows (kv_last.c).
 *
 * Keys and values that a decoder computes from an encoder's states do not change during a generation: @prefill writes
 * them to caches once. In an encoder without a decoder tokens see later ones; it does not generate and stays
 * unchanged. */
#include "passes/lower/kv_cache.h"
#include "base/poly.h"
#include "passes/build.h"
#include "passes/passes.h"

typedef struct {
  lp_module *module;
  lp_op *func;
  lp_block *block;
  lp_diag *diag;
  const lp_compile_request *request;
  bool has_past;
  lp_dtype dtype; /* of the caches of self-attentions */
  lp_dtype plain; /* of the others: f16 where those have codes */
  int64_t states;
  lp_kv_masks masks;
} cache_pass;

static const char *role_at(const lp_op *func, const char *attr, int32_t index) {
  const lp_attr *roles = lp_op_attr(func, attr);
  return roles && index < roles->count ? roles->ss[index] : "data";
}

static bool is_past(const cache_pass *c, const lp_value *arg) {
  return !arg->def && arg->block == c->block && lp_has_prefix(role_at(c->func, "input_roles", arg->index), "past");
}

/* Tells whether the value is a view of a past input. A stacked past is sliced first. */
static bool views_past(const cache_pass *c, const lp_value *value) {
  while (value->def && (value->def->kind == LP_OP_RESHAPE || value->def->kind == LP_OP_SLICE ||
                        (value->def->kind == LP_OP_MAP && lp_streq(lp_op_str(value->def, "fn", ""), "cast"))))
    value = lp_op_in(value->def, 0);
  return is_past(c, value);
}

/* ---- caches ------------------------------------------------------------------------------------------------------ */

/* Declares the cache that the operator writes, with a name such as "layer.0.k". */
static void declare_state(cache_pass *c, lp_op *op, const char *name) {
  lp_module *m = c->module;
  const bool grows = op->kind == LP_OP_KV_APPEND && !lp_op_bool(op, "once", false);
  lp_type type = op->out[op->out_count - 1]->type;
  lp_op *state = lp_op_create(m, LP_OP_STATE, LP_LOC_NONE, 0, NULL, 0, NULL);
  const lp_poly *shape[LP_MAX_RANK];
  for (int32_t i = 0; i < type.rank; i++)
    shape[i] = grows && i == 2 ? lp_dim_symbol(m, "c") : type.dim[i];
  lp_op_set_i64(m, op, "state", c->states);
  lp_op_set_i64(m, state, "index", c->states++);
  lp_op_set_str(m, state, "name", name);
  lp_op_set_str(m, state, "dtype", lp_dtype_name(type.dtype));
  lp_op_set_polys(m, state, "shape", shape, type.rank);
  lp_op_set_i64(m, state, "append_axis", grows ? 2 : -1);
  lp_op_insert_before(c->func, state);
}

/* The new rows of keys or values, without the past rows before them; NULL when the graph has another form. */
static lp_value *fresh_rows(const cache_pass *c, lp_value *value) {
  const lp_op *concat = value->def;
  if (!c->has_past) return value;
  bool joined = lp_op_is(concat, LP_OP_CONCAT) && concat->in_count == 2 && lp_op_i64(concat, "axis", -1) == 2;
  return joined && views_past(c, lp_op_in(concat, 0)) ? lp_op_in(concat, 1) : NULL;
}

static lp_status cache_operand(cache_pass *c, lp_op *attention, int32_t operand, int64_t layer) {
  lp_module *m = c->module;
  lp_value *old = lp_op_in(attention, operand), *rows = fresh_rows(c, old);
  if (!rows)
    return lp_error(c->diag, attention->loc, "attention does not append to a past input, so it can keep no KV cache");
  const lp_poly *total = lp_poly_add(m->arena, lp_dim_symbol(m, "p"), rows->type.dim[2]), *row = rows->type.dim[3];
  int64_t width = -1;
  if (lp_cache_is_coded(c->dtype)) {
    (void)lp_type_static_dim(rows->type, 3, &width);
    if (lp_cache_row(c->dtype, width) < 0)
      return lp_error(c->diag, attention->loc,
                      "KV caches in codes have blocks of %d elements, and a head has %" PRId64 ": use f16",
                      LP_CACHE_BLOCK, width);
    row = lp_dim_const(m, lp_cache_row(c->dtype, width));
  }
  const lp_poly *dims[] = {rows->type.dim[0], rows->type.dim[1], total, row};
  lp_build b = lp_build_at(m, attention, c->diag);
  lp_op *append = lp_build_typed(&b, LP_OP_KV_APPEND, 1, &rows, lp_type_make(m, c->dtype, 4, dims));
  lp_op_set_str(m, append, "layout", "bhsd");
  declare_state(c, append, lp_arena_format(m->arena, "layer.%" PRId64 ".%s", layer, operand == 2 ? "v" : "k"));
  lp_op_set_in(attention, operand, append->out[0]);
  return LP_OK;
}

static lp_status cache_attention(cache_pass *c, lp_op *attention, int64_t layer) {
  if (!lp_op_bool(attention, "causal", false) && !c->has_past)
    return lp_error(c->diag, attention->loc, "attention is not causal, so it can keep no KV cache");
  if (!c->has_past) LP_TRY(lp_kv_lengthen_mask(c->module, &c->masks, attention, c->diag));
  const bool shared = lp_op_in(attention, 1) == lp_op_in(attention, 2); /* latents are keys and values */
  LP_TRY(cache_operand(c, attention, 1, layer));
  if (shared) lp_op_set_in(attention, 2, lp_op_in(attention, 1));
  return shared ? LP_OK : cache_operand(c, attention, 2, layer);
}

/* ---- attention to an encoder's states ---------------------------------------------------------------------------- */

static void keep_operand(cache_pass *c, lp_op *attention, int32_t operand, int64_t layer) {
  lp_module *m = c->module;
  lp_value *rows = lp_op_in(attention, operand);
  lp_build b = lp_build_at(m, attention, c->diag);
  lp_op *append = lp_build_typed(&b, LP_OP_KV_APPEND, 1, &rows, lp_type_with_dtype(rows->type, c->plain));
  lp_op_set_str(m, append, "layout", "bhsd");
  lp_op_set_bool(m, append, "once", true);
  const char *kind = operand == 2 ? "v" : "k";
  declare_state(c, append, lp_arena_format(m->arena, "layer.%" PRId64 ".encoder.%s", layer, kind));
  lp_op_set_in(attention, operand, append->out[0]);
}

/* ---- states of linear attentions, convolutions ------------------------------------------------------------------- */

/* Makes caches of the states that linear attentions take from step to step; returns their number. */
static int64_t cache_linear_attentions(cache_pass *c) {
  int64_t count = 0;
  LP_FOR_OPS(op, c->block) {
    const lp_value *past = op->kind == LP_OP_LINEAR_ATTENTION ? lp_op_in(op, 3) : NULL;
    if (!past || past->def || !lp_streq(role_at(c->func, "input_roles", past->index), "state_past")) continue;
    lp_op_set_in(op, 3, NULL);
    declare_state(c, op, lp_arena_format(c->module->arena, "linear.%" PRId64 ".s", count++));
  }
  return count;
}

static lp_status cache_convolutions(cache_pass *c, bool carries) {
  int64_t count = 0;
  for (int32_t i = 0; i < c->block->arg_count; i++) {
    const lp_value *arg = c->block->arg[i];
    if (!lp_streq(role_at(c->func, "input_roles", i), "conv_past") || !arg->uses) continue;
    lp_loc loc = arg->uses->owner->loc;
    lp_op *append =
        carries ? lp_kv_carry_columns(c->module, arg, c->diag) : lp_kv_keep_columns(c->module, arg, c->plain, c->diag);
    if (!append)
      return lp_error(c->diag, loc, "past input '%s' is used by more than the convolution that continues it",
                      role_at(c->func, "inputs", i));
    declare_state(c, append, lp_arena_format(c->module->arena, "conv.%" PRId64 ".x", count++));
  }
  lp_build_remove_dead(c->block);
  return LP_OK;
}

/* ---- self-attentions --------------------------------------------------------------------------------------------- */

/* Marks the values that depend on the tokens, in their scratch. */
static void mark_tokens(const cache_pass *c, void *mark) {
  for (int32_t i = 0; i < c->block->arg_count; i++)
    if (lp_streq(role_at(c->func, "input_roles", i), "tokens")) c->block->arg[i]->scratch = mark;
  LP_FOR_OPS(op, c->block) {
    bool depends = false;
    for (int32_t i = 0; i < op->in_count && !depends; i++)
      depends = lp_op_in(op, i) && lp_op_in(op, i)->scratch;
    for (int32_t i = 0; i < op->out_count && depends; i++)
      op->out[i]->scratch = mark;
  }
}

typedef LP_VEC(lp_op *) op_list;

/* Finds the self-attentions of the model's tokens, and their attentions to an encoder's states. */
static void find_attentions(const cache_pass *c, op_list *self, op_list *cross) {
  static char token;
  mark_tokens(c, &token);
  LP_FOR_OPS(op, c->block) {
    if (op->kind != LP_OP_ATTENTION) continue;
    bool asks = lp_op_in(op, 0)->scratch, own = lp_op_in(op, 1)->scratch;
    if (own)
      lp_vec_push(self, op);
    else if (asks && !lp_value_is_constant(lp_op_in(op, 1)))
      lp_vec_push(cross, op);
  }
  mark_tokens(c, NULL);
  LP_FOR_OPS(op, c->block)
    for (int32_t i = 0; i < op->out_count; i++)
      op->out[i]->scratch = NULL;
}

/* Tells whether the function computes the states itself. If they are an input, the caller gives them in each step. */
static bool has_encoder(const cache_pass *c) {
  for (int32_t i = 0; i < c->block->arg_count; i++)
    if (lp_has_prefix(role_at(c->func, "input_roles", i), "source")) return true;
  return false;
}

/* The first attention in which tokens see later ones, as in an encoder; NULL for a model that generates. */
static const lp_op *encoder_attention(const cache_pass *c, const op_list *attentions) {
  for (size_t i = 0; i < attentions->count; i++)
    if (c->has_past || lp_op_bool(attentions->data[i], "causal", false)) return NULL;
  return attentions->count > 0 ? attentions->data[0] : NULL;
}

/* The first attention with a past in which the new tokens see all of them, so that it is right for one token only. */
static const lp_op *one_token_attention(const cache_pass *c, const op_list *attentions) {
  for (size_t i = 0; c->has_past && i < attentions->count; i++) {
    const lp_op *op = attentions->data[i];
    const lp_value *q = lp_op_in(op, 0);
    bool many = lp_poly_has(q->type.dim[lp_streq(lp_op_str(op, "layout", ""), "bshd") ? 1 : 2],
                            lp_symbols_find(&c->module->symbols, "s"));
    if (many && !lp_op_bool(op, "causal", false) && !lp_op_in(op, 3)) return op;
  }
  return NULL;
}

static lp_status refuse_one_token(const cache_pass *c, const lp_op *attention) {
  lp_op_set_i64(c->module, c->func, "one_token", 1);
  lp_status status = lp_error(c->diag, attention->loc,
                              "the new tokens of a step attend to later ones: the graph with a "
                              "past was exported for one token at a time, and prompts have more");
  lp_note(
      c->diag, LP_LOC_NONE,
      "export the decoder without a past, for which llmpart makes KV caches, or with a mask that hides later tokens");
  return status;
}

/* ---- positions of a model without past inputs -------------------------------------------------------------------- */

static bool has_symbol(const cache_pass *c, const lp_poly *poly, const char *name) {
  return lp_poly_has(poly, lp_symbols_find(&c->module->symbols, name));
}

/* Makes counters and rows of tables over s positions begin at p. */
static lp_status shift_op(const cache_pass *c, lp_op *op) {
  lp_module *m = c->module;
  const lp_poly *p = lp_dim_symbol(m, "p");
  if (op->kind == LP_OP_IOTA && has_symbol(c, op->out[0]->type.dim[0], "s")) {
    const lp_poly *shift = lp_poly_mul(m->arena, p, lp_op_poly(op, "step"));
    lp_op_set_poly(m, op, "start", lp_poly_add(m->arena, lp_op_poly(op, "start"), shift));
  } else if (op->kind == LP_OP_SLICE && lp_value_is_constant(lp_op_in(op, 0))) {
    const lp_attr *starts = lp_op_attr(op, "starts");
    const lp_poly *shifted[LP_MAX_RANK];
    for (int32_t i = 0; i < starts->count; i++)
      shifted[i] =
          has_symbol(c, op->out[0]->type.dim[i], "s") ? lp_poly_add(m->arena, starts->polys[i], p) : starts->polys[i];
    lp_op_set_polys(m, op, "starts", shifted, starts->count);
  } else if (op->kind == LP_OP_DIMS) {
    const lp_attr *values = lp_op_attr(op, "values");
    for (int32_t i = 0; i < values->count; i++)
      if (has_symbol(c, values->polys[i], "s") && op->out[0]->uses)
        return lp_error(c->diag, op->loc, "the length of the sequence is used as a number, so no KV cache can be kept");
  }
  return LP_OK;
}

/* cumsum(ones) counts from 1. Replaces it by op.iota, broadcast to its shape. */
static void count_by_iota(const cache_pass *c, lp_op *op) {
  lp_value *x = lp_op_in(op, 0);
  while (x->def && (x->def->kind == LP_OP_RESHAPE || x->def->kind == LP_OP_EXPAND ||
                    (x->def->kind == LP_OP_MAP && x->def->in_count == 1)))
    x = lp_op_in(x->def, 0);
  int64_t axis = lp_op_i64(op, "axis", 0);
  bool ones = lp_op_is(x->def, LP_OP_FILL) && lp_op_f64(x->def, "value", 0) == 1.0;
  bool plain = !lp_op_bool(op, "reverse", false) && !lp_op_bool(op, "exclusive", false);
  lp_type type = op->out[0]->type;
  if (!ones || !plain || axis != type.rank - 1) return;
  lp_build b = lp_build_at(c->module, op, c->diag);
  lp_op *iota = lp_build_typed(&b, LP_OP_IOTA, 0, NULL, lp_type_make(c->module, LP_I64, 1, &type.dim[axis]));
  lp_op_set_poly(c->module, iota, "start", lp_dim_const(c->module, 1));
  lp_op_set_poly(c->module, iota, "step", lp_dim_const(c->module, 1));
  lp_value *row = type.dtype == LP_I64 ? iota->out[0] : lp_build_map1(&b, "cast", iota->out[0], type.dtype);
  lp_value_replace(op->out[0], lp_build_typed(&b, LP_OP_EXPAND, 1, &row, type)->out[0]);
}

static lp_status shift_positions(const cache_pass *c) {
  static char free_mark; /* the address of this mark means: the value depends on no input */
  lp_status status = LP_OK;
  LP_FOR_OPS(op, c->block)
    if (op->kind == LP_OP_CUMSUM && !lp_kv_is_mask(op)) count_by_iota(c, op);
  lp_build_remove_dead(c->block);
  for (lp_op *op = c->block->first; op && status == LP_OK; op = op->next) {
    bool free = op->out_count > 0 && op->kind != LP_OP_KV_APPEND;
    for (int32_t i = 0; i < op->in_count && free; i++)
      free = !lp_op_in(op, i) || lp_value_is_constant(lp_op_in(op, i)) || lp_op_in(op, i)->scratch == &free_mark;
    if (lp_op_has(op, LP_CONSTANT) || lp_kv_is_mask(op) || lp_kv_counts_tokens(op)) continue;
    if (lp_kv_mixes_rows(c->module, op))
      status = lp_error(c->diag, op->loc, "positions are mixed outside attention, so no KV cache can be kept");
    else if (free)
      status = shift_op(c, op);
    for (int32_t i = 0; i < op->out_count && free; i++)
      op->out[i]->scratch = &free_mark;
  }
  LP_FOR_OPS(op, c->block) {
    op->scratch = NULL;
    for (int32_t i = 0; i < op->out_count; i++)
      op->out[i]->scratch = NULL;
  }
  return status;
}

/* Gives counts of tokens a cache. Counts of an encoder's tokens are complete in every step. */
static void cache_counts(cache_pass *c) {
  int64_t count = 0;
  LP_FOR_OPS(op, c->block)
    if (lp_kv_counts_tokens(op) && has_symbol(c, op->out[0]->type.dim[1], "s")) {
      lp_op *append = lp_kv_keep_counts(c->module, op, c->plain, c->diag);
      declare_state(c, append, lp_arena_format(c->module->arena, "count.%" PRId64, count++));
    }
  lp_build_remove_dead(c->block);
}

/* ---- arguments and results --------------------------------------------------------------------------------------- */

static bool keeps_result(const cache_pass *c, int32_t index) {
  const char *role = role_at(c->func, "output_roles", index);
  return lp_streq(role, "logits") || lp_streq(role, "hidden") || lp_streq(role, "embedding") ||
         (lp_streq(role, "exit_logits") && c->request->exit_count > 0);
}

static void keep_strs(const cache_pass *c, const char *name, const int32_t *kept, int32_t count) {
  const lp_attr *attr = lp_op_attr(c->func, name);
  const char **texts = LP_NEW_ARRAY(c->module->arena, const char *, count);
  for (int32_t i = 0; i < count; i++)
    texts[i] = attr && kept[i] < attr->count ? attr->ss[kept[i]] : "";
  lp_op_set_strs(c->module, c->func, name, texts, count);
}

static void drop_results(const cache_pass *c) {
  lp_op *last = lp_block_terminator(c->block);
  int32_t *kept = LP_NEW_ARRAY(c->module->arena, int32_t, last->in_count), count = 0;
  lp_value **in = LP_NEW_ARRAY(c->module->arena, lp_value *, last->in_count);
  for (int32_t i = 0; i < last->in_count; i++)
    if (keeps_result(c, i)) {
      in[count] = lp_op_in(last, i);
      kept[count++] = i;
    }
  lp_op_set_ins(c->module, last, count, in);
  keep_strs(c, "outputs", kept, count);
  keep_strs(c, "output_roles", kept, count);
}

static lp_status drop_arguments(const cache_pass *c) {
  lp_block *block = c->block;
  int32_t *kept = LP_NEW_ARRAY(c->module->arena, int32_t, block->arg_count), count = 0;
  for (int32_t i = 0; i < block->arg_count; i++) {
    lp_value *arg = block->arg[i];
    if (arg->uses && is_past(c, arg))
      return lp_error(c->diag, arg->uses->owner->loc, "past input '%s' is %s", role_at(c->func, "inputs", i),
                      arg->uses->next
                          ? "used by more than the attention that appends to it"
                          : "changed before new rows are appended to it, so a cache would not hold its rows");
    if (arg->uses || lp_streq(role_at(c->func, "input_roles", i), "tokens")) kept[count++] = i;
  }
  lp_value **args = LP_NEW_ARRAY(c->module->arena, lp_value *, count);
  for (int32_t i = 0; i < count; i++) {
    args[i] = block->arg[kept[i]];
    args[i]->index = i;
  }
  block->arg = args;
  block->arg_count = block->arg_room = count;
  keep_strs(c, "inputs", kept, count);
  keep_strs(c, "input_roles", kept, count);
  lp_op_remove_attr(c->func, "past_pair");
  return LP_OK;
}

/* ---- driver ------------------------------------------------------------------------------------------------------ */

static lp_status cache_all(cache_pass *c, const op_list *attentions, const op_list *cross) {
  for (size_t i = 0; i < attentions->count; i++)
    LP_TRY(cache_attention(c, attentions->data[i], (int64_t)i));
  for (size_t i = 0; i < cross->count && has_encoder(c); i++) {
    keep_operand(c, cross->data[i], 1, (int64_t)i);
    keep_operand(c, cross->data[i], 2, (int64_t)i);
  }
  drop_results(c);
  lp_build_remove_dead(c->block);
  LP_TRY(cache_convolutions(c, cache_linear_attentions(c) > 0));
  if (!c->has_past) {
    LP_TRY(shift_positions(c));
    cache_counts(c);
  }
  LP_TRY(drop_arguments(c));
  lp_kv_find_context(c->module, c->func, false);
  lp_kv_take_last_rows(c->module, c->block, c->diag);
  lp_block_renumber(c->block);
  return LP_OK;
}

static lp_status read_dtype(const lp_pass_context *context, lp_loc loc, lp_dtype *out) {
  const char *text = lp_pass_option(context, "dtype");
  if (!text) text = context->request->kv_dtype;
  if (!text) return LP_OK;
  if (lp_cache_dtype_parse(text, out)) return LP_OK;
  return lp_error(context->diag, loc, "KV caches of '%s' are not supported: f32, f16, bf16, int8 or int4", text);
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  lp_op *func = lp_module_find_func(module, "main");
  if (!func) return lp_error(context->diag, LP_LOC_FILE(module->name), "no function 'main' to give KV caches");
  if (!context->request || !context->request->generation) return LP_OK;
  cache_pass c = {
      .module = module, .func = func, .block = func->region, .diag = context->diag, .request = context->request};
  LP_TRY(read_dtype(context, func->loc, &c.dtype));
  c.plain = lp_cache_is_coded(c.dtype) ? LP_F16 : c.dtype;
  c.masks.block = c.block;
  for (int32_t i = 0; i < c.block->arg_count; i++)
    c.has_past |= is_past(&c, c.block->arg[i]);
  LP_OWNED(lp_free_at) op_list attentions = {0}, cross = {0};
  find_attentions(&c, &attentions, &cross);
  lp_status status = LP_OK;
  const lp_op *encoder = encoder_attention(&c, &attentions), *single = one_token_attention(&c, &attentions);
  if (single) {
    status = refuse_one_token(&c, single);
  } else if (encoder) {
    lp_kv_find_context(module, func, true);
    lp_warning(c.diag, encoder->loc, "tokens attend to later ones: the model encodes and does not generate");
  } else {
    status = cache_all(&c, &attentions, &cross);
  }
  return status;
}

const lp_pass lp_pass_kv_cache = {
    .name = "kv-cache",
    .summary = "keep keys and values of past positions; compute only the last rows' logits",
    .needs = LP_STATE_LOWERED,
    .makes = LP_STATE_LOWERED,
    .breaks = LP_STATE_ANNOTATED,
    .options = "dtype",
    .run = run,
};
