/* The label search of the exact scheduler along a chain of segments (segments.c). Sums are exact, so that the same
 * modes in another order are one label. A label's bound is the greater of that by the fronts of each stage (front.c)
 * and that of both stages together (joint.c). The search keeps the least bound of the labels that it drops, so that it
 * proves a bound in any case. */
#include "passes/plan/exact/chain.h"
#include "base/side.h"
#include "passes/plan/exact/dominance.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Points of a front: COARSE to compare prices and where memory binds, because joint bounds are better there; FINE to
 * search. */
enum { COARSE = 100, FINE = 2000 };

/* A limit that is exceeded by less than this share counts as met; found placements are evaluated exactly. */
static const double allowance = 1e-9;

/* The most placements that are evaluated at the end of a search. */
enum { MOST_SEEN = 50 };

/* The number of labels that are compared with one another, as a multiple of the width. */
enum { MOST_CANDIDATES = 4 };

/* The most labels that are made to list the modes of a run for joint bounds. */
enum { MOST_LISTED = 4000000 };

/* The labels that a segment keeps once a search has done its work. */
enum { LAST_LABELS = 20 };

/* The work of a label of a list, and of a mode after a label, in points of a joint front. */
static const double label_work = 40, mode_work = 20;

typedef struct {
  int32_t parent;
  uint64_t sides;
} chain_trace;

/* ---- the search -------------------------------------------------------------------------------------------------- */

/* The part of a label's bound that a mode adds, without the fronts after it. */
typedef struct {
  double price, ms[LP_STAGE_COUNT];
  const lp_exact_front *front[LP_STAGE_COUNT];
  int32_t mode, to; /* to: the entry after it */
  double key;       /* the least that it and all that follows it add to the joint price */
} mode_price;

typedef struct {
  lp_exact_chain *c;
  const lp_exact *x;
  const lp_exact_prices *prices;
  lp_exact_chain_search *search;
  const lp_chain_modes *modes; /* of the label at hand, and their prices */
  int32_t entry;               /* of the label at hand, -1: there are no joint bounds */
  LP_VEC(mode_price) price;
  lp_exact_front **front[LP_STAGE_COUNT];
  double offset;       /* prices times limits */
  double least, slack; /* at the listing prices: the bound, and the largest difference of a placement's price from it */
  double most_listed;  /* work of lists after which joint bounds are given up */
  lp_chain_labels now, next;
  chain_trace **traces;
} chain_searcher;

/* The price of a label's or a mode's sums. */
static double price_of(const chain_searcher *s, const lp_exact_mode *l) {
  double price = l->objective;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    price += s->prices->duals.per_ms[stage] * l->ms[stage];
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    price += s->prices->duals.per_byte[side] * l->bytes[side];
  return price;
}

/* The price of the holdings that are live before segment `index` and that a stage has not paid yet. The stage's front
 * contains it too. */
static double paid_twice(const chain_searcher *s, size_t index, uint64_t shared) {
  const lp_exact *x = s->x;
  const lp_chain_place *p = &s->c->place.data[index];
  double price = 0;
  for (int32_t i = 0; i < p->live_count; i++) {
    unsigned mask = (unsigned)(shared >> (4 * s->c->slot_of[p->live[i]])) & 15;
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
        if (((mask | mask >> 2) >> side & 1) && !(mask >> (2 * stage) >> side & 1))
          price += s->prices->duals.per_byte[side] * s->prices->share[stage][side][p->live[i]] *
                   x->holding[p->live[i]].bytes[side];
  }
  return price;
}

/* The part of a stage's limit that a label leaves. */
static double time_left(const chain_searcher *s, int stage, const lp_exact_mode *l) {
  double limit = s->x->limit_ms[stage];
  return limit > 0 ? limit * (1 + allowance) - l->ms[stage] : 1;
}

static int compare_keys(const void *left, const void *right) {
  const mode_price *a = left, *b = right;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return a->mode - b->mode;
}

