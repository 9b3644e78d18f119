/* Emulates a link: a relay in the device's process, between its connections and the worker, delays bytes, limits their
 * rate and cuts connections. It works below TLS on the bytes of TCP connections, so that all code above is the code
 * that runs on a real link. docs/protocol.md describes the figures. */
#pragma once

#include "runtime/link/link.h"
#include "runtime/runtime.h"

typedef struct lp_link_emulator lp_link_emulator;

/* Relays to HOST:PORT on a thread of its own. `shape` is copied. */
LP_MUST_USE lp_status lp_link_emulator_start(const char *address, const lp_link_shape *shape, lp_link_emulator **out,
                                             lp_diag *diag);
/* The HOST:PORT to connect to instead of the worker's; borrowed. */
const char *lp_link_emulator_address(const lp_link_emulator *emulator);
void lp_link_emulator_stop(lp_link_emulator *emulator); /* NULL is allowed */
