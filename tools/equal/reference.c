/* Runs the imported graph on the steps of a generation, by the reference interpreter. */
#include "tools/equal/reference.h"
#include "base/poly.h"
#include "base/random.h"
#include "passes/passes.h"

#include <stdlib.h>
#include <string.h>

enum { OPEN_SIZE = 6 }; /* size of an axis that nothing determines, such as the length of an encoder's input */

typedef enum { TOKENS, PAST, MASK, POSITIONS, ZEROS, SWITCH, DATA } input_kind;

typedef struct {
  const char *name;
  lp_value *value;
  input_kind kind;
  int32_t present;   /* of a past: the output that continues it */
  int32_t grows;     /* of a past: its axis of positions */
  const char *means; /* of a mask of four axes: "shows", "hides", "added" (bind-inputs); else NULL */
  lp_array array;
} graph_input;

struct lp_reference {
  lp_module *module;
  const lp_op *end;
  graph_input *input;
  int32_t count, tokens, logits;
  bool has_past;
  lp_arena *arena, *before; /* of the last step, and of the one before it */
  int64_t *sym;
  bool *bound;
  int64_t batch, past;
  uint64_t drawn;
  LP_VEC(int64_t) history; /* [position][batch]: of a graph without caches */
};

/* ---- roles of inputs --------------------------------------------------------------------------------------------- */

static int32_t find_text(const lp_attr *texts, const char *name) {
  for (int32_t i = 0; texts && i < texts->count; i++)
    if (lp_streq(texts->ss[i], name)) return i;
  return -1;
}

static bool follower_kind(const char *name, input_kind *out) {
  static const struct {
    const char *part;
    input_kind kind;
  } parts[] = {{"use_cache", SWITCH}, {"token_type", ZEROS}, {"mask", MASK}, {"position", POSITIONS}};
  for (size_t i = 0; i < LP_COUNT(parts); i++)
    if (strstr(name, parts[i].part)) {
      *out = parts[i].kind;
      return true;
    }
  return false;
}

/* `bound` is @main of the copy after bind-inputs, which keeps the inputs that do not follow from sizes. */
static lp_status learn_input(lp_reference *r, const lp_op *bound, int32_t index, lp_diag *diag) {
  graph_input *in = &r->input[index];
  int32_t rank = in->value->type.rank;
  const lp_attr *roles = lp_op_attr(bound, "input_roles"), *pairs = lp_op_attr(bound, "past_pair");
  int32_t at = find_text(lp_op_attr(bound, "inputs"), in->name);
  in->kind = DATA;
  if (at < 0 && !follower_kind(in->name, &in->kind))
    return lp_error(diag, LP_LOC_FILE(r->module->name), "input '%s' cannot be given by a comparison", in->name);
  const char *means = lp_op_str(bound, lp_arena_format(r->module->arena, "mask_of_%s", in->name), NULL);
  in->means = means ? lp_arena_strdup(r->module->arena, means) : NULL;
  if (at < 0) return LP_OK;
  if (lp_streq(roles->ss[at], "tokens")) {
    in->kind = TOKENS;
    r->tokens = index;
  } else if (lp_has_prefix(roles->ss[at], "past")) {
    in->kind = PAST;
    in->present = (int32_t)pairs->is[at];
    in->grows = (int32_t)lp_op_i64(bound, lp_arena_format(r->module->arena, "grows_%s", in->name), rank - 2);
    r->has_past = true;
  }
  return LP_OK;
}

static lp_status learn(lp_reference *r, const lp_module *copy, lp_diag *diag) {
  const lp_op *main = lp_module_find_func(r->module, "main"), *bound = lp_module_find_func(copy, "main");
  const lp_attr *names = lp_op_attr(main, "inputs");
  r->end = lp_block_terminator(main->region);
  r->count = main->region->arg_count;
  r->input = lp_alloc(((size_t)r->count + 1) * sizeof *r->input);
  r->tokens = -1;
  for (int32_t i = 0; i < r->count; i++) {
    r->input[i].name = names->ss[i];
    r->input[i].value = main->region->arg[i];
    LP_TRY(learn_input(r, bound, i, diag));
  }
  r->logits = find_text(lp_op_attr(bound, "output_roles"), "logits");
  if (r->tokens >= 0 && r->logits >= 0) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(r->module->name), "the model has no tokens or logits to compare");
}

/* Replaces operators that ONNX Runtime adds to ONNX by the standard's, with the pass decompose, because the interpreter
 * lacks them. */
