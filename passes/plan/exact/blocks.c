/* Seeds of the exact scheduler: in each stage one block of layers on one side and all others on the other side. The
 * blocks of the two stages need not be the same: caches between them move. Pairs of blocks are compared by sums over
 * layers, which leave out the time of free operators; the caller evaluates the pairs that seem better. Then one border
 * of a block becomes any unit's: where a limit is tight, no border of a layer may meet it. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"

/* MOST_BORDERS: the most borders of layers that are tried in a stage. MAX_FRUITLESS: the most pairs of blocks of layers
 * that are evaluated, one after the other, before one of them is better. MOST_TRIES: the same of blocks with a border
 * of a unit. MOST_ROUNDS: the most changes of the best pair. */
enum {
  MOST_BORDERS = 42,
  MAX_FRUITLESS = 2000,
  MOST_TRIES = 24,
  MOST_ROUNDS = 3,
  DEVICE = LP_SIDE_DEVICE,
  CLOUD = LP_SIDE_CLOUD
};

/* Sums over the slices before each border; a slice is a layer, or a unit. */
typedef struct {
  const int32_t *slice[LP_STAGE_COUNT];         /* [op] */
  double *ms[LP_STAGE_COUNT][LP_SIDE_COUNT];    /* of operators */
  double *cross[LP_STAGE_COUNT][LP_SIDE_COUNT]; /* ms of a message at the border itself, by the side that sends */
  double *weights[LP_SIDE_COUNT], *caches[LP_SIDE_COUNT]; /* bytes */
  double *prompts;                                        /* bytes of caches after prefill */
  double back[LP_STAGE_COUNT];                            /* ms of the token's return */
  bool *within_cache[LP_STAGE_COUNT];                     /* the border divides the users of a cache */
  int32_t borders;
} slice_sums;

typedef struct {
  double objective, limited, ms;
  int32_t from, to; /* borders */
  bool cloud;       /* the block's side; all other layers are on the other one */
} block;

typedef struct {
  const lp_exact *x;
  slice_sums sums;
  block *list[LP_STAGE_COUNT];
  int32_t count[LP_STAGE_COUNT];
  block best[LP_STAGE_COUNT]; /* the best pair of which the objective is known */
  double known;
  lp_exact_see_blocks see;
  void *user;
} blocks;

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* The operators before the first layer are slice 0. */
static int32_t *slice_by_layer(const lp_exact *x, int stage) {
  const lp_plan_problem *problem = &x->problem[stage];
  int32_t *slice = LP_NEW_ARRAY(x->arena, int32_t, problem->op_count);
  for (int32_t i = 0; i < problem->op_count; i++)
    slice[i] = problem->ops[i].layer + 1;
  return slice;
}

/* Free operators belong to the unit after them. */
static int32_t *slice_by_unit(const lp_exact *x, int stage) {
  int32_t *slice = LP_NEW_ARRAY(x->arena, int32_t, x->problem[stage].op_count), next = x->unit_count[stage] - 1;
  for (int32_t i = x->problem[stage].op_count; i-- > 0;) {
    if (x->unit_of[stage][i] >= 0) next = x->unit_of[stage][i];
    slice[i] = next;
  }
  return slice;
}

static void add_operators(const lp_exact *x, slice_sums *s) {
  bool *seen = LP_NEW_ARRAY(x->arena, bool, x->problem[0].weight_count);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_plan_problem *problem = &x->problem[stage];
    for (int32_t i = 0; i < problem->op_count; i++) {
      const lp_plan_op *op = &problem->ops[i];
      int32_t after = s->slice[stage][i] + 1;
      for (int side = 0; side < LP_SIDE_COUNT && !op->free; side++)
        s->ms[stage][side][after] += op->ms[side];
      for (int32_t k = 0; k < op->weight_count; k++) {
        if (seen[op->weights[k]]) continue;
        seen[op->weights[k]] = true;
        for (int side = 0; side < LP_SIDE_COUNT; side++)
          s->weights[side][after] += problem->weight_size[side][op->weights[k]];
      }
    }
  }
}

static void add_caches(const lp_exact *x, slice_sums *s) {
  const lp_plan_problem *problem = &x->problem[0];
  bool *seen = LP_NEW_ARRAY(x->arena, bool, problem->state_count);
  for (int32_t i = 0; i < problem->op_count; i++) {
    int32_t state = problem->ops[i].state;
    if (state < 0 || seen[state]) continue;
    seen[state] = true;
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      s->caches[side][s->slice[0][i] + 1] += problem->state_size[side][state];
    s->prompts[s->slice[0][i] + 1] += problem->state_prompt_size[state];
  }
}

