/* The table of functions over sockets: a channel is a dialled connection or a listener (transport.h). */
#include "runtime/link/transport.h"

#include <stdlib.h>

#include "runtime/link/dialer.h"
#include "runtime/link/frame.h"
#include "runtime/link/listener.h"

struct lp_channel {
  lp_dialer *dialer;     /* NULL: a listener's channel */
  lp_listener *listener; /* NULL: a dialled channel */
};

static lp_status channel_of(lp_status status, lp_channel made, lp_channel **out) {
  *out = status == LP_OK ? lp_alloc(sizeof **out) : NULL;
  if (status == LP_OK) **out = made;
  return status;
}

static lp_status dial(const lp_endpoint *endpoint, double timeout_ms, lp_channel **out, lp_diag *diag) {
  lp_channel made = {0};
  lp_status status = lp_dialer_create(endpoint, timeout_ms, &made.dialer, diag);
  return channel_of(status, made, out);
}

static lp_status listen_on(const char *address, const lp_security *security, lp_channel **out, int *port,
                           lp_diag *diag) {
  lp_channel made = {0};
  lp_status status = lp_listener_create(address, security, &made.listener, port, diag);
  return channel_of(status, made, out);
}

static void close_channel(lp_channel *channel) {
  if (!channel) return;
  lp_dialer_free(channel->dialer);
  lp_listener_free(channel->listener);
  free(channel);
}

static bool send_frame(lp_channel *channel, uint32_t peer, const void *head, size_t head_size, const void *body,
                       size_t body_size, const char **why) {
  if (channel->dialer) return lp_dialer_send(channel->dialer, head, head_size, body, body_size, why);
  return lp_listener_send(channel->listener, peer, head, head_size, body, body_size, why);
}

static lp_recv_outcome receive(lp_channel *channel, double timeout_ms, lp_packet *out, const char **why) {
  *out = (lp_packet){0};
  *why = "";
  if (channel->dialer) return lp_dialer_receive(channel->dialer, timeout_ms, out, why);
  return lp_listener_receive(channel->listener, timeout_ms, out, why);
}

static void release(lp_packet *packet) {
  free(packet->handle);
  *packet = (lp_packet){0};
}

static bool bind_channel(lp_channel *channel, uint32_t peer, uint8_t out[LP_BINDING_BYTES]) {
  return channel->dialer ? lp_dialer_bind(channel->dialer, out) : lp_listener_bind(channel->listener, peer, out);
}

static void permit(lp_channel *channel, uint32_t peer, uint64_t bytes) {
  lp_listener_permit(channel->listener, peer, bytes);
}

static void drop(lp_channel *channel, uint32_t peer) {
  lp_listener_drop(channel->listener, peer);
}

static void describe(lp_channel *channel, uint32_t peer, char out[64]) {
  lp_listener_describe(channel->listener, peer, out);
}

const lp_transport lp_transport_socket = {.name = "socket",
                                          .dial = dial,
                                          .listen = listen_on,
                                          .permit = permit,
                                          .drop = drop,
                                          .describe = describe,
                                          .bind = bind_channel,
                                          .send = send_frame,
                                          .receive = receive,
                                          .release = release,
                                          .close = close_channel,
                                          .overhead = LP_FRAME_LENGTH};
