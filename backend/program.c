/* A side's programs: read from the module, named, and described for the manifest. */
#include "backend/program.h"

#include "backend/values.h"
#include "base/map.h"
#include "base/poly.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static lp_status read_slots(lp_side_program *program, lp_place side, lp_diag *diag) {
  const lp_attr *slots = lp_func_place_attr(program->func, "slot", side);
  if (!slots) return LP_OK; /* the function has no buffers on this side */
  program->buffer_count = slots->count;
  program->slot = slots->is;
  for (int32_t i = 0; i < slots->count; i++) {
    if (slots->is[i] < 0 || slots->is[i] >= slots->count)
      return lp_error(diag, program->func->loc, "slot %" PRId64 " of buffer %" PRId32 " is out of range", slots->is[i],
                      i);
    if (slots->is[i] >= program->slot_count) program->slot_count = slots->is[i] + 1;
  }
  return LP_OK;
}

lp_status lp_programs_read(lp_side_programs *programs, size_t size, lp_call_maker *make, void *user, lp_diag *diag) {
  LP_FOR_FUNCS(func, programs->module) {
    lp_side_program *program = lp_arena_alloc(programs->arena, size);
    program->func = func;
    program->name = lp_op_str(func, "sym_name", "main");
    lp_vec_push(&programs->list, program);
    LP_TRY(read_slots(program, programs->side, diag));
    LP_FOR_OPS(op, func->region) {
      if (lp_op_is_run(op) && lp_op_at(op) == programs->side) LP_TRY(make(user, program, op, diag));
    }
  }
  return LP_OK;
}

void lp_programs_free(lp_side_programs *programs) {
  LP_FOR_VEC_REFS(lp_side_program, program, &programs->list) {
    for (size_t k = 0; k < program->segments.count; k++)
      lp_vec_free(&program->segments.data[k]->calls);
    lp_vec_free(&program->segments);
  }
  lp_vec_free(&programs->list);
}

static lp_side_segment *find_segment(const lp_side_programs *programs, lp_side_program *program, int64_t index) {
  for (size_t i = 0; i < program->segments.count; i++)
    if (program->segments.data[i]->index == index) return program->segments.data[i];
  lp_side_segment *segment = LP_NEW(programs->arena, lp_side_segment);
  segment->index = index;
  lp_vec_push(&program->segments, segment);
  return segment;
}

void lp_program_add(const lp_side_programs *programs, lp_side_program *program, lp_side_call *call) {
  lp_vec_push(&find_segment(programs, program, lp_op_i64(call->op, "segment", 0))->calls, call);
}

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

/* The symbol of `key`: a known one, or the prefix and the next number. Clears the key. */
static const char *symbol_for(const lp_side_programs *programs, lp_map *symbols, lp_buf *key, const char *prefix) {
  const char *symbol = lp_map_get(symbols, lp_buf_text(key));
  if (!symbol) {
    symbol = lp_arena_format(programs->arena, "%s%zu", prefix, lp_map_count(symbols));
    lp_map_put(symbols, lp_buf_text(key), (void *)(uintptr_t)symbol);
  }
  lp_buf_clear(key);
  return symbol;
}

void lp_programs_name(lp_side_programs *programs, const lp_program_keys *keys) {
  LP_OWNED(lp_map_free_at) lp_map *segments = lp_map_create(), *layouts = lp_map_create();
  LP_OWNED(lp_buf_free) lp_buf key = {0};
  LP_FOR_VEC_REFS(lp_side_program, program, &programs->list) {
    keys->layout(keys->user, program, &key);
    program->layout = symbol_for(programs, layouts, &key, "lp_layout_");
    LP_FOR_VEC_REFS(lp_side_segment, segment, &program->segments) {
      keys->segment(keys->user, program, segment, &key);
      segment->symbol = symbol_for(programs, segments, &key, "lp_segment_");
    }
  }
}

static lp_code_program describe(const lp_side_program *program, lp_arena *arena) {
  int64_t count = 0;
  for (size_t i = 0; i < program->segments.count; i++)
    if (program->segments.data[i]->index >= count) count = program->segments.data[i]->index + 1;
  const char **segment = LP_NEW_ARRAY(arena, const char *, count);
  for (size_t i = 0; i < program->segments.count; i++)
    segment[program->segments.data[i]->index] = lp_arena_strdup(arena, program->segments.data[i]->symbol);
  return (lp_code_program){.name = program->name,
                           .layout = lp_arena_strdup(arena, program->layout),
                           .buffers = program->buffer_count + 1, /* scratch */
                           .segment_count = count,
                           .segment = segment};
}

void lp_programs_describe(const lp_side_programs *programs, lp_arena *arena, lp_code *out) {
  lp_code_program *described = LP_NEW_ARRAY(arena, lp_code_program, programs->list.count);
  for (size_t i = 0; i < programs->list.count; i++)
    described[i] = describe(programs->list.data[i], arena);
  out->program = described;
  out->program_count = (int32_t)programs->list.count;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

void lp_sizes_add(lp_sizes *sizes, const lp_poly *size) {
  for (size_t i = 0; i < sizes->count; i++)
    if (lp_poly_equal(sizes->data[i], size)) return;
  lp_vec_push(sizes, size);
}

static void add_value(const lp_side_programs *programs, const lp_side_program *program, const lp_value *value,
                      lp_sizes *slots) {
  int64_t buffer = lp_value_buffer(value, programs->side);
  if (buffer < 0 || buffer >= program->buffer_count || lp_value_cache(value)) return;
  lp_sizes_add(&slots[program->slot[buffer]], lp_type_bytes(programs->module, value->type));
}

/* Collects the sizes of arguments, the side's own results, and values that the side receives. */
lp_sizes *lp_program_slot_sizes(const lp_side_programs *programs, const lp_side_program *program) {
  lp_sizes *slots = LP_NEW_ARRAY(programs->arena, lp_sizes, program->slot_count + 1);
  const lp_block *block = program->func->region;
  for (int32_t i = 0; i < block->arg_count; i++)
    add_value(programs, program, block->arg[i], slots);
  LP_FOR_OPS(op, block) {
    if (lp_op_has(op, LP_CONSTANT) || lp_op_at(op) != programs->side) continue;
    for (int32_t i = 0; i < op->out_count; i++)
      add_value(programs, program, op->out[i], slots);
  }
  return slots;
}
