/* The link of a plan: one of hwmodels or of runtime/radio. */
#pragma once

#include "hwmodels/hwmodels.h"

/* Loads a link by a text of lp_link_load, or the users of a radio profile of runtime/radio ("uma-3gpp,rtt=20ms"), which
 * are the states of a link that varies. */
LP_MUST_USE lp_status lp_tool_load_link(const char *text, lp_link **out, lp_diag *diag);
