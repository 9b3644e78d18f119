/* The tables of the backends. backend.c lists them. */
#pragma once

#include "backend/backend.h"

extern const lp_backend lp_backend_cpu;
extern const lp_backend lp_backend_cuda;
extern const lp_backend lp_backend_null;
extern const lp_backend lp_backend_opencl;
