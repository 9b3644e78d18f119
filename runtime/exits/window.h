/* Decides in exact mode how many tokens to draft before the cloud is asked.
 *
 * A round is some drafts, one question, and the tokens of its answer. Drafting continues while the chance that the
 * next draft counts is at least the time that it costs, at the current rate of tokens per ms: the rule that maximises
 * this rate in the long run (renewal reward). The chance of a draft is the share of confirmed drafts of its
 * confidence. Its cost is the time of its pass, or the time by which one more draft has made rounds longer, whichever
 * is greater: on a narrow link a row is on the way for longer than the device computes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { LP_WINDOW_BUCKETS = 10 }; /* of confidence */

/* Sums over rounds, with exponentially smaller weight for older rounds, and the slope of a round's ms over its
 * drafts. */
typedef struct {
  double rounds, drafts, tokens, ms, drafts_squared, drafts_ms, ms_squared;
  double slope; /* ms of one draft; 0: unknown */
} lp_window_fit;

typedef struct {
  double confirmed[LP_WINDOW_BUCKETS], tried[LP_WINDOW_BUCKETS];
  double rate;     /* tokens per ms over recent rounds; 0: no round yet */
  double draft_ms; /* running mean of the pass of one draft */
  lp_window_fit fit;
} lp_window;

void lp_window_init(lp_window *window);
/* The chance that the full model confirms a draft of this confidence. */
double lp_window_chance(const lp_window *window, double confidence);
/* Tells whether to make a draft that counts with this chance (the product of its own chance and those of all drafts
 * before it in the round). */
bool lp_window_goes_on(const lp_window *window, double chance);
void lp_window_note_draft(lp_window *window, double ms); /* Notes the time of a draft's pass. */
void lp_window_note_verdict(lp_window *window, double confidence, bool confirmed);
/* A round of `drafts` gave `tokens` after `ms`. */
void lp_window_note_round(lp_window *window, int64_t drafts, int64_t tokens, double ms);
