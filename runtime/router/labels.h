/* How a language model's first token names a route. */
#ifndef LP_ROUTER_LABELS_H
#define LP_ROUTER_LABELS_H

#include "runtime/router/router.h"

enum { LP_LABEL_SPELLINGS = 6 };
/* The n-th spelling of a route's name: "edge", " edge", "Edge", " Edge", "EDGE", " EDGE". Returns `out`. */
const char *lp_label_spelling(lp_route route, int n, char out[16]);

/* Which offered route a token's text begins: its name, or a beginning of it that no other offered route shares;
 * LP_ROUTE_COUNT when none. Blanks before it and case do not matter. */
lp_route lp_label_of_token(const char *text, unsigned offered);

/* Probabilities of Eq. (6) from the mass of each route; an error when no offered route has any. */
LP_MUST_USE lp_status lp_label_normalise(unsigned offered, double probability[LP_ROUTE_COUNT], lp_diag *diag);

#endif
