/* What proof/ needs to confirm a fleet's bound: the laws of the machines, and the prices. */
#pragma once

#include "base/json/writer.h"
#include "fleet/fleet.h"

/* Puts the member "certificate", with numbers that read back as they are. */
void lp_fleet_certificate_put(const lp_fleet_spec *spec, const lp_fleet_plan *plan, lp_json_writer *out);
