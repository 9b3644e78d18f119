/* --link of a run: what link to emulate. */
#ifndef LP_LINK_SHAPE_H
#define LP_LINK_SHAPE_H

#include "runtime/runtime.h"

/* "rtt=50ms,up=10Mbit/s,down=50Mbit/s,loss=1%,cut=2s/30s,seed=7". What is not named is not limited. */
LP_MUST_USE lp_status lp_link_shape_read(const char *text, lp_link_shape *out, lp_diag *diag);

#endif
