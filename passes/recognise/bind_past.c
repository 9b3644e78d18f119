/* Finds the inputs that are past keys and values, and the outputs that continue them. Exporters use different names;
 * the pass knows those of optimum ("past_key_values.0.key" -> "present.0.key"), of ONNX Runtime ("past_0" ->
 * "present_0", "past_key_self_0") and of transformers ("past_key_values_0_key"). */
#include "base/poly.h"
#include "passes/recognise/bind.h"

static const char *name_at(const lp_op *func, const char *attr, int32_t index) {
  const lp_attr *names = lp_op_attr(func, attr);
  return names && index < names->count ? names->ss[index] : "";
}

const char *lp_bind_input(const lp_bind *b, int32_t index) {
  return name_at(b->func, "inputs", index);
}

const char *lp_bind_output(const lp_bind *b, int32_t index) {
  return name_at(b->func, "outputs", index);
}

bool lp_bind_is_past(const lp_bind *b, int32_t input) {
  return lp_has_prefix(b->input_role[input], "past");
}

const lp_poly *lp_bind_past_length(const lp_bind *b) {
  for (int32_t i = 0; i < b->block->arg_count; i++)
    if (lp_bind_is_past(b, i)) return b->block->arg[i]->type.dim[b->block->arg[i]->type.rank - 2];
  return NULL;
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* [b, heads, p, d], or several stacked: keys and values [2, b, heads, p, d], layers [layers, b, heads, p, d], or both
 * [layers, 2, b, heads, p, d] */
static bool is_cache_type(lp_type type) {
  int64_t stacked;
  if (!lp_dtype_is_float(type.dtype) || type.rank < 4 || type.rank > 6) return false;
  for (int32_t i = 0; i < type.rank - 4; i++)
    if (!lp_type_static_dim(type, i, &stacked)) return false;
  return true;
}

/* Tells whether `present` continues `past` along the axis: their types are equal except for that axis, which is
 * longer. */
static bool grows_along(const lp_bind *b, lp_type past, lp_type present, int32_t axis) {
  for (int32_t i = 0; i < past.rank; i++) {
    bool equal = lp_poly_equal(past.dim[i], present.dim[i]);
    if (i == axis ? equal || lp_poly_is_const(past.dim[i], NULL) : !equal) return false;
  }
  const lp_poly *grown = lp_poly_sub(b->module->arena, present.dim[axis], past.dim[axis]);
  return grown && lp_poly_ge(b->module->arena, grown, lp_dim_const(b->module, 0));
}

static bool widens(const lp_op *op, lp_dtype wide) {
  return op->kind == LP_ONNX_Cast && op->out[0]->type.dtype == wide;
}

/* Tells whether the graph widens the whole past to `wide` before anything else reads it. Exporters of half-precision
 * models leave such casts where a layer computes its keys in f32. */
static bool is_widened(const lp_value *past, lp_dtype wide) {
  if (!lp_dtype_is_float(wide) || lp_dtype_bits(wide) <= lp_dtype_bits(past->type.dtype)) return false;
  for (const lp_use *use = past->uses; use; use = use->next)
    if (!widens(use->owner, wide) && use->owner->kind != LP_ONNX_Shape) return false;
  return true;
}

/* Gives the past the type of its present, so that no row loses precision between steps. */
static void widen(lp_value *past, lp_dtype wide) {
  past->type.dtype = wide;
  for (const lp_use *use = past->uses, *next; use; use = next) {
    next = use->next;
    if (widens(use->owner, wide)) lp_value_replace(use->owner->out[0], past);
  }
}

/* The axis along which `present` continues `past`, or -1: the last but one, as a rule. */
static int32_t growing_axis(const lp_bind *b, const lp_value *from, lp_type present) {
  lp_type past = from->type;
  if (past.rank != present.rank) return -1;
  if (past.dtype != present.dtype && !is_widened(from, present.dtype)) return -1;
  const int32_t axes[] = {past.rank - 2, 1, 3};
  for (size_t i = 0; i < (past.rank == 4 ? LP_COUNT(axes) : 1); i++)
    if (grows_along(b, past, present, axes[i])) return axes[i];
  return -1;
}

static bool is_pair(const lp_bind *b, int32_t input, int32_t output) {
  if (!lp_streq(b->output_role[output], "data")) return false;
  const lp_value *past = b->block->arg[input];
  return is_cache_type(past->type) && growing_axis(b, past, lp_op_in(b->end, output)->type) >= 0;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* `name` with its first `from` replaced by `to`; NULL when `from` does not occur. Release with free(). */
static char *replaced(const char *name, const char *from, const char *to) {
  const char *at = strstr(name, from);
  lp_buf text = {0};
  if (!at) return NULL;
  lp_buf_append(&text, name, (size_t)(at - name));
  lp_buf_puts(&text, to);
  lp_buf_puts(&text, at + strlen(from));
  return text.data;
}

static int32_t find_output(const lp_bind *b, const char *name) {
  for (int32_t i = 0; i < b->end->in_count; i++)
    if (lp_streq(lp_bind_output(b, i), name)) return i;
  return -1;
}

/* The names of the output that continues an input: the first text of a form is replaced by the second. */
static const char *const forms[][2] = {{"past_key_values", "present"},
                                       {"past_key_values", "present_key_values"},
                                       {"past_key_values", "new_key_values"},
                                       {"past", "present"},
                                       {"past", "new"},
                                       {"cache", "new_cache"}};

static int32_t named_by(const lp_bind *b, int32_t input, size_t form) {
  LP_OWNED(lp_free_at) char *name = replaced(lp_bind_input(b, input), forms[form][0], forms[form][1]);
  return name ? find_output(b, name) : -1;
}

static int32_t pair_by_name(const lp_bind *b, int32_t input) {
  for (size_t i = 0; i < LP_COUNT(forms); i++) {
    int32_t output = named_by(b, input, i);
    if (output >= 0 && is_pair(b, input, output)) return output;
  }
  return -1;
}

static int32_t pair_by_order(const lp_bind *b, int32_t input) {
  for (int32_t i = 0; i < b->end->in_count; i++)
    if (is_pair(b, input, i)) return i;
  return -1;
}

/* ---- roles ------------------------------------------------------------------------------------------------------- */

static const struct {
  const char *past, *present;
} roles[] = {{"past_key", "present_key"}, {"past_value", "present_value"}, {"past_kv", "present_kv"}};

/* Pairs stacked caches by rank, others by name, and those without a name by their order: a layer's keys come before its
 * values. */
static size_t role_of(const lp_bind *b, int32_t input, int32_t turn) {
  if (b->block->arg[input]->type.rank > 4) return 2;
  const char *name = lp_bind_input(b, input), *rest = strstr(name, "past_key_values");
  name = rest ? rest + strlen("past_key_values") : name;
  if (strstr(name, "value") || strstr(name, "_v")) return 1;
  if (strstr(name, "key") || strstr(name, "_k")) return 0;
  return (size_t)(turn % 2);
}

static lp_status set_pair(lp_bind *b, int32_t input, int32_t output, int32_t turn) {
  size_t role = role_of(b, input, turn);
  lp_value *past = b->block->arg[input];
  lp_type present = lp_op_in(b->end, output)->type;
  int32_t axis = growing_axis(b, past, present);
  b->input_role[input] = roles[role].past;
  b->output_role[output] = roles[role].present;
  b->pair[input] = output;
  if (past->type.dtype != present.dtype) widen(past, present.dtype);
  if (axis == past->type.rank - 2) return LP_OK;
  lp_op_set_i64(b->module, b->func, lp_arena_format(b->module->arena, "grows_%s", lp_bind_input(b, input)), axis);
  return lp_bind_order_axes(b, input, output, axis);
}

/* Tells whether the input has the name of a cache that no output continues. Caches of an encoder's states stay as they
 * are. */
static bool is_unpaired_cache(const lp_bind *b, int32_t input) {
  const char *name = lp_bind_input(b, input), *rest = strstr(name, "past_key_values");
  bool cache = (strstr(name, "past") || strstr(name, "cache")) && !strstr(name, "encoder") && !strstr(name, "cross");
  lp_type type = b->block->arg[input]->type;
  rest = rest ? rest + strlen("past_key_values") : name;
  return cache && input != b->tokens && !lp_bind_is_past(b, input) && lp_dtype_is_float(type.dtype) && type.rank >= 4 &&
         (!rest[0] || strstr(rest, "key") || strstr(rest, "value"));
}

/* Tells whether the graph writes rows into the value, in whichever order its axes are. */
static bool is_written(const lp_value *value, int depth) {
  for (const lp_use *use = value->uses; use && depth < 4; use = use->next) {
    const lp_op *op = use->owner;
    bool writes =
        op->kind == LP_ONNX_ScatterElements || op->kind == LP_ONNX_ScatterND || op->kind == LP_ONNX_TensorScatter;
    bool turns = op->kind == LP_ONNX_Transpose || lp_op_has(op, LP_IN_ORDER);
    if (use->value != lp_op_in(op, 0)) continue;
    if (writes || (turns && is_written(op->out[0], depth + 1))) return true;
  }
  return false;
}

/* Tells whether the input is a buffer of constant length, into which the graph writes new rows. */
static bool is_buffer(const lp_bind *b, int32_t input) {
  const lp_value *arg = b->block->arg[input];
  return !lp_bind_is_past(b, input) && lp_dtype_is_float(arg->type.dtype) && arg->type.rank >= 3 && is_written(arg, 0);
}

/* The output that continues the input by its name; NULL: none has such a name. */
static const lp_value *continues_by_name(const lp_bind *b, int32_t input) {
  for (size_t i = 0; i < LP_COUNT(forms); i++) {
    int32_t output = named_by(b, input, i);
    if (output >= 0 && lp_streq(b->output_role[output], "data")) return lp_op_in(b->end, output);
  }
  return NULL;
}

static bool has_same_sizes(lp_type a, lp_type b) {
  for (int32_t i = 0; i < a.rank && a.rank == b.rank; i++)
    if (!lp_poly_equal(a.dim[i], b.dim[i])) return false;
  return a.rank == b.rank;
}

static const char *why_unpaired(const lp_bind *b, int32_t input) {
  const lp_value *past = b->block->arg[input], *next = continues_by_name(b, input);
  if (is_buffer(b, input))
    return "the graph writes new rows into this cache, a buffer of constant length: a cache that grows is needed";
  if (next && has_same_sizes(past->type, next->type))
    return "the output that continues this cache is as long as it, because old rows leave it or the graph writes into "
           "it: a cache that grows is needed";
  if (next)
    return "the output that continues this cache does not hold all its rows and the new ones: a cache that grows is "
           "needed";
  return "no output continues this cache: an output of its type with one longer axis is needed";
}

static lp_status check_unpaired(const lp_bind *b) {
  for (int32_t i = 0; i < b->block->arg_count; i++) {
    if (!is_buffer(b, i) && !is_unpaired_cache(b, i)) continue;
    lp_loc loc = {.file = b->end->loc.file, .node = lp_bind_input(b, i), .op = "input"};
    lp_status status = lp_error(b->diag, loc, "%s", why_unpaired(b, i));
    lp_note(b->diag, loc,
            "caches are [b, heads, p, d], [b, p, heads, d], [b, heads, d, p], or [b, heads, p, d] stacked: [2, ...], "
            "[layers, ...] or [layers, 2, ...]; buffers of constant length are supported where GroupQueryAttention, or "
            "ScatterND or ScatterElements at the positions after the past, writes the new rows of four axes: otherwise "
            "export the model with a cache that grows (a DynamicCache of transformers)");
    return status;
  }
  return LP_OK;
}

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

/* The result of a causal convolution or a linear attention (`is_state`) that continues `past`, which nothing else uses;
 * NULL for anything else. */
static const lp_value *next_columns(const lp_value *past, bool *is_state) {
  const lp_op *op = lp_value_has_one_use(past) ? past->uses->owner : NULL;
  *is_state = lp_op_is(op, LP_ONNX_LinearAttention);
  bool goes_on = lp_op_is(op, LP_ONNX_CausalConvWithState) || lp_op_is(op, LP_ONNX_MsCausalConvWithState) || *is_state;
  return goes_on && lp_op_in(op, 3) == past ? lp_op_out(op, 1) : NULL;
}

/* Finds the columns of causal convolutions, and the states of linear attentions. They have no axis that counts
 * positions, so another past must count them. */
static lp_status pair_columns(lp_bind *b) {
  for (int32_t i = 0; i < b->block->arg_count; i++) {
    bool is_state;
    const lp_value *past = b->block->arg[i], *next = next_columns(past, &is_state);
    int32_t output = 0;
    while (output < b->end->in_count && lp_op_in(b->end, output) != next)
      output++;
    if (!next || output == b->end->in_count || past->type.dtype != next->type.dtype) continue;
    if (!lp_bind_past_length(b))
      return lp_error(
          b->diag, b->end->loc, "input '%s' continues a %s, but no keys and values of past positions count its %s",
          lp_bind_input(b, i), is_state ? "linear attention" : "convolution", is_state ? "tokens" : "columns");
    b->input_role[i] = is_state ? "state_past" : "conv_past";
    b->output_role[output] = is_state ? "state_present" : "conv_present";
    b->pair[i] = output;
  }
  return LP_OK;
}

lp_status lp_bind_pair_pasts(lp_bind *b) {
  int32_t turn = 0;
  for (int32_t i = 0; i < b->block->arg_count; i++) {
    int32_t output = i == b->tokens ? -1 : pair_by_name(b, i);
    if (output >= 0) LP_TRY(set_pair(b, i, output, turn++));
  }
  for (int32_t i = 0; i < b->block->arg_count; i++) {
    int32_t output = i == b->tokens || lp_bind_is_past(b, i) ? -1 : pair_by_order(b, i);
    if (output >= 0) LP_TRY(set_pair(b, i, output, turn++));
  }
  LP_TRY(check_unpaired(b));
  return pair_columns(b);
}
