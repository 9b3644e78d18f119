/* Messages of link.proto over a transport, the handshake, and the pauses between attempts (link.h). */
#include "runtime/link/link.pb-c.h"

#include <openssl/crypto.h>
#include <time.h>

#include "base/clock.h"
#include "base/side.h"
#include "runtime/link/link.h"
#include "runtime/link/security.h"

enum { LENGTH_SIZE = 4, HEADER_LIMIT = 1 << 24 };

static void put_length(lp_buf *buf, size_t length) {
  for (int i = 0; i < LENGTH_SIZE; i++)
    buf->data[i] = (char)(uint8_t)(length >> (8 * i));
}

bool lp_wire_send(lp_wire *wire, uint32_t peer, const Lp__Wire__Message *message, const void *payload,
                  size_t payload_size, const char **why) {
  static const char blank[LENGTH_SIZE];
  size_t size = lp__wire__message__get_packed_size(message);
  lp_buf_clear(&wire->head);
  lp_buf_append(&wire->head, blank, sizeof blank);
  lp_buf_reserve(&wire->head, LENGTH_SIZE + size);
  wire->head.size += lp__wire__message__pack(message, (uint8_t *)wire->head.data + LENGTH_SIZE);
  put_length(&wire->head, size);
  if (!wire->transport->send(wire->channel, peer, wire->head.data, wire->head.size, payload, payload_size, why))
    return false;
  wire->bytes_sent += wire->head.size + payload_size + wire->transport->overhead;
  return true;
}

static bool unpack(lp_inbound *in) {
  const lp_packet *packet = &in->packet;
  if (packet->size < LENGTH_SIZE) return false;
  size_t length = 0;
  for (int i = 0; i < LENGTH_SIZE; i++)
    length |= (size_t)packet->data[i] << (8 * i);
  if (length > HEADER_LIMIT || length > packet->size - LENGTH_SIZE) return false;
  in->message = lp__wire__message__unpack(NULL, length, packet->data + LENGTH_SIZE);
  in->payload = packet->data + LENGTH_SIZE + length;
  in->payload_size = packet->size - LENGTH_SIZE - length;
  return in->message != NULL;
}

lp_recv_outcome lp_wire_receive(lp_wire *wire, double timeout_ms, lp_inbound *out, const char **why) {
  *out = (lp_inbound){.transport = wire->transport};
  lp_recv_outcome outcome = wire->transport->receive(wire->channel, timeout_ms, &out->packet, why);
  if (outcome != LP_RECV_FRAME) return outcome;
  wire->bytes_received += out->packet.size + wire->transport->overhead;
  if (unpack(out)) return LP_RECV_FRAME;
  *why = "the bytes received are no message of the protocol";
  uint32_t peer = out->packet.peer;
  wire->transport->release(&out->packet);
  out->packet.peer = peer;
  return LP_RECV_GARBAGE;
}

void lp_inbound_release(lp_inbound *inbound) {
  if (inbound->message) lp__wire__message__free_unpacked(inbound->message, NULL);
  if (inbound->transport) inbound->transport->release(&inbound->packet);
  *inbound = (lp_inbound){0};
}

static lp_wire *wire_create(const lp_transport *transport, const char *address) {
  lp_wire *wire = lp_alloc(sizeof *wire);
  wire->transport = transport;
  wire->address = lp_strdup(address);
  return wire;
}

void lp_wire_close(lp_wire *wire) {
  if (!wire) return;
  wire->transport->close(wire->channel);
  lp_buf_free(&wire->head);
  free(wire->address);
  free(wire);
}

/* Appends this side's proof of each of its keys: a worker's device looks for that of its own key. */
static bool append_proofs(const lp_wire *wire, uint32_t peer, lp_side who, const lp_endpoint *endpoint, lp_buf *out) {
  uint8_t binding[LP_BINDING_BYTES], proof[LP_PROOF_BYTES];
  if (!wire->transport->bind(wire->channel, peer, binding)) return false;
  for (size_t i = 0; i < endpoint->security->key_count; i++) {
    lp_security_prove(&endpoint->security->key[i], who, binding, endpoint->bundle_hash, proof);
    lp_buf_append(out, (const char *)proof, sizeof proof);
  }
  return true;
}

