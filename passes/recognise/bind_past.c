/* Finds the inputs that are past keys and values, and the outputs that continue them. Exporters agree on no names;
 * these are those of optimum ("past_key_values.0.key" -> "present.0.key"), of ONNX Runtime ("past_0" -> "present_0",
 * "past_key_self_0") and of transformers ("past_key_values_0_key"). */
#include "base/poly.h"
#include "passes/recognise/bind.h"

#include <stdlib.h>
#include <string.h>

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

/* [b, heads, p, d], or keys and values stacked [2, b, heads, p, d] */
static bool is_cache_type(lp_type type) {
  int64_t two;
  if (!lp_dtype_is_float(type.dtype)) return false;
  return type.rank == 4 || (type.rank == 5 && lp_type_static_dim(type, 0, &two) && two == 2);
}

/* Does `present` continue `past`? Their types are equal except for the last axis but one, which is longer. */
static bool continues(const lp_bind *b, lp_type past, lp_type present) {
  if (past.rank != present.rank || past.dtype != present.dtype) return false;
  for (int32_t i = 0; i < past.rank; i++) {
    bool equal = lp_poly_equal(past.dim[i], present.dim[i]);
    if (i == past.rank - 2 ? equal || lp_poly_is_const(past.dim[i], NULL) : !equal) return false;
  }
  const lp_poly *grown = lp_poly_sub(b->module->arena, present.dim[past.rank - 2], past.dim[past.rank - 2]);
  return grown && lp_poly_ge(b->module->arena, grown, lp_dim_const(b->module, 0));
}

static bool is_pair(const lp_bind *b, int32_t input, int32_t output) {
  if (!lp_streq(b->output_role[output], "data")) return false;
  lp_type past = b->block->arg[input]->type;
  return is_cache_type(past) && continues(b, past, lp_op_in(b->end, output)->type);
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

static int32_t pair_by_name(const lp_bind *b, int32_t input) {
  static const char *const forms[][2] = {{"past_key_values", "present"},
                                         {"past_key_values", "present_key_values"},
                                         {"past_key_values", "new_key_values"},
                                         {"past", "present"},
                                         {"past", "new"},
                                         {"cache", "new_cache"}};
  for (size_t i = 0; i < LP_COUNT(forms); i++) {
    char *name = replaced(lp_bind_input(b, input), forms[i][0], forms[i][1]);
    int32_t output = name ? find_output(b, name) : -1;
    free(name);
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
  if (b->block->arg[input]->type.rank == 5) return 2;
  const char *name = lp_bind_input(b, input), *rest = strstr(name, "past_key_values");
  name = rest ? rest + strlen("past_key_values") : name;
  if (strstr(name, "value") || strstr(name, "_v")) return 1;
  if (strstr(name, "key") || strstr(name, "_k")) return 0;
  return (size_t)(turn % 2);
}

static void set_pair(lp_bind *b, int32_t input, int32_t output, int32_t turn) {
  size_t role = role_of(b, input, turn);
  b->input_role[input] = roles[role].past;
  b->output_role[output] = roles[role].present;
  b->pair[input] = output;
}

void lp_bind_pair_pasts(lp_bind *b) {
  int32_t turn = 0;
  for (int32_t i = 0; i < b->block->arg_count; i++) {
    int32_t output = i == b->tokens ? -1 : pair_by_name(b, i);
    if (output >= 0) set_pair(b, i, output, turn++);
  }
  for (int32_t i = 0; i < b->block->arg_count; i++) {
    int32_t output = i == b->tokens || lp_bind_is_past(b, i) ? -1 : pair_by_order(b, i);
    if (output >= 0) set_pair(b, i, output, turn++);
  }
}
