/* The parts of a model, as the search over places sees them, and what its files share. */
#pragma once

#include "base/side.h"
#include "passes/plan/places/places.h"
#include "passes/plan/report/report.h"

/* The most things that parts share, such as tied weights and tables of positions. */
enum { LP_PLACES_SHARED = 8 };

/* Bytes of a part's weights that only prefill reads, only decode reads, and that both read. */
enum { LP_PLACES_BOTH = LP_STAGE_COUNT, LP_PLACES_USES };

/* A piece of the operators, from first_op to the next part's. In each stage it is in one place. */
typedef struct {
  int32_t first_op, end_op;
  double ms[LP_STAGE_COUNT][LP_PLACES_MAX];
  double hop_bytes[LP_STAGE_COUNT]; /* values that it reads from the part before; of part 0: inputs */
  double weight_bytes[LP_PLACES_USES][LP_PLACES_MAX];
  double cache_bytes[LP_PLACES_MAX], move_bytes; /* KV caches: held; what moves if the stages are in two places */
  double activation[LP_STAGE_COUNT][LP_PLACES_MAX];
  uint8_t allowed[LP_STAGE_COUNT]; /* the places where its pins let it be as a whole; 0: they divide it */
  uint8_t shared[LP_STAGE_COUNT];  /* bit h: it uses holding h */
  /* The least time of a message between two operators of the part; 0 where they might be in two places without one. */
  double inner_ms[LP_STAGE_COUNT];
  bool divides[LP_STAGE_COUNT]; /* it has two operators or more */
} lp_places_part;

/* Something that several parts need in their place, once for all of them: a weight, the work of a free operator. */
typedef struct {
  double bytes[LP_PLACES_MAX], ms[LP_STAGE_COUNT][LP_PLACES_MAX];
  int32_t first[LP_STAGE_COUNT], last[LP_STAGE_COUNT]; /* parts that use it; first -1: none */
} lp_places_holding;

typedef struct lp_places_model {
  const lp_places_problem *problem;
  lp_arena *arena;
  int32_t count; /* of places */
  lp_places_part *part;
  int32_t part_count;
  lp_places_holding holding[LP_PLACES_SHARED];
  int32_t holding_count;
  /* [op * LP_PLACES_MAX + place] an operator's own time and bytes, for bounds of divided parts: with the free
   * operators that it is the first to use, and the weights and KV caches. What both stages use is in `op_both`, and
   * half of it in either stage's bytes where its first user is not the same operator. op_moves[op]: bytes of KV caches
   * that move. */
  double *op_ms[LP_STAGE_COUNT], *op_bytes[LP_STAGE_COUNT], *op_both, *op_moves;
  double busy[LP_STAGE_COUNT][LP_PLACES_MAX], link[LP_STAGE_COUNT], move; /* the objective per ms */
  double scale;                                                           /* of the objective, where no plan is known */
  double limit_ms[LP_STAGE_COUNT], limit_bytes[LP_PLACES_MAX];            /* 0: none */
  double least_activation[LP_PLACES_MAX];                                 /* of a whole part there */
  double message_ms[LP_PLACES_MAX][LP_PLACES_MAX], ms_per_byte[LP_PLACES_MAX][LP_PLACES_MAX];
  double grid_ms[LP_STAGE_COUNT], grid_objective; /* terms of labels' sums are multiples of these */
  double result_bytes[LP_STAGE_COUNT];
  bool has_result[LP_STAGE_COUNT], has_input[LP_STAGE_COUNT];
} lp_places_model;

/* Finds the parts and their figures (model.c). Reports a model that no part can be made of. */
LP_MUST_USE lp_status lp_places_model_build(const lp_places_problem *problem, lp_arena *arena, lp_places_model **out,
                                            lp_diag *diag);
/* Divides the operators into parts: fills first[] with the first operator of each, and their end; returns their number
 * (parts.c). `first` has op_count + 1 items. */
