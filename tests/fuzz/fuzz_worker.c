/* Fuzzes a worker with three hostile devices: the bytes become messages of every kind in any order, passes between
 * them, and ends of connections. No access may leave its memory, and memory stays within the budget. */
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exits/codec.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/worker/budget.h"
#include "runtime/worker/context.h"
#include "runtime/worker/pass.h"
#include "runtime/worker/session.h"
#include "runtime/worker/worker.h"
#include "tests/fuzz/messages.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/runtime/worker/bare_worker.h"

enum { PEERS = 3, BUDGET = 100 << 10, MOST_SESSIONS = 6, MOST_PAYLOAD = 1 << 16 };

/* Bundles split by layers, with exits, with KV caches that change sides between prompt and tokens, and one of which the
 * cloud has all. */
static const toy_placement placements[] = {{.prefill = "dcccdc"},
                                           {.prefill = "ddddcc", .exits = {1, 3}},
                                           {.prefill = "dddccc", .decode = "ddcccc"},
                                           {.prefill = "cccccc", .input_there = true}};
enum { BUNDLES = sizeof placements / sizeof *placements };
static lp_bundle *bundles[BUNDLES];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  for (int i = 0; i < BUNDLES; i++)
    bundles[i] = toy_bundle_make(&placements[i], LP_LOAD_CLOUD);
  return 0;
}

/* ---- a link that leads nowhere ----------------------------------------------------------------------------------- */

static bool send_nowhere(lp_channel *channel, uint32_t peer, const void *head, size_t head_size, const void *body,
                         size_t body_size, const char **why) {
  (void)channel, (void)peer, (void)why;
  volatile uint8_t sum = 0; /* all that is sent is there */
  for (size_t i = 0; i < head_size; i++)
    sum = (uint8_t)(sum + ((const uint8_t *)head)[i]);
  for (size_t i = 0; i < body_size; i++)
    sum = (uint8_t)(sum + ((const uint8_t *)body)[i]);
  return true;
}

static void permit(lp_channel *channel, uint32_t peer, uint64_t bytes) {
  (void)channel, (void)peer, (void)bytes;
}

static void drop(lp_channel *channel, uint32_t peer) {
  (void)channel, (void)peer;
}

static void describe(lp_channel *channel, uint32_t peer, char out[64]) {
  (void)channel;
  snprintf(out, 64, "peer %" PRIu32, peer);
}

/* The first and the third device are one client. */
static uint64_t identify(lp_channel *channel, uint32_t peer, uint64_t *host) {
  (void)channel;
  *host = 1;
  return peer % 2;
}

static void release(lp_packet *packet) {
  free(packet->handle);
  *packet = (lp_packet){0};
}

static const lp_transport nowhere = {.name = "nowhere",
                                     .send = send_nowhere,
                                     .permit = permit,
                                     .drop = drop,
                                     .describe = describe,
                                     .identify = identify,
                                     .release = release};

