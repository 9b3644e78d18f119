/* The code of a bundle's sides, for bundle.c. */
#pragma once

#include "base/file.h"
#include "runtime/bundle/bundle.h"

/* A bundle that is being loaded. */
typedef struct {
  lp_bundle *bundle;
  const lp_bundle_options *options;
  lp_diag *diag;
} lp_loader;

/* The path of a file of the bundle, in the bundle's arena. */
const char *lp_loader_path(const lp_loader *load, const char *relative);
/* Maps a file and compares it with its checksums in the manifest. The caller unmaps it. */
LP_MUST_USE lp_status lp_loader_map(const lp_loader *load, const lp_file_desc *want, const char *path, lp_mapping *out);
/* Loads the side's code, after its weights are mapped, and resolves its layouts and segments. Sets *falls_back, and
 * warns, when this machine's GPU cannot run the code and the manifest has another form of the half: the caller then
 * loads that one (lp_manifest_fall_back). */
LP_MUST_USE lp_status lp_loader_load_code(const lp_loader *load, lp_place side, bool *falls_back);
/* Closes the shared object that it opened; NULL is allowed. */
void lp_loader_close_code(void *code);
