/* Runs passes of bundles for devices that measure this machine. Each peer names one of the bundles in its hello; one of
 * them is loaded at a time. */

#include "base/clock.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/link/security.h"
#include "runtime/runtime.h"
#include "runtime/worker/peer.h"
#include "runtime/worker/reply.h"

enum { MOST_REPETITIONS = 1000, NONE = -1 };
static const double stop_ms = 1000; /* the longest time until a stop without a signal is noticed */

/* A peer, and the number of the bundle that its hello named. */
typedef struct {
  uint32_t peer;
  int32_t bundle;
} choice;

typedef struct {
  lp_worker worker; /* its peers, wire and security are used */
  const char *const *paths;
  const lp_bundle_options *load;
  char (*hash)[65]; /* [count] of the manifests */
  int32_t count;
  LP_VEC(choice) choices;
  int32_t loaded; /* the number of `bundle`; NONE */
  lp_bundle *bundle;
  lp_session *session;
} server;

/* ---- bundles ----------------------------------------------------------------------------------------------------- */

static lp_status read_hashes(server *s, lp_diag *diag) {
  for (int32_t i = 0; i < s->count; i++) {
    const lp_bundle_options options = {.trust = s->load->trust};
    lp_bundle *bundle = NULL;
    LP_TRY(lp_bundle_load(s->paths[i], &options, &bundle, diag));
    memcpy(s->hash[i], bundle->manifest.hash, sizeof s->hash[i]);
    lp_bundle_free(bundle);
  }
  return LP_OK;
}

static void unload(server *s) {
  lp_session_close(s->session);
  lp_bundle_free(s->bundle);
  s->session = NULL;
  s->bundle = NULL;
  s->loaded = NONE;
}

static lp_status load(server *s, int32_t number, lp_diag *diag) {
  if (s->loaded == number) return LP_OK;
  unload(s);
  lp_bundle_options options = *s->load;
  options.load = LP_LOAD_ALL;
  LP_TRY(lp_bundle_load(s->paths[number], &options, &s->bundle, diag));
  if (!lp_streq(s->bundle->manifest.hash, s->hash[number]))
    return lp_error(diag, LP_LOC_FILE(s->paths[number]), "the bundle has changed since the worker began");
  const lp_generate_options generate = {
      .sampling = {.top_p = 1}, .ignore_eos = true, .threads = s->worker.options->threads};
  LP_TRY(lp_session_open(s->bundle, &generate, &s->session, diag));
  s->loaded = number;
  return LP_OK;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static int32_t find_bundle(const server *s, const char *hash) {
  for (int32_t i = 0; i < s->count; i++)
    if (lp_streq(hash, s->hash[i])) return i;
  return NONE;
}

static choice *choice_of(server *s, uint32_t peer) {
  for (size_t i = 0; i < s->choices.count; i++)
    if (s->choices.data[i].peer == peer) return &s->choices.data[i];
  lp_vec_push(&s->choices, ((choice){peer, NONE}));
  return &s->choices.data[s->choices.count - 1];
}

static void forget(server *s, uint32_t peer) {
  for (size_t i = s->choices.count; i-- > 0;)
    if (s->choices.data[i].peer == peer) s->choices.data[i] = s->choices.data[--s->choices.count];
  worker_peer_forget(&s->worker, peer);
}

static lp_status measure(server *s, int32_t number, const Lp__Wire__Measure *wanted, lp_profile *out, lp_diag *diag) {
  const int64_t most = INT32_MAX;
  if (wanted->past < 0 || wanted->past > most || wanted->count < 1 || wanted->count > most || wanted->repetitions < 1 ||
      wanted->repetitions > MOST_REPETITIONS)
    return lp_error(diag, LP_LOC_NONE, "a measurement of %" PRId64 " tokens after %" PRId64 ", %" PRId64 " times",
                    wanted->count, wanted->past, wanted->repetitions);
  LP_TRY(load(s, number, diag));
  return lp_session_profile(s->session, 1, wanted->past, wanted->count, wanted->repetitions, out, diag);
}

static void reply(server *s, uint32_t peer, const lp_profile *profile) {
  Lp__Wire__Measured measured = LP__WIRE__MEASURED__INIT;
  measured.n_part_ms = profile->parts.count;
  measured.part_ms = lp_alloc((profile->parts.count + 1) * sizeof *measured.part_ms);
  for (size_t i = 0; i < profile->parts.count; i++)
    measured.part_ms[i] = profile->parts.data[i].ms;
  measured.total_ms = profile->total_ms;
  measured.other_ms = profile->other_ms;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(MEASURED, .measured = &measured);
  worker_post(&s->worker, peer, &message);
  free(measured.part_ms);
}

static void handle_measure(server *s, uint32_t peer, const Lp__Wire__Measure *wanted) {
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  lp_profile profile = {0};
  if (measure(s, choice_of(s, peer)->bundle, wanted, &profile, diag) == LP_OK)
    reply(s, peer, &profile);
  else
    worker_refuse_with(&s->worker, peer, 0, diag);
  lp_vec_free(&profile.parts);
}

/* The handshake compares the peer's bundle with the one that its hello names, if it is here, else with the first. */
static void handle(server *s, const lp_inbound *in) {
  const Lp__Wire__Message *message = in->message;
  choice *chosen = choice_of(s, in->packet.peer);
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_HELLO && chosen->bundle == NONE)
    chosen->bundle = find_bundle(s, message->hello->bundle);
  s->worker.self.bundle_hash = s->hash[chosen->bundle == NONE ? 0 : chosen->bundle];
  if (!worker_peer_admits(&s->worker, in)) return;
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_MEASURE)
    handle_measure(s, in->packet.peer, message->measure);
  else
    worker_refuse(&s->worker, in->packet.peer, 0, "not a message for a worker that profiles");
}

