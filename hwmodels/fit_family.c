/* Predicts one operator from a family of curves: the size that runs along the curves, the sizes that are their shape,
 * the base law, and the combination of neighbouring curves for a shape that was not measured. */
#include "hwmodels/hwmodels_internal.h"

#include <math.h>

double lp_fit_size(const lp_fit_family *family, const lp_op_facts *facts) {
  switch (family->op) {
  case LP_HW_ATTENTION:
    return (double)facts->kv_len;
  case LP_HW_ANY:
    return fmax(facts->bytes > 0 ? facts->flops / facts->bytes : 0, 1e-3); /* moves have no intensity */
  default:
    return (double)facts->m;
  }
}

double lp_fit_whole_quanta(const lp_fit_family *family, double size) {
  double quantum = (double)family->quantum;
  return quantum > 0 ? ceil(size / quantum) * quantum : size;
}

void lp_fit_key(const lp_fit_family *family, const lp_op_facts *facts, int64_t key[LP_FIT_KEYS]) {
  memset(key, 0, sizeof *key * LP_FIT_KEYS);
  if (family->op == LP_HW_ATTENTION) {
    key[0] = family->decode ? 1 : (int64_t)lp_fit_whole_quanta(family, (double)facts->q_len);
    key[1] = facts->batch;
    key[2] = facts->heads;
    key[3] = facts->kv_heads;
    key[4] = facts->head_dim;
  } else if (family->op != LP_HW_ANY) {
    key[0] = facts->n;
    key[1] = facts->k;
    if (family->op != LP_HW_LINEAR) key[1] = 0;
  }
}

double lp_fit_on_clock(double tick, double time) {
  return tick > 0 ? tick * fmax(1, round(time / tick)) : time;
}

static double power4(double value) {
  return value * value * value * value;
}

/* Bytes per us in a pass that reads `pass_bytes`. */
static double byte_rate(const lp_fit_family *family, double pass_bytes) {
  const lp_fit_curve *pass = &family->pass;
  if (pass->count == 0) return family->bytes_per_us;
  double at = pass_bytes > 0 ? log(pass_bytes) : pass->x[pass->count - 1];
  return family->bytes_per_us * exp(lp_fit_curve_at(pass, at));
}

double lp_fit_base(const lp_fit_family *family, const lp_op_facts *facts) {
  double flops = facts->flops, bytes = facts->bytes, size = lp_fit_size(family, facts);
  double scale = size > 0 ? lp_fit_whole_quanta(family, size) / size : 1;
  if (family->op == LP_HW_LINEAR) {
    flops *= scale;
  } else if (family->op == LP_HW_ATTENTION && family->decode) {
    flops *= scale;
    bytes *= scale;
  } else if (family->op == LP_HW_ATTENTION) {
    double q = (double)facts->q_len, kv = (double)facts->kv_len;
    double pairs = lp_hw_attention_pairs(q, kv);
    flops *= lp_hw_attention_pairs(lp_fit_whole_quanta(family, q), lp_fit_whole_quanta(family, kv)) / pairs;
  }
  double busy = power4(flops / family->flops_per_us) + power4(bytes / byte_rate(family, facts->pass_bytes));
  return log(family->launch_us + sqrt(sqrt(busy)) + 1e-9);
}

/* ---- neighbours ---- */

/* The size of the key along which to interpolate between curves that are equal in the others; -1: none. */
static int axis_of(const lp_fit_family *family) {
  return family->op != LP_HW_ATTENTION ? -1 : family->decode ? 1 : 0;
}

static double log_ratio(int64_t a, int64_t b) {
  return a == b ? 0 : log(((double)a + 1e-9) / ((double)b + 1e-9));
}

/* The Euclidean distance of the natural logarithms of all sizes of the shape. */
static double shape_distance(const int64_t *a, const int64_t *b) {
  double sum = 0;
  for (int i = 0; i < LP_FIT_KEYS; i++)
    sum += log_ratio(a[i], b[i]) * log_ratio(a[i], b[i]);
  return sqrt(sum);
}

static bool equal_but(const int64_t *a, const int64_t *b, int axis) {
  for (int i = 0; i < LP_FIT_KEYS; i++)
    if (i != axis && a[i] != b[i]) return false;
  return true;
}

/* The size along `curve` that stands for the operator. Pointwise operators of another width: as many elements. */
static double size_on(const lp_fit_family *family, const lp_fit_curve *curve, const lp_op_facts *facts) {
  double size = lp_fit_size(family, facts);
  bool pointwise = family->op != LP_HW_LINEAR && family->op != LP_HW_ATTENTION && family->op != LP_HW_ANY;
  return pointwise && curve->key[0] > 0 ? size * (double)facts->n / (double)curve->key[0] : size;
}

typedef struct {
  const lp_fit_family *family;
  const lp_op_facts *facts;
  int32_t left_out;
} query;

/* Where the operator is along `curve`: the logarithm of its size. */
static double at_size(const query *q, const lp_fit_curve *curve) {
  return log(fmax(lp_fit_whole_quanta(q->family, size_on(q->family, curve, q->facts)), 1e-6));
}

