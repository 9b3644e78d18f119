/* Chooses the plan of a bundle that serves a request, and measures the link when the choice depends on it.
 *
 * The round-trip time is the shortest of a few messages without content. The bandwidth follows from the time that
 * longer messages take in addition. */
#include <math.h>

#include "base/abi.h"
#include "base/clock.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"

enum { ROUND_TRIPS = 3, FIRST_BYTES = 4 << 10, MOST_BYTES = 1 << 20, GROWTH = 4 };

/* The link as the device sees it. */
typedef struct {
  double rtt_ms; /* the shortest of a few round trips */
  double up_bps; /* to the worker; unlimited_bps where the time is too short to measure; NaN: not measured */
} link_figures;

/* ---- measuring the link ------------------------------------------------------------------------------------------ */

static const double unlimited_bps = 1e18;

/* The least time that tells a transfer from the jitter of clock, scheduler and link. */
static double telling_ms(double rtt_ms) {
  return fmax(5, rtt_ms / 4);
}

static lp_status lost(const lp_wire *wire, const char *why, lp_diag *diag) {
  return lp_error(diag, LP_LOC_NONE, "the cloud at %s was lost while the link was measured: %s", wire->address, why);
}

static lp_status check_answer(const lp_wire *wire, const Lp__Wire__Message *message, uint32_t number, lp_diag *diag) {
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE)
    return lp_error(diag, LP_LOC_NONE, "the cloud at %s refuses: %s", wire->address, message->failure->text);
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_PROBE && message->probe->number == number) return LP_OK;
  return lost(wire, "it sent an unexpected answer", diag);
}

static lp_status await_answer(lp_wire *wire, uint32_t number, double timeout_ms, lp_diag *diag) {
  lp_inbound in = {0};
  const char *why = "";
  for (double until = lp_now_ms() + timeout_ms; lp_now_ms() < until;) {
    lp_recv_outcome outcome = lp_wire_receive(wire, until - lp_now_ms(), &in, &why);
    if (outcome == LP_RECV_TIMEOUT) continue;
    if (outcome == LP_RECV_GONE) return lost(wire, "the connection closed", diag);
    if (outcome != LP_RECV_FRAME) return lost(wire, why, diag);
    lp_status status = check_answer(wire, in.message, number, diag);
    lp_inbound_release(&in);
    return status;
  }
  return lost(wire, "no answer in time", diag);
}

/* Measures the time until the worker answers a message of `bytes`. */
static lp_status time_probe(lp_wire *wire, uint32_t number, const void *payload, size_t bytes, double timeout_ms,
                            double *ms, lp_diag *diag) {
  Lp__Wire__Probe probe = LP__WIRE__PROBE__INIT;
  probe.number = number;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(PROBE, .probe = &probe);
  const char *why = "";
  double begin = lp_now_ms();
  if (!lp_wire_send(wire, LP_ONLY_PEER, &message, payload, bytes, &why)) return lost(wire, why, diag);
  LP_TRY(await_answer(wire, number, timeout_ms, diag));
  *ms = lp_now_ms() - begin;
  return LP_OK;
}

/* Sends longer and longer messages until one takes clearly longer than an empty one, or would at `telling_bps`. */
static lp_status measure_bandwidth(lp_wire *wire, uint32_t number, double telling_bps, double timeout_ms,
                                   link_figures *out, lp_diag *diag) {
  void *payload = lp_alloc(MOST_BYTES);
  lp_status status = LP_OK;
  double ms = 0;
  size_t bytes = FIRST_BYTES;
  for (;; bytes *= GROWTH) {
    status = time_probe(wire, number++, payload, bytes, timeout_ms, &ms, diag);
    double longest = fmax(ms - out->rtt_ms, 8e3 * (double)bytes / telling_bps);
    if (status != LP_OK || longest >= telling_ms(out->rtt_ms) || bytes * GROWTH > MOST_BYTES) break;
  }
  free(payload);
  double taken_ms = ms - out->rtt_ms;
  out->up_bps = taken_ms > 0 ? fmin(unlimited_bps, 8e3 * (double)bytes / taken_ms) : unlimited_bps;
  return status;
}

/* Measures a connection on which nothing else is under way. The bandwidth takes some 20 ms, or on a slow link the
 * time of 4 KiB. It is measured up to `telling_bps`; with 0 it is not measured. */
static lp_status measure_link(lp_wire *wire, double telling_bps, double timeout_ms, link_figures *out, lp_diag *diag) {
  *out = (link_figures){.rtt_ms = INFINITY, .up_bps = NAN};
  uint32_t number = 0;
  for (; number < ROUND_TRIPS; number++) {
    double ms = 0;
    LP_TRY(time_probe(wire, number, NULL, 0, timeout_ms, &ms, diag));
    out->rtt_ms = fmin(out->rtt_ms, ms);
  }
  if (telling_bps <= 0) return LP_OK;
  return measure_bandwidth(wire, number, telling_bps, timeout_ms, out, diag);
}

