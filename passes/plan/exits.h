/* What early exits change in a decode step: drafts, and how often the cloud is asked. */
#ifndef LP_PLAN_EXITS_H
#define LP_PLAN_EXITS_H

#include "passes/plan/evaluate.h"

/* Changes the sums of decode, and the time of its messages, from those of a token for which the cloud is asked to the
 * mean of a token in the request's mode. Nothing changes without a mode, and where the plan is no device's half that
 * ends at the last exit: then the runtime asks for every token. In standalone mode prefill stays on the device, too.
 *
 * exact: a round has `drafts` passes of the device and a question; with the chance p of a draft it yields
 * (1 - p^(drafts+1)) / (1 - p) tokens. The number of drafts is the one with the least time per token.
 *
 * threshold: a share `rate` of the tokens is taken at exits. A question about k rows costs the cloud its step and k - 1
 * times the lesser of that step and a prompt token's share of prefill.
 *
 * Rows go up while the device computes; a token takes at least as long as its rows. */
void lp_plan_exits_follow(const lp_compile_request *request, lp_plan_stage_sum stage[LP_STAGE_COUNT],
                          double link_ms[LP_STAGE_COUNT], lp_plan_result *out);

#endif
