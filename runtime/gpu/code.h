/* One side's code on a GPU: the struct that the files of runtime/gpu/ share. */
#pragma once

#include "base/map.h"
#include "base/poly.h"
#include "runtime/gpu/api.h"
#include "runtime/gpu/gpu.h"

#include <pthread.h>
#include <stdatomic.h>

struct lp_gpu {
  lp_arena *arena;
  char *file;
  lp_gpu_table table;
  const lp_gpu_api *api;
  lp_gpu_device *device;
  const lp_gpu_library *library; /* NULL: kernels do all products */
  atomic_bool library_used;
  lp_map *kernels;            /* name -> kernel */
  lp_map *weights;            /* "offset" -> memory, shared when first used */
  void *top;                  /* the kernel of lp_gpu_find_top, or NULL */
  const lp_collective *ranks; /* of which this is one's GPU; NULL: the half is not sharded */
  char *all_weights;          /* on the GPU, if it has its own memory */
  const char *weight_data;
  size_t weight_bytes;
  int32_t states;
  LP_VEC(const lp_poly *) moving; /* sizes that kernels read from memory (tables.c) */
  LP_VEC(int64_t) own;            /* buffers that belong to one sequence and that calls use which are not joint */
  pthread_mutex_t one;            /* guards `weights` */
};
