/* Scenarios for the tests of the simulator. */
#ifndef LP_TESTS_SCENARIOS_H
#define LP_TESTS_SCENARIOS_H

#include "runtime/simulate/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

/* Loads a scenario from text, with the plain policies; an error fails the test. */
lp_sim_scenario *scenario_of(const char *text);
/* Answers of n tokens take n ms on either side. */
void make_unit_service(lp_sim_scenario *scenario);

#endif
