/* Random numbers as a pure function of their index. There is no state, so any number can be drawn again, in any order,
 * on any machine. Source: the finalizer of splitmix64 (Steele et al., "Fast splittable pseudorandom number generators",
 * 2014). */
#pragma once

#include <stdint.h>

static inline uint64_t lp_random_mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static inline uint64_t lp_random_bits(uint64_t seed, uint64_t sequence, uint64_t position) {
  const uint64_t step = UINT64_C(0x9E3779B97F4A7C15);
  return lp_random_mix(lp_random_mix(lp_random_mix(seed + step) + sequence + step) + position + step);
}

/* Draws a number in [0, 1) from 53 random bits. */
static inline double lp_random_uniform(uint64_t seed, uint64_t sequence, uint64_t position) {
  return (double)(lp_random_bits(seed, sequence, position) >> 11) * 0x1p-53;
}
