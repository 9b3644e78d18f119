/* Plan families: a few placements that together serve requests of any length over any link nearly as well as a placement of
 * its own would serve each. Found on a grid of prompt length, generated tokens (with the prompt they are the depth of the
 * context), round trip and bandwidth. */
#ifndef LP_PLAN_FAMILY_H
#define LP_PLAN_FAMILY_H

#include "base/side.h"
#include "passes/plan/plan.h"

typedef enum {
  LP_FAMILY_PROMPT,    /* tokens */
  LP_FAMILY_GENERATED, /* tokens */
  LP_FAMILY_RTT,       /* ms */
  LP_FAMILY_UP,        /* bit/s, device to cloud; the other direction keeps its ratio to it */
  LP_FAMILY_AXES
} lp_family_axis;
extern const char *const lp_family_axis_names[LP_FAMILY_AXES]; /* with their units */

enum { LP_FAMILY_KNOTS = 4, LP_FAMILY_MOST = 16 };

/* From `low` to below `high` on each axis; 0 and infinity where it is open. */
typedef struct {
  int32_t plan;
  double low[LP_FAMILY_AXES], high[LP_FAMILY_AXES];
} lp_family_region;

/* Regret: what a plan costs above the best one found for a point of the grid, as a share of what the cloud alone would cost
 * there; where no plan meets the SLA, how much farther it is from it than need be. A point is missed when some plan meets
 * the SLA there and none of the family does. */
typedef struct {
  int32_t points, missed;
  double worst, mean;
  int32_t alone_missed; /* the same of the first plan alone */
  double alone_worst;
} lp_family_regret;

typedef struct {
  int32_t count;
  lp_side *side[LP_FAMILY_MOST][LP_STAGE_COUNT]; /* the first is the request's own */
  lp_family_region *region;
  int32_t region_count;
  lp_family_regret regret;
} lp_plan_family;

/* Up to `most` plans by the request's scheduler, `own` among them, in `arena`. Weights of all of them fit each side. */
LP_MUST_USE lp_status lp_plan_family_find(lp_module *module, const lp_compile_request *request, int32_t most,
                                          lp_side *const own[LP_STAGE_COUNT], lp_arena *arena, lp_plan_family *out,
                                          lp_diag *diag);

/* In a placed module: on @prefill, the functions of each plan, regions and regret. */
void lp_plan_family_write(lp_module *module, lp_op *prefill, const lp_plan_family *family,
                          const char *name[LP_STAGE_COUNT][LP_FAMILY_MOST]);
/* Regions and regret back from the module; no sides. */
void lp_plan_family_read(const lp_module *module, lp_arena *arena, lp_plan_family *out);

#endif
