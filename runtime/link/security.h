/* Certificates and keys of a link, and the TLS configuration made from them. Only runtime/ and its tests include this
 * header. */
#pragma once

#include "base/side.h"
#include "runtime/link/transport.h"

struct ssl_st;
struct ssl_ctx_st;

enum { LP_PROOF_BYTES = 32, LP_PSK_BYTES = 32, LP_PSK_NAME = 25 };

typedef struct {
  const uint8_t *bytes; /* in the file that was read */
  size_t size;
  uint8_t psk[LP_PSK_BYTES];
  char name[LP_PSK_NAME]; /* identity of the pre-shared key: what a device shows, to say which key it holds */
} lp_key;

struct lp_security {
  struct ssl_ctx_st *tls; /* NULL: no TLS. All connections of one side share it and only read it. */
  uint8_t *key_file;      /* what was read; NULL: there is no key */
  size_t key_file_size;
  lp_key *key; /* [key_count] and one with `bytes` NULL; a device has one key at most */
  size_t key_count;
  bool certified; /* of a worker: it admits only devices with a certificate; of a device: it has a certificate */
  bool proves;    /* TLS uses certificates, so both sides prove above TLS that they have the key */
};

/* Reads the files. Beyond loopback a key, or certificates of both sides, are required. The caller releases `out` with
 * lp_security_close, also after a failure. */
LP_MUST_USE lp_status lp_security_open(const lp_link_security *from, lp_side side, bool loopback, lp_security *out,
                                       lp_diag *diag);
/* The same for a device that connects to a worker at this address. */
LP_MUST_USE lp_status lp_security_for(const char *address, const lp_link_security *from, lp_security *out,
                                      lp_diag *diag);
void lp_security_close(lp_security *security);
/* The proof that side `who` holds the key, on the connection with this binding (transport.h) and for this bundle. */
void lp_security_prove(const lp_key *key, lp_side who, const uint8_t binding[LP_BINDING_BYTES], const char *bundle_hash,
                       uint8_t out[LP_PROOF_BYTES]);

/* ---- clients ----------------------------------------------------------------------------------------------------- */

/* A worker tells its clients apart by the certificates that devices show, or else by the keys that they hold if the
 * worker has several. The number of the client that holds this one of a worker's keys; 0: there is no other. */
uint64_t lp_security_holder(const lp_security *security, const lp_key *key);
/* The number of the client at the other end of a connection that a worker accepted, by its certificate or pre-shared
 * key; 0: neither tells one client from another. */
uint64_t lp_security_identify(struct ssl_st *tls);
