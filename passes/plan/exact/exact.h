/* The exact scheduler's view of a planning problem.
 *
 * A stage is a row of units (operators that lose nothing by running together) in program order. A frontier is the
 * situation between two units: the turn of each value that is still to be read and whether it has crossed, the turns
 * with a message that is paid for, and the sides that hold weights and caches of later units. A stage's graph consists
 * of its frontiers and of two arcs from each, one for each side of the next unit. A placement is a path through it, and
 * the sums along the path are those that lp_plan_evaluate computes. The two stages share holdings: weights, KV caches,
 * memory. */
#ifndef LP_PLAN_EXACT_H
#define LP_PLAN_EXACT_H

#include "base/side.h"
#include "passes/plan/objective.h"
#include "passes/plan/plan.h"

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
  int32_t first_step, last_step; /* in the common order of both stages */
} lp_exact_holding;

/* Tells whether two holdings are of one kind, as those of equal layers are. */
bool lp_exact_are_alike(const lp_exact_holding *a, const lp_exact_holding *b);

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
  lp_plan_weights weights;                     /* of the objective */
  double limit_ms[LP_STAGE_COUNT];             /* 0: none */
  double limit_bytes[LP_SIDE_COUNT];           /* 0: no limit, or one so large that it cannot bind */
  double rtt_half, ms_per_byte[LP_SIDE_COUNT]; /* of messages, by the side that sends */
  /* The messages that a stage sends, without those that move caches; most -1: any number. */
  int32_t least_messages[LP_STAGE_COUNT], most_messages[LP_STAGE_COUNT];
} lp_exact;

/* Puts each operator on the side of the first operator of its unit. */
void lp_exact_join(const lp_exact *x, lp_stage stage, lp_side *side);
/* Does the same for a placement without an lp_exact: views follow their producers. */
void lp_exact_join_views(const lp_plan_problem *problem, lp_arena *scratch, lp_side *side);

void lp_exact_build(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request, lp_arena *arena,
                    lp_exact *out);

/* ---- exact sums (exact_sums.c) ----------------------------------------------------------------------------------- */

/* Powers of two, by stage and for the objective: sums of their multiples are exact, so equal choices in another order
 * have equal sums. 0: a quantity stays as it is. */
typedef struct {
  double ms[LP_STAGE_COUNT], objective;
} lp_exact_grids;
lp_exact_grids lp_exact_grids_of(const lp_exact *x);
/* The nearest multiple. */
double lp_exact_on_grid(double value, double grid);

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

/* ---- parts (rooms.c) --------------------------------------------------------------------------------------------- */

enum { LP_EXACT_ROOMS = 12 };
/* The placements that have a largest activation of `low` to `high` bytes on each side. */
typedef struct {
  double low[LP_SIDE_COUNT], high[LP_SIDE_COUNT];
} lp_exact_room;
/* Divides all placements into at most LP_EXACT_ROOMS rooms; returns their number. */
int32_t lp_exact_rooms(const lp_exact *x, lp_exact_room *out);
/* Makes the problem of the placements of one room: larger activations are pinned to the other side, limits and
 * activations become smaller by those that the room has at least. A limit of at most 0 that `x` has not: the room is
 * empty. */
void lp_exact_restrict(const lp_exact *x, const lp_exact_room *room, lp_exact *out);

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

/* ---- bounds (bound.c) -------------------------------------------------------------------------------------------- */

/* The prices of the limits: objective per ms of a stage, per byte on a side; never negative. */
typedef struct {
  double per_ms[LP_STAGE_COUNT], per_byte[LP_SIDE_COUNT];
} lp_exact_duals;

/* All prices at given duals, and the shortest path of each stage. */
typedef struct {
  lp_exact_duals duals;
  double busy[LP_STAGE_COUNT][LP_SIDE_COUNT], link[LP_STAGE_COUNT]; /* per ms */
  /* [holding] the share of its price that each stage pays; the shares of both stages sum to 1. */
  double *share[LP_STAGE_COUNT][LP_SIDE_COUNT];
  /* [holding] the price that prefill pays and decode receives for KV caches on the device, at most the cost of moving
   * them. */
  double *residence;
  double **potential[LP_STAGE_COUNT];                             /* [unit][frontier] least price to the end */
  unsigned char *side[LP_STAGE_COUNT];                            /* [unit] along the shortest path */
  double path_ms[LP_STAGE_COUNT], path_objective[LP_STAGE_COUNT]; /* of the shortest paths, without prices */
  unsigned char *met[LP_STAGE_COUNT]; /* [unit] the last path that met the stage's bound on time */
  bool has_met[LP_STAGE_COUNT];
} lp_exact_prices;

