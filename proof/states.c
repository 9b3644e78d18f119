/* The states of a link that varies, and the probability with which a plan is within the SLA. */
#include "proof/certificate.h"

#include <math.h>

typedef struct {
  double rtt_ms, bps[2];
} state;

static lp_status read_state(const lp_json *list, size_t index, state *out, lp_diag *diag) {
  lp_json row = lp_json_item(list, index);
  double *to[] = {&out->rtt_ms, &out->bps[0], &out->bps[1]};
  LP_TRY(lp_json_array(&row, diag));
  if (lp_json_count(&row) != LP_COUNT(to)) return lp_json_error(&row, diag, "a state has three numbers");
  for (size_t i = 0; i < LP_COUNT(to); i++)
    LP_TRY(lp_json_number(LP_ITEM(&row, i), 0, INFINITY, to[i], diag));
  return LP_OK;
}

/* Tells whether the placement is within the SLA when the link is in a state. */
static bool meets(lp_certificate *c, const lp_certificate_request *r, const state *s) {
  lp_certificate_request there = *r;
  there.rtt_ms = s->rtt_ms;
  c->message_ms = s->rtt_ms / 2;
  for (int side = 0; side < 2; side++) {
    there.bps[side] = s->bps[side];
    c->ms_per_byte[side] = 8e3 / (s->bps[side] * (1 - r->loss));
  }
  lp_certificate_totals t = lp_certificate_add_up(c);
  (void)lp_certificate_follow_exits(c, &there, &t);
  for (int i = 0; i < 2; i++)
    if (r->sla_ms[i] > 0 && !(t.ms[i] <= r->sla_ms[i] * (1 + 1e-9))) return false;
  return true;
}

/* The figures of the report have 12 digits. */
static bool is_as_good(const lp_certificate_request *r, const state *s) {
  const double slack = 1 + 1e-11;
  return s->rtt_ms <= r->rtt_ms * slack && s->bps[0] * slack >= r->bps[0] && s->bps[1] * slack >= r->bps[1];
}

lp_status lp_certificate_states_check(lp_certificate *c, const lp_certificate_request *r, double *share,
                                      lp_diag *diag) {
  lp_json report = lp_json_root(r->file, c->report), link = lp_json_member(&report, "link"),
          list = lp_json_member(&link, "states_rtt_ms_up_bps_down_bps");
  const double message_ms = c->message_ms, up = c->ms_per_byte[0], down = c->ms_per_byte[1];
  *share = NAN;
  if (r->quantile <= 0 && !list.value) return LP_OK;
  LP_TRY(lp_json_array(&list, diag));
  if (!(r->quantile > 0) || r->quantile > 1)
    return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(r->file), "link: the quantile of its states is %g", r->quantile);
  const size_t count = lp_json_count(&list);
  size_t met = 0, good = 0;
  for (size_t i = 0; i < count; i++) {
    state s = {0};
    LP_TRY(read_state(&list, i, &s, diag));
    met += meets(c, r, &s);
    good += is_as_good(r, &s);
  }
  c->message_ms = message_ms;
  c->ms_per_byte[0] = up;
  c->ms_per_byte[1] = down;
  if ((double)good < r->quantile * (double)count - 1e-9)
    return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(r->file),
                       "link: %zu of %zu states are as good as its figures, the quantile is %g", good, count,
                       r->quantile);
  *share = count > 0 ? (double)met / (double)count : NAN;
  return LP_OK;
}
