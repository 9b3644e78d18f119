/* The lengths of a specification: a table, the rows of a trace, or two distributions. */
#pragma once

#include "base/yaml/yaml.h"
#include "fleet/fleet.h"

/* What a trace says of the load, in requests per s. */
typedef struct {
  double rate;               /* 0: there is no trace, or it takes no time */
  double hour[LP_SIM_HOURS]; /* by the hour of the day; all 0: it does not take a day */
} lp_fleet_traced;

/* Reads the value of `lengths`. */
LP_MUST_USE lp_status lp_fleet_lengths_read(lp_yaml *yaml, const lp_yaml_node *node, lp_fleet_spec *spec,
                                            lp_fleet_traced *traced);
