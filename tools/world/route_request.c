/* Reads the request of `llmpart route`: see route_request.h. */
#include "tools/world/route_request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static lp_status read_route(const char *option, const char *name, lp_route *out, lp_diag *diag) {
  if (lp_route_parse(name, out)) return LP_OK;
  return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(option), "'%s' is no route; wanted edge, cloud or split", name);
}

static lp_status read_offer(const char *text, unsigned *out, lp_diag *diag) {
  *out = 0;
  char *copy = lp_strdup(text), *rest = NULL;
  lp_status status = LP_OK;
  for (char *at = strtok_r(copy, ", ", &rest); at && status == LP_OK; at = strtok_r(NULL, ", ", &rest)) {
    lp_route route = LP_ROUTE_EDGE;
    status = read_route("--offer", at, &route, diag);
    *out |= 1u << route;
  }
  free(copy);
  if (status == LP_OK && *out == 0)
    status = lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--offer"), "wanted at least one route");
  return status;
}

static lp_status weigh(const lp_route_flags *flags, lp_route_request *out, lp_diag *diag) {
  lp_backends *backends = NULL;
  LP_TRY(lp_backends_load(flags->backends, &backends, diag));
  lp_demand demand = {.prompt_tokens = flags->prompt_tokens,
                      .tokens = flags->tokens,
                      .most_tokens = flags->most_tokens,
                      .local_only = flags->local_only,
                      .budget_usd = flags->budget_usd > 0 ? flags->budget_usd : INFINITY};
  lp_backends_weigh(backends, &demand, flags->busy, &out->request, &out->keywords, &out->refused);
  lp_backends_free(backends);
  if (out->request.offered != 0) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(flags->backends), "no route can take the request: %s", lp_buf_text(&out->refused));
}

lp_status lp_route_request_make(const lp_route_flags *flags, lp_route_request *out, lp_diag *diag) {
  *out = (lp_route_request){0};
  const char *offer = flags->backends ? "edge,cloud,split" : "edge,cloud";
  LP_TRY(read_offer(flags->offer ? flags->offer : offer, &out->request.offered, diag));
  LP_TRY(read_route("--rule", flags->rule, &out->request.rule, diag));
  lp_buf_puts(&out->keywords, flags->keywords);
  lp_status status = flags->backends ? weigh(flags, out, diag) : LP_OK;
  out->request.keywords = lp_buf_text(&out->keywords);
  if (status != LP_OK) lp_route_request_free(out);
  return status;
}

void lp_route_request_free(lp_route_request *request) {
  lp_buf_free(&request->keywords);
  lp_buf_free(&request->refused);
}
