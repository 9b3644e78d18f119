/* The output formats of a finished sweep. Each function appends a whole document. */
#pragma once

#include "passes/plan/sweep/sweep.h"

void lp_sweep_csv(const lp_sweep_spec *spec, const lp_sweep_result *result, lp_buf *out);
void lp_sweep_html(const lp_sweep_spec *spec, const lp_sweep_result *result, lp_buf *out); /* html.c */
