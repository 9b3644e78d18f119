/* What an answer takes of the device besides its arithmetic, by hand. */
#include "passes/plan/device.h"
#include "tests/suite.h"

#include <math.h>
#include <string.h>

typedef struct {
  lp_machine *device, *cloud;
  lp_link *link;
  lp_compile_request request;
} study;

static study study_open(const char *device, const char *link) {
  study s = {0};
  ck_assert_int_eq(lp_hw_load(device, &s.device, NULL), LP_OK);
  ck_assert_int_eq(lp_hw_load("a100,power=400W", &s.cloud, NULL), LP_OK);
  ck_assert_int_eq(lp_link_load(link, &s.link, NULL), LP_OK);
  s.request = (lp_compile_request){.device = s.device, .cloud = s.cloud, .link = s.link};
  return s;
}

static void study_close(study *s) {
  lp_hw_free(s->device);
  lp_hw_free(s->cloud);
  lp_link_free(s->link);
}

/* A device that computes for 1 s of an answer of 3 s, the first of which ends at 0.5 s, and sends a megabyte. */
static const lp_plan_result answer = {.ttft_ms = 500,
                                      .e2e_ms = 3000,
                                      .device_busy_ms = 1000,
                                      .cloud_busy_ms = 100,
                                      .cost_usd = 1e-5,
                                      .messages_decode = 2,
                                      .bytes_up = 1e6,
                                      .bytes_down = 1e5};

static const char board[] =
    "raspberry-pi-5,power=12W,idle_power=4W,purchase_usd=80,life_years=5,energy_usd_per_kwh=0.16";
static const char radio[] = "rtt=50ms,up=10Mbit/s,down=10Mbit/s,radio_up_j_per_bit=4e-7,radio_down_j_per_bit=5e-8,"
                            "radio_awake=1.3W,radio_tail_j=12";

LP_TEST(an_answer_takes_computing_waiting_and_radio) {
  study s = study_open(board, radio);
  lp_plan_result plan = answer;
  lp_plan_device_share(&s.request, &plan);
  ck_assert_double_eq_tol(plan.device.busy_j, 12, 1e-9);
  ck_assert_double_eq_tol(plan.device.waiting_j, 2 * 4, 1e-9);
  ck_assert_double_eq_tol(plan.device.radio_j, 8e6 * 4e-7 + 8e5 * 5e-8 + 3 * 1.3 + 12, 1e-9);
  ck_assert_double_eq_tol(plan.device.energy_j, 12 + 8 + 19.14, 1e-9);
  ck_assert_double_eq_tol(plan.device.cloud_j, 40, 1e-9);
  ck_assert_double_eq_tol(plan.device.energy_usd, 39.14 / 3.6e6 * 0.16, 1e-15);
  ck_assert_double_eq_tol(plan.device.purchase_usd, 3 * 80 / (5 * 365.25 * 86400), 1e-15);
  ck_assert_double_eq_tol(plan.device.total_usd, 1e-5 + plan.device.purchase_usd + plan.device.energy_usd, 1e-15);
  ck_assert_double_eq_tol(lp_plan_device_usd_per_ms(&s.request),
                          1e-3 * (80 / (5 * 365.25 * 86400) + (4 + 1.3) / 3.6e6 * 0.16), 1e-18);
  ck_assert_ptr_null(lp_plan_device_unknown(&plan));
  study_close(&s);
}

/* Where only the prompt crosses, the radio sleeps while the device decodes; where nothing crosses, it never wakes. */
LP_TEST(the_radio_is_awake_while_messages_come) {
  study s = study_open(board, radio);
  lp_plan_result plan = answer;
  plan.messages_decode = 0;
  lp_plan_device_share(&s.request, &plan);
  ck_assert_double_eq_tol(plan.device.radio_j, 8e6 * 4e-7 + 8e5 * 5e-8 + 0.5 * 1.3 + 12, 1e-9);
  plan.bytes_up = plan.bytes_down = 0;
  lp_plan_device_share(&s.request, &plan);
  ck_assert_double_eq(plan.device.radio_j, 0);
  study_close(&s);
}

/* A model that is split without machines has none of it. */
LP_TEST(without_machines_nothing_is_known) {
  const lp_compile_request request = {0};
  lp_plan_result plan = answer;
  lp_plan_device_share(&request, &plan);
  ck_assert_double_eq(plan.device.busy_j, 0);
  ck_assert_double_eq(plan.device.cloud_j, 0);
  ck_assert_double_nan(plan.device.energy_j);
  ck_assert_double_nan(plan.device.total_usd);
}

/* Nothing that a file does not give is guessed; a device that cost nothing is known to. */
LP_TEST(what_is_unknown_is_said) {
  static const struct {
    const char *device, *link, *missing; /* NULL: nothing */
  } rows[] = {{board, "lan", NULL},
              {board, "rtt=1ms,up=1Gbit/s,down=1Gbit/s", "radio_*"},
              {board, "5g", "radio_*"},
              {"jetson-nano", "lan", "idle_power"},
              {"jetson-nano-p1,idle_power=1W", "lan", "purchase_usd"},
              {"jetson-nano-p1,idle_power=1W,purchase_usd=99", "lan", "life_years"},
              {"jetson-nano-p1,idle_power=1W,purchase_usd=0", "lan", "energy_usd_per_kwh"},
              {"jetson-nano-p1,idle_power=1W,purchase_usd=0,energy_usd_per_kwh=0", "lan", NULL}};
  for (size_t i = 0; i < LP_COUNT(rows); i++) {
    study s = study_open(rows[i].device, rows[i].link);
    lp_plan_result plan = answer;
    lp_plan_device_share(&s.request, &plan);
    const char *found = lp_plan_device_unknown(&plan);
    if (rows[i].missing)
      ck_assert_msg(found && strstr(found, rows[i].missing), "%zu: %s", i, found ? found : "nothing is missing");
    else
      ck_assert_msg(!found, "%zu: %s", i, found);
    ck_assert_int_eq(isnan(plan.device.total_usd), rows[i].missing != NULL);
    study_close(&s);
  }
}
