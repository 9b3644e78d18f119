/* Signatures of bundles: the file manifest.sig holds the 64 bytes of an Ed25519 signature (RFC 8032) over the bytes of
 * manifest.json, which has the SHA-256 of every other file. OpenSSL's command verifies the same file
 * (docs/security.md). lp_bundle_sign in runtime.h writes it. */
#pragma once

#include "base/file.h"
#include "runtime/runtime.h"

/* Fails unless manifest.sig in the folder `root` is the signature of the manifest's bytes by the owner of the public
 * key in `key`, a file in PEM form. */
LP_MUST_USE lp_status lp_signature_check(const char *root, const char *key, const lp_mapping *manifest, lp_diag *diag);
/* Warns of a manifest that neither this user nor the superuser owns. Its owner could have put any program in it. */
void lp_signature_warn(const char *path, lp_diag *diag);
