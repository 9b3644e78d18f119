/* --bind=NAME=VALUE: inputs that the user gives as constants. */
#include "tools/tools.h"

#include "frontend/frontend.h"

#include <stdlib.h>
#include <string.h>

lp_status lp_bindings_read(const lp_texts *texts, lp_input_binding **out, lp_diag *diag) {
  lp_input_binding *bindings = lp_alloc((texts->count + 1) * sizeof *bindings);
  for (size_t i = 0; i < texts->count; i++) {
    const char *equals = strchr(texts->data[i], '=');
    if (!equals || equals == texts->data[i]) {
      lp_bindings_free(bindings, i);
      return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--bind"), "'%s' is not NAME=VALUES or NAME=FILE.pb",
                         texts->data[i]);
    }
    char *name = lp_strdup(texts->data[i]);
    name[equals - texts->data[i]] = '\0';
    bindings[i] = (lp_input_binding){.name = name, .value = equals + 1};
  }
  *out = bindings;
  return LP_OK;
}

void lp_bindings_free(lp_input_binding *bindings, size_t count) {
  for (size_t i = 0; i < count && bindings; i++)
    free((void *)(uintptr_t)bindings[i].name);
  free(bindings);
}
