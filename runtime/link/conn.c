/* Frames, plain bytes and TLS over one socket (conn.h). */
#include "runtime/link/conn.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/number.h"
#include "runtime/link/security.h"
#include "runtime/link/socket.h"

enum { RECORD = SSL3_RT_MAX_PLAIN_LENGTH, MOST_DRAINED = 64, LAST_READS = 8, FIRST_ROOM = 1 << 20 };
static const size_t most_queued = (size_t)1 << 32;

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static ssize_t fail(lp_conn *conn, const char *why) {
  if (!conn->broken) snprintf(conn->why, sizeof conn->why, "%s", why);
  conn->broken = true;
  return -1;
}

static ssize_t socket_result(lp_conn *conn, ssize_t result) {
  if (result > 0) return result;
  if (result == 0) return fail(conn, "it closed the connection");
  return errno == EAGAIN || errno == EINTR ? 0 : fail(conn, strerror(errno));
}

static const char *reason_of(const SSL *tls, unsigned long error) {
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return ERR_reason_error_string(error);
  switch (ERR_GET_REASON(error)) {
  case SSL_R_CERTIFICATE_VERIFY_FAILED:
    return X509_verify_cert_error_string(SSL_get_verify_result(tls));
  case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    return "a worker with --client-ca wants a certificate of this device: --cert, --cert-key";
  case SSL_R_BINDER_DOES_NOT_VERIFY:
  case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER: /* the alert that OpenSSL sends for a wrong binder */
    return SSL_get_verify_mode(tls) == SSL_VERIFY_NONE ? "wrong key" : "it holds another key";
  default:
    return ERR_reason_error_string(error);
  }
}

