/* The cloud's memory of one generation. Messages may be repeated, late and out of order; only their (epoch, floor) and
 * the positions of their rows decide their effect. */

#include "runtime/exits/context.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/state.h"
#include "runtime/exits/codec.h"
#include "runtime/exits/halves.h"

enum { FIRST_ROOM = 16 };

static size_t width_of(const lp_context *context) {
  return context->halves->width[context->link];
}

/* Floats of a row that this link makes; 0: it is the last. */
static size_t made_width(const lp_context *context) {
  return lp_halves_made_width(context->halves, context->link);
}

static size_t kept_row_bytes(const lp_context *context) {
  size_t width = made_width(context);
  return width > 0 ? lp_codec_row_bytes(context->options.codec, width) : 0;
}

lp_context *lp_context_create(const lp_halves *halves, int32_t link, const lp_context_options *options, lp_pool *pool) {
  lp_context *context = lp_alloc(sizeof *context);
  context->halves = halves;
  context->link = link;
  context->options = *options;
  context->executor = lp_executor_create(halves->bundle, halves->chain[link], pool);
  lp_context_drop(context);
  return context;
}

static void release_rows(lp_context *context) {
  free(context->rows);
  free(context->present);
  context->rows = NULL;
  context->present = NULL;
  context->room = 0;
}

static void release_made(lp_context *context) {
  free(context->made);
  context->made = NULL;
  context->made_room = context->kept_from = 0;
  lp_buf_free(&context->kept);
}

void lp_context_free(lp_context *context) {
  if (!context) return;
  release_rows(context);
  release_made(context);
  lp_executor_free(context->executor);
  free(context->sampled);
  lp_buf_free(&context->scratch);
  free(context);
}

static void forget_samples(lp_context *context, int64_t from) {
  if (!context->sampled) return;
  for (int64_t i = from; i < context->options.capacity; i++)
    context->sampled[i].token = -1;
}

/* Allocates the samples with the first of them, so that a device cannot make the cloud allocate by naming a capacity.
 */
static lp_sample *samples_from(lp_context *context, int64_t position) {
  if (!context->sampled) {
    context->sampled = lp_alloc((size_t)context->options.capacity * sizeof *context->sampled);
    forget_samples(context, 0);
  }
  return context->sampled + position;
}

void lp_context_drop(lp_context *context) {
  lp_executor_forget(context->executor);
  release_rows(context);
  release_made(context);
  free(context->sampled);
  context->sampled = NULL;
  context->consumed = context->held = 0;
}

size_t lp_context_bytes(const lp_context *context) {
  size_t row = width_of(context) * sizeof(float) + sizeof(bool);
  size_t sampled = context->sampled ? (size_t)context->options.capacity * sizeof *context->sampled : 0;
  size_t made = (size_t)context->made_room * made_width(context) * sizeof *context->made + context->kept.capacity;
  return context->executor->states.region_bytes + (size_t)context->room * row + sampled + made;
}

