/* Runs one side's steps of a program: layout, activations, segments, samples. */

#include "runtime/exec/executor.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/ranks.h"
#include "runtime/exec/sampler.h"
#include "runtime/exec/state.h"
#include "runtime/gpu/gpu.h"
#include "runtime/runtime.h"

lp_executor *lp_executor_create(const lp_bundle *bundle, lp_place side, lp_pool *pool) {
  lp_executor *executor = lp_alloc(sizeof *executor);
  executor->bundle = bundle;
  executor->side = side;
  executor->pool = pool;
  executor->program = -1;
  executor->offset = lp_alloc(sizeof(int64_t) * ((size_t)lp_manifest_most_buffers(&bundle->manifest, side) + 1));
  lp_states_init(&executor->states, &bundle->manifest, side);
  lp_gpu *gpu = bundle->side[side].gpu;
  if (gpu) executor->gpu_memory = lp_gpu_memory_create(gpu);
  executor->apart = executor->states.apart = gpu && lp_gpu_is_apart(gpu);
  executor->ranks = lp_ranks_of(bundle, side);
  if (executor->ranks) executor->states.id = ++executor->ranks->last_id;
  executor->states.gpu = gpu;
  executor->states.gpu_memory = executor->gpu_memory;
  executor->frame = (lp_frame){.sym = executor->sym,
                               .offset = executor->offset,
                               .weights = bundle->side[side].data,
                               .state = executor->states.pointer};
  return executor;
}

/* What the other ranks are told about the executor. A failure shows at the next run. */
static void tell(lp_executor *executor, rank_order_kind kind) {
  lp_status told = lp_ranks_tell(executor->ranks, (rank_order){.kind = kind, .id = executor->states.id}, NULL, NULL);
  (void)told;
}

void lp_executor_free(lp_executor *executor) {
  if (!executor) return;
  if (executor->bundle->ranks) tell(executor, LP_TELL_FREE);
  lp_gpu *gpu = executor->bundle->side[executor->side].gpu;
  if (executor->gpu_memory) lp_gpu_memory_reset(gpu, executor->gpu_memory);
  lp_states_free(&executor->states);
  lp_gpu_memory_free(gpu, executor->gpu_memory);
  lp_activations_free(&executor->arena);
  free(executor->offset);
  free(executor);
}

/* Makes the GPU unmap the memory that it shares with the host, before that memory is freed or moves. */
static void unshare(lp_executor *executor) {
  if (executor->gpu_memory && !executor->apart)
    lp_gpu_memory_reset(executor->bundle->side[executor->side].gpu, executor->gpu_memory);
}

void lp_executor_forget(lp_executor *executor) {
  tell(executor, LP_TELL_FORGET);
  lp_states_drop(&executor->states);
}

static lp_loc loc_of(const lp_executor *executor) {
  return LP_LOC_FILE(executor->bundle->manifest.file);
}

static lp_status grow_arena(lp_executor *executor, size_t bytes, lp_diag *diag) {
  if (bytes <= executor->arena.bytes) return LP_OK;
  unshare(executor);
  if (lp_activations_reserve(&executor->arena, bytes)) return LP_OK;
  return lp_error(diag, loc_of(executor), "no memory for %zu bytes of activations on the %s", bytes,
                  lp_bundle_place_name(executor->bundle, executor->side));
}

/* The GPU's own activations, and room for what ranks gather. */
static lp_status make_apart(lp_executor *executor, const lp_program *program, size_t bytes, lp_diag *diag) {
  size_t room = lp_ranks_room(executor->ranks, &executor->bundle->manifest, program, executor->side, executor->sym);
  if (room > 0 && !lp_size_add(lp_ranks_room_at(bytes), room, &bytes))
    return lp_error(diag, loc_of(executor), "program '%s' gathers too much", program->name);
  return lp_gpu_make_arena(executor->bundle->side[executor->side].gpu, executor->gpu_memory, bytes, diag);
}

static lp_status lay_out(lp_executor *executor, int32_t program, lp_diag *diag) {
  const lp_program *desc = &executor->bundle->manifest.programs[program];
  lp_layout_fn *layout = desc->layout[executor->side];
  lp_gpu *gpu = executor->bundle->side[executor->side].gpu;
  executor->program = -1;
  int64_t bytes = layout ? layout(executor->sym, executor->offset) : 0;
  if (gpu && desc->layout_name[executor->side])
    bytes = lp_gpu_lay_out(gpu, desc->gpu_layout[executor->side], executor->sym, executor->offset);
  if (bytes < 0)
    return lp_error(diag, loc_of(executor), "program '%s' asks for %" PRId64 " bytes of activations", desc->name,
                    bytes);
  /* When a GPU has its own memory, the arena holds copies of the buffers that are read; its other pages stay
   * untouched. */
  LP_TRY(grow_arena(executor, (size_t)bytes, diag));
  if (executor->apart) LP_TRY(make_apart(executor, desc, (size_t)bytes, diag));
  executor->layout_bytes = (size_t)bytes;
  executor->frame.arena = executor->arena.data;
  executor->program = program;
  return LP_OK;
}

