/* Addresses of workers on the command line: HOST:PORT or unix:PATH, after the name of a place and "=" where a bundle
 * has more than two. */
#pragma once

#include "runtime/runtime.h"
#include "tools/tools.h"

/* Reads the values of `option`, of which one may lack the name of a place if it is the only one and `named` is false.
 * The texts of `out` are the arena's. Returns LP_USAGE when they are no addresses. */
LP_MUST_USE lp_status lp_run_addresses_read(const lp_texts *values, const char *option, bool named, lp_arena *arena,
                                            lp_place_addresses *out, lp_diag *diag);