const lp_key *lp_wire_proved(const lp_wire *wire, uint32_t peer, lp_side who, const lp_endpoint *endpoint,
                             const uint8_t *proof, size_t size) {
  const lp_key *found = NULL;
  LP_OWNED(lp_buf_free) lp_buf wanted = {0};
  bool good = size % LP_PROOF_BYTES == 0 && append_proofs(wire, peer, who, endpoint, &wanted);
  for (size_t i = 0; good && i < wanted.size; i += LP_PROOF_BYTES)
    for (size_t k = 0; k < size && !found; k += LP_PROOF_BYTES)
      if (CRYPTO_memcmp(wanted.data + i, proof + k, LP_PROOF_BYTES) == 0)
        found = &endpoint->security->key[i / LP_PROOF_BYTES];
  return found;
}

bool lp_wire_hello(lp_wire *wire, uint32_t peer, lp_side who, const lp_endpoint *endpoint, const char **why) {
  LP_OWNED(lp_buf_free) lp_buf proofs = {0};
  Lp__Wire__Hello hello = LP__WIRE__HELLO__INIT;
  hello.protocol = LP_WIRE_PROTOCOL;
  hello.bundle = (char *)(uintptr_t)endpoint->bundle_hash; /* protobuf-c only reads it */
  /* protobuf-c only reads it */
  if (who == LP_SIDE_CLOUD && endpoint->place) hello.place = (char *)(uintptr_t)endpoint->place;
  if (who == LP_SIDE_CLOUD && endpoint->security->proves && append_proofs(wire, peer, who, endpoint, &proofs))
    hello.proof = (ProtobufCBinaryData){proofs.size, (uint8_t *)proofs.data};
  Lp__Wire__Message message = LP_WIRE_MESSAGE(HELLO, .hello = &hello);
  return lp_wire_send(wire, peer, &message, NULL, 0, why);
}

static bool prove(lp_wire *wire, const lp_endpoint *endpoint, const char **why) {
  LP_OWNED(lp_buf_free) lp_buf proof = {0};
  if (!endpoint->security->proves) return true;
  *why = "the connection closed";
  bool sent = append_proofs(wire, LP_ONLY_PEER, LP_SIDE_DEVICE, endpoint, &proof);
  Lp__Wire__Prove body = LP__WIRE__PROVE__INIT;
  body.proof = (ProtobufCBinaryData){proof.size, (uint8_t *)proof.data};
  Lp__Wire__Message message = LP_WIRE_MESSAGE(PROVE, .prove = &body);
  sent = sent && lp_wire_send(wire, LP_ONLY_PEER, &message, NULL, 0, why);
  return sent;
}

/* Both sides must hold the same key, or none. */
static lp_status check_key(const lp_wire *wire, const Lp__Wire__Hello *hello, const lp_endpoint *endpoint,
                           lp_diag *diag) {
  if (hello->proof.len > 0 && !endpoint->security->proves)
    return lp_error(diag, LP_LOC_NONE, "%s at %s wants a key: --key-file", lp_endpoint_name(endpoint), wire->address);
  if (!endpoint->security->proves) return LP_OK;
  if (lp_wire_proved(wire, LP_ONLY_PEER, LP_SIDE_CLOUD, endpoint, hello->proof.data, hello->proof.len)) return LP_OK;
  return lp_error(diag, LP_LOC_NONE, "%s at %s holds another key, or none", lp_endpoint_name(endpoint), wire->address);
}

static lp_status check_hello(const lp_wire *wire, const lp_inbound *in, const lp_endpoint *endpoint, lp_diag *diag) {
  const Lp__Wire__Message *message = in->message;
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE)
    return lp_error(diag, LP_LOC_NONE, "%s at %s refuses: %s", lp_endpoint_name(endpoint), wire->address,
                    message->failure->text);
  if (message->kind_case != LP__WIRE__MESSAGE__KIND_HELLO)
    return lp_error(diag, LP_LOC_NONE, "%s at %s does not speak this protocol", lp_endpoint_name(endpoint),
                    wire->address);
  const Lp__Wire__Hello *hello = message->hello;
  if (hello->protocol != LP_WIRE_PROTOCOL)
    return lp_error(diag, LP_LOC_NONE, "%s at %s speaks protocol %" PRIu32 "; this device speaks %d",
                    lp_endpoint_name(endpoint), wire->address, hello->protocol, LP_WIRE_PROTOCOL);
  if (!lp_streq(hello->bundle, endpoint->bundle_hash))
    return lp_error(diag, LP_LOC_NONE, "%s at %s serves another bundle: %.12s; this is %.12s",
                    lp_endpoint_name(endpoint), wire->address, hello->bundle, endpoint->bundle_hash);
  if (endpoint->place && !lp_streq(hello->place, endpoint->place))
    return lp_error(diag, LP_LOC_NONE, "the worker at %s serves the place '%.60s', not '%s'", wire->address,
                    hello->place, endpoint->place);
  return check_key(wire, hello, endpoint, diag);
}

