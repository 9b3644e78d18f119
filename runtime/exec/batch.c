/* One pass over several sequences. The code gets one frame for the rows of all sequences, and one for each sequence
 * with its symbols, its KV caches and its part of the arena (base/abi.h). */

#include "runtime/exec/batch.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/ranks.h"
#include "runtime/exec/sampler.h"
#include "runtime/exec/state.h"
#include "runtime/gpu/gpu.h"
#include "runtime/runtime.h"

/* alignment of parts on a CPU; on a GPU sizes are multiples of its pages, so that parts begin at pages */
enum { ALIGNMENT = 64 };

/* Symbols, offsets and memory of a frame. Part 0 belongs to the frame of all sequences, part i + 1 to sequence i. */
typedef struct {
  int64_t sym[LP_MAX_SYMBOLS];
  int64_t *offset; /* [buffers] */
  size_t base, bytes;
} part;

struct lp_batch {
  const lp_bundle *bundle;
  lp_place side;
  lp_pool *pool;
  lp_gpu *gpu; /* borrowed; NULL: a CPU runs the code */
  lp_gpu_memory *gpu_memory;
  bool apart; /* the GPU computes in its own memory; `arena` holds the bytes that are copied there and back */
  int32_t program;
  lp_activations arena;
  size_t arena_bytes;  /* of all parts */
  part *part;          /* [room + 1] */
  lp_frame frame;      /* of all sequences */
  lp_frame *one;       /* [room] of each sequence */
  lp_gpu_owner *owner; /* [room] */
  void **place;        /* [room][states]: of members that are some of the sequences of their states */
  float *found;        /* [rows][1 + 2 * wanted]: the result of lp_gpu_find_top */
  int64_t wanted;
  size_t count, room;
  lp_ranks *ranks; /* that run the half together; NULL: it is not sharded */
  int32_t told;    /* the end of the steps that the other ranks have been told to run */
};

/* ---- programs with the same code --------------------------------------------------------------------------------- */

static bool same_step(const lp_step *a, const lp_step *b, lp_place side) {
  bool ends = a->kind == b->kind && a->side == b->side && a->to == b->to && a->port == b->port && a->state == b->state;
  bool code = a->run == b->run && a->gpu_segment == b->gpu_segment && a->exit == b->exit;
  bool memory = (a->side != side || a->buffer == b->buffer) && (a->to != side || a->to_buffer == b->to_buffer);
  return ends && code && memory && a->rows == b->rows && a->axis == b->axis && a->parts == b->parts;
}

static bool same_code(const lp_program *a, const lp_program *b, lp_place side) {
  bool same = a->layout[side] == b->layout[side] && a->gpu_layout[side] == b->gpu_layout[side] &&
              a->step_count == b->step_count;
  for (int32_t i = 0; same && i < a->step_count; i++) {
    const lp_step *x = &a->step[i], *y = &b->step[i];
    bool here = x->side == side || x->to == side, there = y->side == side || y->to == side;
    same = here == there && (!here || same_step(x, y, side));
  }
  return same;
}

int32_t lp_program_code(const lp_bundle *bundle, lp_place side, int32_t program) {
  const lp_program *programs = bundle->manifest.programs;
  for (int32_t i = 0; i < program; i++)
    if (same_code(&programs[i], &programs[program], side)) return i;
  return program;
}

/* ---- a batch ----------------------------------------------------------------------------------------------------- */

lp_batch *lp_batch_create(const lp_bundle *bundle, lp_place side, lp_pool *pool) {
  if (!bundle->side[side].sequences) return NULL;
  lp_batch *batch = lp_alloc(sizeof *batch);
  batch->bundle = bundle;
  batch->side = side;
  batch->pool = pool;
  batch->ranks = lp_ranks_of(bundle, side);
  batch->gpu = bundle->side[side].gpu;
  if (batch->gpu) batch->gpu_memory = lp_gpu_memory_create(batch->gpu);
  batch->apart = batch->gpu && lp_gpu_is_apart(batch->gpu);
  return batch;
}

lp_gpu_memory *lp_batch_gpu_memory(lp_batch *batch) {
  return batch->gpu_memory;
}

void lp_batch_free(lp_batch *batch) {
  if (!batch) return;
  for (size_t i = 0; batch->part && i <= batch->room; i++)
    free(batch->part[i].offset);
  lp_gpu_memory_free(batch->gpu, batch->gpu_memory);
  free(batch->part);
  free(batch->one);
  free(batch->owner);
  free(batch->place);
  free(batch->found);
  lp_activations_free(&batch->arena);
  free(batch);
}

