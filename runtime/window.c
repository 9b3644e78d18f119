/* How far to draft before the cloud is asked: collaborate.h states the rule. */
#include <string.h>

#include "runtime/collaborate.h"

/* A draft counts as tried this often with the outcome that its confidence promises, before any was tried. */
static const double prior = 4;
/* Before the first round there is no rate: a draft is made that counts with this chance. */
static const double first_chance = 0.5;
static const double memory = 0.8; /* weight of the past in running means */

void lp_window_init(lp_window *window) {
  memset(window, 0, sizeof(*window));
}

static int bucket_of(double confidence) {
  int bucket = (int)(confidence * (double)LP_WINDOW_BUCKETS);
  return bucket < 0 ? 0 : bucket >= LP_WINDOW_BUCKETS ? LP_WINDOW_BUCKETS - 1 : bucket;
}

double lp_window_chance(const lp_window *window, double confidence) {
  int bucket = bucket_of(confidence);
  return (window->confirmed[bucket] + prior * confidence) / (window->tried[bucket] + prior);
}

bool lp_window_goes_on(const lp_window *window, double chance) {
  double worth = window->rate > 0 ? window->rate * window->draft_ms : first_chance;
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

void lp_window_note_round(lp_window *window, int64_t tokens, double ms) {
  if (ms > 0) window->rate = mean_with(window->rate, (double)tokens / ms);
}
