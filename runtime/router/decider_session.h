/* Runs a bundle in this process for one distribution at a time, for the deciders that have a model. */
#pragma once

#include "runtime/runtime.h"

typedef struct {
  lp_bundle *bundle;
  lp_session *session;
  lp_generation last;
} lp_reader;

LP_MUST_USE lp_status lp_reader_open(const char *bundle, int32_t threads, lp_reader *out, lp_diag *diag);
/* The logits [vocab] after `count` tokens; valid until the next call. */
LP_MUST_USE lp_status lp_reader_logits(lp_reader *reader, const int32_t *tokens, size_t count, const float **out,
                                       lp_diag *diag);
void lp_reader_close(lp_reader *reader); /* a zero one is allowed */
