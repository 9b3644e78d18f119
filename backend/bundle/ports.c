/* Writes what a bundle's model reads, keeps and gives: states, inputs, outputs and exits of manifest.json. */
#include "backend/bundle/manifest.h"

#include "backend/values.h"
#include "base/poly.h"

static void put_shape(lp_json_writer *w, const bundle *b, const lp_poly *const *dim, int32_t rank) {
  lp_json_put_array(w, "shape");
  for (int32_t i = 0; i < rank; i++)
    lp_json_put_poly(w, NULL, dim[i], &b->module->symbols);
  lp_json_put_end(w);
}

void lp_bundle_put_tensor(lp_json_writer *w, const bundle *b, const char *name, lp_type type) {
  lp_json_put_text(w, "name", name);
  lp_json_put_text(w, "dtype", lp_dtype_name(type.dtype));
  put_shape(w, b, type.dim, type.rank);
}

/* ---- states, inputs, outputs ------------------------------------------------------------------------------------- */

/* Tells whether a program writes the state at the place, or moves it from or to there. */
static bool state_on(const bundle *b, int64_t state, lp_place side) {
  LP_FOR_FUNCS(func, b->module) {
    LP_FOR_OPS(op, func->region) {
      if (lp_op_state(op) == state && lp_op_at(op) == side) return true;
      if (op->kind == LP_OP_COMM_KV_MOVE && lp_op_i64(op, "state", -1) == state &&
          (lp_op_place(op, "from") == side || lp_op_place(op, "to") == side))
        return true;
    }
  }
  return false;
}

static void put_state(lp_json_writer *w, const bundle *b, const lp_op *op) {
  const lp_attr *shape = lp_op_attr(op, "shape");
  lp_json_put_object(w, NULL);
  lp_json_put_text(w, "name", lp_op_str(op, "name", ""));
  lp_json_put_text(w, "dtype", lp_op_str(op, "dtype", "f32"));
  put_shape(w, b, shape->polys, shape->count);
  lp_json_put_integer(w, "append_axis", lp_op_i64(op, "append_axis", 0));
  lp_json_put_array(w, "sides");
  for (lp_place i = 0; i < b->place_count; i++)
    if (state_on(b, lp_op_i64(op, "index", 0), i)) lp_json_put_text(w, NULL, b->places[i]);
  lp_json_put_end(w);
  lp_json_put_end(w);
}

/* Writes the states that a block declares; `index` is their place in frame->state. */
static lp_status put_declared(lp_json_writer *w, const bundle *b, const lp_block *block, int64_t *count,
                              lp_diag *diag) {
  LP_FOR_OPS(op, block) {
    if (op->kind != LP_OP_STATE) continue;
    int64_t index = lp_op_i64(op, "index", -1);
    if (index != *count)
      return lp_error(diag, op->loc, "KV cache %" PRId64 " is declared as number %" PRId64, index, *count);
    put_state(w, b, op);
    (*count)++;
  }
  return LP_OK;
}

/* The passes declare states in the module; modules written by hand may declare them in a function. */
static lp_status put_states(lp_json_writer *w, const bundle *b, const lp_op *func, lp_diag *diag) {
  int64_t count = 0;
  lp_json_put_array(w, "states");
  LP_TRY(put_declared(w, b, lp_module_body(b->module), &count, diag));
  if (count == 0) LP_TRY(put_declared(w, b, func->region, &count, diag));
  lp_json_put_end(w);
  return LP_OK;
}

const char *lp_bundle_text_at(const lp_op *func, const char *name, int32_t index, const char *otherwise) {
  const lp_attr *attr = lp_op_attr(func, name);
  return attr && attr->kind == LP_ATTR_STRS && index < attr->count ? attr->ss[index] : otherwise;
}

const lp_op *lp_bundle_model_func(const bundle *b) {
  const lp_op *func = lp_module_find_func(b->module, "decode");
  if (func) return func;
  LP_FOR_FUNCS(first, b->module)
    return first;
  return NULL;
}

static void put_port(lp_json_writer *w, const bundle *b, const char *name, const char *role, lp_type type) {
  lp_json_put_object(w, NULL);
  lp_bundle_put_tensor(w, b, name, type);
  lp_json_put_text(w, "role", role);
  lp_json_put_end(w);
}

static void put_inputs(lp_json_writer *w, const bundle *b, const lp_op *func) {
  lp_json_put_array(w, "inputs");
  for (int32_t i = 0; i < func->region->arg_count; i++)
    put_port(w, b, lp_bundle_text_at(func, "inputs", i, "input"), lp_bundle_text_at(func, "input_roles", i, "data"),
             func->region->arg[i]->type);
  lp_json_put_end(w);
}

static void put_outputs(lp_json_writer *w, const bundle *b, const lp_op *func) {
  const lp_op *end = lp_block_terminator(func->region);
  lp_json_put_array(w, "outputs");
  for (int32_t i = 0; i < end->in_count; i++)
    put_port(w, b, lp_bundle_text_at(func, "outputs", i, "output"), lp_bundle_text_at(func, "output_roles", i, "data"),
             lp_op_in(end, i)->type);
  lp_json_put_end(w);
}

bool lp_bundle_exits_at(const lp_op *func, int32_t output) {
  return lp_streq(lp_bundle_text_at(func, "output_roles", output, ""), "exit_logits");
}

/* The outputs of role exit_logits are those of the layers in the attribute `exits`, in its order. */
static void put_exits(lp_json_writer *w, const lp_op *func) {
  const lp_attr *layer = lp_op_attr(func, "exits");
  if (!layer) return;
  const lp_op *end = lp_block_terminator(func->region);
  lp_json_put_array(w, "exits");
  for (int32_t i = 0, next = 0; i < end->in_count && next < layer->count; i++) {
    if (!lp_bundle_exits_at(func, i)) continue;
    lp_json_put_object(w, NULL);
    lp_json_put_integer(w, "layer", layer->is[next++]);
    lp_json_put_integer(w, "output", i);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

lp_status lp_bundle_put_ports(lp_json_writer *w, const bundle *b, lp_diag *diag) {
  const lp_op *func = lp_bundle_model_func(b);
  LP_TRY(put_states(w, b, func, diag));
  put_inputs(w, b, func);
  put_outputs(w, b, func);
  put_exits(w, func);
  return LP_OK;
}
