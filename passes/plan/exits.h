/* The effect of early exits on a decode step: drafts, and the share of tokens that the cloud computes. */
#pragma once

#include "passes/plan/evaluate.h"

/* Replaces the sums of decode and the time of its messages, which hold for a token that the cloud computes, by their
 * means over the tokens of the request's mode. It changes nothing without a mode. It also changes nothing unless the
 * device's part of the plan ends at the last exit, because the runtime then asks the cloud for every token. In
 * standalone mode prefill stays on the device, too.
 *
 * exact: a round has `drafts` passes of the device and one question to the cloud. When the cloud confirms a draft with
 * probability p, a round yields (1 - p^(drafts+1)) / (1 - p) tokens. `drafts` minimises the time per token.
 *
 * threshold: a share `rate` of the tokens is taken at exits. A question about k rows costs the cloud its step and k - 1
 * times the lesser of that step and a prompt token's share of prefill. The device's layers run `layer_runs` times per
 * token; the rows that waited for a run have the same price on the device.
 *
 * The device sends rows while it computes; a token takes at least as long as sending its rows. */
void lp_plan_exits_follow(const lp_compile_request *request, lp_plan_stage_sum stage[LP_STAGE_COUNT],
                          double link_ms[LP_STAGE_COUNT], lp_plan_result *out);
