/* The table of schedulers (schedulers.def) as data, and look-up by name. */
#include "passes/plan/schedulers.h"
#include "passes/plan/plan.h"

static const lp_scheduler schedulers[] = {
#define LP_SCHEDULER(symbol, name, ignores_link, summary) {name, summary, ignores_link, lp_place_##symbol},
#include "passes/plan/schedulers.def"
};

static const char *const scheduler_names[] = {
#define LP_SCHEDULER(symbol, name, ignores_link, summary) name,
#include "passes/plan/schedulers.def"
};

const char *const lp_scheduler_default =
#define LP_DEFAULT(symbol, name, ignores_link, summary) name
#define LP_SCHEDULER(symbol, name, ignores_link, summary)
#include "passes/plan/schedulers.def"
    ;

const lp_scheduler *lp_scheduler_find(const char *name) {
  for (size_t i = 0; i < LP_COUNT(schedulers); i++)
    if (lp_streq(schedulers[i].name, name)) return &schedulers[i];
  return NULL;
}

size_t lp_scheduler_names(const char *const **names) {
  *names = scheduler_names;
  return LP_COUNT(scheduler_names);
}
