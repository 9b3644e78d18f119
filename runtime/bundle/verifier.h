/* Compares the content of a bundle's files with the checksums of the manifest. Small files are compared when they are
 * loaded; weights are compared on a thread of their own, which also brings them into memory while the first run
 * begins. */
#pragma once

#include "runtime/bundle/manifest.h"

/* The background check. Add the files, start it once, then await it. */
typedef struct lp_verifier lp_verifier;
lp_verifier *lp_verifier_create(void);
/* The caller keeps `path`, `want` and `mapping` alive until lp_verifier_free. `want` must have a CRC-32C. */
void lp_verifier_add(lp_verifier *verifier, const char *path, const lp_file_desc *want, const lp_mapping *mapping);
void lp_verifier_start(lp_verifier *verifier);
/* Waits for the check to end and reports the first damaged file. Any thread may call it, any number of times. */
LP_MUST_USE lp_status lp_verifier_await(lp_verifier *verifier, lp_diag *diag);
void lp_verifier_free(lp_verifier *verifier); /* stops the check early if it still runs; NULL is allowed */

/* Compares data[size] before it returns: by CRC-32C, or by SHA-256 when `strong` or when the manifest gives no CRC. */
LP_MUST_USE lp_status lp_file_verify(const char *path, const lp_file_desc *want, const void *data, size_t size,
                                     bool strong, lp_diag *diag);
