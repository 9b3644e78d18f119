/* Prices of tokens and rows: see bound.h. */
#include "fleet/bound.h"

#include <math.h>

enum { STEPS = 16 }; /* of each of two nested searches: prices within 1e-4 of the best ones */

/* ---- passes ------------------------------------------------------------------------------------------------------ */

/* The time of a pass by its tokens and rows: token_s[d] + row_s[r], and prompt_s[r] without tokens. */
typedef struct {
  int64_t sessions, most; /* most: rows of a pass */
  double token_s[LP_PASS_MOST_SEQUENCES + 1];
  double row_s[LP_PASS_MOST_ROWS + 1], prompt_s[LP_PASS_MOST_ROWS + 1];
  int64_t point[LP_LOAD_KNOTS + 1]; /* numbers of rows, in ascending order, between which times are linear */
} passes;

static void passes_begin(const lp_load_law *law, int64_t sessions, passes *out) {
  out->sessions = sessions;
  out->most = lp_trial_most_rows(law);
  for (int64_t d = 1; d <= LP_PASS_MOST_SEQUENCES; d++)
    out->token_s[d] = lp_trial_pass_s(law, (double)d, 0);
  out->token_s[0] = out->row_s[0] = out->prompt_s[0] = 0;
  for (int64_t r = 1; r <= out->most; r++) {
    out->prompt_s[r] = lp_trial_pass_s(law, 0, (double)r);
    out->row_s[r] = lp_trial_pass_s(law, 1, (double)r) - out->token_s[1];
  }
  out->point[0] = 0;
  for (int i = 0; i < LP_LOAD_KNOTS; i++)
    out->point[i + 1] = (int64_t)law->rows[i];
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* The most rows beside `tokens`. */
static int64_t most_rows(const passes *p, int64_t tokens) {
  if (tokens == p->sessions || tokens > LP_PASS_MOST_SEQUENCES - LP_PASS_PROMPT_SEQUENCES) return 0;
  return p->most - tokens;
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

static void lower(const passes *p, int64_t tokens, int64_t rows, lp_fleet_price *price) {
  const double time = tokens > 0 ? p->token_s[tokens] + p->row_s[rows] : p->prompt_s[rows],
               paid = price->row_s * (double)rows, d = (double)tokens;
  const double kept = ((1 + price->slow * d) * time - paid) / d, any = (time - paid) / d;
  if (kept < price->kept_s) price->kept_s = kept;
  if (any < price->free_s) price->free_s = any;
}

/* Sets the highest prices of tokens that row_s and slow leave: over passes with any number of rows, since the least is
 * at one at which the slope of the times changes. `all`: and of tokens; otherwise every eighth number of them. */
static void price_tokens(const passes *p, bool all, lp_fleet_price *price) {
  price->kept_s = price->free_s = INFINITY;
  for (int64_t d = 1; d <= p->sessions; d = all || d < 8 || d == p->sessions ? d + 1 : least(d + 8, p->sessions)) {
    const int64_t most = most_rows(p, d);
    for (int i = 0; i <= LP_LOAD_KNOTS && p->point[i] < most; i++)
      lower(p, d, p->point[i], price);
    lower(p, d, most, price);
  }
}

/* What tokens after the first cost on average if a share `kept` of them keeps `limit_s`. */
static double tokens_s(const lp_fleet_price *price, double kept, double limit_s) {
  return kept * (price->kept_s - price->slow * limit_s) + (1 - kept) * price->free_s;
}

/* The machine time of a request of mean lengths, at `token_s` for each token. A pass may count the last row of a prompt
 * as a token, so that row has the lower of the two prices. */
static double work_s(const lp_fleet_means *means, const lp_fleet_price *price, double token_s) {
  return (means->prompt - 1) * price->row_s + fmin(price->row_s, price->free_s) + (means->answer - 1) * token_s;
}

/* The same by the sessions that are held: `token_s` with the time of the devices. */
static double session_s(const lp_fleet_means *means, const lp_fleet_price *price, double token_s, int64_t sessions) {
  const double last = fmin(price->row_s, fmin(price->free_s, price->kept_s));
  return ((means->prompt - 1) * price->row_s + last + (means->answer - 1) * token_s) /
         (1 + price->slow * (double)sessions);
}

/* ---- the best prices --------------------------------------------------------------------------------------------- */

typedef struct {
  const passes *passes;
  const lp_fleet_means *means;
  double kept, limit_s, most_row_s, held_s; /* held_s: lp_fleet_pace.held_s; below 0: the bound is not by sessions */
  lp_fleet_price best;
  double best_s;
} optimum;

typedef double function_of(optimum *o, double x, double slow);

/* The maximum of a concave function: golden sections. */
static double greatest(optimum *o, function_of *of, double from, double to, double slow) {
  static const double part = 0.6180339887498949;
  double a = to - part * (to - from), b = from + part * (to - from), at_a = of(o, a, slow), at_b = of(o, b, slow);
  for (int i = 0; i < STEPS; i++) {
    if (at_a >= at_b) {
      to = b, b = a, at_b = at_a;
      at_a = of(o, a = to - part * (to - from), slow);
    } else {
      from = a, a = b, at_a = at_b;
      at_b = of(o, b = from + part * (to - from), slow);
    }
  }
  return fmax(at_a, at_b);
}

static double try_row_s(optimum *o, double row_s, double slow) {
  lp_fleet_price price = {.sessions = o->passes->sessions, .row_s = row_s, .slow = slow};
  price_tokens(o->passes, false, &price);
  const double found = o->held_s < 0
                           ? work_s(o->means, &price, tokens_s(&price, o->kept, o->limit_s))
                           : session_s(o->means, &price, price.kept_s + slow * o->held_s, o->passes->sessions);
  if (price.free_s >= 0 && price.kept_s >= 0 && found > o->best_s) o->best = price, o->best_s = found;
  return found;
}

static double try_slow(optimum *o, double logarithm, double unused) {
  (void)unused;
  return greatest(o, try_row_s, 0, o->most_row_s, exp(logarithm));
}

/* The best prices for one limit; kept 0: for none; held_s from 0: for the sessions. */
static lp_fleet_price find(const passes *p, const lp_fleet_means *means, double kept, double limit_s, double held_s) {
  static const double least_slow = 1e-5, most_slow = 10, rounding = 1e-9;
  optimum o = {.passes = p, .means = means, .kept = kept, .limit_s = limit_s, .most_row_s = INFINITY, .held_s = held_s};
  for (int64_t r = 1; r <= most_rows(p, 0); r++)
    o.most_row_s = fmin(o.most_row_s, p->prompt_s[r] / (double)r);
  (void)greatest(&o, try_row_s, 0, o.most_row_s, 0);
  if (kept > 0 || held_s > 0) (void)greatest(&o, try_slow, log(least_slow), log(most_slow), 0);
  o.best.sessions = p->sessions;
  o.best.row_s *= 1 - rounding;
  price_tokens(p, true, &o.best);
  o.best.kept_s = fmax(0, o.best.kept_s * (1 - rounding));
  o.best.free_s = fmax(0, o.best.free_s * (1 - rounding));
  return o.best;
}

/* The share of the tokens that keep limit k at least, and the limit of their passes; 0: none do. */
static double kept_of(const lp_fleet_means *means, const lp_fleet_pace *pace, int k, double *limit_s) {
  *limit_s = pace->limit_s[k] / pace->asks - pace->user_s;
  return pace->limit_s[k] > 0 ? means->kept[k] : 0;
}

lp_fleet_pace lp_fleet_pace_of(const lp_fleet_spec *spec, const lp_fleet_candidates *all, const lp_fleet_option *option,
                               size_t class) {
  const lp_load_user *user = lp_fleet_user_of(all, option, class);
  return (lp_fleet_pace){user->token_s, option->exits ? spec->exits.asks : 1, user->streams ? 0 : user->token_s,
                         spec->classes.data[class].limit_s[LP_FLEET_TPOT]};
}

static void add(lp_fleet_option *option, lp_fleet_price price) {
  LP_FOR_EACH(const lp_fleet_price, known, option->price, option->prices)
    if (known->sessions == price.sessions && known->row_s == price.row_s && known->slow == price.slow) return;
  option->price[option->prices++] = price;
}

void lp_fleet_prices_find(const lp_fleet_spec *spec, const lp_fleet_candidates *all, lp_fleet_option *option) {
  for (size_t class = 0; class < spec->classes.count; class ++) {
    const lp_fleet_pace pace = lp_fleet_pace_of(spec, all, option, class);
    lp_fleet_means means = all->means;
    passes p;
    if (!(option->serves >> class & 1)) continue;
    means.answer = 1 + pace.asks * (means.answer - 1);
    passes_begin(option->law, lp_fleet_sessions(spec, all, option, 1u << class), &p);
    add(option, find(&p, &means, 0, 0, -1));
    if (pace.held_s > 0) add(option, find(&p, &means, 0, 0, pace.held_s));
    for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
      double limit_s;
      const double kept = kept_of(&means, &pace, k, &limit_s);
      if (kept > 0) add(option, find(&p, &means, kept, limit_s, -1));
    }
  }
}

double lp_fleet_work_s(const lp_fleet_means *means, const lp_fleet_option *option, int64_t sessions,
                       const lp_fleet_pace *pace, const double *share, int32_t classes) {
  double best = 0;
  LP_FOR_EACH(const lp_fleet_price, price, option->price, option->prices) {
    double sum = 0, held = 0;
    for (int32_t class = 0; class < classes; class ++) {
      double token = price->free_s, limit_s;
      for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
        const double kept = kept_of(means, &pace[class], k, &limit_s);
        token = fmax(token, tokens_s(price, kept, limit_s));
      }
      sum += share[class] * pace[class].asks * token;
      held += share[class] * pace[class].asks * (price->kept_s + price->slow * pace[class].held_s);
    }
    if (price->sessions < sessions) continue;
    best = fmax(best, fmax(work_s(means, price, sum), session_s(means, price, held, sessions)));
  }
  return best;
}
