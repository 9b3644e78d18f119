/* The exact scheduler's view of a planning problem.
 *
 * A stage is a row of units (operators that lose nothing by running together) in program order. A frontier is the
 * situation between two units: the turn of each value that is still to be read and whether it has crossed, the turns
 * with a message that is paid for, and the sides that hold weights and caches of later units. A stage's graph consists
 * of its frontiers and of two arcs from each, one for each side of the next unit. A placement is a path through it, and
 * the sums along the path are those that lp_plan_evaluate computes. The two stages share holdings: weights, KV caches,
 * memory. */
#pragma once

#include "base/side.h"
#include "passes/plan/objective.h"
#include "passes/plan/plan.h"

/* Values that differ by this share are equal, because sums of times differ with the order of their terms (by 1e-13 or
 * so). */
#define LP_EXACT_ROUNDING 1e-11

/* ---- units and holdings (units.c) -------------------------------------------------------------------------------- */

/* Something that a side holds as soon as one of its users runs there: a weight, the work of a free operator, a group of
 * KV caches. Holdings with the same users are joined into one. */
typedef struct {
  double bytes[LP_SIDE_COUNT];
  double ms[LP_STAGE_COUNT][LP_SIDE_COUNT]; /* of free operators */
  double move_bytes;                        /* KV caches: bytes that move when the stages disagree */
  bool is_state;                            /* KV caches: all users of a stage are on one side */
  /* The first and last unit that uses it; first -1: no unit of that stage. */
  int32_t first[LP_STAGE_COUNT], last[LP_STAGE_COUNT];
  int32_t first_step; /* in the common order of both stages */
} lp_exact_holding;

typedef struct {
  double ms[LP_SIDE_COUNT];
  double activation[LP_SIDE_COUNT]; /* bytes */
  int pin;                          /* the side on which it is pinned, -1: any */
  int32_t *in, *out;                /* values read from other units; values made for other units */
  int32_t *hold;                    /* holdings */
  int32_t in_count, out_count, hold_count;
  bool is_result;
} lp_exact_unit;

typedef struct {
  double bytes;
  int32_t last; /* unit that reads it last, -1: none */
} lp_exact_value;

typedef struct {
  lp_stage stage;
  int32_t unit;
} lp_exact_step;

typedef struct {
  const lp_plan_problem *problem; /* [LP_STAGE_COUNT] */
  const lp_compile_request *request;
  lp_arena *arena;
  lp_exact_unit *unit[LP_STAGE_COUNT];
  int32_t unit_count[LP_STAGE_COUNT];
  int32_t *unit_of[LP_STAGE_COUNT];  /* [op_count], -1 for free operators */
  int32_t *first_op[LP_STAGE_COUNT]; /* [unit_count] */
  lp_exact_value *value[LP_STAGE_COUNT];
  lp_exact_holding *holding;
  int32_t holding_count;
  lp_exact_step *step; /* both stages; units that share weights are neighbours */
  int32_t step_count;
  lp_plan_weights weights;                          /* of the objective */
  lp_plan_weights limited;                          /* of an objective that has a limit */
  double limit_objective, limit_ms[LP_STAGE_COUNT]; /* 0: none */
  double limit_bytes[LP_SIDE_COUNT];                /* 0: no limit, or one so large that it cannot bind */
  double rtt_half, ms_per_byte[LP_SIDE_COUNT];      /* of messages, by the side that sends */
} lp_exact;

/* Puts each operator on the side of the first operator of its unit. */
void lp_exact_join(const lp_exact *x, lp_stage stage, lp_side *side);
/* Does the same for a placement without an lp_exact: views follow their producers. */
void lp_exact_join_views(const lp_plan_problem *problem, lp_arena *scratch, lp_side *side);

void lp_exact_build(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request, lp_arena *arena,
                    lp_exact *out);

/* ---- seeds (blocks.c) -------------------------------------------------------------------------------------------- */

/* In each stage, the operators of the slices [from, to) are on one side, in the cloud or on the device, and all others
 * on the other side. */
typedef struct {
  const int32_t *slice; /* [op] a layer, or a unit */
  int32_t from, to;
  bool cloud;
} lp_exact_block;
/* Called with a pair of blocks, one for each stage, that seems to meet the limits and to have a smaller objective than
 * any known one. Returns the least objective known after it. */
typedef double (*lp_exact_see_blocks)(void *user, const lp_exact_block block[LP_STAGE_COUNT]);
/* Calls back with pairs of blocks of layers, then with changes of the best one by which a border divides a layer.
 * `known` is the least objective known, or infinity. In models of more than 40 layers only every second or third border
 * is tried before the best pair is changed. */
void lp_exact_blocks(const lp_exact *x, double known, lp_exact_see_blocks see, void *user);

/* ---- classes of activations (activation_classes.c) --------------------------------------------------------------- */

enum { LP_EXACT_CLASSES = 12 };
/* The placements that have a largest activation of `low` to `high` bytes on each side. */
typedef struct {
  double low[LP_SIDE_COUNT], high[LP_SIDE_COUNT];
} lp_exact_activation_class;
/* Divides all placements into at most LP_EXACT_CLASSES classes; returns their number. */
int32_t lp_exact_activation_classes(const lp_exact *x, lp_exact_activation_class *out);
/* Makes the problem of the placements of one class: larger activations are pinned to the other side, limits and
 * activations become smaller by those that the class has at least. A limit of at most 0 that `x` has not: the class is
 * empty. */
void lp_exact_restrict(const lp_exact *x, const lp_exact_activation_class *activations, lp_exact *out);

/* False when the two memories together have no room for all holdings. Each is at least on the sides on which users are
 * pinned, and on one side; here it may be divided, so true proves nothing. */
bool lp_exact_has_room(const lp_exact *x);

/* ---- frontiers (graph.c) ----------------------------------------------------------------------------------------- */

/* One unit on one side. The time is the unit's and that of the fresh holdings. */
typedef struct {
  double link_ms;
  int32_t to;     /* the frontier after the unit, -1: not allowed */
  uint32_t fresh; /* bit k: the side did not hold the unit's holding k before */
} lp_exact_arc;

typedef struct {
  lp_exact_arc (**arc)[LP_SIDE_COUNT]; /* arc[unit][frontier][side]; only frontier 0 exists before unit 0 */
  int32_t *count;                      /* [unit_count + 1] frontiers before each unit */
} lp_exact_graph;

/* False when there are too many frontiers, as in a stage that is not a chain of layers. */
bool lp_exact_graph_build(const lp_exact *exact, lp_stage stage, lp_exact_graph *out);

/* ---- the fastest placement (fastest.c) --------------------------------------------------------------------------- */

/* The time of a unit on a side and of the holdings that are fresh there. */
double lp_exact_arc_ms(const lp_exact *x, lp_stage stage, const lp_exact_unit *unit, int side, uint32_t fresh);
/* Fills the sides of the fastest placement of each stage by itself, and its time. False when pins contradict each
 * other. */
bool lp_exact_find_fastest(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT],
                           unsigned char *const side[LP_STAGE_COUNT], double ms[LP_STAGE_COUNT]);

/* ---- prices of the limits ---------------------------------------------------------------------------------------- */

/* Objective per ms of a stage, per byte on a side, per unit of the limited objective; never negative. */
typedef struct {
  double per_ms[LP_STAGE_COUNT], per_byte[LP_SIDE_COUNT], per_objective;
} lp_exact_duals;