/* Fills the prices of the modes after a label, which come before segment `index` + 1. */
static void price_modes(chain_searcher *s, size_t index) {
  const lp_chain_place *p = &s->c->place.data[index + 1];
  const int32_t *exits = s->entry >= 0 ? lp_joint_exits(s->c->joint, index, s->entry) : NULL;
  s->price.count = 0;
  for (size_t i = 0; i < s->modes->list.count; i++) {
    const lp_exact_mode *mode = &s->modes->list.data[i];
    if (exits && exits[i] < 0) continue; /* no wanted placement has it */
    mode_price price = {.mode = (int32_t)i, .to = exits ? exits[i] : -1};
    price.price = price_of(s, mode) - paid_twice(s, index + 1, mode->shared);
    price.key = price.price;
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      const lp_exact_front *front = price.front[stage] = &s->front[stage][p->done[stage]][mode->at[stage]];
      price.ms[stage] = s->x->limit_ms[stage] > 0 ? mode->ms[stage] : 0;
      price.key += front->count ? front->price[front->count - 1] : INFINITY;
    }
    if (exits) price.key = lp_joint_least(s->c->joint, index + 1, price.to, mode);
    lp_vec_push(&s->price, price);
  }
  if (s->price.count) qsort(s->price.data, s->price.count, sizeof *s->price.data, compare_keys);
}

static void drop(chain_searcher *s, double bound) {
  if (bound < s->search->lowest) s->search->lowest = bound;
}

/* Tells whether a label exceeds the memory of a side. */
static bool is_too_large(const lp_exact *x, const lp_exact_mode *l) {
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (x->limit_bytes[side] > 0 && l->bytes[side] + 2 * l->activation[side] > x->limit_bytes[side]) return true;
  return false;
}

/* Adds a mode to a label. */
static void push_label(chain_searcher *s, const lp_chain_label *from, int32_t parent, const lp_exact_mode *mode,
                       double bound) {
  lp_chain_label l = {.sum = *mode, .parent = parent, .loss = from->loss, .bound = bound};
  lp_joint_add(&l.sum, &from->sum);
  if (is_too_large(s->x, &l.sum)) return;
  l.rank = s->search->step > 0 ? floor(l.sum.objective / s->search->step) : l.sum.objective;
  lp_vec_push(&s->next, l);
}

static double joint_bound(const chain_searcher *s, size_t index, const lp_chain_label *from, const mode_price *price,
                          double wanted) {
  const lp_exact_mode *mode = &s->modes->list.data[price->mode];
  lp_exact_mode sum = from->sum;
  lp_joint_add(&sum, mode);
  return lp_joint_bound(s->c->joint, index + 1, price->to, &sum, wanted);
}

static void extend(chain_searcher *s, size_t index, int32_t parent) {
  const lp_chain_label from = s->now.data[parent];
  double wanted = s->search->most - s->search->close * fabs(s->search->most);
  double price = price_of(s, &from.sum) - s->offset, base = price;
  double left[] = {time_left(s, LP_STAGE_PREFILL, &from.sum), time_left(s, LP_STAGE_DECODE, &from.sum)};
  if (s->c->joint) base = lp_joint_price(s->c->joint, &from.sum);
  for (size_t i = 0; i < s->price.count; i++) {
    const mode_price *mode = &s->price.data[i];
    s->search->work += mode_work;
    if (base + mode->key >= wanted) { /* and so do all that follow */
      drop(s, base + mode->key - from.loss);
      return;
    }
    double bound = price + mode->price;
    for (int stage = 0; stage < LP_STAGE_COUNT && bound < INFINITY; stage++)
      bound += lp_exact_front_price(mode->front[stage], left[stage] - mode->ms[stage]);
    if (bound < wanted && s->c->joint) bound = fmax(bound, joint_bound(s, index, &from, mode, wanted));
    if (bound < wanted)
      push_label(s, &from, parent, &s->modes->list.data[mode->mode], bound);
    else
      drop(s, bound - from.loss);
  }
}

