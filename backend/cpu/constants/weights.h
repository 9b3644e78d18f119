/* weights.safetensors of the CPU's code. */
#ifndef LP_CPU_WEIGHTS_H
#define LP_CPU_WEIGHTS_H

#include "backend/cpu/constants/constants.h"

LP_MUST_USE lp_status cpu_weights_write(const lp_constants *constants, lp_module *module, const char *path,
                                        lp_diag *diag);
/* The panels of a GROUPS constant (weights_groups.c); `w` and `gate` hold all elements. */
LP_MUST_USE lp_status cpu_write_groups(lp_module *module, lp_writer *writer, const cpu_constant *constant,
                                       const lp_tensor *w, const lp_tensor *gate, lp_diag *diag);
/* An integer weight as f32, [n][k] or [k][n] like the constant; release with free(). */
LP_MUST_USE lp_status cpu_dequantise(lp_module *module, const cpu_constant *constant, const lp_tensor *w, int which,
                                     float **out, lp_diag *diag);

#endif
