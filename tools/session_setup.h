/* What `run` and `bench` share: a bundle with its two sides ready to generate. */
#ifndef LP_TOOLS_SESSION_SETUP_H
#define LP_TOOLS_SESSION_SETUP_H

#include "runtime/runtime.h"

typedef struct {
  const char *bundle, *cloud; /* cloud NULL: a worker of one's own when the bundle is split */
  bool in_process, check;
  bool alone; /* only the device's side is used, without a worker */
  int64_t threads;
} lp_setup_flags;

typedef struct {
  lp_bundle *bundle;
  lp_worker_process worker;
  const char *cloud; /* NULL: both sides here */
  double load_ms;
} lp_setup;

/* Release with lp_setup_end also after a failure. */
LP_MUST_USE lp_status lp_setup_begin(const lp_setup_flags *flags, lp_setup *out, lp_diag *diag);
void lp_setup_end(lp_setup *setup);

#endif
