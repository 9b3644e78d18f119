/* What the folders of backend/ share: the tables that backend.c lists. */
#ifndef LP_BACKEND_INTERNAL_H
#define LP_BACKEND_INTERNAL_H

#include "backend/backend.h"

extern const lp_backend lp_backend_cpu;
extern const lp_backend lp_backend_null;

#endif
