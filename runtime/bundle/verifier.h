/* Checks the content of a bundle's files against the checksums of the manifest. */
#ifndef LP_VERIFIER_H
#define LP_VERIFIER_H

#include "runtime/bundle/manifest.h"

/* Compares mapped files with their CRC-32C on a thread of its own, which thereby brings them into memory. */
typedef struct lp_verifier lp_verifier;
lp_verifier *lp_verifier_create(void);
/* Before start. Everything is borrowed until free. */
void lp_verifier_add(lp_verifier *verifier, const char *path, const lp_file_desc *want, const lp_mapping *mapping);
void lp_verifier_start(lp_verifier *verifier);
LP_MUST_USE lp_status lp_verifier_await(lp_verifier *verifier, lp_diag *diag);
void lp_verifier_free(lp_verifier *verifier); /* stops it; NULL is allowed */
/* Compares at once: by CRC-32C, or by SHA-256 when there is none or `strong`. */
LP_MUST_USE lp_status lp_file_verify(const char *path, const lp_file_desc *want, const void *data, size_t size,
                                     bool strong, lp_diag *diag);

#endif
