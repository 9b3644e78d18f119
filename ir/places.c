/* The places of a placed module: their names are on its functions, and its operators name them. */
#include "base/side.h"
#include "ir/ir.h"
#include "ir/ir_internal.h"

#include <assert.h>

int32_t lp_func_places(const lp_op *func, const char *const **names) {
  const lp_attr *places = func ? lp_op_attr(func, "places") : NULL;
  const bool has = places && places->kind == LP_ATTR_STRS;
  *names = has ? places->ss : lp_side_names;
  return has ? places->count : LP_SIDE_COUNT;
}

int32_t lp_module_places(const lp_module *module, const char *const **names) {
  LP_FOR_FUNCS(func, module)
    return lp_func_places(func, names);
  return lp_func_places(NULL, names);
}

const char *lp_module_place_name(const lp_module *module, lp_place place) {
  const char *const *names;
  const int32_t count = lp_module_places(module, &names);
  assert(place >= 0 && place < count);
  return place < count ? names[place] : "";
}

const lp_op *lp_block_func(const lp_block *block) {
  const lp_op *op = block ? block->parent : NULL;
  while (op && op->kind != LP_OP_FUNC)
    op = op->block ? op->block->parent : NULL;
  return op;
}

lp_place lp_op_place(const lp_op *op, const char *attr) {
  const char *const *names;
  const int32_t count = lp_func_places(lp_block_func(op->block), &names);
  return lp_place_find(names, count, lp_op_str(op, attr, NULL));
}

const char *lp_func_place_key(const lp_op *func, const char *name, lp_place place, char out[LP_PLACE_KEY_SIZE]) {
  const char *const *names;
  (void)lp_func_places(func, &names);
  (void)snprintf(out, LP_PLACE_KEY_SIZE, "%s%c%s", name, names == lp_side_names ? '_' : '.', names[place]);
  return out;
}

static lp_status check_func(const lp_op *func, lp_diag *diag) {
  const lp_attr *places = lp_op_attr(func, "places");
  if (!places) return LP_OK;
  if (places->kind != LP_ATTR_STRS || places->count < 1 || places->count > LP_PLACES_MAX)
    return lp_error(diag, func->loc, "`places` should be a list of 1 to %d names", LP_PLACES_MAX);
  for (int32_t i = 0; i < places->count; i++) {
    if (!lp_place_is_name(places->ss[i]))
      return lp_error(diag, func->loc, "'%.60s' in `places` is no name of a place", places->ss[i]);
    if (lp_place_find(places->ss, i, places->ss[i]) >= 0)
      return lp_error(diag, func->loc, "`places` has '%s' twice", places->ss[i]);
  }
  return LP_OK;
}

static bool are_same(const lp_op *a, const lp_op *b) {
  const char *const *first, *const *second;
  const int32_t count = lp_func_places(a, &first);
  if (count != lp_func_places(b, &second)) return false;
  for (int32_t i = 0; i < count; i++)
    if (!lp_streq(first[i], second[i])) return false;
  return true;
}

lp_status lp_module_check_places(const lp_module *module, lp_diag *diag) {
  const lp_op *before = NULL;
  LP_FOR_FUNCS(func, module) {
    LP_TRY(check_func(func, diag));
    if (before && !are_same(before, func)) return lp_error(diag, func->loc, "the functions have different `places`");
    before = func;
  }
  return LP_OK;
}
