/* Streams of random numbers, private to runtime/radio/. */
#ifndef LP_RADIO_RANDOM_H
#define LP_RADIO_RANDOM_H

#include <gsl/gsl_rng.h>

#include "base/base.h"

/* The stream of one purpose under a seed. Draws from it do not change other streams. Release with gsl_rng_free. */
gsl_rng *lp_radio_stream(uint64_t seed, const char *purpose, int32_t index);

#endif
