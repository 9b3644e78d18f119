/* Parts of a pass. */
#include "runtime/gpu/part.h"

lp_gpu_part lp_gpu_part_of(const lp_gpu_pass *pass, int64_t number) {
  bool alone = pass->frame->sequences == 0;
  return (lp_gpu_part){.frame = number == 0 ? pass->frame : &pass->frame->sequence[number - 1],
                       .number = (int32_t)number,
                       .owner = alone         ? pass->owner
                                : number == 0 ? NULL
                                              : &pass->owner[number - 1]};
}

int64_t lp_gpu_sequences(const lp_gpu_pass *pass) {
  return pass->frame->sequences > 0 ? pass->frame->sequences : 1;
}

int64_t lp_gpu_longest_past(const lp_gpu_pass *pass) {
  int64_t longest = pass->frame->sequences == 0 ? pass->frame->sym[LP_SYM_P] : 0;
  for (int64_t i = 0; i < pass->frame->sequences; i++)
    if (pass->frame->sequence[i].sym[LP_SYM_P] > longest) longest = pass->frame->sequence[i].sym[LP_SYM_P];
  return longest;
}

int64_t lp_gpu_rows_before(const lp_gpu_part *part, lp_gpu_holds holds) {
  return holds == LP_GPU_NEW_ROWS ? part->frame->row : part->frame->last_row;
}
