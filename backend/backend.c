/* The table of the backends. */
#include "backend/backends.h"

static const lp_backend *const backends[] = {&lp_backend_cpu, &lp_backend_cuda, &lp_backend_opencl, &lp_backend_null};

const lp_backend *lp_backend_find(const char *name) {
  for (size_t i = 0; i < LP_COUNT(backends); i++)
    if (lp_streq(backends[i]->name, name)) return backends[i];
  return NULL;
}

size_t lp_backend_list(const lp_backend *const **list) {
  *list = backends;
  return LP_COUNT(backends);
}
