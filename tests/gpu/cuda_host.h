// Runs emitted CUDA kernels on the CPU, so that their logic is tested where there is no GPU: a block's threads are
// fibers that give way at barriers and warp shuffles; blocks run one after the other. kernels.cuh includes it in place
// of CUDA's headers (-DLP_CUDA_HOST='"cuda_host.h"'). A barrier that some threads of a block never reach ends the
// program with a message. With LP_CHECK every access to memory is checked for races: cuda_check.cpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <vector>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#define __global__
#define __device__
#define __forceinline__ inline
#ifdef LP_CHECK
#include "cuda_check.h"
#define __shared__ static __attribute__((section("lp_shared")))
#else
#define __shared__ static // blocks run one after the other
#endif

struct dim3 {
  unsigned x, y, z;
  explicit dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {
  }
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
inline uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}

static dim3 threadIdx, blockIdx;

typedef void *cudaStream_t;
enum cudaError_t { cudaSuccess };
inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
inline const char *cudaGetErrorString(cudaError_t) {
  return "no error";
}

// ---- numbers ------------------------------------------------------------------------------------------------------

inline float __uint_as_float(unsigned bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float to_float_f16(unsigned short half) {
  const unsigned sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31) return __uint_as_float(sign | 0x7f800000u | fraction << 13);
  if (exponent) return __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
  return sign ? -std::ldexp((float)fraction, -24) : std::ldexp((float)fraction, -24);
}
inline unsigned short from_float_f16(float x) {
  const unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u;
  if (std::isnan(x)) return (unsigned short)(sign | 0x7e00u);
  const float magnitude = std::fabs(x);
  if (magnitude >= 65520.0f) return (unsigned short)(sign | 0x7c00u);
  int exponent;
  std::frexp(magnitude, &exponent); // magnitude in [2^(exponent - 1), 2^exponent)
  const int step = exponent - 11 < -24 ? -24 : exponent - 11;
  const unsigned units = (unsigned)std::nearbyint(std::ldexp(magnitude, -step));
  const unsigned half = units < 1024 ? units : ((unsigned)(step + 24) << 10) + units;
  return (unsigned short)(sign | half);
}

// Two halves in a word: the product is rounded once, together with the sum.
inline unsigned short half_at(unsigned pair, int which) {
  return (unsigned short)(pair >> which * 16);
}
inline unsigned add_half(unsigned a, unsigned b, unsigned sum) {
  unsigned out = 0;
  for (int i = 0; i < 2; i++) {
    const double exact =
        (double)to_float_f16(half_at(a, i)) * to_float_f16(half_at(b, i)) + to_float_f16(half_at(sum, i));
    out |= (unsigned)from_float_f16((float)exact) << i * 16;
  }
  return out;
}
inline unsigned subtract_half(unsigned a, unsigned b) {
  unsigned out = 0;
  for (int i = 0; i < 2; i++)
    out |= (unsigned)from_float_f16(to_float_f16(half_at(a, i)) - to_float_f16(half_at(b, i))) << i * 16;
  return out;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selected) {
  const uint64_t bytes = (uint64_t)b << 32 | a;
  unsigned out = 0;
  for (int i = 0; i < 4; i++)
    out |= (unsigned)(bytes >> (selected >> i * 4 & 7) * 8 & 255) << i * 8;
  return out;
}
// The dot product of signed bytes.
inline unsigned add_dot(unsigned a, unsigned b, unsigned sum) {
  int total = (int)sum;
  for (int i = 0; i < 4; i++)
    total += (int)(signed char)(a >> i * 8) * (int)(signed char)(b >> i * 8);
  return (unsigned)total;
}

// ---- threads ------------------------------------------------------------------------------------------------------

