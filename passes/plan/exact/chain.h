/* The inside of a chain of segments (segments.c) for the search along it (chain.c). */
#ifndef LP_PLAN_CHAIN_H
#define LP_PLAN_CHAIN_H

#include "base/map.h"
#include "passes/plan/exact/exact.h"
#include "passes/plan/exact/joint.h"

/* The modes after one entry of one kind of segment. */
typedef struct {
  lp_exact_modes_list list;
  double rest; /* the least price of the modes that the list lacks, above the least of all placements */
} lp_chain_modes;

typedef struct {
  int32_t kind, done[LP_STAGE_COUNT]; /* done: units before it, by stage */
  int32_t *live;                      /* shared holdings that are live before it */
  int32_t live_count;
} lp_chain_place;

struct lp_exact_chain {
  const lp_exact *x;
  const lp_exact_graph *graph;
  int32_t *slot_of;
  LP_VEC(lp_exact_segment) segment;
  LP_VEC(lp_chain_place) place; /* before each segment */
  lp_map *kinds;
  /* Modes, by kind and entry; no placement is listed with a price more than `slack` above the least. */
  LP_VEC(lp_chain_modes *) lists;
  lp_map *modes;
  double slack;
  bool has_all; /* the slack excluded no mode */
  double work;  /* labels made for the lists */
  /* The objective at which passes aim, and the share of it and of the limits by which lists may be wrong, because modes
   * that are nearly alike are joined. */
  double scale, coarse;
  /* The fronts of each stage, at these prices; NULL: there are none. */
  lp_exact_front **front[LP_STAGE_COUNT];
  const lp_exact_prices *front_prices;
  double front_slack;
  /* The bounds of both stages together; NULL: there are none, or too many entries for them. */
  lp_joint *joint;
  double joint_slack; /* they hold for placements with a price of at most this above the least */
  double joint_price[LP_JOINT_LIMITS], front_price[LP_JOINT_LIMITS][LP_JOINT_LIMITS], joint_bound;
  bool is_rough;     /* they are those of a rough run */
  bool has_too_many; /* entries */
};

/* The modes of segment `index` after an entry, at the listing prices. */
const lp_chain_modes *lp_chain_modes_after(lp_exact_chain *chain, const lp_exact_prices *listing, size_t index,
                                           const lp_exact_mode *entry);
/* Drops the lists, because a pass needs longer ones: it wants placements farther from the least price. */
void lp_chain_forget(lp_exact_chain *chain);

#endif
