/* runtime/exits: generation with early exits across device and cloud (P2, CE-CoLLM). docs/exits.md describes the
 * modes, docs/protocol.md the messages. The device's half of the model runs ahead; its exits draft tokens or give
 * them; the cloud's half verifies or answers. This room knows bundles, executors and links, but no session: its
 * caller hands it what it needs of one. Private to runtime/ and its tests.
 *
 * Text positions count from 0. The row of a position is the hidden state, `width` floats, that the device's half
 * sends to the cloud's half for it. A context is the cloud's memory of one generation: the rows that it has not yet
 * run, and the KV caches of those that it has.
 */
#pragma once

#include "runtime/exec/executor.h"
#include "runtime/exec/pool.h"
#include "runtime/exits/cloud_end.h"
#include "runtime/exits/halves.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"

/* One generation. All pointers are borrowed. */
typedef struct {
  const lp_halves *halves;
  const lp_generate_options *options; /* mode, theta, codec, sampling, ignore_eos and trace are read */
  lp_executor *device;
  lp_pool *pool; /* runs the cloud's half when it is in this process */
  /* [links of the halves] the workers; NULL: the cloud is this process */
  const lp_endpoint *const *endpoints;
  double timeout_ms;      /* the longest wait for one answer */
  double reach_ms;        /* how long a worker that is not there yet is dialled in exact mode; 0: once */
  lp_context_claim claim; /* without its floor */
  const int32_t *prompt;  /* [length] */
  int64_t length, most;   /* tokens of the prompt; the most to generate */
  lp_token_sink *sink;    /* gets each new token, after it was added to `out` */
  void *user;
  lp_generation *out; /* begins with the tokens that were resumed */
} lp_collaboration;

/* Generates one sequence in the mode of the options, which the bundle allows. Tokens made before a failure stay in
 * `out`. */
LP_MUST_USE lp_status lp_collaborate(const lp_collaboration *task, lp_diag *diag);
/* Tells whether the caller of a generation, with or without early exits, wants it to end. */
bool lp_generation_is_stopped(const lp_generate_options *options);
