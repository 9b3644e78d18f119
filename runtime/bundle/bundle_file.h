/* Files of a bundle: regular files that lie in its folder and are as its manifest says. */
#pragma once

#include "base/base.h"
#include "base/file.h"
#include "runtime/bundle/manifest.h"

/* Maps the file `relative` of the folder `root`. A symbolic link may not lead out of the folder; pipes and devices are
 * refused. `path` is for messages. */
LP_MUST_USE lp_status lp_bundle_file_map(const char *root, const char *relative, const char *path, lp_mapping *out,
                                         lp_diag *diag);
/* Maps a file, which must have the size that the manifest gives. */
LP_MUST_USE lp_status lp_bundle_file_open(const char *root, const lp_file_desc *want, const char *path, lp_mapping *out,
                                          lp_diag *diag);
/* Tells whether the content is compared when the file is loaded: files without a CRC-32C and beyond 64 MiB are
 * compared only when `thorough`. */
bool lp_bundle_file_checks_at_load(const lp_file_desc *want, bool thorough);
/* Maps a file and compares its content if lp_bundle_file_checks_at_load; by SHA-256 when `thorough`. */
LP_MUST_USE lp_status lp_bundle_file_load(const char *root, const lp_file_desc *want, const char *path, bool thorough,
                                          lp_mapping *out, lp_diag *diag);

/* ---- contracts --------------------------------------------------------------------------------------------------- */

/* The contract between a manifest and the code that it describes is the SHA-256 of the text of manifest.json before the
 * member `files`. Code that llmpart compiled carries it (base/abi.h), so that no other description of states, buffers
 * and steps can drive that code. */
/* Computes the contract of a manifest's text; "" when `files` is no member of its own line. */
void lp_contract_compute(const char *text, size_t size, char out[LP_SHA256_HEX + 1]);
/* Fails if the file `path` carries the contract of another manifest. Code that was not compiled for a bundle carries
 * none and is accepted. */
LP_MUST_USE lp_status lp_contract_check(const lp_manifest *manifest, const char *path, const lp_mapping *code,
                                        lp_diag *diag);

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* Checks that the mapped file is well formed and that every tensor lies inside its data section, so that code may
 * read all of it. `data_offset` receives where the section begins; `path` is for messages. */
LP_MUST_USE lp_status lp_safetensors_check(const char *path, const lp_mapping *mapping, size_t *data_offset,
                                           lp_diag *diag);
