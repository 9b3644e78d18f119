/* Handshakes on the worker's side: see peer.h. */
#include "runtime/worker/peer.h"
#include "base/side.h"
#include "runtime/link/link.h"
#include "runtime/worker/figures.h"
#include "runtime/worker/reply.h"

/* The most bytes of a message after the handshake: tensors and KV rows. */
static const uint64_t most_frame = UINT64_C(1) << 32;

worker_peer *worker_peer_of(lp_worker *worker, uint32_t id) {
  for (size_t i = 0; i < worker->peers.count; i++)
    if (worker->peers.data[i].id == id) return &worker->peers.data[i];
  worker_peer fresh = {.id = id};
  lp_vec_push(&worker->peers, fresh);
  return &worker->peers.data[worker->peers.count - 1];
}

uint64_t worker_peer_who(const lp_worker *worker, uint32_t peer) {
  for (size_t i = 0; i < worker->peers.count; i++)
    if (worker->peers.data[i].id == peer) return worker->peers.data[i].who;
  return 0;
}

uint64_t worker_peer_owner(const lp_worker *worker, uint32_t peer) {
  for (size_t i = 0; i < worker->peers.count; i++)
    if (worker->peers.data[i].id == peer)
      return worker->peers.data[i].who != 0 ? worker->peers.data[i].who : worker->peers.data[i].host;
  return 0;
}

bool worker_peer_same(const lp_worker *worker, uint32_t a, uint32_t b) {
  uint64_t who = worker_peer_who(worker, a);
  return a == b || (who != 0 && who == worker_peer_who(worker, b));
}

worker_peer *worker_peer_account(lp_worker *worker, uint32_t peer) {
  uint64_t who = worker_peer_of(worker, peer)->who;
  for (size_t i = 0; who != 0 && i < worker->peers.count; i++)
    if (worker->peers.data[i].who == who) return &worker->peers.data[i];
  return worker_peer_of(worker, peer);
}

/* A client with other connections keeps its account. */
void worker_peer_forget(lp_worker *worker, uint32_t peer) {
  for (size_t i = worker->peers.count; i-- > 0;) {
    worker_peer gone = worker->peers.data[i];
    if (gone.id != peer) continue;
    worker->peers.data[i] = worker->peers.data[--worker->peers.count];
    for (size_t k = 0; gone.who != 0 && k < worker->peers.count; k++) {
      worker_peer *other = &worker->peers.data[k];
      if (other->who == gone.who && other->served < gone.served) other->served = gone.served;
      if (other->who == gone.who && other->queued_ms < gone.queued_ms) other->queued_ms = gone.queued_ms;
    }
  }
}

void worker_peer_reject(lp_worker *worker, uint32_t id, worker_refusal reason, const char *why) {
  worker_peer *peer = worker_peer_of(worker, id);
  char where[64];
  if (peer->refused) return;
  peer->refused = true;
  worker_note_refusal(worker, reason);
  worker->wire->transport->describe(worker->wire->channel, id, where);
  lp_warning(worker->diag, LP_LOC_NONE, "refused %s: %s", where, why);
  worker_refuse(worker, id, 0, why);
  worker->wire->transport->drop(worker->wire->channel, id);
}

/* `key`: the one that it proved above TLS, or NULL. */
static void admit(lp_worker *worker, worker_peer *peer, const lp_key *key) {
  peer->greeted = true;
  peer->who = worker->wire->transport->identify(worker->wire->channel, peer->id, &peer->host);
  if (peer->who == 0) peer->who = lp_security_holder(&worker->security, key);
  worker->wire->transport->permit(worker->wire->channel, peer->id, most_frame);
}

/* The worker always answers with its own hello, so that the device can report the difference. */
static void take_hello(lp_worker *worker, worker_peer *peer, const Lp__Wire__Hello *hello) {
  const char *why = "";
  bool right = hello->protocol == LP_WIRE_PROTOCOL && lp_streq(hello->bundle, worker->self.bundle_hash);
  if (right) {
    peer->hello = true;
    if (!worker->security.proves) admit(worker, peer, NULL);
  }
  (void)lp_wire_hello(worker->wire, peer->id, LP_SIDE_CLOUD, &worker->self, &why);
  if (!right)
    worker_peer_reject(worker, peer->id, WORKER_REFUSED_HANDSHAKE,
                       "it speaks another protocol or holds another bundle");
}

static void take_proof(lp_worker *worker, worker_peer *peer, const Lp__Wire__Prove *prove) {
  const lp_key *key = NULL;
  if (!worker->security.proves && peer->hello) return; /* it is admitted without */
  if (peer->hello)
    key = lp_wire_proved(worker->wire, peer->id, LP_SIDE_DEVICE, &worker->self, prove->proof.data, prove->proof.len);
  if (key)
    admit(worker, peer, key);
  else
    worker_peer_reject(worker, peer->id, WORKER_REFUSED_KEY, "it does not hold the key");
}

bool worker_peer_admits(lp_worker *worker, const lp_inbound *in) {
  worker_peer *peer = worker_peer_of(worker, in->packet.peer);
  const Lp__Wire__Message *message = in->message;
  if (peer->refused) return false;
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_HELLO)
    take_hello(worker, peer, message->hello);
  else if (message->kind_case == LP__WIRE__MESSAGE__KIND_PROVE)
    take_proof(worker, peer, message->prove);
  else if (peer->greeted)
    return true;
  else
    worker_peer_reject(worker, peer->id, WORKER_REFUSED_HANDSHAKE,
                       "no hello with this protocol and bundle, and no proof of the key, came before");
  return false;
}
