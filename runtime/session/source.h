/* What the encoder of a model reads, as the inputs of its bundle. */
#ifndef LP_SOURCE_H
#define LP_SOURCE_H

#include "base/abi.h"
#include "base/span.h"
#include "runtime/session/session.h"

typedef struct {
  lp_span *input; /* [inputs] owned; empty for inputs that are not the encoder's */
  int32_t count;
  int64_t sym[LP_MAX_SYMBOLS]; /* the sizes that these inputs give; 0 elsewhere */
} lp_source_inputs;

/* Makes the inputs of the session's source for `batch` sequences. Fails where a bundle with an encoder has no source,
 * or one that does not fit. Release also after a failure; zero `out` first. */
LP_MUST_USE lp_status lp_source_read(const lp_session *session, int64_t batch, lp_source_inputs *out, lp_diag *diag);
void lp_source_inputs_free(lp_source_inputs *inputs);

#endif
