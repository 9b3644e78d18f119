/* plan-memory: numbers the buffers of each function and place, and lets buffers that never live at once share a slot.
 *
 * A buffer lives from its definition to the last reader of it or of its aliases, in the function's total order. Every
 * result has a buffer of its own; an alias shares its operand's; constants and KV caches have none. Results get their
 * slots before operands that die at the operator give theirs back, so no operator overwrites what it reads. Operators
 * that are joined (join.c) run at the same time: what one of them reads or writes lives until the last of them. Sizes
 * are polynomials: slots are chosen by the sizes at the workload, best fit first. */
#include "base/poly.h"
#include "passes/passes.h"
#include "passes/state.h"

typedef struct {
  int64_t first, last; /* positions in the function */
  double bytes;        /* at the workload */
  int64_t slot;
} buffer;

typedef LP_VEC(buffer) buffers;

typedef struct {
  lp_module *module;
  lp_op *func;
  lp_place place;
  buffers list;
  LP_VEC(double) slot_bytes;
  LP_VEC(int64_t) slot_until; /* the last position at which the slot is taken */
  double *symbols;            /* values at the workload */
} place_memory;

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* The buffer of a value: value->scratch is its id + 1, 0 is none. */
static int64_t buffer_of(const lp_value *value) {
  return (int64_t)(intptr_t)value->scratch - 1;
}

static void new_buffer(place_memory *memory, lp_value *value, int64_t position) {
  const lp_poly *bytes = lp_type_bytes(memory->module, value->type);
  buffer made = {position, position, 0, -1};
  if (bytes) made.bytes = lp_poly_eval_f64(bytes, memory->symbols, memory->module->symbols.names.count);
  lp_vec_push(&memory->list, made);
  value->scratch = (void *)(intptr_t)memory->list.count;
}

static void read_value(place_memory *memory, const lp_value *value, int64_t position) {
  if (!value || !value->scratch) return;
  buffer *read = &memory->list.data[buffer_of(value)];
  if (read->last < position) read->last = position;
}

/* Tells whether this place defines the operator's results. comm.recv has `to` for a side. */
static bool defines_here(const lp_op *op, lp_place place) {
  if (op->kind == LP_OP_COMM_RECV) return lp_op_place(op, "to") == place;
  return (lp_op_is_placeable(op) || op->kind == LP_OP_COMM_ALL_GATHER) && lp_op_on(op, place);
}

static bool reads_here(const lp_op *op, lp_place place) {
  if (op->kind == LP_OP_COMM_SEND) return lp_op_place(op, "from") == place;
  return lp_op_has(op, LP_TERMINATOR) || defines_here(op, place);
}

static void define_results(place_memory *memory, lp_op *op, int64_t position) {
  int64_t *ids = LP_NEW_ARRAY(memory->module->arena, int64_t, op->out_count);
  for (int32_t i = 0; i < op->out_count; i++) {
    if (lp_value_cache(op->out[i]))
      ids[i] = -1;
    else if (lp_op_has(op, LP_ALIAS))
      op->out[i]->scratch = lp_op_in(op, 0)->scratch;
    else
      new_buffer(memory, op->out[i], position);
    ids[i] = buffer_of(op->out[i]);
  }
  lp_op_set_i64s(memory->module, op, "buffer", ids, op->out_count);
}

/* An input lives from before the first operator to its last reader. */
static void define_arguments(place_memory *memory) {
  lp_block *block = memory->func->region;
  if (memory->place != LP_SIDE_DEVICE) return;
  for (int32_t i = 0; i < block->arg_count; i++)
    if (block->arg[i]->uses) new_buffer(memory, block->arg[i], -1);
}

/* Sets the function's attribute `name` of the place. */
static void set_of_place(place_memory *memory, const char *name, const int64_t *values, int32_t count) {
  char key[LP_PLACE_KEY_SIZE];
  const char *kept = lp_arena_strdup(memory->module->arena, lp_func_place_key(memory->func, name, memory->place, key));
  lp_op_set_i64s(memory->module, memory->func, kept, values, count);
}

static void set_arguments(place_memory *memory) {
  lp_block *block = memory->func->region;
  bool device = memory->place == LP_SIDE_DEVICE;
  int64_t *ids = LP_NEW_ARRAY(memory->module->arena, int64_t, block->arg_count);
  for (int32_t i = 0; i < block->arg_count; i++)
    ids[i] = device ? buffer_of(block->arg[i]) : -1;
  set_of_place(memory, "arg_buffer", ids, block->arg_count);
}

/* The position of the last operator that is joined with `op`. */
static int64_t end_of(const lp_op *op, int64_t position) {
  const int64_t group = lp_op_i64(op, "join", -1);
  int64_t end = position;
  for (const lp_op *next = op->next; next && group >= 0; next = next->next) {
    const bool between = lp_op_has(next, LP_CONSTANT) || lp_op_has(next, LP_ALIAS);
    position++;
    if (lp_op_i64(next, "join", -1) == group)
      end = position;
    else if (!between)
      break;
  }
  return end;
}