static lp_status shake_hands(lp_wire *wire, const lp_endpoint *endpoint, double timeout_ms, bool *refused,
                             lp_diag *diag) {
  const char *why = "";
  lp_inbound in = {0};
  lp_status status;
  if (!lp_wire_hello(wire, LP_ONLY_PEER, LP_SIDE_DEVICE, endpoint, &why)) goto fail;
  switch (lp_wire_receive(wire, timeout_ms, &in, &why)) {
  case LP_RECV_FRAME:
    break;
  case LP_RECV_GONE:
    goto fail;
  case LP_RECV_TIMEOUT:
    why = "no answer in time";
    goto fail;
  case LP_RECV_GARBAGE:
  case LP_RECV_STRAINED:
    goto fail;
  }
  status = check_hello(wire, &in, endpoint, diag);
  lp_inbound_release(&in);
  *refused = status != LP_OK;
  if (status != LP_OK || prove(wire, endpoint, &why)) return status;
fail:
  return lp_error(diag, LP_LOC_NONE, "cannot reach %s at %s: %s", lp_endpoint_name(endpoint), wire->address, why);
}

lp_status lp_wire_dial(const lp_transport *transport, const lp_endpoint *endpoint, double timeout_ms, lp_wire **out,
                       lp_diag *diag) {
  bool refused;
  return lp_wire_try_dial(transport, endpoint, timeout_ms, out, &refused, diag);
}

lp_status lp_wire_try_dial(const lp_transport *transport, const lp_endpoint *endpoint, double timeout_ms, lp_wire **out,
                           bool *refused, lp_diag *diag) {
  *out = NULL;
  *refused = false;
  lp_wire *wire = wire_create(transport, endpoint->address);
  lp_status status = transport->dial(endpoint, timeout_ms, &wire->channel, diag);
  if (status == LP_OK) status = shake_hands(wire, endpoint, timeout_ms, refused, diag);
  if (status == LP_OK)
    *out = wire;
  else
    lp_wire_close(wire);
  return status;
}

lp_status lp_wire_listen(const lp_transport *transport, const char *address, const lp_security *security, lp_wire **out,
                         int *port, lp_diag *diag) {
  lp_wire *wire = wire_create(transport, address);
  lp_status status = transport->listen(address, security, &wire->channel, port, diag);
  if (status != LP_OK) {
    lp_wire_close(wire);
    wire = NULL;
  }
  *out = wire;
  return status;
}

void lp_wire_renew(lp_wire *wire, const lp_security *security) {
  wire->transport->renew(wire->channel, security);
}

/* ---- pauses between attempts ------------------------------------------------------------------------------------- */

lp_backoff lp_backoff_begin(const lp_patience *patience, double timeout_ms) {
  return (lp_backoff){
      .pause_ms = patience->pause_ms, .longest_ms = patience->longest_pause_ms, .until_ms = lp_now_ms() + timeout_ms};
}

bool lp_backoff_wait(lp_backoff *backoff) {
  double left = backoff->until_ms - lp_now_ms();
  if (left <= 0) return false;
  double ms = backoff->pause_ms < left ? backoff->pause_ms : left;
  (void)nanosleep(
      &(struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)((int64_t)(ms * 1e6) % 1000000000)}, NULL);
  backoff->pause_ms = 2 * backoff->pause_ms < backoff->longest_ms ? 2 * backoff->pause_ms : backoff->longest_ms;
  return lp_now_ms() < backoff->until_ms;
}

lp_status lp_reach(const lp_patience *patience, double timeout_ms, lp_attempt *attempt, void *user, lp_diag *diag) {
  lp_backoff backoff = lp_backoff_begin(patience, timeout_ms);
  LP_OWNED(lp_diag_free_at) lp_diag *last = lp_diag_create();
  lp_status status;
  bool over;
  do {
    bool refused = false;
    lp_diag_clear(last);
    status = attempt(user, &refused, last);
    over = status == LP_OK || refused || !lp_backoff_wait(&backoff);
  } while (!over);
  lp_diag_append(diag, last);
  return status;
}
