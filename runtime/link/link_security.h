/* Certificates and keys of a link (link_security.c). Nothing outside of runtime/ and its tests includes it. */
#ifndef LP_LINK_SECURITY_H
#define LP_LINK_SECURITY_H

#include "base/side.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"

struct lp_tls_config;

enum { LP_PROOF_BYTES = 32 };

struct lp_security {
  uint8_t *key; /* NULL: none is asked for */
  size_t key_size;
  struct lp_tls_config *tls; /* NULL: plain TCP */
  bool certified;            /* a worker lets in devices with certificates alone, a device has one */
};

/* Random numbers of one handshake: what makes its proofs differ from all others. */
typedef struct lp_nonces {
  uint8_t device[LP_PROOF_BYTES], worker[LP_PROOF_BYTES];
} lp_nonces;

/* Reads the files. Off loopback TLS must be there, and a key or a certificate of the device. `out` is released with close in every case. */
LP_MUST_USE lp_status lp_security_open(const lp_link_security *from, lp_side side, bool loopback, lp_security *out,
                                       lp_diag *diag);
void lp_security_close(lp_security *security);
/* `who` holds the key: HMAC-SHA256 over who it is, both nonces and the bundle. Needs a key. */
void lp_security_prove(const lp_security *security, lp_side who, const lp_nonces *nonces, const char *bundle_hash,
                       uint8_t out[LP_PROOF_BYTES]);
/* True without a key. */
bool lp_security_holds(const lp_security *security, lp_side who, const lp_nonces *nonces, const char *bundle_hash,
                       const void *proof, size_t size);

#endif