static void find_lifetimes(place_memory *memory) {
  int64_t position = 0;
  define_arguments(memory);
  LP_FOR_OPS(op, memory->func->region) {
    const int64_t end = end_of(op, position);
    if (reads_here(op, memory->place))
      for (int32_t i = 0; i < op->in_count; i++)
        read_value(memory, op->in[i].value, end);
    if (defines_here(op, memory->place)) define_results(memory, op, position);
    if (end > position)
      for (int32_t i = 0; i < op->out_count; i++)
        read_value(memory, op->out[i], end);
    position++;
  }
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

/* Tells whether free slot `i` is better than free slot `best`. Of equal ones the slot that has been free for longest is
 * better, because threads need a barrier before they overwrite memory that others may still read. */
static bool is_better(const place_memory *memory, const buffer *wanted, size_t i, size_t best) {
  double bytes = memory->slot_bytes.data[i], best_bytes = memory->slot_bytes.data[best];
  bool fits = bytes >= wanted->bytes, best_fits = best_bytes >= wanted->bytes;
  if (fits != best_fits) return fits;
  if (bytes < best_bytes) return fits;
  if (bytes > best_bytes) return !fits;
  return memory->slot_until.data[i] < memory->slot_until.data[best];
}

/* The smallest free slot that is large enough, else the largest free one, which then grows; -1: none is free. */
static int64_t find_slot(const place_memory *memory, const buffer *wanted) {
  int64_t best = -1;
  for (size_t i = 0; i < memory->slot_bytes.count; i++) {
    if (memory->slot_until.data[i] >= wanted->first) continue;
    if (best < 0 || is_better(memory, wanted, i, (size_t)best)) best = (int64_t)i;
  }
  return best;
}

/* Buffers are in order of definition, so a slot is free when its last tenant has died before. */
static void assign_slots(place_memory *memory) {
  LP_FOR_VEC(buffer, wanted, &memory->list) {
    wanted->slot = find_slot(memory, wanted);
    if (wanted->slot < 0) {
      wanted->slot = (int64_t)memory->slot_bytes.count;
      lp_vec_push(&memory->slot_bytes, wanted->bytes);
      lp_vec_push(&memory->slot_until, wanted->last);
    } else {
      double *bytes = &memory->slot_bytes.data[wanted->slot];
      if (wanted->bytes > *bytes) *bytes = wanted->bytes;
      memory->slot_until.data[wanted->slot] = wanted->last;
    }
  }
}

static void set_slots(place_memory *memory) {
  int64_t *slots = LP_NEW_ARRAY(memory->module->arena, int64_t, memory->list.count);
  for (size_t i = 0; i < memory->list.count; i++)
    slots[i] = memory->list.data[i].slot;
  set_of_place(memory, "slot", slots, (int32_t)memory->list.count);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static void plan_place(lp_module *module, lp_op *func, lp_place place, double *symbols) {
  place_memory memory = {.module = module, .func = func, .place = place, .symbols = symbols};
  find_lifetimes(&memory);
  set_arguments(&memory);
  assign_slots(&memory);
  set_slots(&memory);
  lp_block_forget(func->region);
  lp_vec_free(&memory.list);
  lp_vec_free(&memory.slot_bytes);
  lp_vec_free(&memory.slot_until);
}

/* Both stages use prompt sizes, because a decode step may take several tokens at once. */
static double *workload_symbols(const lp_module *module, const lp_compile_request *request, lp_arena *arena) {
  size_t count = module->symbols.names.count;
  double *values = LP_NEW_ARRAY(arena, double, count);
  lp_symbol batch = lp_symbols_find(&module->symbols, "b"), rows = lp_symbols_find(&module->symbols, "r");
  for (size_t i = 0; i < count; i++)
    values[i] = (double)request->isl;
  if (batch) values[batch - 1] = (double)request->batch;
  if (rows) values[rows - 1] = 1;
  return values;
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  double *symbols = workload_symbols(module, context->request, context->scratch);
  LP_FOR_FUNCS(func, module) {
    const char *const *names;
    const lp_place count = lp_func_places(func, &names);
    for (lp_place place = 0; place < count; place++)
      plan_place(module, func, place, symbols);
  }
  return LP_OK;
}

const lp_pass lp_pass_plan_memory = {
    .name = "plan-memory",
    .summary = "give every value a buffer, and buffers that never live at once a common slot",
    .needs = LP_STATE_COMMUNICATING,
    .makes = LP_STATE_PLANNED,
    .breaks = LP_STATE_COUNT,
    .run = run,
};
