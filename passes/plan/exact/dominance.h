/* Labels of the search along a chain of segments: the ones that another label makes useless, and the ones
 * beyond the width. */
#ifndef LP_PLAN_DOMINANCE_H
#define LP_PLAN_DOMINANCE_H

#include "passes/plan/exact/exact.h"

typedef struct {
  lp_exact_mode sum; /* `sides` is the number of the mode that led here */
  double bound;
  double rank; /* the objective, rounded: of labels with equal rank the faster ones come first */
  double loss; /* the improvement that a dropped label which this one replaces could bring */
  int32_t parent;
} lp_chain_label;

typedef LP_VEC(lp_chain_label) lp_chain_labels;

/* Orders labels by their groups. The segments after the labels of one group have the same modes. */
int lp_chain_compare_groups(const lp_chain_label *a, const lp_chain_label *b);
/* Keeps at most `width` labels: those with the least bounds, in their order. Returns the least bound of the other
 * labels, less their losses; infinite when there are none. */
double lp_chain_narrow(lp_chain_labels *list, size_t width);
/* Moves the labels of `from` that no other of their group dominates to `to`, sorted by groups. A label stands for those
 * that it dominates; `slur` is a share of each limit by which it may exceed them. */
void lp_chain_filter(const lp_exact *x, double slur, lp_chain_labels *from, lp_chain_labels *to);

#endif