namespace lp_cuda_host {

enum State { READY, AT_BLOCK, AT_WARP, AT_WARP_BARRIER, DONE };
enum { STACK = 128 << 10, MOST_THREADS = 1024, WARP = 32 };

// An asynchronous copy of 16 bytes to shared memory, carried out when it is waited for.
struct Copy {
  char *to;
  const void *from;
  bool there;
  unsigned batch;
};
enum { MOST_COPIES = 64 };

struct Fiber {
  State state;
  bool odd; // selects the next of the two rows of shuffled values
  unsigned copies, batches;
  Copy copy[MOST_COPIES];
#if defined(__x86_64__)
  void *stack_pointer;
#else
  ucontext_t context;
#endif
};

static std::vector<Fiber> fibers;
static std::vector<char> stacks;
static const std::function<void()> *body;
static unsigned current, count;
static float shuffled[2][MOST_THREADS];

[[noreturn]] inline void fail(const char *what) {
  fprintf(stderr, "cuda_host: block (%u, %u): %s\n", blockIdx.x, blockIdx.y, what);
  abort();
}

#if defined(__x86_64__)
extern "C" void lp_cuda_host_switch(void **save, void *load);
asm(".text\n.hidden lp_cuda_host_switch\n.globl lp_cuda_host_switch\n.type lp_cuda_host_switch,@function\n"
    "lp_cuda_host_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size lp_cuda_host_switch, .-lp_cuda_host_switch\n");
static void *scheduler;
inline void leave() {
  lp_cuda_host_switch(&fibers[current].stack_pointer, scheduler);
}
inline void enter() {
  lp_cuda_host_switch(&scheduler, fibers[current].stack_pointer);
}
#else
static ucontext_t scheduler;
inline void leave() {
  swapcontext(&fibers[current].context, &scheduler);
}
inline void enter() {
  swapcontext(&scheduler, &fibers[current].context);
}
#endif

static void thread_main() {
  (*body)();
  fibers[current].state = DONE;
  leave();
  fail("a thread went on behind its end");
}

inline void prepare(unsigned thread) {
  Fiber &fiber = fibers[thread];
  char *bottom = stacks.data() + (size_t)thread * STACK;
  fiber.state = READY;
  fiber.odd = false;
  fiber.copies = fiber.batches = 0;
#if defined(__x86_64__)
  void **top = (void **)((uintptr_t)(bottom + STACK - 64) & ~(uintptr_t)15);
  top[0] = (void *)thread_main;
  fiber.stack_pointer = top - 6;
#else
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = bottom;
  fiber.context.uc_stack.ss_size = STACK;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, thread_main, 0);
#endif
}

// Lets the threads [first, last) go on if all that are not done wait for the same.
inline bool release(unsigned first, unsigned last, State waiting) {
  bool any = false;
  for (unsigned i = first; i < last; i++) {
    if (fibers[i].state == DONE) continue;
    if (fibers[i].state != waiting) return false;
    any = true;
  }
  for (unsigned i = first; i < last; i++)
    if (fibers[i].state == waiting) fibers[i].state = READY;
#ifdef LP_CHECK
  if (any && waiting == AT_BLOCK) lp_check_barrier();
  if (any && waiting == AT_WARP_BARRIER) lp_check_warp_barrier(first / WARP);
#endif
  return any;
}

// Runs a thread until it waits or ends.
inline void run_thread() {
  threadIdx.x = current;
#ifdef LP_CHECK
  lp_check_thread((int)current);
  enter();
  lp_check_thread(-1);
#else
  enter();
#endif
}

inline void run_block() {
  unsigned left = count;
#ifdef LP_CHECK
  lp_check_block(blockIdx.x, blockIdx.y, blockIdx.z);
#endif
  for (unsigned i = 0; i < count; i++)
    prepare(i);
  while (left > 0) {
    bool moved = false;
    for (current = 0; current < count; current++) {
      if (fibers[current].state != READY) continue;
      run_thread();
      moved = true;
      left -= fibers[current].state == DONE;
    }
    for (unsigned i = 0; i < count; i += WARP) {
      moved |= release(i, i + WARP < count ? i + WARP : count, AT_WARP);
      moved |= release(i, i + WARP < count ? i + WARP : count, AT_WARP_BARRIER);
    }
    moved |= release(0, count, AT_BLOCK);
    if (!moved && left > 0) fail("some threads never reach the barrier that others wait at");
  }
}

