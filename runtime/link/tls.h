/* TLS 1.2, by mbedTLS, on bytes in memory: it knows no socket and no thread. What comes from the other side is put in and read as plain bytes
 * by whoever wants them; what is to be sent comes out sealed. Private to the link. */
#ifndef LP_TLS_H
#define LP_TLS_H

#include "runtime/exec/executor.h"

/* ---- what all connections of one side share ------------------------------------------------------------------------------ */

typedef struct lp_tls_config lp_tls_config; /* only read once connections use it, and outlives them */

/* A worker's, or a device's. */
lp_tls_config *lp_tls_config_create(bool worker);
void lp_tls_config_free(lp_tls_config *config); /* NULL is allowed */
/* Texts are PEM. 0, or an error of mbedTLS. */
LP_MUST_USE int lp_tls_config_own(lp_tls_config *config, const char *certificate, const char *private_key);
/* The other side must show one of these certificates, or one that they signed. */
LP_MUST_USE int lp_tls_config_trust(lp_tls_config *config, const char *certificates);
/* And it must hold this name; copied. */
void lp_tls_config_name(lp_tls_config *config, const char *name);
void lp_tls_describe(int error, char *out, size_t size);

/* ---- a connection ---------------------------------------------------------------------------------------------------------- */

/* One thread may open while another seals. */
typedef struct lp_tls lp_tls;

typedef enum {
  LP_TLS_MORE, /* nothing: more must come first */
  LP_TLS_SOME,
  LP_TLS_BROKEN
} lp_tls_progress;

lp_tls *lp_tls_create(const lp_tls_config *config); /* NULL: no memory */
void lp_tls_free(lp_tls *tls);                      /* NULL is allowed */
/* Where to put what comes; it is free whenever open has said MORE. */
uint8_t *lp_tls_room(lp_tls *tls, size_t *size);
void lp_tls_arrived(lp_tls *tls, size_t size);
/* Plain bytes of what has arrived, up to `size`; first of all the handshake is gone on with, which a device begins. */
lp_tls_progress lp_tls_open(lp_tls *tls, void *to, size_t size, size_t *got);
bool lp_tls_is_shaken(lp_tls *tls); /* the handshake is complete */
/* Why it is broken, for people; lives as long as it does. */
const char *lp_tls_why(const lp_tls *tls);
bool lp_tls_distrusts(const lp_tls *tls); /* it is broken because of the other side's certificate */
/* Appends what is to be sent: what the handshake left to say, and the parts, small ones in one record. False: it is broken. Who seals sends in
 * the order of sealing. */
bool lp_tls_seal(lp_tls *tls, const lp_span *part, size_t count, lp_buf *out);
/* Does the handshake, or an alert, wait to be sent? To seal nothing sends it. */
bool lp_tls_waits(lp_tls *tls);
/* Seals the notice that no more follows. */
void lp_tls_finish(lp_tls *tls, lp_buf *out);

#endif
