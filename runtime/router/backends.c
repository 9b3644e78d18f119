/* Reads the file of backends, and checks which of them may take a request. */
#include "runtime/router/backends.h"

#include <math.h>
#include <stdlib.h>

#include "base/yaml/yaml.h"

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

static const lp_yaml_field link_fields[] = {
    LP_YAML_FIELD(LP_YAML_BPS, "up", lp_backends, up_bps, .least = 1, .most = 1e15),
    LP_YAML_FIELD(LP_YAML_BPS, "down", lp_backends, down_bps, .least = 1, .most = 1e15),
    LP_YAML_FIELD(LP_YAML_F64, "token_bytes", lp_backends, token_bytes, .least = 0, .most = 1e9),
};

static lp_status read_limits(lp_yaml *yaml, const lp_yaml_node *node, lp_route route, lp_route_backend *backend) {
  limits_file file = {.backend = *backend};
  const char *what = lp_arena_format(yaml->arena, "'%s'", lp_route_name(route));
  if (!backend->there)
    return lp_error(yaml->diag, lp_yaml_loc(yaml, node), "'split_plan' has limits, but there is no 'split'");
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
  return file.link ? lp_yaml_fields(yaml, file.link, "'link'", link_fields, LP_COUNT(link_fields), out) : LP_OK;
}

lp_status lp_backends_load(const char *path, lp_backends **out, lp_diag *diag) {
  lp_backends *backends = lp_alloc(sizeof *backends);
  *backends = (lp_backends){.arena = lp_arena_create(), .token_bytes = 4, .up_bps = INFINITY, .down_bps = INFINITY};
  lp_status status = lp_yaml_load(path, backends->arena, read_root, backends, diag);
  *out = status == LP_OK ? backends : NULL;
  if (status != LP_OK) lp_backends_free(backends);
  return status;
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
  lp_buf reason = {0};
  for (lp_route route = 0; route < LP_ROUTE_COUNT; route++) {
    lp_buf_clear(&reason);
    if (!speaks_against(&backends->of[route], route, demand, &reason))
      offered |= 1u << route;
    else if (why)
      lp_buf_printf(why, "%s%s: %s", why->size > 0 ? "; " : "", lp_route_name(route), lp_buf_text(&reason));
  }
  lp_buf_free(&reason);
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
