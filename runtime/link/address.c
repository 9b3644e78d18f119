/* Parsing, look-up and printing of addresses (address.h). */
#include "runtime/link/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/units.h"
#include "runtime/link/sockaddr.h"

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

static lp_sockaddr unix_address(const char *path) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  lp_sockaddr made = {.size = sizeof at};
  memcpy(at.sun_path, path, strnlen(path, sizeof at.sun_path - 1));
  memcpy(&made.at, &at, sizeof at);
  return made;
}

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
  if (problem != 0) {
    *why = gai_strerror(problem);
    return 0;
  }
  for (const struct addrinfo *at = found; at && count < most; at = at->ai_next) {
    memcpy(&out[count].at, at->ai_addr, at->ai_addrlen);
    out[count++].size = at->ai_addrlen;
  }
  freeaddrinfo(found);
  *why = "the name has no address";
  return count;
}

size_t lp_address_resolve(const char *address, bool listens, lp_sockaddr *out, size_t most, const char **why) {
  const char *path = lp_address_unix_path(address);
  char *host = NULL;
  int port = 0;
  *why = "no such address";
  if (lp_address_split(address, &host, &port, NULL) != LP_OK) return 0;
  size_t count = path ? 1 : look_up(host, port, listens, out, most, why);
  if (path) out[0] = unix_address(path);
  free(host);
  return count;
}

void lp_sockaddr_print(const lp_sockaddr *from, char out[64]) {
  const struct sockaddr_in *in = (const void *)&from->at;
  const struct sockaddr_in6 *in6 = (const void *)&from->at;
  char host[INET6_ADDRSTRLEN] = "";
  snprintf(out, 64, "a process of this machine");
  if (from->at.ss_family == AF_INET && inet_ntop(AF_INET, &in->sin_addr, host, sizeof host) != NULL)
    snprintf(out, 64, "%s:%d", host, ntohs(in->sin_port));
  if (from->at.ss_family == AF_INET6 && inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host) != NULL)
    snprintf(out, 64, "[%s]:%d", host, ntohs(in6->sin6_port));
}

int lp_sockaddr_port(const lp_sockaddr *from) {
  if (from->at.ss_family == AF_INET) return ntohs(((const struct sockaddr_in *)(const void *)&from->at)->sin_port);
  if (from->at.ss_family == AF_INET6) return ntohs(((const struct sockaddr_in6 *)(const void *)&from->at)->sin6_port);
  return 0;
}
