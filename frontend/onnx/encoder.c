/* Joins the functions of an encoder and its decoder into one. */
#include "frontend/onnx/encoder.h"
#include "base/path.h"
#include "base/poly.h"
#include "frontend/onnx/scope.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char states_name[] = "encoder_hidden_states";

/* ---- before the import ------------------------------------------------------------------------------------------- */

/* Tells whether two paths, which may be written in different ways, name the same file or folder. */
static bool is_same(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The module has one folder and finds files of weights in it by their names, so the encoder must lie there too. */
static lp_status check_folder(const lp_importer *decoder, const char *path) {
  char *own = lp_path_dir(decoder->path), *other = lp_path_dir(path);
  lp_status status = LP_OK;
  if (!is_same(own, other) || is_same(decoder->path, path))
    status = lp_error(decoder->diag, LP_LOC_FILE(path),
                      "the encoder's file should be another file in the decoder's folder '%s'", own);
  free(own);
  free(other);
  return status;
}

static bool takes_input(const Onnx__GraphProto *graph, const char *name) {
  for (size_t i = 0; graph && i < graph->n_input; i++)
    if (lp_streq(lp_text(graph->input[i]->name), name)) return true;
  return false;
}

lp_status lp_encoder_check(lp_importer *decoder, const char *path) {
  LP_TRY(check_folder(decoder, path));
  if (takes_input(decoder->model->graph, states_name)) return LP_OK;
  lp_status status = lp_error(decoder->diag, LP_LOC_FILE(decoder->path),
                              "there is an encoder, but the model has no input '%s'", states_name);
  lp_note(decoder->diag, LP_LOC_FILE(decoder->path),
          "the keys of the encoder's states are computed by decoder_model.onnx or decoder_model_merged.onnx");
  return status;
}

/* ---- arguments of a function ------------------------------------------------------------------------------------- */

static int32_t find_argument(const lp_block *block, const char *name) {
  for (int32_t i = 0; i < block->arg_count; i++)
    if (block->arg[i]->name && lp_streq(block->arg[i]->name, name)) return i;
  return -1;
}

static lp_symbol lone_symbol(const lp_poly *dim) {
  bool lone = dim->count == 1 && dim->term[0].coef == 1 && dim->term[0].symbol[0] && !dim->term[0].symbol[1];
  return lone ? dim->term[0].symbol[0] : 0;
}

/* Makes the sizes of two values equal: replaces a size that is a single symbol by the other's size. */
static lp_status unify(lp_module *module, const lp_value *a, const lp_value *b, lp_diag *diag) {
  bool fits = a->type.dtype == b->type.dtype && a->type.rank == b->type.rank;
  for (int32_t i = 0; fits && i < a->type.rank; i++) {
    const lp_poly *x = a->type.dim[i], *y = b->type.dim[i];
    if (lp_poly_equal(x, y)) continue;
    lp_symbol symbol = lone_symbol(x);
    if (symbol)
      fits = lp_module_substitute(module, symbol, y);
    else if ((symbol = lone_symbol(y)))
      fits = lp_module_substitute(module, symbol, x);
    else
      fits = false;
  }
  if (fits) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(module->name), "the encoder's '%s' has not the type of the decoder's '%s'",
                  a->name ? a->name : "?", b->name ? b->name : "?");
}

/* Replaces an argument of the encoder by the argument of the joined function: "input_ids" becomes "encoder_input_ids",
 * "attention_mask" "encoder_attention_mask", which the decoder may have already. Adds the argument if it is missing. */
static lp_status take_argument(lp_module *module, lp_block *main, lp_value *own, lp_diag *diag) {
  bool common = lp_streq(own->name, "input_ids") || lp_streq(own->name, "attention_mask");
  const char *name = common ? lp_arena_format(module->arena, "encoder_%s", own->name) : own->name;
  int32_t index = find_argument(main, name);
  lp_value *arg = index >= 0 ? main->arg[index] : lp_block_add_arg(main, own->type);
  arg->name = name;
  if (index >= 0) LP_TRY(unify(module, own, arg, diag));
  lp_value_replace(own, arg);
  return LP_OK;
}

/* Removes the arguments that no operator reads once the encoder computes the states: the states, and the past of a
 * merged decoder. */
static void drop_arguments(lp_module *module, lp_op *func) {
  lp_block *block = func->region;
  const char **names = LP_NEW_ARRAY(module->arena, const char *, block->arg_count + 1);
  int32_t count = 0;
  for (int32_t i = 0; i < block->arg_count; i++) {
    if (!block->arg[i]->uses) continue;
    names[count] = block->arg[i]->name ? block->arg[i]->name : "";
    block->arg[i]->index = count;
    block->arg[count++] = block->arg[i];
  }
  block->arg_count = count;
  lp_op_set_strs(module, func, "inputs", names, count);
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

static void move_operators(lp_block *from, lp_block *to) {
  lp_op *before = to->first;
  for (lp_op *op = from->first, *next; op; op = next) {
    next = op->next;
    lp_op_detach(op);
    lp_op_insert_before(before, op);
  }
}

/* Returns the output "last_hidden_state", or the first. */
static lp_value *encoder_states(const lp_op *func, const lp_op *end) {
  const lp_attr *names = lp_op_attr(func, "outputs");
  for (int32_t i = 0; names && i < names->count && i < end->in_count; i++)
    if (lp_streq(names->ss[i], "last_hidden_state")) return lp_op_in(end, i);
  return lp_op_in(end, 0);
}

lp_status lp_encoder_join(lp_module *module, lp_diag *diag) {
  lp_op *encoder = lp_module_find_func(module, LP_ENCODER_FUNC), *func = lp_module_find_func(module, "main");
  lp_block *block = func->region;
  lp_op *end = lp_block_terminator(encoder->region);
  lp_value *states = encoder_states(encoder, end), *wanted = block->arg[find_argument(block, states_name)];
  LP_TRY(unify(module, states, wanted, diag));
  lp_value_replace(wanted, states);
  lp_op_erase(end);
  for (int32_t i = 0; i < encoder->region->arg_count; i++)
    LP_TRY(take_argument(module, block, encoder->region->arg[i], diag));
  move_operators(encoder->region, block);
  lp_op_erase(encoder);
  drop_arguments(module, func);
  return lp_block_infer(module, block, diag);
}