bool lp_context_bytes_wanted(const lp_context *context, size_t *bytes) {
  int64_t sym[LP_MAX_SYMBOLS] = {0};
  sym[LP_SYM_B] = 1;
  sym[LP_SYM_C] = context->options.capacity;
  size_t rows = 0, row = width_of(context) * sizeof(float) + sizeof(bool) + sizeof *context->sampled;
  row += kept_row_bytes(context);
  return lp_states_bytes(&context->executor->states, sym, bytes) &&
         lp_size_mul((size_t)context->options.capacity, row, &rows) && lp_size_add(*bytes, rows, bytes);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void make_room(lp_context *context, int64_t wanted) {
  if (wanted <= context->room) return;
  int64_t room = context->room > 0 ? context->room : FIRST_ROOM;
  while (room < wanted)
    room *= 2;
  size_t width = width_of(context);
  context->rows = lp_realloc(context->rows, (size_t)room * width * sizeof(float));
  context->present = lp_realloc(context->present, (size_t)room * sizeof(bool));
  memset(context->present + context->room, 0, (size_t)(room - context->room) * sizeof(bool));
  context->room = room;
}

/* Discards the rows before `to`, which are in the KV cache now. */
static void consume_rows(lp_context *context, int64_t to) {
  int64_t count = to - context->consumed, rest = context->room - count;
  size_t width = width_of(context);
  if (rest > 0) {
    memmove(context->rows, context->rows + (size_t)count * width, (size_t)rest * width * sizeof(float));
    memmove(context->present, context->present + count, (size_t)rest * sizeof(bool));
  }
  int64_t kept = rest > 0 ? rest : 0;
  memset(context->present + kept, 0, (size_t)(context->room - kept) * sizeof(bool));
  context->consumed = to;
}

static void forget_from(lp_context *context, int64_t position) {
  if (position < context->consumed) {
    if (context->room > 0) memset(context->present, 0, (size_t)context->room * sizeof(bool));
    context->consumed = position;
    if (context->kept_from > position) context->kept_from = position;
    context->kept.size = (size_t)(position - context->kept_from) * kept_row_bytes(context);
  } else if (position - context->consumed < context->room) {
    int64_t first = position - context->consumed;
    memset(context->present + first, 0, (size_t)(context->room - first) * sizeof(bool));
  }
  if (context->held > position) context->held = position;
  forget_samples(context, position);
}

bool lp_context_enter(lp_context *context, lp_context_time time) {
  if (time.epoch < context->time.epoch) return false;
  if (time.epoch > context->time.epoch) {
    /* The floors of epochs in between are unknown, but floors only grow: nothing has changed below the context's own.
     */
    bool next = time.epoch == context->time.epoch + 1;
    forget_from(context, next || time.floor < context->time.floor ? time.floor : context->time.floor);
    context->time = time;
  }
  return true;
}

static void take_row(lp_context *context, int64_t position, const uint8_t *data) {
  int64_t at = position - context->consumed;
  size_t width = width_of(context);
  if (at < 0) return; /* the KV cache has this position already */
  make_room(context, at + 1);
  if (!context->present[at]) lp_codec_decode(context->options.codec, data, width, context->rows + (size_t)at * width);
  context->present[at] = true;
}

lp_status lp_context_upload(lp_context *context, lp_context_time time, int64_t first, int64_t count,
                            const uint8_t *data, size_t size, lp_diag *diag) {
  size_t row = lp_codec_row_bytes(context->options.codec, width_of(context));
  int64_t capacity = context->options.capacity;
  if (first < 0 || count < 0 || first > capacity || count > capacity - first || size != (size_t)count * row)
    return lp_error(diag, LP_LOC_NONE,
                    "%zu bytes for %" PRId64 " rows from position %" PRId64
                    " on; a row takes %zu, the capacity is %" PRId64,
                    size, count, first, row, capacity);
  if (time.floor < 0 || !lp_context_enter(context, time)) return LP_OK;
  for (int64_t i = 0; i < count; i++)
    take_row(context, first + i, data + (size_t)i * row);
  if (context->held < context->consumed) context->held = context->consumed;
  while (context->held - context->consumed < context->room && context->present[context->held - context->consumed])
    context->held++;
  return LP_OK;
}

void lp_context_put(lp_context *context, int64_t consumed, int64_t held, const void *rows) {
  context->consumed = context->kept_from = consumed;
  context->held = held;
  if (held == consumed) return;
  make_room(context, held - consumed);
  memcpy(context->rows, rows, (size_t)(held - consumed) * width_of(context) * sizeof(float));
  for (int64_t i = 0; i < held - consumed; i++)
    context->present[i] = true;
}

/* ---- rows for the next link -------------------------------------------------------------------------------------- */

static float *room_for_made(lp_context *context, int64_t count) {
  if (count > context->made_room) {
    context->made = lp_realloc(context->made, (size_t)count * made_width(context) * sizeof *context->made);
    context->made_room = count;
  }
  return context->made;
}

static void keep_made(lp_context *context, const lp_cloud_pass *pass) {
  size_t width = made_width(context), row = kept_row_bytes(context), wanted = context->kept.size;
  wanted += (size_t)pass->count * row;
  if (wanted > context->kept.capacity) lp_buf_reserve(&context->kept, 2 * wanted);
  for (int64_t i = 0; i < pass->count; i++) {
    lp_codec_encode(context->options.codec, pass->made + (size_t)i * width, width,
                    (uint8_t *)context->kept.data + context->kept.size);
    context->kept.size += row;
  }
}

const uint8_t *lp_context_kept(const lp_context *context, int64_t from, int64_t *count) {
  *count = from < context->kept_from ? -1 : from < context->consumed ? context->consumed - from : 0;
  if (*count <= 0) return NULL;
  return (const uint8_t *)context->kept.data + (size_t)(from - context->kept_from) * kept_row_bytes(context);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

bool lp_context_is_ready(const lp_context *context, int64_t end) {
  return context->held >= end;
}

static int64_t first_asked(const lp_question *question) {
  return question->end - question->count - 1;
}

static lp_status check_question(const lp_context *context, const lp_question *question, lp_diag *diag) {
  if (question->count >= 0 && first_asked(question) >= 0 && question->end <= context->options.capacity &&
      lp_context_is_ready(context, question->end))
    return LP_OK;
  return lp_error(diag, LP_LOC_NONE,
                  "asked after %" PRId64 " drafts that end at %" PRId64 "; rows of %" PRId64 " are here",
                  question->count, question->end, context->held);
}

bool lp_context_next(lp_context *context, const lp_question *question, int64_t most, lp_cloud_pass *out) {
  int64_t past = context->consumed, first = first_asked(question), count = question->end - past;
  if (count <= 0) return false;
  if (count > most) count = most;
  int64_t wanted = past + count - (first > past ? first : past);
  bool last = made_width(context) == 0;
  if (!last) wanted = 0;
  *out = (lp_cloud_pass){.link = context->link,
                         .rows = context->rows,
                         .made = last ? NULL : room_for_made(context, count),
                         .past = past,
                         .count = count,
                         .wanted = wanted > 0 ? wanted : 0,
                         .capacity = context->options.capacity};
  return true;
}

lp_sample *lp_context_samples(lp_context *context, const lp_cloud_pass *pass) {
  if (pass->wanted == 0) return NULL;
  return samples_from(context, pass->past + pass->count - pass->wanted);
}

void lp_context_passed(lp_context *context, const lp_cloud_pass *pass) {
  if (pass->made) keep_made(context, pass);
  consume_rows(context, pass->past + pass->count);
}

/* The rows of a question without drafts are those of certain tokens, so no later epoch changes them. */
static void raise_floor(lp_context *context, const lp_question *question) {
  if (question->count == 0 && context->time.floor < question->end) context->time.floor = question->end;
}

lp_status lp_context_judge(lp_context *context, const lp_question *question, lp_answer *out, lp_diag *diag) {
  int64_t first = first_asked(question), accepted = 0;
  raise_floor(context, question);
  *out = (lp_answer){.sample.token = -1};
  if (made_width(context) > 0) return LP_OK;
  const lp_sample *sampled = samples_from(context, first);
  while (accepted < question->count && sampled[accepted].token == question->draft[accepted])
    accepted++;
  if (sampled[accepted].token < 0)
    return lp_error(diag, LP_LOC_NONE, "the token after position %" PRId64 " was not kept", first + accepted);
  *out = (lp_answer){.accepted = accepted, .sample = sampled[accepted]};
  if (question->count == 0) return LP_OK;
  forget_from(context, first + accepted + 1);
  context->time = (lp_context_time){.epoch = context->time.epoch + 1, .floor = first + accepted + 1};
  return LP_OK;
}

lp_status lp_context_ask(lp_context *context, const lp_question *question, lp_answer *out, lp_diag *diag) {
  LP_TRY(check_question(context, question, diag));
  for (lp_cloud_pass pass; lp_context_next(context, question, LP_PASS_TURN, &pass); lp_context_passed(context, &pass))
    LP_TRY(lp_halves_run_cloud(context->halves, context->executor, &pass, &context->options.sampling,
                               lp_context_samples(context, &pass), &context->scratch, diag));
  return lp_context_judge(context, question, out, diag);
}
