/* Fuzzes a device with a hostile worker: the bytes become messages of every kind, among them those that the device
 * waits for. No access may leave its memory, and results have the size that they state. */
#include <stdlib.h>
#include <string.h>

#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/link/security.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"
#include "tests/fuzz/messages.h"
#include "tests/runtime/toy/toy_run.h"

enum { MOST_PAYLOAD = 1 << 16 };

/* Rows and logits come back; tokens come back; KV caches come back after the prompt; tokens come ahead. */
static const toy_placement placements[] = {
    {.prefill = "dccddc"}, {.prefill = "dddccc"}, {.prefill = "ddcccc", .decode = "dddddd"}, {.prefill = "cccccc"}};
enum { BUNDLES = sizeof placements / sizeof *placements };
static lp_bundle *bundles[BUNDLES];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  for (int i = 0; i < BUNDLES; i++)
    bundles[i] = toy_bundle_make(&placements[i], LP_LOAD_DEVICE | LP_LOAD_CLOUD);
  return 0;
}

/* ---- the worker -------------------------------------------------------------------------------------------------- */

struct lp_channel {
  fuzz_bytes bytes;
  const lp_bundle *bundle;
  Lp__Wire__Step *asked; /* last */
  int64_t draws;         /* in order */
};

static bool hear(lp_channel *channel, uint32_t peer, const void *head, size_t head_size, const void *body,
                 size_t body_size, const char **why) {
  (void)peer, (void)body, (void)body_size;
  Lp__Wire__Message *message = lp__wire__message__unpack(NULL, head_size - 4, (const uint8_t *)head + 4);
  if (!message) abort(); /* a device sends only well-formed messages */
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_STEP) {
    Lp__Wire__Step *before = channel->asked;
    channel->asked = message->step;
    message->step = before;
    message->kind_case = before ? LP__WIRE__MESSAGE__KIND_STEP : LP__WIRE__MESSAGE__KIND__NOT_SET;
  }
  lp__wire__message__free_unpacked(message, NULL);
  *why = "it has had enough";
  return fuzz_byte(&channel->bytes) != 0xff;
}

/* Finds the next step after the requested one that returns a result to the device, and its bytes. */
static int32_t next_given(const lp_channel *channel, size_t *bytes) {
  const Lp__Wire__Step *asked = channel->asked;
  const lp_manifest *manifest = &channel->bundle->manifest;
  if (!asked) return 0;
  const lp_program *program = &manifest->programs[asked->program];
  for (int32_t i = asked->step < 0 ? 0 : asked->step + 1; i < program->step_count; i++) {
    const lp_step *step = &program->step[i];
    if (step->side != LP_SIDE_CLOUD || step->kind == LP_STEP_RUN) continue;
    if (!lp_tensor_bytes(&step->tensor, asked->symbols, manifest->symbol_count, bytes)) *bytes = 0;
    return i;
  }
  return 0;
}

/* The step of which the place streams the draws. */
static int32_t draw_step(const lp_channel *channel) {
  const lp_program *program = &channel->bundle->manifest.programs[channel->asked->stream->program];
  for (int32_t i = 0; i < program->step_count; i++)
    if (program->step[i].kind == LP_STEP_OUTPUT) return i;
  return 0;
}

static size_t make_reply(lp_channel *channel, lp_arena *arena, Lp__Wire__Message *out) {
  fuzz_message(&channel->bytes, arena, out);
  uint8_t right = fuzz_byte(&channel->bytes);
  size_t size = 0;
  int32_t step = next_given(channel, &size);
  if (out->kind_case == LP__WIRE__MESSAGE__KIND_RESULT && (right & 1)) out->result->step = step;
  if (out->kind_case == LP__WIRE__MESSAGE__KIND_TOKENS) {
    if (right & 1) out->tokens->step = step;
    if (right & 2) out->tokens->n_token = out->tokens->n_confidence = 1; /* room is there for a few of each */
    if (!(right & 16)) out->tokens->draw = 0;
    if ((right & 48) == 48) out->tokens->draw = ++channel->draws;
    if (channel->draws > 1 && channel->asked && channel->asked->stream && (right & 1))
      out->tokens->step = draw_step(channel);
  }
  if (!(right & 4)) size = fuzz_byte(&channel->bytes);
  return size <= MOST_PAYLOAD ? size : MOST_PAYLOAD;
}

