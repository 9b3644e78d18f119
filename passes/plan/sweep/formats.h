/* The output formats of a finished sweep. Each function appends a whole document. */
#ifndef LP_SWEEP_FORMATS_H
#define LP_SWEEP_FORMATS_H

#include "passes/plan/sweep/sweep.h"

void lp_sweep_csv(const lp_sweep_spec *spec, const lp_sweep_result *result, lp_buf *out);
void lp_sweep_html(const lp_sweep_spec *spec, const lp_sweep_result *result, lp_buf *out); /* html.c */

#endif