lp_exact_prices *lp_exact_prices_create(const lp_exact *x);
/* Copies duals, shares and residence. */
void lp_exact_prices_copy(const lp_exact *x, const lp_exact_prices *from, lp_exact_prices *to);
double lp_exact_arc_ms(const lp_exact *x, lp_stage stage, const lp_exact_unit *unit, int side, uint32_t fresh);
double lp_exact_arc_price(const lp_exact *x, lp_stage stage, const lp_exact_prices *prices, const lp_exact_unit *unit,
                          int side, const lp_exact_arc *arc);
/* The charge for a group of caches on the device: prefill pays it and decode gets it. */
double lp_exact_residence(const lp_exact *x, const lp_exact_prices *prices, int32_t index);
/* Sets potentials to the least time, in ms, from each frontier to the stage's end. False when pins contradict each
 * other. */
bool lp_exact_fastest(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], lp_exact_prices *prices);

/* The bound of all placements: the least price of both stages, minus the prices of the limits. */
double lp_exact_least(const lp_exact *x, const lp_exact_prices *prices);
/* Sets prices and potentials of both stages from the duals, shares and residence. */
void lp_exact_solve_prices(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], lp_exact_prices *prices);

/* Fills the sides along a stage's shortest path. Returns the difference between its time and the stage's limit, which
 * is the bound's slope in the price of time. */
double lp_exact_walk(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], lp_stage stage,
                     lp_exact_prices *prices);

/* Called with each shortest path while prices are searched. */
typedef struct lp_exact_watch {
  void (*see)(struct lp_exact_watch *watch, const lp_exact_prices *prices); /* NULL: none */
} lp_exact_watch;
/* Searches for a stage's best price of time while the other prices stay fixed; leaves its potentials. */
void lp_exact_best_stage(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], lp_stage stage,
                         lp_exact_watch *watch, lp_exact_prices *prices);

/* ---- levelled prices (level.c) ----------------------------------------------------------------------------------- */

/* Gives equal shares and residence to holdings that are alike, and changes all prices so that the bound rises. `most`
 * is a bound that suffices. Leaves the potentials of the best prices. */
void lp_exact_level(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], double most,
                    lp_exact_prices *prices);

/* ---- search (search.c) ------------------------------------------------------------------------------------------- */

/* The label search keeps all placements of the units so far that no other dominates and that the bound does not
 * exclude. `stages` has bit 1 << stage for each stage to search; with both, memory and moves of KV caches count. It
 * searches for a placement below `most`, writes it to side[stage][unit] and its objective to `objective`. */
typedef struct {
  unsigned stages;
  double most;   /* the search looks only for placements with a smaller objective */
  size_t width;  /* labels kept per step; those with the worst bound are dropped first */
  bool complete; /* out: no label was dropped */
  bool found;    /* out */
  double objective;
} lp_exact_search;
void lp_exact_search_run(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], const lp_exact_prices *prices,
                         const lp_exact_prices *fastest, lp_exact_search *search, unsigned char *side[LP_STAGE_COUNT]);

/* ---- segments (search.c, segments.c) ----------------------------------------------------------------------------- */

/* The most holdings of both stages that can be live at once. */
enum { LP_EXACT_SHARED = 14 };

/* The steps between two places where few frontiers are possible. */
typedef struct {
  int32_t from, to;       /* steps; at most 64 */
  const int32_t *slot_of; /* [holding] its bits in `shared`, -1: not live, or not of both stages */
  lp_exact_grids grid;
  size_t most; /* the most modes to list */
  /* Placements with sums in the same cells of these widths become one, with the least of each sum; 0: they do not. */
  double cell_ms[LP_STAGE_COUNT], cell_bytes[LP_SIDE_COUNT], cell_objective;
  /* For the current entry: [stage][unit - first][frontier] the least price from there to the end of the stage, minus
   * that of the entry. Modes with a price more than `slack` above it are not listed. */
  double **least[LP_STAGE_COUNT], slack;
  int32_t first[LP_STAGE_COUNT]; /* units before the segment */
  bool has_all;                  /* out: the slack excluded no mode */
  double work;                   /* out: labels made */
} lp_exact_segment;

/* One placement of a segment's steps, between two frontiers, as sums. */
typedef struct {
  double objective, ms[LP_STAGE_COUNT], bytes[LP_SIDE_COUNT], activation[LP_SIDE_COUNT];
  int32_t at[LP_STAGE_COUNT]; /* frontiers after it */
  uint64_t shared;            /* the sides' holdings after it: 4 bits for each slot, then the directions of moves */
  uint64_t sides;             /* bit k: the side of step from + k */
  double excess;              /* of a listed mode: its price above the least */
} lp_exact_mode;
typedef LP_VEC(lp_exact_mode) lp_exact_modes_list;

/* Fills slot_of[holding]. A slot serves several holdings, one after the other. False when there are not enough
 * slots. */
bool lp_exact_slots(const lp_exact *x, int32_t *slot_of);
/* Appends the modes of a segment after the frontiers of `entry` that no other mode dominates, by excess. When there are
 * too many, drops the rest and returns their least price, measured from the least of all; else returns infinity. */
