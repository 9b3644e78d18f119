/* Searches the placements of a model with many layers: part by part, those with the least bounds first. Beams through
 * the graph of both stages find good placements at once. Where the stages by themselves have better bounds, where a
 * model is short or no placement is known, passes along a chain of segments follow. They look for placements ever
 * farther above the bound, with ever more labels. Each proves a bound. */
#include "passes/plan/exact/parts.h"
#include "base/side.h"
#include "passes/plan/exact/beam.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The most passes of a part; the labels that a segment keeps in the first pass, at most, in a pass without tolerance,
 * and in a dive. */
enum { MOST_PASSES = 16, FIRST_LABELS = 300, MOST_LABELS = 19200, LAST_LABELS = 4800, DIVE_LABELS = 100 };
/* The passes of a dive that may find no feasible placement while none is known. MOST_REFUSED: the placements of a
 * problem that lacks limits which may break these before the problem is given up. */
enum { MOST_BLIND = 6, MOST_REFUSED = 50 };
/* The placements that beams keep after each step. */
enum { NARROW_BEAM = 300, WIDE_BEAM = 1200, BEAM_GROWTH = 3, WIDEST_BEAM = 3600 };
/* The most work of all passes, in some ns each; close_work holds once the gap of a part is close. A part has at least
 * least_share of all. After a pass with little work the next one aims farther. */
static const double most_work = 4e8, close_work = 1e8, little_work = 1e7, least_share = 1.0 / 6;
/* The most work of a part while no placement is known: it is searched again when one is. */
static const double blind_work = 6e7;
/* The work of all parts together after which no part is searched any more, and that of a dive. */
static const double all_work = 1.5e9, dive_work = 3e8;
/* The same where memory does not bind, and labels are nearly all of the work. */
static const double label_work = 2.4e8, close_label_work = 2e7;
/* The labels that the wide beams of all parts may make, less those of the narrow ones. */
static const double beam_work = 1.2e7;

/* Shares of the objective. gap_wanted: a proved gap after which no pass follows; gap_ignored: improvements that a pass
 * need not look for; label_step: the difference between labels of which one is kept; first_reach: the distance above
 * the bound at which the first pass aims, half of it where memory binds, because bounds are tighter there. */
static const double gap_wanted = 4e-3, gap_ignored = 5e-4, label_step = 2e-5, first_reach = 0.02;

/* A difference of rounding, as a share. */
static const double rounding = 1e-11;

/* gap_hopeless: the gap of a part from which on a second search would hardly close it. */
static const double gap_hopeless = 0.2;

/* gap_far: the gap from which on the search dives; dive_step: the difference between labels of which a dive keeps one;
 * dive_reach: the distance above the bound at which its first pass aims. rough_step: as dive_step, of a rough pass.
 * rough_reach: the growth of the aim after which a rough pass is worth repeating. */
static const double gap_far = 0.05, dive_step = 3e-3, dive_reach = 0.1, rough_step = 1e-3, rough_reach = 1.02;

/* MOST_DIVIDED: the most parts that are divided by the number of their messages. MOST_COUNTED: the greatest number that
 * is told apart. dear_message: the price of a message, as a share of the objective, from which on they are counted. */
enum { MOST_DIVIDED = 40, MOST_COUNTED = 10 };
static const double dear_message = 5e-3;
/* The work of a part with counted messages: of its passes without joint bounds, and of all passes at least. */
static const double plain_work = 4e7, counted_work = 1e8;

/* A part of the placements. */
typedef struct {
  const lp_exact_parts_task *task;
  lp_exact x;
  lp_exact_graph graph[LP_STAGE_COUNT];
  lp_exact_prices *prices, *divided;   /* divided: as the cut divides them */
  double bound;                        /* of its placements; infinite: it has none */
  bool has_graphs;                     /* cleared when its frontiers are too many */
  bool has_states;                     /* the graph of both stages was searched */
  bool waits;                          /* and wide beams have not searched it yet */
  double state_price[LP_EXACT_LIMITS]; /* the best prices of that graph */
  double *left;                        /* the labels that wide beams of all parts may still make; borrowed */
  bool is_whole[LP_STAGE_COUNT];       /* dividing it by the messages of the stage does not help */
  /* While it is searched. */
  lp_exact_chain *chain;
  const lp_exact_prices *coupled, *pruning;
  double lowest; /* the bound proved; `bound` is the one by prices and fronts */
  double reach, work, most_work, close_work;
  double hurried; /* the aim before the last rough pass */
  size_t width;
  int refused;  /* placements found that are not feasible */
  double known; /* the objective known after its search */
} part;

