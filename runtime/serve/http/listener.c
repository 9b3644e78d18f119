/* The server's address and its daemons: see listener.h. */
#include "runtime/serve/http/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "runtime/link/address.h"
#include "runtime/link/security.h"

enum { IDLE_S = 120 };

/* A daemon, and the certificate and key that it borrows. */
typedef struct {
  struct MHD_Daemon *daemon;
  char *cert, *cert_key; /* NULL: no TLS */
} taker;

struct lp_http_listener {
  lp_http_server *of;
  lp_http_callbacks callbacks;
  bool dual;         /* an IPv6 socket, which takes IPv4 connections as well */
  LP_VEC(taker) all; /* the last one takes new connections */
};

/* ---- the address ------------------------------------------------------------------------------------------------- */

static lp_status find_address(const lp_serve_config *config, struct sockaddr_storage *out, char **host, lp_diag *diag) {
  LP_TRY(lp_http_address_read(config->listen, config->listen_loc, out, host, diag));
  if (!lp_address_is_loopback(*host) && config->keys.count == 0)
    return lp_error(
        diag, config->listen_loc,
        "'%s' is not a loopback address, so a key is required: 'key_env' or 'keys' (without a file: --key-env)",
        config->listen);
  return LP_OK;
}

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

/* Checks the files as those of a link are checked, which tells what is wrong with them: libmicrohttpd does not. */
static lp_status check_certificate(const lp_serve_config *config, lp_diag *diag) {
  const lp_link_security files = {.cert_file = config->cert, .cert_key_file = config->cert_key};
  lp_security security;
  lp_status status = lp_security_open(&files, LP_SIDE_CLOUD, true, &security, diag);
  lp_security_close(&security);
  return status;
}

static lp_status read_certificate(const lp_serve_config *config, taker *out, lp_diag *diag) {
  size_t size = 0;
  if (!config->cert) return LP_OK;
  LP_TRY(check_certificate(config, diag));
  LP_TRY(lp_file_read(config->cert, &out->cert, &size, diag));
  return lp_file_read(config->cert_key, &out->cert_key, &size, diag);
}

lp_status lp_http_listener_check(const lp_serve_config *config, lp_diag *diag) {
  struct sockaddr_storage address;
  LP_OWNED(lp_free_at) char *host = NULL;
  lp_status status = find_address(config, &address, &host, diag);
  return status == LP_OK && config->cert ? check_certificate(config, diag) : status;
}

static void free_certificate(taker *of) {
  if (of->cert_key) explicit_bzero(of->cert_key, strlen(of->cert_key));
  free(of->cert);
  free(of->cert_key);
}

/* ---- daemons ----------------------------------------------------------------------------------------------------- */

/* Starts a daemon at the address, or with `address` NULL at a socket that listens, which it then owns. */
static struct MHD_Daemon *start(const lp_http_listener *self, const taker *with, const struct sockaddr *address,
                                int socket) {
  const lp_http_library *http = self->of->http;
  unsigned flags = MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ITC;
  if (self->dual) flags |= MHD_USE_DUAL_STACK;
  if (with->cert) flags |= MHD_USE_TLS;
  const struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, with->cert},
                                       {MHD_OPTION_HTTPS_MEM_KEY, 0, with->cert_key},
                                       {MHD_OPTION_END, 0, NULL}};
  const struct MHD_OptionItem fresh[] = {{MHD_OPTION_SOCK_ADDR, 0, (void *)(uintptr_t)address},
                                         {MHD_OPTION_END, 0, NULL}};
  const struct MHD_OptionItem shared[] = {{MHD_OPTION_LISTEN_SOCKET, socket, NULL}, {MHD_OPTION_END, 0, NULL}};
  const struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
  return http->start_daemon(flags, 0, NULL, NULL, self->callbacks.handle, self->of, MHD_OPTION_ARRAY,
                            address ? fresh : shared, MHD_OPTION_ARRAY, with->cert ? tls : none,
                            MHD_OPTION_NOTIFY_COMPLETED, self->callbacks.forget, self->of, MHD_OPTION_NOTIFY_CONNECTION,
                            self->callbacks.note_connection, self->of, MHD_OPTION_CONNECTION_LIMIT,
                            (unsigned)(LP_MOST_CONNECTIONS + LP_MORE_CONNECTIONS), MHD_OPTION_CONNECTION_TIMEOUT,
                            (unsigned)IDLE_S, MHD_OPTION_END);
}

