/* Floats of 8 and 4 bits in generated loops. */
#include "base/minifloat.h"

#include "backend/cpu/kernels/vector.h"

KERNEL float lpk_mini_decode(uint32_t code, int mini) {
  return lp_mini_decode(code, (lp_mini)mini);
}

KERNEL uint32_t lpk_e8m0_encode(float x, int rounding, int saturate) {
  return lp_e8m0_encode(x, (lp_e8m0_rounding)rounding, saturate);
}

KERNEL uint32_t lpk_mini_encode(float x, int mini, int saturate) {
  if ((lp_mini)mini == LP_MINI_E8M0) return lp_e8m0_encode(x, LP_E8M0_UP, saturate);
  return lp_mini_encode(x, (lp_mini)mini, saturate);
}
