/* Which plan of a bundle serves a request. */
#include <math.h>

#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/link/link.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"

/* The highest bound of any region on the axis; 0: no plan depends on it. */
static double highest_bound(const lp_manifest *manifest, int axis) {
  double highest = 0;
  for (int32_t i = 0; i < manifest->plan_count; i++)
    for (int32_t k = 0; k < manifest->plans[i].region_count; k++) {
      const lp_plan_region *region = &manifest->plans[i].region[k];
      highest = fmax(highest, isinf(region->high[axis]) ? region->low[axis] : region->high[axis]);
    }
  return highest;
}

/* Of both sides in one process nothing crosses a link. */
static lp_status measure(lp_session *session, lp_link_figures *out, lp_diag *diag) {
  const lp_manifest *manifest = &session->bundle->manifest;
  double rtt = highest_bound(manifest, LP_PLAN_RTT_MS), up = highest_bound(manifest, LP_PLAN_UP_BPS);
  *out = (lp_link_figures){.rtt_ms = rtt > 0 ? 0 : NAN, .up_bps = up > 0 ? 1e18 : NAN};
  if (!session->link || (rtt <= 0 && up <= 0)) return LP_OK;
  return lp_wire_measure(session->link, 2 * up, lp_session_timeout_ms(session), out, diag);
}

lp_status lp_session_choose_plan(lp_session *session, int64_t length, int64_t most, lp_generation *out, lp_diag *diag) {
  const lp_manifest *manifest = &session->bundle->manifest;
  out->plan = session->options.fixes_plan ? session->options.plan : 0;
  if (session->options.fixes_plan || manifest->plan_count < 2) return LP_OK;
  lp_link_figures link;
  LP_TRY(measure(session, &link, diag));
  out->rtt_ms = link.rtt_ms;
  out->up_bps = link.up_bps;
  const double at[LP_PLAN_AXES] = {[LP_PLAN_PROMPT] = (double)length,
                                   [LP_PLAN_GENERATED] = (double)most,
                                   [LP_PLAN_RTT_MS] = isnan(link.rtt_ms) ? 0 : link.rtt_ms,
                                   [LP_PLAN_UP_BPS] = isnan(link.up_bps) ? 0 : link.up_bps};
  out->plan = lp_manifest_plan(manifest, at);
  return LP_OK;
}