static void make_parts(lp_batch *batch, size_t count) {
  if (batch->part && count <= batch->room) return;
  size_t buffers = (size_t)lp_manifest_most_buffers(&batch->bundle->manifest, batch->side) + 1;
  size_t had = batch->part ? batch->room + 1 : 0;
  batch->part = lp_realloc(batch->part, (count + 1) * sizeof *batch->part);
  batch->one = lp_realloc(batch->one, count * sizeof *batch->one);
  batch->owner = lp_realloc(batch->owner, count * sizeof *batch->owner);
  size_t states = (size_t)batch->bundle->manifest.state_count + 1;
  batch->place = lp_realloc(batch->place, count * states * sizeof *batch->place);
  for (size_t i = had; i <= count; i++)
    batch->part[i] = (part){.offset = lp_alloc(buffers * sizeof(int64_t))};
  batch->room = count;
}

static lp_loc loc_of(const lp_batch *batch) {
  return LP_LOC_FILE(batch->bundle->manifest.file);
}

/* Sets the symbols of the frame of all sequences. They are those of one sequence with as many tokens as all sequences
 * have together. */
static void sum_up(lp_batch *batch, const lp_batch_member *member) {
  int64_t *all = batch->part[0].sym;
  memset(all, 0, sizeof batch->part[0].sym);
  all[LP_SYM_B] = 1;
  all[LP_SYM_T] = lp_pool_threads(batch->pool);
  lp_ranks_set_symbol(batch->bundle, batch->side, all);
  for (size_t i = 0; i < batch->count; i++) {
    const int64_t *sym = member[i].sym;
    batch->one[i] = (lp_frame){.row = all[LP_SYM_S], .last_row = all[LP_SYM_R]};
    all[LP_SYM_S] += sym[LP_SYM_B] * sym[LP_SYM_S];
    all[LP_SYM_R] += sym[LP_SYM_B] * sym[LP_SYM_R];
    memcpy(batch->part[i + 1].sym, sym, sizeof member[i].sym);
    batch->part[i + 1].sym[LP_SYM_T] = all[LP_SYM_T];
    lp_ranks_set_symbol(batch->bundle, batch->side, batch->part[i + 1].sym);
  }
}

/* Lays the buffers of a frame out in its part of the arena. Returns the bytes of the part; negative: it is too large.
 */
static int64_t lay_out_part(const lp_batch *batch, const lp_program *desc, part *p) {
  if (!desc->layout_name[batch->side]) return 0;
  if (batch->gpu) return lp_gpu_lay_out(batch->gpu, desc->gpu_layout[batch->side], p->sym, p->offset);
  return desc->layout[batch->side](p->sym, p->offset);
}

/* The GPU's own activations, and room for what ranks gather of any frame. */
static lp_status make_apart(lp_batch *batch, size_t bytes, lp_diag *diag) {
  const lp_manifest *manifest = &batch->bundle->manifest;
  const lp_program *program = &manifest->programs[batch->program];
  size_t most = 0;
  for (size_t i = 0; batch->ranks && i <= batch->count; i++) {
    size_t room = lp_ranks_room(batch->ranks, manifest, program, batch->side, batch->part[i].sym);
    if (room > most) most = room;
  }
  if (most > 0 && !lp_size_add(lp_ranks_room_at(bytes), most, &bytes))
    return lp_error(diag, loc_of(batch), "program '%s' gathers too much", program->name);
  return lp_gpu_make_arena(batch->gpu, batch->gpu_memory, bytes, diag);
}

/* Makes room in the arena and in a GPU's own memory. A GPU that shares the arena unmaps it before it moves. */
static lp_status make_arena(lp_batch *batch, size_t bytes, lp_diag *diag) {
  if (batch->gpu && !batch->apart && bytes > batch->arena.bytes) lp_gpu_memory_reset(batch->gpu, batch->gpu_memory);
  batch->arena_bytes = bytes;
  if (!lp_activations_reserve(&batch->arena, bytes))
    return lp_error(diag, loc_of(batch), "no memory for %zu bytes of activations on the %s", bytes,
                    lp_bundle_place_name(batch->bundle, batch->side));
  return batch->apart ? make_apart(batch, bytes, diag) : LP_OK;
}

