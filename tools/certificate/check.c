/* Whether a report keeps what its certificate promises: its limits, its value, its lower bound. */
#include "base/side.h"
#include "tools/certificate/certificate.h"

#include <math.h>

static bool near(double a, double b) {
  return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-15;
}

lp_status certificate_check(const certificate *c, const char *file, certificate_finding *out, lp_diag *diag) {
  static const char *const times[] = {"TTFT", "TPOT"};
  totals t = certificate_add_up(c);
  double bound = certificate_bound(c);
  lp_status status = LP_OK;
  for (int i = 0; i < 2; i++) {
    if (c->limit_ms[i] > 0 && t.ms[i] > c->limit_ms[i] * (1 + 1e-12))
      status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "%s comes to %.9g ms, the limit is %.9g ms", times[i],
                           t.ms[i], c->limit_ms[i]);
    if (c->limit_bytes[i] > 0 && t.bytes[i] > c->limit_bytes[i])
      status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "the %s holds %.0f bytes, the limit is %.0f",
                           lp_side_name((lp_side)i), t.bytes[i], c->limit_bytes[i]);
    if (c->price_ms[i] < 0 || c->price_bytes[i] < 0)
      status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "a price is negative: it proves nothing");
  }
  if (!t.pinned || !t.caches)
    status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file),
                         t.pinned ? "a KV cache is used from both sides" : "a pinned operator is elsewhere");
  if (!near(t.value, c->value))
    status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "the plan comes to %.12g, the report says %.12g",
                         t.value, c->value);
  if (isnan(bound))
    status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file),
                         "the bound is not proved: reads are charged more than one message along a path");
  else if (bound < c->bound - 1e-9 * fabs(c->bound) - 1e-15)
    status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "the prices prove %.12g, the report says %.12g", bound,
                         c->bound);
  if (status == LP_OK) *out = (certificate_finding){.bound = fmin(bound, t.value), .totals = t};
  return status;
}

int certificate_move(certificate *c, int which, size_t index, int side) {
  unit *u = &c->stages[which].units[index];
  int moved = u->side != side;
  u->side = side;
  for (size_t k = 0; k < u->hold_count; k++) {
    if (!c->holdings[u->hold[k]].cache) continue;
    for (size_t i = 0; i < c->stages[which].unit_count; i++) {
      unit *other = &c->stages[which].units[i];
      for (size_t h = 0; h < other->hold_count; h++) {
        if (other->hold[h] != u->hold[k] || other->side == side) continue;
        other->side = side;
        moved++;
      }
    }
  }
  return moved;
}
