/* Proves a bound by a search through all placements (frontiers.c). Prices of the limits give each frontier a potential,
 * the least price from there to the end; a placement so far whose price and potential reach the bound that is to be
 * proved needs no further work, nor does one that another at the same frontier dominates. What remains at the end is
 * below the bound. When too many remain on the way, those nearest to the bound are dropped, and the bound becomes what
 * they prove.
 *
 * All placements are divided by their largest activations (rooms.c), and each part is searched.
 *
 * The stages are first searched one by one. Each must keep the limits by itself, and what couples them is only the
 * number of KV caches that each has on the device: where the numbers differ, as many caches move at least. If that is
 * too weak, one search goes through both stages. */
#include "proof/rooms.h"
#include "proof/seeker.h"

#include <assert.h>
#include <math.h>

/* Fills, for each number of caches that decode has on the device, the least cost of the placements of prefill in the
 * list, with moves, as far as TTFT allows. */
static void end_prefill(const seeker *s, const moves *m, const labels *list, double *ending) {
  for (int32_t k = 0; k <= m->most; k++) {
    ending[k] = INFINITY;
    LP_FOR_VEC(const label, l, list) {
      const double ms = m->ms[m->most + l->cached - k];
      if (s->limit[0] > 0 && l->amount[0] + ms > s->limit[0] * (1 + CERTIFICATE_ROUNDING)) continue;
      ending[k] = fmin(ending[k], l->objective + s->c->move * ms);
    }
  }
}

/* Tells whether memory can bind. */
static bool is_tight(const lp_certificate *c) {
  return c->limit_bytes[0] > 0 || c->limit_bytes[1] > 0;
}

/* Tells whether all searches are brief. */
static bool has_few_units(const lp_certificate *c) {
  return c->stages[0].unit_count + c->stages[1].unit_count <= lp_certificate_effort_of(c)->few_units;
}

/* Tells whether only brief searches may still raise a bound: it is near to the objective of the plan, or nearly what is
 * wanted. */
static bool suffices(const lp_certificate *c, double wanted, double proved) {
  const lp_certificate_effort *most = lp_certificate_effort_of(c);
  const double gap = c->value - proved, scale = fabs(c->value);
  if (has_few_units(c)) return false;
  return gap <= most->near * scale || (gap <= most->close * scale && wanted - proved <= most->rest * scale);
}

/* Tells whether memory has a price. */
static bool has_price(const lp_certificate *c) {
  return c->price_bytes[0] > 0 || c->price_bytes[1] > 0;
}

/* Makes labels of a stage heed its front; `beside` is the least that the other stage adds to its bound. */
static void use_front(seeker *s, const front *f, double beside) {
  s->front = f;
  s->beside = beside;
}

/* What is proved. Sets the reach of the searches of both stages, of which the first reached `first`. */
static double end_search(labels_task *task, double first) {
  if (!isnan(first)) task->reach = first;
  if (isnan(task->reach)) task->reach = task->target;
  return task->target;
}

/* Searches prefill, then decode with the placements of prefill that are left. Those that are not left cost at least the
 * target together with any placement of decode. `p`: fronts; NULL: there are none. */
static double search_forward(seeker s[2], const moves *m, const front_pair *p, labels_task *task) {
  const lp_certificate *c = s[0].c;
  double *cost = LP_NEW_ARRAY(c->arena, double, m->most + 1), *ending = LP_NEW_ARRAY(c->arena, double, m->most + 1);
  LP_OWNED(lp_free_at) labels list = {0};
  seeker_costs(&s[1], cost);
  moves_pair(m, cost, c->move + s[0].price[0], ending, NULL);
  if (p) use_front(&s[0], &p->f[0], p->f[1].bound);
  labels_search(&s[0], ending, task, &list);
  const double first = task->reach;
  end_prefill(&s[0], m, &list, ending);
  list.count = 0;
  if (p) {
    double least = INFINITY;
    for (int32_t k = 0; k <= m->most; k++)
      least = fmin(least, ending[k] + p->residence * k);
    use_front(&s[1], &p->f[1], least);
  }
  labels_search(&s[1], ending, task, &list);
  use_front(&s[0], NULL, 0);
  use_front(&s[1], NULL, 0);
  for (size_t i = 0; i < list.count && task->target > task->known; i++)
    task->target = fmin(task->target, list.data[i].objective + ending[list.data[i].cached]);
  return end_search(task, first);
}

