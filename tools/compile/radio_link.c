/* The link of a plan: for a radio profile, the users of one drop are its states. */
#include "base/units.h"
#include "runtime/radio/radio.h"
#include "tools/compile/link.h"

/* The drop that is simulated: users in each sector, which always send and receive, and the number of intervals that a
 * user's rate is averaged over. */
enum { USERS_OF_SECTOR = 4, INTERVALS = 100, SEED = 1 };
static const double rtt_default_ms = 10; /* as the link 5g: over the air, and to a server at the edge */

static bool is_profile(const char *name) {
  const char *const *names = NULL;
  size_t count = lp_radio_profile_names(&names);
  for (size_t i = 0; i < count; i++)
    if (lp_streq(names[i], name)) return true;
  if (!lp_has_suffix(name, ".yaml")) return false;
  lp_radio_profile *profile = NULL;
  bool is_one = lp_radio_profile_load(name, &profile, NULL) == LP_OK;
  lp_radio_profile_free(profile);
  return is_one;
}

static lp_status read_rtt(const char *change, const char *text, double *rtt_ms, lp_diag *diag) {
  if (strncmp(change, "rtt=", 4) != 0)
    return lp_error(diag, LP_LOC_FILE(text), "'%s' is no change of a radio profile: only rtt=TIME", change);
  return lp_parse_time_ms(change + 4, rtt_ms, diag, LP_LOC_FILE(text));
}

static lp_status link_of_users(const lp_radio_profile *profile, double rtt_ms, lp_link **out, lp_diag *diag) {
  const int32_t users = (int32_t)(profile->sites * profile->sectors) * USERS_OF_SECTOR;
  double *up = lp_alloc((size_t)users * sizeof *up), *down = lp_alloc((size_t)users * sizeof *down);
  lp_link_state *states = lp_alloc((size_t)users * sizeof *states);
  lp_radio_drop_rates(profile, users, INTERVALS, SEED, up, down);
  for (int32_t i = 0; i < users; i++)
    states[i] = (lp_link_state){rtt_ms, up[i], down[i]};
  *out = lp_link_from_states(profile->name, profile->title, "TR 38.901: the users of one drop, 4 to a sector", states,
                             users);
  free(states);
  free(down);
  free(up);
  if (*out) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(profile->name), "more than %g %% of its users get no rate",
                  100 * (1 - lp_link_quantile_default));
}

/* Splits "PROFILE,rtt=TIME"; `*out` stays NULL for anything else. */
static lp_status load_radio(const char *text, lp_link **out, lp_diag *diag) {
  char *name = lp_strdup(text), *change = strchr(name, ',');
  double rtt_ms = rtt_default_ms;
  lp_status status = LP_OK;
  lp_radio_profile *profile = NULL;
  if (change) *change++ = 0;
  if (is_profile(name)) {
    if (change) status = read_rtt(change, text, &rtt_ms, diag);
    if (status == LP_OK) status = lp_radio_profile_load(name, &profile, diag);
    if (status == LP_OK) status = link_of_users(profile, rtt_ms, out, diag);
  }
  lp_radio_profile_free(profile);
  free(name);
  return status;
}

lp_status lp_tool_load_link(const char *text, lp_link **out, lp_diag *diag) {
  *out = NULL;
  LP_TRY(load_radio(text, out, diag));
  return *out ? LP_OK : lp_link_load(text, out, diag);
}
