/* The contract between a manifest and the code that it describes: the SHA-256 of the text of manifest.json before the
 * member `files`. Code that llmpart compiled carries it (base/abi.h), so that no other description of states, buffers
 * and steps can drive that code. */
#ifndef LP_CONTRACT_H
#define LP_CONTRACT_H

#include "runtime/bundle/manifest.h"

/* Computes the contract of a manifest's text; "" when `files` is no member of its own line. */
void lp_contract_compute(const char *text, size_t size, char out[LP_SHA256_HEX + 1]);
/* Fails if the file `path` carries the contract of another manifest. Code that was not compiled for a bundle carries
 * none and is accepted. */
LP_MUST_USE lp_status lp_contract_check(const lp_manifest *manifest, const char *path, const lp_mapping *code,
                                        lp_diag *diag);

#endif
