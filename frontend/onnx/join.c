/* Joins the functions of a model's files into one. */
#include "frontend/onnx/join.h"
#include "base/path.h"
#include "base/poly.h"

#include <sys/stat.h>

static const char states_name[] = "encoder_hidden_states", tokens_name[] = "input_ids", rows_name[] = "inputs_embeds";
/* onnxruntime-genai's encoder computes the keys and values of its states, and the decoder takes them as a past. */
static const char cross_prefix[] = "past_key_cross_";

/* ---- before the import ------------------------------------------------------------------------------------------- */

/* Tells whether two paths, which may be written in different ways, name the same file or folder. */
static bool is_same(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The module has one folder and finds files of weights in it by their names, so the encoder must lie there too. */
static lp_status check_folder(const lp_importer *decoder, const char *path) {
  LP_OWNED(lp_free_at) char *own = lp_path_dir(decoder->path), *other = lp_path_dir(path);
  lp_status status = LP_OK;
  if (!is_same(own, other) || is_same(decoder->path, path))
    status = lp_error(decoder->diag, LP_LOC_FILE(path),
                      "the encoder's file should be another file in the decoder's folder '%s'", own);
  return status;
}

static bool takes_input(const Onnx__GraphProto *graph, const char *name) {
  for (size_t i = 0; graph && i < graph->n_input; i++)
    if (lp_streq(lp_text(graph->input[i]->name), name)) return true;
  return false;
}

static bool takes_states(const Onnx__GraphProto *graph) {
  for (size_t i = 0; graph && i < graph->n_input; i++)
    if (lp_has_prefix(lp_text(graph->input[i]->name), cross_prefix)) return true;
  return takes_input(graph, states_name);
}

lp_status lp_encoder_check(lp_importer *decoder, const char *path) {
  LP_TRY(check_folder(decoder, path));
  if (takes_states(decoder->model->graph)) return LP_OK;
  lp_status status = lp_error(decoder->diag, LP_LOC_FILE(decoder->path),
                              "there is an encoder, but the model has no input '%s'", states_name);
  lp_note(decoder->diag, LP_LOC_FILE(decoder->path),
          "the keys of the encoder's states are computed by decoder_model.onnx or decoder_model_merged.onnx");
  return status;
}

bool lp_embedding_is_needed(const lp_importer *decoder) {
  const Onnx__GraphProto *graph = decoder->model->graph;
  return decoder->options->frees_lengths && !decoder->options->subgraph && takes_input(graph, rows_name) &&
         !takes_input(graph, tokens_name) &&
         !LP_FIND(decoder->options->bindings, decoder->options->binding_count, rows_name);
}

/* ---- the embedding's file ---------------------------------------------------------------------------------------- */

const char *lp_onnx_decoder_ending(const char *base) {
  const char *rest = base + strlen("decoder_model");
  return lp_has_prefix(rest, "_merged") ? rest + strlen("_merged") : rest;
}

static char *existing(const char *folder, const char *name) {
  char *path = lp_path_join(folder, name);
  if (lp_path_exists(path)) return path;
  free(path);
  return NULL;
}

char *lp_onnx_find_embedding(const char *decoder) {
  static const char *const names[] = {"embed_tokens.onnx", "embedding.onnx", "embeddings.onnx"};
  const char *base = lp_path_base(decoder);
  char *folder = lp_path_dir(decoder), *found = NULL;
  if (lp_has_prefix(base, "decoder_model")) {
    LP_OWNED(lp_buf_free) lp_buf name = {0};
    lp_buf_printf(&name, "embed_tokens%s", lp_onnx_decoder_ending(base));
    found = existing(folder, lp_buf_text(&name));
  }
  for (size_t i = 0; i < LP_COUNT(names) && !found; i++)
    found = existing(folder, names[i]);
  free(folder);
  return found;
}

/* ---- arguments of a function ------------------------------------------------------------------------------------- */

static int32_t find_argument(const lp_block *block, const char *name) {
  for (int32_t i = 0; i < block->arg_count; i++)
    if (block->arg[i]->name && lp_streq(block->arg[i]->name, name)) return i;
  return -1;
}

/* Makes the sizes of two values equal: replaces a size that is a single symbol by the other's size. `part` is the
 * function of the first one. */
static lp_status unify(lp_module *module, const char *part, const lp_value *a, const lp_value *b, lp_diag *diag) {
  bool fits = a->type.dtype == b->type.dtype && a->type.rank == b->type.rank;
  for (int32_t i = 0; fits && i < a->type.rank; i++) {
    const lp_poly *x = a->type.dim[i], *y = b->type.dim[i];
    if (lp_poly_equal(x, y)) continue;
    lp_symbol symbol = lp_poly_lone_symbol(x);
    if (symbol)
      fits = lp_module_substitute(module, symbol, y);
    else if ((symbol = lp_poly_lone_symbol(y)))
      fits = lp_module_substitute(module, symbol, x);
    else
      fits = false;
  }
  if (fits) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(module->name), "'%s' of the %s has not the type of the decoder's '%s'",
                  a->name ? a->name : "?", part, b->name ? b->name : "?");
}

