/* Certificates and keys of a link, and the TLS configuration made from them. Only runtime/ and its tests include this
 * header. */
#ifndef LP_LINK_SECURITY_H
#define LP_LINK_SECURITY_H

#include "base/side.h"
#include "runtime/link/transport.h"

struct ssl_ctx_st;

enum { LP_PROOF_BYTES = 32 };

struct lp_security {
  struct ssl_ctx_st *tls; /* NULL: no TLS. All connections of one side share it and only read it. */
  uint8_t *key;           /* NULL: there is none */
  size_t key_size;
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
/* The proof that side `who` holds the key, on the connection with this binding (transport.h) and for this bundle. Needs
 * a key. */
void lp_security_prove(const lp_security *security, lp_side who, const uint8_t binding[LP_BINDING_BYTES],
                       const char *bundle_hash, uint8_t out[LP_PROOF_BYTES]);

#endif