static void keep_traces(chain_searcher *s, size_t index) {
  s->traces[index] = lp_alloc((s->now.count + 1) * sizeof **s->traces);
  for (size_t i = 0; i < s->now.count; i++)
    s->traces[index][i] = (chain_trace){s->now.data[i].parent, s->now.data[i].sum.sides};
}

static void narrow(chain_searcher *s, lp_chain_labels *list, size_t width) {
  drop(s, lp_chain_narrow(list, width));
}

/* The labels that a segment keeps. */
static size_t width_of(const chain_searcher *s) {
  const lp_exact_chain_search *search = s->search;
  return search->most_work > 0 && search->work > search->most_work ? LAST_LABELS : search->width;
}

/* Extends all labels by the segment. They are sorted by groups, which have the same modes. */
static void extend_all(chain_searcher *s, size_t index) {
  const size_t candidates = MOST_CANDIDATES * width_of(s);
  for (size_t k = 0; k < s->now.count; k++) {
    if (!k || lp_chain_compare_groups(&s->now.data[k - 1], &s->now.data[k])) {
      s->modes = lp_chain_modes_after(s->c, s->search->listing, index, &s->now.data[k].sum);
      s->entry = s->c->joint ? lp_joint_find(s->c->joint, index, &s->now.data[k].sum) : -1;
      assert(!s->c->joint || s->entry >= 0);
      drop(s, s->least + s->modes->rest);
      price_modes(s, index);
    }
    extend(s, index, (int32_t)k);
    if (s->next.count > 2 * candidates) narrow(s, &s->next, candidates); /* this bounds the memory */
  }
}

/* ---- placements ------------------------------------------------------------------------------------------------- */

/* Sets the sides of a segment's steps. */
static void set_sides(const chain_searcher *s, size_t index, uint64_t sides,
                      unsigned char *const side[LP_STAGE_COUNT]) {
  const lp_exact_segment *segment = &s->c->segment.data[index];
  for (int32_t k = segment->from; k < segment->to; k++) {
    const lp_exact_step *step = &s->x->step[k];
    side[step->stage][step->unit] = sides >> (k - segment->from) & 1;
  }
}

static void trace_back(const chain_searcher *s, int32_t label, unsigned char *const side[LP_STAGE_COUNT]) {
  for (size_t i = s->c->segment.count; i-- > 0;) {
    set_sides(s, i, s->traces[i][label].sides, side);
    label = s->traces[i][label].parent;
  }
}

/* Passes the placements found to `see` until one is feasible. */
static void show_best(chain_searcher *s) {
  unsigned char *side[LP_STAGE_COUNT];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    side[stage] = LP_NEW_ARRAY(s->x->arena, unsigned char, s->x->unit_count[stage]);
  for (int seen = 0; seen < MOST_SEEN; seen++) {
    int32_t best = -1;
    for (size_t i = 0; i < s->now.count; i++)
      if (!isinf(s->now.data[i].bound) && (best < 0 || s->now.data[i].sum.objective < s->now.data[best].sum.objective))
        best = (int32_t)i;
    if (best < 0) return;
    trace_back(s, best, side);
    if (s->search->see(s->search->user, side)) return;
    s->search->refused++;
    s->now.data[best].bound = INFINITY;
  }
}

/* The sum of the limits, each times its price. */
static double offset_of(const lp_exact *x, const lp_exact_prices *prices) {
  double sum = 0;
  for (int i = 0; i < 2; i++)
    sum += prices->duals.per_ms[i] * x->limit_ms[i] + prices->duals.per_byte[i] * x->limit_bytes[i];
  return sum;
}

/* The largest difference between a wanted placement's price and the least price. */
static double slack_of(const chain_searcher *s, const lp_exact_prices *prices) {
  return fmax(s->search->most - lp_exact_least(s->x, prices), 0) * (1 + 1e-6) + 1e-9 * fabs(s->search->most);
}

