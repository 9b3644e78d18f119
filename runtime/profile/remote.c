/* Asks a worker that profiles for the times of passes on its machine. */
#include <math.h>

#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/link/security.h"
#include "runtime/runtime.h"

static const double default_timeout_ms = 600000;
static const lp_patience patience = {
    .dial_ms = 5000, .pause_ms = 50, .longest_pause_ms = 2000, .beat_ms = 1000, .silence_ms = 5000, .repeat_ms = 2000};

struct lp_remote_profiler {
  double timeout_ms;
  lp_bundle *bundle; /* only its manifest */
  lp_security security;
  lp_endpoint endpoint;
  lp_wire *wire;
};

static lp_status open_security(lp_remote_profiler *p, const lp_remote_profiler_options *options, lp_diag *diag) {
  char *host = NULL;
  int port = 0;
  LP_TRY(lp_address_split(options->address, &host, &port, diag));
  bool loopback = lp_address_is_loopback(host);
  free(host);
  return lp_security_open(&options->security, LP_SIDE_DEVICE, loopback, &p->security, diag);
}

static lp_status connect_to(lp_remote_profiler *p, const lp_remote_profiler_options *options, lp_diag *diag) {
  LP_TRY(lp_bundle_load(options->bundle, &(lp_bundle_options){.load = 0}, &p->bundle, diag));
  LP_TRY(open_security(p, options, diag));
  p->endpoint = (lp_endpoint){.address = options->address,
                              .bundle_hash = p->bundle->manifest.hash,
                              .patience = patience,
                              .security = &p->security};
  return lp_wire_dial(&lp_transport_socket, &p->endpoint, patience.dial_ms, &p->wire, diag);
}

lp_status lp_remote_profiler_open(const lp_remote_profiler_options *options, lp_remote_profiler **out, lp_diag *diag) {
  lp_remote_profiler *p = lp_alloc(sizeof *p);
  p->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : default_timeout_ms;
  lp_status status = connect_to(p, options, diag);
  if (status != LP_OK) {
    lp_remote_profiler_close(p);
    p = NULL;
  }
  *out = p;
  return status;
}

void lp_remote_profiler_close(lp_remote_profiler *p) {
  if (!p) return;
  lp_wire_close(p->wire);
  lp_security_close(&p->security);
  lp_bundle_free(p->bundle);
  free(p);
}

static lp_status lost(const lp_remote_profiler *p, const char *why, lp_diag *diag) {
  return lp_error(diag, LP_LOC_NONE, "the worker at %s was lost while it measured: %s", p->wire->address, why);
}

static bool is_time(double ms) {
  return isfinite(ms) && ms >= 0;
}

static lp_status take_answer(const lp_remote_profiler *p, const Lp__Wire__Message *message, lp_profile *out,
                             lp_diag *diag) {
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE)
    return lp_error(diag, LP_LOC_NONE, "the worker at %s refuses: %s", p->wire->address, message->failure->text);
  if (message->kind_case != LP__WIRE__MESSAGE__KIND_MEASURED) return lost(p, "it sent an unexpected answer", diag);
  const Lp__Wire__Measured *measured = message->measured;
  for (size_t i = 0; i < measured->n_part_ms; i++)
    if (!is_time(measured->part_ms[i])) return lost(p, "it sent a time that is none", diag);
  if (!is_time(measured->total_ms) || !is_time(measured->other_ms)) return lost(p, "it sent a time that is none", diag);
  *out = (lp_profile){.total_ms = measured->total_ms, .other_ms = measured->other_ms};
  for (size_t i = 0; i < measured->n_part_ms; i++)
    lp_vec_push(&out->parts, ((lp_part_time){.ms = measured->part_ms[i]}));
  return LP_OK;
}

static lp_status await_answer(const lp_remote_profiler *p, lp_profile *out, lp_diag *diag) {
  const char *why = "";
  for (double until = lp_now_ms() + p->timeout_ms; lp_now_ms() < until;) {
    lp_inbound in = {0};
    lp_recv_outcome outcome = lp_wire_receive(p->wire, until - lp_now_ms(), &in, &why);
    if (outcome == LP_RECV_TIMEOUT) continue;
    if (outcome == LP_RECV_GONE) return lost(p, "the connection closed", diag);
    if (outcome != LP_RECV_FRAME) return lost(p, why, diag);
    lp_status status = take_answer(p, in.message, out, diag);
    lp_inbound_release(&in);
    return status;
  }
  return lost(p, "no answer in time", diag);
}

lp_status lp_remote_profiler_measure(lp_remote_profiler *p, int64_t past, int64_t count, int64_t repetitions,
                                     lp_profile *out, lp_diag *diag) {
  Lp__Wire__Measure measure = LP__WIRE__MEASURE__INIT;
  measure.past = past;
  measure.count = count;
  measure.repetitions = repetitions;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(MEASURE, .measure = &measure);
  const char *why = "";
  *out = (lp_profile){0};
  if (!lp_wire_send(p->wire, LP_ONLY_PEER, &message, NULL, 0, &why)) return lost(p, why, diag);
  return await_answer(p, out, diag);
}
