/* llmpart check-plan: confirms the certificate in a report (tools/certificate). */
#include "base/clock.h"
#include "tools/certificate/certificate.h"
#include "tools/tools.h"

#include <math.h>
#include <stdio.h>

static void print_finding(const char *file, const certificate_finding *found) {
  const double value = found->totals.value, gap = value > 0 ? 100 * fmax(0, 1 - found->bound / value) : 0;
  printf("%s: plan %.9g, at least %.9g is proved, gap %.3g %%; TTFT %.6g ms, TPOT %.6g ms\n", file, value, found->bound,
         gap, found->totals.ms[0], found->totals.ms[1]);
}

static lp_status check_file(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const char *file = args->data[0];
  const bool *timing = command->user;
  certificate c;
  double begin = lp_now_ms();
  lp_status status = certificate_load(file, &c, diag);
  double loaded = lp_now_ms();
  certificate_finding found;
  if (status == LP_OK) status = certificate_check(&c, file, &found, diag);
  if (status == LP_OK) print_finding(file, &found);
  if (*timing) fprintf(stderr, "read in %.3f ms, checked in %.3f ms\n", loaded - begin, lp_now_ms() - loaded);
  certificate_free(&c);
  return status;
}

int lp_tool_check_plan(int argc, char **argv) {
  bool timing = false;
  const lp_option options[] = {
      {"--timing", LP_OPTION_FLAG, &timing, NULL, "print on stderr how long reading and checking took", 0}};
  const lp_command command = {.usage = "llmpart check-plan REPORT.json [--timing]",
                              .summary =
                                  "Recomputes a plan's objective and limits from the certificate in its report, and\n"
                                  "proves its lower bound anew. Exit status 4: the report does not hold.",
                              .options = options,
                              .count = LP_COUNT(options),
                              .min_args = 1,
                              .max_args = 1,
                              .act = check_file,
                              .user = &timing};
  return lp_tool_main(&command, argc, argv);
}