/* Searches decode, then prefill with what the first search proves for each number of caches on the device. */
static double search_backward(seeker s[2], const moves *m, labels_task *task) {
  const lp_certificate *c = s[0].c;
  double *cost = LP_NEW_ARRAY(c->arena, double, m->most + 1), *ending = LP_NEW_ARRAY(c->arena, double, m->most + 1);
  const double per_ms = c->move + s[0].price[0];
  LP_OWNED(lp_free_at) labels list = {0};
  seeker_costs(&s[0], cost);
  for (int32_t k = 0; k <= m->most; k++) {
    ending[k] = INFINITY;
    for (int32_t n = 0; n <= m->most; n++)
      ending[k] = fmin(ending[k], cost[n] + per_ms * m->ms[m->most + n - k]);
  }
  labels_search(&s[1], ending, task, &list);
  const double first = task->reach;
  for (int32_t k = 0; k <= m->most; k++)
    cost[k] = task->target - ending[k];
  for (size_t i = 0; i < list.count; i++)
    cost[list.data[i].cached] = fmin(cost[list.data[i].cached], list.data[i].objective);
  moves_pair(m, cost, per_ms, ending, NULL);
  list.count = 0;
  labels_search(&s[0], ending, task, &list);
  for (size_t i = 0; i < list.count && task->target > task->known; i++)
    for (int32_t k = 0; k <= m->most; k++) {
      const double ms = m->ms[m->most + list.data[i].cached - k];
      if (s[0].limit[0] > 0 && list.data[i].amount[0] + ms > s[0].limit[0] * (1 + CERTIFICATE_ROUNDING)) continue;
      task->target = fmin(task->target, list.data[i].objective + cost[k] + c->move * ms);
    }
  return end_search(task, first);
}

/* Searches the graph of both stages. */
static double search_joint(seeker *s, labels_task *task) {
  static const double nothing = 0;
  LP_OWNED(lp_free_at) labels list = {0};
  labels_search(s, &nothing, task, &list);
  for (size_t i = 0; i < list.count && task->target > task->known; i++)
    task->target = fmin(task->target, list.data[i].objective);
  return task->target;
}

/* Searches the stages with fronts as bounds, which take most of the time, so that it is not done twice. */
static double search_by_fronts(seeker s[2], const moves *m, labels_task *task) {
  const double wanted = task->target;
  front_pair p;
  const double proved = pair_improve(&p, s, m, wanted);
  task->known = fmax(task->known, proved);
  if (proved < wanted) (void)search_forward(s, m, &p, task);
  pair_free(&p);
  task->reach = fmin(fmax(task->target, proved), wanted);
  return task->reach;
}

/* The graphs of a search: one of both stages, or one for each. */
typedef struct {
  seeker s[2];
  int count;
  bool has_fronts; /* fronts were made: a second time they prove no more */
  moves m;         /* of caches, between two graphs */
} graphs;

/* Tells whether fronts are worth their time: they price what the stages hold, so that where memory binds they raise a
 * good bound only. */
static bool suit_fronts(const graphs *g, double proved, double wanted) {
  static const double near = 0.03; /* a share */
  if (g->s[0].counted || g->s[1].counted || g->has_fronts) return false;
  if (suffices(g->s[0].c, wanted, proved)) return false;
  return !is_tight(g->s[0].c) || proved >= wanted - near * fabs(wanted);
}

static void release(graphs *g) {
  for (int i = 0; i < g->count; i++)
    free(g->s[i].potential);
}

/* The searches of a part of all placements. */
enum { FORWARD, BACKWARD, BY_FRONTS, WAYS };

/* No search has ended. */
static const double unknown_reach[WAYS] = {INFINITY, INFINITY, INFINITY};

static double search_way(graphs *g, int way, labels_task *task) {
  if (way == BY_FRONTS) return search_by_fronts(g->s, &g->m, task);
  return way == FORWARD ? search_forward(g->s, &g->m, NULL, task) : search_backward(g->s, &g->m, task);
}

