/* Runs one segment of GPU code by the runtime on a runner's job, for the conformance suite and for its recorded
 * cases. */
#ifndef LP_TEST_GPU_JOB_H
#define LP_TEST_GPU_JOB_H

#include "runtime/gpu/gpu.h"
#include "tests/backend/runner.h"

enum { GPU_JOB_MOST_STATES = 64 };

/* Runs lp_segment_0 with lp_layout_0. `state_bytes` [source->states]: of the job's states. Reports errors. */
LP_MUST_USE lp_status gpu_job_run(const lp_gpu_source *source, const size_t *state_bytes, const runner_job *job,
                                  lp_diag *diag);

#endif
