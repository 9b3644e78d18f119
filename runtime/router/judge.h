/* Policies and pools: opens a policy that learns from a pool, and estimates its reward on a log of another policy's
 * decisions. */
#pragma once

#include "runtime/router/store.h"

/* Opens a policy and teaches it the newest `memory` outcomes of the pool (0: all; `pool` NULL: none). Each decision
 * of a pool draws a random number of its own, also after a restart: the seed is the spec's plus the number of
 * decisions. */
LP_MUST_USE lp_status lp_policy_open_taught(const lp_policy_spec *spec, lp_store *pool, int64_t memory, lp_policy **out,
                                            lp_diag *diag);

typedef struct {
  int64_t decisions;    /* with an outcome */
  int64_t agreed;       /* decisions in which the policy's best route is the logged one */
  double logged_reward; /* mean */
  /* Mean reward of the policy's best route, estimated by inverse propensity (Horvitz and Thompson, 1952), and the same
   * divided by the sum of weights (Hajek), which has less variance; 0 when no decision agreed. */
  double ips_reward, snips_reward;
  double effective; /* effective number of decisions: (sum of weights)^2 / sum of their squares */
} lp_judgement;
/* Replays the log in the order of its outcomes: the policy decides each request, then learns the outcome of the logged
 * decision. */
LP_MUST_USE lp_status lp_policy_judge(lp_policy *policy, lp_store *log, lp_judgement *out, lp_diag *diag);
