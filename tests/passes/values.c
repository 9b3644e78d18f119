/* See values.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/file.h"
#include "base/poly.h"
#include "passes/passes.h"
#include "passes/state.h"
#include "tests/passes/change.h"
#include "tests/passes/values.h"
#include "tests/suite.h"

enum { MOST_VALUES = 64, WEIGHT_BYTES = 1 << 17, MOST_SYMBOLS = 32 };

static char *folder; /* of the weights */

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static int64_t count_of(const lp_array *array) {
  int64_t count = 1;
  for (int32_t i = 0; i < array->rank; i++)
    count *= array->dim[i];
  return count;
}

/* Element `index` of data number `seed`: floats between -1 and 1, small integers. */
static double number(lp_dtype dtype, uint64_t seed, int64_t index) {
  uint64_t bits = (seed * 1000003u + (uint64_t)index) * 6364136223846793005u + 1442695040888963407u;
  bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9u;
  if (lp_dtype_is_float(dtype)) return (double)(bits >> 11) / 4503599627370496.0 - 1;
  return (double)(bits >> 33 & 1);
}

static bool make_input(lp_arena *arena, lp_type type, const int64_t *sym, size_t symbols, uint64_t seed,
                       lp_array *out) {
  *out = (lp_array){.dtype = type.dtype, .rank = type.rank};
  if (type.rank < 0) return false;
  for (int32_t i = 0; i < type.rank; i++) {
    out->dim[i] = lp_poly_eval(type.dim[i], sym, symbols);
    if (out->dim[i] < 0 || out->dim[i] > 4096) return false;
  }
  const int64_t count = count_of(out);
  if (count > 1 << 16) return false;
  out->data = lp_arena_alloc(arena, (size_t)count * 8 + 8);
  for (int64_t i = 0; i < count; i++)
    lp_array_set_f64(out, i, number(type.dtype, seed, i));
  return true;
}

/* Weights lie in one file for each type. */
void values_begin(void) {
  ck_assert_int_eq(lp_dir_temporary("llmpart-values", &folder, NULL), LP_OK);
  for (int t = 0; t < LP_DTYPE_COUNT; t++) {
    const lp_dtype dtype = (lp_dtype)t;
    lp_array array = {.dtype = dtype, .data = lp_alloc(WEIGHT_BYTES)};
    const int64_t count = (int64_t)WEIGHT_BYTES * 8 / lp_dtype_bits(dtype);
    for (int64_t i = 0; i < count; i++)
      lp_array_set_f64(&array, i, number(dtype, 99, i));
    lp_buf path = {0};
    lp_buf_printf(&path, "%s/%s", folder, lp_dtype_name(dtype));
    ck_assert_int_eq(lp_file_write(lp_buf_text(&path), array.data, WEIGHT_BYTES, NULL), LP_OK);
    lp_buf_free(&path);
    free(array.data);
  }
}

