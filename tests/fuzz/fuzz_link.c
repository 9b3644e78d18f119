/* Fuzzes frames of the link: random bytes, or a message of any kind with some bytes changed, are parsed, and every
 * field of the result is read. */
#include <stdlib.h>
#include <string.h>

#include "runtime/link/link.h"
#include "tests/fuzz/messages.h"

struct lp_channel {
  const uint8_t *data;
  size_t size;
};

/* A copy of exactly its size, so that a read past it is seen. */
static lp_recv_outcome receive(lp_channel *channel, double timeout_ms, lp_packet *out, const char **why) {
  (void)timeout_ms, (void)why;
  *out =
      (lp_packet){.peer = LP_ONLY_PEER, .size = channel->size, .handle = malloc(channel->size > 0 ? channel->size : 1)};
  if (!out->handle) return LP_RECV_GONE;
  memcpy(out->handle, channel->data, channel->size);
  out->data = out->handle;
  return LP_RECV_FRAME;
}

static void release(lp_packet *packet) {
  free(packet->handle);
  *packet = (lp_packet){0};
}

static void take_apart(const uint8_t *data, size_t size) {
  static const lp_transport transport = {.name = "fuzz", .receive = receive, .release = release};
  lp_channel channel = {data, size};
  lp_wire wire = {.transport = &transport, .channel = &channel};
  lp_inbound in;
  const char *why = "";
  if (lp_wire_receive(&wire, 0, &in, &why) != LP_RECV_FRAME) return;
  volatile uint8_t sum = 0;
  uint8_t *again = lp_alloc(lp__wire__message__get_packed_size(in.message) + 1);
  lp__wire__message__pack(in.message, again);
  for (size_t i = 0; i < in.payload_size; i++)
    sum = (uint8_t)(sum + ((const uint8_t *)in.payload)[i]);
  free(again);
  lp_inbound_release(&in);
}

/* Makes a frame of a message. The remaining bytes choose the bytes of the frame that are changed, and then are its
 * payload. */
static void make_frame(fuzz_bytes *from, lp_buf *out) {
  lp_arena *arena = lp_arena_create();
  Lp__Wire__Message message;
  fuzz_message(from, arena, &message);
  size_t changes = fuzz_byte(from) % 8, size = lp__wire__message__get_packed_size(&message);
  uint8_t length[] = {(uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16), (uint8_t)(size >> 24)};
  lp_buf_append(out, length, sizeof length);
  lp_buf_reserve(out, sizeof length + size);
  lp__wire__message__pack(&message, (uint8_t *)out->data + sizeof length);
  out->size = sizeof length + size;
  while (changes-- > 0) {
    size_t at = fuzz_byte(from);
    at = (at << 8 | fuzz_byte(from)) % out->size;
    out->data[at] = (char)fuzz_byte(from);
  }
  if (from->size > 0) lp_buf_append(out, from->data, from->size);
  lp_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  take_apart(data, size);
  lp_buf frame = {0};
  make_frame(&(fuzz_bytes){data, size}, &frame);
  take_apart((const uint8_t *)frame.data, frame.size);
  lp_buf_free(&frame);
  return 0;
}