/* Handles the failure of a call of OpenSSL that returned `result`. */
static ssize_t tls_result(lp_conn *conn, int result) {
  int kind = SSL_get_error(conn->tls, result), problem = errno;
  unsigned long error = ERR_peek_error();
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return 0;
  if (kind == SSL_ERROR_SYSCALL && error == 0) return fail(conn, strerror(problem));
  if (kind == SSL_ERROR_ZERO_RETURN || ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
    return fail(conn, "it closed the connection");
  const char *reason = reason_of(conn->tls, error);
  char why[sizeof conn->why];
  snprintf(why, sizeof why, "TLS: %s", reason ? reason : "the handshake failed");
  return fail(conn, why);
}

/* Returns the number of bytes read, 0 when there are none yet, and -1 when the connection is broken. */
static ssize_t read_some(lp_conn *conn, void *to, size_t size) {
  size_t got = 0;
  if (conn->broken) return -1;
  if (!conn->tls) return socket_result(conn, recv(conn->fd, to, size, 0));
  ERR_clear_error();
  int result = SSL_read_ex(conn->tls, to, size, &got);
  return result == 1 ? (ssize_t)got : tls_result(conn, result);
}

/* Returns the number of bytes that the socket took, 0 when it has no room, and -1 when the connection is broken. The
 * next call must begin with the bytes that were not taken. */
static ssize_t write_some(lp_conn *conn, const void *from, size_t size) {
  size_t sent = 0;
  if (conn->broken) return -1;
  if (!conn->tls) return socket_result(conn, send(conn->fd, from, size, MSG_NOSIGNAL));
  ERR_clear_error();
  int result = SSL_write_ex(conn->tls, from, size, &sent);
  return result == 1 ? (ssize_t)sent : tls_result(conn, result);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

/* Writes to a socket as OpenSSL's own BIO does, but without SIGPIPE when the other side has closed the connection. */
static int write_quietly(BIO *bio, const char *from, int size) {
  ssize_t sent = send(((const lp_conn *)BIO_get_data(bio))->fd, from, (size_t)size, MSG_NOSIGNAL);
  BIO_clear_retry_flags(bio);
  if (sent < 0 && BIO_sock_should_retry(-1)) BIO_set_retry_write(bio);
  return (int)sent;
}

static long control(BIO *bio, int command, long number, void *pointer) {
  (void)bio, (void)number, (void)pointer;
  return command == BIO_CTRL_FLUSH;
}

static bool open_tls(lp_conn *conn, SSL_CTX *context, bool worker) {
  conn->tls = SSL_new(context);
  conn->quiet = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "lp_conn");
  if (!conn->tls || !conn->quiet || BIO_meth_set_write(conn->quiet, write_quietly) != 1 ||
      BIO_meth_set_ctrl(conn->quiet, control) != 1)
    return false;
  BIO *in = BIO_new_socket(conn->fd, BIO_NOCLOSE), *out = BIO_new(conn->quiet);
  SSL_set_bio(conn->tls, in, out);
  if (!in || !out) return false;
  BIO_set_data(out, conn);
  BIO_set_init(out, 1);
  if (worker)
    SSL_set_accept_state(conn->tls);
  else
    SSL_set_connect_state(conn->tls);
  return true;
}

bool lp_conn_open(lp_conn *conn, int fd, SSL_CTX *context, bool worker) {
  *conn = (lp_conn){.fd = fd};
  if (!context || open_tls(conn, context, worker)) return true;
  lp_conn_close(conn, "no memory for TLS");
  return false;
}

/* Reads the remaining bytes: closing a socket with unread bytes resets the connection, and the bytes sent last may be
 * lost. */
static void close_gently(int fd) {
  char unread[4096];
  (void)shutdown(fd, SHUT_WR);
  for (int i = 0; i < MOST_DRAINED && recv(fd, unread, sizeof unread, 0) > 0; i++)
    ;
  close(fd);
}

void lp_conn_close(lp_conn *conn, const char *why) {
  if (conn->fd < 0) return;
  ERR_clear_error();
  if (conn->tls && !conn->broken && SSL_is_init_finished(conn->tls)) (void)SSL_shutdown(conn->tls);
  SSL_free(conn->tls);
  BIO_meth_free(conn->quiet);
  close_gently(conn->fd);
  conn->fd = -1;
  conn->tls = NULL;
  conn->quiet = NULL;
  lp_buf_free(&conn->queue);
  conn->sent = 0;
  (void)fail(conn, why);
}

void lp_conn_release(lp_conn *conn) {
  free(conn->frame);
  conn->frame = NULL;
}

bool lp_conn_is_ready(const lp_conn *conn) {
  return !conn->broken && (!conn->tls || SSL_is_init_finished(conn->tls));
}

bool lp_conn_bind(const lp_conn *conn, uint8_t out[LP_BINDING_BYTES]) {
  static const char label[] = "EXPORTER-llmpart-binding";
  return conn->tls && SSL_is_init_finished(conn->tls) &&
         SSL_export_keying_material(conn->tls, out, LP_BINDING_BYTES, label, sizeof label - 1, NULL, 0, 0) == 1;
}

uint64_t lp_conn_identify(const lp_conn *conn) {
  return conn->tls && SSL_is_init_finished(conn->tls) ? lp_security_identify(conn->tls) : 0;
}

/* ---- frames that come -------------------------------------------------------------------------------------------- */

/* Copies from `ahead` to the target until it is full or `ahead` is empty. True: it is full. */
static bool fill(lp_conn *conn, uint8_t *target, size_t wanted) {
  size_t here = conn->end - conn->begin, lacks = wanted - conn->have, count = here < lacks ? here : lacks;
  if (count > 0) memcpy(target + conn->have, conn->ahead + conn->begin, count);
  conn->have += count;
  conn->begin += count;
  return conn->have == wanted;
}

/* Gives a frame its first memory, or twice as much. The peer announces the size, so the memory follows the bytes that
 * come. */
static bool grow(lp_conn *conn) {
  size_t room = conn->room ? 2 * conn->room : FIRST_ROOM;
  if (room > conn->size) room = conn->size;
  uint8_t *frame = realloc(conn->frame, room);
  if (frame) {
    conn->frame = frame;
    conn->room = room;
  } else {
    (void)fail(conn, "no memory for its frame");
  }
  return frame != NULL;
}

/* The bytes before a frame's own. TLS authenticates each record, so that a sum is for plain bytes only. */
static size_t head_size(const lp_conn *conn) {
  return conn->tls ? LP_FRAME_LENGTH : LP_FRAME_HEAD;
}

/* Tells whether the frame, of which all bytes are here, is the one that was sent. */
static bool is_right(lp_conn *conn, const uint8_t *frame) {
  const uint32_t sum =
      conn->tls || conn->checked ? 0 : lp_crc32c(lp_crc32c(0, conn->head, LP_FRAME_LENGTH), frame, conn->size);
  conn->checked = conn->tls || conn->checked || sum == lp_get_bytes(conn->head + LP_FRAME_LENGTH, LP_FRAME_SUM);
  if (!conn->checked) (void)fail(conn, "bytes of it came damaged, or its protocol is another one");
  return conn->checked;
}

static lp_conn_progress use_ahead(lp_conn *conn) {
  while (!conn->frame) {
    if (!fill(conn, conn->head, head_size(conn))) return LP_CONN_MORE;
    const uint64_t length = lp_get_bytes(conn->head, LP_FRAME_LENGTH);
    if (length > conn->most) return LP_CONN_LONG;
    conn->have = 0;
    conn->size = (size_t)length;
    conn->checked = false;
    if (length == 0 && !is_right(conn, NULL)) return LP_CONN_BROKEN;
    conn->asked |= length == 0;
    if (length == 0) continue;
    conn->room = 0;
    if (!grow(conn)) return LP_CONN_BROKEN;
  }
  while (fill(conn, conn->frame, conn->room)) {
    if (conn->room == conn->size) return is_right(conn, conn->frame) ? LP_CONN_FRAME : LP_CONN_BROKEN;
    if (!grow(conn)) return LP_CONN_BROKEN;
  }
  return LP_CONN_MORE;
}

lp_conn_progress lp_conn_read(lp_conn *conn, bool socket) {
  for (;; socket = false) {
    lp_conn_progress progress = use_ahead(conn);
    if (progress != LP_CONN_MORE) return progress;
    if (conn->broken) return LP_CONN_BROKEN;
    if (!socket && !(conn->tls && SSL_has_pending(conn->tls))) return LP_CONN_MORE;
    bool into_place = conn->frame != NULL;
    ssize_t got = into_place ? read_some(conn, conn->frame + conn->have, conn->room - conn->have)
                             : read_some(conn, conn->ahead, LP_READ_AHEAD);
    if (got <= 0) return got < 0 ? LP_CONN_BROKEN : LP_CONN_MORE;
    conn->have += into_place ? (size_t)got : 0;
    conn->begin = 0;
    conn->end = into_place ? 0 : (size_t)got;
  }
}

uint8_t *lp_conn_take(lp_conn *conn, size_t *size) {
  uint8_t *frame = conn->frame;
  *size = conn->size;
  conn->frame = NULL;
  conn->have = 0;
  return frame;
}

/* ---- frames that go ---------------------------------------------------------------------------------------------- */

static void queue(lp_conn *conn, const void *from, size_t size) {
  if (conn->queue.size == 0) conn->moved_ms = lp_now_ms();
  if (conn->sent > conn->queue.size / 2) { /* the room of bytes already sent is reused */
    conn->queue.size -= conn->sent;
    memmove(conn->queue.data, conn->queue.data + conn->sent, conn->queue.size);
    conn->sent = 0;
  }
  lp_buf_append(&conn->queue, from, size);
}

/* The other side may have sent the reason before it closed the connection, such as TLS's alert that it refuses this
 * device. */
static void read_last_word(lp_conn *conn) {
  conn->broken = false;
  for (int i = 0; i < LAST_READS && lp_conn_read(conn, true) == LP_CONN_MORE; i++)
    ;
  conn->broken = true;
}

/* The frame's first bytes are joined in the queue, up to the size of one TLS record, since each record costs a header,
 * a tag and some time. */
bool lp_conn_send(lp_conn *conn, const void *first, size_t first_size, const void *body, size_t body_size,
                  double wait_ms) {
  size_t begun = head_size(conn) + first_size, most = most_queued - (conn->queue.size - conn->sent);
  if (conn->broken || first_size > most || body_size > most || begun + body_size > most) return false;
  uint8_t head[LP_FRAME_HEAD];
  lp_put_bytes(head, first_size + body_size, LP_FRAME_LENGTH);
  if (!conn->tls) {
    const uint32_t sum = lp_crc32c(lp_crc32c(0, head, LP_FRAME_LENGTH), first, first_size);
    lp_put_bytes(head + LP_FRAME_LENGTH, lp_crc32c(sum, body, body_size), LP_FRAME_SUM);
  }
  size_t room = begun < RECORD ? RECORD - begun : 0, done = body_size < room ? body_size : room;
  queue(conn, head, head_size(conn));
  queue(conn, first, first_size);
  queue(conn, body, done);
  while (lp_conn_flush(conn)) {
    size_t left = body_size - done;
    bool queued = conn->queue.size > 0;
    if (!queued && left == 0) return true;
    ssize_t some = queued ? 0 : write_some(conn, (const char *)body + done, left);
    if (some < 0) break;
    done += (size_t)some;
    if (some > 0 || (wait_ms > 0 && lp_socket_wait(conn->fd, POLLOUT, wait_ms) != 0)) continue;
    if (left > 0) queue(conn, (const char *)body + done, left);
    return true;
  }
  read_last_word(conn);
  return false;
}

bool lp_conn_flush(lp_conn *conn) {
  while (conn->sent < conn->queue.size) {
    ssize_t some = write_some(conn, conn->queue.data + conn->sent, conn->queue.size - conn->sent);
    if (some <= 0) return some == 0;
    conn->moved_ms = lp_now_ms();
    conn->sent += (size_t)some;
  }
  conn->sent = 0;
  lp_buf_free(&conn->queue);
  return true;
}

bool lp_conn_wants_room(const lp_conn *conn) {
  return conn->queue.size > 0 || (conn->tls && SSL_want_write(conn->tls));
}
