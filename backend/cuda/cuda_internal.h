/* cuda: the GPU plan as CUDA C++. What the files of backend/cuda/ share. */
#ifndef LP_CUDA_INTERNAL_H
#define LP_CUDA_INTERNAL_H

#include "backend/gpu/gpu_internal.h"

extern const gpu_dialect cuda_dialect;

/* cloud.cu: launchers, layers, segments and layouts (host.c, layout.c). */
void cuda_print_host(const gpu_plan *plan, lp_buf *out);
void cuda_print_layouts(const gpu_plan *plan, lp_buf *out);

/* The architecture that --march names. */
LP_MUST_USE lp_status cuda_march(const char *march, int *sm, lp_diag *diag);

#endif
