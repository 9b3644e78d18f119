/* Computes the sums of a token with early exits from those of a token that the cloud computes.
 *
 * exact: after `drafts` passes of the device, one question; drafts of chance p yield 1 + p + .. + p^drafts tokens.
 * threshold: a share of tokens is taken at exits. Each side computes each row once, and further rows at most at the
 * price of a prompt token. A token takes at least the time to send its rows. standalone: the cloud does nothing. */
#include "proof/certificate.h"

#include <math.h>

/* Per token: passes of the device, rows that are sent, questions, and further rows that the cloud computes together
 * with those of the question. */
typedef struct {
  double passes, rows, questions, further;
} shares;

/* `late`: the time of a further row on the device, as a share of its pass. */
static shares shares_of(const lp_certificate_request *r, double late) {
  if (lp_streq(r->exits, "threshold")) {
    double asked = 1 - r->exit_rate;
    return (shares){r->layer_runs + (1 - r->layer_runs) * late, 1, asked, asked > 0 ? r->exit_rate : 0};
  }
  double tokens = 1, chance = 1;
  for (int i = 0; i < r->drafts; i++)
    tokens += chance *= r->exit_rate;
  return (shares){r->drafts / tokens, r->drafts / tokens, 1 / tokens, (r->drafts - 1) / tokens};
}

static double without_cloud(lp_certificate_totals *t) {
  for (int w = 0; w < 2; w++) {
    t->busy[w][1] = t->link_ms[w] = t->messages[w] = t->crossings[w] = t->sent[w][0] = t->sent[w][1] = 0;
    t->ms[w] = t->busy[w][0] + (w == 0 ? t->move_ms : 0);
  }
  return NAN;
}

double lp_certificate_follow_exits(const lp_certificate *c, const lp_certificate_request *r, lp_certificate_totals *t) {
  if (!r->exits || !(t->messages[1] > 1 && t->messages[1] < 3)) return NAN;
  if (lp_streq(r->exits, "standalone")) return without_cloud(t);
  const double pass = t->busy[1][0];
  const shares s = shares_of(r, pass > 0 ? fmin(1, t->busy[0][0] / r->isl / pass) : 0);
  const double step = t->busy[1][1], row = fmin(step, t->busy[0][1] / r->isl);
  const double upload = r->row_share * t->sent[1][0] * c->ms_per_byte[0];
  const double way = 2 * c->message_ms + t->sent[1][1] * c->ms_per_byte[1] + upload;
  t->busy[1][0] *= s.passes;
  t->busy[1][1] = s.questions * step + s.further * row;
  t->link_ms[1] = s.questions * way;
  t->link_ms[1] += fmax(0, s.rows * upload - t->busy[1][0] - t->busy[1][1] - t->link_ms[1]);
  t->sent[1][0] *= r->row_share * s.rows;
  t->sent[1][1] *= s.questions;
  t->ms[1] = t->busy[1][0] + t->busy[1][1] + t->link_ms[1];
  return s.questions;
}
