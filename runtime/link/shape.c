/* Parses the figures of an emulated link. */
#include "base/units.h"
#include "runtime/runtime.h"

static lp_status read_loss(const char *text, double *out, lp_diag *diag, lp_loc loc) {
  LP_TRY(lp_parse_share(text, out, diag, loc));
  return *out < 1 ? LP_OK : lp_error(diag, loc, "a loss of %g; wanted less than 1", *out);
}

/* "2s/30s": down for 2 s every 30 s. */
static lp_status read_cut(char *text, lp_link_shape *out, lp_diag *diag, lp_loc loc) {
  char *slash = strchr(text, '/');
  if (!slash) return lp_error(diag, loc, "'%s' is no cut such as 2s/30s: how long, and how often", text);
  *slash = '\0';
  LP_TRY(lp_parse_time_ms(text, &out->cut_ms, diag, loc));
  LP_TRY(lp_parse_time_ms(slash + 1, &out->cut_every_ms, diag, loc));
  if (out->cut_ms < out->cut_every_ms) return LP_OK;
  return lp_error(diag, loc, "the link would be down for %g of every %g ms", out->cut_ms, out->cut_every_ms);
}

static lp_status read_item(char *item, lp_link_shape *out, lp_diag *diag, lp_loc loc) {
  char *value = strchr(item, '=');
  if (!value) return lp_error(diag, loc, "'%s' is no figure such as rtt=50ms", item);
  *value++ = '\0';
  if (lp_streq(item, "rtt")) return lp_parse_time_ms(value, &out->rtt_ms, diag, loc);
  if (lp_streq(item, "up")) return lp_parse_rate_bps(value, &out->up_bps, diag, loc);
  if (lp_streq(item, "down")) return lp_parse_rate_bps(value, &out->down_bps, diag, loc);
  if (lp_streq(item, "loss")) return read_loss(value, &out->loss, diag, loc);
  if (lp_streq(item, "cut")) return read_cut(value, out, diag, loc);
  static const char *const keys[] = {"rtt", "up", "down", "loss", "cut", "seed"};
  int64_t seed = 0;
  if (!lp_streq(item, "seed"))
    return lp_error_near(diag, loc, item, (const char *const *)keys, LP_COUNT(keys), "a link has no figure '%s'", item);
  LP_TRY(lp_parse_i64(value, 0, INT64_MAX, &seed, diag, loc));
  out->seed = (uint64_t)seed;
  return LP_OK;
}

lp_status lp_link_shape_parse(const char *text, lp_link_shape *out, lp_diag *diag, lp_loc loc) {
  char *copy = lp_strdup(text), *rest = NULL;
  lp_status status = LP_OK;
  *out = (lp_link_shape){0};
  for (char *item = strtok_r(copy, ",", &rest); item && status == LP_OK; item = strtok_r(NULL, ",", &rest))
    status = read_item(item, out, diag, loc);
  free(copy);
  return status;
}
