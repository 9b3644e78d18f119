/* What all kinds of pools say of a row. */

#include "runtime/router/store_internal.h"

void lp_store_line_fail(lp_store_line *line, const char *error) {
  (void)snprintf(line->error, sizeof line->error, "%s", error);
}

void lp_store_line_lacks_decision(lp_store_line *line) {
  (void)snprintf(line->error, sizeof line->error, "no decision %lld", (long long)line->id);
}

void lp_store_line_has_outcome(lp_store_line *line) {
  (void)snprintf(line->error, sizeof line->error, "decision %lld has an outcome already", (long long)line->id);
}

lp_status lp_store_read_row(const lp_store *store, const char *rule, const char *route, int64_t source, lp_stored *out,
                            lp_diag *diag) {
  if (!lp_route_parse(rule, &out->request.rule) || !lp_route_parse(route, &out->decision.route) || source < 0 ||
      source > LP_DECIDED_FALLBACK)
    return lp_error(diag, (lp_loc){.file = store->name}, "decision %lld is damaged", (long long)out->id);
  out->decision.source = (lp_decision_source)source;
  return LP_OK;
}
