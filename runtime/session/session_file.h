/* Keeps a generation in a file while it proceeds, so that another process can continue it after this one was killed. */
#pragma once

#include "runtime/exits/cloud_end.h"
#include "runtime/runtime.h"

/* The generation that is kept; borrowed. */
typedef struct {
  const int32_t *prompts; /* [batch][length] */
  int64_t batch, length;
} lp_keeper_task;

/* The functions below allow a NULL keeper, which keeps nothing. */
typedef struct lp_keeper lp_keeper;

/* Fails when options->resume is a session of another bundle, other options or another prompt. */
LP_MUST_USE lp_status lp_keeper_check(const lp_session *session, const lp_keeper_task *task, lp_diag *diag);
/* Writes the file for the first time, and puts the tokens of options->resume into `made`; lp_keeper_check has checked
 * it. *out is NULL when the session's options name no file. */
LP_MUST_USE lp_status lp_keeper_create(const lp_session *session, const lp_keeper_task *task, lp_generation *made,
                                       lp_keeper **out, lp_diag *diag);
/* Call after each token, or after each step with its tokens [step][batch]; writes the file now and then. If writing
 * fails, the keeper warns once and generation continues. */
void lp_keeper_note(lp_keeper *keeper, const lp_generation *made, lp_diag *diag);
/* Writes the tokens that the file lacks. */
void lp_keeper_finish(lp_keeper *keeper, const lp_generation *made, lp_diag *diag);
void lp_keeper_free(lp_keeper *keeper);
/* Gives the generation's context in the cloud, without the floor; false: nothing is kept. */
bool lp_keeper_claim(const lp_keeper *keeper, lp_context_claim *out);
