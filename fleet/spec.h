/* What the readers of a specification share. Private to fleet/. */
#pragma once

#include "base/yaml/yaml.h"
#include "fleet/fleet.h"
#include "passes/plan/sweep/sweep.h"

typedef struct {
  lp_fleet_spec *spec;
  lp_fleet_link_loader *load_link;
} lp_fleet_reader;

/* The machine that `text` names; errors are of `node`, the value of `key`. Release with lp_hw_free. */
LP_MUST_USE lp_status lp_fleet_machine_load(const lp_yaml *yaml, const lp_yaml_node *node, const char *key,
                                            const char *text, lp_machine **out);
/* Reads `regions` and `machines`, each NULL where the key is absent, after the classes (spec_machines.c). */
LP_MUST_USE lp_status lp_fleet_machines_read(lp_fleet_reader *r, lp_yaml *yaml, const lp_yaml_node *root,
                                             const lp_yaml_node *regions, const lp_yaml_node *machines);
