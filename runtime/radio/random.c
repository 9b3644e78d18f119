/* Streams of random numbers: a generator for each purpose. */
#include "runtime/radio/random.h"

gsl_rng *lp_radio_stream(uint64_t seed, const char *purpose, int32_t index) {
  gsl_rng *stream = gsl_rng_alloc(gsl_rng_mt19937);
  uint64_t mixed = lp_hash_bytes(purpose, strlen(purpose), seed);
  mixed = lp_hash_bytes(&index, sizeof index, mixed);
  gsl_rng_set(stream, (unsigned long)(mixed ^ mixed >> 32));
  return stream;
}
