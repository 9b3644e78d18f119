/* The inputs of a model's encoder, made from the source of the session's options (lp_source). */
#pragma once

#include "base/abi.h"
#include "base/span.h"
#include "runtime/session/session.h"

typedef struct {
  lp_span *input; /* [inputs] owned; empty for all inputs except the encoder's */
  int32_t count;
  int64_t sym[LP_MAX_SYMBOLS]; /* the sizes that these inputs determine; 0 for other symbols */
} lp_source_inputs;

/* Makes the encoder's inputs for `batch` sequences. Fails when a bundle with an encoder has no source or one that does
 * not fit its inputs, and when another bundle has a source. The caller zeroes `out`, and releases it with
 * lp_source_inputs_free also after a failure. */
LP_MUST_USE lp_status lp_source_read(const lp_session *session, int64_t batch, lp_source_inputs *out, lp_diag *diag);
void lp_source_inputs_free(lp_source_inputs *inputs);