static lp_status lay_out(lp_batch *batch, lp_diag *diag) {
  const lp_program *desc = &batch->bundle->manifest.programs[batch->program];
  size_t end = 0;
  for (size_t i = 0; i <= batch->count; i++) {
    part *p = &batch->part[i];
    int64_t bytes = lay_out_part(batch, desc, p);
    p->base = end;
    if (bytes < 0 || !lp_size_add(end, (size_t)bytes, &end) || !lp_size_add(end, ALIGNMENT - 1, &end))
      return lp_error(diag, loc_of(batch), "program '%s' asks for %" PRId64 " bytes of activations", desc->name, bytes);
    p->bytes = (size_t)bytes;
    end = end / ALIGNMENT * ALIGNMENT;
  }
  return make_arena(batch, end, diag);
}

static void set_frame(const lp_batch *batch, lp_frame *frame, const part *p, void *const *state) {
  frame->sym = p->sym;
  frame->offset = p->offset;
  frame->arena = batch->arena.data + p->base;
  frame->weights = batch->bundle->side[batch->side].data;
  frame->state = state;
}

static bool is_symbol(const lp_poly *poly, lp_symbol symbol) {
  return poly->count == 1 && poly->term[0].coef == 1 && poly->term[0].symbol[0] == symbol &&
         poly->term[0].symbol[1] == 0;
}

bool lp_batch_takes_part(const lp_batch *batch) {
  const lp_manifest *manifest = &batch->bundle->manifest;
  LP_FOR_EACH(const lp_state_desc, desc, manifest->states, manifest->state_count) {
    if (!desc->on[batch->side]) continue;
    if (desc->tensor.rank < 1 || desc->append_axis == 0 || !is_symbol(desc->tensor.shape[0], LP_SYM_B + 1))
      return false;
  }
  return !batch->gpu;
}

static lp_status reserve(const lp_batch_member *member, lp_diag *diag) {
  int64_t sym[LP_MAX_SYMBOLS];
  memcpy(sym, member->sym, sizeof sym);
  if (member->of > 0) sym[LP_SYM_B] = member->of;
  return lp_states_reserve(member->states, sym, diag);
}

/* The states of a member: the sequences before its first are skipped in each. */
static void *const *places(const lp_batch *batch, size_t i, const lp_batch_member *member) {
  const lp_states *states = member->states;
  size_t count = (size_t)batch->bundle->manifest.state_count;
  void **place = batch->place + i * (count + 1);
  if (member->of == 0) return states->pointer;
  for (size_t k = 0; k < count; k++)
    place[k] = states->pointer[k]
                   ? (char *)states->pointer[k] + states->bytes[k] / (size_t)member->of * (size_t)member->first
                   : NULL;
  return place;
}

/* Tells the other ranks which sequences the pass has. */
static lp_status tell_members(lp_batch *batch, int32_t program, const lp_batch_member *member, size_t count,
                              lp_diag *diag) {
  batch->told = 0;
  if (!batch->ranks) return LP_OK;
  LP_OWNED(lp_free_at) rank_member *list = lp_alloc((count + 1) * sizeof *list);
  for (size_t i = 0; i < count; i++) {
    list[i] = (rank_member){.id = member[i].states->id, .first = member[i].first, .of = member[i].of};
    memcpy(list[i].sym, member[i].sym, sizeof list[i].sym);
  }
  const rank_order order = {.kind = LP_TELL_MEMBER, .program = program, .size = count * sizeof *list};
  return lp_ranks_tell(batch->ranks, order, list, diag);
}

static lp_status begin(lp_batch *batch, int32_t program, const lp_batch_member *member, size_t count, lp_diag *diag) {
  batch->count = 0;
  make_parts(batch, count);
  for (size_t i = 0; i < count; i++)
    LP_TRY(reserve(&member[i], diag));
  for (size_t i = 0; i < count && batch->gpu; i++) {
    batch->owner[i] = (lp_gpu_owner){member[i].states->gpu_memory, member[i].states->bytes};
    LP_TRY(lp_gpu_wait(batch->gpu, member[i].states->gpu_memory, diag)); /* for runs outside of passes */
  }
  batch->count = count;
  batch->program = program;
  sum_up(batch, member);
  lp_status status = lay_out(batch, diag);
  if (status != LP_OK) {
    batch->count = 0;
    return status;
  }
  batch->frame = (lp_frame){.sequences = (int64_t)count, .sequence = batch->one};
  set_frame(batch, &batch->frame, &batch->part[0], NULL);
  for (size_t i = 0; i < count; i++)
    set_frame(batch, &batch->one[i], &batch->part[i + 1], places(batch, i, &member[i]));
  return LP_OK;
}