int32_t lp_places_divide(const lp_plan_problem problem[LP_STAGE_COUNT], lp_arena *arena, int32_t *first);

/* Sets problem->allowed by the request's pins and private layers (pins.c). Where a pin names one of several machines of
 * a kind, problem->places becomes a copy in which no machine is like another. Reports pins of one KV cache that
 * contradict each other. */
LP_MUST_USE lp_status lp_places_pin(lp_places_problem *problem, lp_arena *arena, lp_diag *diag);
/* The places where pins let an operator be, as bits. */
uint8_t lp_places_allowed(const lp_places_problem *problem, int stage, int32_t op);
/* Sets `out` to the operators of a place's problem with the pins that the device and this place leave them. Returns
 * false if an operator may be in neither of them. */
bool lp_places_pin_pair(const lp_places_problem *problem, int place, lp_arena *arena,
                        lp_plan_problem out[LP_STAGE_COUNT]);

lp_side lp_places_side(int place);
const lp_plan_op *lp_places_op(const lp_places_problem *problem, int place, int stage, int32_t index);
double lp_places_memory(const lp_places_problem *problem, int place);
double lp_places_link_ms(const lp_places *places, int from, int to, double bytes); /* of one message */

/* The time of a message of `bytes` from the place of one part to that of the next; 0 within a place. */
double lp_places_hop_ms(const lp_places_model *model, int from, int to, double bytes);

/* ---- bounds (bound.c) -------------------------------------------------------------------------------------------- */

/* A part is in a place in each stage, or divided: number `count`, where bounds allow it. */
enum { LP_PLACES_STATES = (LP_PLACES_MAX + 1) * (LP_PLACES_MAX + 1) };

/* Shortest paths at given prices. A state is prefill's place times (count + 1), plus decode's. */
typedef struct {
  const lp_places_model *model;
  bool divides;     /* divided parts are allowed */
  double objective; /* the weight of the objective: 1, or 0 to find out whether the limits can be met */
  lp_places_duals duals;
  double (*price)[LP_PLACES_STATES];               /* [part] infinite: not allowed */
  double (*from_start)[LP_PLACES_STATES];          /* [part] the least price up to the part, with it */
  double (*to_end)[LP_PLACES_STATES];              /* [part] the least price after the part */
  double least, offset;                            /* the least price of a path; the prices of the limits */
  uint8_t *path[LP_STAGE_COUNT];                   /* [part] a shortest path */
  double ms[LP_STAGE_COUNT], bytes[LP_PLACES_MAX]; /* its sums, from which bounds leave out what parts share */
} lp_places_paths;

lp_places_paths *lp_places_paths_create(const lp_places_model *model, bool divides);
/* Sets prices and the paths from the start, the least price and the path with its sums. */
void lp_places_paths_solve(lp_places_paths *paths);
/* Sets the least prices to the end, after lp_places_paths_solve. */
void lp_places_paths_back(lp_places_paths *paths);
/* The bound: the least price minus the prices of the limits. */
double lp_places_paths_bound(const lp_places_paths *paths);
/* The least price of a path with a divided part, minus the prices of the limits; needs the prices to the end. */
double lp_places_divided_bound(const lp_places_paths *paths);

/* Called with each path that has no divided part. Returns the least objective known, infinite: none. */
typedef double lp_places_see(void *user, uint8_t *const path[LP_STAGE_COUNT]);
/* Improves the duals in `rounds` steps towards a bound of `known`; leaves the best ones and their paths. Returns the
 * best bound. */
double lp_places_improve(lp_places_paths *paths, int rounds, double known, lp_places_see *see, void *user);

/* ---- search (search.c) ------------------------------------------------------------------------------------------- */

