/* Searches all placements by beams through the graph of both stages. Up to LP_EXACT_FEW_UNITS and while no plan is
 * known, placements are divided into subproblems by their largest activations (activation_classes.c), and that with the
 * least bound comes first. In other searches that buys nothing: on the sample below and on small models with
 * tight memory, plans and proved gaps are the same without, in a third of the time. Narrow beams search all of them;
 * wider and wider ones follow where a gap is left, as far as the labels go. Each beam proves a bound. */
#include "passes/plan/exact/subproblems.h"
#include "base/side.h"
#include "passes/plan/exact/beam.h"

#include <math.h>

/* The sample of which this folder says what half or twice of a constant changes are nine cases of the grid: 15, 36, 60,
 * 105, 130, 136, 141, 156 and 192 (tests/bench/constants.py). A plan has changed if its cost has by more than 0.02 %.
 * Half or twice of a constant that says nothing of it changed no plan; tolerances, and sizes of fields and vectors,
 * were not tried.
 *
 * NARROW_BEAM: placements that a narrow beam keeps after each step. BEAM_GROWTH: from one wide beam to the next. Half
 * or twice of the first and half of the second make two plans 0.1 and 0.5 % dearer, at equal time. */
enum { NARROW_BEAM = 300, BEAM_GROWTH = 4 };

/* The width of the one beam for a faster plan within the tolerance. With a tenth, one of three plans of a small model
 * with tight memory is 3 % slower; with seven times as many none is faster, in up to 1.4 times the time. */
enum { FASTER_BEAM = 3000 };

/* The labels that wide beams of all subproblems may make; a label takes 0.1 to 0.3 us. Twice: two plans are 0.1 and
 * 0.5 % cheaper, in 1.15 times the time. */
static const double most_labels = 1.1e7;

/* The most states of a search that is quick or looks for faster plans. On a shape of 7B 3,000,000 took 40 MB and 0.6 s
 * more than 1,000,000. */
static const size_t near_states = 400000;

/* The labels of a beam that is so cheap that it runs although the gap is small. Small problems are proved best by such
 * beams. */
static const double few_labels = 3e5;

/* Shares of the objective: a proved gap after which no wide beam follows, and an improvement that only a cheap beam
 * looks for. gap_far: the gap from which on a wider beam follows one that has found nothing better; twice makes a plan
 * 4 % dearer. */
static const double gap_wanted = 4e-3, gap_ignored = 5e-4, gap_far = 0.05;

/* While no plan is known, the bound at which the search for prices aims, as a multiple of the first bound. At 4 the
 * prices were too low where memory and time are tight: none was found in case 104. */
static const double unknown_aim = 16;

/* The placements of a problem that lacks limits which may break these before the problem is given up: as many as one
 * beam shows. */
enum { MOST_INFEASIBLE = 50 };

typedef struct {
  const lp_exact_subproblems_task *task;
  lp_exact x;
  lp_exact_graph graph[LP_STAGE_COUNT];
  double price[LP_EXACT_LIMITS]; /* the best prices found */
  double lowest;                 /* a bound of its placements; infinite: it has none */
  size_t width;                  /* of the last beam */
  bool is_searched;              /* by wide beams */
} subproblem;

typedef struct {
  const lp_exact_subproblems_task *task;
  LP_VEC(subproblem *) list;
  double labels;  /* that wide beams may still make */
  int infeasible; /* placements found that break a limit which the problem lacks */
} search;

static double incumbent(const lp_exact_subproblems_task *task) {
  return task->incumbent(task->user);
}

/* Tells whether the proved bound is within this share of the objective, or there is no placement. */
static bool is_proved(const subproblem *p, double share) {
  const double known = incumbent(p->task);
  return isinf(p->lowest) || (known < INFINITY && p->lowest >= known - share * fabs(known));
}

/* Tells whether the search finds only placements that break limits which the problem lacks. */
static bool finds_only_infeasible(const search *s) {
  return s->task->is_relaxed && s->infeasible >= MOST_INFEASIBLE && isinf(incumbent(s->task));
}

