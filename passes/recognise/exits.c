/* exits: gives @main exactly the early exits that the request names. Where the model has no exit head after a layer,
 * the pass reuses the model's final norm and head there: they become a layer.exit_head over the same weights.
 *
 * Exit N comes after N layers. The exits' logits are the last results of @main, in ascending order; `exits` (i64s)
 * of the function has their numbers. */
#include "base/units.h"
#include "passes/passes.h"

typedef struct {
  lp_module *module;
  lp_op *func;
  lp_block *block;
  lp_diag *diag;
  const int64_t *layer; /* the requested exits, ascending */
  int32_t count;
  int64_t last_layer; /* index of the last layer, -1 none */
} exits_pass;

static lp_loc loc_of(const exits_pass *e) {
  return LP_LOC_FILE(e->module->name);
}

/* ---- parts of the model ------------------------------------------------------------------------------------------ */

static int64_t index_of(const lp_op *op) {
  return lp_op_i64(op, "index", -1);
}

static lp_value *find_result(const exits_pass *e, const char *role) {
  const lp_attr *roles = lp_op_attr(e->func, "output_roles");
  const lp_op *end = lp_block_terminator(e->block);
  for (int32_t i = 0; roles && i < end->in_count && i < roles->count; i++)
    if (lp_streq(roles->ss[i], role)) return lp_op_in(end, i);
  return NULL;
}

/* The model's own exit head after this number of layers: its logits among the results of @main, or NULL. */
static lp_value *find_exit(const exits_pass *e, int64_t layers) {
  const lp_attr *roles = lp_op_attr(e->func, "output_roles");
  const lp_op *end = lp_block_terminator(e->block);
  for (int32_t i = 0; roles && i < end->in_count && i < roles->count; i++) {
    lp_value *value = lp_op_in(end, i);
    if (lp_streq(roles->ss[i], "exit_logits") && value->def && value->def->kind == LP_LAYER_EXIT_HEAD &&
        index_of(value->def) == layers - 1)
      return value;
  }
  return NULL;
}

/* The output of layer `index`: its last result that another layer reads. */
static lp_value *stream_after(const exits_pass *e, int64_t index) {
  lp_value *found = NULL;
  LP_FOR_OPS(op, e->block) {
    if (!lp_op_has(op, LP_DECODER_LAYER) || index_of(op) != index) continue;
    for (int32_t i = 0; i < op->out_count; i++)
      for (const lp_use *use = op->out[i]->uses; use; use = use->next)
        if (!lp_op_has(use->owner, LP_TERMINATOR) &&
            !(lp_op_has(use->owner, LP_DECODER_LAYER) && index_of(use->owner) == index))
          found = op->out[i];
  }
  return found;
}

/* ---- a head that is used again ----------------------------------------------------------------------------------- */

/* Tells whether the layer makes the residual stream. */
static bool is_stream(const lp_op *layer) {
  return lp_op_has(layer, LP_DECODER_LAYER) || layer->kind == LP_LAYER_EMBEDDING;
}

/* Tells whether the value depends on the tokens. Other values (weights, tables of positions) serve any head
 * unchanged. */
static bool reads_text(const lp_value *value) {
  if (!value->def || lp_value_is_constant(value)) return false;
  if (is_stream(value->def)) return true;
  for (int32_t i = 0; i < value->def->in_count; i++)
    if (lp_op_in(value->def, i) && reads_text(lp_op_in(value->def, i))) return true;
  return false;
}

/* Marks the operators between the stream after the last layer and the logits, backwards from `value`. */
static lp_status mark_head(const exits_pass *e, lp_value *value, const lp_value *stream) {
  if (value == stream || !reads_text(value)) return LP_OK;
  if (is_stream(value->def))
    return lp_error(
        e->diag, loc_of(e),
        "the model's head reads more than the result of its last layer, so it cannot be reused after another layer");
  if (value->def->scratch) return LP_OK;
  value->def->scratch = value->def;
  for (int32_t i = 0; i < value->def->in_count; i++)
    if (lp_op_in(value->def, i)) LP_TRY(mark_head(e, lp_op_in(value->def, i), stream));
  return LP_OK;
}

static lp_value *mapped(void *user, lp_value *value) {
  (void)user;
  return value->scratch ? value->scratch : value;
}

/* Gives the region of the new head access to an operand: a value of the region, or an argument of it. */
static void enter(lp_op *head, lp_value *value, lp_value **outside, int32_t *count) {
  for (int32_t i = 0; i < *count; i++)
    if (outside[i] == value) return;
  lp_value *arg = lp_block_add_arg(head->region, value->type);
  arg->known = value->known;
  arg->known_count = value->known_count;
  outside[(*count)++] = value;
}