static lp_status expand(lp_reference *r, lp_diag *diag) {
  const lp_compile_request request = {.generation = false};
  const lp_run_options run = {.verify_each = false};
  LP_FOR_OPS(op, lp_module_find_func(r->module, "main")->region)
  if (lp_has_prefix(lp_op_info_get(op->kind)->name, "com.microsoft"))
    return lp_passes_run(r->module, "decompose", &request, &run, diag);
  return LP_OK;
}

lp_status lp_reference_open(const char *model, const lp_import_options *import, lp_reference **out, lp_diag *diag) {
  const lp_compile_request request = {.generation = true};
  const lp_run_options run = {.verify_each = false};
  lp_reference *r = lp_alloc(sizeof *r);
  lp_module *copy = NULL;
  lp_diag *quiet = lp_diag_create(); /* compilation has reported it already */
  lp_status status = lp_model_import(model, import, &r->module, quiet);
  if (status == LP_OK) status = lp_model_import(model, import, &copy, quiet);
  if (status == LP_OK) status = lp_passes_run(copy, "fold,bind-inputs", &request, &run, quiet);
  if (status == LP_OK) status = expand(r, quiet);
  if (status != LP_OK) lp_report_error(diag, LP_LOC_FILE(model), "has no generation protocol to compare steps of");
  if (status == LP_OK) status = learn(r, copy, diag);
  if (status == LP_OK) {
    r->module->eval_steps = INT64_MAX; /* the limit is not for whole models */
    r->sym = lp_alloc((r->module->symbols.names.count + 1) * sizeof *r->sym);
    r->bound = lp_alloc((r->module->symbols.names.count + 1) * sizeof *r->bound);
    r->arena = lp_arena_create();
    *out = r;
  } else {
    lp_reference_free(r);
  }
  if (copy) lp_module_free(copy);
  lp_diag_free(quiet);
  return status;
}

void lp_reference_free(lp_reference *r) {
  if (!r) return;
  lp_arena_free(r->arena);
  lp_arena_free(r->before);
  if (r->module) lp_module_free(r->module);
  lp_vec_free(&r->history);
  free(r->input);
  free(r->sym);
  free(r->bound);
  free(r);
}

static int64_t token_axis(const lp_reference *r, int32_t axis) {
  int64_t size;
  return lp_type_static_dim(r->input[r->tokens].value->type, axis, &size) ? size : 0;
}

int64_t lp_reference_batch(const lp_reference *r) {
  return token_axis(r, 0);
}

int64_t lp_reference_length(const lp_reference *r) {
  return token_axis(r, 1);
}

int64_t lp_reference_vocab(const lp_reference *r) {
  int64_t vocab = 0;
  (void)lp_type_static_dim(lp_op_in(r->end, r->logits)->type, -1, &vocab);
  return vocab;
}

