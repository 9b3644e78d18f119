/* The lengths of a specification: a table, the rows of a trace, or two distributions. */
#pragma once

#include "base/yaml/yaml.h"
#include "fleet/fleet.h"

/* Reads the value of `lengths`. `*rate`: that of a trace, requests per s; 0 where there is none. */
LP_MUST_USE lp_status lp_fleet_lengths_read(lp_yaml *yaml, const lp_yaml_node *node, lp_fleet_spec *spec, double *rate);