/* Tells whether memory can bind. */
static bool is_tight(const lp_exact *x) {
  return x->limit_bytes[LP_SIDE_DEVICE] > 0 || x->limit_bytes[LP_SIDE_CLOUD] > 0;
}

static double known_objective(const part *p) {
  return p->task->known(p->task->user);
}

/* Tells whether the proved bound is within this share of the objective. */
static bool is_proved(const part *p, double share) {
  double known = known_objective(p);
  return p->lowest >= known - share * fabs(known);
}

/* Tells whether the search finds only placements that break limits which the problem lacks. */
static bool is_vain(const part *p) {
  return p->task->is_loose && p->refused >= MOST_REFUSED && isinf(known_objective(p));
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

/* Runs a search along the chain, and counts the placements that are refused. */
static void run_chain(part *p, lp_exact_chain_search *search) {
  lp_exact_chain_run(p->chain, p->coupled, search);
  p->refused += search->refused;
}

static lp_exact_chain_search next_search(const part *p) {
  double known = known_objective(p), scale = fmax(fabs(p->bound), isinf(known) ? 0 : 1e-3 * fabs(known));
  double aim = fmin(known, p->bound + p->reach * scale);
  return (lp_exact_chain_search){.most = aim,
                                 .greatest = isinf(known) ? aim : known,
                                 .close = gap_ignored,
                                 .step = label_step * fabs(aim),
                                 .width = p->width,
                                 .most_work = p->task->share < 1 ? fmax(p->most_work - p->work, 1) : 0,
                                 .listing = p->prices,
                                 .pruning = p->pruning,
                                 .see = p->task->see,
                                 .user = p->task->user};
}

/* Notes what a pass proved; true when no other is needed or allowed. */
static bool note_pass(const lp_exact_chain_search *search, part *p) {
  double known = known_objective(p), aim = search->most, before = p->lowest;
  p->lowest = fmax(p->lowest, fmin(search->lowest, known));
  if (!isinf(search->least)) p->bound = fmax(p->bound, search->least);
  p->work += search->work;
  if (is_proved(p, gap_wanted)) return true;
  if (p->work > (is_proved(p, LP_EXACT_GAP_CLOSE) ? p->close_work : p->most_work)) return true;
  bool covered = search->lowest >= aim - gap_wanted * fabs(aim), widest = p->width >= MOST_LABELS;
  if (widest && search->lowest < before && is_tight(&p->x)) return true; /* and so would passes that aim farther */
  if (covered || (widest && known > aim))
    p->reach *= isinf(known) ? 6 : search->least >= aim || search->work < little_work ? 3 : 1.6;
  else if (widest)
    return true;
  else
    p->width *= 4;
  return false;
}

/* With the modes of the last pass, looks for any placement better than the best one. */
static void hurry(part *p, const lp_exact_chain_search *last) {
  bool helps = is_tight(&p->x) && last->least < last->most && last->most > p->hurried;
  if (!helps || is_proved(p, LP_EXACT_GAP_CLOSE)) return;
  double known = known_objective(p);
  lp_exact_chain_search search = next_search(p);
  search.most = isinf(known) ? 2 * last->most : known;
  search.width = FIRST_LABELS;
  search.step = rough_step * fabs(search.most);
  search.rough = true;
  run_chain(p, &search);
  p->work += search.work;
  p->hurried = rough_reach * last->most;
}

/* Runs passes with few labels at ever greater objectives, as far as the work of a dive goes; one label replaces all
 * that are nearly as good. They find a placement where the bound is far below all placements, and prove nothing. */
static void dive(part *p) {
  const double most = p->work + dive_work;
  int blind = 0;
  p->width = DIVE_LABELS;
  for (p->reach = dive_reach; p->reach < 1e3 && p->bound > 0 && p->work < most; p->reach *= 2) {
    lp_exact_chain_search search = next_search(p);
    search.step = dive_step * fabs(search.most);
    search.slur = dive_step;
    run_chain(p, &search);
    p->work += search.work;
    blind += isinf(known_objective(p));
    if (search.most >= known_objective(p) || blind >= MOST_BLIND || is_vain(p)) return;
  }
}

/* Looks for each better placement, however little better. */
static void finish(part *p) {
  p->width = LAST_LABELS;
  p->reach = INFINITY;
  lp_exact_chain_search search = next_search(p);
  search.close = rounding;
  search.step = 0;
  run_chain(p, &search);
  p->lowest = fmax(p->lowest, fmin(search.lowest, known_objective(p)));
}

/* Tells whether the number of messages is limited. */
static bool counts_messages(const lp_exact *x) {
  return x->least_messages[0] > 0 || x->least_messages[1] > 0 || x->most_messages[0] >= 0 || x->most_messages[1] >= 0;
}

/* Passes without joint bounds, as long as they cost little. Where the number of messages is fixed, fronts are good
 * bounds. Returns true when no other pass is needed. */
static bool run_plain_passes(part *p) {
  for (int pass = 0; pass < MOST_PASSES && p->work < plain_work && !is_proved(p, gap_wanted); pass++) {
    lp_exact_chain_search search = next_search(p);
    search.plain = true;
    run_chain(p, &search);
    if (note_pass(&search, p)) break;
  }
  p->reach = first_reach / 2;
  p->width = FIRST_LABELS;
  return is_proved(p, gap_wanted);
}

static void run_passes(part *p) {
  bool done = isinf(p->bound) || is_proved(p, gap_wanted);
  if (counts_messages(&p->x)) done = run_plain_passes(p);
  for (int pass = 0; pass < MOST_PASSES && !done && !is_vain(p); pass++) {
    lp_exact_chain_search search = next_search(p);
    run_chain(p, &search);
    done = note_pass(&search, p);
    hurry(p, &search);
  }
}

/* Where memory does not bind, the stages share caches only, and the price of these makes fronts of both stages good
 * bounds. Improves `prices` and returns the bound by fronts. */
static double couple(part *p, bool price_decode, lp_exact_prices *prices) {
  lp_exact_prices *pruning = lp_exact_prices_create(&p->x);
  double bound = lp_exact_couple(p->chain, known_objective(p), p->task->duals, price_decode, prices, pruning);
  p->coupled = prices;
  p->pruning = pruning;
  p->bound = fmax(p->bound, bound);
  p->lowest = fmax(p->lowest, fmin(p->bound, known_objective(p)));
  return bound;
}

/* Without a price of decode's time the points of a front differ most, so that joining some of them costs most. Where
 * sides change often, that is more than what a price mixes: where a gap is left and a price gives a greater bound than
 * `by_fronts`, searches with it too. `of_cuts` are prices of minimum cuts. */
static void search_priced(part *p, double by_fronts, lp_exact_prices *of_cuts) {
  if (is_proved(p, LP_EXACT_GAP_CLOSE) || is_vain(p) || couple(p, true, of_cuts) <= by_fronts) return;
  p->most_work += p->work;
  p->reach = first_reach;
  p->width = FIRST_LABELS;
  run_passes(p);
}

/* Looks below the best placement with ever more labels that differ ever less, as long as that finds a much better one.
 * Its work does not shorten the search of other parts. */
static void deepen(part *p) {
  double before = INFINITY, step = dive_step, work = 0;
  p->width = 2 * DIVE_LABELS;
  while (known_objective(p) < (1 - gap_wanted) * before && work < all_work) {
    before = known_objective(p);
    step /= 2;
    p->width *= 2;
    lp_exact_chain_search search = next_search(p);
    search.most = before;
    search.step = step * fabs(before);
    search.slur = step;
    run_chain(p, &search);
    work += search.work;
  }
}

static void dive_if_far(part *p, double work) {
  bool is_far = isinf(known_objective(p)) || (work <= 0 && !is_proved(p, gap_far));
  if (isinf(p->bound) || !is_far || is_vain(p)) return;
  const double before = known_objective(p);
  dive(p);
  if (known_objective(p) < before) deepen(p);
}

/* Searches a part in which memory does not bind. `work`: what the search of the parts before it took. */
static void search_coupled(part *p, double work) {
  lp_exact_prices *of_cuts = lp_exact_prices_create(&p->x);
  lp_exact_prices_copy(&p->x, p->divided, of_cuts);
  const double by_fronts = couple(p, false, p->divided);
  run_passes(p);
  dive_if_far(p, work);
  search_priced(p, by_fronts, of_cuts);
}

/* Tells whether a part has few segments, so that it is searched to the end. */
static bool is_short(const part *p) {
  return lp_exact_chain_length(p->chain) <= LP_EXACT_SHORT_CHAIN;
}

/* Searches a part; `work` is that of the parts before it. */
static void search_part(part *p, double work) {
  p->bound = fmax(p->bound, p->lowest);
  p->lowest = fmax(p->lowest, fmin(p->bound, known_objective(p)));
  if (is_proved(p, is_short(p) ? rounding : gap_wanted)) return;
  p->work = 0;
  p->hurried = 0;
  p->coupled = p->pruning = p->prices;
  const double most = most_work * p->task->share;
  p->most_work =
      is_tight(&p->x) ? fmax(most - work, most * least_share) : label_work / (p->has_states && !is_short(p) ? 2 : 1);
  if (counts_messages(&p->x)) p->most_work = fmax(p->most_work, counted_work);
  if (isinf(known_objective(p))) p->most_work = fmin(p->most_work, blind_work);
  p->close_work = is_tight(&p->x) ? close_work : close_label_work;
  p->reach = is_tight(&p->x) ? first_reach / 2 : first_reach;
  p->width = FIRST_LABELS;
  if (is_tight(&p->x)) {
    run_passes(p);
    dive_if_far(p, work);
  } else {
    search_coupled(p, work);
  }
  double known = known_objective(p);
  if (isinf(known) || p->lowest >= known || p->work > p->most_work) return;
  if (is_short(p)) finish(p);
}

/* ---- the graph of both stages ------------------------------------------------------------------------------------ */

/* Runs a beam. Takes the labels that it may make off those that are left. */
static void run_beam(part *p, lp_beam_bounds *bounds, size_t width, int level) {
  lp_beam_search search = {.most = (1 - gap_ignored) * known_objective(p),
                           .width = width,
                           .level = level,
                           .see = p->task->see,
                           .user = p->task->user};
  lp_beam_run(bounds, &search);
  *p->left -= (double)width * p->x.step_count;
  p->refused += search.refused;
  p->lowest = fmax(p->lowest, fmin(search.lowest, known_objective(p)));
}

/* Searches by narrow beams with ever more bounds. */
static void run_narrow_beams(part *p, lp_beam_bounds *bounds) {
  const double width = (double)NARROW_BEAM * fmin(1, p->task->share / LP_EXACT_KNOWN_SHARE);
  for (int level = 0; level < bounds->levels; level++)
    if (!is_proved(p, gap_ignored) && !is_vain(p)) run_beam(p, bounds, 1 + (size_t)width, level);
}

/* Searches by ever wider beams as long as labels are left. The widest one is for the part with the least bound, as long
 * as its gap is not close. */
static void run_wide_beams(part *p, lp_beam_bounds *bounds, bool is_least) {
  for (size_t width = WIDE_BEAM; width <= WIDEST_BEAM; width *= BEAM_GROWTH) {
    const bool is_last = width == WIDEST_BEAM, suffices = is_proved(p, is_last ? LP_EXACT_GAP_CLOSE : gap_wanted);
    if (suffices || is_vain(p) || (is_last && !is_least)) return;
    if (*p->left < (double)width * (double)p->x.step_count) return;
    run_beam(p, bounds, width, bounds->levels - 1);
  }
}

/* Searches the graph of both stages for the first time, if it is not too large. Wide beams wait where other searches
 * may do better: for a placement that other parts may have, or for fronts, which are good bounds where memory does not
 * bind. */
static void search_states(part *p, bool is_least) {
  lp_exact_states states;
  p->lowest = fmax(p->lowest, fmin(p->bound, known_objective(p)));
  if (is_proved(p, gap_ignored)) return;
  p->has_states = lp_exact_states_create(&p->x, p->graph, &states);
  if (p->has_states) {
    const lp_exact_duals *duals = &p->prices->duals;
    const double price[] = {duals->per_ms[0], duals->per_ms[1], duals->per_byte[0], duals->per_byte[1]};
    const double known = known_objective(p), enough = isinf(known) ? 4 * fabs(p->bound) : known;
    memcpy(p->state_price, price, sizeof price);
    p->bound = fmax(p->bound, lp_exact_states_improve(&states, enough, p->state_price));
    p->lowest = fmax(p->lowest, fmin(p->bound, known));
    if (!isinf(p->bound) && !is_proved(p, gap_ignored)) {
      lp_beam_bounds bounds;
      lp_beam_bounds_create(&states, p->state_price, &bounds);
      run_narrow_beams(p, &bounds);
      p->waits = isinf(known_objective(p)) || (!is_tight(&p->x) && !is_proved(p, LP_EXACT_GAP_CLOSE));
      if (!p->waits) run_wide_beams(p, &bounds, is_least);
      lp_beam_bounds_free(&bounds);
    }
  }
  lp_exact_states_free(&states);
}

/* Searches the graph of both stages by the wide beams that have waited. */
static void search_widely(part *p, bool is_least) {
  lp_exact_states states;
  lp_beam_bounds bounds;
  const bool wants = p->waits && !is_proved(p, is_tight(&p->x) ? gap_wanted : LP_EXACT_GAP_CLOSE);
  p->waits = false;
  if (!wants) return;
  if (lp_exact_states_create(&p->x, p->graph, &states)) {
    lp_beam_bounds_create(&states, p->state_price, &bounds);
    run_wide_beams(p, &bounds, is_least);
    lp_beam_bounds_free(&bounds);
  }
  lp_exact_states_free(&states);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* Tells whether a part can have a placement that meets its limits, each by itself. */
static bool can_meet(part *p) {
  const lp_exact *whole = p->task->x;
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (whole->limit_bytes[side] > 0 && !(p->x.limit_bytes[side] > 0)) return false;
  if (!lp_exact_has_room(&p->x)) return false;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (!lp_exact_graph_build(&p->x, (lp_stage)stage, &p->graph[stage])) {
      p->has_graphs = false;
      return false;
    }
  if (!lp_exact_fastest(&p->x, p->graph, p->prices)) return false;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    if (p->x.limit_ms[stage] > 0 && p->prices->potential[stage][0][0] > p->x.limit_ms[stage]) return false;
  return true;
}

/* Raises the bound of a part by its prices. */
static void climb(part *p) {
  double known = known_objective(p);
  lp_exact_level(&p->x, p->graph, isinf(known) ? 4 * fabs(lp_exact_least(&p->x, p->prices)) : known, p->prices);
}

/* Makes the bound of a part by shortest paths; `lowest` is a bound of a larger part. */
static void bound_part(double lowest, part *p) {
  const lp_exact_parts_task *task = p->task;
  p->bound = INFINITY;
  p->prices = lp_exact_prices_create(&p->x);
  if (!can_meet(p)) return;
  p->prices->duals = *task->duals;
  lp_cut_divide(task->cut, p->prices);
  p->divided = lp_exact_prices_create(&p->x);
  lp_exact_prices_copy(&p->x, p->prices, p->divided);
  lp_exact_chain_level(&p->x, p->prices);
  lp_exact_solve_prices(&p->x, p->graph, p->prices);
  const double least = lp_exact_least(&p->x, p->prices);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    lp_exact_best_stage(&p->x, p->graph, (lp_stage)stage, task->watch, p->prices);
  if (lp_exact_least(&p->x, p->prices) < least) { /* its search is short */
    memcpy(p->prices->duals.per_ms, task->duals->per_ms, sizeof p->prices->duals.per_ms);
    lp_exact_solve_prices(&p->x, p->graph, p->prices);
  }
  if (is_tight(&p->x)) climb(p);
  p->bound = fmax(lowest, lp_exact_least(&p->x, p->prices));
}

/* The time of a message of average size. */
static double message_ms(const lp_exact *x, int stage) {
  double bytes = 0, count = 0;
  for (int32_t i = 0; i < x->problem[stage].value_count; i++) {
    if (x->value[stage][i].last < 0) continue;
    bytes += x->value[stage][i].bytes;
    count++;
  }
  return x->rtt_half + (count > 0 ? bytes / count : 0) * fmin(x->ms_per_byte[0], x->ms_per_byte[1]);
}

/* The stage with the dearest messages, if they are dear and are not counted yet; -1: none. */
static int stage_to_count(const part *p) {
  double dearest = dear_message * known_objective(p);
  int best = -1;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    double price = (p->x.weights.link[stage] + p->prices->duals.per_ms[stage]) * message_ms(&p->x, stage);
    if (p->x.most_messages[stage] >= 0 || p->is_whole[stage] || price < dearest) continue;
    dearest = price;
    best = stage;
  }
  return best;
}

/* ---- the list of parts ------------------------------------------------------------------------------------------- */

typedef LP_VEC(part *) parts;

/* Makes a part of `x` with its bound, in an arena of its own; `lowest` is a bound of it. */
static part *make_part(const lp_exact_parts_task *task, const lp_exact *x, double lowest) {
  part *p = LP_NEW(task->x->arena, part);
  *p = (part){.task = task, .x = *x, .has_graphs = true, .lowest = task->lowest};
  p->x.arena = lp_arena_create();
  bound_part(lowest, p);
  return p;
}

static void drop_part(part *p) {
  lp_arena_free(p->x.arena);
  p->x.arena = NULL;
}

/* Adds a part, or drops it if it has no placements. */
static void add_part(parts *list, part *p) {
  if (isinf(p->bound))
    drop_part(p);
  else
    lp_vec_push(list, p);
}

/* Tells whether the stage's limit has no time for more than MOST_COUNTED messages. */
static bool allows_few(const lp_exact *x, int stage) {
  return x->limit_ms[stage] > 0 && x->limit_ms[stage] < (double)MOST_COUNTED * x->rtt_half;
}

/* Divides a part by the number of messages that a stage sends. False when that does not help: placements with more
 * messages have hardly a greater bound. Where all numbers are few, each gets its part, since the last ones often have
 * the least bound. */
static bool divide_by_messages(parts *list, part *p, int stage) {
  size_t before = list->count;
  double known = known_objective(p), gain = dear_message * known;
  part *rest = p;
  while (rest->x.least_messages[stage] < MOST_COUNTED && rest->bound < known) {
    lp_exact few = rest->x, more = rest->x;
    few.most_messages[stage] = few.least_messages[stage];
    more.least_messages[stage]++;
    part *child = make_part(p->task, &few, p->bound), *other = make_part(p->task, &more, rest->bound);
    bool fits = child->has_graphs && other->has_graphs;
    bool gains = isinf(child->bound) || other->bound >= rest->bound + gain || allows_few(&p->x, stage);
    if (!fits || !gains) {
      drop_part(child);
      drop_part(other);
      break;
    }
    add_part(list, child);
    if (rest != p) drop_part(rest);
    rest = other;
  }
  p->is_whole[stage] = rest->bound < p->bound + gain;
  rest->is_whole[stage] = true;
  if (!p->is_whole[stage]) {
    add_part(list, rest);
    return true;
  }
  while (list->count > before)
    drop_part(list->data[--list->count]);
  if (rest != p) drop_part(rest);
  return false;
}

/* Divides a part by the messages of the stage with the dearest ones. False where that is not worth its time: memory
 * does not bind, so that fronts of the whole part are good bounds, or beams left only a small gap. */
static bool divide_part(parts *list, part *p) {
  if (!is_tight(&p->x) || (p->has_states && is_proved(p, LP_EXACT_GAP_CLOSE))) return false;
  for (int stage = stage_to_count(p); stage >= 0; stage = stage_to_count(p))
    if (divide_by_messages(list, p, stage)) return true;
  return false;
}

/* Takes the part with the least bound out of the list. */
static part *take_part(parts *list) {
  size_t least = 0;
  for (size_t i = 1; i < list->count; i++)
    if (list->data[i]->bound < list->data[least]->bound) least = i;
  part *p = list->data[least];
  list->data[least] = list->data[--list->count];
  return p;
}

/* Tells whether a chain may find what the graph of both stages does not: where memory does not bind, its fronts of the
 * stages are good bounds, and a short one proves its plan. */
static bool wants_chain(const part *p) {
  return !p->has_states || !is_tight(&p->x) || is_short(p) || isinf(known_objective(p));
}

static void search_chain(part *p, double work) {
  p->chain = lp_exact_chain_create(&p->x, p->graph);
  if (p->chain && wants_chain(p)) search_part(p, work);
  lp_exact_chain_free(p->chain);
  search_widely(p, true);
  p->known = known_objective(p);
}

/* Searches parts again that are not proved and that were searched while a worse placement, or none, was known; `done`
 * is the work of the parts so far. Returns a bound of all. Drops the parts. */
static double search_again(parts *list, double done) {
  double proved = INFINITY, work = 0;
  for (size_t i = 0; i < list->count; i++) {
    part *p = list->data[i];
    bool is_late = known_objective(p) < p->known * (1 - gap_wanted);
    if (!is_proved(p, gap_wanted) && is_late && done + work < all_work * p->task->share) {
      if (is_tight(&p->x)) climb(p);
      p->bound = fmax(p->bound, lp_exact_least(&p->x, p->prices));
      p->lowest = fmax(p->lowest, fmin(p->bound, known_objective(p)));
      if (is_proved(p, gap_hopeless)) search_chain(p, work);
      work += p->work;
    }
    proved = fmin(proved, p->lowest);
    drop_part(p);
  }
  lp_vec_free(list);
  return proved;
}

static int compare_parts(const void *left, const void *right) {
  const part *const *a = left, *const *b = right;
  return ((*a)->bound > (*b)->bound) - ((*a)->bound < (*b)->bound);
}

/* Searches the graphs of both stages of all parts, those with the least bounds first. `left`: the labels that wide
 * beams may make. */
static void search_all_states(parts *list, double *left) {
  if (list->count) qsort(list->data, list->count, sizeof *list->data, compare_parts);
  for (size_t i = 0; i < list->count && !(i > 0 && is_vain(list->data[i - 1])); i++) {
    list->data[i]->left = left;
    search_states(list->data[i], i == 0);
  }
  for (size_t i = 0; i < list->count; i++)
    if (is_tight(&list->data[i]->x)) search_widely(list->data[i], i == 0);
}

/* Searches the parts of the list, those with the least bounds first; returns a bound of them. Parts that were divided
 * are searched whole where a gap remains, because that search may find other placements. */
static double search_list(parts *list, const lp_exact_parts_task *task) {
  double proved = INFINITY, work = 0, left = beam_work * task->share;
  bool vain = false;
  parts whole = {0}, open = {0};
  search_all_states(list, &left);
  for (int taken = 0; list->count; taken++) {
    part *p = take_part(list);
    p->lowest = fmax(p->lowest, fmin(p->bound, known_objective(p)));
    if (taken < MOST_DIVIDED && !is_proved(p, gap_wanted) && divide_part(list, p)) {
      if (counts_messages(&p->x))
        drop_part(p);
      else
        lp_vec_push(&whole, p);
      continue;
    }
    p->known = known_objective(p);
    if (work < all_work * task->share && !vain) search_chain(p, work);
    work += p->work;
    vain = vain || is_vain(p);
    if (is_proved(p, gap_wanted)) {
      proved = fmin(proved, p->lowest);
      drop_part(p);
    } else {
      lp_vec_push(&open, p);
    }
  }
  proved = fmin(proved, search_again(&open, work));
  for (size_t i = 0; i < whole.count; i++) {
    double known = known_objective(whole.data[i]);
    if (work < all_work * task->share && !vain && proved < known - LP_EXACT_GAP_CLOSE * fabs(known))
      search_chain(whole.data[i], 0);
    work += whole.data[i]->work;
    drop_part(whole.data[i]);
  }
  lp_vec_free(&whole);
  return proved;
}

double lp_exact_search_parts(const lp_exact_parts_task *task) {
  lp_exact_room room[LP_EXACT_ROOMS];
  int32_t count = lp_exact_rooms(task->x, room);
  parts list = {0};
  bool fits = true;
  for (int32_t i = 0; i < count && fits; i++) {
    lp_exact x;
    lp_exact_restrict(task->x, &room[i], &x);
    part *p = make_part(task, &x, task->lowest);
    fits = p->has_graphs;
    add_part(&list, p);
  }
  double proved = fits ? search_list(&list, task) : task->lowest;
  while (list.count)
    drop_part(list.data[--list.count]);
  lp_vec_free(&list);
  return fmax(task->lowest, fmin(proved, task->known(task->user)));
}
