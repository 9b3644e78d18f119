/* Saves and restores a context: its KV rows, its rows of hidden states, and the last answer. The file holds no samples,
 * since each sample that a later question needs comes from a row that was not run yet, or is in the last answer. */
#include "runtime/exits/context_file.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/state.h"
#include "runtime/exits/context.h"
#include "runtime/exits/halves.h"
#include "runtime/runtime.h"

#include "runtime/bundle/sealed_file.h"
#include "runtime/exits/kept_context.pb-c.h"

static const lp_sealed_kind kind = {.letters = "CTXT", .title = "context file", .version = 1};

/* Sets the symbol values at which lp_states_pack packs the KV rows of `rows` positions. */
static void set_symbols(int64_t sym[LP_MAX_SYMBOLS], int64_t capacity, int64_t rows) {
  memset(sym, 0, LP_MAX_SYMBOLS * sizeof *sym);
  sym[LP_SYM_B] = 1;
  sym[LP_SYM_P] = rows;
  sym[LP_SYM_C] = capacity;
}

static bool is_there(const lp_states *states, int32_t state) {
  return states->manifest->states[state].on[states->side];
}

/* Bytes of the KV rows; false: they overflow. */
static bool states_bytes(const lp_states *states, const int64_t *sym, size_t *bytes) {
  *bytes = 0;
  for (int32_t i = 0; i < states->manifest->state_count; i++) {
    size_t one = 0;
    if (!is_there(states, i)) continue;
    if (!lp_states_rows_bytes(states, i, sym, &one) || !lp_size_add(*bytes, one, bytes)) return false;
  }
  return true;
}

static bool payload_bytes(const lp_context *context, int64_t consumed, int64_t held, size_t *bytes) {
  int64_t sym[LP_MAX_SYMBOLS];
  size_t rows = 0;
  set_symbols(sym, context->options.capacity, consumed);
  return states_bytes(&context->executor->states, sym, bytes) &&
         lp_size_mul((size_t)(held - consumed), context->halves->width[context->link] * sizeof(float), &rows) &&
         lp_size_add(*bytes, rows, bytes);
}

