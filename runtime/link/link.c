/* Messages of link.proto over a transport, and the handshake. */
#include "runtime/link/link.h"
#include "base/side.h"
#include "runtime/link/link.pb-c.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "runtime/link/link_security.h"

enum { LENGTH_SIZE = 4, HEADER_LIMIT = 1 << 24 };

static void put_length(lp_buf *buf, size_t length) {
  for (int i = 0; i < LENGTH_SIZE; i++)
    buf->data[i] = (char)(uint8_t)(length >> (8 * i));
}

bool lp_wire_send(lp_wire *link, uint32_t peer, const Lp__Wire__Message *message, const void *payload,
                  size_t payload_size, const char **why) {
  static const char blank[LENGTH_SIZE];
  size_t size = lp__wire__message__get_packed_size(message);
  lp_buf_clear(&link->head);
  lp_buf_append(&link->head, blank, sizeof(blank));
  if (size > link->scratch_size) {
    link->scratch = lp_realloc(link->scratch, size);
    link->scratch_size = size;
  }
  lp__wire__message__pack(message, link->scratch);
  lp_buf_append(&link->head, link->scratch, size);
  put_length(&link->head, size);
  if (!link->transport->send(link->channel, peer, link->head.data, link->head.size, payload, payload_size, why))
    return false;
  link->bytes_sent += link->head.size + payload_size + link->transport->overhead;
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

lp_recv_outcome lp_wire_receive(lp_wire *link, double timeout_ms, lp_inbound *out, const char **why) {
  *out = (lp_inbound){.transport = link->transport};
  lp_recv_outcome outcome = link->transport->receive(link->channel, timeout_ms, &out->packet, why);
  if (outcome != LP_RECV_FRAME) return outcome;
  link->bytes_received += out->packet.size + link->transport->overhead;
  if (unpack(out)) return LP_RECV_FRAME;
  *why = "what arrived is no message of the protocol";
  uint32_t peer = out->packet.peer;
  link->transport->release(&out->packet);
  out->packet.peer = peer;
  return LP_RECV_GARBAGE;
}

void lp_inbound_release(lp_inbound *inbound) {
  if (inbound->message != NULL) lp__wire__message__free_unpacked(inbound->message, NULL);
  if (inbound->transport != NULL) inbound->transport->release(&inbound->packet);
  *inbound = (lp_inbound){0};
}

static lp_wire *link_create(const lp_transport *transport, const char *address) {
  lp_wire *link = lp_alloc(sizeof(*link));
  link->transport = transport;
  link->address = lp_strdup(address);
  return link;
}

void lp_wire_close(lp_wire *link) {
  if (link == NULL) return;
  link->transport->close(link->channel);
  lp_buf_free(&link->head);
  free(link->scratch);
  free(link->address);
  free(link);
}

void lp_nonce_draw(uint8_t out[32]) {
  if (getrandom(out, 32, 0) != 32) abort(); /* a kernel without random numbers: nothing can be proved to anybody */
}

bool lp_wire_hello(lp_wire *link, uint32_t peer, lp_side who, const lp_endpoint *endpoint, const lp_nonces *nonces,
                   const char **why) {
  uint8_t proof[LP_PROOF_BYTES];
  Lp__Wire__Hello hello = LP__WIRE__HELLO__INIT;
  hello.protocol = LP_WIRE_PROTOCOL;
  hello.bundle = (char *)(uintptr_t)endpoint->bundle_hash; /* protobuf-c reads these only */
  hello.nonce.data = (uint8_t *)(uintptr_t)(who == LP_SIDE_CLOUD ? nonces->worker : nonces->device);
  hello.nonce.len = LP_PROOF_BYTES;
  if (who == LP_SIDE_CLOUD && endpoint->security->key != NULL) {
    lp_security_prove(endpoint->security, who, nonces, endpoint->bundle_hash, proof);
    hello.proof.data = proof;
    hello.proof.len = sizeof(proof);
  }
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_HELLO;
  message.hello = &hello;
  return lp_wire_send(link, peer, &message, NULL, 0, why);
}

static bool prove(lp_wire *link, const lp_endpoint *endpoint, const lp_nonces *nonces, const char **why) {
  uint8_t proof[LP_PROOF_BYTES];
  if (endpoint->security->key == NULL) return true;
  lp_security_prove(endpoint->security, LP_SIDE_DEVICE, nonces, endpoint->bundle_hash, proof);
  Lp__Wire__Prove body = LP__WIRE__PROVE__INIT;
  body.proof.data = proof;
  body.proof.len = sizeof(proof);
  Lp__Wire__Message message = LP__WIRE__MESSAGE__INIT;
  message.kind_case = LP__WIRE__MESSAGE__KIND_PROVE;
  message.prove = &body;
  return lp_wire_send(link, LP_ONLY_PEER, &message, NULL, 0, why);
}

/* Both must hold the same key, or none. */
static lp_status check_key(const lp_wire *link, const Lp__Wire__Hello *hello, const lp_endpoint *endpoint,
                           lp_nonces *nonces, lp_diag *diag) {
  bool here = endpoint->security->key != NULL, there = hello->proof.len > 0;
  if (there && !here) return lp_error(diag, LP_LOC_NONE, "the cloud at %s wants a key: --key-file", link->address);
  if (hello->nonce.len == LP_PROOF_BYTES) memcpy(nonces->worker, hello->nonce.data, LP_PROOF_BYTES);
  bool good = hello->nonce.len == LP_PROOF_BYTES &&
              lp_security_holds(endpoint->security, LP_SIDE_CLOUD, nonces, endpoint->bundle_hash, hello->proof.data,
                                hello->proof.len);
  return good ? LP_OK : lp_error(diag, LP_LOC_NONE, "the cloud at %s holds another key, or none", link->address);
}

static lp_status check_hello(const lp_wire *link, const lp_inbound *in, const lp_endpoint *endpoint, lp_nonces *nonces,
                             lp_diag *diag) {
  const Lp__Wire__Message *message = in->message;
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE)
    return lp_error(diag, LP_LOC_NONE, "the cloud at %s refuses: %s", link->address, message->failure->text);
  if (message->kind_case != LP__WIRE__MESSAGE__KIND_HELLO)
    return lp_error(diag, LP_LOC_NONE, "the cloud at %s does not speak this protocol", link->address);
  const Lp__Wire__Hello *hello = message->hello;
  if (hello->protocol != LP_WIRE_PROTOCOL)
    return lp_error(diag, LP_LOC_NONE, "the cloud at %s speaks protocol %" PRIu32 "; this device speaks %d",
                    link->address, hello->protocol, LP_WIRE_PROTOCOL);
  if (!lp_streq(hello->bundle, endpoint->bundle_hash))
    return lp_error(diag, LP_LOC_NONE, "the cloud at %s serves another bundle: %.12s; this is %.12s", link->address,
                    hello->bundle, endpoint->bundle_hash);
  return check_key(link, hello, endpoint, nonces, diag);
}

