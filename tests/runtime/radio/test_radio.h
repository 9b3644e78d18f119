/* The cases of the radio tests, one per file. */
#ifndef TEST_RADIO_H
#define TEST_RADIO_H

#include "runtime/radio/radio.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TCase *propagation_case(void);
TCase *network_case(void);
TCase *scheduler_case(void);

#endif