double lp_exact_modes(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT], const lp_exact_prices *prices,
                      lp_exact_segment *segment, const lp_exact_mode *entry, lp_exact_modes_list *out);

/* ---- fronts (front.c) -------------------------------------------------------------------------------------------- */

/* The least price to a stage's end as a function of the remaining time: ms ascending, price descending. A stage without
 * a limit has one point. */
typedef struct {
  double *ms, *price;
  int32_t count;
} lp_exact_front;

/* The fronts to make. `pruning` differs from `prices` in the prices of time only, which are not lower, and has
 * potentials: points with a price at these more than `slack` above the least are dropped. A front has at most `points`;
 * where it has more, some are joined, with prices and times rounded down, never up. */
typedef struct {
  const lp_exact *x;
  const lp_exact_graph *graph; /* of the stage */
  lp_stage stage;
  const lp_exact_prices *prices, *pruning;
  double slack;
  int points;
  const bool *keep; /* [unit] */
  double *work;     /* out: the points merged are added; NULL: not wanted */
} lp_exact_front_task;

/* Fills front[unit][frontier] for the units that `keep` marks and for the stage's end. */
void lp_exact_fronts(const lp_exact_front_task *task, lp_exact_front **front);
/* The least price within this remaining time; infinity when there is none. */
double lp_exact_front_price(const lp_exact_front *front, double ms);

/* ---- chains of segments (segments.c, chain.c) -------------------------------------------------------------------- */

typedef struct {
  double most;     /* the search looks only for placements with a smaller objective */
  double greatest; /* the greatest `most` of later searches with these prices, as far as it is known */
  double close;    /* a share: an improvement of less than this is not looked for */
  double step;     /* the search keeps one of labels with objectives that differ by less; 0: keeps all */
  /* A share of each limit: the search keeps one of labels with times and bytes that differ by less, and then proves
   * nothing. */
  double slur;
  size_t width;     /* labels kept per segment */
  double most_work; /* after this work the search keeps few labels; 0: it does not */
  bool plain;       /* makes no joint bounds */
  bool rough;       /* takes the modes of the run before for placements farther above the bound, and proves nothing */
  /* Modes are listed at the first prices, points of fronts dropped at the second; those of the run are for bounds. */
  const lp_exact_prices *listing, *pruning;
  /* Called with each placement found, the cheapest first, until it returns true: that placement is feasible. */
  bool (*see)(void *user, unsigned char *const side[LP_STAGE_COUNT]);
  void *user;
  double work;   /* out: in points of joint fronts */
  int refused;   /* out: placements that were found and were not feasible */
  double least;  /* out: the bound of all placements before the search */
  double lowest; /* out: no placement has a smaller objective than this */
} lp_exact_chain_search;

/* The most segments of a chain that is searched to the end, without joining modes that are nearly alike. */
enum { LP_EXACT_SHORT_CHAIN = 45 };

typedef struct lp_exact_chain lp_exact_chain;
/* Makes the stages a chain of segments, in the arena of `x`; NULL when they do not form one. */
lp_exact_chain *lp_exact_chain_create(const lp_exact *x, const lp_exact_graph graph[LP_STAGE_COUNT]);
/* Gives equal shares and residence to holdings that are alike, so that equal segments have equal prices. */
void lp_exact_chain_level(const lp_exact *x, lp_exact_prices *prices);
void lp_exact_chain_free(lp_exact_chain *chain);
const lp_exact *lp_exact_chain_problem(const lp_exact_chain *chain);
const lp_exact_graph *lp_exact_chain_graph(const lp_exact_chain *chain); /* [LP_STAGE_COUNT] */
size_t lp_exact_chain_length(const lp_exact_chain *chain);               /* in segments */
/* The bound of all placements at these prices, with fronts. At the pruning prices, a stage's price may be at most
 * `slack` above its least. Adds the points merged to `work`. */
double lp_exact_chain_bound(const lp_exact_chain *chain, const lp_exact_prices *prices, const lp_exact_prices *pruning,
                            double slack, double *work);
void lp_exact_chain_run(lp_exact_chain *chain, const lp_exact_prices *prices, lp_exact_chain_search *search);

/* ---- prices that couple the stages (couple.c) -------------------------------------------------------------------- */

/* Changes the prices of prefill's time and of residence so that the bound of the fronts rises; returns the bound. Sets
 * `pruning` to prices by which points of these fronts may be dropped. `known` is the least objective known, or
 * infinity; `cut` are the prices that are best for minimum cuts, of which decode's time gets its own if `price_decode`,
 * and else none. */
double lp_exact_couple(const lp_exact_chain *chain, double known, const lp_exact_duals *cut, bool price_decode,
                       lp_exact_prices *prices, lp_exact_prices *pruning);

#endif