static lp_status shake_hands(lp_wire *link, const lp_endpoint *endpoint, double timeout_ms, lp_diag *diag) {
  lp_nonces nonces = {0};
  lp_nonce_draw(nonces.device);
  const char *why = "";
  lp_inbound in = {0};
  lp_status status;
  if (!lp_wire_hello(link, LP_ONLY_PEER, LP_SIDE_DEVICE, endpoint, &nonces, &why)) goto fail;
  switch (lp_wire_receive(link, timeout_ms, &in, &why)) {
  case LP_RECV_FRAME:
    break;
  case LP_RECV_GONE:
    goto fail;
  case LP_RECV_TIMEOUT:
    why = "no answer in time";
    goto fail;
  case LP_RECV_GARBAGE:
  case LP_RECV_FAILED:
    goto fail;
  }
  status = check_hello(link, &in, endpoint, &nonces, diag);
  lp_inbound_release(&in);
  if (status != LP_OK || prove(link, endpoint, &nonces, &why)) return status;
fail:
  return lp_error(diag, LP_LOC_NONE, "cannot reach the cloud at %s: %s", link->address, why);
}

lp_status lp_wire_dial(const lp_transport *transport, const lp_endpoint *endpoint, double timeout_ms, lp_wire **out,
                       lp_diag *diag) {
  *out = NULL;
  lp_wire *link = link_create(transport, endpoint->address);
  lp_status status = transport->dial(endpoint, timeout_ms, &link->channel, diag);
  if (status == LP_OK) status = shake_hands(link, endpoint, timeout_ms, diag);
  if (status == LP_OK)
    *out = link;
  else
    lp_wire_close(link);
  return status;
}

lp_status lp_wire_listen(const lp_transport *transport, const char *address, const lp_security *security, lp_wire **out,
                         int *port, lp_diag *diag) {
  lp_wire *link = link_create(transport, address);
  lp_status status = transport->listen(address, security, &link->channel, port, diag);
  if (status != LP_OK) {
    lp_wire_close(link);
    link = NULL;
  }
  *out = link;
  return status;
}
