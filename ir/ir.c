/* Modules, blocks, operators, values and their uses. */
#include "ir/ir.h"
#include "base/file.h"
#include "base/map.h"
#include "base/poly.h"

#include <assert.h>

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static lp_block *block_create(lp_module *module, lp_op *parent) {
  lp_block *block = LP_NEW(module->arena, lp_block);
  block->module = module;
  block->parent = parent;
  return block;
}

lp_module *lp_module_create(const char *name) {
  static const char *const first[] = {"b", "s", "p", "r", "c", "t"}; /* the order of base/abi.h */
  lp_arena *arena = lp_arena_create();
  lp_module *module = LP_NEW(arena, lp_module);
  module->arena = arena;
  lp_symbols_init(&module->symbols, arena);
  for (size_t i = 0; i < LP_COUNT(first); i++)
    lp_symbols_intern(&module->symbols, first[i]);
  module->name = lp_arena_strdup(arena, name);
  module->directory = ".";
  module->eval_steps = LP_EVAL_STEPS;
  module->sources = lp_map_create();
  module->made = lp_map_create();
  module->op = LP_NEW(arena, lp_op);
  module->op->kind = LP_OP_MODULE;
  module->op->region = block_create(module, module->op);
  return module;
}

void lp_shards_release(lp_module *module) {
  for (size_t i = 0; i < module->shards.count; i++)
    free(module->shards.data[i]);
  lp_vec_free(&module->shards);
}

void lp_module_free(lp_module *module) {
  if (!module) return;
  for (size_t i = 0; i < lp_map_count(module->sources); i++)
    lp_file_unmap(lp_map_value_at(module->sources, i));
  lp_map_free(module->sources);
  lp_map_free(module->made);
  lp_shards_release(module);
  lp_symbols_free(&module->symbols);
  lp_arena_free(module->arena);
}

lp_block *lp_module_body(const lp_module *module) {
  return module->op->region;
}

lp_op *lp_module_add_func(lp_module *module, const char *name, int32_t arg_count, const lp_type *arg_types) {
  lp_op *func = lp_op_create(module, LP_OP_FUNC, LP_LOC_NONE, 0, NULL, 0, NULL);
  lp_op_set_str(module, func, "sym_name", name);
  lp_op_add_region(module, func, arg_count, arg_types);
  lp_op_append(lp_module_body(module), func);
  return func;
}

lp_op *lp_module_find_func(const lp_module *module, const char *name) {
  LP_FOR_OPS(op, lp_module_body(module))
    if (op->kind == LP_OP_FUNC && lp_streq(lp_op_str(op, "sym_name", ""), name)) return op;
  return NULL;
}

lp_op *lp_block_terminator(const lp_block *block) {
  return block->last && lp_op_has(block->last, LP_TERMINATOR) ? block->last : NULL;
}

/* ---- uses -------------------------------------------------------------------------------------------------------- */

static void use_link(lp_use *use, lp_op *owner, lp_value *value) {
  use->owner = owner;
  use->value = value;
  use->prev = use->next = NULL;
  if (!value) return;
  use->next = value->uses;
  if (value->uses) value->uses->prev = use;
  value->uses = use;
}

static void use_unlink(lp_use *use) {
  if (!use->value) return;
  if (use->prev)
    use->prev->next = use->next;
  else
    use->value->uses = use->next;
  if (use->next) use->next->prev = use->prev;
  use->value = NULL;
}

void lp_op_set_in(lp_op *op, int32_t index, lp_value *value) {
  assert(index >= 0 && index < op->in_count);
  use_unlink(&op->in[index]);
  use_link(&op->in[index], op, value);
}

void lp_op_set_ins(lp_module *module, lp_op *op, int32_t count, lp_value *const *in) {
  lp_use *uses = count > 0 ? LP_NEW_ARRAY(module->arena, lp_use, count) : NULL;
  for (int32_t i = 0; i < count; i++)
    use_link(&uses[i], op, in[i]);
  for (int32_t i = 0; i < op->in_count; i++)
    use_unlink(&op->in[i]);
  op->in = uses;
  op->in_count = count;
}

