/* Errors of predictions against measurements. */
#include "base/number.h"
#include "hwmodels/hwmodels_internal.h"

#include <math.h>

typedef struct {
  double error_pct;
  bool covered;
  const lp_hw_sample *sample;
} judged;

static bool is_decode(const lp_hw_sample *sample) {
  return sample->op == LP_HW_ATTENTION && sample->facts.q_len == 1;
}

/* Kinds of samples: one operator each, then groups of them. */
enum { DECODE = LP_HW_OP_COUNT, PREFILL, POINTWISE, ALL };

static bool is_of(size_t kind, const lp_hw_sample *sample) {
  switch (kind) {
  case DECODE:
    return is_decode(sample);
  case PREFILL:
    return sample->op == LP_HW_ATTENTION && !is_decode(sample);
  case POINTWISE:
    return sample->op != LP_HW_LINEAR && sample->op != LP_HW_ATTENTION && sample->op != LP_HW_SAMPLE;
  case ALL:
    return true;
  default:
    return sample->op == kind;
  }
}

static const char *name_of(size_t kind) {
  static const char *const groups[] = {"attention_decode", "attention_prefill", "pointwise", "all"};
  return kind < LP_HW_OP_COUNT ? lp_hw_op_name((lp_hw_op)kind) : groups[kind - LP_HW_OP_COUNT];
}

/* A quantile, interpolated between the two nearest ranks. */
static double percentile(const double *sorted, size_t count, double share) {
  double rank = share * (double)(count - 1);
  size_t low = (size_t)rank, high = low + 1 < count ? low + 1 : low;
  return sorted[low] + (sorted[high] - sorted[low]) * (rank - (double)low);
}

static bool judge(size_t kind, const judged *all, size_t count, lp_hw_errors *out) {
  double *error = lp_alloc((count + 1) * sizeof *error), sum = 0;
  size_t found = 0, covered = 0;
  for (size_t i = 0; i < count; i++) {
    if (!is_of(kind, all[i].sample)) continue;
    error[found++] = all[i].error_pct;
    sum += all[i].error_pct;
    covered += all[i].covered;
  }
  if (found > 0) {
    qsort(error, found, sizeof *error, lp_compare_doubles);
    *out = (lp_hw_errors){.name = name_of(kind),
                          .count = found,
                          .mape_pct = sum / (double)found,
                          .median_pct = percentile(error, found, 0.5),
                          .p90_pct = percentile(error, found, 0.9),
                          .coverage90 = (double)covered / (double)found};
  }
  free(error);
  return found > 0;
}

/* Rounds predicted times as the measurements' clock would: the interval is around rounded times, as are the residuals
 * that set it. */
static judged judge_one(const lp_prediction *p, const lp_hw_sample *sample) {
  double ms = sample->time_us * 1e-3, shown = lp_fit_on_clock(p->tick_ms, p->time_ms), ratio = ms / shown;
  return (judged){.error_pct = 100 * fabs(shown / ms - 1),
                  .covered = p->low_ms / p->time_ms <= ratio && ratio <= p->high_ms / p->time_ms,
                  .sample = sample};
}

size_t lp_hw_evaluate(const lp_machine *machine, const lp_hw_samples *samples, lp_hw_errors out[LP_HW_ERRORS],
                      size_t *impossible) {
  LP_OWNED(lp_free_at) judged *all = lp_alloc((samples->count + 1) * sizeof *all);
  size_t possible = 0;
  LP_FOR_VEC(const lp_hw_sample, sample, samples) {
    if (!lp_hw_is_possible(machine, sample)) continue;
    lp_prediction p = lp_hw_predict(machine, &sample->facts);
    all[possible++] = judge_one(&p, sample);
  }
  *impossible = samples->count - possible;
  size_t count = 0;
  for (size_t kind = 0; kind < LP_HW_ERRORS; kind++)
    if (judge(kind, all, possible, &out[count])) count++;
  return count;
}