static void take_message(server *s) {
  lp_inbound in;
  const char *why = "";
  switch (lp_wire_receive(s->worker.wire, stop_ms, &in, &why)) {
  case LP_RECV_FRAME:
    handle(s, &in);
    lp_inbound_release(&in);
    break;
  case LP_RECV_GONE:
    forget(s, in.packet.peer);
    break;
  case LP_RECV_GARBAGE:
    worker_peer_reject(&s->worker, in.packet.peer, WORKER_REFUSED_HANDSHAKE, why);
    break;
  case LP_RECV_STRAINED:
    lp_warning(s->worker.diag, LP_LOC_NONE, "%s: %s", s->worker.options->listen, why);
    break;
  case LP_RECV_TIMEOUT:
    break;
  }
}

/* ---- serving ----------------------------------------------------------------------------------------------------- */

static lp_status open_link(server *s, lp_diag *diag) {
  const lp_worker_options *options = s->worker.options;
  char *host = NULL;
  int port = 0;
  LP_TRY(lp_address_split(options->listen, &host, &port, diag));
  lp_status status =
      lp_security_open(&options->security, LP_SIDE_CLOUD, lp_address_is_loopback(host), &s->worker.security, diag);
  if (status == LP_OK)
    status = lp_wire_listen(&lp_transport_socket, options->listen, &s->worker.security, &s->worker.wire, &port, diag);
  if (status == LP_OK && options->on_listening) options->on_listening(options->user, host, port);
  free(host);
  return status;
}

lp_status lp_profile_serve(const char *const *paths, size_t count, const lp_bundle_options *load,
                           const lp_worker_options *options, const volatile int *stop, lp_diag *diag) {
  server s = {.worker = {.options = options, .diag = diag},
              .paths = paths,
              .load = load,
              .count = (int32_t)count,
              .loaded = NONE};
  s.hash = lp_alloc((count + 1) * sizeof *s.hash);
  s.worker.self = (lp_endpoint){.bundle_hash = s.hash[0], .security = &s.worker.security};
  lp_status status = read_hashes(&s, diag);
  if (status == LP_OK) status = open_link(&s, diag);
  while (status == LP_OK && !lp_flag_get(stop))
    take_message(&s);
  unload(&s);
  lp_wire_close(s.worker.wire);
  lp_security_close(&s.worker.security);
  lp_vec_free(&s.worker.peers);
  lp_vec_free(&s.choices);
  free(s.hash);
  return status;
}
