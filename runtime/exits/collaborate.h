/* Early exits across device and cloud (P2, CE-CoLLM): what the files of this matter share. docs/exits.md describes the modes,
 * docs/protocol.md the messages. Nothing outside of runtime/ and its tests includes it.
 *
 * Text positions count from 0. The row of a position is what the device's half sends to the cloud's half for it: `width`
 * floats. A context is the cloud's memory of one generation: rows not yet consumed, and the KV caches behind those that were.
 */
#ifndef LP_COLLABORATE_H
#define LP_COLLABORATE_H

#include "runtime/runtime.h"

/* ---- generation (collaborate.c) ---------------------------------------------------------------------------------- */

typedef struct {
  lp_session *session;
  const int32_t *prompt;
  int64_t length, most;
  int32_t eos; /* -1: none, or ignored */
  lp_token_sink *sink;
  void *user;
  lp_generation *out; /* with the tokens that were resumed */
  struct lp_keeper *keeper;
} lp_collaboration;

/* Generates one sequence in the session's mode, which the bundle allows. */
LP_MUST_USE lp_status lp_collaborate(const lp_collaboration *task, lp_diag *diag);

#endif
