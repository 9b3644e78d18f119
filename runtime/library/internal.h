/* What the files of the public library share. Private to this folder. */
#pragma once

#include "runtime/library/llmpart.h"
#include "runtime/runtime.h"

struct llmpart_bundle {
  lp_bundle *bundle;
  char *path; /* for messages */
  llmpart_sides sides;
};

/* A list of diagnostics for one call. Warnings go to the log at once. The caller gives it back to lp_library_end. */
lp_diag *lp_library_begin(void);
/* Releases `diag`, which may be NULL; unless `status` is LP_OK, its first error becomes the thread's message. Returns
 * whether the status is LP_OK. */
bool lp_library_end(lp_diag *diag, lp_status status);

/* Copies a caller's options to out[size], which is zero: as many bytes as both have. NULL gives the defaults. Fails
 * when the caller's size is 0, or when its further fields, which this library does not know, are not zero. `what` names
 * the type. */
LP_MUST_USE lp_status lp_library_options(const void *given, void *out, size_t size, const char *what, lp_diag *diag);
/* Copies from[size] to a caller's struct, which begins with its own size and keeps it: as many bytes as both have. */
void lp_library_result(const void *from, size_t size, void *out);

/* Fails when the bundle is split and was opened without its cloud's side, which `what` needs. */
LP_MUST_USE lp_status lp_library_need_cloud(const llmpart_bundle *bundle, const char *what, lp_diag *diag);
/* Appends the tokens of a text. */
LP_MUST_USE lp_status lp_library_encode(const llmpart_bundle *bundle, const char *text, lp_tokens *out, lp_diag *diag);
