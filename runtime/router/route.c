/* The routes and their names. */
#include <string.h>

#include "runtime/router/router.h"

static const char *const names[LP_ROUTE_COUNT] = {"edge", "cloud", "split"};

const char *lp_route_name(lp_route route) {
  return names[route];
}

bool lp_route_parse(const char *name, lp_route *out) {
  for (lp_route i = 0; i < LP_ROUTE_COUNT; i++) {
    if (strcmp(name, names[i]) != 0) continue;
    *out = i;
    return true;
  }
  return false;
}

bool lp_route_offered(unsigned offered, lp_route route) {
  return (offered >> route & 1u) != 0;
}

const char *lp_decision_source_name(lp_decision_source source) {
  static const char *const sources[] = {"only", "model", "cache", "explore", "rule", "fallback"};
  return sources[source];
}