/* Tells whether memory can bind. */
static bool is_tight(const lp_exact *x) {
  return x->limit_bytes[LP_SIDE_DEVICE] > 0 || x->limit_bytes[LP_SIDE_CLOUD] > 0;
}

/* Makes the fronts of all places. Later passes with the same prices use them again. */
static void make_fronts(chain_searcher *s, double slack) {
  const lp_exact *x = s->x;
  lp_exact_chain *c = s->c;
  c->front_prices = s->prices;
  c->front_slack = slack;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    bool *keep = LP_NEW_ARRAY(x->arena, bool, x->unit_count[stage] + 1);
    for (size_t i = 0; i < c->place.count; i++)
      keep[c->place.data[i].done[stage]] = true;
    c->front[stage] = LP_NEW_ARRAY(x->arena, lp_exact_front *, x->unit_count[stage] + 1);
    lp_exact_fronts(&(lp_exact_front_task){.x = x,
                                           .graph = &c->graph[stage],
                                           .stage = (lp_stage)stage,
                                           .prices = s->prices,
                                           .pruning = s->search->pruning,
                                           .slack = slack,
                                           .points = is_tight(x) ? COARSE : FINE,
                                           .keep = keep},
                    c->front[stage]);
  }
}

static void set_bounds(chain_searcher *s) {
  const lp_exact *x = s->x;
  s->offset = offset_of(x, s->prices);
  s->slack = slack_of(s, s->search->listing);
  s->least = lp_exact_least(x, s->search->listing);
  double slack = fmax(s->search->greatest - lp_exact_least(x, s->search->pruning), 0) * (1 + 1e-6) +
                 1e-9 * fabs(s->search->greatest);
  if (s->c->front_prices != s->prices || slack > s->c->front_slack) make_fronts(s, slack);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    s->front[stage] = s->c->front[stage];
}

double lp_exact_chain_bound(const lp_exact_chain *chain, const lp_exact_prices *prices, const lp_exact_prices *pruning,
                            double slack, double *work) {
  const lp_exact *x = chain->x;
  double bound = 0;
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    bound -= prices->duals.per_byte[side] * x->limit_bytes[side];
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    double limit = x->limit_ms[stage];
    bool *keep = LP_NEW_ARRAY(x->arena, bool, x->unit_count[stage] + 1);
    lp_exact_front **front = LP_NEW_ARRAY(x->arena, lp_exact_front *, x->unit_count[stage] + 1);
    keep[0] = true;
    lp_exact_fronts(&(lp_exact_front_task){.x = x,
                                           .graph = &chain->graph[stage],
                                           .stage = (lp_stage)stage,
                                           .prices = prices,
                                           .pruning = pruning,
                                           .slack = slack,
                                           .points = COARSE,
                                           .keep = keep,
                                           .work = work},
                    front);
    bound += lp_exact_front_price(&front[0][0], limit > 0 ? limit * (1 + allowance) : 1) -
             prices->duals.per_ms[stage] * limit;
  }
  return bound;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static const lp_exact_modes_list *list_modes(void *user, size_t index, const lp_exact_mode *entry) {
  const chain_searcher *s = user;
  if (s->c->work > s->most_listed) return NULL;
  return &lp_chain_modes_after(s->c, s->search->listing, index, entry)->list;
}

/* Shows the cheapest placement that the search for joint prices met. */
static void show_path(const chain_searcher *s) {
  uint64_t *sides = LP_NEW_ARRAY(s->x->arena, uint64_t, s->c->segment.count);
  unsigned char *side[LP_STAGE_COUNT];
  if (!lp_joint_path(s->c->joint, sides)) return;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    side[stage] = LP_NEW_ARRAY(s->x->arena, unsigned char, s->x->unit_count[stage]);
  for (size_t i = 0; i < s->c->segment.count; i++)
    set_sides(s, i, sides[i], side);
  (void)s->search->see(s->search->user, side);
}

