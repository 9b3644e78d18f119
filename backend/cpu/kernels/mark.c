/* Tells the clock of a frame that an operator begins. */
#include "backend/cpu/kernels/vector.h"

KERNEL void lpk_mark(const lp_frame *frame, int64_t thread) {
  if (thread == 0 && frame->clock) frame->clock->mark(frame->clock);
}