void lp_value_replace(lp_value *old, lp_value *by) {
  assert(old != by);
  while (old->uses) {
    lp_use *use = old->uses;
    lp_op *owner = use->owner;
    use_unlink(use);
    use_link(use, owner, by);
  }
}

bool lp_value_has_one_use(const lp_value *value) {
  return value->uses && !value->uses->next;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static lp_value *value_create(lp_module *module, lp_type type, lp_op *def, lp_block *block, int32_t index) {
  lp_value *value = LP_NEW(module->arena, lp_value);
  value->type = type;
  value->def = def;
  value->block = block;
  value->index = index;
  return value;
}

lp_op *lp_op_create(lp_module *module, lp_kind kind, lp_loc loc, int32_t in_count, lp_value *const *in,
                    int32_t out_count, const lp_type *out_types) {
  lp_op *op = LP_NEW(module->arena, lp_op);
  op->kind = kind;
  op->loc = loc;
  lp_op_set_ins(module, op, in_count, in);
  op->out_count = out_count;
  op->out = out_count > 0 ? LP_NEW_ARRAY(module->arena, lp_value *, out_count) : NULL;
  for (int32_t i = 0; i < out_count; i++)
    op->out[i] = value_create(module, out_types[i], op, NULL, i);
  return op;
}

static void op_place(lp_op *op, lp_block *block) {
  assert(!op->block);
  op->block = block;
  for (int32_t i = 0; i < op->out_count; i++)
    op->out[i]->block = block;
}

void lp_op_append(lp_block *block, lp_op *op) {
  op_place(op, block);
  op->prev = block->last;
  op->next = NULL;
  op->order = block->last ? block->last->order + 1 : 0;
  if (block->last)
    block->last->next = op;
  else
    block->first = op;
  block->last = op;
}

void lp_op_insert_before(lp_op *where, lp_op *op) {
  op_place(op, where->block);
  op->prev = where->prev;
  op->next = where;
  op->order = where->order;
  if (where->prev)
    where->prev->next = op;
  else
    where->block->first = op;
  where->prev = op;
}

void lp_op_insert_after(lp_op *where, lp_op *op) {
  if (where->next)
    lp_op_insert_before(where->next, op);
  else
    lp_op_append(where->block, op);
}

void lp_op_detach(lp_op *op) {
  lp_block *block = op->block;
  if (!block) return;
  if (op->prev)
    op->prev->next = op->next;
  else
    block->first = op->next;
  if (op->next)
    op->next->prev = op->prev;
  else
    block->last = op->prev;
  op->prev = op->next = NULL;
  op->block = NULL;
}

void lp_op_erase(lp_op *op) {
  for (int32_t i = 0; i < op->out_count; i++)
    assert(!op->out[i]->uses);
  if (op->region)
    while (op->region->last)
      lp_op_erase(op->region->last);
  lp_op_detach(op);
  for (int32_t i = 0; i < op->in_count; i++)
    use_unlink(&op->in[i]);
}

lp_block *lp_op_add_region(lp_module *module, lp_op *op, int32_t arg_count, const lp_type *arg_types) {
  op->region = block_create(module, op);
  for (int32_t i = 0; i < arg_count; i++)
    lp_block_add_arg(op->region, arg_types[i]);
  return op->region;
}

/* Makes room for one more; doubling keeps adding many linear. */
static void make_room(lp_module *module, lp_value ***list, int32_t count, int32_t *room) {
  if (*list && count < *room) return;
  *room = count > 0 ? 2 * count : 1;
  lp_value **grown = LP_NEW_ARRAY(module->arena, lp_value *, *room);
  if (*list) memcpy(grown, *list, (size_t)count * sizeof **list);
  *list = grown;
}

lp_value *lp_op_add_result(lp_module *module, lp_op *op, lp_type type) {
  make_room(module, &op->out, op->out_count, &op->out_room);
  op->out[op->out_count] = value_create(module, type, op, op->block, op->out_count);
  return op->out[op->out_count++];
}

lp_value *lp_block_add_arg(lp_block *block, lp_type type) {
  lp_module *module = block->module;
  make_room(module, &block->arg, block->arg_count, &block->arg_room);
  block->arg[block->arg_count] = value_create(module, type, NULL, block, block->arg_count);
  return block->arg[block->arg_count++];
}

/* Inner values of a cloned region: original -> copy, before the caller's map is asked. */
typedef struct {
  lp_value **from, **to;
  size_t count, capacity;
  lp_value_map *map;
  void *user;
} clone_map;

static lp_value *clone_lookup(void *user, lp_value *value) {
  clone_map *inner = user;
  for (size_t i = inner->count; i-- > 0;)
    if (inner->from[i] == value) return inner->to[i];
  return inner->map ? inner->map(inner->user, value) : value;
}

static void clone_note(clone_map *inner, lp_value *from, lp_value *to) {
  if (inner->count == inner->capacity) {
    inner->capacity = inner->capacity ? 2 * inner->capacity : 16;
    inner->from = lp_realloc(inner->from, inner->capacity * sizeof *inner->from);
    inner->to = lp_realloc(inner->to, inner->capacity * sizeof *inner->to);
  }
  inner->from[inner->count] = from;
  inner->to[inner->count++] = to;
}

static void clone_region(lp_module *module, const lp_block *from, lp_op *to, lp_value_map *map, void *user) {
  clone_map inner = {.map = map, .user = user};
  lp_block *block = lp_op_add_region(module, to, 0, NULL);
  for (int32_t i = 0; i < from->arg_count; i++)
    clone_note(&inner, from->arg[i], lp_block_add_arg(block, from->arg[i]->type));
  LP_FOR_OPS(op, from) {
    lp_op *copy = lp_op_clone(module, op, clone_lookup, &inner);
    lp_op_append(block, copy);
    for (int32_t i = 0; i < op->out_count; i++)
      clone_note(&inner, op->out[i], copy->out[i]);
  }
  free(inner.from);
  free(inner.to);
}

lp_op *lp_op_clone(lp_module *module, const lp_op *op, lp_value_map *map, void *user) {
  lp_op *copy = lp_op_create(module, op->kind, op->loc, 0, NULL, 0, NULL);
  lp_use *uses = op->in_count > 0 ? LP_NEW_ARRAY(module->arena, lp_use, op->in_count) : NULL;
  for (int32_t i = 0; i < op->in_count; i++) {
    lp_value *value = op->in[i].value;
    use_link(&uses[i], copy, value && map ? map(user, value) : value);
  }
  copy->in = uses;
  copy->in_count = op->in_count;
  for (int32_t i = 0; i < op->out_count; i++) {
    lp_value *out = lp_op_add_result(module, copy, op->out[i]->type);
    out->name = op->out[i]->name;
    out->known = op->out[i]->known;
    out->known_count = op->out[i]->known_count;
  }
  copy->attr_count = op->attr_count;
  copy->attr =
      op->attr_count > 0 ? lp_arena_copy(module->arena, op->attr, sizeof *op->attr * (size_t)op->attr_count) : NULL;
  if (op->region) clone_region(module, op->region, copy, map, user);
  return copy;
}

lp_value *lp_op_in(const lp_op *op, int32_t index) {
  return index < op->in_count ? op->in[index].value : NULL;
}
lp_value *lp_op_out(const lp_op *op, int32_t index) {
  return index < op->out_count ? op->out[index] : NULL;
}

void lp_block_renumber(lp_block *block) {
  int64_t order = 0;
  LP_FOR_OPS(op, block)
    op->order = order++;
}

void lp_block_forget(const lp_block *block) {
  for (int32_t i = 0; i < block->arg_count; i++)
    block->arg[i]->scratch = NULL;
  LP_FOR_OPS(op, block) {
    op->scratch = NULL;
    for (int32_t i = 0; i < op->out_count; i++)
      op->out[i]->scratch = NULL;
  }
}

bool lp_op_is(const lp_op *op, lp_kind kind) {
  return op && op->kind == kind;
}
bool lp_op_is_weighted(const lp_op *op) {
  return lp_op_is(op, LP_OP_LINEAR) || lp_op_is(op, LP_OP_EXPERTS);
}
bool lp_op_has(const lp_op *op, uint32_t traits) {
  return op && (lp_op_info_get(op->kind)->traits & traits) == traits;
}
