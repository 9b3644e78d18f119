/* llmpart check-plan: confirms the certificate in a report (proof/). */
#include "base/clock.h"
#include "base/units.h"
#include "proof/proof.h"
#include "tools/tools.h"

#include <math.h>

static void print_finding(const char *file, const lp_certificate_finding *found) {
  const double value = found->value;
  printf("%s: plan %.9g, ", file, value);
  if (!found->exits)
    printf("at least %.9g is proved, gap %.3g %%; ", found->bound, 100 * lp_certificate_gap(found->bound, value));
  char first[32], next[32];
  printf("TTFT %s, TPOT %s\n", lp_format_ms(found->totals.ms[0], first), lp_format_ms(found->totals.ms[1], next));
  if (found->exits) printf("not proved: the rates of the early exits, and that no other plan is better\n");
  printf("not proved: the operators' predicted times and sizes, which are what the figures rest on%s%s\n",
         found->unchecked ? "; " : "", found->unchecked ? found->unchecked : "");
}

static lp_status check_places(const char *file, const lp_certificate *c, lp_diag *diag) {
  const lp_json root = lp_json_root(file, c->report);
  lp_certificate_places_finding found;
  char first[32], next[32];
  LP_TRY(lp_certificate_places_check(&root, file, &found, diag));
  printf("%s: plan %.9g, ", file, found.objective);
  if (isinf(found.proved))
    printf("it is proved that no plan meets the limits; ");
  else if (found.feasible)
    printf("at least %.9g is proved, gap %.3g %%; ", found.proved,
           100 * lp_certificate_gap(found.proved, found.objective));
  printf("TTFT %s, TPOT %s, cost %.9g USD\n", lp_format_ms(found.ms[0], first), lp_format_ms(found.ms[1], next),
         found.cost);
  printf("not proved: the operators' predicted times and sizes");
  if (found.divides) printf("; the times, bytes and memory of places (the plan divides a part between places)");
  if (found.claimed > found.proved * (1 + 1e-9) && found.feasible)
    printf("; the gap of %.3g %% that the planner's search states",
           100 * lp_certificate_gap(found.claimed, found.objective));
  if (isinf(found.claimed) && !isinf(found.proved)) printf("; that no plan meets the limits");
  printf("\n");
  return LP_OK;
}

static lp_status check_fleet(const char *file, const lp_certificate *c, lp_diag *diag) {
  const lp_json root = lp_json_root(file, c->report);
  lp_certificate_fleet_finding found;
  LP_TRY(lp_certificate_fleet_check(&root, file, &found, diag));
  printf("%s: USD %.2f a month, at least USD %.2f is proved, gap %.3g %%\n", file, found.usd, found.bound,
         100 * lp_certificate_gap(found.bound, found.usd));
  printf("not proved: the predicted times of passes, bytes and lengths, which are what the bound rests on; which "
         "machine serves which class when idle; percentiles and busy time, which are simulated\n");
  return LP_OK;
}

static lp_status check_file(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const char *file = args->data[0];
  const bool *timing = command->user;
  lp_certificate c;
  lp_certificate_finding found;
  const double begin = lp_now_ms();
  lp_status status = lp_certificate_load(file, &c, diag);
  const double loaded = lp_now_ms();
  if (status == LP_OK && lp_certificate_is_over_places(&c)) {
    status = check_places(file, &c, diag);
  } else if (status == LP_OK && lp_certificate_is_of_fleet(&c)) {
    status = check_fleet(file, &c, diag);
  } else if (status == LP_OK) {
    status = lp_certificate_check(&c, file, &found, diag);
    if (status == LP_OK) print_finding(file, &found);
  }
  if (*timing) fprintf(stderr, "read in %.3f ms, checked in %.3f ms\n", loaded - begin, lp_now_ms() - loaded);
  lp_certificate_free(&c);
  return status;
}

int lp_tool_check_plan(int argc, char **argv) {
  bool timing = false;
  const lp_option options[] = {
      {"--timing", LP_OPTION_FLAG, &timing, NULL, "print on stderr how long reading and checking took"}};
  const lp_command command = {.usage = "llmpart check-plan REPORT.json [--timing]",
                              .summary =
                                  "Recomputes every figure of a plan and of its baselines from the certificate in its\n"
                                  "report, or those of a fleet, proves its lower bound anew, and says what it does\n"
                                  "not prove. Exit status 4: the report does not hold.",
                              LP_OPTIONS(options),
                              .args = {1, 1},
                              .act = check_file,
                              .user = &timing};
  return lp_tool_main(&command, argc, argv);
}
