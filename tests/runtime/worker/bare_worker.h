/* A worker without a link: a test gives it messages, runs its passes one by one, and receives the messages that it
 * sends. */
#ifndef LP_TESTS_BARE_WORKER_H
#define LP_TESTS_BARE_WORKER_H

#include "runtime/link/link.h"
#include "runtime/runtime.h"
#include "runtime/worker/worker.h"

typedef struct {
  lp_worker worker;
  lp_worker_options options;
  lp_wire wire;
} bare_worker;

/* `sent` is the transport that the worker sends by; only its `send` is called, and what a handshake needs. Aborts on
 * failure. `context_dir` NULL: contexts are not kept. */
bare_worker *bare_worker_create(lp_bundle *bundle, const char *context_dir, const lp_transport *sent);
/* Ends as a worker that receives SIGTERM: contexts are kept. */
void bare_worker_free(bare_worker *bare);

#endif