static lp_status begin(lp_executor *executor, int32_t program, const int64_t *sym, size_t size, lp_diag *diag) {
  bool same = executor->program == program && memcmp(executor->sym, sym, size) == 0;
  if (!same) executor->program = -1; /* the old layout no longer fits `sym`, even if this call fails */
  memcpy(executor->sym, sym, size);
  LP_TRY(lp_states_reserve(&executor->states, executor->sym, diag));
  return same ? LP_OK : lay_out(executor, program, diag);
}

lp_status lp_executor_begin(lp_executor *executor, int32_t program, const int64_t *sym, lp_diag *diag) {
  size_t size = sizeof(int64_t) * (size_t)executor->bundle->manifest.symbol_count;
  int64_t own[LP_MAX_SYMBOLS] = {0};
  memcpy(own, sym, size);
  own[LP_SYM_T] = lp_pool_threads(executor->pool);
  lp_ranks_set_symbol(executor->bundle, executor->side, own);
  LP_TRY(lp_ranks_check(executor->bundle, executor->side, diag));
  executor->told = 0;
  const rank_order order = {.kind = LP_TELL_BEGIN, .id = executor->states.id, .program = program, .size = size};
  LP_TRY(lp_ranks_tell(executor->ranks, order, own, diag));
  return lp_ranks_agree(executor->ranks, begin(executor, program, own, size, diag), diag);
}

/* Gives the place of the tensor in the arena. */
static lp_status find_buffer(lp_executor *executor, int32_t buffer, const lp_tensor_desc *tensor, lp_span *out,
                             lp_diag *diag) {
  size_t bytes = 0;
  if (!lp_tensor_bytes(tensor, executor->sym, executor->bundle->manifest.symbol_count, &bytes))
    return lp_error(diag, loc_of(executor), "the size of '%.80s' is negative or too large", tensor->name);
  int64_t offset = executor->offset[buffer];
  if (offset < 0 || (size_t)offset > executor->layout_bytes || bytes > executor->layout_bytes - (size_t)offset)
    return lp_error(diag, loc_of(executor), "'%.80s' (%zu bytes) does not fit its buffer %d on the %s", tensor->name,
                    bytes, buffer, lp_bundle_place_name(executor->bundle, executor->side));
  *out = (lp_span){.data = bytes > 0 ? executor->arena.data + offset : NULL, .size = bytes};
  return LP_OK;
}

static size_t offset_of(const lp_executor *executor, const lp_span *span) {
  return (size_t)((const char *)span->data - executor->arena.data);
}

lp_status lp_executor_buffer(lp_executor *executor, int32_t buffer, const lp_tensor_desc *tensor, lp_span *out,
                             lp_diag *diag) {
  LP_TRY(find_buffer(executor, buffer, tensor, out, diag));
  if (!executor->apart || out->size == 0) return LP_OK;
  return lp_gpu_read(executor->states.gpu, executor->gpu_memory, offset_of(executor, out), out->data, out->size, diag);
}

static lp_status tell_run(lp_executor *executor, const lp_step *step, lp_diag *diag) {
  const lp_program *program = &executor->bundle->manifest.programs[executor->program];
  return lp_ranks_tell_run(executor->ranks, executor->states.id, program, step, &executor->told, diag);
}

lp_status lp_executor_run(lp_executor *executor, const lp_step *step, lp_diag *diag) {
  LP_TRY(tell_run(executor, step, diag));
  lp_gpu *gpu = executor->bundle->side[executor->side].gpu;
  if (!gpu) {
    lp_pool_run(executor->pool, step->run, &executor->frame,
                (int64_t)executor->bundle->side[executor->side].weights.size);
    return LP_OK;
  }
  int32_t layout = executor->bundle->manifest.programs[executor->program].gpu_layout[executor->side];
  const lp_gpu_owner owner = {executor->gpu_memory, executor->states.bytes};
  return lp_ranks_keep_up(executor->ranks, lp_gpu_run(gpu, executor->gpu_memory, layout, step->gpu_segment,
                                                      &executor->frame, executor->layout_bytes, &owner, diag));
}

static lp_status gather_apart(lp_executor *executor, const lp_step *step, size_t outer, size_t inner, lp_diag *diag) {
  const lp_gpu_parts parts = {.part = (size_t)executor->offset[step->buffer],
                              .whole = (size_t)executor->offset[step->to_buffer],
                              .room = lp_ranks_room_at(executor->layout_bytes),
                              .outer = outer,
                              .inner = inner,
                              .parts = step->parts};
  return lp_ranks_keep_up(executor->ranks, lp_gpu_gather(executor->states.gpu, executor->gpu_memory, &parts, diag));
}

