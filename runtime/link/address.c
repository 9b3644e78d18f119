/* HOST:PORT. */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "runtime/link/link.h"

lp_status lp_address_split(const char *address, char **host, int *port, lp_diag *diag) {
  const char *colon = strrchr(address, ':');
  int64_t number = 0;
  *host = NULL;
  if (colon == NULL || colon == address || strchr(address, '/') != NULL ||
      lp_parse_i64(colon + 1, 0, 65535, &number, NULL, LP_LOC_NONE) != LP_OK)
    return lp_error(diag, LP_LOC_NONE, "'%.200s' is no address: wanted HOST:PORT", address);
  *port = (int)number;
  *host = lp_strdup(address);
  (*host)[colon - address] = '\0';
  return LP_OK;
}

bool lp_address_is_loopback(const char *host) {
  if (lp_streq(host, "localhost") || lp_streq(host, "[::1]")) return true;
  unsigned part[4];
  char rest;
  if (sscanf(host, "%3u.%3u.%3u.%3u%c", &part[0], &part[1], &part[2], &part[3], &rest) != 4) return false;
  return part[0] == 127 && part[1] < 256 && part[2] < 256 && part[3] < 256;
}