static void make_joint(chain_searcher *s) {
  lp_exact_chain *c = s->c;
  const lp_exact_duals *duals = &s->search->listing->duals;
  bool is_first = !(c->joint_price[0] + c->joint_price[1] + c->joint_price[2] + c->joint_price[3] > 0);
  lp_joint_free(c->joint);
  c->joint = NULL;
  if (c->has_too_many) return;
  c->joint_slack = s->slack;
  c->joint = lp_joint_create(s->x, c->segment.count, s->slack, list_modes, s);
  c->has_too_many = !c->joint;
  if (!c->joint) return;
  for (int i = 0; i < 2 && is_first; i++) {
    c->joint_price[i] = duals->per_ms[i];
    c->joint_price[2 + i] = duals->per_byte[i];
  }
  c->joint_bound = lp_joint_improve(c->joint, s->search->most, c->joint_price);
  lp_joint_fronts(c->joint, s->search->most, c->front_price);
  show_path(s);
}

/* Makes lists and joint bounds for this run, unless those of the runs before suffice. */
static void prepare(chain_searcher *s) {
  lp_exact_chain *c = s->c;
  bool is_rough = s->search->rough, is_longer = !is_rough && s->slack > c->slack;
  double before = c->work;
  s->most_listed = before + (double)MOST_LISTED;
  if (is_longer && !c->has_all) lp_chain_forget(c);
  if (is_longer) c->slack = s->slack;
  c->scale = s->search->most;
  if (s->search->slur > 0 || s->search->plain) { /* with slur nothing is proved, and the lists are long */
    lp_joint_free(c->joint);
    c->joint = NULL;
  } else if (is_tight(s->x) && (s->slack > c->joint_slack || is_rough || c->is_rough || !c->joint)) {
    make_joint(s);
  }
  c->is_rough = is_rough;
  s->search->work = label_work * (c->work - before) + (c->joint ? lp_joint_work(c->joint) : 0);
}

/* The label before the first segment. Its bound is that of all placements. */
static lp_chain_label first_label(chain_searcher *s) {
  lp_chain_label start = {.parent = -1, .bound = -s->offset};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    start.bound += lp_exact_front_price(&s->front[stage][0][0], time_left(s, stage, &start.sum));
  if (s->c->joint) {
    double joint = lp_joint_bound(s->c->joint, 0, 0, &start.sum, INFINITY);
    start.bound = fmax(start.bound, fmax(s->c->joint_bound, joint));
    for (size_t i = 0; i < s->c->lists.count; i++) /* the joint bounds lack the modes that the lists lack */
      drop(s, s->least + s->c->lists.data[i]->rest);
  }
  start.bound = fmin(start.bound, s->search->most);
  return start;
}

void lp_exact_chain_run(lp_exact_chain *chain, const lp_exact_prices *prices, lp_exact_chain_search *search) {
  chain_searcher s = {.c = chain, .x = chain->x, .prices = prices, .search = search};
  size_t count = chain->segment.count;
  search->lowest = search->most;
  search->refused = 0;
  set_bounds(&s);
  prepare(&s);
  s.traces = lp_alloc((count + 1) * sizeof *s.traces);
  lp_chain_label start = first_label(&s);
  search->least = start.bound;
  lp_vec_push(&s.now, start);
  for (size_t i = 0; i < count; i++) {
    extend_all(&s, i);
    narrow(&s, &s.next, MOST_CANDIDATES * width_of(&s));
    lp_chain_filter(s.x, search->slur, &s.next, &s.now);
    narrow(&s, &s.now, width_of(&s));
    keep_traces(&s, i);
  }
  for (size_t i = 0; i < s.now.count; i++)
    drop(&s, s.now.data[i].sum.objective - s.now.data[i].loss);
  show_best(&s);
  for (size_t i = 0; i < count; i++)
    free(s.traces[i]);
  free(s.traces);
  lp_vec_free(&s.price);
  lp_vec_free(&s.now);
  lp_vec_free(&s.next);
}
