/* Parsing, look-up and printing of addresses (address.h). */
#include "runtime/link/address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "base/units.h"
#include "runtime/link/socket.h"

static const char unix_prefix[] = "unix:";

const char *lp_address_unix_path(const char *address) {
  return lp_has_prefix(address, unix_prefix) ? address + strlen(unix_prefix) : NULL;
}

static lp_status check_path(const char *path, lp_diag *diag) {
  size_t most = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
  if (path[0] != '\0' && strlen(path) <= most) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "'unix:%.200s' is no address: the path of a Unix socket has 1 to %zu bytes", path,
                  most);
}

lp_status lp_address_split(const char *address, char **host, int *port, lp_diag *diag) {
  const char *colon = strrchr(address, ':'), *path = lp_address_unix_path(address);
  int64_t number = 0;
  *host = NULL;
  *port = 0;
  if (path) {
    LP_TRY(check_path(path, diag));
    *host = lp_strdup(address);
    return LP_OK;
  }
  if (!colon || colon == address || strchr(address, '/') ||
      lp_parse_i64(colon + 1, 0, 65535, &number, NULL, LP_LOC_NONE) != LP_OK)
    return lp_error(diag, LP_LOC_NONE, "'%.200s' is no address: wanted HOST:PORT or unix:PATH", address);
  *port = (int)number;
  *host = lp_strdup(address);
  (*host)[colon - address] = '\0';
  return LP_OK;
}

bool lp_address_is_loopback(const char *host) {
  if (lp_address_unix_path(host) || lp_streq(host, "localhost") || lp_streq(host, "[::1]")) return true;
  unsigned part[4];
  char rest;
  if (sscanf(host, "%3u.%3u.%3u.%3u%c", &part[0], &part[1], &part[2], &part[3], &rest) != 4) return false;
  return part[0] == 127 && part[1] < 256 && part[2] < 256 && part[3] < 256;
}

/* ---- socket addresses -------------------------------------------------------------------------------------------- */

static size_t look_up(char *host, int port, bool listens, lp_sockaddr *out, size_t most, const char **why) {
  char service[16];
  snprintf(service, sizeof service, "%d", port);
  size_t length = strlen(host), count = 0;
  if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
    host[length - 1] = '\0';
    host++;
  }
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = listens ? AI_PASSIVE : 0}, *found = NULL;
  int problem = getaddrinfo(listens && lp_streq(host, "*") ? NULL : host, service, &hints, &found);
  *why = problem != 0 ? gai_strerror(problem) : "the name has no address";
  for (const struct addrinfo *at = found; at && count < most; at = at->ai_next) {
    memcpy(&out[count].at, at->ai_addr, at->ai_addrlen);
    out[count++].size = at->ai_addrlen;
  }
  if (found) freeaddrinfo(found);
  return count;
}

size_t lp_address_resolve(const char *address, bool listens, lp_sockaddr *out, size_t most, const char **why) {
  const char *path = lp_address_unix_path(address);
  char *host = NULL;
  int port = 0;
  *why = "no such address";
  if (lp_address_split(address, &host, &port, NULL) != LP_OK) return 0;
  size_t count = path ? 1 : look_up(host, port, listens, out, most, why);
  free(host);
  if (!path) return count;
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  memcpy(at.sun_path, path, strlen(path)); /* lp_address_split has checked its length */
  memcpy(&out->at, &at, sizeof at);
  out->size = sizeof at;
  return 1;
}

void lp_sockaddr_print(const lp_sockaddr *from, char out[64]) {
  char host[48], port[8];
  bool six = from->at.ss_family == AF_INET6;
  snprintf(out, 64, "a process of this machine");
  if (from->at.ss_family != AF_UNIX && getnameinfo((const struct sockaddr *)&from->at, from->size, host, sizeof host,
                                                   port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) == 0)
    snprintf(out, 64, six ? "[%s]:%s" : "%s:%s", host, port);
}

uint64_t lp_address_host(const struct sockaddr *at) {
  struct sockaddr_in four;
  struct sockaddr_in6 six;
  uint64_t host = at->sa_family;
  if (at->sa_family == AF_INET) {
    memcpy(&four, at, sizeof four);
    host = lp_hash_bytes(&four.sin_addr, sizeof four.sin_addr, AF_INET);
  } else if (at->sa_family == AF_INET6) {
    memcpy(&six, at, sizeof six);
    host = lp_hash_bytes(&six.sin6_addr, sizeof six.sin6_addr / 2, AF_INET6);
  }
  return host != 0 ? host : 1;
}
