/* The cases of the simulator's tests, one per file. */
#ifndef TEST_SIMULATE_H
#define TEST_SIMULATE_H

#include "runtime/simulate/simulate.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TCase *queues_case(void);
TCase *scenario_case(void);
TCase *policies_case(void);

/* Of text with the plain policies; an error fails the test. */
lp_sim_scenario *scenario_of(const char *text);
/* Answers of n tokens take n ms on either side. */
void make_unit_service(lp_sim_scenario *scenario);

#endif
