/* weights.safetensors of the CPU's code. */
#pragma once

#include "backend/cpu/constants/constants.h"

LP_MUST_USE lp_status cpu_weights_write(const lp_constants *constants, lp_module *module, lp_writer *writer,
                                        lp_diag *diag);
/* A panel of a PANELS or GROUPS constant: LPK_PANEL columns from `first` on of an expert's n, of the value or of its
 * gate (`which` 1). Panels of the gate and of the value alternate. */
typedef struct {
  int64_t expert, first;
  int which;
} cpu_panel;
int64_t cpu_panel_count(const cpu_constant *constant);
cpu_panel cpu_panel_at(const cpu_constant *constant, int64_t index);
/* The panels of a GROUPS constant (weights_groups.c). */
LP_MUST_USE lp_status cpu_write_groups(lp_module *module, lp_writer *writer, const cpu_constant *constant,
                                       lp_diag *diag);
/* An integer weight as f32, [n][k] or [k][n] like the constant, and its gate (`which` 1); release with free(). */
LP_MUST_USE lp_status cpu_dequantise(lp_module *module, const cpu_constant *constant, int which, float **out,
                                     lp_diag *diag);
/* Opens the weight, or its gate (1), if it is in blocks along k. */
LP_MUST_USE lp_status cpu_rows_open(lp_module *module, const cpu_constant *constant, int which, lp_block_rows *out,
                                    lp_diag *diag);