/* ---- subproblems ------------------------------------------------------------------------------------------------- */

/* Sets the bound of a subproblem at the task's prices; false when it has no placements. */
static bool quick_bound(subproblem *p) {
  const lp_exact *whole = p->task->x;
  lp_cut cut;
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    if (whole->limit_bytes[side] > 0 && !(p->x.limit_bytes[side] > 0)) return false;
  if (!lp_exact_has_room(&p->x)) return false;
  lp_cut_create(&p->x, &cut);
  p->lowest = fmax(p->task->lowest, lp_cut_solve(&cut, p->task->duals));
  return !isinf(p->lowest);
}

static void add_subproblem(search *s, const lp_exact_activation_class *activations) {
  const lp_exact_duals *duals = s->task->duals;
  const double price[] = {duals->per_ms[0], duals->per_ms[1], duals->per_byte[0], duals->per_byte[1],
                          duals->per_objective};
  subproblem *p = LP_NEW(s->task->x->arena, subproblem);
  p->task = s->task;
  memcpy(p->price, price, sizeof price);
  lp_exact_restrict(s->task->x, activations, &p->x);
  if (quick_bound(p)) lp_vec_push(&s->list, p);
}

static int compare_bounds(const void *left, const void *right) {
  const subproblem *const *a = left, *const *b = right;
  return ((*a)->lowest > (*b)->lowest) - ((*a)->lowest < (*b)->lowest);
}

/* ---- beams ------------------------------------------------------------------------------------------------------- */

static void raise_bound(subproblem *p, double bound) {
  p->lowest = fmax(p->lowest, fmin(bound, incumbent(p->task)));
}

/* Tells whether a beam runs although the gap is small. */
static bool is_cheap(const subproblem *p, size_t width) {
  return (double)width * p->x.step_count <= (p->x.step_count <= LP_EXACT_FEW_UNITS ? most_labels : few_labels);
}

/* The improvement, as a share of the objective, that a beam looks for. */
static double least_improvement(const subproblem *p, size_t width) {
  return is_cheap(p, width) ? LP_EXACT_ROUNDING : gap_ignored;
}

static void run_beam(search *s, subproblem *p, lp_beam_bounds *bounds, size_t width, int level) {
  const double known = incumbent(s->task);
  lp_beam_search beam = {.most = isinf(known) ? known : known - least_improvement(p, width) * fabs(known),
                         .width = width,
                         .level = level,
                         .see = s->task->see,
                         .user = s->task->user};
  lp_beam_run(bounds, &beam);
  p->width = width;
  s->infeasible += beam.refused;
  raise_bound(p, beam.lowest);
}

/* Tells whether narrow beams have nothing to find. */
static bool is_finished(const search *s, const subproblem *p) {
  return is_proved(p, least_improvement(p, NARROW_BEAM)) || finds_only_infeasible(s);
}

/* Searches by narrow beams with ever more bounds. */
static void run_narrow_beams(search *s, subproblem *p, lp_beam_bounds *bounds) {
  const size_t width = p->x.limit_objective > 0 ? FASTER_BEAM : NARROW_BEAM;
  for (int level = 0; level < bounds->levels && !is_finished(s, p); level++)
    run_beam(s, p, bounds, width, level);
}

/* Tells whether a beam of this width is worth its time: it is cheap, or a plan is known and a gap is left. */
static bool is_worth(const search *s, const subproblem *p, size_t width) {
  if ((double)width * p->x.step_count > s->labels) return false;
  if (is_cheap(p, width)) return !is_proved(p, LP_EXACT_ROUNDING);
  return !isinf(incumbent(s->task)) && !is_proved(p, gap_wanted);
}

/* Wider and wider beams, as long as they find better plans, cost little or have left a large gap. */
static void run_wide_beams(search *s, subproblem *p, lp_beam_bounds *bounds) {
  bool is_fruitful = true;
  for (size_t width = BEAM_GROWTH * p->width; is_fruitful && is_worth(s, p, width); width *= BEAM_GROWTH) {
    p->is_searched = true;
    const double before = incumbent(s->task), labels = (double)width * p->x.step_count;
    s->labels -= labels;
    run_beam(s, p, bounds, width, bounds->levels - 1);
    is_fruitful = is_cheap(p, width) || !is_proved(p, gap_far) || incumbent(s->task) < (1 - gap_ignored) * before;
  }
}