static void mark_borders_within_caches(const lp_exact *x, int stage, slice_sums *s) {
  const lp_plan_problem *problem = &x->problem[stage];
  int32_t *last = LP_NEW_ARRAY(x->arena, int32_t, problem->state_count);
  for (int32_t i = 0; i < problem->state_count; i++)
    last[i] = -1;
  for (int32_t i = 0; i < problem->op_count; i++) {
    const int32_t state = problem->ops[i].state, at = s->slice[stage][i];
    if (state < 0) continue;
    for (int32_t border = last[state] + 1; last[state] >= 0 && border <= at; border++)
      s->within_cache[stage][border] = true;
    if (at > last[state]) last[state] = at;
  }
}

/* A value is sent at every border between its producer and its last reader. */
static void add_crossings(const lp_exact *x, lp_stage stage, slice_sums *s) {
  const lp_plan_problem *problem = &x->problem[stage];
  int32_t *last = LP_NEW_ARRAY(x->arena, int32_t, problem->value_count);
  LP_FOR_EACH(const lp_plan_edge, edge, problem->edges, problem->edge_count) {
    if (edge->producer < 0 || problem->ops[edge->producer].free || problem->ops[edge->consumer].free) continue;
    int32_t from = s->slice[stage][edge->producer], to = s->slice[stage][edge->consumer];
    for (int32_t at = (last[edge->value] > from ? last[edge->value] : from) + 1; at <= to; at++)
      for (int side = 0; side < LP_SIDE_COUNT; side++)
        s->cross[stage][side][at] += edge->bytes * x->ms_per_byte[side];
    if (to > last[edge->value]) last[edge->value] = to;
  }
  for (int32_t at = 0; at < s->borders; at++)
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      s->cross[stage][side][at] += x->rtt_half;
  s->back[stage] = x->rtt_half + problem->result_bytes * x->ms_per_byte[CLOUD];
}

static slice_sums sum_slices(const lp_exact *x, int32_t *const slice[LP_STAGE_COUNT], int32_t borders) {
  slice_sums s = {.slice = {slice[0], slice[1]}, .borders = borders};
  double **all[] = {&s.ms[0][0],    &s.ms[0][1],    &s.ms[1][0],    &s.ms[1][1],   &s.cross[0][0],
                    &s.cross[0][1], &s.cross[1][0], &s.cross[1][1], &s.weights[0], &s.weights[1],
                    &s.caches[0],   &s.caches[1],   &s.prompts};
  for (size_t i = 0; i < LP_COUNT(all); i++)
    *all[i] = LP_NEW_ARRAY(x->arena, double, s.borders);
  add_operators(x, &s);
  add_caches(x, &s);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    s.within_cache[stage] = LP_NEW_ARRAY(x->arena, bool, s.borders);
    mark_borders_within_caches(x, stage, &s);
    add_crossings(x, (lp_stage)stage, &s);
  }
  double *sums[] = {s.ms[0][0],   s.ms[0][1],  s.ms[1][0],  s.ms[1][1], s.weights[0],
                    s.weights[1], s.caches[0], s.caches[1], s.prompts};
  for (size_t i = 0; i < LP_COUNT(sums); i++)
    for (int32_t at = 1; at < s.borders; at++)
      sums[i][at] += sums[i][at - 1];
  return s;
}

/* ---- the blocks of a stage --------------------------------------------------------------------------------------- */

static block price_block(const blocks *b, lp_stage stage, int32_t from, int32_t to, bool cloud) {
  const lp_exact *x = b->x;
  const slice_sums *s = &b->sums;
  int inner = cloud ? CLOUD : DEVICE, outer = cloud ? DEVICE : CLOUD, end = to < s->borders - 1 ? outer : inner;
  double link = from > 0 ? s->cross[stage][outer][from] : inner == CLOUD ? x->rtt_half : 0;
  if (to < s->borders - 1) link += s->cross[stage][inner][to];
  if (from > 0 && outer == CLOUD) link += x->rtt_half;
  if (end == CLOUD) link += s->back[stage];
  double of_block = s->ms[stage][inner][to] - s->ms[stage][inner][from];
  double of_rest = s->ms[stage][outer][s->borders - 1] - (s->ms[stage][outer][to] - s->ms[stage][outer][from]);
  const double *busy = x->limited.busy[stage];
  return (block){.objective = x->weights.busy[stage][inner] * of_block + x->weights.busy[stage][outer] * of_rest +
                              x->weights.link[stage] * link,
                 .limited = busy[inner] * of_block + busy[outer] * of_rest + x->limited.link[stage] * link,
                 .ms = of_block + of_rest + link,
                 .from = from,
                 .to = to,
                 .cloud = cloud};
}

