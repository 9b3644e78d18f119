/* What an answer takes of the device besides its arithmetic: energy while it waits and for its radio, its share of the
 * purchase, and the price of its energy. Figures that a machine's or link's file does not give are not guessed. */
#include "passes/plan/device.h"

#include <math.h>

static const double seconds_per_year = 365.25 * 86400, joules_per_kwh = 3.6e6;

static double figure(const lp_machine *machine, lp_hw_figure figure) {
  return machine && machine->source[figure] ? machine->figure[figure] : NAN;
}

/* Huang et al., MobiSys 2012, 4.4: power is linear in the throughput while the radio is awake, so bits have an energy
 * of their own. It is awake from the first message to the last, which is the whole answer where decode sends any, and
 * for a tail after it. */
static double radio_j(const lp_link *link, const lp_plan_result *plan) {
  if (!link || !(plan->bytes_up + plan->bytes_down > 0)) return 0;
  for (int i = LP_LINK_RADIO_UP; i <= LP_LINK_RADIO_TAIL; i++)
    if (!link->source[i]) return NAN;
  const double awake_ms = plan->messages_decode > 0 ? plan->e2e_ms : plan->ttft_ms;
  return 8 * (plan->bytes_up * link->figure[LP_LINK_RADIO_UP] + plan->bytes_down * link->figure[LP_LINK_RADIO_DOWN]) +
         1e-3 * awake_ms * link->figure[LP_LINK_RADIO_AWAKE] + link->figure[LP_LINK_RADIO_TAIL];
}

double lp_plan_device_usd_per_ms(const lp_compile_request *request) {
  const lp_machine *device = request->device;
  const lp_link *link = request->link;
  const double purchase = figure(device, LP_HW_PURCHASE);
  const double radio_w = link && link->source[LP_LINK_RADIO_AWAKE] ? link->figure[LP_LINK_RADIO_AWAKE] : 0;
  const double energy =
      (figure(device, LP_HW_IDLE_POWER) + radio_w) / joules_per_kwh * figure(device, LP_HW_ENERGY_PRICE);
  return 1e-3 * ((purchase > 0 ? purchase / (figure(device, LP_HW_LIFE) * seconds_per_year) : purchase) + energy);
}

void lp_plan_device_share(const lp_compile_request *request, lp_plan_result *plan) {
  const lp_machine *device = request->device, *cloud = request->cloud;
  const double busy_ms = plan->device_busy_ms, waiting_ms = fmax(0, plan->e2e_ms - busy_ms);
  lp_plan_device *out = &plan->device;
  *out = (lp_plan_device){.busy_j = device ? 1e-3 * busy_ms * device->figure[LP_HW_POWER] : 0,
                          .waiting_j = waiting_ms > 0 ? 1e-3 * waiting_ms * figure(device, LP_HW_IDLE_POWER) : 0,
                          .radio_j = radio_j(request->link, plan),
                          .cloud_j = cloud ? 1e-3 * plan->cloud_busy_ms * cloud->figure[LP_HW_POWER] : 0};
  out->energy_j = out->busy_j + out->waiting_j + out->radio_j;
  out->energy_usd = out->energy_j / joules_per_kwh * figure(device, LP_HW_ENERGY_PRICE);
  const double purchase = figure(device, LP_HW_PURCHASE);
  out->purchase_usd = purchase > 0
                          ? 1e-3 * (busy_ms + waiting_ms) * purchase / (figure(device, LP_HW_LIFE) * seconds_per_year)
                          : purchase;
  out->cost_usd = out->purchase_usd + out->energy_usd;
  out->total_usd = plan->cost_usd + out->cost_usd;
}

const char *lp_plan_device_unknown(const lp_plan_result *plan) {
  const lp_plan_device *device = &plan->device;
  if (isnan(device->radio_j)) return "the link's file gives no radio_* or not all of them";
  if (isnan(device->waiting_j)) return "the device's file gives no idle_power";
  if (isnan(device->purchase_usd)) return "the device's file gives no purchase_usd or life_years";
  return isnan(device->energy_usd) ? "the device's file gives no energy_usd_per_kwh" : NULL;
}
