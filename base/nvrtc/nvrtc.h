/* NVIDIA's run-time compiler (NVRTC), opened when it is needed: CUDA C++ to code of one architecture, or to PTX. */
#pragma once

#include "base/base.h"

typedef struct lp_nvrtc lp_nvrtc;

typedef struct {
  const char *file; /* for messages */
  const char *text;
  size_t size;
} lp_nvrtc_source;

/* Opens the newest NVRTC that is not newer than CUDA `major`. false: there is none. The library stays loaded. */
bool lp_nvrtc_open(int major, lp_nvrtc **out);
void lp_nvrtc_close(lp_nvrtc *nvrtc); /* NULL is allowed */
/* Reports that there is no NVRTC of CUDA `major`; `advice` completes "install it, or ...". */
LP_MUST_USE lp_status lp_nvrtc_report_absent(const char *file, int major, const char *advice, lp_diag *diag);

void lp_nvrtc_version(const lp_nvrtc *nvrtc, int version[2]); /* major, minor */
/* Fills in the architectures that NVRTC compiles for (90 is sm_90) and returns their number. Returns 0 when there are
 * more than `most`, or when NVRTC is older than CUDA 11.2: it cannot tell them, and it compiles to PTX only. */
int lp_nvrtc_architectures(const lp_nvrtc *nvrtc, int *known, int most);
/* Appends the code to `out`. With `ptx` that is PTX text that ends in NUL. When it fails, reports the first line of the
 * compiler's log. */
LP_MUST_USE lp_status lp_nvrtc_compile(const lp_nvrtc *nvrtc, const lp_nvrtc_source *source, const char *const *options,
                                       int option_count, bool ptx, lp_buf *out, lp_diag *diag);
