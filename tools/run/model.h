/* Models where a bundle is wanted: compiled for this machine, once. */
#pragma once

#include "tools/tools.h"

/* The bundle that `given` names: itself, or where it is a model (a file in ONNX or GGUF, or a folder), the bundle that
 * is kept for it below $XDG_CACHE_HOME/llmpart/models and made now if it is not there, with a note. A file that has
 * changed is another model. Release *out with free(). */
LP_MUST_USE lp_status lp_tool_bundle_of(const char *given, char **out, lp_diag *diag);
