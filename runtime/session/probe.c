/* What the link to a worker is like: how long a message without content takes to be answered, and how much longer one with
 * content does. */
#include "base/clock.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"

#include <math.h>
#include <stdlib.h>

enum { ROUND_TRIPS = 3, FIRST_BYTES = 4 << 10, MOST_BYTES = 1 << 20, GROWTH = 4 };

static const double unlimited_bps = 1e18;

/* A time above what the clock, the scheduler and a link that is not always equally fast add. */
static double telling_ms(double rtt_ms) {
  return fmax(5, rtt_ms / 4);
}

static lp_status lost(const lp_wire *link, const char *why, lp_diag *diag) {
  return lp_error(diag, LP_LOC_NONE, "the cloud at %s was lost while the link was measured: %s", link->address, why);
}

static lp_status check_answer(const lp_wire *link, const Lp__Wire__Message *message, uint32_t number, lp_diag *diag) {
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE)
    return lp_error(diag, LP_LOC_NONE, "the cloud at %s refuses: %s", link->address, message->failure->text);
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_PROBE && message->probe->number == number) return LP_OK;
  return lost(link, "it answered what was not asked", diag);
}

static lp_status await_answer(lp_wire *link, uint32_t number, double timeout_ms, lp_diag *diag) {
  lp_inbound in = {0};
  const char *why = "";
  for (double until = lp_now_ms() + timeout_ms; lp_now_ms() < until;) {
    lp_recv_outcome outcome = lp_wire_receive(link, until - lp_now_ms(), &in, &why);
    if (outcome == LP_RECV_TIMEOUT) continue;
    if (outcome == LP_RECV_GONE) return lost(link, "the connection closed", diag);
    if (outcome != LP_RECV_FRAME) return lost(link, why, diag);
    lp_status status = check_answer(link, in.message, number, diag);
    lp_inbound_release(&in);
    return status;
  }
  return lost(link, "no answer in time", diag);
}

/* The time until a message of so many bytes is answered. */
static lp_status time_probe(lp_wire *link, uint32_t number, const void *payload, size_t bytes, double timeout_ms,
                            double *ms, lp_diag *diag) {
  Lp__Wire__Probe probe = LP__WIRE__PROBE__INIT;
  probe.number = number;
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_PROBE;
  message.probe = &probe;
  const char *why = "";
  double begin = lp_now_ms();
  if (!lp_wire_send(link, LP_ONLY_PEER, &message, payload, bytes, &why)) return lost(link, why, diag);
  LP_TRY(await_answer(link, number, timeout_ms, diag));
  *ms = lp_now_ms() - begin;
  return LP_OK;
}

/* Messages grow until one takes clearly longer than none, or would at `telling_bps`. */
static lp_status measure_bandwidth(lp_wire *link, uint32_t number, double telling_bps, double timeout_ms,
                                   lp_link_figures *out, lp_diag *diag) {
  void *payload = lp_alloc(MOST_BYTES);
  lp_status status = LP_OK;
  double ms = 0;
  size_t bytes = FIRST_BYTES;
  for (;; bytes *= GROWTH) {
    status = time_probe(link, number++, payload, bytes, timeout_ms, &ms, diag);
    double longest = fmax(ms - out->rtt_ms, 8e3 * (double)bytes / telling_bps);
    if (status != LP_OK || longest >= telling_ms(out->rtt_ms) || bytes * GROWTH > MOST_BYTES) break;
  }
  free(payload);
  double taken_ms = ms - out->rtt_ms;
  out->up_bps = taken_ms > 0 ? fmin(unlimited_bps, 8e3 * (double)bytes / taken_ms) : unlimited_bps;
  return status;
}

lp_status lp_wire_measure(lp_wire *link, double telling_bps, double timeout_ms, lp_link_figures *out, lp_diag *diag) {
  *out = (lp_link_figures){.rtt_ms = INFINITY, .up_bps = NAN};
  uint32_t number = 0;
  for (; number < ROUND_TRIPS; number++) {
    double ms = 0;
    LP_TRY(time_probe(link, number, NULL, 0, timeout_ms, &ms, diag));
    out->rtt_ms = fmin(out->rtt_ms, ms);
  }
  if (telling_bps <= 0) return LP_OK;
  return measure_bandwidth(link, number, telling_bps, timeout_ms, out, diag);
}
