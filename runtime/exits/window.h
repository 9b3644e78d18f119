/* How many tokens to draft before the cloud is asked. */
#ifndef LP_WINDOW_H
#define LP_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum { LP_WINDOW_BUCKETS = 10 };

/* Sums over rounds, older ones weighing less and less: the line of a round's ms over its drafts. */
typedef struct {
  double rounds, drafts, tokens, ms, drafts_squared, drafts_ms, ms_squared;
  double slope; /* ms of a draft; 0: not known */
} lp_window_fit;

/* Drafting goes on while the chance that the next draft will count is worth the time that it takes, at the going rate of
 * tokens per ms: the rule that maximises that rate in the long run (renewal reward). The chance of a draft is what drafts
 * of its confidence had so far. What it takes is its pass, or what one more draft has made rounds longer, if that is more: on
 * a narrow link its row is on the way for longer than the device computes. */
typedef struct {
  double confirmed[LP_WINDOW_BUCKETS], tried[LP_WINDOW_BUCKETS];
  double rate;     /* tokens per ms, over rounds of the recent past; 0: no round yet */
  double draft_ms; /* the pass of one draft takes */
  lp_window_fit fit;
} lp_window;

void lp_window_init(lp_window *window);
double lp_window_chance(const lp_window *window, double confidence);
/* Is a draft worth it that counts with this chance (its own times that of all before it)? */
bool lp_window_goes_on(const lp_window *window, double chance);
void lp_window_note_draft(lp_window *window, double ms);
void lp_window_note_verdict(lp_window *window, double confidence, bool confirmed);
/* A round made so many drafts, and gave so many tokens. */
void lp_window_note_round(lp_window *window, int64_t drafts, int64_t tokens, double ms);
double lp_window_draft_cost(const lp_window *window); /* ms */

#endif