static int compare_blocks(const void *left, const void *right) {
  const block *a = left, *b = right;
  if (a->objective != b->objective) return a->objective < b->objective ? -1 : 1;
  if (a->ms != b->ms) return a->ms < b->ms ? -1 : 1;
  return a->from != b->from ? a->from - b->from : a->to - b->to;
}

/* All blocks that meet the stage's limit, the cheapest first. */
static void list_blocks(blocks *b, lp_stage stage) {
  int32_t last = b->sums.borders - 1, stride = last / MOST_BORDERS + 1;
  double limit = b->x->limit_ms[stage];
  b->list[stage] = LP_NEW_ARRAY(b->x->arena, block, (last + 2) * (last + 2));
  for (int32_t from = 0; from < last; from += stride)
    for (int32_t to = from + 1; to <= last; to = to < last && to + stride > last ? last : to + stride)
      for (int cloud = 0; cloud < 2; cloud++) {
        block one = price_block(b, stage, from, to, cloud);
        if (limit > 0 && one.ms > limit) continue;
        b->list[stage][b->count[stage]++] = one;
      }
  qsort(b->list[stage], (size_t)b->count[stage], sizeof(block), compare_blocks);
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

/* The amount of a quantity in the cloud in prefill, in decode, and in both. */
typedef struct {
  double prefill, decode, both, all;
} division;

static division divide(const double *sum, int32_t borders, const block *a, const block *b) {
  double own = sum[a->to] - sum[a->from], other = sum[b->to] - sum[b->from], common = 0, all = sum[borders - 1];
  int32_t from = a->from > b->from ? a->from : b->from, to = a->to < b->to ? a->to : b->to;
  if (from < to) common = sum[to] - sum[from];
  division d = {.prefill = a->cloud ? own : all - own, .decode = b->cloud ? other : all - other, .all = all};
  d.both = a->cloud ? (b->cloud ? common : own - common) : b->cloud ? other - common : all - own - other + common;
  return d;
}

static bool fits(const blocks *b, const block *prefill, const block *decode) {
  const lp_exact *x = b->x;
  const slice_sums *s = &b->sums;
  if (!(x->limit_bytes[DEVICE] > 0) && !(x->limit_bytes[CLOUD] > 0)) return true;
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    division w = divide(s->weights[side], s->borders, prefill, decode);
    division caches = divide(s->caches[side], s->borders, prefill, decode);
    double sessions = lp_plan_sessions(x->request, (lp_side)side);
    double held = side == CLOUD ? w.prefill + w.decode - w.both : w.all - w.both;
    held += sessions * (side == CLOUD ? caches.prefill + caches.decode - caches.both : caches.all - caches.both);
    if (x->limit_bytes[side] > 0 && held > x->limit_bytes[side]) return false;
  }
  return true;
}

/* The time that moves of caches take. */
static double move_ms(const blocks *b, const block *prefill, const block *decode) {
  division d = divide(b->sums.prompts, b->sums.borders, prefill, decode);
  double down = d.prefill - d.both, up = d.decode - d.both, ms = 0;
  if (down > 0.5) ms += b->x->rtt_half + down * b->x->ms_per_byte[CLOUD];
  if (up > 0.5) ms += b->x->rtt_half + up * b->x->ms_per_byte[DEVICE];
  return ms;
}

/* Tells whether the pair seems to meet the limits and to be better than any known one; sets its estimated objective. */
static bool is_better(const blocks *b, const block *prefill, const block *decode, double *objective) {
  const lp_exact *x = b->x;
  *objective = prefill->objective + decode->objective;
  if (*objective >= b->known) return false;
  const double moves = move_ms(b, prefill, decode), limit = x->limit_ms[LP_STAGE_PREFILL];
  *objective += x->weights.move * moves;
  const double limited = prefill->limited + decode->limited + x->limited.move * moves;
  if (x->limit_objective > 0 && limited > x->limit_objective) return false;
  return *objective < b->known && !(limit > 0 && prefill->ms + moves > limit) && fits(b, prefill, decode);
}

/* Has the pair evaluated; returns whether it is the best one now. */
static bool try_pair(blocks *b, const block *prefill, const block *decode) {
  const int32_t *const *slice = b->sums.slice;
  const double before = b->known;
  b->known = b->see(b->user, (const lp_exact_block[]){{slice[0], prefill->from, prefill->to, prefill->cloud},
                                                      {slice[1], decode->from, decode->to, decode->cloud}});
  if (b->known >= before) return false;
  b->best[0] = *prefill;
  b->best[1] = *decode;
  return true;
}