/* Searches a part of all placements, which a number of messages makes; two graphs in the order that takes less effort.
 * Returns what that proves; what is at most `known` is of no use. reach[way]: what a search by this way could prove
 * with any effort, as far as searches of this part with less effort have shown. */
static double prove_part(graphs *g, double wanted, double known, size_t effort, double reach[WAYS]) {
  const lp_certificate *c = g->s[0].c;
  assert(reach);
  double proved = seeker_improve(g->s, g->count, &g->m, wanted);
  if (proved >= wanted || proved == -INFINITY) return proved;
  labels_task task = {.effort = effort, .known = fmax(known, proved), .target = wanted};
  if (g->count == 1) return fmax(proved, search_joint(g->s, &task));
  for (int way = 0; way < WAYS && proved < wanted; way++) {
    if (way == BY_FRONTS && !suit_fronts(g, fmax(known, proved), wanted)) break;
    if (way == BY_FRONTS) g->has_fronts = true;
    if (reach[way] <= fmax(known, proved)) continue;
    task = (labels_task){.effort = effort, .known = fmax(known, proved), .target = wanted};
    if (way == BY_FRONTS && is_tight(c)) task.effort = lp_certificate_effort_of(c)->long_labels;
    proved = fmax(proved, search_way(g, way, &task));
    reach[way] = task.reach;
  }
  return proved;
}

/* The stage with the dearer messages. */
static seeker *dear_stage(graphs *g) {
  const lp_certificate *c = g->s[0].c;
  return &g->s[c->link[1] + g->s[1].price[1] >= c->link[0] + g->s[0].price[0]];
}

/* When to check whether prices prove the placements that send more messages than those proved so far. */
typedef struct {
  int32_t sent; /* the number of messages at which the next check is made */
  double bound; /* that the last check proved */
} rest_check;

/* Notes the bound of a check. Where it hardly rises, the next checks are ever farther apart. */
static void schedule_next(rest_check *o, int32_t sent, double bound, double target) {
  static const double share = 0.1; /* of the bound that is still missing */
  const bool rises = bound >= o->bound + share * (target - o->bound);
  o->sent = rises ? sent + 1 : 2 * sent + 1;
  o->bound = bound;
}

/* The most messages that are told apart. */
enum { MOST_COUNTED = 12 };

/* Tells whether the placements with too many messages to tell apart can prove more than `known`. If not, all parts
 * together cannot either. */
static bool may_gain(graphs *g, seeker *dear, double wanted, double known) {
  int32_t most = MOST_COUNTED + 1;
  while (most > 0 && !seeker_count_messages(dear, most, true))
    most--;
  return most > 0 && seeker_improve(g->s, g->count, &g->m, wanted) > known;
}

/* Divides the placements by the number of messages of a stage. Prices of time mix placements that send different
 * numbers; the parts' prices cannot. Leaves out the moves of caches if they cost nothing at the prices. Ends at a part
 * that proves no more than `known`, since all of them do not then either. */
static double prove_parts(graphs *g, double wanted, double known, size_t effort) {
  seeker *dear = dear_stage(g);
  double target = wanted, reach[WAYS];
  rest_check next = {.bound = -INFINITY};
  if (!(g->s[0].c->move + g->s[0].price[0] > 0)) {
    g->m.ms += g->m.most;
    g->m.most = g->s[0].most = g->s[1].most = 0;
  }
  if (!may_gain(g, dear, wanted, known)) return -INFINITY;
  for (int32_t sent = 0; sent <= MOST_COUNTED; sent++) {
    if (!seeker_count_messages(dear, sent, false)) break;
    memcpy(reach, unknown_reach, sizeof reach);
    target = fmin(target, prove_part(g, target, known, effort, reach));
    if (target <= known) return target;
    if (!seeker_count_messages(dear, sent + 1, true)) {
      if (!seeker_count_messages(dear, sent, true)) return -INFINITY; /* those that send `sent` and more */
      break;
    }
    if (sent < next.sent) continue;
    const double rest = seeker_improve(g->s, g->count, &g->m, target);
    if (rest >= target) return target;
    schedule_next(&next, sent, rest, target);
  }
  memcpy(reach, unknown_reach, sizeof reach);
  return fmin(target, prove_part(g, target, known, effort, reach));
}

