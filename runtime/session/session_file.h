/* Keeping a generation in a file while it goes on, so that another process can. Private to runtime/. */
#ifndef LP_SESSION_FILE_H
#define LP_SESSION_FILE_H

#include "runtime/exits/cloud_end.h"
#include "runtime/runtime.h"

/* What is generated; borrowed. */
typedef struct {
  const int32_t *prompts; /* [batch][length] */
  int64_t batch, length;
} lp_keeper_task;

typedef struct lp_keeper lp_keeper;

/* Is options->resume, if there is one, of this generation? */
LP_MUST_USE lp_status lp_keeper_check(const lp_session *session, const lp_keeper_task *task, lp_diag *diag);
/* *out is NULL when the session's options name no file. Otherwise the file is written, and the tokens of options->resume, which was
 * checked, put into `made`. */
LP_MUST_USE lp_status lp_keeper_create(const lp_session *session, const lp_keeper_task *task, lp_generation *made,
                                       lp_keeper **out, lp_diag *diag);
/* After each token or round of tokens [step][batch]: writes now and then. A write that fails is warned of once. NULL is allowed. */
void lp_keeper_note(lp_keeper *keeper, const lp_generation *made, lp_diag *diag);
/* Writes what is not yet there. NULL is allowed. */
void lp_keeper_finish(lp_keeper *keeper, const lp_generation *made, lp_diag *diag);
void lp_keeper_free(lp_keeper *keeper); /* NULL is allowed */
/* Whose context in the cloud, but for its floor; false when nothing is kept. */
bool lp_keeper_claim(const lp_keeper *keeper, lp_context_claim *out);

#endif