static lp_status open_first(lp_http_listener *self, char **host, int *port, lp_diag *diag) {
  const lp_serve_config *config = self->of->settings->config;
  struct sockaddr_storage address = {0};
  taker first = {0};
  LP_TRY(find_address(config, &address, host, diag));
  self->dual = address.ss_family == AF_INET6;
  lp_status status = read_certificate(config, &first, diag);
  if (status == LP_OK) first.daemon = start(self, &first, (const struct sockaddr *)&address, -1);
  if (status == LP_OK && !first.daemon)
    status = lp_error(diag, config->listen_loc, "cannot listen on %s: %s", config->listen, strerror(errno));
  lp_vec_push(&self->all, first);
  LP_TRY(status);
  *port = lp_http_port(self->of->http, first.daemon);
  if (*port != 0) return LP_OK; /* a port that the kernel chose */
  return lp_error(diag, config->listen_loc, "cannot find the port of %s", config->listen);
}

lp_status lp_http_listener_open(lp_http_server *of, lp_http_callbacks callbacks, lp_http_listener **out, char **host,
                                int *port, lp_diag *diag) {
  lp_http_listener *self = lp_alloc(sizeof *self);
  *self = (lp_http_listener){.of = of, .callbacks = callbacks};
  lp_status status = open_first(self, host, port, diag);
  *out = status == LP_OK ? self : NULL;
  if (status != LP_OK) lp_http_listener_close(self);
  return status;
}

/* The daemon takes no more connections. */
static void quiesce(const lp_http_listener *self, const taker *of) {
  int socket = self->of->http->quiesce_daemon(of->daemon);
  if (socket >= 0) (void)close(socket);
}

lp_status lp_http_listener_renew(lp_http_listener *self, lp_diag *diag) {
  const lp_http_library *http = self->of->http;
  taker old = self->all.data[self->all.count - 1], fresh = {0};
  if (!self->of->settings->config->cert) return LP_OK;
  lp_status status = read_certificate(self->of->settings->config, &fresh, diag);
  int listens = status == LP_OK ? http->get_daemon_info(old.daemon, MHD_DAEMON_INFO_LISTEN_FD)->listen_fd : -1;
  int shared = listens >= 0 ? fcntl(listens, F_DUPFD_CLOEXEC, 0) : -1;
  if (shared >= 0) fresh.daemon = start(self, &fresh, NULL, shared);
  if (status == LP_OK && !fresh.daemon) {
    if (shared >= 0) (void)close(shared);
    status = lp_error(diag, LP_LOC_FILE(self->of->settings->config->cert),
                      "no connections can be taken with this certificate");
  }
  if (status != LP_OK) {
    free_certificate(&fresh);
    return status;
  }
  lp_vec_push(&self->all, fresh);
  quiesce(self, &old);
  return LP_OK;
}

static void end(const lp_http_listener *self, taker *of) {
  if (of->daemon) self->of->http->stop_daemon(of->daemon);
  free_certificate(of);
}

void lp_http_listener_tend(lp_http_listener *self) {
  for (size_t i = 0; i + 1 < self->all.count; i++) {
    taker *of = &self->all.data[i];
    if (self->of->http->get_daemon_info(of->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections > 0) continue;
    end(self, of);
    memmove(of, of + 1, (--self->all.count - i) * sizeof *of);
    i--;
  }
}

void lp_http_listener_stop(lp_http_listener *self) {
  quiesce(self, &self->all.data[self->all.count - 1]);
}

void lp_http_listener_close(lp_http_listener *self) {
  if (!self) return;
  for (size_t i = 0; i < self->all.count; i++)
    end(self, &self->all.data[i]);
  lp_vec_free(&self->all);
  free(self);
}
