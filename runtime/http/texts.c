/* Serves texts: see texts.h. */
#include "runtime/http/texts.h"

#include <errno.h>
#include <signal.h>

#include "runtime/http/library.h"
#include "runtime/link/address.h"

enum { MOST_CONNECTIONS = 16, IDLE_S = 30 };

struct lp_http_texts {
  const lp_http_library *http;
  const lp_http_texts_options *options;
  struct MHD_Daemon *daemon;
};

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static enum MHD_Result reply(const lp_http_texts *self, struct MHD_Connection *connection, unsigned status,
                             const char *type, lp_buf *text) {
  struct MHD_Response *response = self->http->create_response_from_buffer(
      text->size, text->size > 0 ? text->data : NULL, text->size > 0 ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
  if (!response) {
    lp_buf_free(text);
    return MHD_NO;
  }
  (void)self->http->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
    (void)self->http->add_response_header(response, MHD_HTTP_HEADER_ALLOW, MHD_HTTP_METHOD_GET);
  enum MHD_Result result = self->http->queue_response(connection, status, response);
  self->http->destroy_response(response);
  return result;
}

static enum MHD_Result refuse(const lp_http_texts *self, struct MHD_Connection *connection, unsigned status,
                              const char *why) {
  lp_buf text = {0};
  lp_buf_printf(&text, "%s\n", why);
  return reply(self, connection, status, "text/plain", &text);
}

static bool is_for_loopback(const char *host) {
  LP_OWNED(lp_buf_free) lp_buf name = {0};
  lp_buf_append(&name, host, lp_http_host_length(host));
  return lp_http_is_loopback(lp_buf_text(&name));
}

/* Returns the status of the refusal, and its reason; 0: the request is taken. */
static unsigned refuses(const lp_http_texts *self, struct MHD_Connection *connection, const char **why) {
  const char *host = self->http->lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
  const char *given = self->http->lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
  const char *key = self->options->key;
  if (key && given && lp_has_prefix(given, "Bearer ") && lp_http_is_key(given + strlen("Bearer "), key)) return 0;
  *why = key ? "the key is missing or wrong" : "the request is for another host";
  if (key) return MHD_HTTP_UNAUTHORIZED;
  return host && !is_for_loopback(host) ? MHD_HTTP_FORBIDDEN : 0;
}

static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **context) {
  const lp_http_texts *self = user;
  const lp_http_text *found = NULL;
  const char *why = NULL;
  lp_buf text = {0};
  (void)version, (void)data;
  if (!*context) { /* only the head has come */
    *context = user;
    return MHD_YES;
  }
  if (*size > 0) { /* a body, which no path takes */
    *size = 0;
    return MHD_YES;
  }
  for (size_t i = 0; i < self->options->count; i++)
    if (lp_streq(url, self->options->text[i].path)) found = &self->options->text[i];
  if (!found) return refuse(self, connection, MHD_HTTP_NOT_FOUND, "there is no such path");
  if (!lp_streq(method, MHD_HTTP_METHOD_GET))
    return refuse(self, connection, MHD_HTTP_METHOD_NOT_ALLOWED, "wanted GET");
  unsigned status = found->open ? 0 : refuses(self, connection, &why);
  if (status != 0) return refuse(self, connection, status, why);
  status = found->write(self->options->user, &text);
  return reply(self, connection, status, found->type, &text);
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

/* Signals stay with the threads of the program, which wait for them. */
static struct MHD_Daemon *start(lp_http_texts *self, const struct sockaddr_storage *address) {
  sigset_t all, before;
  unsigned flags = MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC;
  if (address->ss_family == AF_INET6) flags |= MHD_USE_DUAL_STACK;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  struct MHD_Daemon *daemon = self->http->start_daemon(flags, 0, NULL, NULL, handle, self, MHD_OPTION_SOCK_ADDR,
                                                       (const struct sockaddr *)address, MHD_OPTION_CONNECTION_LIMIT,
                                                       (unsigned)MOST_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                                                       (unsigned)IDLE_S, MHD_OPTION_END);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return daemon;
}

static lp_status open_server(lp_http_texts *self, char **host, int *port, lp_diag *diag) {
  struct sockaddr_storage address;
  const char *listen = self->options->listen;
  LP_TRY(lp_http_address_read(listen, LP_LOC_NONE, &address, host, diag));
  if (!lp_address_is_loopback(*host) && !self->options->key)
    return lp_error(diag, LP_LOC_NONE, "'%s' is not a loopback address, so a key is required", listen);
  LP_TRY(lp_http_library_load(&self->http, diag));
  self->daemon = start(self, &address);
  if (!self->daemon) return lp_error(diag, LP_LOC_NONE, "cannot listen on %s: %s", listen, strerror(errno));
  *port = lp_http_port(self->http, self->daemon);
  return *port != 0 ? LP_OK : lp_error(diag, LP_LOC_NONE, "cannot find the port of %s", listen);
}

lp_status lp_http_texts_open(const lp_http_texts_options *options, lp_http_texts **out, char **host, int *port,
                             lp_diag *diag) {
  lp_http_texts *self = lp_alloc(sizeof *self);
  *self = (lp_http_texts){.options = options};
  *host = NULL;
  lp_status status = open_server(self, host, port, diag);
  *out = status == LP_OK ? self : NULL;
  if (status != LP_OK) lp_http_texts_close(self);
  return status;
}

void lp_http_texts_close(lp_http_texts *self) {
  if (!self) return;
  if (self->daemon) self->http->stop_daemon(self->daemon);
  free(self);
}
