/* A link as it would be: a relay in the device's process between its connections and the worker, which delays, narrows
 * and cuts what passes. It works on the bytes of TCP connections, so that everything above is what runs on a real link,
 * TLS included. docs/protocol.md says what each figure does. */
#ifndef LP_LINK_EMULATOR_H
#define LP_LINK_EMULATOR_H

#include "runtime/link/link.h"
#include "runtime/runtime.h"

typedef struct lp_link_emulator lp_link_emulator;

/* Relays to HOST:PORT on a thread of its own. `shape` is copied. */
LP_MUST_USE lp_status lp_link_emulator_start(const char *address, const lp_link_shape *shape, lp_link_emulator **out,
                                             lp_diag *diag);
/* HOST:PORT to dial instead of the worker's; borrowed. */
const char *lp_link_emulator_address(const lp_link_emulator *emulator);
void lp_link_emulator_stop(lp_link_emulator *emulator); /* NULL is allowed */

#endif
