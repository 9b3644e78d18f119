/* Finds the inputs of the graph on which a value depends that must be known at compile time. A user can bind these
 * inputs to constants. */
#include "ir/ir.h"

enum { MAX_DEPTH = 32, MAX_ELEMENTS = 64 };

typedef struct {
  lp_diag *diag;
  lp_loc loc;
  LP_VEC(const lp_value *) found;
} search;

/* Sizes, axes, counts and choices have few elements. A larger value is data. */
static bool is_small(lp_type type) {
  int64_t count;
  return lp_type_static_numel(type, &count) ? count <= MAX_ELEMENTS : type.rank == 1;
}

static void add(search *s, const lp_value *input) {
  for (size_t i = 0; i < s->found.count; i++)
    if (s->found.data[i] == input) return;
  lp_vec_push(&s->found, input);
}

static void walk(search *s, const lp_value *value, int depth) {
  if (!value || value->known || depth > MAX_DEPTH) return;
  if (!value->def) {
    if (value->name && lp_op_is(value->block->parent, LP_OP_FUNC) && is_small(value->type)) add(s, value);
    return;
  }
  /* The value depends on the sizes of the operand, not on its data. */
  if (value->def->kind == LP_ONNX_Shape || value->def->kind == LP_ONNX_Size) return;
  for (int32_t i = 0; i < value->def->in_count; i++)
    walk(s, lp_op_in(value->def, i), depth + 1);
}

void lp_note_binding(lp_diag *diag, lp_loc loc, const lp_value *value) {
  search s = {.diag = diag, .loc = loc};
  if (!diag) return;
  walk(&s, value, 0);
  for (size_t i = 0; i < s.found.count; i++) {
    LP_OWNED(lp_buf_free) lp_buf option = {0};
    lp_buf_printf(&option, "--bind=%s", s.found.data[i]->name);
    lp_note_option(diag, loc, lp_buf_text(&option), "%s=VALUES makes this input a constant", lp_buf_text(&option));
  }
  lp_vec_free(&s.found);
}
