/* A search through a graph of frontiers: prices and potentials (prices.c), and labels (labels.c). */
#pragma once

#include "proof/frontiers.h"

typedef struct {
  double amount, value;
} front_point;
typedef LP_VEC(front_point) front_points;

/* For each frontier of a stage the least price of the rest as a function of the amount of one limit that is left. Where
 * that limit has a price, the price only excludes placements. */
typedef struct {
  int of;                    /* the limit; -1: none */
  double price[LIMIT_COUNT]; /* of the other limits */
  double own, residence;     /* the price of the limit, and of a cache on the device */
  const front_point *ending; /* what follows the last step, as a front; borrowed */
  int32_t ending_count;
  double offset;          /* the sum of the limits, each times its price */
  double bound;           /* of the stage */
  double *least, *before; /* [frontier of all steps] from the start: the least amount and price; owned */
  int32_t *first, *count; /* [frontier of all steps] its points: amounts ascending, values descending; owned */
  front_points point;
} front;

/* The arcs of a frontier at the prices. An arc that is forbidden leads to frontier 0 at an infinite price. */
typedef struct {
  double price[LP_SIDE_COUNT];
  int32_t to[LP_SIDE_COUNT];
} seeker_way;

/* One graph with its prices. */
typedef struct {
  frontier_graph graph;
  const lp_certificate *c;
  double limit[LIMIT_COUNT], price[LIMIT_COUNT]; /* limit 0: none, or not of this graph */
  int32_t most;                                  /* caches on the device; 0: they are not counted */
  int32_t counted;                               /* messages: the search is for placements that send so many */
  bool or_more;                                  /* or more than that */
  double *potential; /* [frontier of all steps][sent so far][cached so far] price to the end and of the ending; owned */
  double *least[LIMIT_COUNT];               /* [frontier of all steps] each amount to the end */
  int32_t *first;                           /* [step] its first frontier among all */
  int32_t *cached_before;                   /* [step] the most caches that the steps before it put on the device */
  int32_t *alike;                           /* [step] the first step with the same arcs */
  int32_t *first_way;                       /* [step] the first of its ways; equal steps share them */
  seeker_way *way;                          /* [frontier of all steps with arcs of their own] */
  double sum[LIMIT_COUNT];                  /* amounts along the cheapest path */
  double grid_objective, grid[LIMIT_COUNT]; /* powers of two, of which sums of labels are multiples */
  size_t *left;                             /* the labels that all searches together may still make */
  const front *front;                       /* bounds labels as well; NULL: none; borrowed */
  double beside;                            /* the least that the other stage adds to the bound of the front */
} seeker;

/* The least times of moving caches: [most + difference of the numbers on the device, prefill's less decode's]. */
typedef struct {
  double *ms;
  int32_t most;
} moves;

/* A placement of the units so far. */
typedef struct {
  double objective, amount[LIMIT_COUNT], bound;
  int32_t at, cached, sent;
} label;
typedef LP_VEC(label) labels;

/* How a search through labels begins and ends. */
typedef struct {
  size_t effort; /* the labels that it may make before it keeps the least number */
  double known;  /* it may end once its target is at most this: it proves nothing new then */
  double target; /* what is to be proved, in amounts of the objective; lowered where there are too many labels */
  double reach;  /* out: with more effort it would prove no more; NaN: it would do the same */
} labels_task;

/* ---- prices.c ---------------------------------------------------------------------------------------------------- */

/* Makes the graph of the stages of the mask, for at most `most` caches on the device. `left` outlives the seeker. False
 * when there are too many frontiers. Release with free(s->potential), also then. */
bool seeker_create(const lp_certificate *c, unsigned stages, int32_t most, size_t *left, seeker *s);
/* Restricts the search to placements with so many messages, or more; false, without a change, when that takes too many
 * potentials. */
bool seeker_count_messages(seeker *s, int32_t counted, bool or_more);
/* Adds what an arc caches and sends; false when the search does not look for so many messages. */
bool seeker_count(const seeker *s, const frontier_arc *arc, int32_t *cached, int32_t *sent);
double *seeker_potentials(const seeker *s, size_t step, int32_t frontier);
/* The place of so many caches and messages among the potentials of a frontier. */
static inline int32_t seeker_index(const seeker *s, int32_t cached, int32_t sent) {
  return sent * (s->most + 1) + cached;
}
/* Fills the potentials that a path from the start without caches can meet. `ending`: [cached in all] the price after
 * the last step. */
void seeker_fill(seeker *s, const double *ending);
/* Sets cost[number] to the least price of a stage with that number of caches on the device, less that of the limits. */
void seeker_costs(seeker *s, double *cost);
/* Searches for prices of a high bound for one graph or, with two, for both stages, and leaves them. Stops at `enough`.
 * Returns the bound; infinite: there is no placement. */
double seeker_improve(seeker *s, int count, const moves *m, double enough);
/* The same with few steps. */
double seeker_quick_bound(seeker *s, int count, const moves *m, double enough);

moves moves_list(const lp_certificate *c);
/* Fills, for each number of caches that prefill has on the device, the least cost of decode, cost[number], with the
 * moves at a price per ms. Sets in `other`, unless it is NULL, decode's number. */
void moves_pair(const moves *m, const double *cost, double per_ms, double *out, int32_t *other);

/* ---- fronts.c ---------------------------------------------------------------------------------------------------- */

/* Allocates a front. Release with front_free. */
void front_create(const seeker *s, front *f);
void front_free(front *f);
/* Fills `least` and `before` from the members above them, and sets the bound that the prices prove. */
void front_open(const seeker *s, front *f);
/* Makes the points of an opened front for the placements with a price below `below`, less that of the limits, and sets
 * the bound that they prove. A frontier has about `most` points at most. */
void front_fill(const seeker *s, double below, int most, front *f);
/* The least price of the rest, from a frontier of all steps; infinite: there is no wanted placement. */
double front_least(const front *f, int32_t frontier, double left);

/* ---- pairs.c ----------------------------------------------------------------------------------------------------- */

typedef struct {
  seeker *s;      /* [2] borrowed */
  const moves *m; /* borrowed */
  front f[2];
  double residence, bound;
  front_points moves; /* after prefill */
} front_pair;

/* Searches for the price of residence with the best fronts of both stages; returns their bound of all placements below
 * `wanted`. Release with pair_free. */
double pair_improve(front_pair *p, seeker s[2], const moves *m, double wanted);
void pair_free(front_pair *p);

/* ---- labels.c ---------------------------------------------------------------------------------------------------- */

/* Lists all placements within the limits that may be below the target, which includes the ending, unless it ends early.
 * Release `out` with lp_vec_free. */
void labels_search(seeker *s, const double *ending, labels_task *task, labels *out);