/* Replaces an argument of the encoder by the argument of the joined function: "input_ids" becomes "encoder_input_ids",
 * "attention_mask" "encoder_attention_mask", which the decoder may have already. Adds the argument if it is missing.
 * The arguments of an embedding keep their names. */
static lp_status take_argument(lp_module *module, const char *part, lp_block *main, lp_value *own, lp_diag *diag) {
  bool common = lp_streq(own->name, tokens_name) || lp_streq(own->name, "attention_mask");
  bool renames = common && lp_streq(part, LP_ENCODER_FUNC);
  const char *name = renames ? lp_arena_format(module->arena, "encoder_%s", own->name) : own->name;
  int32_t index = find_argument(main, name);
  lp_value *arg = index >= 0 ? main->arg[index] : lp_block_add_arg(main, own->type);
  arg->name = name;
  if (index >= 0) LP_TRY(unify(module, part, own, arg, diag));
  lp_value_replace(own, arg);
  return LP_OK;
}

/* Removes the arguments that no operator reads once the other part computes what they held: the states or rows, and the
 * past of a merged decoder. */
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

/* Returns the output of this name, or NULL. */
static lp_value *output_named(const lp_op *func, const char *name) {
  const lp_attr *names = lp_op_attr(func, "outputs");
  const lp_op *end = lp_block_terminator(func->region);
  for (int32_t i = 0; names && i < names->count && i < end->in_count; i++)
    if (lp_streq(names->ss[i], name)) return lp_op_in(end, i);
  return NULL;
}

/* Lets output `made` of function `part`, or its first output if there is none of that name, take the place of an
 * argument of @main. */
static lp_status connect(lp_module *module, const char *part, const char *made, lp_value *argument, lp_diag *diag) {
  const lp_op *other = lp_module_find_func(module, part);
  lp_value *value = output_named(other, made);
  if (!value) value = lp_op_in(lp_block_terminator(other->region), 0);
  LP_TRY(unify(module, part, value, argument, diag));
  lp_value_replace(argument, value);
  return LP_OK;
}

/* Moves function `part`, whose outputs are connected, into @main. */
static lp_status join(lp_module *module, const char *part, lp_diag *diag) {
  lp_op *other = lp_module_find_func(module, part), *func = lp_module_find_func(module, "main");
  lp_op_erase(lp_block_terminator(other->region));
  for (int32_t i = 0; i < other->region->arg_count; i++)
    LP_TRY(take_argument(module, part, func->region, other->region->arg[i], diag));
  move_operators(other->region, func->region);
  lp_op_erase(other);
  drop_arguments(module, func);
  return lp_block_infer(module, func->region, diag);
}

/* "past_key_cross_0" of the decoder is "present_key_cross_0" of the encoder. */
static lp_status connect_caches(lp_module *module, const lp_block *block, lp_diag *diag) {
  const lp_op *encoder = lp_module_find_func(module, LP_ENCODER_FUNC);
  for (int32_t i = 0; i < block->arg_count; i++) {
    const char *name = block->arg[i]->name ? block->arg[i]->name : "";
    if (!lp_has_prefix(name, "past_")) continue;
    const char *made = lp_arena_format(module->arena, "present_%s", name + strlen("past_"));
    if (output_named(encoder, made)) LP_TRY(connect(module, LP_ENCODER_FUNC, made, block->arg[i], diag));
  }
  return LP_OK;
}

lp_status lp_encoder_join(lp_module *module, lp_diag *diag) {
  const lp_block *block = lp_module_find_func(module, "main")->region;
  int32_t states = find_argument(block, states_name);
  if (states >= 0)
    LP_TRY(connect(module, LP_ENCODER_FUNC, "last_hidden_state", block->arg[states], diag));
  else
    LP_TRY(connect_caches(module, block, diag));
  return join(module, LP_ENCODER_FUNC, diag);
}

lp_status lp_embedding_join(lp_module *module, lp_diag *diag) {
  const lp_block *block = lp_module_find_func(module, LP_EMBEDDING_FUNC)->region;
  for (int32_t i = 0; i < block->arg_count; i++)
    if (!lp_streq(block->arg[i]->name, tokens_name))
      return lp_error(diag, LP_LOC_FILE(module->name),
                      "the embedding takes '%s' as well; only an embedding of token ids is supported",
                      block->arg[i]->name);
  const lp_block *main = lp_module_find_func(module, "main")->region;
  LP_TRY(connect(module, LP_EMBEDDING_FUNC, rows_name, main->arg[find_argument(main, rows_name)], diag));
  return join(module, LP_EMBEDDING_FUNC, diag);
}
