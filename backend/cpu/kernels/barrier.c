/* The barrier between operators: sense-reversing, one cache line for arrivals and one for the phase. */
#include "backend/cpu/kernels/vector.h"

int sched_yield(void); /* the runtime answers it with a short sleep (lp_give_way in base/cores.h) */

enum { SPINS = 2500 }; /* about 50 us */

INLINE void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

/* Not inlined, so that each call site holds only the arrival. */
static __attribute__((noinline)) void wait_phase(const int32_t *phase, int32_t old) {
  for (int64_t i = 0; __atomic_load_n(phase, __ATOMIC_ACQUIRE) == old; i++)
    if (i < SPINS)
      relax();
    else
      sched_yield();
}

KERNEL void lpk_barrier(lp_barrier *barrier, int64_t threads) {
  if (threads == 1) return;
  int32_t phase = __atomic_load_n(&barrier->phase, __ATOMIC_RELAXED);
  if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == (int32_t)threads) {
    __atomic_store_n(&barrier->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&barrier->phase, (int32_t)((uint32_t)phase + 1), __ATOMIC_RELEASE);
  } else {
    wait_phase(&barrier->phase, phase);
  }
}