typedef struct {
  /* Only chains of segments: both stages in the same places, and no place twice, but the device first and last. This
   * finds good plans soon, and proves nothing. */
  bool segments;
  size_t width;   /* labels kept per part */
  double known;   /* the search looks for plans with a smaller objective; infinite: for any plan */
  bool complete;  /* out: no label was dropped for want of room */
  double dropped; /* out: the least bound of the labels dropped; infinite: none */
  double found;   /* out: the objective of the plan found; infinite: none */
} lp_places_search;
/* Searches for the best plan without divided parts; `paths` has no divided parts and prices to the end. Fills
 * path[stage][part]. */
void lp_places_search_run(const lp_places_paths *paths, lp_places_search *search, uint8_t *path[LP_STAGE_COUNT]);

/* The sums of the parts so far, with which one may go on to the next part. */
typedef struct {
  double objective, ms[LP_STAGE_COUNT], bytes[LP_PLACES_MAX], activation[LP_PLACES_MAX];
  uint64_t moves;                                 /* bit from * 8 + to: KV caches move from one to the other */
  uint8_t held[LP_PLACES_SHARED][LP_STAGE_COUNT]; /* the places that use a holding */
  uint16_t used;              /* the places that run anything; bit LP_PLACES_MAX: it came back to the device */
  uint8_t at[LP_STAGE_COUNT]; /* the places of the last part */
} lp_places_sum;
lp_places_sum lp_places_sum_begin(void);
/* Adds part `index` in places `at`; after the last part also the message of the result. */
void lp_places_sum_add(const lp_places_model *model, int32_t index, const uint8_t at[LP_STAGE_COUNT],
                       lp_places_sum *sum);
/* What the parts after one need if all of them are in a place: prices at given duals, times, bytes (estimate.c). */
typedef struct {
  double price[LP_PLACES_MAX], ms[LP_STAGE_COUNT][LP_PLACES_MAX], bytes[LP_PLACES_MAX];
} lp_places_rest;
lp_places_rest *lp_places_rest_create(const lp_places_paths *paths); /* [part_count], in the model's arena */
/* An estimate of the least price of a plan that begins with these sums; no later part is in a closed place. */
double lp_places_estimate(const lp_places_paths *paths, const lp_places_rest *rest, const lp_places_sum *sum,
                          unsigned closed);

bool lp_places_sum_fits(const lp_places_model *model, const lp_places_sum *sum); /* all limits, memory included */

/* ---- reports (ranges.c, json.c, text.c, report.c) ---------------------------------------------------------------- */

typedef struct {
  lp_module *module;
  lp_arena *arena;
  const lp_places_problem *problem;
  const lp_places_plan *plan;
  lp_report_model model;
} lp_places_facts;
/* is_data: for the page, with six digits and without the certificate. */
void lp_places_json(const lp_places_facts *facts, bool is_data, lp_buf *out);
void lp_places_text(const lp_places_facts *facts, lp_buf *out);
void lp_places_line(const lp_places_facts *facts, lp_buf *out); /* for people, in one line */
/* An operator of a stage that the plan places, with its figures there; text is borrowed. */
typedef struct {
  const char *name, *kind, *place;
  int64_t layer;
  double flops, bytes, ms[LP_PLACES_MAX]; /* ms: in each place */
} lp_places_row;
/* Returns false for an operator that the plan leaves free, which runs in each place that needs it. */
bool lp_places_row_of(const lp_places_facts *facts, int stage, int32_t op, lp_places_row *out);
/* A run of layers in the same places in a stage; -1 is before the first layer, layer_count after the last. */
typedef struct {
  int32_t first, last;
  uint8_t at; /* bits of places */
} lp_places_range;
int32_t lp_places_ranges(const lp_places_facts *facts, int stage, lp_places_range **out);
const char *lp_places_range_name(const lp_places_facts *facts, const lp_places_range *range, char out[48]);
/* "memory of edge", "ttft"; NULL: none */
const char *lp_places_limit_name(const lp_places *places, int32_t limit, char out[80]);
/* The gap between the plan and a bound, as a share of the plan's objective; NaN without a feasible plan. */
double lp_places_gap(const lp_places_plan *plan, double bound);
