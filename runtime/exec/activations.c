/* The memory that activations lie in. */
#include <sys/mman.h>

#include "base/base.h"
#include "runtime/exec/activations.h"

enum { HUGE_PAGE = 2 << 20 };

/* Activations do not outlive a run, so growing copies nothing. A half more than asked for, so that a context that
 * grows by one token a step does not map memory at each. */
bool lp_activations_reserve(lp_activations *activations, size_t bytes) {
  if (bytes <= activations->bytes) return true;
  size_t wanted = 0;
  if (!lp_size_add(bytes, bytes / 2, &wanted) || !lp_size_add(wanted, HUGE_PAGE - 1, &wanted)) return false;
  wanted = wanted / HUGE_PAGE * HUGE_PAGE;
  char *data = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return false;
  (void)madvise(data, wanted, MADV_HUGEPAGE); /* a hint */
  lp_activations_free(activations);
  *activations = (lp_activations){.data = data, .bytes = wanted};
  return true;
}

void lp_activations_free(lp_activations *activations) {
  if (activations->data) munmap(activations->data, activations->bytes);
  *activations = (lp_activations){0};
}
