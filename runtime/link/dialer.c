/* Dialling a worker, and frames to and from it (dialer.h). */
#include "runtime/link/dialer.h"

#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cores.h"
#include "runtime/link/frame.h"
#include "runtime/link/socket.h"

static const uint64_t most_frame = UINT64_C(1) << 32; /* that a device takes from the worker it chose */

struct lp_dialer {
  lp_stream stream;
  lp_frame_reader reader;
  lp_patience patience;
  lp_spin spin;
  bool awaited;               /* the last receive had to wait, and nothing has come since */
  double heard_ms, beaten_ms; /* when something came last; when a sign of life was asked for */
};

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* The worker may have said why it closed the connection, such as that TLS refuses this device. */
static void read_last_word(lp_dialer *dialer) {
  lp_stream *stream = &dialer->stream;
  stream->broken = false;
  stream->why[0] = '\0';
  while (lp_frame_read(&dialer->reader, stream, 1) == LP_FRAME_WHOLE) {
    size_t size;
    free(lp_frame_take(&dialer->reader, &size));
  }
}

static bool send_frame(lp_dialer *dialer, const void *head, size_t head_size, const void *body, size_t body_size) {
  lp_frame_parts frame;
  lp_frame_split(&frame, head, head_size, body, body_size);
  for (size_t sent = 0; sent < frame.size;) {
    ssize_t some = lp_stream_write(&dialer->stream, frame.part, LP_COUNT(frame.part), sent);
    if (some < 0) return false;
    sent += (size_t)some;
    if (some == 0 && lp_socket_wait(dialer->stream.fd, POLLOUT, dialer->patience.silence_ms) == 0) return false;
  }
  return true;
}

bool lp_dialer_send(lp_dialer *dialer, const void *head, size_t head_size, const void *body, size_t body_size,
                    const char **why) {
  *why = dialer->stream.why;
  if (dialer->stream.broken) return false;
  if (send_frame(dialer, head, head_size, body, body_size)) return true;
  if (dialer->stream.broken) {
    read_last_word(dialer);
    *why = dialer->stream.why[0] != '\0' ? dialer->stream.why : "the connection closed";
  } else {
    *why = "it takes no more bytes";
  }
  dialer->stream.broken = true; /* a frame was cut: nothing sensible can follow */
  return false;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

static bool is_readable(void *user) {
  const lp_dialer *dialer = user;
  return lp_socket_wait(dialer->stream.fd, POLLIN, 0) != 0;
}

static bool await_bytes(lp_dialer *dialer, double timeout_ms) {
  return lp_spin_until(&dialer->spin, timeout_ms, is_readable, dialer) ||
         lp_socket_wait(dialer->stream.fd, POLLIN, timeout_ms) != 0;
}

/* Nothing came for a while: asks for a sign of life, or gives up. */
static bool is_alive(lp_dialer *dialer, const char **why) {
  double now = lp_now_ms();
  *why = "it gives no sign of life";
  if (now - dialer->heard_ms >= dialer->patience.silence_ms) return false;
  if (now - dialer->beaten_ms < dialer->patience.beat_ms) return true;
  dialer->beaten_ms = now;
  return lp_dialer_send(dialer, NULL, 0, NULL, 0, why);
}

/* Waits for bytes until `until`; `over`: the time is. */
static lp_frame_progress wait_and_read(lp_dialer *dialer, double until, bool *over, const char **why) {
  double begin = lp_now_ms(), left = until - begin, beat = dialer->patience.beat_ms;
  if (await_bytes(dialer, left < beat ? left : beat)) {
    dialer->heard_ms = lp_now_ms();
    lp_spin_note(&dialer->spin, dialer->heard_ms - begin);
    *why = dialer->stream.why;
    return lp_frame_read(&dialer->reader, &dialer->stream, 1);
  }
  if (!is_alive(dialer, why)) return LP_FRAME_BROKEN;
  *over = lp_now_ms() >= until;
  return LP_FRAME_MORE;
}

lp_recv_outcome lp_dialer_receive(lp_dialer *dialer, double timeout_ms, lp_packet *out, const char **why) {
  double now = lp_now_ms();
  bool over = false;
  *why = dialer->stream.why;
  if (dialer->stream.broken) return LP_RECV_GONE;
  if (!dialer->awaited) dialer->heard_ms = now;
  dialer->awaited = true;
  lp_frame_progress progress = lp_frame_read(&dialer->reader, &dialer->stream, 0);
  while (progress == LP_FRAME_MORE && !over)
    progress = wait_and_read(dialer, now + timeout_ms, &over, why);
  if (progress == LP_FRAME_MORE) return LP_RECV_TIMEOUT;
  if (progress == LP_FRAME_LONG) *why = "its frame is too long";
  if (progress != LP_FRAME_WHOLE) {
    dialer->stream.broken = true;
    return LP_RECV_GONE;
  }
  dialer->awaited = false;
  *out = (lp_packet){.peer = LP_ONLY_PEER};
  out->data = out->handle = lp_frame_take(&dialer->reader, &out->size);
  return LP_RECV_FRAME;
}

bool lp_dialer_bind(lp_dialer *dialer, uint8_t out[LP_BINDING_BYTES]) {
  return lp_stream_bind(&dialer->stream, out);
}

/* ---- dialling ---------------------------------------------------------------------------------------------------- */

static bool shake_hands(lp_dialer *dialer, double until, const char **why) {
  lp_stream *stream = &dialer->stream;
  for (;;) {
    stream->reads = 1;
    if (lp_stream_shake(stream)) return true;
    double left = until - lp_now_ms();
    *why = stream->why;
    if (stream->broken) return false;
    *why = "no answer to TLS in time";
    if (left <= 0) return false;
    (void)lp_socket_wait(stream->fd, lp_stream_wants_room(stream) ? POLLIN | POLLOUT : POLLIN, left);
  }
}

static bool connect_and_shake(lp_dialer *dialer, const lp_endpoint *endpoint, double timeout_ms, const char **why) {
  double until = lp_now_ms() + timeout_ms;
  int fd = lp_socket_connect(endpoint->via ? endpoint->via : endpoint->address, timeout_ms, why);
  if (fd < 0) return false;
  *why = "no memory for TLS";
  return lp_stream_open(&dialer->stream, fd, endpoint->security->tls, false) && shake_hands(dialer, until, why);
}

lp_status lp_dialer_create(const lp_endpoint *endpoint, double timeout_ms, lp_dialer **out, lp_diag *diag) {
  lp_dialer *dialer = lp_alloc(sizeof *dialer);
  const char *why = "";
  dialer->stream.fd = -1;
  dialer->patience = endpoint->patience;
  dialer->reader.most = most_frame;
  dialer->spin.pays = lp_machine_threads() > 1;
  *out = dialer;
  if (connect_and_shake(dialer, endpoint, timeout_ms, &why)) return LP_OK;
  *out = NULL;
  const lp_security *security = endpoint->security;
  lp_status status = lp_error(diag, LP_LOC_NONE, "cannot reach the cloud at %s: %s", endpoint->address, why);
  if (dialer->stream.fd >= 0 && security->key && !security->proves)
    lp_note(diag, LP_LOC_NONE, "it may hold another key, or none, or want certificates beside the key: --ca");
  lp_dialer_free(dialer);
  return status;
}

void lp_dialer_free(lp_dialer *dialer) {
  if (!dialer) return;
  lp_stream_close(&dialer->stream);
  lp_frame_reader_free(&dialer->reader);
  free(dialer);
}
