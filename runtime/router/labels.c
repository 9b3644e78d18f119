#include "runtime/router/labels.h"

#include <ctype.h>
#include <math.h>
#include <strings.h>

const char *lp_label_spelling(lp_route route, int n, char out[16]) {
  (void)snprintf(out, 16, "%s%s", n % 2 == 1 ? " " : "", lp_route_name(route));
  char *first = out + n % 2;
  size_t upper = n < 2 ? 0 : n < 4 ? 1 : strlen(first);
  for (size_t i = 0; i < upper; i++)
    first[i] = (char)toupper((unsigned char)first[i]);
  return out;
}

lp_route lp_label_of_token(const char *text, unsigned offered) {
  while (*text == ' ')
    text++;
  size_t size = strcspn(text, " .,\n");
  lp_route found = LP_ROUTE_COUNT;
  for (lp_route route = 0; size > 0 && route < LP_ROUTE_COUNT; route++) {
    const char *name = lp_route_name(route);
    if (!lp_route_offered(offered, route) || size > strlen(name) || strncasecmp(text, name, size) != 0) continue;
    if (found != LP_ROUTE_COUNT) return LP_ROUTE_COUNT;
    found = route;
  }
  return found;
}

lp_status lp_label_normalise(unsigned offered, double probability[LP_ROUTE_COUNT], lp_diag *diag) {
  double sum = 0;
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    if (!lp_route_offered(offered, route)) probability[route] = 0;
    sum += probability[route];
  }
  if (!(sum > 0) || isinf(sum)) return lp_error(diag, (lp_loc){0}, "the model's answer names none of the routes");
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++)
    probability[route] /= sum;
  return LP_OK;
}