/* A message as it would come: the worker may keep it. The payload is for free(). */
static void hand_over(lp_worker *worker, uint32_t peer, const Lp__Wire__Message *message, uint8_t *payload,
                      size_t size) {
  uint8_t *packed = lp_alloc(lp__wire__message__get_packed_size(message) + 1);
  size_t length = lp__wire__message__pack(message, packed);
  lp_inbound in = {.message = lp__wire__message__unpack(NULL, length, packed),
                   .packet = {.peer = peer, .handle = payload},
                   .transport = &nowhere,
                   .payload = payload,
                   .payload_size = size};
  free(packed);
  if (in.message) worker_handle(worker, &in);
  lp_inbound_release(&in);
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static void greet(lp_worker *worker, uint32_t peer) {
  Lp__Wire__Hello hello = LP__WIRE__HELLO__INIT;
  hello.protocol = LP_WIRE_PROTOCOL;
  hello.bundle = (char *)(uintptr_t)worker->self.bundle_hash;
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_HELLO;
  message.hello = &hello;
  hand_over(worker, peer, &message, NULL, 0);
}

/* ---- messages of an honest device -------------------------------------------------------------------------------- */

/* Random fields are mostly refused at the door. Each bit sets some of them as an honest device would. */
enum { RIGHT_NAME = 1, RIGHT_TIME = 2, RIGHT_PLACE = 4, RIGHT_SIZE = 8, RIGHT_STREAM = 16, ANY_STREAM = 32 };

static void correct_stream(const lp_manifest *manifest, unsigned right, Lp__Wire__Step *step) {
  if (!(right & (RIGHT_STREAM | ANY_STREAM))) step->stream = NULL;
  if (!(right & RIGHT_STREAM)) return;
  step->stream->program %= (uint32_t)manifest->program_count;
  step->stream->most = 1 + (step->stream->most & 31);
  step->stream->window = 1 + (step->stream->window & 7);
}

static void correct_step(const lp_worker *worker, uint32_t peer, unsigned right, lp_arena *arena,
                         Lp__Wire__Step *step) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  worker_session *const *all = worker->sessions.data, *session = NULL;
  correct_stream(manifest, right, step);
  for (size_t i = 0; i < worker->sessions.count; i++)
    if (all[i]->peer == peer) session = all[i];
  if (!session) return;
  if (right & RIGHT_NAME) step->session = session->id;
  if (right & RIGHT_TIME) step->program %= (uint32_t)manifest->program_count;
  if (right & RIGHT_PLACE) step->step = session->next;
  if (!(right & RIGHT_SIZE)) return;
  int64_t few = step->n_symbols > 0 ? 1 + (step->symbols[0] & 3) : 1;
  step->n_symbols = (size_t)manifest->symbol_count;
  step->symbols = lp_arena_alloc(arena, LP_MAX_SYMBOLS * sizeof *step->symbols);
  step->symbols[LP_SYM_B] = step->symbols[LP_SYM_R] = 1;
  step->symbols[LP_SYM_S] = few;
  step->symbols[LP_SYM_P] = (right & RIGHT_TIME) && step->program == 0 ? 0 : session->position;
  step->symbols[LP_SYM_C] = TOY_CONTEXT;
}

static void correct_join(unsigned right, Lp__Wire__Join *join) {
  if (right & RIGHT_NAME) join->context %= 4;
  if (right & RIGHT_TIME) join->floor = 0;
  if (right & RIGHT_PLACE) join->codec = LP_CODEC_F16;
  if (right & RIGHT_SIZE) join->capacity = TOY_CONTEXT;
}

static const worker_context *last_context(const lp_worker *worker) {
  return worker->contexts.count > 0 ? worker->contexts.data[worker->contexts.count - 1] : NULL;
}

static void correct_rows(const lp_worker *worker, unsigned right, Lp__Wire__Rows *rows) {
  const worker_context *context = last_context(worker);
  if (!context) return;
  if (right & RIGHT_NAME) rows->context = context->id;
  if (right & RIGHT_TIME) rows->epoch = context->context->time.epoch, rows->floor = context->context->time.floor;
  if (right & RIGHT_PLACE) rows->first = context->context->held;
  if (right & RIGHT_SIZE) rows->count &= 15;
}

static void correct_ask(const lp_worker *worker, unsigned right, Lp__Wire__Ask *ask) {
  const worker_context *context = last_context(worker);
  if (!context) return;
  if (right & RIGHT_NAME) ask->context = context->id, ask->number = context->answered + 1;
  if (right & RIGHT_TIME) ask->epoch = context->context->time.epoch, ask->floor = context->context->time.floor;
  if (right & RIGHT_PLACE) ask->end = context->context->held;
  if ((right & RIGHT_SIZE) && ask->n_draft > 3) ask->n_draft = 3;
}

