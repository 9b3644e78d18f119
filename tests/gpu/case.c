/* Writes a section of a case: see case.h. */
#include "tests/gpu/case.h"
#include "base/base.h"

void gpu_case_put(lp_buf *file, const char *name, int64_t index, const void *data, size_t bytes) {
  lp_buf_printf(file, "%s %" PRId64 " %zu\n", name, index, bytes);
  lp_buf_append(file, data, bytes);
}
