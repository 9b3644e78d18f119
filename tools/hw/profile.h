/* The profile of this machine at the first use of `host`. */
#pragma once

#include "hwmodels/hwmodels.h"

/* Measures this machine's operators in some seconds and keeps the result for lp_hw_host, if one of the machines (NULL:
 * none) is `host` and has no profile yet; a note says so. Processes that ask at the same time wait for the first. Where
 * nothing can be kept it measures nothing; a note says this, and also that a measurement failed. When LLMPART_HOST is
 * set it does nothing (first_use.c). */
LP_MUST_USE lp_status hw_profile_first_use(const char *device, const char *cloud, lp_diag *diag);

/* Measures the operators as `hw profile --quick` does; *kept tells whether the result could be kept (profile.c). */
LP_MUST_USE lp_status hw_profile_quickly(bool *kept, lp_diag *diag);