lp_status lp_batch_begin(lp_batch *batch, int32_t program, const lp_batch_member *member, size_t count, lp_diag *diag) {
  LP_TRY(lp_ranks_check(batch->bundle, batch->side, diag));
  LP_TRY(tell_members(batch, program, member, count, diag));
  return lp_ranks_agree(batch->ranks, begin(batch, program, member, count, diag), diag);
}

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
                    lp_bundle_place_name(batch->bundle, batch->side));
  *out = (lp_span){.data = bytes > 0 ? batch->arena.data + holder->base + offset : NULL, .size = bytes};
  return LP_OK;
}

static lp_status copy_run(lp_batch *batch, const lp_span *run, bool bring, lp_diag *diag) {
  if (run->size == 0) return LP_OK;
  size_t offset = (size_t)((const char *)run->data - batch->arena.data);
  return bring ? lp_gpu_write(batch->gpu, batch->gpu_memory, offset, run->data, run->size, diag)
               : lp_gpu_read(batch->gpu, batch->gpu_memory, offset, run->data, run->size, diag);
}

/* Copies the buffer of the selected sequences, contiguous bytes in one call. */
static lp_status copy_all(lp_batch *batch, int32_t buffer, const lp_step *step, bool bring, const bool *selected,
                          lp_diag *diag) {
  lp_span run = {0};
  for (size_t i = 0; i < batch->count && batch->apart; i++) {
    lp_span span = {0};
    LP_TRY(lp_batch_buffer(batch, i, buffer, step, &span, diag));
    if (span.size == 0 || (selected && !selected[i])) continue;
    if (run.size > 0 && (char *)run.data + run.size == span.data) {
      run.size += span.size;
      continue;
    }
    LP_TRY(copy_run(batch, &run, bring, diag));
    run = span;
  }
  return copy_run(batch, &run, bring, diag);
}

static int32_t index_of(const lp_batch *batch, const lp_step *step) {
  return (int32_t)(step - batch->bundle->manifest.programs[batch->program].step);
}

/* Gives the other ranks what the sequences have in the buffer. */
static lp_status tell_buffer(lp_batch *batch, int32_t buffer, const lp_step *step, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf all = {0};
  lp_status status = LP_OK;
  if (!batch->ranks || batch->ranks->collective.rank > 0) return LP_OK;
  for (size_t i = 0; i < batch->count && status == LP_OK; i++) {
    lp_span span = {0};
    status = lp_batch_buffer(batch, i, buffer, step, &span, diag);
    if (status == LP_OK && span.size > 0) lp_buf_append(&all, span.data, span.size);
  }
  const rank_order order = {.kind = LP_TELL_FILL, .step = index_of(batch, step), .buffer = buffer, .size = all.size};
  if (status == LP_OK) status = lp_ranks_tell(batch->ranks, order, all.data, diag);
  return status;
}

lp_status lp_batch_bring(lp_batch *batch, int32_t buffer, const lp_step *step, lp_diag *diag) {
  LP_TRY(tell_buffer(batch, buffer, step, diag));
  return copy_all(batch, buffer, step, true, NULL, diag);
}

lp_status lp_batch_fetch(lp_batch *batch, int32_t buffer, const lp_step *step, const bool *selected, lp_diag *diag) {
  return copy_all(batch, buffer, step, false, selected, diag);
}

/* ---- logits ------------------------------------------------------------------------------------------------------ */

bool lp_batch_finds_top(const lp_batch *batch, const lp_step *step) {
  return batch->apart && lp_gpu_has_top(batch->gpu) && step->rows != LP_ROWS_NONE;
}

static int64_t rows_of(const int64_t *sym, const lp_step *step) {
  return sym[LP_SYM_B] * sym[step->rows == LP_ROWS_LAST ? LP_SYM_R : LP_SYM_S];
}

