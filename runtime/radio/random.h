/* Streams of random numbers, private to runtime/radio/. */
#pragma once

#include <gsl/gsl_rng.h>

#include "base/base.h"

/* The stream of one purpose under a seed. Draws from it do not change other streams. Release with gsl_rng_free. */
gsl_rng *lp_radio_stream(uint64_t seed, const char *purpose, int32_t index);
