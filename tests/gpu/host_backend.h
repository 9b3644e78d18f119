/* The CUDA backend for tests without a GPU: its source is compiled for the CPU against cuda_host.h. */
#ifndef LP_TEST_GPU_HOST_BACKEND_H
#define LP_TEST_GPU_HOST_BACKEND_H

#include "backend/backend.h"

/* Named "cuda"; emits LP_EMIT_SHARED by way of the C++ compiler that CMake found. */
lp_backend gpu_host_backend(void);

#endif
