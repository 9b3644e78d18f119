/* The inside of joint bounds, for their prices (joint.c) and their fronts (joint_front.c). */
#ifndef LP_PLAN_JOINT_ROWS_H
#define LP_PLAN_JOINT_ROWS_H

#include "passes/plan/exact/joint.h"

/* A limit that is exceeded by less than this share counts as met; found placements are evaluated exactly. */
#define LP_JOINT_ALLOWANCE 1e-9

/* An entry. */
typedef struct {
  lp_exact_mode entry;
  const lp_exact_modes_list *list;
  int32_t sorted;       /* the number of its list in lp_joint.sorted */
  int32_t *to;          /* [list->count] entries of the next place; -1: no wanted path takes the mode */
  size_t count;         /* modes up to the last one that a wanted path takes */
  double excess, after; /* the least excess of paths to it, and of paths from it */
} lp_joint_node;

/* The modes of a list by amount, then by number, for each limited quantity; NULL: it is not needed yet. */
typedef struct {
  const lp_exact_modes_list *list;
  int32_t *order[LP_JOINT_LIMITS];
} lp_joint_sorted;

/* The mode after a point of a front, and the point of the front after it. */
typedef struct {
  int32_t mode, next;
} lp_joint_hop;

/* The entries of a place. */
typedef struct {
  LP_VEC(lp_joint_node) node;
  int32_t *slot; /* hash table: node + 1 */
  size_t slots;
  double *to_end, *from_start;            /* [node] least prices */
  double *least[LP_JOINT_LIMITS];         /* [node] least amounts from the start */
  lp_exact_front *front[LP_JOINT_LIMITS]; /* [node] */
  lp_joint_hop **hop;                     /* [node][point] of the last fronts, if they were traced */
} lp_joint_row;

struct lp_joint {
  const lp_exact *x;
  size_t segments;
  lp_joint_row *row;
  LP_VEC(lp_joint_sorted) sorted; /* one for each list of modes */
  lp_arena *arena;
  double price[LP_JOINT_LIMITS], work;
  /* By the limit that a front keeps: the prices of the others. Its own price only excludes paths. */
  double front_price[LP_JOINT_LIMITS][LP_JOINT_LIMITS];
  bool has_front[LP_JOINT_LIMITS];
  int32_t *path, *best_path; /* [segments] modes of the last path, and of the best one that meets the limits */
  double best_objective;     /* infinite: none met them */
};

/* The price of sums, and the sum of the limits, each times its price. */
static inline double lp_joint_price_at(const lp_exact_mode *m, const double price[LP_JOINT_LIMITS]) {
  return m->objective + price[0] * m->ms[0] + price[1] * m->ms[1] + price[2] * m->bytes[0] + price[3] * m->bytes[1];
}
double lp_joint_offset(const lp_joint *j, const double price[LP_JOINT_LIMITS]);
/* Fills to_end at these prices; returns the bound. */
double lp_joint_solve(lp_joint *j, const double price[LP_JOINT_LIMITS]);
/* Keeps the last path if it meets the limits and is the best of those. */
void lp_joint_keep_path(lp_joint *j, const lp_exact_mode *sums);
/* Takes Polyak's step towards a bound that is higher by `length`; false where the bound has no slope. A slope that is
 * opposite to the last step is turned towards it (Camerini, Fratta and Maffioli, 1975); `last` begins with zeros. */
bool lp_joint_step(const lp_joint *j, const lp_exact_mode *used, double length, double last[LP_JOINT_LIMITS],
                   double price[LP_JOINT_LIMITS]);

#endif