static lp_recv_outcome reply(lp_channel *channel, double timeout_ms, lp_packet *out, const char **why) {
  (void)timeout_ms;
  *why = "it is gone";
  if (channel->bytes.size == 0) return LP_RECV_GONE;
  lp_arena *arena = lp_arena_create();
  Lp__Wire__Message message;
  size_t payload = make_reply(channel, arena, &message), size = lp__wire__message__get_packed_size(&message);
  uint8_t *frame = lp_alloc(4 + size + payload);
  for (int i = 0; i < 4; i++)
    frame[i] = (uint8_t)(size >> (8 * i));
  lp__wire__message__pack(&message, frame + 4);
  memset(frame + 4 + size, fuzz_byte(&channel->bytes), payload);
  *out = (lp_packet){.peer = LP_ONLY_PEER, .data = frame, .size = 4 + size + payload, .handle = frame};
  lp_arena_free(arena);
  return LP_RECV_FRAME;
}

static void release(lp_packet *packet) {
  free(packet->handle);
  *packet = (lp_packet){0};
}

static void hang_up(lp_channel *channel) {
  if (channel->asked) protobuf_c_message_free_unpacked(&channel->asked->base, NULL);
  channel->asked = NULL;
}

static const lp_transport liar = {.name = "liar", .send = hear, .receive = reply, .release = release, .close = hang_up};

/* ---- the device -------------------------------------------------------------------------------------------------- */

/* Opens the session with both sides in this process, then sets a worker's address. No process listens there, so a lost
 * connection is not made again. */
static lp_session *open_remote(lp_channel *channel) {
  static const lp_security open;
  lp_generate_options options = {.threads = 1, .max_tokens = 4, .cloud_timeout_ms = 1};
  lp_session *session = NULL;
  if (lp_session_open(channel->bundle, &options, &session, NULL) != LP_OK) abort();
  session->remote = true;
  session->patience = (lp_patience){.dial_ms = 1, .pause_ms = 1, .longest_pause_ms = 1};
  session->place[LP_SIDE_CLOUD].endpoint = (lp_endpoint){.address = "127.0.0.1:1",
                                                         .bundle_hash = channel->bundle->manifest.hash,
                                                         .security = &open,
                                                         .patience = session->patience};
  session->wire[LP_SIDE_CLOUD] = lp_alloc(sizeof *session->wire[LP_SIDE_CLOUD]);
  session->wire[LP_SIDE_CLOUD]->transport = &liar;
  session->wire[LP_SIDE_CLOUD]->channel = channel;
  session->wire[LP_SIDE_CLOUD]->address = lp_strdup("nowhere");
  return session;
}

/* Generates tokens after a prompt. */
static void generate(lp_session *session) {
  int32_t prompt[] = {3, 1, 4};
  lp_generation totals = {0};
  (void)!lp_session_generate(session, prompt, 1, LP_COUNT(prompt), NULL, NULL, &totals, NULL);
  for (size_t i = 0; i < totals.tokens.count; i++)
    if (totals.tokens.data[i].token >= TOY_VOCAB) abort();
  lp_generation_free(&totals);
}

/* Arrays: reads all of each result. */
static void run_arrays(lp_session *session) {
  int64_t ids[] = {2, 7, 1};
  const lp_data input = {
      .name = "input_ids", .dtype = "i64", .rank = 2, .shape = {1, LP_COUNT(ids)}, .data = ids, .size = sizeof ids};
  lp_data output = {0};
  if (lp_session_run(session, NULL, &input, 1, &output, NULL) == LP_OK) {
    if (output.size != sizeof(float) * LP_COUNT(ids) * TOY_VOCAB) abort();
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < output.size; i++)
      sum = (uint8_t)(sum + ((const uint8_t *)output.data)[i]);
  }
  free(output.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lp_channel channel = {.bytes = {data, size}};
  uint8_t how = fuzz_byte(&channel.bytes);
  channel.bundle = bundles[how % BUNDLES];
  lp_session *session = open_remote(&channel);
  if (how & 0x80)
    run_arrays(session);
  else
    generate(session);
  lp_session_close(session);
  return 0;
}
