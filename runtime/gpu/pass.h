/* Launching the calls of a segment (pass.c), or replaying a recording of them (record.c). */
#pragma once

#include "runtime/gpu/memory.h"

bool lp_gpu_launch_all(lp_gpu_pass *pass, const lp_gpu_segment *segment);
/* Tells whether the run's frame has a clock and the code was compiled to be profiled: then each operator waits for the
 * one before it, and nothing is recorded. */
bool lp_gpu_is_timed(const lp_gpu_pass *pass);

/* Finds the segments with launches that are the same for all contexts of a grain. */
void lp_gpu_find_repeats(lp_gpu *gpu);
/* As lp_gpu_launch_all, but replays a recording when the segment ran before with the same sizes and memory. */
bool lp_gpu_launch_recorded(lp_gpu_pass *pass, int32_t segment);
