/* A monotonic clock, and flags that a signal or another thread sets. */
#pragma once

#include <stdbool.h>

double lp_now_ms(void);        /* ms since some fixed moment; monotonic; any thread */
double lp_thread_cpu_ms(void); /* ms that the calling thread has run on a core */

/* A flag that another thread or a signal handler sets: a `volatile sig_atomic_t`, which is int. No memory ordering. */
/* Clears the flag, and tells whether it was set. */
static inline bool lp_flag_take(volatile int *flag) {
  return __atomic_exchange_n(flag, 0, __ATOMIC_SEQ_CST) != 0;
}
static inline bool lp_flag_get(const volatile int *flag) {
  return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}
static inline void lp_flag_set(volatile int *flag) {
  __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
}
