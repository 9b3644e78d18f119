/* Plain bytes and TLS over one socket (stream.h). OpenSSL reads and writes the socket through the functions given here,
 * so that a connection that the other side has closed never raises SIGPIPE, and a read takes from the socket only as
 * often as allowed. */
#include "runtime/link/stream.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECORD = SSL3_RT_MAX_PLAIN_LENGTH, MOST_PARTS = 3, MOST_DRAINED = 64 };

/* ---- the socket -------------------------------------------------------------------------------------------------- */

static ssize_t fail(lp_stream *stream, const char *why) {
  if (!stream->broken) snprintf(stream->why, sizeof stream->why, "%s", why);
  stream->broken = true;
  return -1;
}

static ssize_t socket_result(lp_stream *stream, ssize_t result) {
  if (result > 0) return result;
  if (result == 0) return fail(stream, "it closed the connection");
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : fail(stream, strerror(errno));
}

static ssize_t read_socket(lp_stream *stream, void *to, size_t size) {
  if (stream->broken) return -1;
  if (stream->reads == 0) return 0;
  stream->reads--;
  return socket_result(stream, recv(stream->fd, to, size, MSG_DONTWAIT));
}

static ssize_t write_socket(lp_stream *stream, struct iovec *part, size_t count) {
  if (stream->broken) return -1;
  struct msghdr message = {.msg_iov = part, .msg_iovlen = count};
  return socket_result(stream, sendmsg(stream->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

/* ---- the socket as OpenSSL sees it ------------------------------------------------------------------------------- */

static int bio_result(BIO *bio, ssize_t result, void (*retry)(BIO *)) {
  BIO_clear_retry_flags(bio);
  if (result == 0) retry(bio);
  return result > 0 ? (int)result : -1;
}

static void retry_read(BIO *bio) {
  BIO_set_retry_read(bio);
}

static void retry_write(BIO *bio) {
  BIO_set_retry_write(bio);
}

static int bio_read(BIO *bio, char *to, int size) {
  return bio_result(bio, read_socket(BIO_get_data(bio), to, (size_t)size), retry_read);
}

static int bio_write(BIO *bio, const char *from, int size) {
  struct iovec part = {(void *)(uintptr_t)from, (size_t)size};
  return bio_result(bio, write_socket(BIO_get_data(bio), &part, 1), retry_write);
}

static long bio_control(BIO *bio, int command, long number, void *pointer) {
  (void)bio, (void)number, (void)pointer;
  return command == BIO_CTRL_FLUSH;
}

static bool open_tls(lp_stream *stream, SSL_CTX *context, bool worker) {
  stream->methods = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "lp_stream");
  stream->tls = SSL_new(context);
  if (!stream->tls || !stream->methods || BIO_meth_set_read(stream->methods, bio_read) != 1 ||
      BIO_meth_set_write(stream->methods, bio_write) != 1 || BIO_meth_set_ctrl(stream->methods, bio_control) != 1)
    return false;
  BIO *bio = BIO_new(stream->methods);
  if (!bio) return false;
  BIO_set_data(bio, stream);
  BIO_set_init(bio, 1);
  SSL_set_bio(stream->tls, bio, bio);
  if (worker)
    SSL_set_accept_state(stream->tls);
  else
    SSL_set_connect_state(stream->tls);
  return true;
}

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

static const char *reason_of(const SSL *tls, unsigned long error) {
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return ERR_reason_error_string(error);
  switch (ERR_GET_REASON(error)) {
  case SSL_R_CERTIFICATE_VERIFY_FAILED:
    return X509_verify_cert_error_string(SSL_get_verify_result(tls));
  case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    return "a worker with --client-ca wants a certificate of this device: --cert, --cert-key";
  case SSL_R_BINDER_DOES_NOT_VERIFY:
  case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER: /* what OpenSSL answers to a wrong binder */
    return SSL_get_verify_mode(tls) == SSL_VERIFY_NONE ? "wrong key" : "it holds another key";
  default:
    return ERR_reason_error_string(error);
  }
}

/* Of a call that returned `result`, which is not its success. */
static ssize_t tls_result(lp_stream *stream, int result) {
  int kind = SSL_get_error(stream->tls, result);
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return stream->broken ? -1 : 0;
  if (kind == SSL_ERROR_ZERO_RETURN) return fail(stream, "it closed the connection");
  const char *reason = kind == SSL_ERROR_SSL ? reason_of(stream->tls, ERR_peek_error()) : NULL;
  char why[sizeof stream->why];
  snprintf(why, sizeof why, "TLS: %s", reason ? reason : "the handshake failed");
  return fail(stream, why); /* where the socket has broken, its reason stays */
}

bool lp_stream_shake(lp_stream *stream) {
  if (!stream->tls || stream->broken || SSL_is_init_finished(stream->tls)) return !stream->broken;
  ERR_clear_error();
  int result = SSL_do_handshake(stream->tls);
  if (result != 1) (void)tls_result(stream, result);
  return result == 1;
}

bool lp_stream_wants_room(const lp_stream *stream) {
  return stream->tls && SSL_want_write(stream->tls) && !SSL_is_init_finished(stream->tls);
}

bool lp_stream_bind(lp_stream *stream, uint8_t out[LP_BINDING_BYTES]) {
  static const char label[] = "EXPORTER-llmpart-binding";
  return stream->tls && SSL_is_init_finished(stream->tls) &&
         SSL_export_keying_material(stream->tls, out, LP_BINDING_BYTES, label, sizeof label - 1, NULL, 0, 0) == 1;
}

/* ---- either ------------------------------------------------------------------------------------------------------ */

bool lp_stream_open(lp_stream *stream, int fd, SSL_CTX *context, bool worker) {
  *stream = (lp_stream){.fd = fd};
  if (!context || open_tls(stream, context, worker)) return true;
  lp_stream_close(stream);
  return false;
}

/* A socket that is closed with unread bytes resets the connection, and what was sent last may be lost. */
static void close_gently(int fd) {
  char unread[4096];
  (void)shutdown(fd, SHUT_WR);
  for (int i = 0; i < MOST_DRAINED && recv(fd, unread, sizeof unread, MSG_DONTWAIT) > 0; i++)
    ;
  close(fd);
}

void lp_stream_close(lp_stream *stream) {
  if (stream->fd < 0) return;
  ERR_clear_error();
  if (stream->tls && !stream->broken && SSL_is_init_finished(stream->tls)) (void)SSL_shutdown(stream->tls);
  SSL_free(stream->tls);
  BIO_meth_free(stream->methods);
  close_gently(stream->fd);
  stream->fd = -1;
  stream->tls = NULL;
  stream->methods = NULL;
  (void)fail(stream, "the connection closed");
}

ssize_t lp_stream_read(lp_stream *stream, void *to, size_t size) {
  if (stream->broken) return -1;
  if (!stream->tls) return read_socket(stream, to, size);
  size_t got = 0;
  ERR_clear_error();
  int result = SSL_read_ex(stream->tls, to, size, &got);
  return result == 1 ? (ssize_t)got : tls_result(stream, result);
}

/* What of the parts is left after `skip` bytes. */
static size_t rest_of(const struct iovec *part, size_t count, size_t skip, struct iovec rest[MOST_PARTS]) {
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    size_t done = skip < part[i].iov_len ? skip : part[i].iov_len;
    skip -= done;
    if (done < part[i].iov_len) rest[used++] = (struct iovec){(char *)part[i].iov_base + done, part[i].iov_len - done};
  }
  return used;
}

/* The first bytes of the rest, up to a record of TLS: each record costs a header, a tag and some time, so small parts
 * are joined. */
static struct iovec join(const struct iovec *rest, size_t count, uint8_t joined[RECORD]) {
  if (rest[0].iov_len >= RECORD) return (struct iovec){rest[0].iov_base, RECORD};
  size_t size = 0;
  for (size_t i = 0, some; i < count && size < RECORD; i++, size += some) {
    some = rest[i].iov_len < RECORD - size ? rest[i].iov_len : RECORD - size;
    memcpy(joined + size, rest[i].iov_base, some);
  }
  return (struct iovec){joined, size};
}

ssize_t lp_stream_write(lp_stream *stream, const struct iovec *part, size_t count, size_t skip) {
  uint8_t joined[RECORD];
  struct iovec rest[MOST_PARTS];
  size_t left = rest_of(part, count, skip, rest), total = 0;
  if (stream->broken) return -1;
  if (!stream->tls) return left > 0 ? write_socket(stream, rest, left) : 0;
  while (left > 0) {
    struct iovec next = join(rest, left, joined);
    size_t sent = 0;
    ERR_clear_error();
    int result = SSL_write_ex(stream->tls, next.iov_base, next.iov_len, &sent);
    if (result != 1) return tls_result(stream, result) < 0 ? -1 : (ssize_t)total;
    total += sent;
    left = rest_of(part, count, skip + total, rest);
  }
  return (ssize_t)total;
}