/* How far `x` is beyond the knots of `curve`. */
static double beyond(const lp_fit_curve *curve, double x) {
  return curve->count > 0 ? fmax(0, fmax(curve->x[0] - x, x - curve->x[curve->count - 1])) : 0;
}

/* The prediction of one curve at the distance `away` from the operator's shape. */
static lp_fit_blend ask(const query *q, const lp_fit_curve *curve, double away) {
  const lp_fit_family *family = q->family;
  double size = size_on(family, curve, q->facts), x = at_size(q, curve), along = INFINITY;
  double outside = beyond(curve, x) / M_LN2;
  for (int32_t i = 0; i < curve->measured_count; i++)
    along = fmin(along, fabs(log2(fmax(size, 1e-6) / curve->measured[i])));
  double spread = curve->spread;
  if (away > 0) {
    double share = away / fmax(family->unseen_distance, 0.1);
    spread += (fmax(family->unseen_spread, spread) - spread) * fmin(share, 1);
    spread *= sqrt(fmax(share, 1));
  }
  return (lp_fit_blend){
      .y = lp_fit_curve_at(curve, x), .spread = spread * (1 + outside / 2), .distance = hypot(along, away / M_LN2)};
}

static lp_fit_blend mix(lp_fit_blend a, lp_fit_blend b, double share_of_b) {
  return (lp_fit_blend){.y = a.y + (b.y - a.y) * share_of_b,
                        .spread = a.spread + (b.spread - a.spread) * share_of_b,
                        .distance = fmin(a.distance, b.distance)};
}

static int32_t nearest(const query *q, const int64_t *key) {
  int32_t best = -1;
  double least = INFINITY;
  for (int32_t i = 0; i < q->family->count; i++) {
    double distance = shape_distance(key, q->family->curve[i].key);
    if (i != q->left_out && distance < least) best = i, least = distance;
  }
  return best;
}

/* Interpolates along the axis between neighbouring curves that equal `key` in the other sizes. `away` is the distance
 * of `key` from the operator's shape. There is at least one such curve. */
static lp_fit_blend along_axis(const query *q, const int64_t *key, int axis, double away) {
  const lp_fit_curve *low = NULL, *high = NULL;
  for (int32_t i = 0; i < q->family->count; i++) {
    const lp_fit_curve *curve = &q->family->curve[i];
    if (i == q->left_out || !equal_but(key, curve->key, axis)) continue;
    if (curve->key[axis] <= key[axis] && (!low || curve->key[axis] > low->key[axis])) low = curve;
    if (curve->key[axis] >= key[axis] && (!high || curve->key[axis] < high->key[axis])) high = curve;
  }
  if (!low) low = high;
  if (!high) high = low;
  if (!low || !high) return (lp_fit_blend){.distance = INFINITY};
  lp_fit_blend a = ask(q, low, hypot(away, log_ratio(key[axis], low->key[axis])));
  if (low == high) return a;
  lp_fit_blend b = ask(q, high, hypot(away, log_ratio(key[axis], high->key[axis])));
  return mix(a, b, log_ratio(key[axis], low->key[axis]) / log_ratio(high->key[axis], low->key[axis]));
}

/* Averages over all shapes, to predict shapes that were not measured. Near ones have more weight, and less those that
 * were not measured up to this size, as heads of models are measured for one row only. */
static lp_fit_blend over_shapes(const query *q, const int64_t *key) {
  const double reach = 0.5; /* shapes nearer than this have equal weight */
  lp_fit_blend sum = {.distance = INFINITY};
  double weights = 0;
  for (int32_t i = 0; i < q->family->count; i++) {
    if (i == q->left_out) continue;
    const lp_fit_curve *curve = &q->family->curve[i];
    double away = shape_distance(key, curve->key), past = beyond(curve, at_size(q, curve));
    double weight = 1 / (away * away + past * past + reach * reach);
    lp_fit_blend one = ask(q, curve, away);
    sum.y += weight * one.y;
    weights += weight;
    if (one.distance < sum.distance) sum.distance = one.distance, sum.spread = one.spread;
  }
  sum.y /= weights;
  return sum;
}

lp_fit_blend lp_fit_combine(const lp_fit_family *family, const lp_op_facts *facts, int32_t left_out) {
  query q = {family, facts, left_out};
  int64_t key[LP_FIT_KEYS];
  lp_fit_key(family, facts, key);
  int32_t best = nearest(&q, key);
  const lp_fit_curve *curve = &family->curve[best];
  double away = shape_distance(key, curve->key);
  int axis = axis_of(family);
  if (away == 0) return ask(&q, curve, 0);
  if (family->op == LP_HW_LINEAR) return over_shapes(&q, key);
  if (axis < 0) return ask(&q, curve, away);
  int64_t like[LP_FIT_KEYS]; /* the nearest curve's shape, except along the axis */
  memcpy(like, curve->key, sizeof like);
  like[axis] = key[axis];
  return along_axis(&q, like, axis, shape_distance(key, like));
}