lp_dtype lp_reference_dtype(const lp_reference *r) {
  lp_dtype least = LP_F32;
  LP_FOR_OPS(op, lp_module_find_func(r->module, "main")->region)
  for (int32_t i = 0; i < op->out_count; i++) {
    lp_dtype dtype = op->out[i]->type.dtype;
    if (dtype == LP_BF16 || (dtype == LP_F16 && least != LP_BF16)) least = dtype;
  }
  return least;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static bool is_one(const graph_input *in, int32_t axis) {
  int64_t size;
  return lp_type_static_dim(in->value->type, axis, &size) && size == 1;
}

/* The size of an axis of an input in a pass of `fresh` tokens after `past`; -1: the value of its symbol. */
static int64_t wanted_size(const lp_reference *r, const graph_input *in, int32_t axis, int64_t past, int64_t fresh) {
  int32_t rank = in->value->type.rank;
  switch (in->kind) {
  case TOKENS:
  case ZEROS:
    return axis == 0 ? r->batch : fresh;
  case PAST:
    return axis == rank - 4 ? r->batch : axis == in->grows ? past : -1;
  case MASK:
    if (rank == 2) return axis == 0 ? r->batch : past + fresh;
    if (!in->means || axis == 1) return -1;
    return axis == 0 ? r->batch : axis == 3 ? past + fresh : is_one(in, axis) ? 1 : fresh;
  case POSITIONS:
    return axis == rank - 1 ? fresh : r->batch;
  default:
    return -1;
  }
}

static lp_status take_axis(lp_reference *r, graph_input *in, int32_t axis, int64_t wanted, lp_diag *diag) {
  const lp_poly *dim = in->value->type.dim[axis];
  lp_symbol symbol = dim->count == 1 && dim->term[0].coef == 1 && !dim->term[0].symbol[1] ? dim->term[0].symbol[0] : 0;
  if (symbol && !r->bound[symbol - 1]) {
    r->bound[symbol - 1] = true;
    r->sym[symbol - 1] = wanted >= 0 ? wanted : axis == 0 ? r->batch : OPEN_SIZE;
  }
  int64_t size = lp_poly_eval(dim, r->sym, r->module->symbols.names.count);
  in->array.dim[axis] = size;
  if (wanted < 0 || size == wanted) return LP_OK;
  if (axis == 0 && size == 1) return LP_OK; /* one row for the whole batch */
  return lp_error(diag, LP_LOC_FILE(r->module->name), "axis %d of input '%s' is %" PRId64 ", a step needs %" PRId64,
                  axis, in->name, size, wanted);
}

static lp_status take_sizes(lp_reference *r, int64_t past, int64_t fresh, lp_diag *diag) {
  memset(r->bound, 0, r->module->symbols.names.count * sizeof *r->bound);
  for (int turn = TOKENS; turn <= DATA; turn++)
    for (int32_t i = 0; i < r->count; i++) {
      graph_input *in = &r->input[i];
      if ((int)in->kind != turn) continue;
      in->array.dtype = in->value->type.dtype;
      in->array.rank = in->value->type.rank;
      for (int32_t axis = 0; axis < in->array.rank; axis++)
        LP_TRY(take_axis(r, in, axis, wanted_size(r, in, axis, past, fresh), diag));
    }
  return LP_OK;
}

/* ---- content ----------------------------------------------------------------------------------------------------- */

static int64_t numel(const lp_array *array) {
  int64_t count = 1;
  for (int32_t i = 0; i < array->rank; i++)
    count *= array->dim[i];
  return count;
}

static size_t bytes_of(const lp_array *array) {
  return (size_t)(numel(array) * lp_dtype_bits(array->dtype) + 7) / 8;
}

/* An element of a mask of four axes: it shows the keys of the past and those up to the diagonal. One row stands for all
 * queries. */
static double mask_element(const graph_input *in, int64_t i) {
  const lp_array *a = &in->array;
  int64_t keys = a->dim[3], row = i / keys % a->dim[2];
  bool sees = i % keys <= row + (in->means ? keys - a->dim[2] : 0);
  if (in->means && lp_streq(in->means, "added")) return sees ? 0 : a->dtype == LP_F16 ? -65504.0 : -3e38;
  return sees != (in->means && lp_streq(in->means, "hides"));
}

/* Element `i` of an input that follows from the sizes. */
static double follower(const graph_input *in, int64_t i, int64_t past) {
  const lp_array *a = &in->array;
  int64_t last = a->rank > 0 ? a->dim[a->rank - 1] : 1;
  switch (in->kind) {
  case MASK:
    return a->rank < 4 ? 1 : mask_element(in, i);
  case POSITIONS:
    return (double)(past + i % last);
  case SWITCH:
    return 1;
  default:
    return 0;
  }
}

/* Small numbers around 0, which differ between inputs and are the same in every step of a sequence. */
static double datum(const lp_reference *r, int32_t input, int64_t i) {
  double number = lp_random_uniform(r->drawn, (uint64_t)input, (uint64_t)i);
  return lp_dtype_is_float(r->input[input].array.dtype) ? 2 * number - 1 : 1;
}

static void put(lp_array *array, int64_t i, double number) {
  if (lp_dtype_is_float(array->dtype))
    lp_array_set_f64(array, i, number);
  else
    lp_array_set_i64(array, i, (int64_t)number);
}

static void fill(lp_reference *r, int32_t index, const int64_t *tokens, int64_t past) {
  graph_input *in = &r->input[index];
  int64_t count = numel(&in->array);
  if (in->kind == PAST && past > 0) return; /* reads the last step's present */
  in->array.data = lp_arena_alloc(r->arena, bytes_of(&in->array) + 1);
  for (int64_t i = 0; i < count; i++) {
    if (in->kind == TOKENS)
      lp_array_set_i64(&in->array, i, tokens[i]);
    else
      put(&in->array, i, in->kind == DATA ? datum(r, index, i) : follower(in, i, past));
  }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

lp_status lp_reference_begin(lp_reference *r, int64_t batch, lp_diag *diag) {
  (void)diag;
  r->batch = batch;
  r->past = 0;
  r->history.count = 0;
  r->drawn++;
  return LP_OK;
}

/* Evaluates the graph once: logits, and the presents when there are pasts. */
static lp_status evaluate(lp_reference *r, const int64_t *tokens, int64_t past, int64_t count, lp_array *logits,
                          lp_diag *diag) {
  LP_TRY(take_sizes(r, past, count, diag));
  lp_binding *bindings = LP_NEW_ARRAY(r->arena, lp_binding, r->count + 1);
  lp_value **values = LP_NEW_ARRAY(r->arena, lp_value *, r->count + 1);
  lp_array *found = LP_NEW_ARRAY(r->arena, lp_array, r->count + 1);
  size_t wanted = 1;
  values[0] = lp_op_in(r->end, r->logits);
  for (int32_t i = 0; i < r->count; i++) {
    fill(r, i, tokens, past);
    bindings[i] = (lp_binding){r->input[i].value, r->input[i].array};
    if (r->input[i].kind == PAST) values[wanted++] = lp_op_in(r->end, r->input[i].present);
  }
  LP_TRY(lp_values_eval(r->module, values, wanted, bindings, (size_t)r->count, r->sym, r->arena, found, diag));
  wanted = 1;
  for (int32_t i = 0; i < r->count; i++)
    if (r->input[i].kind == PAST) r->input[i].array = found[wanted++];
  *logits = found[0];
  if (logits->rank != 2) return LP_OK;
  logits->rank = 3; /* of the last position only */
  logits->dim[2] = logits->dim[1];
  logits->dim[1] = 1;
  return LP_OK;
}

/* The rows of the last `count` positions of logits[batch][all][vocab]. */
static lp_array last_rows(lp_reference *r, const lp_array *all, int64_t count) {
  lp_array last = *all;
  last.dim[1] = count;
  size_t row = bytes_of(all) / (size_t)(all->dim[0] * all->dim[1]), size = row * (size_t)count;
  char *data = lp_arena_alloc(r->arena, bytes_of(&last) + 1);
  for (int64_t b = 0; b < all->dim[0]; b++)
    memcpy(data + (size_t)b * size, (const char *)all->data + (size_t)((b + 1) * all->dim[1] - count) * row, size);
  last.data = data;
  return last;
}

lp_status lp_reference_step(lp_reference *r, const int64_t *tokens, int64_t count, lp_array *logits, lp_diag *diag) {
  lp_arena_free(r->before);
  r->before = r->arena; /* holds the presents that this step reads */
  r->arena = lp_arena_create();
  int64_t past = r->past;
  r->past += count;
  if (r->has_past) return evaluate(r, tokens, past, count, logits, diag);
  for (int64_t i = 0; i < count; i++)
    for (int64_t b = 0; b < r->batch; b++)
      lp_vec_push(&r->history, tokens[b * count + i]);
  int64_t *whole = LP_NEW_ARRAY(r->arena, int64_t, r->batch * r->past);
  for (int64_t b = 0; b < r->batch; b++)
    for (int64_t i = 0; i < r->past; i++)
      whole[b * r->past + i] = r->history.data[i * r->batch + b];
  LP_TRY(evaluate(r, whole, 0, r->past, logits, diag));
  if (logits->rank == 3 && logits->dim[1] == 1) return LP_OK;
  if (logits->rank != 3 || logits->dim[1] != r->past)
    return lp_error(diag, LP_LOC_FILE(r->module->name), "the logits are not of every position");
  *logits = last_rows(r, logits, count);
  return LP_OK;
}

static lp_verify_array as_verify(const graph_input *in) {
  lp_verify_array array = {.name = in->name,
                           .dtype = lp_dtype_name(in->array.dtype),
                           .rank = in->array.rank,
                           .data = in->array.data,
                           .size = bytes_of(&in->array)};
  memcpy(array.dim, in->array.dim, sizeof array.dim < sizeof in->array.dim ? sizeof array.dim : sizeof in->array.dim);
  return array;
}

size_t lp_reference_data(const lp_reference *r, lp_verify_array *out) {
  size_t count = 0;
  for (int32_t i = 0; i < r->count; i++) {
    if (r->input[i].kind != DATA) continue;
    if (out) out[count] = as_verify(&r->input[i]);
    count++;
  }
  return count;
}

lp_verify_array lp_reference_tokens(const lp_reference *r) {
  return as_verify(&r->input[r->tokens]);
}
