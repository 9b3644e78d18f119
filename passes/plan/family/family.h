/* Plan families: a few placements that together serve requests of any length over any link. They serve each request
 * nearly as well as its own best placement would. They are found on a grid of prompt length, generated tokens (with
 * the prompt they make the depth of the context), round trip and bandwidth. */
#pragma once

#include "base/side.h"
#include "passes/plan/plan.h"

typedef enum {
  LP_FAMILY_PROMPT,    /* tokens */
  LP_FAMILY_GENERATED, /* tokens */
  LP_FAMILY_RTT,       /* ms */
  LP_FAMILY_UP,        /* bit/s, device to cloud; the other direction keeps its ratio to this one */
  LP_FAMILY_AXES
} lp_family_axis;
extern const char *const lp_family_axis_names[LP_FAMILY_AXES]; /* with their units */

enum { LP_FAMILY_KNOTS = 4, LP_FAMILY_MOST = 16 };

/* A box of requests, from `low` to below `high` on each axis; 0 and infinity where it is open. */
typedef struct {
  int32_t plan;
  double low[LP_FAMILY_AXES], high[LP_FAMILY_AXES];
} lp_family_region;

/* The regret of a plan at a point of the grid is its cost above that of the best plan found there, as a share of the
 * cloud-only cost. Where no plan meets the SLA, it is how much farther the plan is from the SLA than the best one. A
 * point is missed when some plan meets the SLA there and no plan of the family does. */
typedef struct {
  int32_t points, missed;
  double worst, mean;
  int32_t alone_missed; /* the same for the first plan without the others */
  double alone_worst;
} lp_family_regret;

typedef struct {
  int32_t count;
  lp_side *side[LP_FAMILY_MOST][LP_STAGE_COUNT]; /* the first is the plan for the request itself */
  lp_family_region *region;
  int32_t region_count;
  lp_family_regret regret;
} lp_plan_family;

/* Finds up to `most` plans by the request's scheduler, `own` among them, in `arena`. The weights of all of them fit
 * each side. */
LP_MUST_USE lp_status lp_plan_family_find(lp_module *module, const lp_compile_request *request, int32_t most,
                                          lp_side *const own[LP_STAGE_COUNT], lp_arena *arena, lp_plan_family *out,
                                          lp_diag *diag);

/* Writes the family on @prefill of a placed module: the functions of each plan, regions and regret. */
void lp_plan_family_write(lp_module *module, lp_op *prefill, const lp_plan_family *family,
                          const char *name[LP_STAGE_COUNT][LP_FAMILY_MOST]);
/* Reads regions and regret back from the module; `side` stays empty. */
void lp_plan_family_read(const lp_module *module, lp_arena *arena, lp_plan_family *out);