/* Faster links are not told from each other. */
static const double most_bps = 1e10;

bool lp_session_measure_link(lp_session *session, double *rtt_ms, double *up_bps) {
  link_figures link;
  lp_wire *wire = session->wire[LP_SIDE_CLOUD];
  if (!wire || measure_link(wire, most_bps, lp_session_timeout_ms(session), &link, NULL) != LP_OK) return false;
  *rtt_ms = link.rtt_ms;
  *up_bps = link.up_bps;
  return true;
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

/* The highest finite bound of any region on the axis; 0: no plan depends on it. */
static double highest_bound(const lp_manifest *manifest, int axis) {
  double highest = 0;
  for (int32_t i = 0; i < manifest->plan_count; i++)
    for (int32_t k = 0; k < manifest->plans[i].region_count; k++) {
      const lp_plan_region *region = &manifest->plans[i].region[k];
      highest = fmax(highest, isinf(region->high[axis]) ? region->low[axis] : region->high[axis]);
    }
  return highest;
}

/* Measures the figures of the link on which the choice depends. When both sides are in this process, nothing crosses a
 * link. */
static lp_status measure(lp_session *session, link_figures *out, lp_diag *diag) {
  const lp_manifest *manifest = &session->bundle->manifest;
  double rtt = highest_bound(manifest, LP_PLAN_RTT_MS), up = highest_bound(manifest, LP_PLAN_UP_BPS);
  *out = (link_figures){.rtt_ms = rtt > 0 ? 0 : NAN, .up_bps = up > 0 ? unlimited_bps : NAN};
  lp_wire *wire = session->wire[LP_SIDE_CLOUD]; /* the plans of more than two places do not depend on links */
  if (!wire || (rtt <= 0 && up <= 0)) return LP_OK;
  return measure_link(wire, 2 * up, lp_session_timeout_ms(session), out, diag);
}

lp_status lp_session_choose_plan(lp_session *session, int64_t length, int64_t most, lp_generation *out, lp_diag *diag) {
  const lp_manifest *manifest = &session->bundle->manifest;
  out->plan = session->options.fixes_plan ? session->options.plan : 0;
  if (session->options.fixes_plan || manifest->plan_count < 2) return LP_OK;
  link_figures link;
  LP_TRY(measure(session, &link, diag));
  out->rtt_ms = link.rtt_ms;
  out->up_bps = link.up_bps;
  const double at[LP_PLAN_AXES] = {[LP_PLAN_PROMPT] = (double)length,
                                   [LP_PLAN_GENERATED] = (double)most,
                                   [LP_PLAN_RTT_MS] = isnan(link.rtt_ms) ? 0 : link.rtt_ms,
                                   [LP_PLAN_UP_BPS] = isnan(link.up_bps) ? 0 : link.up_bps};
  out->plan = lp_manifest_plan(manifest, at);
  return LP_OK;
}

/* ---- prompts in parts -------------------------------------------------------------------------------------------- */

/* Gives the next step from `*at` on in which something crosses; NULL: there is none. */
static const lp_step *next_crossing(const lp_program *program, int32_t *at) {
  for (; *at < program->step_count; (*at)++) {
    const lp_step *step = &program->step[*at];
    if (step->kind == LP_STEP_SEND || step->kind == LP_STEP_MOVE) return &program->step[(*at)++];
  }
  return NULL;
}

/* Tells whether decode runs the layers where prefill does, so that it may run the later parts of a prompt. A prefill
 * that leaves caches on another side than decode has them ends with moves. */
static bool places_alike(const lp_program *prefill, const lp_program *decode) {
  int32_t at = 0, there = 0;
  const lp_step *a, *b;
  do {
    a = next_crossing(prefill, &at);
    b = next_crossing(decode, &there);
    if (a && (!b || a->kind != LP_STEP_SEND || b->kind != LP_STEP_SEND || a->side != b->side || a->to != b->to))
      return false;
  } while (a);
  return !b;
}

int64_t lp_session_prompt_part(const lp_session *session, int32_t prefill, int32_t decode) {
  const lp_program *programs = session->bundle->manifest.programs;
  if (lp_bundle_reads_source(session->bundle) || !places_alike(&programs[prefill], &programs[decode])) return INT64_MAX;
  int64_t part = session->options.prompt_part;
  return part > 0 ? part : LP_PROMPT_PART;
}
