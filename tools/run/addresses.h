/* Addresses of workers on the command line: HOST:PORT or unix:PATH, after the name of a place and "=" where a bundle
 * has more than two. */
#ifndef LP_TOOLS_RUN_ADDRESSES_H
#define LP_TOOLS_RUN_ADDRESSES_H

#include "runtime/runtime.h"
#include "tools/tools.h"

typedef struct {
  const char *only; /* the one without a name; NULL: none */
  lp_place_address place[LP_PLACES_MAX];
  size_t count;
} lp_run_addresses;

/* Reads the values of `option`, of which one may lack the name of a place if it is the only one and `named` is false.
 * Returns LP_USAGE when they are no addresses. The caller releases `out` with lp_run_addresses_free, also after a
 * failure. */
LP_MUST_USE lp_status lp_run_addresses_read(const lp_texts *values, const char *option, bool named,
                                            lp_run_addresses *out, lp_diag *diag);
void lp_run_addresses_free(lp_run_addresses *addresses);

#endif
