/* Sizes and contents of a graph's inputs at a step of a generation. */
#include "tools/equal/inputs.h"
#include "base/poly.h"
#include "base/random.h"

enum {
  OPEN_SIZE = 6,    /* size of an axis that nothing determines, such as the length of an encoder's input */
  PADDING = 2,      /* positions that a shorter sequence of the encoder lacks */
  SOURCE_TOKENS = 8 /* different tokens that the encoder reads */
};

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static bool is_one(const lp_step_input *in, int32_t axis) {
  int64_t size;
  return lp_type_static_dim(in->value->type, axis, &size) && size == 1;
}

/* Tells whether the size is a number, as that of a buffer for all positions. */
static bool is_constant(const lp_step_input *in, int32_t axis) {
  return lp_poly_is_const(in->value->type.dim[axis], NULL);
}

/* The size of an axis of an input in a pass of `fresh` tokens after `past`; -1: the value of its symbol. */
static int64_t wanted_size(const lp_step_inputs *r, const lp_step_input *in, int32_t axis, int64_t past,
                           int64_t fresh) {
  int32_t rank = in->value->type.rank;
  switch (in->kind) {
  case LP_STEP_TOKENS:
  case LP_STEP_ZEROS:
    return axis == 0 ? r->batch : fresh;
  case LP_STEP_PAST:
    if (in->grows < 0) return axis == 0 ? r->batch : -1;
    return axis == rank - 4 ? r->batch : axis == in->grows && !is_constant(in, axis) ? past : -1;
  case LP_STEP_MASK:
    if (rank == 2 && !in->means) return axis == 0 ? r->batch : past + fresh;
    if (!in->means || axis == rank - 3) return -1;
    return axis == rank - 4 ? r->batch : axis == rank - 1 ? past + fresh : is_one(in, axis) ? 1 : fresh;
  case LP_STEP_POSITIONS:
    return axis == rank - 1 ? fresh : r->batch;
  case LP_STEP_LAST:
    return r->batch;
  case LP_STEP_TOTAL:
    return 1;
  default:
    return -1;
  }
}

static lp_status take_axis(lp_step_inputs *r, lp_step_input *in, int32_t axis, int64_t wanted, lp_diag *diag) {
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

lp_status lp_step_inputs_size(lp_step_inputs *r, int64_t past, int64_t fresh, lp_diag *diag) {
  memset(r->bound, 0, r->module->symbols.names.count * sizeof *r->bound);
  for (int turn = LP_STEP_TOKENS; turn <= LP_STEP_SOURCE_MASK; turn++)
    LP_FOR_EACH(lp_step_input, in, r->input, r->count) {
      if ((int)in->kind != turn) continue;
      in->array.dtype = in->value->type.dtype;
      in->array.rank = in->value->type.rank;
      for (int32_t axis = 0; axis < in->array.rank; axis++)
        LP_TRY(take_axis(r, in, axis, wanted_size(r, in, axis, past, fresh), diag));
    }
  return LP_OK;
}

/* ---- content ----------------------------------------------------------------------------------------------------- */

/* An element of a mask with rows of queries: it shows the keys of the past and those up to the diagonal. One row stands
 * for all queries. */
static double mask_element(const lp_step_input *in, int64_t i) {
  const lp_array *a = &in->array;
  int64_t keys = a->dim[a->rank - 1], rows = a->dim[a->rank - 2], row = i / keys % rows;
  bool sees = i % keys <= row + (in->means ? keys - rows : 0);
  if (in->means && lp_streq(in->means, "added")) return sees ? 0 : a->dtype == LP_F16 ? -65504.0 : -3e38;
  return sees != (in->means && lp_streq(in->means, "hides"));
}

/* Element `i` of an input that follows from the sizes; `total` counts the past and the new tokens. */
static double follower(const lp_step_input *in, int64_t i, int64_t past, int64_t total) {
  const lp_array *a = &in->array;
  int64_t last = a->rank > 0 ? a->dim[a->rank - 1] : 1;
  switch (in->kind) {
  case LP_STEP_MASK:
    return a->rank < 4 && !in->means ? 1 : mask_element(in, i);
  case LP_STEP_POSITIONS:
    return (double)(past + i % last);
  case LP_STEP_SWITCH:
    return past > 0; /* as generation code sets it: the first step runs the branch without a past */
  case LP_STEP_LAST:
    return (double)(total - 1);
  case LP_STEP_TOTAL:
    return (double)total;
  default:
    return 0;
  }
}

/* Draws a small number around 0. The numbers differ between inputs, and are the same in every step of a sequence. */
static double datum(const lp_step_inputs *r, int32_t input, int64_t i) {
  double number = lp_random_uniform(r->drawn, (uint64_t)input, (uint64_t)i);
  return lp_dtype_is_float(r->input[input].array.dtype) ? 2 * number - 1 : 1;
}

/* Element `i` of an encoder's tokens, which are at least 2, or of their mask. */
static double source(const lp_step_inputs *r, int32_t input, int64_t i) {
  const lp_step_input *in = &r->input[input];
  int64_t last = in->array.rank > 0 ? in->array.dim[in->array.rank - 1] : 1;
  if (in->kind == LP_STEP_SOURCE)
    return 2 + (double)(lp_random_bits(r->drawn, (uint64_t)input, (uint64_t)i) % SOURCE_TOKENS);
  bool shorter = i / last % 2 == 1 && last > PADDING;
  return !shorter || i % last < last - PADDING;
}

static void put(lp_array *array, int64_t i, double number) {
  if (lp_dtype_is_float(array->dtype))
    lp_array_set_f64(array, i, number);
  else
    lp_array_set_i64(array, i, (int64_t)number);
}

static void fill(lp_step_inputs *r, int32_t index, const int64_t *tokens, int64_t past, lp_arena *arena) {
  lp_step_input *in = &r->input[index];
  int64_t count = lp_array_numel(&in->array), total = past + r->input[r->tokens].array.dim[1];
  if (in->kind == LP_STEP_PAST && past > 0) return; /* reads the last step's present */
  in->array.data = lp_arena_alloc(arena, lp_array_bytes(&in->array) + 1);
  for (int64_t i = 0; i < count; i++)
    if (in->kind == LP_STEP_TOKENS)
      lp_array_set_i64(&in->array, i, tokens[i]);
    else if (in->kind >= LP_STEP_SOURCE)
      put(&in->array, i, source(r, index, i));
    else
      put(&in->array, i, in->kind == LP_STEP_DATA ? datum(r, index, i) : follower(in, i, past, total));
}

void lp_step_inputs_fill(lp_step_inputs *r, const int64_t *tokens, int64_t past, lp_arena *arena) {
  for (int32_t i = 0; i < r->count; i++)
    fill(r, i, tokens, past, arena);
}