size_t lp_context_file_bytes(const lp_context *context) {
  size_t bytes = 0;
  return payload_bytes(context, context->consumed, context->held, &bytes) ? bytes : SIZE_MAX;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static void pack_head(const lp_context *context, const lp_context_record *record, int64_t consumed, int64_t held,
                      lp_buf *out) {
  const lp_sampling *sampling = &context->options.sampling;
  Lp__Kept__Context kept = LP__KEPT__CONTEXT__INIT;
  kept.bundle = (char *)(uintptr_t)context->halves->bundle->manifest.hash; /* protobuf-c reads it only */
  kept.context = record->id;
  kept.temperature = sampling->temperature;
  kept.top_k = sampling->top_k;
  kept.top_p = sampling->top_p;
  kept.seed = sampling->seed;
  kept.codec = context->options.codec;
  kept.capacity = context->options.capacity;
  kept.epoch = context->time.epoch;
  kept.floor = context->time.floor;
  kept.consumed = consumed;
  kept.held = held;
  kept.answered = record->answered;
  kept.accepted = record->answer.accepted;
  kept.token = record->answer.sample.token;
  kept.confidence = record->answer.sample.confidence;
  kept.busy_ms = record->answer.busy_ms;
  lp_buf_reserve(out, lp__kept__context__get_packed_size(&kept));
  out->size = lp__kept__context__pack(&kept, (uint8_t *)out->data);
}

static lp_status pack_payload(const lp_context *context, int64_t consumed, int64_t held, lp_buf *out, lp_diag *diag) {
  const lp_states *states = &context->executor->states;
  int64_t sym[LP_MAX_SYMBOLS];
  set_symbols(sym, context->options.capacity, consumed);
  for (int32_t i = 0; i < states->manifest->state_count && consumed > 0; i++) {
    size_t bytes = 0;
    if (!is_there(states, i) || !lp_states_rows_bytes(states, i, sym, &bytes)) continue;
    LP_TRY(lp_states_pack(states, i, sym, out->data + out->size, diag));
    out->size += bytes;
  }
  size_t rows = (size_t)(held - consumed) * context->halves->width[context->link] * sizeof(float);
  if (rows > 0) memcpy(out->data + out->size, context->rows, rows);
  out->size += rows;
  return LP_OK;
}

lp_status lp_context_save(const lp_context *context, const lp_context_record *record, const char *path, lp_diag *diag) {
  int64_t consumed = context->consumed, held = context->held > consumed ? context->held : consumed;
  /* A pending question that was computed in part needs its samples, so the device must send its rows again. */
  if (record->asked >= 0 && record->asked < consumed) consumed = held = record->asked;
  size_t bytes = 0;
  LP_OWNED(lp_buf_free) lp_buf head = {0}, payload = {0};
  if (!payload_bytes(context, consumed, held, &bytes))
    return lp_error(diag, LP_LOC_FILE(path), "the context is too large");
  pack_head(context, record, consumed, held, &head);
  lp_buf_reserve(&payload, bytes + 1);
  LP_TRY(pack_payload(context, consumed, held, &payload, diag));
  return lp_sealed_write(path, &kind, &head, &payload, diag);
}

/* ---- restoring --------------------------------------------------------------------------------------------------- */

static bool is_sound(const lp_halves *halves, const Lp__Kept__Context *kept, int64_t most) {
  return kept->capacity >= 1 && kept->capacity <= most && kept->codec != LP_CODEC_AUTO &&
         kept->codec < LP_CODEC_COUNT && kept->floor >= 0 && kept->consumed >= 0 && kept->held >= kept->consumed &&
         kept->held <= kept->capacity && kept->accepted >= 0 && kept->accepted <= kept->capacity && kept->token >= 0 &&
         kept->token < halves->bundle->manifest.vocab;
}

static lp_status unpack_payload(lp_context *context, const lp_sealed *sealed, int64_t consumed, int64_t held,
                                lp_diag *diag) {
  lp_states *states = &context->executor->states;
  int64_t sym[LP_MAX_SYMBOLS], capacity = context->options.capacity;
  size_t at = 0, bytes = 0;
  set_symbols(sym, capacity, 0);
  if (consumed > 0) LP_TRY(lp_states_reserve(states, sym, diag));
  set_symbols(sym, capacity, consumed);
  for (int32_t i = 0; i < states->manifest->state_count && consumed > 0; i++) {
    if (!is_there(states, i) || !lp_states_rows_bytes(states, i, sym, &bytes)) continue;
    LP_TRY(lp_states_unpack(states, i, sym, sealed->payload + at, diag));
    at += bytes;
  }
  lp_context_put(context, consumed, held, sealed->payload + at);
  return LP_OK;
}

static lp_context *create(const lp_halves *halves, int32_t link, lp_pool *pool, const Lp__Kept__Context *kept,
                          lp_context_record *record) {
  lp_context_options options = {
      .sampling = {.temperature = kept->temperature, .top_k = kept->top_k, .top_p = kept->top_p, .seed = kept->seed},
      .codec = (lp_codec)kept->codec,
      .capacity = kept->capacity};
  lp_context *context = lp_context_create(halves, link, &options, pool);
  context->time = (lp_context_time){kept->epoch, kept->floor};
  *record = (lp_context_record){.id = kept->context, .answered = kept->answered, .asked = -1};
  record->answer = (lp_answer){.accepted = kept->accepted,
                               .sample = {.token = kept->token, .confidence = kept->confidence},
                               .busy_ms = kept->busy_ms};
  return context;
}

static lp_status take(const lp_halves *halves, int32_t link, lp_pool *pool, const char *path, int64_t most,
                      const lp_sealed *sealed, const Lp__Kept__Context *kept, lp_context_record *record,
                      lp_context **out, lp_diag *diag) {
  lp_loc loc = LP_LOC_FILE(path);
  size_t bytes = 0;
  if (!kept || !is_sound(halves, kept, most))
    return lp_error(diag, loc, "the context file is damaged: it does not hold a context");
  if (!lp_streq(kept->bundle, halves->bundle->manifest.hash))
    return lp_error(diag, loc, "a context of another bundle: %.12s; this is %.12s", kept->bundle,
                    halves->bundle->manifest.hash);
  lp_context *context = create(halves, link, pool, kept, record);
  lp_status status = LP_OK;
  if (!payload_bytes(context, kept->consumed, kept->held, &bytes) || bytes != sealed->payload_size)
    status = lp_error(diag, loc, "the context file is damaged: %zu bytes of rows", sealed->payload_size);
  if (status == LP_OK) status = unpack_payload(context, sealed, kept->consumed, kept->held, diag);
  if (status == LP_OK)
    *out = context;
  else
    lp_context_free(context);
  return status;
}

lp_status lp_context_restore(const lp_halves *halves, int32_t link, lp_pool *pool, const char *path, int64_t most,
                             lp_context_record *record, lp_context **out, lp_diag *diag) {
  lp_sealed sealed;
  *out = NULL;
  LP_TRY(lp_sealed_open(path, &kind, &sealed, diag));
  Lp__Kept__Context *kept = lp__kept__context__unpack(NULL, sealed.head_size, sealed.head);
  lp_status status = take(halves, link, pool, path, most, &sealed, kept, record, out, diag);
  if (kept) lp__kept__context__free_unpacked(kept, NULL);
  lp_sealed_close(&sealed);
  return status;
}
