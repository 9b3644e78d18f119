/* What the actions of `llmpart hw` share. */
#ifndef LP_TOOLS_HW_H
#define LP_TOOLS_HW_H

#include "hwmodels/hwmodels.h"
#include "tools/tools.h"

typedef struct {
  const char *out;             /* a path, or text, yaml or json on stdout; NULL: the action's usual */
  const char *machine, *name;  /* fit, profile */
  const char *op, *dtype;      /* predict */
  int64_t size[LP_HW_SIZES];   /* predict; 0: not given */
  double pass_bytes;           /* predict; 0: not given */
  int64_t knots;               /* fit */
  const char *design, *source; /* fit */
  int64_t threads;             /* profile */
  double budget_ms;            /* profile */
} hw_flags;

/* One action: `llmpart hw NAME ...`. */
typedef lp_status hw_action(const hw_flags *flags, const lp_texts *args, lp_diag *diag);
hw_action hw_list, hw_show, hw_fit, hw_eval, hw_predict, hw_profile;

/* Writes to flags->out when that is a path, else to stdout. */
LP_MUST_USE lp_status hw_write(const hw_flags *flags, const lp_buf *text, lp_diag *diag);
bool hw_wants(const hw_flags *flags, const char *form); /* -o FORM or -o FILE.FORM */

#endif