lp_status lp_executor_gather(lp_executor *executor, const lp_step *step, lp_diag *diag) {
  size_t outer, inner, offset = (size_t)executor->offset[step->buffer];
  lp_span whole;
  LP_TRY(tell_run(executor, step, diag));
  LP_TRY(find_buffer(executor, step->to_buffer, &step->tensor, &whole, diag));
  if (!lp_ranks_extent(step, executor->sym, executor->bundle->manifest.symbol_count, &outer, &inner) ||
      executor->offset[step->buffer] < 0 || offset > executor->layout_bytes ||
      outer * inner > executor->layout_bytes - offset)
    return lp_error(diag, loc_of(executor), "a part of '%.80s' does not fit its buffer %d", step->tensor.name,
                    step->buffer);
  if (executor->apart) return gather_apart(executor, step, outer, inner, diag);
  return lp_ranks_gather(executor->ranks, step, executor->arena.data + offset, outer, inner, whole.data, diag);
}

static lp_status check_tokens(const lp_manifest *manifest, lp_element dtype, const void *data, size_t size,
                              lp_diag *diag) {
  size_t width = lp_element_size(dtype);
  for (size_t i = 0; i < size / width; i++) {
    int64_t token;
    if (width == sizeof(int32_t)) {
      int32_t narrow;
      memcpy(&narrow, (const char *)data + i * width, width);
      token = narrow;
    } else {
      memcpy(&token, (const char *)data + i * width, sizeof token);
    }
    if (token < 0 || token >= manifest->vocab)
      return lp_error(diag, LP_LOC_FILE(manifest->file), "token %" PRId64 " lies outside of the vocabulary of %d",
                      token, manifest->vocab);
  }
  return LP_OK;
}

lp_status lp_payload_check(const lp_manifest *manifest, const lp_step *step, size_t wanted, const void *data,
                           size_t size, lp_diag *diag) {
  if (wanted != size)
    return lp_error(diag, LP_LOC_FILE(manifest->file), "'%.80s' takes %zu bytes, got %zu", step->tensor.name, wanted,
                    size);
  return step->carries_tokens ? check_tokens(manifest, step->tensor.dtype, data, size, diag) : LP_OK;
}

lp_status lp_executor_fill(lp_executor *executor, int32_t buffer, const lp_step *step, const void *data, size_t size,
                           lp_diag *diag) {
  lp_span span;
  LP_TRY(find_buffer(executor, buffer, &step->tensor, &span, diag));
  LP_TRY(lp_payload_check(&executor->bundle->manifest, step, span.size, data, size, diag));
  if (size == 0) return LP_OK;
  const rank_order order = {.kind = LP_TELL_FILL,
                            .id = executor->states.id,
                            .step = (int32_t)(step - executor->bundle->manifest.programs[executor->program].step),
                            .buffer = buffer,
                            .size = size};
  LP_TRY(lp_ranks_tell(executor->ranks, order, data, diag));
  if (executor->apart)
    return lp_gpu_write(executor->states.gpu, executor->gpu_memory, offset_of(executor, &span), data, size, diag);
  memcpy(span.data, data, size);
  return LP_OK;
}

/* Lets the GPU find the greatest logits, so that only those are copied to the host. */
static lp_status sample_apart(lp_executor *executor, const lp_span *span, const lp_sampling *sampling, int32_t wanted,
                              lp_sample *out, lp_buf *scratch, lp_diag *diag) {
  const int64_t *sym = executor->sym;
  int64_t vocab = executor->bundle->manifest.vocab, rows = sym[LP_SYM_R];
  lp_logits logits;
  LP_TRY(lp_logits_read(&executor->bundle->manifest, sym, span, &logits, diag));
  const lp_gpu_top top = {.offset = offset_of(executor, span) + (size_t)((rows - 1) * vocab) * sizeof(float),
                          .rows = sym[LP_SYM_B],
                          .vocab = vocab,
                          .apart = rows * vocab,
                          .wanted = wanted};
  LP_OWNED(lp_free_at) float *found = lp_alloc((size_t)(top.rows * (1 + 2 * top.wanted)) * sizeof *found);
  lp_status status = lp_gpu_find_top(executor->states.gpu, executor->gpu_memory, &top, found, diag);
  logits.found = found;
  logits.wanted = wanted;
  for (int64_t i = 0; status == LP_OK && i < top.rows; i++)
    out[i] = lp_logits_draw(&logits, i, sampling, (uint64_t)i, (uint64_t)(sym[LP_SYM_P] + sym[LP_SYM_S]), scratch);
  return status;
}

lp_status lp_executor_sample(lp_executor *executor, const lp_step *step, const lp_sampling *sampling, lp_sample *out,
                             lp_buf *scratch, lp_diag *diag) {
  lp_span span;
  int32_t wanted = lp_sampler_wants(sampling, executor->bundle->manifest.vocab);
  if (executor->apart && wanted > 0 && lp_gpu_has_top(executor->states.gpu)) {
    LP_TRY(find_buffer(executor, step->buffer, &step->tensor, &span, diag));
    return sample_apart(executor, &span, sampling, wanted, out, scratch, diag);
  }
  lp_logits logits;
  LP_TRY(lp_executor_buffer(executor, step->buffer, &step->tensor, &span, diag));
  LP_TRY(lp_logits_read(&executor->bundle->manifest, executor->sym, &span, &logits, diag));
  lp_logits_sample(&logits, executor->sym, 0, sampling, out, scratch);
  return LP_OK;
}
