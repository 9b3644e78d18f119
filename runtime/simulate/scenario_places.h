/* The places of a scenario's file: the parts of scenario.c that read `edge`, `cloud` and `split`. */
#pragma once

#include "base/yaml/yaml.h"
#include "runtime/simulate/simulate.h"

/* Reads one place; `out` keeps what the file leaves out. */
LP_MUST_USE lp_status lp_sim_place_read(lp_yaml *yaml, const lp_yaml_node *node, lp_site site, lp_sim_station *out);
