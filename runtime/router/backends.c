/* Reads the file of backends, and checks which of them may take a request. */
#include "runtime/router/backends.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

#include "base/yaml/yaml.h"
#include "runtime/radio/radio.h"

typedef struct {
  const char *service, *split;
  double backhaul_s;
  const lp_yaml_node *limits[LP_ROUTE_COUNT], *link;
} backends_file;

static const lp_yaml_field file_fields[] = {
    LP_YAML_FIELD(LP_YAML_TEXT, "service", backends_file, service, .required = true),
    LP_YAML_FIELD(LP_YAML_TEXT, "split", backends_file, split, .least = 0),
    LP_YAML_FIELD(LP_YAML_TIME_S, "backhaul", backends_file, backhaul_s, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_NODE, "edge", backends_file, limits[LP_ROUTE_EDGE], .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "cloud", backends_file, limits[LP_ROUTE_CLOUD], .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "split_plan", backends_file, limits[LP_ROUTE_SPLIT], .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "link", backends_file, link, .least = 0),
};

typedef struct {
  lp_route_backend backend;
  bool down;
} limits_file;

static const lp_yaml_field limit_fields[] = {
    LP_YAML_FIELD(LP_YAML_I64, "context", limits_file, backend.context, .least = 1, .most = 1e9),
    LP_YAML_FIELD(LP_YAML_I64, "slots", limits_file, backend.slots, .least = 1, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_F64, "row_bytes", limits_file, backend.row_bytes, .least = 0, .most = 1e9),
    LP_YAML_FIELD(LP_YAML_F64, "usd_per_mtok", limits_file, backend.usd_per_mtok, .least = 0, .most = 1e9),
    LP_YAML_FIELD(LP_YAML_BOOL, "down", limits_file, down, .least = 0),
};

/* Rates that are not given are INFINITY. */
typedef struct {
  double token_bytes, up_bps, down_bps;
  const char *radio;
  int64_t users;
} link_file;

static const lp_yaml_field link_fields[] = {
    LP_YAML_FIELD(LP_YAML_BPS, "up", link_file, up_bps, .least = 1, .most = 1e15),
    LP_YAML_FIELD(LP_YAML_BPS, "down", link_file, down_bps, .least = 1, .most = 1e15),
    LP_YAML_FIELD(LP_YAML_F64, "token_bytes", link_file, token_bytes, .least = 0, .most = 1e9),
    LP_YAML_FIELD(LP_YAML_TEXT, "radio", link_file, radio, .least = 0),
    LP_YAML_FIELD(LP_YAML_I64, "users", link_file, users, .least = 1, .most = 100000),
};

/* The drop of users: as many in each sector unless the file says how many in all, and the intervals of a mean rate. */
enum { USERS_OF_SECTOR = 4, INTERVALS = 100, SEED = 1 };

static lp_status read_limits(lp_yaml *yaml, const lp_yaml_node *node, lp_route route, lp_route_backend *backend) {
  limits_file file = {.backend = *backend};
  const char *what = lp_arena_format(yaml->arena, "'%s'", lp_route_name(route));
  if (!backend->there) return lp_yaml_error(yaml, node, "'split_plan' has limits, but there is no 'split'");
  LP_TRY(lp_yaml_fields(yaml, node, what, limit_fields, LP_COUNT(limit_fields), &file));
  *backend = file.backend;
  backend->healthy = !file.down;
  return LP_OK;
}

/* Copies the texts of the service, which is freed first. */
static lp_status read_service(lp_yaml *yaml, const char *name, lp_backends *out) {
  lp_service *service = NULL;
  LP_TRY(lp_service_load(lp_yaml_named(yaml, name), &service, yaml->diag));
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    const lp_service_model *model = &service->at[route];
    if (!model->model) continue;
    out->of[route].model = *model;
    out->of[route].model.model = lp_arena_strdup(out->arena, model->model);
    out->of[route].model.source = NULL;
    out->of[route].there = true;
  }
  lp_service_free(service);
  return LP_OK;
}

static double median(const double *values, int64_t count, double *copy) {
  memcpy(copy, values, (size_t)count * sizeof *copy);
  gsl_sort(copy, 1, (size_t)count);
  return gsl_stats_median_from_sorted_data(copy, 1, (size_t)count);
}

/* Sets the rates of the users of a network, and their medians. */
static lp_status read_radio(lp_yaml *yaml, const lp_yaml_node *node, const link_file *file, lp_backends *out) {
  lp_radio_profile *profile = NULL;
  LP_TRY(lp_radio_profile_load(lp_yaml_named(yaml, file->radio), &profile, yaml->diag));
  out->users = file->users > 0 ? file->users : profile->sites * profile->sectors * USERS_OF_SECTOR;
  double *up = out->user_up_bps = LP_NEW_ARRAY(out->arena, double, out->users);
  double *down = out->user_down_bps = LP_NEW_ARRAY(out->arena, double, out->users);
  lp_radio_drop_rates(profile, (int32_t)out->users, INTERVALS, SEED, up, down);
  lp_radio_profile_free(profile);
  for (int64_t i = 0; i < out->users; i++)
    if (up[i] <= 0 || down[i] <= 0)
      return lp_yaml_error(yaml, node, "user %" PRId64 " of '%s' is never served", i + 1, file->radio);
  double *sorted = LP_NEW_ARRAY(out->arena, double, out->users);
  out->up_bps = median(up, out->users, sorted);
  out->down_bps = median(down, out->users, sorted);
  return LP_OK;
}

