/* bind-inputs: finds the generation protocol in a model's inputs and outputs: tokens in, logits or hidden states out,
 * past and present keys and values between steps, and masks and positions that follow from the sizes. Afterwards the
 * batch is b, the new tokens are s and the past is p in every type; attention_mask and position_ids are computed
 * instead of inputs; `input_roles`, `output_roles` and `past_pair` of the function give the roles of the others. */
#include "base/poly.h"
#include "passes/passes.h"
#include "passes/recognise/bind.h"

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static bool is_integer_matrix(const lp_value *arg) {
  return arg->type.rank == 2 && (arg->type.dtype == LP_I64 || arg->type.dtype == LP_I32);
}

static int32_t find_tokens(const lp_bind *b) {
  static const char *const names[] = {"input_ids", "tokens", "token_ids", "input_tokens", "ids", "input"};
  for (size_t n = 0; n < LP_COUNT(names); n++)
    for (int32_t i = 0; i < b->block->arg_count; i++)
      if (is_integer_matrix(b->block->arg[i]) && lp_streq(lp_bind_input(b, i), names[n])) return i;
  int32_t found = -1;
  for (int32_t i = 0; i < b->block->arg_count; i++) {
    const char *name = lp_bind_input(b, i);
    bool other = strstr(name, "position") || strstr(name, "mask") || strstr(name, "type");
    if (other || !is_integer_matrix(b->block->arg[i]) || !lp_bind_table(b->block->arg[i], 0)) continue;
    if (found >= 0) return -1; /* there are two, so neither can be chosen */
    found = i;
  }
  return found;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* Makes axis `axis` of an argument equal to `size` by renaming its symbol in the whole module. */
static lp_status rename_axis(const lp_bind *b, int32_t arg, int32_t axis, const lp_poly *size) {
  const lp_poly *dim = b->block->arg[arg]->type.dim[axis];
  lp_symbol symbol = lp_poly_lone_symbol(dim);
  if (lp_poly_equal(dim, size) || lp_poly_is_const(dim, NULL)) return LP_OK;
  if (!symbol)
    return lp_error(b->diag, b->end->loc, "axis %d of input '%s' is a sum; the generation protocol needs a plain size",
                    axis, lp_bind_input(b, arg));
  if (lp_module_substitute(b->module, symbol, size)) return LP_OK;
  return lp_error(b->diag, b->end->loc, "a size overflows once '%s' is renamed",
                  lp_symbols_name(&b->module->symbols, symbol));
}

/* Refuses a number of tokens that constants of the graph fix, because a generation begins with a prompt and continues
 * token by token. Warns of a fixed batch, but not of the usual one of a single sequence. */
static lp_status check_static(const lp_bind *b) {
  lp_type tokens = b->block->arg[b->tokens]->type;
  int64_t size;
  if (lp_type_static_dim(tokens, 1, &size))
    return lp_error(b->diag, b->end->loc,
                    "input '%s' is always %" PRId64 " tokens long, and the graph's constants depend on it: export the "
                    "model with a dynamic sequence length",
                    lp_bind_input(b, b->tokens), size);
  if (lp_type_static_dim(tokens, 0, &size) && size != 1)
    lp_warning(b->diag, b->end->loc, "the batch of input '%s' is always %" PRId64, lp_bind_input(b, b->tokens), size);
  return LP_OK;
}

/* Renames the axes of a mask [b, 1, s, p + s] or [s, p + s] where they have names. */
static lp_status rename_mask(const lp_bind *b, int32_t arg, const lp_poly *total) {
  lp_type tokens = b->block->arg[b->tokens]->type;
  const lp_poly *sizes[] = {tokens.dim[0], lp_dim_const(b->module, 1), tokens.dim[1], total};
  int32_t rank = b->block->arg[arg]->type.rank;
  for (int32_t axis = 0; axis < rank; axis++)
    LP_TRY(rename_axis(b, arg, axis, sizes[4 - rank + axis]));
  return LP_OK;
}

static lp_status rename_follower(const lp_bind *b, int32_t arg, lp_bind_follower kind, const lp_poly *total) {
  lp_type tokens = b->block->arg[b->tokens]->type;
  int32_t last = b->block->arg[arg]->type.rank - 1;
  if (kind == LP_FOLLOWS_CAUSAL) return rename_axis(b, arg, 0, tokens.dim[0]);
  if (kind == LP_FOLLOWS_VISIBLE) return rename_mask(b, arg, total);
  if (kind == LP_FOLLOWS_LAST) return rename_axis(b, arg, 0, tokens.dim[0]);
  if (kind == LP_FOLLOWS_TOTAL) return last < 0 ? LP_OK : rename_axis(b, arg, 0, lp_dim_const(b->module, 1));
  if (last == 1) LP_TRY(rename_axis(b, arg, 0, tokens.dim[0]));
  return rename_axis(b, arg, last, kind == LP_FOLLOWS_MASK ? total : tokens.dim[1]);
}

/* Positions and types come before masks, because the length of a mask may be a sum of theirs. */
static lp_status rename_followers(const lp_bind *b, const lp_poly *total) {
  for (int turn = 0; turn < 2; turn++)
    for (int32_t i = 0; i < b->block->arg_count; i++) {
      lp_bind_follower kind = lp_bind_follower_of(b, i);
      if (kind == LP_FOLLOWS_SWITCH || kind == LP_FOLLOWS_NOTHING) continue;
      bool early = kind == LP_FOLLOWS_POSITIONS || kind == LP_FOLLOWS_TYPES;
      if (early == (turn == 0)) LP_TRY(rename_follower(b, i, kind, total));
    }
  return LP_OK;
}

static lp_status rename_sizes(const lp_bind *b) {
  lp_module *m = b->module;
  LP_TRY(check_static(b));
  LP_TRY(rename_axis(b, b->tokens, 0, lp_dim_symbol(m, "b")));
  LP_TRY(rename_axis(b, b->tokens, 1, lp_dim_symbol(m, "s")));
  for (int32_t i = 0; i < b->block->arg_count; i++) {
    if (!lp_bind_is_past(b, i)) continue;
    int32_t rank = b->block->arg[i]->type.rank;
    LP_TRY(rename_axis(b, i, rank - 4, lp_dim_symbol(m, "b")));
    LP_TRY(rename_axis(b, i, rank - 2, lp_dim_symbol(m, "p")));
  }
  for (int32_t i = 0; i < b->block->arg_count; i++)
    if (lp_has_suffix(b->input_role[i], "_past")) LP_TRY(rename_axis(b, i, 0, lp_dim_symbol(m, "b")));
  lp_type tokens = b->block->arg[b->tokens]->type;
  const lp_poly *total = tokens.dim[1], *past = lp_bind_past_length(b);
  if (past) total = lp_poly_add(m->arena, past, total);
  return rename_followers(b, total);
}

/* ---- the encoder's inputs ---------------------------------------------------------------------------------------- */

static const struct {
  const char *name, *role;
} sources[] = {{"encoder_input_ids", "source_tokens"},
               {"encoder_attention_mask", "source_mask"},
               {"input_features", "source_features"},
               {"audio_features", "source_features"}};

/* Gives the inputs of an encoder that the function computes their roles. A decoder by itself has its states as an
 * input. */
static lp_status bind_sources(const lp_bind *b) {
  for (int32_t i = 0; i < b->block->arg_count; i++)
    if (lp_streq(lp_bind_input(b, i), "encoder_hidden_states")) return LP_OK;
  for (int32_t i = 0; i < b->block->arg_count; i++)
    for (size_t k = 0; k < LP_COUNT(sources); k++) {
      if (!lp_streq(lp_bind_input(b, i), sources[k].name)) continue;
      b->input_role[i] = sources[k].role;
      LP_TRY(rename_axis(b, i, 0, lp_dim_symbol(b->module, "b")));
    }
  return LP_OK;
}

/* ---- roles ------------------------------------------------------------------------------------------------------- */

static void set_roles(const lp_bind *b) {
  lp_op_set_strs(b->module, b->func, "input_roles", b->input_role, b->block->arg_count);
  lp_op_set_strs(b->module, b->func, "output_roles", b->output_role, b->end->in_count);
  lp_op_set_i64s(b->module, b->func, "past_pair", b->pair, b->block->arg_count);
}

static lp_status bind_generation(lp_bind *b) {
  b->tokens = find_tokens(b);
  if (b->tokens < 0) {
    lp_status status = lp_error(b->diag, b->end->loc,
                                "the model has no token input: integers [batch, positions] that "
                                "choose rows of an embedding");
    for (int32_t i = 0; i < b->block->arg_count; i++)
      if (lp_streq(lp_bind_input(b, i), "inputs_embeds"))
        lp_note(
            b->diag, b->end->loc,
            "it takes rows of an embedding as 'inputs_embeds': put the embedding beside it (embed_tokens.onnx, which "
            "makes inputs_embeds from input_ids), or export the model with its embedding");
    lp_note(b->diag, b->end->loc,
            "a graph that is no language model does not generate; 'llmpart verify --test-data' runs it");
    return status;
  }
  b->input_role[b->tokens] = "tokens";
  LP_TRY(lp_bind_open_buffers(b));
  LP_TRY(lp_bind_pair_pasts(b));
  LP_TRY(rename_sizes(b));
  LP_TRY(bind_sources(b));
  LP_TRY(lp_bind_find_logits(b));
  LP_TRY(lp_bind_followers(b));
  set_roles(b);
  return lp_block_infer(b->module, b->block, b->diag);
}

static lp_status bind_inputs(lp_module *module, lp_pass_context *context) {
  lp_bind b = {.module = module, .diag = context->diag, .func = lp_module_find_func(module, "main")};
  if (!b.func) return lp_error(context->diag, LP_LOC_FILE(module->name), "the module has no function 'main'");
  b.block = b.func->region;
  b.end = lp_block_terminator(b.block);
  if (!b.end) return lp_error(context->diag, LP_LOC_FILE(module->name), "function 'main' does not end");
  b.input_role = LP_NEW_ARRAY(context->scratch, const char *, b.block->arg_count + 1);
  b.output_role = LP_NEW_ARRAY(context->scratch, const char *, b.end->in_count + 1);
  b.pair = LP_NEW_ARRAY(context->scratch, int64_t, b.block->arg_count + 1);
  for (int32_t i = 0; i < b.block->arg_count; i++) {
    b.input_role[i] = "data";
    b.pair[i] = -1;
  }
  for (int32_t i = 0; i < b.end->in_count; i++)
    b.output_role[i] = "data";
  if (context->request->generation) return bind_generation(&b);
  set_roles(&b);
  return LP_OK;
}

const lp_pass lp_pass_bind_inputs = {
    .name = "bind-inputs",
    .summary = "find tokens, logits, hidden states and caches among inputs and outputs, compute masks and positions",
    .needs = LP_STATE_IMPORTED,
    .makes = LP_STATE_IMPORTED,
    .breaks = LP_STATE_RAISED,
    .run = bind_inputs,
};