static lp_op *copy_op(exits_pass *e, lp_op *head, const lp_op *op, int64_t layers) {
  lp_op *copy = lp_op_clone(e->module, op, mapped, NULL);
  if (copy->loc.node) copy->loc.node = lp_arena_format(e->module->arena, "%s@exit_%" PRId64, copy->loc.node, layers);
  lp_op_append(head->region, copy);
  for (int32_t i = 0; i < op->out_count; i++)
    op->out[i]->scratch = copy->out[i];
  return copy;
}

/* Continues the new head with the operators of one marked layer. */
static void copy_layer(exits_pass *e, lp_op *head, lp_op *layer, int64_t layers) {
  if (!layer->region) {
    (void)copy_op(e, head, layer, layers);
    return;
  }
  for (int32_t i = 0; i < layer->region->arg_count; i++)
    layer->region->arg[i]->scratch = mapped(NULL, lp_op_in(layer, i));
  const lp_op *yield = lp_block_terminator(layer->region);
  LP_FOR_OPS(op, layer->region)
    if (op != yield) (void)copy_op(e, head, op, layers);
  for (int32_t i = 0; i < layer->out_count; i++)
    layer->out[i]->scratch = mapped(NULL, lp_op_in(yield, i));
}

static void forget(lp_block *block) {
  lp_block_forget(block);
  LP_FOR_OPS(op, block) {
    if (op->region) forget(op->region);
  }
}

/* Operands from outside the marked operators become operands of the new head: it reads another stream, and the other
 * values are shared. */
static void take_operands(exits_pass *e, lp_op *head, lp_value *from, lp_value *to) {
  int32_t room = 0, count = 0;
  LP_FOR_OPS(op, e->block)
    if (op->scratch) room += op->in_count;
  lp_value **outside = LP_NEW_ARRAY(e->module->arena, lp_value *, room + 1);
  LP_FOR_OPS(op, e->block) {
    for (int32_t i = 0; op->scratch && i < op->in_count; i++) {
      lp_value *in = lp_op_in(op, i);
      if (in && !(in->def && in->def->scratch)) enter(head, in, outside, &count);
    }
  }
  for (int32_t i = 0; i < count; i++) {
    outside[i]->scratch = head->region->arg[i];
    if (outside[i] == from) outside[i] = to;
  }
  lp_op_set_ins(e->module, head, count, outside);
}

static void describe(lp_module *module, lp_op *head, const lp_op *like, int64_t layers) {
  for (int32_t i = 0; i < like->attr_count; i++)
    lp_op_set_attr(module, head, &like->attr[i]);
  lp_op_set_i64(module, head, "index", layers - 1);
}

static lp_status reuse_head(exits_pass *e, int64_t layers, lp_value **out) {
  lp_value *logits = find_result(e, "logits");
  lp_value *from = stream_after(e, e->last_layer), *to = stream_after(e, layers - 1);
  if (!logits || !from || !to || !lp_type_equal(from->type, to->type))
    return lp_error(e->diag, loc_of(e), "the model's head cannot be reused after %" PRId64 " layers", layers);
  lp_status status = mark_head(e, logits, from);
  if (status == LP_OK) {
    lp_op *head = lp_op_create(e->module, LP_LAYER_EXIT_HEAD, logits->def->loc, 0, NULL, 0, NULL);
    lp_op_add_region(e->module, head, 0, NULL);
    take_operands(e, head, from, to);
    describe(e->module, head, logits->def, layers);
    LP_FOR_OPS(op, e->block)
      if (op->scratch) copy_layer(e, head, op, layers);
    lp_value *made = logits->scratch;
    lp_op_append(head->region, lp_op_create(e->module, LP_OP_YIELD, LP_LOC_NONE, 1, &made, 0, NULL));
    *out = lp_op_add_result(e->module, head, logits->type);
    lp_op_insert_after(to->def, head);
  }
  forget(e->block);
  return status;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_value **value;
  const char **name, **role;
  int32_t count;
} result_list;

static void add_result(result_list *list, lp_value *value, const char *name, const char *role) {
  list->value[list->count] = value;
  list->name[list->count] = name;
  list->role[list->count++] = role;
}

static const char *text_at(const lp_op *func, const char *attr, int32_t index) {
  const lp_attr *list = lp_op_attr(func, attr);
  return list && index < list->count ? list->ss[index] : "";
}

