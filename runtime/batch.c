/* One pass over several sequences: a frame for the rows of all, and one for each sequence with its symbols, its caches and a part of
 * the arena (base/abi.h). */
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime_internal.h"

enum { ALIGNMENT = 64 };

/* Symbols, offsets and memory of a frame. Number 0 is that of all; sequence i has i + 1. */
typedef struct {
  int64_t sym[LP_MAX_SYMBOLS];
  int64_t *offset; /* [buffers] */
  size_t base, bytes;
} part;

struct lp_batch {
  const lp_bundle *bundle;
  lp_side_id side;
  lp_pool *pool;
  lp_activations arena;
  part *part;           /* [room + 1] */
  lp_frame frame, *one; /* of all; [room] */
  size_t count, room;
};

/* ---- which programs are the same code ------------------------------------------------------------------------------- */

static bool same_step(const lp_step *a, const lp_step *b, lp_side_id side) {
  bool ends = a->kind == b->kind && a->side == b->side && a->to == b->to && a->port == b->port && a->state == b->state;
  bool code = a->run == b->run && a->gpu_segment == b->gpu_segment && a->exit == b->exit;
  bool memory = (a->side != side || a->buffer == b->buffer) && (a->to != side || a->to_buffer == b->to_buffer);
  return ends && code && memory && a->rows == b->rows;
}

static bool same_code(const lp_program *a, const lp_program *b, lp_side_id side) {
  bool same = a->layout[side] == b->layout[side] && a->gpu_layout[side] == b->gpu_layout[side] &&
              a->step_count == b->step_count;
  for (int32_t i = 0; same && i < a->step_count; i++) {
    const lp_step *x = &a->step[i], *y = &b->step[i];
    bool here = x->side == side || x->to == side, there = y->side == side || y->to == side;
    same = here == there && (!here || same_step(x, y, side));
  }
  return same;
}

int32_t lp_program_code(const lp_bundle *bundle, lp_side_id side, int32_t program) {
  const lp_program *programs = bundle->manifest.programs;
  for (int32_t i = 0; i < program; i++)
    if (same_code(&programs[i], &programs[program], side)) return i;
  return program;
}

/* ---- a batch ----------------------------------------------------------------------------------------------------------- */

lp_batch *lp_batch_create(const lp_bundle *bundle, lp_side_id side, lp_pool *pool) {
  if (!bundle->side[side].sequences) return NULL;
  lp_batch *batch = lp_alloc(sizeof(*batch));
  batch->bundle = bundle;
  batch->side = side;
  batch->pool = pool;
  return batch;
}

void lp_batch_free(lp_batch *batch) {
  if (batch == NULL) return;
  for (size_t i = 0; batch->part != NULL && i <= batch->room; i++)
    free(batch->part[i].offset);
  free(batch->part);
  free(batch->one);
  lp_activations_free(&batch->arena);
  free(batch);
}

static void make_parts(lp_batch *batch, size_t count) {
  if (batch->part != NULL && count <= batch->room) return;
  size_t buffers = (size_t)lp_manifest_most_buffers(&batch->bundle->manifest, batch->side) + 1;
  size_t had = batch->part != NULL ? batch->room + 1 : 0;
  batch->part = lp_realloc(batch->part, (count + 1) * sizeof(*batch->part));
  batch->one = lp_realloc(batch->one, count * sizeof(*batch->one));
  for (size_t i = had; i <= count; i++)
    batch->part[i] = (part){.offset = lp_alloc(buffers * sizeof(int64_t))};
  batch->room = count;
}

static lp_loc loc_of(const lp_batch *batch) {
  return LP_LOC_FILE(batch->bundle->manifest.file);
}

/* Symbols of the frame of all: one sequence as long as all together. */
static void sum_up(lp_batch *batch, const lp_batch_member *member) {
  int64_t *all = batch->part[0].sym;
  memset(all, 0, sizeof(batch->part[0].sym));
  all[LP_SYM_B] = 1;
  all[LP_SYM_T] = lp_pool_threads(batch->pool);
  for (size_t i = 0; i < batch->count; i++) {
    const int64_t *sym = member[i].sym;
    batch->one[i] = (lp_frame){.row = all[LP_SYM_S], .last_row = all[LP_SYM_R]};
    all[LP_SYM_S] += sym[LP_SYM_B] * sym[LP_SYM_S];
    all[LP_SYM_R] += sym[LP_SYM_B] * sym[LP_SYM_R];
    memcpy(batch->part[i + 1].sym, sym, sizeof(member[i].sym));
    batch->part[i + 1].sym[LP_SYM_T] = all[LP_SYM_T];
  }
}

