// Kernels with one fault each, and the same without it: cuda_check.cpp has to find the fault, and no other.
//   faults NUMBER   runs that kernel
#include LP_CUDA_HOST

namespace {

enum { THREADS = 64, BLOCKS = 4 };

// The element of the result that this thread has.
float &own(float *y) {
  return y[blockIdx.x * THREADS + threadIdx.x];
}

// Each thread reads its neighbour's value.
void neighbours(float *y, bool barrier_before_reads, bool barrier_before_writes) {
  __shared__ float tile[THREADS];
  for (int turn = 0; turn < 2; turn++) {
    tile[threadIdx.x] = (float)turn;
    if (barrier_before_reads) __syncthreads();
    own(y) = tile[(threadIdx.x + 1) % THREADS];
    if (barrier_before_writes) __syncthreads();
  }
}

// All threads, or one, write the same element.
void one_element(float *y, bool all) {
  __shared__ float total[1];
  if (all || threadIdx.x == 0) total[0] = 1;
  __syncthreads();
  own(y) = total[0];
}

// Half of the tile is never written.
void tile_half_written(float *y, unsigned written) {
  __shared__ float tile[THREADS];
  if (threadIdx.x < written) tile[threadIdx.x] = 1;
  __syncthreads();
  own(y) = tile[threadIdx.x];
}

// Blocks write `apart` elements apart, each THREADS of them.
void blocks_write(float *y, unsigned apart) {
  y[blockIdx.x * apart + threadIdx.x] = 1;
}

// A block reads what the one before it writes.
void blocks_read(float *y, unsigned back) {
  own(y) = blockIdx.x ? y[(blockIdx.x - back) * THREADS + threadIdx.x] : 0;
}

// Thread 2 reads what thread 1 writes.
void later_write(float *y, bool barrier) {
  __shared__ float tile[THREADS];
  tile[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x == 1) tile[1] = 1;
  if (barrier) __syncthreads();
  if (threadIdx.x == 2) own(y) = tile[1];
}

// A copy of the next tile is under way while this one is read.
void copies(float *y, const float *x, bool waits, bool barrier_before_copies) {
  __shared__ uint4 tile[2][THREADS];
  copy_in((Shared)&tile[0][threadIdx.x], x + threadIdx.x * 4, true);
  copies_end();
  for (unsigned step = 0; step < 4; step++) {
    if (step < 3) copy_in((Shared)&tile[(step + 1) % 2][threadIdx.x], x + threadIdx.x * 4, true);
    copies_end();
    waits ? copies_wait<1>() : copies_wait<2>();
    __syncthreads();
    own(y) = __uint_as_float(tile[step % 2][(threadIdx.x + 1) % THREADS].x);
    if (barrier_before_copies) __syncthreads();
  }
}

} // namespace

int main(int argc, char **argv) {
  std::vector<float> to(BLOCKS * THREADS), from(THREADS * 4);
  float *y = to.data(), *x = from.data();
  const std::function<void()> kernels[] = {
      [=] { neighbours(y, true, true); },
      [=] { neighbours(y, false, true); },
      [=] { neighbours(y, true, false); },
      [=] { one_element(y, false); },
      [=] { one_element(y, true); },
      [=] { tile_half_written(y, THREADS); },
      [=] { tile_half_written(y, THREADS / 2); },
      [=] { blocks_write(y, THREADS); },
      [=] { blocks_write(y, THREADS / 2); },
      [=] { blocks_read(y, 0); },
      [=] { blocks_read(y, 1); },
      [=] { copies(y, x, true, true); },
      [=] { copies(y, x, false, true); },
      [=] { copies(y, x, true, false); },
      [=] { later_write(y, false); },
  };
  const size_t which = argc > 1 ? (size_t)atoi(argv[1]) : SIZE_MAX;
  if (which >= sizeof kernels / sizeof *kernels) return 2;
  lp_cuda_host_launch(dim3(BLOCKS), THREADS, kernels[which]);
  return 0;
}