/* ---- borders of units -------------------------------------------------------------------------------------------- */

/* The blocks that seem best, in ascending order of `objective`, which includes the other stage and moves. */
typedef struct {
  double objective[MOST_TRIES];
  block one[MOST_TRIES];
  int count;
} best_blocks;

static void insert_block(best_blocks *list, const block *one, double objective) {
  if (list->count == MOST_TRIES && objective >= list->objective[MOST_TRIES - 1]) return;
  int at = list->count < MOST_TRIES ? list->count++ : MOST_TRIES - 1;
  for (; at > 0 && list->objective[at - 1] > objective; at--) {
    list->objective[at] = list->objective[at - 1];
    list->one[at] = list->one[at - 1];
  }
  list->objective[at] = objective;
  list->one[at] = *one;
}

/* Looks for a better block of a stage, beside the best one of the other stage: one border is that of a layer in
 * `border`, the other one that of any unit. Returns whether it found one. */
static bool refine_stage(blocks *b, int stage, const int32_t *border, int32_t count) {
  const double limit = b->x->limit_ms[stage];
  block pair[LP_STAGE_COUNT];
  best_blocks list = {.count = 0};
  memcpy(pair, b->best, sizeof pair);
  for (int32_t i = 0; i < count; i++)
    for (int32_t at = 0; at < b->sums.borders; at++)
      for (int cloud = 0; cloud < 2 && at != border[i] && !b->sums.within_cache[stage][at]; cloud++) {
        const int32_t from = at < border[i] ? at : border[i], to = at < border[i] ? border[i] : at;
        double objective;
        pair[stage] = price_block(b, (lp_stage)stage, from, to, cloud);
        if (limit > 0 && pair[stage].ms > limit) continue;
        if (is_better(b, &pair[0], &pair[1], &objective)) insert_block(&list, &pair[stage], objective);
      }
  for (int i = 0; i < list.count; i++) {
    pair[stage] = list.one[i];
    if (try_pair(b, &pair[0], &pair[1])) return true;
  }
  return false;
}

/* Begins with the best pair of blocks of layers. The stages have to be alike, because they share sums of holdings. */
static void refine(blocks *by_layer) {
  const lp_exact *x = by_layer->x;
  const int32_t units = x->unit_count[0], count = by_layer->sums.borders;
  if (x->unit_count[1] != units) return;
  blocks b = *by_layer;
  b.sums = sum_slices(x, (int32_t *const[]){slice_by_unit(x, 0), slice_by_unit(x, 1)}, units + 1);
  int32_t *border[LP_STAGE_COUNT]; /* of each border of a layer, the units before it */
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    border[stage] = LP_NEW_ARRAY(x->arena, int32_t, count);
    for (int32_t i = 0; i < units; i++)
      for (int32_t at = by_layer->sums.slice[stage][x->first_op[stage][i]] + 1; at < count; at++)
        border[stage][at]++;
    const block *best = &by_layer->best[stage];
    b.best[stage] = price_block(&b, (lp_stage)stage, border[stage][best->from], border[stage][best->to], best->cloud);
  }
  bool better = true;
  for (int round = 0; round < MOST_ROUNDS && better; round++) {
    better = false;
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      if (refine_stage(&b, stage, border[stage], count)) better = true;
  }
}

/* ---- all pairs --------------------------------------------------------------------------------------------------- */

void lp_exact_blocks(const lp_exact *x, double known, lp_exact_see_blocks see, void *user) {
  blocks b = {.x = x, .known = known, .see = see, .user = user};
  b.sums = sum_slices(x, (int32_t *const[]){slice_by_layer(x, 0), slice_by_layer(x, 1)}, x->problem[0].layer_count + 3);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    list_blocks(&b, (lp_stage)stage);
  if (!b.count[0] || !b.count[1]) return;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    b.best[stage] = b.list[stage][0];
  int32_t fruitless = 0; /* pairs since the last better one */
  for (int32_t i = 0; i < b.count[0] && fruitless < MAX_FRUITLESS; i++)
    for (int32_t k = 0; k < b.count[1] && fruitless < MAX_FRUITLESS; k++) {
      const block *prefill = &b.list[0][i], *decode = &b.list[1][k];
      double objective;
      if (prefill->objective + decode->objective >= b.known) break;
      if (is_better(&b, prefill, decode, &objective)) fruitless = try_pair(&b, prefill, decode) ? 0 : fruitless + 1;
    }
  refine(&b);
}
