/* Runs a bundle once on arrays. The runtime and the IR have different array types. This header uses neither, so that
 * the comparison can include the IR, and the implementation the runtime. */
#pragma once

#include "base/base.h"

enum { LP_VERIFY_RANK = 8 };

typedef struct {
  const char *name, *dtype; /* "f32" */
  int32_t rank;
  int64_t dim[LP_VERIFY_RANK];
  void *data; /* row-major */
  size_t size;
} lp_verify_array;

/* A bundle with both sides loaded into this process. */
typedef struct lp_verify_bundle lp_verify_bundle;

LP_MUST_USE lp_status lp_verify_open(const char *path, int64_t threads, lp_verify_bundle **out, lp_diag *diag);
void lp_verify_close(lp_verify_bundle *bundle); /* NULL is allowed */
size_t lp_verify_output_count(const lp_verify_bundle *bundle);
/* `outputs` has room for lp_verify_output_count; release their data with free() in every case (zero them first). */
LP_MUST_USE lp_status lp_verify_run(lp_verify_bundle *bundle, const lp_verify_array *inputs, size_t count,
                                    lp_verify_array *outputs, lp_diag *diag);
/* Does the same after `past` positions that earlier steps left in the KV caches. */
LP_MUST_USE lp_status lp_verify_step(lp_verify_bundle *bundle, int64_t past, const lp_verify_array *inputs,
                                     size_t count, lp_verify_array *outputs, lp_diag *diag);
bool lp_verify_has_caches(const lp_verify_bundle *bundle); /* false: the bundle cannot continue after a step */
int64_t lp_verify_context(const lp_verify_bundle *bundle); /* the most positions; 0: unknown */
