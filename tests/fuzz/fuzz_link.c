/* Any bytes as a frame of the link: taken apart, and every field of the message touched. */
#include "runtime/link.pb-c.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/runtime_internal.h"

struct lp_channel {
  const uint8_t *data;
  size_t size;
};

/* A copy of exactly its size, so that a read behind it is seen. */
static lp_recv_outcome receive(lp_channel *channel, double timeout_ms, lp_packet *out, const char **why) {
  (void)timeout_ms, (void)why;
  *out = (lp_packet){.peer = LP_ONLY_PEER, .size = channel->size, .handle = malloc(channel->size + 1)};
  if (out->handle == NULL) return LP_RECV_FAILED;
  memcpy(out->handle, channel->data, channel->size);
  out->handle = realloc(out->handle, channel->size > 0 ? channel->size : 1);
  out->data = out->handle;
  return LP_RECV_FRAME;
}

static void release(lp_packet *packet) {
  free(packet->handle);
  *packet = (lp_packet){0};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const lp_transport transport = {.name = "fuzz", .receive = receive, .release = release};
  lp_channel channel = {data, size};
  lp_wire wire = {.transport = &transport, .channel = &channel};
  lp_inbound in;
  const char *why = "";
  if (lp_wire_receive(&wire, 0, &in, &why) != LP_RECV_FRAME) return 0;
  size_t packed = lp__wire__message__get_packed_size(in.message);
  uint8_t *again = malloc(packed + 1), sum = 0;
  if (again != NULL) packed = lp__wire__message__pack(in.message, again);
  for (size_t i = 0; i < in.payload_size; i++)
    sum = (uint8_t)(sum + ((const uint8_t *)in.payload)[i]);
  free(again);
  lp_inbound_release(&in);
  return packed == SIZE_MAX && sum == 1; /* never: so that nothing is left out as unused */
}
