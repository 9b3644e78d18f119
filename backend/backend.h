/* backend: turns an outlined module (passes/passes.h) into what one side runs, and both into a bundle. A backend is one
 * const table of functions; null is the template to copy. It knows IR and machine models; never the frontend, the
 * passes or the runtime. The contract of emitted code is base/abi.h, of the folder docs/bundle.md.
 */
#ifndef LP_BACKEND_H
#define LP_BACKEND_H

#include "hwmodels/hwmodels.h"
#include "ir/ir.h"

typedef struct {
  const char *side;  /* "device" or "cloud" */
  const char *march; /* "native", "x86-64-v3", "znver4", "armv8-a", ...; a triple is derived from it: see cpu/target.c */
  int opt_level;     /* 0..3 */
} lp_emit_options;

/* What emission gives: text or object bytes, the weights it wants packed. Created and freed by the caller of emit. */
typedef enum { LP_EMIT_LLVM_IR, LP_EMIT_ASM, LP_EMIT_OBJECT, LP_EMIT_SHARED, LP_EMIT_SOURCE } lp_emit_form;

typedef struct lp_backend {
  const char *name, *summary;
  /* Can it run this op.* operator? If not, `why` (64 bytes) says what is missing. */
  bool (*runs)(const lp_op *op, char why[64]);
  /* Emits the code of options->side in `form` into `out`. */
  lp_status (*emit)(lp_module *module, const lp_emit_options *options, lp_emit_form form, lp_buf *out, lp_diag *diag);
  /* Writes the side's weights, packed for its kernels, as weights.safetensors at `path`. */
  lp_status (*write_weights)(lp_module *module, const lp_emit_options *options, const char *path, lp_diag *diag);
} lp_backend;

const lp_backend *lp_backend_find(const char *name); /* "cpu", "null" */

/* Writes the bundle folder at `path`, atomically: code and weights of each side that has operators, the manifest, the
 * plan's IR, the report and tokenizer files given. */
typedef struct {
  const lp_backend *device, *cloud;
  lp_emit_options device_options, cloud_options;
  const char *tokenizer; /* path of tokenizer.json (tokenizer_config.json beside it goes too), or NULL */
  const char *report_json; /* text, or NULL */
  int64_t context, vocab;  /* for the manifest */
  void (*progress)(void *user, const char *what, double done); /* NULL: quiet */
  void *user;
} lp_bundle_request;
LP_MUST_USE lp_status lp_bundle_write(lp_module *module, const lp_bundle_request *request, const char *path,
                                      lp_diag *diag);

#endif
