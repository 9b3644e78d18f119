/* The table of schedulers. A new one needs a file with its descriptor and a line here. */
#include "passes/plan/schedulers.h"
#include "passes/plan/plan.h"

static const lp_scheduler *const schedulers[] = {&lp_scheduler_exact,       &lp_scheduler_greedy,
                                                 &lp_scheduler_layer,       &lp_scheduler_cloud_only,
                                                 &lp_scheduler_device_only, &lp_scheduler_cut};

const char *const lp_scheduler_default = "exact";

const lp_scheduler *lp_scheduler_find(const char *name) {
  for (size_t i = 0; i < LP_COUNT(schedulers); i++)
    if (lp_streq(schedulers[i]->name, name)) return schedulers[i];
  return NULL;
}

size_t lp_scheduler_names(const char *const **names) {
  static const char *const all[] = {"exact", "greedy", "layer", "cloud-only", "device-only", "cut"};
  _Static_assert(LP_COUNT(all) == LP_COUNT(schedulers), "one name per scheduler");
  *names = all;
  return LP_COUNT(all);
}
