/* Decides how many tokens to draft: window.h states the rule. */
#include <math.h>
#include <string.h>

#include "runtime/exits/window.h"

/* Weight of the prior: each bucket begins with this many drafts, of which the share given by their confidence counts as
 * confirmed. */
static const double prior = 4;
/* The least chance of a draft before the first round, when there is no rate. */
static const double first_chance = 0.5;
static const double memory = 0.8;     /* weight of the past in running means of passes */
static const double fit_memory = 0.9; /* and in sums over rounds */

/* With fewer rounds, or with nearly equal numbers of drafts in all of them, the slope cannot be fitted. The old slope
 * then shrinks from round to round, so that the window notices when a link has become faster. */
static const double least_rounds = 2.5, least_variance = 0.25, doubt = 0.98;

void lp_window_init(lp_window *window) {
  memset(window, 0, sizeof *window);
}

static int bucket_of(double confidence) {
  int bucket = (int)(confidence * (double)LP_WINDOW_BUCKETS);
  return bucket < 0 ? 0 : bucket >= LP_WINDOW_BUCKETS ? LP_WINDOW_BUCKETS - 1 : bucket;
}

double lp_window_chance(const lp_window *window, double confidence) {
  int bucket = bucket_of(confidence);
  return (window->confirmed[bucket] + prior * confidence) / (window->tried[bucket] + prior);
}

static double draft_cost(const lp_window *window) {
  return window->fit.slope > window->draft_ms ? window->fit.slope : window->draft_ms;
}

bool lp_window_goes_on(const lp_window *window, double chance) {
  double worth = window->rate > 0 ? window->rate * draft_cost(window) : first_chance;
  return chance >= worth;
}

static double mean_with(double mean, double value) {
  return mean > 0 ? memory * mean + (1 - memory) * value : value;
}

void lp_window_note_draft(lp_window *window, double ms) {
  window->draft_ms = mean_with(window->draft_ms, ms);
}

void lp_window_note_verdict(lp_window *window, double confidence, bool confirmed) {
  int bucket = bucket_of(confidence);
  window->tried[bucket] += 1;
  window->confirmed[bucket] += confirmed;
}

static void sum_round(lp_window_fit *fit, double drafts, double tokens, double ms) {
  fit->rounds = fit_memory * fit->rounds + 1;
  fit->tokens = fit_memory * fit->tokens + tokens;
  fit->drafts = fit_memory * fit->drafts + drafts;
  fit->ms = fit_memory * fit->ms + ms;
  fit->drafts_squared = fit_memory * fit->drafts_squared + drafts * drafts;
  fit->drafts_ms = fit_memory * fit->drafts_ms + drafts * ms;
  fit->ms_squared = fit_memory * fit->ms_squared + ms * ms;
}

/* Fits by least squares and subtracts one standard error, so that noise in a few rounds does not shorten the drafts. */
static void fit_slope(lp_window_fit *fit) {
  double x = fit->drafts / fit->rounds, y = fit->ms / fit->rounds;
  double variance = fit->drafts_squared / fit->rounds - x * x;
  if (fit->rounds < least_rounds || variance < least_variance) {
    fit->slope *= doubt;
    return;
  }
  double common = fit->drafts_ms / fit->rounds - x * y, slope = common / variance;
  double rest = fmax(fit->ms_squared / fit->rounds - y * y - slope * common, 0);
  fit->slope = slope - sqrt(rest / variance / (fit->rounds - 2));
}

void lp_window_note_round(lp_window *window, int64_t drafts, int64_t tokens, double ms) {
  sum_round(&window->fit, (double)drafts, (double)tokens, ms);
  fit_slope(&window->fit);
  if (window->fit.ms > 0) window->rate = window->fit.tokens / window->fit.ms;
}