/* Tells whether the objective or a limit depends on messages. */
static bool counts_messages(const lp_certificate *c) {
  return c->link[0] > 0 || c->link[1] > 0 || c->limit_ms[0] > 0 || c->limit_ms[1] > 0;
}

/* Searches the stages one by one, briefly and in parts, or at length. `known` and `reach` as those of prove_part. */
static double prove_stages(const lp_certificate *c, double wanted, double known, bool at_length, size_t *left,
                           double reach[WAYS]) {
  const size_t effort =
      at_length ? lp_certificate_effort_of(c)->long_labels : lp_certificate_effort_of(c)->short_labels;
  graphs g = {.count = 2, .m = moves_list(c)};
  double proved = -INFINITY;
  if (seeker_create(c, 1, g.m.most, left, &g.s[0]) && seeker_create(c, 2, g.m.most, left, &g.s[1])) {
    proved = prove_part(&g, wanted, known, effort, reach);
    const bool wants_parts = !at_length && !suffices(c, wanted, fmax(known, proved)) && c->message_ms > 0;
    if (proved < wanted && wants_parts && !(g.has_fronts && !is_tight(c)))
      proved = fmax(proved, prove_parts(&g, wanted, fmax(known, proved), effort));
  }
  release(&g);
  return proved;
}

/* Searches both stages at once; -infinity: their graph is too large. */
static double prove_both(const lp_certificate *c, double wanted, double known, size_t frontiers, size_t *left) {
  lp_certificate_effort effort = *lp_certificate_effort_of(c);
  lp_certificate within = *c;
  graphs g = {.count = 1};
  double proved = -INFINITY;
  if (frontiers < effort.frontiers_in_all) effort.frontiers_in_all = frontiers;
  within.effort = &effort;
  if (seeker_create(&within, 3, 0, left, &g.s[0])) proved = prove_part(&g, wanted, known, effort.long_labels, NULL);
  release(&g);
  return proved;
}

/* Proves a bound of the placements of a room, at least `enough` if it can; one of at most `known` is of no use. A graph
 * of both stages proves the most where memory couples them. Where messages count, it is large, so it comes last unless
 * the model is small, or a brief search of the stages leaves a gap where memory has a price. */
static double prove_room(const lp_certificate *c, double enough, double known, size_t left[2]) {
  enum { FEW_UNITS = 200, FRONTIERS = 3000000 };
  static const double gap = 1e-2; /* a share, up to which a large graph is not worth its time */
  const bool counts = counts_messages(c), tight = is_tight(c);
  const bool is_small = c->stages[0].unit_count + c->stages[1].unit_count <= FEW_UNITS;
  const bool both_first = !counts || (is_small && tight);
  double best = lp_certificate_bound(c), both = -INFINITY, reach[WAYS];
  memcpy(reach, unknown_reach, sizeof reach);
  if (best >= enough) return best;
  if (both_first) both = prove_both(c, enough, fmax(best, known), SIZE_MAX, &left[1]);
  best = fmax(best, both);
  if (best >= enough || (!counts && both > -INFINITY)) return best;
  best = fmax(best, prove_stages(c, enough, fmax(best, known), false, &left[0], reach));
  if (best >= enough || suffices(c, enough, best)) return best;
  const bool is_far = has_price(c) && !both_first && best < enough - gap * fabs(enough);
  if (is_far) both = prove_both(c, enough, fmax(best, known), SIZE_MAX, &left[1]);
  best = fmax(best, both);
  if (best < enough && !(both >= best))
    best = fmax(best, prove_stages(c, enough, fmax(best, known), true, &left[0], reach));
  return best >= enough || both_first || is_far
             ? best
             : fmax(best, prove_both(c, enough, fmax(best, known), FRONTIERS, &left[1]));
}

