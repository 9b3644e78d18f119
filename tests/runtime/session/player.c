/* The transport of a worker that plays: see player.h. */
#include "tests/runtime/session/player.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

static player *player_of(lp_channel *channel) {
  return (player *)(void *)channel;
}

static bool take(lp_channel *channel, uint32_t peer, const void *head, size_t head_size, const void *body,
                 size_t body_size, const char **why) {
  (void)peer, (void)head, (void)head_size, (void)body;
  player *of = player_of(channel);
  *why = "it takes nothing";
  if (of->sends < MOST_REPLIES) of->sent[of->sends] = body_size;
  of->sends++;
  return !of->deaf;
}

static void pack(const reply *from, lp_packet *out) {
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  Lp__Wire__Result result = LP__WIRE__RESULT__INIT;
  Lp__Wire__Tokens tokens = LP__WIRE__TOKENS__INIT;
  Lp__Wire__Failure failure = LP__WIRE__FAILURE__INIT;
  Lp__Wire__Probe probe = LP__WIRE__PROBE__INIT;
  Lp__Wire__Opened opened = LP__WIRE__OPENED__INIT;
  char text[] = "no room";
  int32_t token[] = {from->token, from->token};
  double confidence[] = {0.25, 0.25};
  message.kind_case = from->kind;
  if (from->kind == LP__WIRE__MESSAGE__KIND_RESULT) message.result = &result;
  if (from->kind == LP__WIRE__MESSAGE__KIND_TOKENS) message.tokens = &tokens;
  if (from->kind == LP__WIRE__MESSAGE__KIND_FAILURE) message.failure = &failure;
  if (from->kind == LP__WIRE__MESSAGE__KIND_PROBE) message.probe = &probe;
  if (from->kind == LP__WIRE__MESSAGE__KIND_OPENED) message.opened = &opened;
  result.step = tokens.step = from->number;
  result.busy_ms = tokens.busy_ms = from->busy_ms;
  tokens.token = token;
  tokens.n_token = from->tokens;
  tokens.confidence = confidence;
  tokens.n_confidence = from->confidences;
  tokens.draw = from->draw;
  failure.text = text;
  failure.lost = from->lost;
  probe.number = (uint32_t)from->number;
  size_t size = lp__wire__message__get_packed_size(&message), all = 4 + size + from->payload;
  uint8_t *frame = lp_alloc(all);
  frame[0] = (uint8_t)size;
  lp__wire__message__pack(&message, frame + 4);
  *out = (lp_packet){.peer = LP_ONLY_PEER, .data = frame, .size = all, .handle = frame};
}

static lp_recv_outcome play(lp_channel *channel, double timeout_ms, lp_packet *out, const char **why) {
  (void)timeout_ms;
  player *of = player_of(channel);
  if (of->next >= of->count) return LP_RECV_TIMEOUT;
  const reply *next = &of->reply[of->repeats ? 0 : of->next++];
  if (next->outcome == LP_RECV_FRAME) pack(next, out);
  *why = "it fell silent";
  return next->outcome;
}

static void release(lp_packet *packet) {
  free(packet->handle);
  *packet = (lp_packet){0};
}

static int watch(lp_channel *channel, double *due_ms) {
  (void)due_ms;
  return player_of(channel)->fd;
}

static void do_nothing(lp_channel *channel) {
  (void)channel;
}

static const lp_transport stage = {.name = "stage",
                                   .send = take,
                                   .receive = play,
                                   .release = release,
                                   .watch = watch,
                                   .rest = do_nothing,
                                   .close = do_nothing,
                                   .overhead = 3};

lp_wire *player_connect(player *of) {
  of->fd = eventfd(1, EFD_CLOEXEC);
  if (of->fd < 0) abort();
  lp_wire *wire = lp_alloc(sizeof *wire);
  *wire = (lp_wire){.transport = &stage, .channel = (lp_channel *)(void *)of, .address = lp_strdup("stage")};
  return wire;
}
