/* cuda: prints a launch list as CUDA C++. The files of backend/cuda/ share these declarations. */
#pragma once

#include "backend/gpu/launches.h"

/* cloud.cu: launchers, layers, segments (host.c) and layouts (layout.c). */
void cuda_print_host(const gpu_launch_list *list, const gpu_dialect *dialect, lp_buf *out);
void cuda_print_layouts(const gpu_launch_list *list, lp_buf *out);
