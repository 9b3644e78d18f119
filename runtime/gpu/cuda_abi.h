/* A struct and constants of CUDA's driver, so that a build needs nothing of CUDA:
 * https://docs.nvidia.com/cuda/cuda-driver-api/. The test gpu-nccl compares them with NVIDIA's header if that is
 * installed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
  LP_CUDA_ERROR_NOT_READY = 600,
  LP_CUDA_MEMORY_DEVICE = 2 /* CUmemorytype */
};

/* CUDA_MEMCPY2D_v2: `height` rows of `width` bytes, which begin every pitch. */
typedef struct {
  size_t from_x, from_y;
  int from_kind;
  const void *from_host;
  uint64_t from;
  void *from_array;
  size_t from_pitch;
  size_t to_x, to_y;
  int to_kind;
  void *to_host;
  uint64_t to;
  void *to_array;
  size_t to_pitch;
  size_t width, height;
} lp_cuda_copy_2d;
