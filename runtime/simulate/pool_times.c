/* Times of requests in a pool, and their percentiles: see pool.h. */
#include <math.h>

#include "runtime/simulate/pool.h"

const char *const lp_fleet_figure_names[LP_FLEET_FIGURES] = {"ttft", "tpot", "answer"};
const char *const lp_fleet_quantile_names[LP_FLEET_QUANTILES] = {"p50", "p95", "p99"};
const double lp_fleet_quantiles[LP_FLEET_QUANTILES] = {0.5, 0.95, 0.99};

double lp_sim_pool_first_s(const lp_sim_pool_user *user, double prompt) {
  int32_t i = 1;
  while (i < user->knots - 1 && prompt > user->prompt[i])
    i++;
  const double wide = user->prompt[i] - user->prompt[i - 1];
  const double share = wide > 0 ? (prompt - user->prompt[i - 1]) / wide : 0;
  return fmax(0, user->first_s[i - 1] + share * (user->first_s[i] - user->first_s[i - 1]));
}

double lp_sim_pool_question_rows(const lp_sim_pool_user *user) {
  return user->question_rows > 0 ? user->question_rows : user->asks > 0 ? 1 / user->asks : 1;
}

double lp_sim_pool_asked(const lp_sim_pool_user *user, double answer) {
  return user->asks > 0 ? 1 + ceil((answer - 1) * user->asks * (1 - 1e-12)) : answer;
}

double lp_sim_pool_together(const lp_sim_pool *pool) {
  double answer = 0, user_s = 0;
  for (size_t i = 0; i < pool->lengths; i++)
    answer += pool->length[i].weight * pool->length[i].answer;
  for (int32_t i = 0; i < pool->classes; i++)
    if (!pool->class[i].user.streams) user_s = fmax(user_s, pool->class[i].user.token_s);
  return fmin(1e7, pool->rate * answer * (lp_sim_pass_s(&pool->station.pass, (double)pool->sessions, 0) + user_s));
}

void lp_sim_pool_sample_add(lp_sim_pool_sample *sample, double first_s, double token_s, double tokens, double weight) {
  lp_vec_push(&sample->of[LP_FLEET_TTFT], ((lp_sim_pool_value){first_s, weight}));
  lp_vec_push(&sample->of[LP_FLEET_ANSWER], ((lp_sim_pool_value){first_s + (tokens - 1) * token_s, weight}));
  if (tokens > 1) lp_vec_push(&sample->of[LP_FLEET_TPOT], ((lp_sim_pool_value){token_s, weight}));
}

static void swap(lp_sim_pool_value *a, lp_sim_pool_value *b) {
  const lp_sim_pool_value kept = *a;
  *a = *b;
  *b = kept;
}

/* The least value for which values up to it weigh at least `wanted` (Hoare's selection). Changes the values' order. */
static double percentile(lp_sim_pool_value *of, size_t count, double wanted) {
  size_t low = 0, high = count;
  double below = 0;
  while (high - low > 1) {
    const double pivot = of[low + (high - low) / 2].value;
    size_t less = low, more = high;
    double lighter = below, equal = 0;
    for (size_t i = low; i < more;) {
      if (of[i].value > pivot) {
        swap(&of[i], &of[--more]);
        continue;
      }
      *(of[i].value < pivot ? &lighter : &equal) += of[i].weight;
      if (of[i].value < pivot) swap(&of[i], &of[less++]);
      i++;
    }
    if (lighter < wanted && lighter + equal >= wanted) return pivot;
    if (lighter >= wanted) {
      high = less;
    } else {
      low = more;
      below = lighter + equal;
    }
  }
  return count == 0 ? 0 : of[low < count ? low : count - 1].value;
}

void lp_sim_pool_sample_end(lp_sim_pool_sample *sample, lp_fleet_times *out) {
  for (int i = 0; i < LP_FLEET_FIGURES; i++) {
    double sum = 0;
    LP_FOR_VEC(const lp_sim_pool_value, one, &sample->of[i])
      sum += one->weight;
    for (int k = 0; k < LP_FLEET_QUANTILES; k++)
      out->value_s[i][k] =
          percentile(sample->of[i].data, sample->of[i].count, lp_fleet_quantiles[k] * sum * (1 - 1e-12));
    lp_vec_free(&sample->of[i]);
  }
}

lp_fleet_strain lp_sim_pool_strain_of(const double limit_s[LP_FLEET_FIGURES][LP_FLEET_QUANTILES],
                                      const lp_fleet_times *times) {
  lp_fleet_strain worst = {0};
  for (int i = 0; i < LP_FLEET_FIGURES; i++)
    for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
      const double limit = limit_s[i][k], ratio = limit > 0 ? times->value_s[i][k] / limit : 0;
      if (ratio > worst.ratio) worst = (lp_fleet_strain){ratio, (lp_fleet_figure)i, k};
    }
  return worst;
}

void lp_sim_pool_alone(const lp_fleet_length *length, size_t lengths, size_t stride, const lp_sim_pool_user *user,
                       const lp_sim_station *station, lp_fleet_times *out) {
  const double asks = user->asks > 0 ? user->asks : 1;
  const double rows = lp_sim_pool_question_rows(user);
  const double token_s = asks * (user->token_s + (station ? lp_sim_pass_s(&station->pass, rows, 0) : 0));
  lp_sim_pool_sample sample = {0};
  for (size_t i = 0; i < lengths; i += stride) {
    const double cloud_s = station ? lp_sim_passes_alone_s(station, length[i].prompt, 1) : 0;
    lp_sim_pool_sample_add(&sample, lp_sim_pool_first_s(user, length[i].prompt) + cloud_s, token_s, length[i].answer,
                           length[i].weight);
  }
  lp_sim_pool_sample_end(&sample, out);
}