inline void wait(State at) {
  fibers[current].state = at;
  leave();
}

} // namespace lp_cuda_host

inline void __syncthreads() {
  lp_cuda_host::wait(lp_cuda_host::AT_BLOCK);
}

inline void __syncwarp() {
  lp_cuda_host::wait(lp_cuda_host::AT_WARP_BARRIER);
}

inline float __shfl_sync(unsigned, float x, int lane) {
  using namespace lp_cuda_host;
  const unsigned own = current, other = own / WARP * WARP + (unsigned)lane % WARP;
  const bool row = fibers[own].odd;
  fibers[own].odd = !row;
  shuffled[row][own] = x;
  wait(AT_WARP);
  return shuffled[row][other < count ? other : own];
}
inline float __shfl_xor_sync(unsigned mask, float x, int apart) {
  return __shfl_sync(mask, x, (int)(lp_cuda_host::current % lp_cuda_host::WARP) ^ apart);
}

// ---- tensor cores, as kernels.cuh has them ------------------------------------------------------------------------

namespace lp_cuda_host {

struct Operands {
  float a[8], b[4];
};
static Operands operands[2][MOST_THREADS];
static const char *rows[2][MOST_THREADS];

inline float half_of(unsigned pair, int which, bool bf16) {
  const unsigned short bits = (unsigned short)(pair >> which * 16);
  return bf16 ? __uint_as_float((unsigned)bits << 16) : to_float_f16(bits);
}

inline void load(unsigned *part, const char *row, bool turned) {
  const unsigned own = current, first = own / WARP * WARP, lane = own % WARP;
  const bool odd = fibers[own].odd;
  fibers[own].odd = !odd;
  rows[odd][own] = row;
  wait(AT_WARP);
  for (unsigned i = 0; i < 4; i++) {
    unsigned short pair[2];
    for (unsigned k = 0; k < 2; k++) {
      const unsigned at = turned ? lane % 4 * 2 + k : lane / 4, column = turned ? lane / 4 : lane % 4 * 2 + k;
      memcpy(&pair[k], rows[odd][first + i * 8 + at] + column * 2, 2);
    }
    part[i] = (unsigned)pair[0] | (unsigned)pair[1] << 16;
  }
}

inline void multiply(float *sum, const unsigned *a, const unsigned *b, bool bf16) {
  const unsigned own = current, first = own / WARP * WARP, lane = own % WARP;
  const bool odd = fibers[own].odd;
  fibers[own].odd = !odd;
  for (int i = 0; i < 8; i++)
    operands[odd][own].a[i] = half_of(a[i / 2], i % 2, bf16);
  for (int i = 0; i < 4; i++)
    operands[odd][own].b[i] = half_of(b[i / 2], i % 2, bf16);
  wait(AT_WARP);
  // element (row, k) of `a` is with the lane row % 8 * 4 + k % 8 / 2, as its 4 * (k / 8) + 2 * (row / 8) + k % 2
  for (unsigned i = 0; i < 4; i++)
    for (unsigned k = 0; k < 16; k++) {
      const unsigned column = lane % 4 * 2 + i % 2, other = k % 8 / 2;
      sum[i] += operands[odd][first + lane / 4 * 4 + other].a[k / 8 * 4 + i / 2 * 2 + k % 2] *
                operands[odd][first + column * 4 + other].b[k / 8 * 2 + k % 2];
    }
}

} // namespace lp_cuda_host