static void find_weights(lp_module *module) {
  module->directory = folder;
  LP_FOR_FUNCS(func, module)
    LP_FOR_OPS(op, func->region)
      if (op->kind == LP_OP_WEIGHT) lp_op_set_str(module, op, "file", lp_dtype_name(op->out[0]->type.dtype));
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* What the functions of a module compute. */
typedef struct {
  lp_array out[MOST_VALUES];
  int32_t count;
} values;

/* b s p r c t, then the others. */
static const int64_t sizes[][6] = {{2, 3, 2, 3, 8, 1}, {1, 1, 4, 1, 8, 1}};

/* Tells whether a result has the sizes of its type. Where it has not, as where a slice leaves fewer rows than usual,
 * the model's types leave these sizes out. */
static bool fits(const lp_array *array, lp_type type, const int64_t *sym, size_t symbols) {
  bool same = array->rank == type.rank;
  for (int32_t i = 0; i < array->rank && same; i++)
    same = array->dim[i] == lp_poly_eval(type.dim[i], sym, symbols);
  return same;
}

static bool compute_function(lp_module *module, const lp_op *func, const int64_t *sym, lp_arena *arena, values *v) {
  const lp_block *block = func->region;
  const lp_op *end = lp_block_terminator(block);
  lp_binding bindings[MOST_VALUES];
  lp_value *results[MOST_VALUES];
  if (block->arg_count > MOST_VALUES || v->count + end->in_count > MOST_VALUES) return false;
  for (int32_t i = 0; i < block->arg_count; i++) {
    bindings[i].value = block->arg[i];
    if (!make_input(arena, block->arg[i]->type, sym, module->symbols.names.count, (uint64_t)i + 7, &bindings[i].array))
      return false;
  }
  for (int32_t i = 0; i < end->in_count; i++)
    results[i] = lp_op_in(end, i);
  if (lp_values_eval(module, results, (size_t)end->in_count, bindings, (size_t)block->arg_count, sym, arena,
                     &v->out[v->count], NULL) != LP_OK)
    return false;
  for (int32_t i = 0; i < end->in_count; i++)
    if (!fits(&v->out[v->count + i], results[i]->type, sym, module->symbols.names.count)) return false;
  v->count += end->in_count;
  return true;
}

/* False: some function has no values at these sizes. */
static bool compute(lp_module *module, size_t size, lp_arena *arena, values *v) {
  int64_t sym[MOST_SYMBOLS];
  v->count = 0;
  module->eval_steps = INT64_MAX;
  if (module->symbols.names.count > MOST_SYMBOLS) return false;
  for (size_t i = 0; i < MOST_SYMBOLS; i++)
    sym[i] = i < 6 ? sizes[size][i] : 4;
  bool known = true;
  LP_FOR_FUNCS(func, module)
    known = known && compute_function(module, func, sym, arena, v);
  return known;
}

static double element(const lp_array *array, int64_t index) {
  const lp_tensor tensor = {.type = {.dtype = array->dtype}, .data = array->data};
  return lp_tensor_f64(&tensor, index);
}

/* What becomes of 0 / 0 and of numbers beyond floats, which changed graphs may have, is not defined. Passes may round
 * sums and products of 16 bits once instead of at each step. */
static bool close_to(lp_dtype dtype, double before, double after) {
  const double step = dtype == LP_BF16 ? 1.0 / 64 : dtype == LP_F16 ? 1.0 / 256 : 1.0 / 512;
  return isnan(before) || fabs(before) > 1e37 || before == after ||
         fabs(before - after) <= step * (1 + fmin(fabs(before), fabs(after)));
}

/* Describes the first difference. */
static bool same(const values *a, const values *b, lp_buf *difference) {
  for (int32_t r = 0; r < a->count && a->count == b->count; r++) {
    if (count_of(&a->out[r]) != count_of(&b->out[r])) break;
    for (int64_t i = 0; i < count_of(&a->out[r]); i++) {
      const double before = element(&a->out[r], i), after = element(&b->out[r], i);
      if (close_to(a->out[r].dtype, before, after)) continue;
      lp_buf_printf(difference, "element %d of result %d is %g, was %g", (int)i, (int)r, after, before);
      return false;
    }
    if (r + 1 == a->count) return true;
  }
  if (a->count == b->count && a->count == 0) return true;
  lp_buf_puts(difference, "the number of results or elements differs");
  return false;
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static const values_step steps[] = {{"fold", false},  {"decompose", false}, {"recognise", false},
                                    {"raise", false}, {"lower", false},     {"fuse", false}};

/* The values of a module at all sizes, as far as they are known: the interpreter does not compute operators that are
 * always decomposed. */
typedef struct {
  values at[LP_COUNT(sizes)];
  bool known[LP_COUNT(sizes)];
} state;

/* Compares the values after a pass with those before it. A module whose values were not known is the next one's
 * "before". */
static bool keeps(lp_module *module, state *before, lp_arena *arena, lp_buf *difference) {
  for (size_t s = 0; s < LP_COUNT(sizes); s++) {
    values after;
    const bool known = compute(module, s, arena, &after);
    if (before->known[s] && !known) return lp_buf_puts(difference, "its values are gone"), false;
    if (before->known[s] && !same(&before->at[s], &after, difference)) return false;
    before->known[s] = known;
    before->at[s] = after;
  }
  return true;
}

static bool admits(const lp_module *module, const lp_pass *pass) {
  const lp_module_state at = lp_module_state_of(module);
  return at >= pass->needs && (at == pass->needs || at < pass->makes);
}

bool values_keep(lp_module *module, const char *name, const values_step *step, size_t count, values_tally *t) {
  lp_arena *arena = lp_arena_create();
  lp_diag *diag = lp_diag_create();
  lp_buf difference = {0};
  state now = {0};
  bool good = keeps(module, &now, arena, &difference);
  bool computed = now.known[0] || now.known[1];
  for (size_t i = 0; i < count && good; i++) {
    if (!admits(module, lp_pass_find(step[i].pass))) continue;
    if (lp_passes_run(module, step[i].pass, NULL, NULL, diag) != LP_OK) {
      ck_assert_msg(lp_diag_error_count(diag) > 0, "%s: %s fails without an error", name, step[i].pass);
      break;
    }
    if (step[i].changes) now = (state){0};
    good = keeps(module, &now, arena, &difference);
    computed |= now.known[0] || now.known[1];
    if (!good) fprintf(stderr, "%s: %s: %s\n", name, step[i].pass, lp_buf_text(&difference));
  }
  t->tried++;
  t->computed += computed;
  t->wrong += !good;
  lp_buf_free(&difference);
  lp_diag_free(diag);
  lp_arena_free(arena);
  return good;
}

/* The module with change `change` of the function with this number; NULL: it is none that verifies. -1: unchanged. */
static lp_module *changed(const char *name, const char *text, size_t size, int64_t change, char *what, bool *more) {
  lp_module *module = NULL;
  *more = change < 0;
  if (lp_module_parse(name, text, size, &module, NULL) != LP_OK) return NULL;
  find_weights(module);
  bool good = true;
  LP_FOR_FUNCS(func, module) {
    if (change >= 0 && !*more) *more = change_function(module, func, &change, what);
    good = good && lp_block_infer(module, func->region, NULL) == LP_OK;
  }
  if (good && lp_module_verify(module, NULL) == LP_OK) return module;
  lp_module_free(module);
  return NULL;
}

void values_try_module(const char *file, int part, const char *text, size_t size, values_tally *t) {
  char what[CHANGE_NAME_SIZE] = "unchanged", name[400];
  bool more = true;
  for (int64_t i = -1; more; i++) {
    lp_module *module = changed(file, text, size, i, what, &more);
    if (module) {
      (void)snprintf(name, sizeof name, "%s, part %d, %s", file, part, what);
      (void)values_keep(module, name, steps, LP_COUNT(steps), t);
    }
    lp_module_free(module);
  }
}

void values_end(void) {
  lp_dir_abandon(folder);
  free(folder);
}