static void correct(const lp_worker *worker, uint32_t peer, unsigned right, lp_arena *arena,
                    Lp__Wire__Message *message) {
  switch (message->kind_case) {
  case LP__WIRE__MESSAGE__KIND_STEP:
    correct_step(worker, peer, right, arena, message->step);
    break;
  case LP__WIRE__MESSAGE__KIND_TAKEN:
    if ((right & RIGHT_NAME) && worker->sessions.count > 0)
      message->taken->session = worker->sessions.data[worker->sessions.count - 1]->id;
    break;
  case LP__WIRE__MESSAGE__KIND_JOIN:
    correct_join(right, message->join);
    break;
  case LP__WIRE__MESSAGE__KIND_ROWS:
    correct_rows(worker, right, message->rows);
    break;
  case LP__WIRE__MESSAGE__KIND_ASK:
    correct_ask(worker, right, message->ask);
    break;
  default:
    break;
  }
}

/* The bytes of the payload that the step takes; 0 if there is no such step. */
static size_t step_payload(const lp_worker *worker, const Lp__Wire__Step *step) {
  const lp_manifest *manifest = &worker->bundle->manifest;
  if (step->program >= (uint32_t)manifest->program_count || (int32_t)step->n_symbols != manifest->symbol_count)
    return 0;
  const lp_program *program = &manifest->programs[step->program];
  if (step->step < 0 || step->step >= program->step_count) return 0;
  size_t size = 0;
  const lp_tensor_desc *tensor = &program->step[step->step].tensor;
  return lp_tensor_bytes(tensor, step->symbols, manifest->symbol_count, &size) ? size : 0;
}

static size_t payload_size(const lp_worker *worker, const Lp__Wire__Message *message, fuzz_bytes *from) {
  size_t size = fuzz_byte(from);
  if (size >= 0x40) { /* the right one */
    if (message->kind_case == LP__WIRE__MESSAGE__KIND_STEP) size = step_payload(worker, message->step);
    if (message->kind_case == LP__WIRE__MESSAGE__KIND_ROWS)
      size = (size_t)message->rows->count * lp_codec_row_bytes(LP_CODEC_F16, TOY_WIDTH);
  }
  return size <= MOST_PAYLOAD ? size : MOST_PAYLOAD;
}

static void say(lp_worker *worker, uint32_t peer, fuzz_bytes *from) {
  lp_arena *arena = lp_arena_create();
  Lp__Wire__Message message;
  fuzz_message(from, arena, &message);
  correct(worker, peer, fuzz_byte(from), arena, &message);
  size_t size = payload_size(worker, &message, from);
  uint8_t *payload = lp_alloc(size + (size == 0));
  memset(payload, fuzz_byte(from), size);
  hand_over(worker, peer, &message, payload, size);
  lp_arena_free(arena);
}

static void live(lp_worker *worker, fuzz_bytes *from) {
  for (uint32_t peer = 1; peer <= PEERS; peer++)
    greet(worker, peer);
  while (from->size > 0) {
    uint8_t what = fuzz_byte(from);
    uint32_t peer = 1 + what % PEERS;
    if (what < 0xc0)
      say(worker, peer, from);
    else if (what < 0xf8)
      worker_draw_on(worker), worker_pass_run(worker);
    else
      worker_forget(worker, peer), greet(worker, peer);
    worker_session_drop_idle(worker);
    worker_context_tend(worker);
    if (worker_bytes_held(worker, NULL) > BUDGET) abort();
    if (worker->sessions.count + worker->contexts.count > MOST_SESSIONS) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_bytes from = {data, size};
  bare_worker *bare = bare_worker_create(bundles[fuzz_byte(&from) % BUNDLES], NULL, &nowhere);
  bare->options.context_budget = BUDGET;
  bare->options.most_sessions = MOST_SESSIONS;
  live(&bare->worker, &from);
  bare_worker_free(bare);
  return 0;
}
