/* Loads libmicrohttpd, and reads addresses and headers: see library.h. */
#include "runtime/http/library.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>

#include "base/library.h"
#include "runtime/link/address.h"

lp_status lp_http_library_load(const lp_http_library **out, lp_diag *diag) {
  static lp_http_library library;
  const lp_library_function functions[] = {{"MHD_start_daemon", &library.start_daemon},
                                           {"MHD_get_daemon_info", &library.get_daemon_info},
                                           {"MHD_quiesce_daemon", &library.quiesce_daemon},
                                           {"MHD_stop_daemon", &library.stop_daemon},
                                           {"MHD_get_connection_info", &library.get_connection_info},
                                           {"MHD_lookup_connection_value", &library.lookup_connection_value},
                                           {"MHD_get_connection_values", &library.get_connection_values},
                                           {"MHD_create_response_from_buffer", &library.create_response_from_buffer},
                                           {"MHD_create_response_from_pipe", &library.create_response_from_pipe},
                                           {"MHD_add_response_header", &library.add_response_header},
                                           {"MHD_queue_response", &library.queue_response},
                                           {"MHD_destroy_response", &library.destroy_response}};
  *out = &library;
  if (lp_library_load("libmicrohttpd.so.12", functions, LP_COUNT(functions))) return LP_OK;
  *out = NULL;
  lp_status absent = lp_error(diag, LP_LOC_NONE, "there is no libmicrohttpd.so.12 to serve with");
  lp_note(diag, LP_LOC_NONE, "install it (Debian: libmicrohttpd12)");
  return absent;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static bool read_host(const char *host, int port, struct sockaddr_storage *out) {
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  size_t length = strlen(host);
  if (length < 2 || host[0] != '[' || host[length - 1] != ']') {
    bool good = inet_pton(AF_INET, lp_streq(host, "localhost") ? "127.0.0.1" : host, &four.sin_addr) == 1;
    memcpy(out, &four, sizeof four);
    return good;
  }
  lp_buf inner = {0};
  lp_buf_append(&inner, host + 1, length - 2);
  bool good = inet_pton(AF_INET6, lp_buf_text(&inner), &six.sin6_addr) == 1;
  lp_buf_free(&inner);
  memcpy(out, &six, sizeof six);
  return good;
}

lp_status lp_http_address_read(const char *listen, lp_loc loc, struct sockaddr_storage *out, char **host,
                               lp_diag *diag) {
  int port = 0;
  lp_diag *quiet = lp_diag_create();
  lp_status status = lp_address_split(listen, host, &port, quiet);
  lp_diag_free(quiet);
  *out = (struct sockaddr_storage){0};
  if (status == LP_OK && read_host(*host, port, out)) return LP_OK;
  return lp_error(diag, loc, "'%s' is no address: wanted HOST:PORT with a number, as 127.0.0.1:8080 or [::]:8080",
                  listen);
}

int lp_http_port(const lp_http_library *http, struct MHD_Daemon *daemon) {
  return http->get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

/* ---- headers ----------------------------------------------------------------------------------------------------- */

size_t lp_http_host_length(const char *host) {
  const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
  return end ? (size_t)(end - host) + 1 : strcspn(host, ":");
}

bool lp_http_is_loopback(const char *name) {
  struct in_addr address;
  if (strcasecmp(name, "localhost") == 0 || lp_streq(name, "[::1]")) return true;
  return inet_pton(AF_INET, name, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

bool lp_http_is_key(const char *given, const char *key) {
  size_t size = strlen(given), wanted = strlen(key);
  unsigned differs = size != wanted;
  for (size_t i = 0; i < size && wanted > 0; i++)
    differs |= (unsigned)(given[i] ^ key[i % wanted]);
  return differs == 0;
}