typedef char *Shared;
inline Shared in_shared(uint4 *pointer) {
  return (char *)pointer;
}
inline void load_matrices(unsigned *part, Shared row) {
  lp_cuda_host::load(part, row, false);
}
inline void load_turned(unsigned *part, Shared row) {
  lp_cuda_host::load(part, row, true);
}
inline void multiply_f16(float *sum, const unsigned *a, const unsigned *b) {
  lp_cuda_host::multiply(sum, a, b, false);
}
inline void multiply_bf16(float *sum, const unsigned *a, const unsigned *b) {
  lp_cuda_host::multiply(sum, a, b, true);
}
inline void put_in(Shared to, uint4 part) {
  memcpy(to, &part, sizeof part);
}
inline void copy_in(Shared to, const void *from, bool there) {
  using namespace lp_cuda_host;
  Fiber &fiber = fibers[current];
  if (fiber.copies == MOST_COPIES) fail("more copies are under way than the emulator has room for");
  fiber.copy[fiber.copies++] = {to, from, there, fiber.batches};
#ifdef LP_CHECK
  lp_check_copy_begins(to, sizeof(uint4));
#endif
}
inline void copies_end() {
  lp_cuda_host::fibers[lp_cuda_host::current].batches++;
}
template <int left> inline void copies_wait() {
  using namespace lp_cuda_host;
  Fiber &fiber = fibers[current];
  unsigned kept = 0;
  for (unsigned i = 0; i < fiber.copies; i++) {
    const Copy &copy = fiber.copy[i];
    if (copy.batch + left >= fiber.batches) {
      fiber.copy[kept++] = copy;
      continue;
    }
#ifdef LP_CHECK
    lp_check_copy_ends(copy.to, sizeof(uint4));
#endif
    memset(copy.to, 0, sizeof(uint4));
    if (copy.there) memcpy(copy.to, copy.from, sizeof(uint4));
  }
  fiber.copies = kept;
}

// The GPU that the kernels are taken to be compiled for.
inline int lp_cuda_host_architecture() {
  const char *sm = getenv("LP_FAKE_CUDA_SM");
  return sm ? atoi(sm) : 80;
}

inline float to_tf32(float x) {
  return std::isfinite(x) ? __uint_as_float((__float_as_uint(x) + 0x1000) & ~0x1fffu) : x;
}
namespace lp_cuda_host {
static float left[2][MOST_THREADS][4], right[2][MOST_THREADS][2];
} // namespace lp_cuda_host
inline void multiply_tf32(float *sum, const float *a, const float *b) {
  using namespace lp_cuda_host;
  const unsigned own = current, warp = own / WARP * WARP, lane = own % WARP;
  const bool odd = fibers[own].odd;
  fibers[own].odd = !odd;
  for (int i = 0; i < 4; i++)
    left[odd][own][i] = __uint_as_float(__float_as_uint(a[i]) & ~0x1fffu);
  for (int i = 0; i < 2; i++)
    right[odd][own][i] = __uint_as_float(__float_as_uint(b[i]) & ~0x1fffu);
  wait(AT_WARP);
  for (unsigned i = 0; i < 4; i++)
    for (unsigned k = 0; k < 8; k++)
      sum[i] += left[odd][warp + lane / 4 * 4 + k % 4][k / 4 * 2 + i / 2] *
                right[odd][warp + (lane % 4 * 2 + i % 2) * 4 + k % 4][k / 4];
}

inline void lp_cuda_host_launch(dim3 grid, int threads, const std::function<void()> &kernel) {
  static std::mutex one;
  std::lock_guard<std::mutex> lock(one);
  using namespace lp_cuda_host;
  fibers.resize((size_t)threads);
  if (stacks.size() < (size_t)threads * STACK) stacks.resize((size_t)threads * STACK);
  count = (unsigned)threads;
  body = &kernel;
#ifdef LP_CHECK
  lp_check_ignore(0, fibers.data(), fibers.size() * sizeof(Fiber));
  lp_check_ignore(1, stacks.data(), stacks.size());
  lp_check_launch();
#endif
  for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
        run_block();
}
