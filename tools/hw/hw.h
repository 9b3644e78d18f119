/* Declarations that the actions of `llmpart hw` share. */
#pragma once

#include "hwmodels/hwmodels.h"
#include "runtime/runtime.h"
#include "tools/tools.h"

typedef struct {
  const char *out;             /* a path, or text, yaml or json for stdout; NULL: the action's default */
  const char *machine, *name;  /* fit, profile */
  const char *op, *dtype;      /* predict */
  int64_t size[LP_HW_SIZES];   /* predict; 0: not given */
  double pass_bytes;           /* predict; 0: not given */
  int64_t knots;               /* fit */
  const char *design, *source; /* fit */
  int64_t threads;             /* profile */
  double budget_ms;            /* profile */
  bool silent;                 /* profile: no progress */
  bool quick;                  /* profile: the shapes of the first use */
  /* profile of another machine */
  const char *over, *bundles, *backend, *march;
  int64_t widths; /* of the decoders; 0: all */
  lp_link_security security;
} hw_flags;

/* `llmpart hw NAME ...`; the command's user: hw_flags. */
lp_tool_act hw_list, hw_show, hw_fit, hw_eval, hw_predict, hw_profile;