/* What prices of the stages prove of the placements of a room, at least `enough` if they can. */
static double quick_bound(const lp_certificate *c, double enough) {
  size_t none = 0;
  graphs g = {.count = 2, .m = moves_list(c)};
  double proved = fmax(lp_certificate_bound(c), -INFINITY); /* which may be no number */
  if (proved < enough && seeker_create(c, 1, g.m.most, &none, &g.s[0]) && seeker_create(c, 2, g.m.most, &none, &g.s[1]))
    proved = fmax(proved, seeker_quick_bound(g.s, g.count, &g.m, enough));
  release(&g);
  return proved;
}

/* Drops the rooms that prices prove, and sorts the others: those with the least bounds first. What is proved of these
 * is all that the others need. */
static void sort_rooms(const lp_certificate *c, double enough, rooms *list) {
  size_t kept = 0;
  for (size_t i = 0; i < list->count; i++) {
    const lp_arena_mark mark = lp_arena_here(c->arena);
    lp_certificate within;
    room r = list->data[i];
    r.bound = rooms_restrict(c, &r, &within) ? quick_bound(&within, enough) : INFINITY;
    lp_arena_rewind(c->arena, mark);
    if (r.bound >= enough) continue;
    size_t at = kept++;
    for (; at > 0 && list->data[at - 1].bound > r.bound; at--)
      list->data[at] = list->data[at - 1];
    list->data[at] = r;
  }
  list->count = kept;
}

/* Tells whether the order of rooms is worth a quick bound of each: where a gap is left, the value of the plan itself is
 * wanted, and the room with the least bound decides. */
static bool wants_order(const lp_certificate *c, double enough) {
  return c->value - enough <= lp_certificate_effort_of(c)->rest * fabs(c->value);
}

/* Proves the bounds of all rooms, at least `enough` if it can; ends once it proves at most `known`. */
static double prove_rooms(const lp_certificate *c, double enough, double known) {
  size_t left[] = {lp_certificate_effort_of(c)->all_labels, lp_certificate_effort_of(c)->all_labels};
  LP_OWNED(lp_free_at) rooms list = {0};
  double best = enough;
  rooms_list(c, &list);
  if (list.count > 1 && wants_order(c, enough)) sort_rooms(c, enough, &list);
  for (size_t i = 0; i < list.count && best > known; i++) {
    const lp_arena_mark mark = lp_arena_here(c->arena);
    lp_certificate within;
    if (list.data[i].bound >= best) continue;
    if (rooms_restrict(c, &list.data[i], &within)) best = fmin(best, prove_room(&within, best, known, left));
    lp_arena_rewind(c->arena, mark);
  }
  return best;
}

/* The same problem without the limits of memories that have no price; false when there are none. */
static bool loosen(const lp_certificate *c, lp_certificate *out) {
  bool drops = false;
  *out = *c;
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    if (!(c->limit_bytes[side] > 0) || c->price_bytes[side] > 0) continue;
    out->limit_bytes[side] = 0;
    drops = true;
  }
  return drops;
}

/* Tells whether a search with the limits of memories without a price, after one without them that proved `best`, may
 * raise it much: what lacks a little is due to the limits with prices. */
static bool wants_all_limits(const lp_certificate *c, double wanted, double best) {
  const double far = has_few_units(c) ? 0 : lp_certificate_effort_of(c)->far;
  return best < wanted - fmax(far, CERTIFICATE_ROUNDING) * fabs(wanted);
}

/* A memory without a price hardly binds. Without its limit the stages share less and a search proves more; what it
 * proves holds with the limit. */
double lp_certificate_search_above(const lp_certificate *c, double wanted, double known) {
  const double enough = wanted - CERTIFICATE_ROUNDING * fabs(wanted);
  lp_certificate loose;
  double best = loosen(c, &loose) ? prove_rooms(&loose, enough, known) : -INFINITY;
  if (wants_all_limits(c, enough, best)) best = fmax(best, prove_rooms(c, enough, fmax(known, best)));
  return best >= enough - CERTIFICATE_ROUNDING * fabs(wanted) ? wanted : best;
}

double lp_certificate_search(const lp_certificate *c, double wanted) {
  return lp_certificate_search_above(c, wanted, -INFINITY);
}
