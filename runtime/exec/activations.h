/* Memory for the activations of one pass. */
#ifndef LP_ACTIVATIONS_H
#define LP_ACTIVATIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Memory of one pass. Its content does not outlive the pass. */
typedef struct {
  char *data;
  size_t bytes; /* mapped */
} lp_activations;
/* Room for `bytes`, which may move it and forgets the content then; false: no memory. */
bool lp_activations_reserve(lp_activations *activations, size_t bytes);
void lp_activations_free(lp_activations *activations);

#endif
