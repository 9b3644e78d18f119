/* Channels over sockets: opening, closing, and the functions of the table (transport.h). */
#include "runtime/link/transport.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/link/address.h"
#include "runtime/link/channel.h"
#include "runtime/link/security.h"

static const uint64_t most_frame = UINT64_C(1) << 32; /* the longest frame that a device accepts from its worker */
static const double close_ms = 200;                   /* the time to send the queues when a channel is closed */

const char *lp_endpoint_name(const lp_endpoint *endpoint) {
  return endpoint->name ? endpoint->name : "the cloud";
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void close_channel(lp_channel *channel) {
  if (!channel) return;
  if (channel->started) {
    pthread_mutex_lock(&channel->mutex);
    channel->closing = true;
    lp_channel_wake_attendant(channel);
    pthread_mutex_unlock(&channel->mutex);
    pthread_join(channel->attendant, NULL);
  }
  lp_socket_listener_close(&channel->socket);
  for (double until = lp_now_ms() + close_ms; channel->peers.count > 0;
       lp_channel_forget(channel, channel->peers.data[0])) {
    lp_conn *conn = &channel->peers.data[0]->conn;
    while (lp_conn_flush(conn) && conn->queue.size > 0 && lp_now_ms() < until)
      (void)lp_socket_wait(conn->fd, POLLOUT, until - lp_now_ms());
  }
  lp_vec_free(&channel->peers);
  lp_vec_free(&channel->news);
  if (channel->epoll >= 0) close(channel->epoll);
  if (channel->wake >= 0) close(channel->wake);
  if (channel->nudge >= 0) close(channel->nudge);
  pthread_mutex_destroy(&channel->mutex);
  free(channel);
}

static bool open_listener(lp_channel *channel, const char *address, const char **why) {
  *why = "no descriptors are left";
  channel->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  channel->nudge = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (channel->epoll < 0 || channel->wake < 0 || channel->nudge < 0) return false;
  if (!lp_socket_listen(address, &channel->socket, why)) return false;
  struct epoll_event event = {EPOLLIN | EPOLLET, {.ptr = NULL}}; /* take_connections accepts all that wait */
  struct epoll_event nudge = {EPOLLIN, {.ptr = channel}};
  channel->started = epoll_ctl(channel->epoll, EPOLL_CTL_ADD, channel->socket.fd, &event) == 0 &&
                     epoll_ctl(channel->epoll, EPOLL_CTL_ADD, channel->nudge, &nudge) == 0 &&
                     pthread_create(&channel->attendant, NULL, lp_channel_attend, channel) == 0;
  *why = "no thread for it";
  return channel->started;
}

static lp_status listen_on(const char *address, const lp_security *security, lp_channel **out, int *port,
                           lp_diag *diag) {
  const char *why = "";
  *out = lp_channel_create(security);
  if (open_listener(*out, address, &why)) {
    *port = (*out)->socket.port;
    return LP_OK;
  }
  close_channel(*out);
  *out = NULL;
  return lp_error(diag, LP_LOC_NONE, "cannot listen on %s: %s", address, why);
}

/* Connects, and performs the handshake of TLS if there is TLS. */
static bool connect_channel(lp_channel *channel, const lp_endpoint *endpoint, double timeout_ms, const char **why) {
  double until = lp_now_ms() + timeout_ms;
  *why = "no descriptors are left";
  if (channel->epoll < 0) return false;
  int fd = lp_socket_connect(endpoint->via ? endpoint->via : endpoint->address, timeout_ms, why);
  if (fd < 0) return false;
  lp_peer *worker = lp_channel_add(channel, fd, &(lp_sockaddr){0});
  worker->conn.most = most_frame;
  worker->permitted = true;
  pthread_mutex_lock(&channel->mutex);
  lp_channel_read(channel, worker, true);
  while (worker->conn.fd >= 0 && !lp_conn_is_ready(&worker->conn) && lp_channel_serve(channel, until))
    ;
  pthread_mutex_unlock(&channel->mutex);
  *why = worker->conn.fd < 0 ? worker->conn.why : "no answer to TLS in time";
  return lp_conn_is_ready(&worker->conn);
}

static lp_status dial(const lp_endpoint *endpoint, double timeout_ms, lp_channel **out, lp_diag *diag) {
  const lp_security *security = endpoint->security;
  const char *why = "";
  *out = lp_channel_create(security);
  (*out)->patience = endpoint->patience;
  if (connect_channel(*out, endpoint, timeout_ms, &why)) return LP_OK;
  lp_status status =
      lp_error(diag, LP_LOC_NONE, "cannot reach %s at %s: %s", lp_endpoint_name(endpoint), endpoint->address, why);
  if ((*out)->peers.count > 0 && security->key_count > 0 && !security->proves)
    lp_note(diag, LP_LOC_NONE,
            "it may hold another key, or none, or require certificates in addition to the key: --ca");
  close_channel(*out);
  *out = NULL;
  return status;
}

/* ---- the caller -------------------------------------------------------------------------------------------------- */

/* Locks the channel and finds the peer, or NULL. Only the caller frees a peer of which it has been told. */
static lp_peer *lock_peer(lp_channel *channel, uint32_t id) {
  pthread_mutex_lock(&channel->mutex);
  for (size_t i = 0; i < channel->peers.count; i++)
    if (channel->peers.data[i]->id == id) return channel->peers.data[i];
  return NULL;
}

static void renew(lp_channel *channel, const lp_security *security) {
  pthread_mutex_lock(&channel->mutex);
  channel->tls = security->tls;
  pthread_mutex_unlock(&channel->mutex);
}

static void permit(lp_channel *channel, uint32_t id, uint64_t bytes) {
  lp_peer *of = lock_peer(channel, id);
  if (of) {
    of->conn.most = bytes;
    of->permitted = true;
  }
  pthread_mutex_unlock(&channel->mutex);
}

static void drop(lp_channel *channel, uint32_t id) {
  lp_peer *of = lock_peer(channel, id);
  if (of) of->finishing = true;
  if (of && of->conn.queue.size == 0) lp_channel_lose(channel, of, NULL);
  pthread_mutex_unlock(&channel->mutex);
}

static void describe(lp_channel *channel, uint32_t id, char out[64]) {
  lp_peer *of = lock_peer(channel, id);
  snprintf(out, 64, "a device");
  if (of) lp_sockaddr_print(&of->at, out);
  pthread_mutex_unlock(&channel->mutex);
}

static bool bind_channel(lp_channel *channel, uint32_t id, uint8_t out[LP_BINDING_BYTES]) {
  lp_peer *of = lock_peer(channel, id);
  bool bound = of && lp_conn_bind(&of->conn, out);
  pthread_mutex_unlock(&channel->mutex);
  return bound;
}

static uint64_t identify(lp_channel *channel, uint32_t id, uint64_t *host) {
  lp_peer *of = lock_peer(channel, id);
  *host = of ? lp_address_host((const void *)&of->at.at) : 0;
  uint64_t number = of ? lp_conn_identify(&of->conn) : 0;
  pthread_mutex_unlock(&channel->mutex);
  return number;
}

static bool send_frame(lp_channel *channel, uint32_t id, const void *head, size_t head_size, const void *body,
                       size_t body_size, const char **why) {
  lp_peer *to = lock_peer(channel, id);
  bool sent = to && !to->finishing && lp_channel_put(channel, to, head, head_size, body, body_size);
  *why = to && to->conn.broken ? to->conn.why : "the connection closed";
  pthread_mutex_unlock(&channel->mutex);
  return sent;
}

static void enter(lp_channel *channel) {
  pthread_mutex_lock(&channel->mutex);
  channel->receiving = true;
  if (channel->attending) lp_channel_wake_attendant(channel);
  channel->attending = false;
  if (!lp_channel_is_device(channel) || channel->awaited) return;
  channel->awaited = true;
  channel->heard_ms = lp_now_ms();
  channel->due_ms = channel->heard_ms + channel->patience.beat_ms;
}

static void leave(lp_channel *channel) {
  channel->receiving = false;
  channel->left_ms = lp_now_ms();
  if (channel->sleeping) lp_channel_wake_attendant(channel);
  channel->sleeping = false;
  pthread_mutex_unlock(&channel->mutex);
}

/* Takes the frame of a peer with news, or notes its end. The limit may have been raised since its frame was found too
 * long. */
static lp_recv_outcome take(lp_channel *channel, lp_peer *of, lp_packet *out) {
  lp_conn_progress progress = lp_conn_read(&of->conn, false);
  if (progress == LP_CONN_LONG) lp_conn_close(&of->conn, "its frame is too long");
  if (progress == LP_CONN_LONG || progress == LP_CONN_BROKEN) return LP_RECV_GONE;
  if (progress == LP_CONN_FRAME) {
    out->data = out->handle = lp_conn_take(&of->conn, &out->size);
    channel->awaited = false;
  }
  lp_channel_resume(channel, of);
  return progress == LP_CONN_FRAME ? LP_RECV_FRAME : LP_RECV_TIMEOUT;
}

/* Takes the earliest news. A device keeps its peer after the connection has ended; a listener frees it. */
static lp_recv_outcome take_news(lp_channel *channel, lp_packet *out, const char **why) {
  lp_recv_outcome outcome = LP_RECV_TIMEOUT;
  while (outcome == LP_RECV_TIMEOUT && channel->news.count > 0) {
    lp_peer *first = channel->news.data[0];
    channel->news.count--;
    for (size_t i = 0; i < channel->news.count; i++)
      channel->news.data[i] = channel->news.data[i + 1];
    first->news = false;
    out->peer = first->id;
    outcome = take(channel, first, out);
    *why = first->conn.why;
    if (outcome == LP_RECV_GONE && lp_channel_is_device(channel)) lp_channel_lose(channel, first, NULL);
    if (outcome != LP_RECV_GONE || lp_channel_is_device(channel)) continue;
    *why = "the connection closed";
    lp_channel_forget(channel, first);
  }
  if (outcome != LP_RECV_TIMEOUT || !channel->tells) return outcome;
  channel->tells = false;
  channel->told_ms = lp_now_ms();
  *why = "no descriptors are left: new connections wait or replace silent ones";
  return LP_RECV_STRAINED;
}

static lp_recv_outcome receive(lp_channel *channel, double timeout_ms, lp_packet *out, const char **why) {
  double until = lp_now_ms() + timeout_ms;
  *out = (lp_packet){0};
  *why = "";
  enter(channel);
  lp_recv_outcome outcome = take_news(channel, out, why);
  for (bool over = channel->nudged; outcome == LP_RECV_TIMEOUT && !over; outcome = take_news(channel, out, why))
    over = !lp_channel_serve(channel, until);
  channel->nudged = false;
  leave(channel);
  return outcome;
}

static void wake(lp_channel *channel) {
  (void)eventfd_write(channel->nudge, 1); /* it fails only when the counter is full, and then the caller wakes anyway */
}

static int watch_channel(lp_channel *channel, double *due_ms) {
  *due_ms = channel->due_ms;
  return channel->epoll;
}

static void rest(lp_channel *channel) {
  channel->awaited = false;
}

static void release(lp_packet *packet) {
  free(packet->handle);
  *packet = (lp_packet){0};
}

const lp_transport lp_transport_socket = {.name = "socket",
                                          .dial = dial,
                                          .listen = listen_on,
                                          .renew = renew,
                                          .permit = permit,
                                          .drop = drop,
                                          .describe = describe,
                                          .bind = bind_channel,
                                          .identify = identify,
                                          .send = send_frame,
                                          .receive = receive,
                                          .release = release,
                                          .wake = wake,
                                          .watch = watch_channel,
                                          .rest = rest,
                                          .close = close_channel,
                                          .overhead = LP_FRAME_HEAD};
