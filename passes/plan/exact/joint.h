/* Bounds of both stages together, along a chain of segments (joint.c, joint_front.c). A price of time and bytes for all
 * limits but one leaves a shortest path with one limit; its cost as a function of what is left of that limit is a
 * front. */
#ifndef LP_PLAN_JOINT_H
#define LP_PLAN_JOINT_H

#include "passes/plan/exact/exact.h"

/* The limited quantities: times of the stages, then bytes of the sides. */
enum { LP_JOINT_LIMITS = (int)LP_STAGE_COUNT + (int)LP_SIDE_COUNT };
double lp_joint_limit(const lp_exact *x, int quantity);            /* 0: none */
double lp_joint_amount(const lp_exact_mode *sums, int quantity);   /* without activations */
void lp_joint_add(lp_exact_mode *sums, const lp_exact_mode *mode); /* does not change the frontiers */
/* What sums of the steps so far leave of a limit; their activations count. */
double lp_joint_left(const lp_exact *x, const lp_exact_mode *sums, int quantity);

/* The modes of segment `index` after an entry; they must live as long as the lp_joint. NULL: the lists are too long. */
typedef const lp_exact_modes_list *(*lp_joint_list)(void *user, size_t index, const lp_exact_mode *entry);

typedef struct lp_joint lp_joint;
/* Lists the entries of each place that paths with an excess of at most `slack` meet; NULL when there are too many. */
lp_joint *lp_joint_create(const lp_exact *x, size_t segments, double slack, lp_joint_list list, void *user);
void lp_joint_free(lp_joint *joint);
/* Searches for prices of the limits that make the bound of all paths high, beginning at `price`, and leaves them there.
 * No placement with an objective below `most` has one below the bound that it returns. */
double lp_joint_improve(lp_joint *joint, double most, double price[LP_JOINT_LIMITS]);
/* Makes the fronts of all limits. They hold for placements below `most`. Searches for the prices of the other limits
 * that make each front's bound high, beginning at price[limit], or at those of lp_joint_improve where that is 0, and
 * leaves them there. */
void lp_joint_fronts(lp_joint *joint, double most, double price[LP_JOINT_LIMITS][LP_JOINT_LIMITS]);

/* The number of an entry at a place, -1: no path below `most` meets it. */
int32_t lp_joint_find(const lp_joint *joint, size_t place, const lp_exact_mode *entry);
/* The entries after the modes of an entry's list, by mode; -1 as above. */
const int32_t *lp_joint_exits(const lp_joint *joint, size_t place, int32_t entry);
/* The bound of a label with these sums that is at an entry, or one of at least `enough`. */
double lp_joint_bound(const lp_joint *joint, size_t place, int32_t entry, const lp_exact_mode *sums, double enough);
/* Fills the sides of the steps of each segment of the cheapest path that lp_joint_improve met and that keeps the
 * limits; false when there is none. */
bool lp_joint_path(const lp_joint *joint, uint64_t *sides);
/* The price of sums, less the prices times the limits, and the least price of a mode and all that follows it: their sum
 * is a bound. */
double lp_joint_price(const lp_joint *joint, const lp_exact_mode *sums);
double lp_joint_least(const lp_joint *joint, size_t place, int32_t entry, const lp_exact_mode *mode);
double lp_joint_work(const lp_joint *joint); /* points of fronts made, and modes priced */

#endif