static const char *exit_name(const exits_pass *e, const lp_value *value, int64_t layers) {
  const lp_op *end = lp_block_terminator(e->block);
  for (int32_t i = 0; i < end->in_count; i++)
    if (lp_op_in(end, i) == value) return text_at(e->func, "outputs", i);
  return lp_arena_format(e->module->arena, "exit_logits_%" PRId64, layers);
}

static void write_results(exits_pass *e, lp_value *const *exit) {
  lp_op *end = lp_block_terminator(e->block);
  lp_arena *arena = e->module->arena;
  int32_t room = end->in_count + e->count;
  result_list list = {.value = LP_NEW_ARRAY(arena, lp_value *, room),
                      .name = LP_NEW_ARRAY(arena, const char *, room),
                      .role = LP_NEW_ARRAY(arena, const char *, room)};
  for (int32_t i = 0; i < end->in_count; i++)
    if (!lp_streq(text_at(e->func, "output_roles", i), "exit_logits"))
      add_result(&list, lp_op_in(end, i), text_at(e->func, "outputs", i), text_at(e->func, "output_roles", i));
  for (int32_t i = 0; i < e->count; i++)
    add_result(&list, exit[i], exit_name(e, exit[i], e->layer[i]), "exit_logits");
  lp_op_set_ins(e->module, end, list.count, list.value);
  lp_op_set_strs(e->module, e->func, "outputs", list.name, list.count);
  lp_op_set_strs(e->module, e->func, "output_roles", list.role, list.count);
  lp_op_set_i64s(e->module, e->func, "exits", e->layer, e->count);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static lp_status check_layer(const exits_pass *e, int64_t layers) {
  if (layers >= 1 && layers <= e->last_layer) return LP_OK;
  lp_status status =
      lp_error(e->diag, loc_of(e), "there is no exit after %" PRId64 " layers: the model has %" PRId64 " layers",
               layers, e->last_layer + 1);
  if (e->last_layer >= 1) lp_note(e->diag, loc_of(e), "an exit can stand after 1 to %" PRId64 " layers", e->last_layer);
  for (int64_t have = 1; have <= e->last_layer; have++)
    if (find_exit(e, have)) lp_note(e->diag, loc_of(e), "the model has its own exit head after %" PRId64, have);
  return status;
}

static lp_status add_exits(exits_pass *e) {
  lp_value **exit = LP_NEW_ARRAY(e->module->arena, lp_value *, e->count);
  LP_FOR_OPS(op, e->block)
    if (lp_op_has(op, LP_DECODER_LAYER) && index_of(op) > e->last_layer) e->last_layer = index_of(op);
  for (int32_t i = 0; i < e->count; i++) {
    LP_TRY(check_layer(e, e->layer[i]));
    exit[i] = find_exit(e, e->layer[i]);
    if (!exit[i]) LP_TRY(reuse_head(e, e->layer[i], &exit[i]));
  }
  write_results(e, exit);
  lp_block_renumber(e->block);
  return LP_OK;
}

/* Reads the pass's own option, "3:6", which replaces the request's exits. */
static lp_status read_layers(const char *text, lp_pass_context *context, exits_pass *e) {
  int64_t *layer = LP_NEW_ARRAY(context->scratch, int64_t, 1 + (int32_t)strlen(text));
  char *copy = lp_arena_strdup(context->scratch, text), *rest = NULL;
  for (char *at = strtok_r(copy, ":", &rest); at; at = strtok_r(NULL, ":", &rest))
    LP_TRY(lp_parse_i64(at, 0, INT32_MAX, &layer[e->count++], context->diag, LP_LOC_FILE("exits{layers}")));
  e->layer = layer;
  return LP_OK;
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  const lp_compile_request *request = context->request;
  exits_pass e = {
      .module = module, .func = lp_module_find_func(module, "main"), .diag = context->diag, .last_layer = -1};
  const char *text = lp_pass_option(context, "layers");
  if (!e.func) return lp_error(context->diag, LP_LOC_FILE(module->name), "no function 'main' to give exits");
  e.block = e.func->region;
  if (text) {
    LP_TRY(read_layers(text, context, &e));
  } else if (request && request->generation) {
    e.layer = request->exits;
    e.count = request->exit_count;
  }
  return e.count > 0 ? add_exits(&e) : LP_OK;
}

const lp_pass lp_pass_exits = {
    .name = "exits",
    .summary = "keep the early exits asked for, or use the head again after their layers",
    .needs = LP_STATE_RAISED,
    .makes = LP_STATE_RAISED,
    .breaks = LP_STATE_COUNT,
    .options = "layers",
    .run = run,
};
