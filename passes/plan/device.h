/* The device's share of an answer: energy and cost besides its arithmetic (device.c). */
#pragma once

#include "passes/plan/plan.h"

/* Fills plan->device from the other figures of a request. */
void lp_plan_device_share(const lp_compile_request *request, lp_plan_result *plan);
/* Says which figure is missing where the device's energy or cost is unknown; NULL: both are known. */
const char *lp_plan_device_unknown(const lp_plan_result *plan);