lp_status lp_batch_find_top(lp_batch *batch, const lp_step *step, int32_t wanted, lp_diag *diag) {
  lp_gpu_top top = {.rows = rows_of(batch->part[0].sym, step),
                    .vocab = batch->bundle->manifest.vocab,
                    .apart = batch->bundle->manifest.vocab,
                    .wanted = wanted};
  for (size_t i = batch->count;
       i-- > 0;) { /* backwards, so that `top.offset` ends as that of the first sequence with rows */
    lp_span span;
    lp_logits logits;
    LP_TRY(lp_batch_buffer(batch, i, step->buffer, step, &span, diag));
    if (span.size == 0) continue;
    LP_TRY(lp_logits_read(&batch->bundle->manifest, batch->part[i + 1].sym, &span, &logits, diag));
    top.offset = (size_t)((const char *)span.data - batch->arena.data);
  }
  batch->wanted = wanted;
  batch->found = lp_realloc(batch->found, (size_t)(top.rows * (1 + 2 * top.wanted)) * sizeof(float));
  return lp_gpu_find_top(batch->gpu, batch->gpu_memory, &top, batch->found, diag);
}

lp_status lp_batch_logits(const lp_batch *batch, size_t sequence, const lp_step *step, bool found, lp_logits *out,
                          lp_diag *diag) {
  const lp_frame *one = &batch->one[sequence];
  lp_span span;
  LP_TRY(lp_batch_buffer(batch, sequence, step->buffer, step, &span, diag));
  LP_TRY(lp_logits_read(&batch->bundle->manifest, one->sym, &span, out, diag));
  if (!found) return LP_OK;
  out->wanted = batch->wanted;
  out->found = batch->found + (step->rows == LP_ROWS_LAST ? one->last_row : one->row) * (1 + 2 * out->wanted);
  return LP_OK;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static lp_status tell_run(lp_batch *batch, const lp_step *step, lp_diag *diag) {
  const lp_program *program = &batch->bundle->manifest.programs[batch->program];
  return lp_ranks_tell_run(batch->ranks, 0, program, step, &batch->told, diag);
}

/* Gathers in the memory of one frame. */
static lp_status gather_part(lp_batch *batch, const part *p, const lp_step *step, lp_diag *diag) {
  size_t outer, inner, from = (size_t)p->offset[step->buffer], to = (size_t)p->offset[step->to_buffer], whole = 0;
  bool fits = lp_ranks_extent(step, p->sym, batch->bundle->manifest.symbol_count, &outer, &inner) &&
              lp_size_mul(outer * inner, (size_t)step->parts, &whole) && from <= p->bytes &&
              outer * inner <= p->bytes - from && to <= p->bytes && whole <= p->bytes - to;
  if (!fits)
    return lp_error(diag, loc_of(batch), "'%.80s' does not fit its buffers %d and %d on the %s", step->tensor.name,
                    step->buffer, step->to_buffer, lp_bundle_place_name(batch->bundle, batch->side));
  char *arena = batch->arena.data + p->base;
  if (!batch->apart) return lp_ranks_gather(batch->ranks, step, arena + from, outer, inner, arena + to, diag);
  const lp_gpu_parts parts = {.part = p->base + from,
                              .whole = p->base + to,
                              .room = lp_ranks_room_at(batch->arena_bytes),
                              .outer = outer,
                              .inner = inner,
                              .parts = step->parts};
  return lp_ranks_keep_up(batch->ranks, lp_gpu_gather(batch->gpu, batch->gpu_memory, &parts, diag));
}

lp_status lp_batch_gather(lp_batch *batch, const lp_step *step, lp_diag *diag) {
  LP_TRY(tell_run(batch, step, diag));
  if (step->rows != LP_ROWS_NONE) return gather_part(batch, &batch->part[0], step, diag);
  for (size_t i = 0; i < batch->count; i++)
    LP_TRY(gather_part(batch, &batch->part[i + 1], step, diag));
  return LP_OK;
}

lp_status lp_batch_run(lp_batch *batch, const lp_step *step, lp_diag *diag) {
  LP_TRY(tell_run(batch, step, diag));
  if (batch->gpu) {
    int32_t layout = batch->bundle->manifest.programs[batch->program].gpu_layout[batch->side];
    return lp_ranks_keep_up(batch->ranks, lp_gpu_run(batch->gpu, batch->gpu_memory, layout, step->gpu_segment,
                                                     &batch->frame, batch->arena_bytes, batch->owner, diag));
  }
  lp_pool_run(batch->pool, step->run, &batch->frame, (int64_t)batch->bundle->side[batch->side].weights.size);
  return LP_OK;
}

lp_status lp_batch_end(lp_batch *batch, lp_diag *diag) {
  return batch->gpu ? lp_gpu_wait(batch->gpu, batch->gpu_memory, diag) : LP_OK;
}
