/* Tables that kernels read from memory of the GPU, so that one launch serves all sequences of a pass, and a recorded
 * launch other contexts. Each row of a table has one number for each sequence:
 *   the new rows, and the last rows, of the sequences before it
 *   each size that grows with the context, or that a launch for all sequences takes
 *   the address of each KV cache, of each buffer of its own that such launches use, and of its scratch
 * One copy before a segment brings the tables to the GPU.
 */
#include "runtime/gpu/tables.h"

#include "base/poly.h"
#include "runtime/gpu/code.h"
#include "runtime/gpu/sizes.h"

/* ---- contents ---------------------------------------------------------------------------------------------------- */

static int32_t place_of_size(lp_gpu *gpu, const lp_poly *size) {
  for (size_t i = 0; i < gpu->moving.count; i++)
    if (lp_poly_equal(gpu->moving.data[i], size)) return (int32_t)i;
  lp_vec_push(&gpu->moving, size);
  return (int32_t)gpu->moving.count - 1;
}

static size_t place_of_own(const lp_gpu *gpu, int64_t buffer) {
  size_t at = 0;
  while (at < gpu->own.count && gpu->own.data[at] != buffer)
    at++;
  return at;
}

static void find_sizes(lp_gpu *gpu, lp_gpu_launch *launch) {
  int64_t number;
  LP_FOR_EACH(lp_gpu_arg, arg, launch->arg, launch->arg_count) {
    if (arg->kind != LP_GPU_ARG_SIZE || lp_poly_is_const(arg->size, &number)) continue;
    if (launch->spread || lp_gpu_grows(arg->size)) arg->moving = place_of_size(gpu, arg->size);
  }
}

static void find_own(lp_gpu *gpu, const lp_gpu_call *call) {
  for (int32_t i = 0; i < call->ref_count && !call->joint; i++) {
    const lp_gpu_ref *ref = &call->ref[i];
    if (ref->place == LP_GPU_BUFFER && ref->holds == LP_GPU_OWN && place_of_own(gpu, ref->index) == gpu->own.count)
      lp_vec_push(&gpu->own, ref->index);
  }
}

void lp_gpu_find_tables(lp_gpu *gpu) {
  for (int32_t i = 0; i < gpu->table.launcher_count; i++)
    for (int32_t k = 0; k < gpu->table.launcher[i].count; k++)
      find_sizes(gpu, &gpu->table.launcher[i].launch[k]);
  for (int32_t i = 0; i < gpu->table.segment_count; i++)
    for (int32_t k = 0; k < gpu->table.segment[i].count; k++)
      find_own(gpu, &gpu->table.segment[i].call[k]);
}

/* ---- numbers of rows --------------------------------------------------------------------------------------------- */

enum { NEW_ROWS, LAST_ROWS, SIZES };

static size_t row_of_state(const lp_gpu *gpu, int64_t state) {
  return SIZES + gpu->moving.count + (size_t)state;
}

static size_t row_of_own(const lp_gpu *gpu, size_t place) {
  return row_of_state(gpu, gpu->states) + place;
}

static size_t row_of_scratch(const lp_gpu *gpu) {
  return row_of_own(gpu, gpu->own.count);
}

static const int64_t *at_row(const lp_gpu_pass *pass, size_t row, int64_t first) {
  return pass->memory->tables + row * (size_t)lp_gpu_sequences(pass) + first;
}

const int64_t *lp_gpu_size_at(const lp_gpu_pass *pass, int32_t moving, int64_t first) {
  return at_row(pass, SIZES + (size_t)moving, first);
}

lp_gpu_value lp_gpu_spread_value(const lp_gpu_pass *pass, const lp_gpu_ref *ref, int64_t first) {
  const lp_gpu_part all = lp_gpu_part_of(pass, 0);
  lp_gpu_value value = {.is_memory = true, .scale = 1};
  if (!ref) {
    value.by = at_row(pass, row_of_scratch(pass->gpu), first);
  } else if (ref->place == LP_GPU_STATE) {
    value.by = at_row(pass, row_of_state(pass->gpu, ref->index), first);
  } else if (ref->place == LP_GPU_BUFFER && ref->holds == LP_GPU_OWN) {
    value.by = at_row(pass, row_of_own(pass->gpu, place_of_own(pass->gpu, ref->index)), first);
  } else {
    value.memory = lp_gpu_memory_of(pass, &all, ref);
    if (ref->place == LP_GPU_WEIGHT) return value;
    value.by = at_row(pass, ref->holds == LP_GPU_NEW_ROWS ? NEW_ROWS : LAST_ROWS, first);
    value.scale = ref->bytes;
  }
  return value;
}

/* ---- filling them ------------------------------------------------------------------------------------------------ */

static int64_t address(const void *memory) {
  return (int64_t)(uintptr_t)memory;
}

/* Fills the column of one sequence; rows are `apart` numbers apart. */
static void fill_column(const lp_gpu_pass *pass, const lp_gpu_part *part, size_t apart, int64_t *column) {
  const lp_gpu *gpu = pass->gpu;
  column[NEW_ROWS * apart] = lp_gpu_rows_before(part, LP_GPU_NEW_ROWS);
  column[LAST_ROWS * apart] = lp_gpu_rows_before(part, LP_GPU_LAST_ROWS);
  for (size_t i = 0; i < gpu->moving.count; i++)
    column[(SIZES + i) * apart] = lp_gpu_eval(gpu, gpu->moving.data[i], part->frame->sym);
  for (int32_t i = 0; i < gpu->states; i++)
    column[row_of_state(gpu, i) * apart] = address(part->frame->state[i]);
  for (size_t i = 0; i < gpu->own.count; i++) {
    const lp_gpu_ref ref = {.place = LP_GPU_BUFFER, .index = gpu->own.data[i]};
    bool there = ref.index < pass->layout->buffers;
    column[row_of_own(gpu, i) * apart] = there ? address(lp_gpu_memory_of(pass, part, &ref)) : 0;
  }
  column[row_of_scratch(gpu) * apart] = address(lp_gpu_scratch_of(pass, part));
}

static bool make_room(const lp_gpu_pass *pass, size_t bytes) {
  lp_gpu_memory *memory = pass->memory;
  const lp_gpu_api *api = pass->gpu->api;
  if (bytes <= memory->table_bytes) return true;
  if (memory->tables) (void)api->finish(memory->queue);
  api->release(pass->gpu->device, memory->tables);
  memory->tables = api->reserve(memory->queue, bytes);
  memory->table_bytes = memory->tables ? bytes : 0;
  return memory->tables != NULL;
}

bool lp_gpu_bring_tables(const lp_gpu_pass *pass) {
  size_t count = (size_t)lp_gpu_sequences(pass), rows = row_of_scratch(pass->gpu) + 1;
  size_t bytes = rows * count * sizeof(int64_t);
  if (!make_room(pass, bytes)) return false;
  LP_OWNED(lp_free_at) int64_t *now = lp_alloc(bytes);
  for (size_t i = 0; i < count; i++) {
    const lp_gpu_part part = lp_gpu_part_of(pass, pass->frame->sequences > 0 ? (int64_t)i + 1 : 0);
    fill_column(pass, &part, count, now + i);
  }
  return pass->gpu->api->copy(pass->memory->queue, pass->memory->tables, false, now, true, bytes);
}
