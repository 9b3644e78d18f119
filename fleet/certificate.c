/* Writes the certificate of a fleet: see certificate.h. */
#include "fleet/certificate.h"
#include "fleet/candidates.h"

#include <math.h>

static void put_option(const lp_fleet_spec *spec, const lp_fleet_candidates *all, const lp_fleet_option *option,
                       lp_json_writer *out) {
  const lp_fleet_kind *kind = &spec->kinds.data[option->kind];
  lp_json_put_object(out, NULL);
  lp_json_put_text(out, "machine", kind->name);
  lp_json_put_integer(out, "cut", option->cut);
  lp_json_put_number(out, "asks", option->exits ? spec->exits.asks : 1);
  lp_json_put_number(out, "question_rows", option->exits ? spec->exits.question_rows : 1);
  lp_json_put_number(out, "usd_per_hour", kind->usd_per_hour);
  lp_json_put_number(out, "usd_by_hour", kind->usd_by_hour > 0 ? kind->usd_by_hour : NAN);
  if (kind->spot_usd_per_hour > 0) {
    lp_json_put_flat_object(out, "spot");
    lp_json_put_number(out, "usd_per_hour", kind->spot_usd_per_hour);
    lp_json_put_number(out, "every_s", kind->losses.every_s);
    lp_json_put_number(out, "restart_s", kind->losses.restart_s);
    lp_json_put_integer(out, "most", kind->most_spot);
    lp_json_put_end(out);
  }
  const double watts = kind->machine->figure[LP_HW_POWER], idle = kind->machine->figure[LP_HW_IDLE_POWER];
  lp_json_put_number(out, "power_w", watts > 0 ? watts : NAN);
  lp_json_put_number(out, "idle_power_w", idle > 0 ? idle : NAN);
  lp_json_put_flat_array(out, "device_j");
  for (size_t i = 0; i < spec->classes.count; i++)
    lp_json_put_number(out, NULL, option->serves >> i & 1 ? option->device_j[i] : NAN);
  lp_json_put_end(out);
  lp_json_put_integer(out, "most", kind->most);
  lp_json_put_integer(out, "sessions", option->law->sessions);
  lp_json_put_numbers(out, "rows", option->law->rows, LP_LOAD_KNOTS);
  lp_json_put_numbers(out, "token_s", option->law->token_s, LP_LOAD_KNOTS);
  lp_json_put_numbers(out, "prompt_s", option->law->prompt_s, LP_LOAD_KNOTS);
  lp_json_put_flat_array(out, "user_s");
  for (size_t i = 0; i < spec->classes.count; i++)
    lp_json_put_number(out, NULL, option->serves >> i & 1 ? lp_fleet_user_of(all, option, i)->token_s : NAN);
  lp_json_put_end(out);
  lp_json_put_array(out, "prices");
  LP_FOR_EACH(const lp_fleet_price, price, option->price, option->prices) {
    lp_json_put_flat_object(out, NULL);
    lp_json_put_integer(out, "sessions", price->sessions);
    lp_json_put_number(out, "kept_s", price->kept_s);
    lp_json_put_number(out, "free_s", price->free_s);
    lp_json_put_number(out, "row_s", price->row_s);
    lp_json_put_number(out, "slow", price->slow);
    lp_json_put_end(out);
  }
  lp_json_put_end(out);
  lp_json_put_end(out);
}

void lp_fleet_certificate_put(const lp_fleet_spec *spec, const lp_fleet_plan *plan, lp_json_writer *out) {
  const lp_fleet_candidates *all = plan->all;
  const int digits = out->style.digits;
  out->style.digits = 17;
  lp_json_put_object(out, "certificate");
  lp_json_put_number(out, "prompt_tokens", all->means.prompt);
  lp_json_put_number(out, "answer_tokens", all->means.answer);
  lp_json_put_numbers(out, "kept", all->means.kept, LP_FLEET_QUANTILES);
  lp_json_put_integer(out, "spare", spec->spare);
  lp_json_put_number(out, "availability", spec->availability);
  lp_json_put_flat_array(out, "alone");
  for (size_t i = 0; i < spec->classes.count; i++)
    lp_json_put_bool(out, NULL, all->alone >> i & 1);
  lp_json_put_end(out);
  lp_json_put_flat_array(out, "alone_j");
  for (size_t i = 0; i < spec->classes.count; i++)
    lp_json_put_number(out, NULL, all->alone >> i & 1 ? all->alone_j[i] : NAN);
  lp_json_put_end(out);
  lp_json_put_array(out, "options");
  for (int32_t i = 0; i < all->options; i++)
    put_option(spec, all, &all->option[i], out);
  lp_json_put_end(out);
  lp_json_put_end(out);
  out->style.digits = digits;
}