/* Searches a subproblem by narrow beams, unless it has been searched so before, and by wide ones if a plan is known. */
static void search_one(search *s, subproblem *p) {
  const bool is_first = p->width == 0;
  const double known = incumbent(s->task), enough = isinf(known) ? unknown_aim * fabs(p->lowest) : known;
  lp_exact_states states;
  lp_beam_bounds bounds;
  const size_t most = s->task->is_quick ? near_states : LP_EXACT_MOST_STATES;
  if (lp_exact_states_create(&p->x, p->graph, most, &states)) {
    if (is_first && (!s->task->is_quick || p->x.limit_objective > 0))
      raise_bound(p, lp_exact_states_improve(&states, enough, p->price));
    if (!is_finished(s, p)) {
      lp_beam_bounds_create(&states, p->price, s->task->is_quick ? 1 : LP_BEAM_LEVELS, &bounds);
      if (is_first) run_narrow_beams(s, p, &bounds);
      if (!s->task->is_quick) run_wide_beams(s, p, &bounds);
      lp_beam_bounds_free(&bounds);
    }
  }
  lp_exact_states_free(&states);
}

static void search_narrowly(search *s, subproblem *p) {
  if (is_finished(s, p)) return;
  p->x.arena = lp_arena_create();
  bool has_graphs = true;
  for (int stage = 0; stage < LP_STAGE_COUNT && has_graphs; stage++)
    has_graphs = lp_exact_graph_build(&p->x, (lp_stage)stage, &p->graph[stage]);
  if (has_graphs) search_one(s, p);
}

/* Tells whether all activations are searched at once. */
static bool is_searched_whole(const lp_exact_subproblems_task *task) {
  enum { MOST_UNITS = 400 }; /* bounds the memory, since states grow with the units */
  const int32_t units = task->x->step_count;
  if (task->is_quick) return units > LP_EXACT_FEW_UNITS || !(task->x->limit_objective > 0);
  return units > LP_EXACT_FEW_UNITS && units <= MOST_UNITS && !isinf(incumbent(task));
}

double lp_exact_search_subproblems(const lp_exact_subproblems_task *task) {
  search s = {.task = task, .labels = most_labels * task->share};
  lp_exact_activation_class activations[LP_EXACT_CLASSES];
  const bool is_whole = is_searched_whole(task);
  const int32_t count = is_whole ? 1 : lp_exact_activation_classes(task->x, activations);
  if (is_whole) activations[0] = (lp_exact_activation_class){.high = {INFINITY, INFINITY}};
  for (int32_t i = 0; i < count; i++)
    add_subproblem(&s, &activations[i]);
  if (s.list.count) qsort(s.list.data, s.list.count, sizeof *s.list.data, compare_bounds);
  for (size_t i = 0; i < s.list.count; i++) {
    search_narrowly(&s, s.list.data[i]);
    if (i == 0 && !task->is_relaxed && isinf(incumbent(task))) task->find_any(task->user);
  }
  if (s.list.count) qsort(s.list.data, s.list.count, sizeof *s.list.data, compare_bounds);
  for (size_t i = 0; i < s.list.count && !task->is_quick; i++)
    if (s.list.data[i]->width > 0 && !s.list.data[i]->is_searched &&
        is_worth(&s, s.list.data[i], BEAM_GROWTH * s.list.data[i]->width))
      search_one(&s, s.list.data[i]);
  double proved = incumbent(task);
  for (size_t i = 0; i < s.list.count; i++) {
    proved = fmin(proved, s.list.data[i]->lowest);
    if (s.list.data[i]->x.arena != task->x->arena) lp_arena_free(s.list.data[i]->x.arena);
  }
  lp_vec_free(&s.list);
  return fmax(task->lowest, proved);
}