static lp_status read_link(lp_yaml *yaml, const lp_yaml_node *node, lp_backends *out) {
  link_file file = {.token_bytes = out->token_bytes, .up_bps = INFINITY, .down_bps = INFINITY};
  LP_TRY(lp_yaml_fields(yaml, node, "'link'", link_fields, LP_COUNT(link_fields), &file));
  out->token_bytes = file.token_bytes;
  out->up_bps = file.up_bps;
  out->down_bps = file.down_bps;
  bool rates = file.up_bps < INFINITY || file.down_bps < INFINITY;
  if (rates && file.radio) return lp_yaml_error(yaml, node, "'link' wants either 'radio' or the rates 'up' and 'down'");
  if (file.users > 0 && !file.radio)
    return lp_yaml_error(yaml, node, "'users' are those of a 'radio' profile, and there is none");
  return file.radio ? read_radio(yaml, node, &file, out) : LP_OK;
}

static lp_status read_root(void *user, lp_yaml *yaml, const lp_yaml_node *root) {
  lp_backends *out = user;
  backends_file file = {.backhaul_s = 0.1};
  LP_TRY(lp_yaml_fields(yaml, root, "the backends", file_fields, LP_COUNT(file_fields), &file));
  LP_TRY(read_service(yaml, file.service, out));
  if (file.split) {
    LP_TRY(lp_service_from_split(lp_yaml_relative(yaml, file.split), out->arena, &out->of[LP_ROUTE_SPLIT].model,
                                 yaml->diag));
    out->of[LP_ROUTE_SPLIT].there = true;
  }
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    out->of[route].healthy = true;
    if (file.limits[route]) LP_TRY(read_limits(yaml, file.limits[route], route, &out->of[route]));
  }
  out->of[LP_ROUTE_CLOUD].backhaul_s = file.backhaul_s;
  return file.link ? read_link(yaml, file.link, out) : LP_OK;
}

lp_status lp_backends_load(const char *path, lp_backends **out, lp_diag *diag) {
  lp_backends *backends = lp_alloc(sizeof *backends);
  *backends = (lp_backends){.arena = lp_arena_create(), .token_bytes = 4, .up_bps = INFINITY, .down_bps = INFINITY};
  lp_status status = lp_yaml_load(path, backends->arena, read_root, backends, diag);
  *out = status == LP_OK ? backends : NULL;
  if (status != LP_OK) lp_backends_free(backends);
  return status;
}

lp_status lp_backends_check_user(const lp_backends *backends, int64_t user, lp_loc loc, lp_diag *diag) {
  if (user <= backends->users) return LP_OK;
  if (backends->users == 0)
    return lp_error(diag, loc, "user %" PRId64 " is one of a radio profile, and 'link' of the backends has none", user);
  return lp_error(diag, loc, "there is no user %" PRId64 ": 'link' of the backends has %" PRId64, user,
                  backends->users);
}

void lp_backends_free(lp_backends *backends) {
  if (!backends) return;
  lp_arena_free(backends->arena);
  free(backends);
}

/* ---- constraints ------------------------------------------------------------------------------------------------- */

static double most_tokens(const lp_demand *demand) {
  return demand->prompt_tokens + fmax(demand->tokens, demand->most_tokens);
}

static double cost_usd(const lp_route_backend *backend, const lp_demand *demand) {
  return most_tokens(demand) * backend->usd_per_mtok / 1e6;
}

static bool exceeds_context(const lp_route_backend *backend, const lp_demand *demand) {
  return backend->context > 0 && most_tokens(demand) > (double)backend->context;
}

/* Writes why the route may not take the request; false: it may. */
static bool speaks_against(const lp_route_backend *backend, lp_route route, const lp_demand *demand, lp_buf *why) {
  double cost = cost_usd(backend, demand);
  if (!backend->there)
    lp_buf_puts(why, "is not configured");
  else if (!backend->healthy)
    lp_buf_puts(why, "is down");
  else if (demand->local_only && route != LP_ROUTE_EDGE)
    lp_buf_puts(why, "the request may not leave the edge");
  else if (exceeds_context(backend, demand))
    lp_buf_printf(why, "%.0f tokens do not fit a context of %" PRId64, most_tokens(demand), backend->context);
  else if (cost > demand->budget_usd)
    lp_buf_printf(why, "costs up to %.6g USD, the budget is %.6g USD", cost, demand->budget_usd);
  else
    return false;
  return true;
}

unsigned lp_backends_admit(const lp_backends *backends, const lp_demand *demand, lp_buf *why) {
  unsigned offered = 0;
  LP_OWNED(lp_buf_free) lp_buf reason = {0};
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    lp_buf_clear(&reason);
    if (!speaks_against(&backends->of[route], route, demand, &reason))
      offered |= 1u << route;
    else if (why)
      lp_buf_printf(why, "%s%s: %s", why->size > 0 ? "; " : "", lp_route_name(route), lp_buf_text(&reason));
  }
  return offered;
}

bool lp_backends_is_too_long(const lp_backends *backends, const lp_demand *demand) {
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    const lp_route_backend *backend = &backends->of[route];
    bool may = backend->there && backend->healthy && (!demand->local_only || route == LP_ROUTE_EDGE);
    if (may && exceeds_context(backend, demand)) return true;
  }
  return false;
}