static lp_status lay_out(lp_batch *batch, int32_t program, lp_diag *diag) {
  const lp_program *desc = &batch->bundle->manifest.programs[program];
  size_t end = 0;
  for (size_t i = 0; i <= batch->count; i++) {
    part *p = &batch->part[i];
    int64_t bytes = desc->layout[batch->side] != NULL ? desc->layout[batch->side](p->sym, p->offset) : 0;
    p->base = end;
    if (bytes < 0 || !lp_size_add(end, (size_t)bytes, &end) || !lp_size_add(end, ALIGNMENT - 1, &end))
      return lp_error(diag, loc_of(batch), "program '%s' asks for %" PRId64 " bytes of activations", desc->name, bytes);
    p->bytes = (size_t)bytes;
    end = end / ALIGNMENT * ALIGNMENT;
  }
  if (lp_activations_reserve(&batch->arena, end)) return LP_OK;
  return lp_error(diag, loc_of(batch), "no memory for %zu bytes of activations on the %s", end,
                  lp_side_name(batch->side));
}

static void set_frame(const lp_batch *batch, lp_frame *frame, const part *p, void *const *state) {
  frame->sym = p->sym;
  frame->offset = p->offset;
  frame->arena = batch->arena.data + p->base;
  frame->weights = batch->bundle->side[batch->side].data;
  frame->state = state;
}

lp_status lp_batch_begin(lp_batch *batch, int32_t program, const lp_batch_member *member, size_t count, lp_diag *diag) {
  batch->count = 0;
  make_parts(batch, count);
  for (size_t i = 0; i < count; i++)
    LP_TRY(lp_states_reserve(member[i].states, member[i].sym, diag));
  batch->count = count;
  sum_up(batch, member);
  lp_status status = lay_out(batch, program, diag);
  if (status != LP_OK) {
    batch->count = 0;
    return status;
  }
  batch->frame = (lp_frame){.sequences = (int64_t)count, .sequence = batch->one};
  set_frame(batch, &batch->frame, &batch->part[0], NULL);
  for (size_t i = 0; i < count; i++)
    set_frame(batch, &batch->one[i], &batch->part[i + 1], member[i].states->pointer);
  return LP_OK;
}

/* The rows of a sequence among those of all, or its own buffer. */
lp_status lp_batch_buffer(const lp_batch *batch, size_t sequence, int32_t buffer, const lp_step *step, lp_span *out,
                          lp_diag *diag) {
  const lp_frame *frame = &batch->one[sequence];
  const part *own = &batch->part[sequence + 1], *holder = step->rows == LP_ROWS_NONE ? own : &batch->part[0];
  size_t bytes = 0, first = 0;
  bool fits = lp_tensor_bytes(&step->tensor, own->sym, batch->bundle->manifest.symbol_count, &bytes);
  if (fits && step->rows != LP_ROWS_NONE) {
    bool last = step->rows == LP_ROWS_LAST;
    int64_t rows = own->sym[LP_SYM_B] * own->sym[last ? LP_SYM_R : LP_SYM_S];
    first = rows > 0 ? bytes / (size_t)rows * (size_t)(last ? frame->last_row : frame->row) : 0;
  }
  size_t offset = holder->offset[buffer] >= 0 ? (size_t)holder->offset[buffer] : SIZE_MAX;
  if (!fits || !lp_size_add(offset, first, &offset) || offset > holder->bytes || bytes > holder->bytes - offset)
    return lp_error(diag, loc_of(batch), "'%.80s' does not fit its buffer %d on the %s", step->tensor.name, buffer,
                    lp_side_name(batch->side));
  *out = (lp_span){.data = bytes > 0 ? batch->arena.data + holder->base + offset : NULL, .size = bytes};
  return LP_OK;
}

void lp_batch_run(lp_batch *batch, const lp_step *step) {
  lp_pool_run(batch->pool, step->run, &batch->frame);
}
