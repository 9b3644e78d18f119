/* The names of routes as first tokens of a language model. */
#pragma once

#include "runtime/router/router.h"

enum { LP_LABEL_SPELLINGS = 6 };
/* The n-th spelling of a route's name: "edge", " edge", "Edge", " Edge", "EDGE", " EDGE". Returns `out`. */
const char *lp_label_spelling(lp_route route, int n, char out[16]);

/* Finds the only offered route with a name that begins with the token's text; LP_ROUTE_COUNT: there is none, or there
 * are several. Ignores case and leading blanks. */
lp_route lp_label_of_token(const char *text, unsigned offered);

/* Computes the probabilities of Eq. (6) from the mass of each route. Fails when no offered route has any. */
LP_MUST_USE lp_status lp_label_normalise(unsigned offered, double probability[LP_ROUTE_COUNT], lp_diag *diag);
