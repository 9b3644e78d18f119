/* llmpart check-plan: confirms the certificate in a report (tools/certificate). */
#include "base/clock.h"
#include "base/units.h"
#include "tools/certificate/certificate.h"
#include "tools/tools.h"

#include <math.h>
#include <stdio.h>

static double gap_of(double bound, double value) {
  return value > 0 ? 100 * fmax(0, 1 - bound / value) : 0;
}

static void print_finding(const char *file, const certificate_finding *found) {
  const double value = found->value;
  printf("%s: plan %.9g, ", file, value);
  if (!found->exits) printf("at least %.9g is proved, gap %.3g %%; ", found->bound, gap_of(found->bound, value));
  char first[32], next[32];
  printf("TTFT %s, TPOT %s\n", lp_format_ms(found->totals.ms[0], first), lp_format_ms(found->totals.ms[1], next));
  if (found->exits) printf("not proved: the rates of the early exits, and that no other plan is better\n");
  printf("not proved: the operators' predicted times and sizes, which are what the figures rest on%s%s\n",
         found->unchecked ? "; " : "", found->unchecked ? found->unchecked : "");
}

/* A plan over more than two places has a certificate of another form. */
static void note_places(const certificate *c, const char *file, lp_diag *diag) {
  if (!c->report) return;
  lp_json root = lp_json_root(file, c->report), schema = lp_json_member(&root, "schema");
  if (lp_json_equals(&schema, "llmpart.places/1"))
    lp_note(diag, LP_LOC_FILE(file), "certificates of plans over more than two places cannot be checked yet");
}

static lp_status check_file(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const char *file = args->data[0];
  const bool *timing = command->user;
  certificate c;
  double begin = lp_now_ms();
  lp_status status = certificate_load(file, &c, diag);
  if (status != LP_OK) note_places(&c, file, diag);
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
                                  "Recomputes every figure of a plan and of its baselines from the certificate in its\n"
                                  "report, proves its lower bound anew, and says what it does not prove. Exit status\n"
                                  "4: the report does not hold.",
                              .options = options,
                              .count = LP_COUNT(options),
                              .min_args = 1,
                              .max_args = 1,
                              .act = check_file,
                              .user = &timing};
  return lp_tool_main(&command, argc, argv);
}
