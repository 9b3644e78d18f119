/* Seeds of the exact scheduler: in each stage one block of layers on one side and all others on the other side. The
 * blocks of the two stages need not be the same: caches between them move. Pairs of blocks are compared by sums over
 * layers, which leave out the time of free operators; the caller evaluates the pairs that seem better. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"

#include <math.h>
#include <stdlib.h>

/* The most borders of blocks that are tried in a stage. */
enum { MOST_BORDERS = 42, DEVICE = LP_SIDE_DEVICE, CLOUD = LP_SIDE_CLOUD };

/* Sums over the layers before each border. Border 0 precedes the operators before the first layer. */
typedef struct {
  double *ms[LP_STAGE_COUNT][LP_SIDE_COUNT];    /* of operators */
  double *cross[LP_STAGE_COUNT][LP_SIDE_COUNT]; /* ms of a message at the border itself, by the side that sends */
  double *weights[LP_SIDE_COUNT], *caches[LP_SIDE_COUNT]; /* bytes */
  double *prompts;                                        /* bytes of caches after prefill */
  double back[LP_STAGE_COUNT];                            /* ms of the token's return */
  int32_t borders;
} layer_sums;

typedef struct {
  double objective, ms;
  int32_t from, to; /* borders */
  bool cloud;       /* the block's side; all other layers are on the other one */
} block;

typedef struct {
  const lp_exact *x;
  layer_sums sums;
  block *list[LP_STAGE_COUNT];
  int32_t count[LP_STAGE_COUNT];
} blocks;

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static int32_t slice_of(const lp_plan_problem *problem, int32_t op) {
  return op < 0 ? 0 : problem->ops[op].layer + 1;
}

static void add_operators(const lp_exact *x, layer_sums *s) {
  bool *seen = LP_NEW_ARRAY(x->arena, bool, x->problem[0].weight_count);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_plan_problem *problem = &x->problem[stage];
    for (int32_t i = 0; i < problem->op_count; i++) {
      const lp_plan_op *op = &problem->ops[i];
      int32_t after = slice_of(problem, i) + 1;
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

static void add_caches(const lp_exact *x, layer_sums *s) {
  const lp_plan_problem *problem = &x->problem[0];
  bool *seen = LP_NEW_ARRAY(x->arena, bool, problem->state_count);
  for (int32_t i = 0; i < problem->op_count; i++) {
    int32_t state = problem->ops[i].state;
    if (state < 0 || seen[state]) continue;
    seen[state] = true;
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      s->caches[side][slice_of(problem, i) + 1] += problem->state_size[side][state];
    s->prompts[slice_of(problem, i) + 1] += problem->state_prompt_size[state];
  }
}

/* A value is sent at every border between its producer and its last reader. */
static void add_crossings(const lp_exact *x, lp_stage stage, layer_sums *s) {
  const lp_plan_problem *problem = &x->problem[stage];
  int32_t *last = LP_NEW_ARRAY(x->arena, int32_t, problem->value_count);
  for (int32_t i = 0; i < problem->edge_count; i++) {
    const lp_plan_edge *edge = &problem->edges[i];
    if (edge->producer < 0 || problem->ops[edge->producer].free || problem->ops[edge->consumer].free) continue;
    int32_t from = slice_of(problem, edge->producer), to = slice_of(problem, edge->consumer);
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

static layer_sums sum_layers(const lp_exact *x) {
  layer_sums s = {.borders = x->problem[0].layer_count + 3};
  double **all[] = {&s.ms[0][0],    &s.ms[0][1],    &s.ms[1][0],    &s.ms[1][1],   &s.cross[0][0],
                    &s.cross[0][1], &s.cross[1][0], &s.cross[1][1], &s.weights[0], &s.weights[1],
                    &s.caches[0],   &s.caches[1],   &s.prompts};
  for (size_t i = 0; i < LP_COUNT(all); i++)
    *all[i] = LP_NEW_ARRAY(x->arena, double, s.borders);
  add_operators(x, &s);
  add_caches(x, &s);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    add_crossings(x, (lp_stage)stage, &s);
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
  const layer_sums *s = &b->sums;
  int inner = cloud ? CLOUD : DEVICE, outer = cloud ? DEVICE : CLOUD, end = to < s->borders - 1 ? outer : inner;
  double link = from > 0 ? s->cross[stage][outer][from] : inner == CLOUD ? x->rtt_half : 0;
  if (to < s->borders - 1) link += s->cross[stage][inner][to];
  if (from > 0 && outer == CLOUD) link += x->rtt_half;
  if (end == CLOUD) link += s->back[stage];
  double of_block = s->ms[stage][inner][to] - s->ms[stage][inner][from];
  double of_rest = s->ms[stage][outer][s->borders - 1] - (s->ms[stage][outer][to] - s->ms[stage][outer][from]);
  return (block){.objective = x->weights.busy[stage][inner] * of_block + x->weights.busy[stage][outer] * of_rest +
                              x->weights.link[stage] * link,
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
  const layer_sums *s = &b->sums;
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

/* ---- all pairs --------------------------------------------------------------------------------------------------- */

void lp_exact_blocks(const lp_exact *x, double known, lp_exact_see_blocks see, void *user) {
  blocks b = {.x = x, .sums = sum_layers(x)};
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    list_blocks(&b, (lp_stage)stage);
  for (int32_t i = 0; i < b.count[0]; i++)
    for (int32_t k = 0; k < b.count[1]; k++) {
      const block *prefill = &b.list[0][i], *decode = &b.list[1][k];
      double objective = prefill->objective + decode->objective;
      if (objective >= known) break;
      double moves = move_ms(&b, prefill, decode), limit = x->limit_ms[LP_STAGE_PREFILL];
      if (objective + x->weights.move * moves >= known || (limit > 0 && prefill->ms + moves > limit)) continue;
      if (!fits(&b, prefill, decode)) continue;
      known = see(user, (const lp_exact_block[]){{prefill->from - 1, prefill->to - 1, prefill->cloud},
                                                 {decode->from - 1, decode->to - 1, decode->cloud}});
    }
}
