/* The routes and their names. */
#include "runtime/router/router.h"
#include "runtime/service/service.h"

/* A route has the number and the name of its site. */
_Static_assert((int)LP_ROUTE_EDGE == LP_SITE_EDGE && (int)LP_ROUTE_CLOUD == LP_SITE_CLOUD &&
                   (int)LP_ROUTE_SPLIT == LP_SITE_SPLIT,
               "routes are sites");

const char *lp_route_name(lp_route route) {
  return lp_site_names[route];
}

bool lp_route_parse(const char *name, lp_route *out) {
  for (lp_route i = 0; i < LP_ROUTE_COUNT; i++) {
    if (!lp_streq(name, lp_route_name(i))) continue;
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
