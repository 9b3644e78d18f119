/* What a sweep's rows depend on, and which of them belong to a shard. */
#pragma once

#include "passes/plan/sweep/sweep.h"

/* Computes a hash of everything that rows depend on except the version: the graph, machines, links, and the axes. */
void lp_sweep_key(const lp_sweep_spec *spec, const lp_module *module, char out[65]);
/* The shard, from 1, of `count` shards that a row belongs to; depends on nothing else. */
int32_t lp_sweep_shard_of(const lp_sweep_spec *spec, size_t row, int32_t count);
/* The number of rows of a shard. */
size_t lp_sweep_shard_rows(const lp_sweep_spec *spec, lp_sweep_shard shard);
