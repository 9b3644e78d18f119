/* llmpart check-plan: confirms the certificate in a report. It shares no code with the planner, only the definition of
 * what a plan comes to: operators' times, one message per turn, what each side holds; and it proves the lower bound anew
 * from the certificate's prices. */
#include "base/clock.h"
#include "tools/certificate/certificate.h"

#include <math.h>
#include <stdlib.h>

static bool near(double a, double b) {
  return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-15;
}

static lp_status judge(const certificate *c, const char *file, lp_diag *diag) {
  static const char *const times[] = {"TTFT", "TPOT"}, *const sides[] = {"device", "cloud"};
  totals t = certificate_add_up(c);
  double bound = certificate_bound(c);
  lp_status status = LP_OK;
  for (int i = 0; i < 2; i++) {
    if (c->limit_ms[i] > 0 && t.ms[i] > c->limit_ms[i] * (1 + 1e-12))
      status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "%s comes to %.9g ms, the limit is %.9g ms", times[i],
                           t.ms[i], c->limit_ms[i]);
    if (c->limit_bytes[i] > 0 && t.bytes[i] > c->limit_bytes[i])
      status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "the %s holds %.0f bytes, the limit is %.0f", sides[i],
                           t.bytes[i], c->limit_bytes[i]);
    if (c->price_ms[i] < 0 || c->price_bytes[i] < 0)
      status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "a price is negative: it proves nothing");
  }
  if (!t.pinned || !t.caches)
    status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file),
                         t.pinned ? "a KV cache is used from both sides" : "a pinned operator is elsewhere");
  if (!near(t.value, c->value))
    status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "the plan comes to %.12g, the report says %.12g",
                         t.value, c->value);
  if (isnan(bound))
    status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file),
                         "the bound is not proved: reads are charged more than one message along a path");
  else if (bound < c->bound - 1e-9 * fabs(c->bound) - 1e-15)
    status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "the prices prove %.12g, the report says %.12g", bound,
                         c->bound);
  if (status == LP_OK)
    printf("%s: plan %.9g, at least %.9g is proved, gap %.3g %%; TTFT %.6g ms, TPOT %.6g ms\n", file, t.value,
           fmin(bound, t.value), t.value > 0 ? 100 * fmax(0, 1 - bound / t.value) : 0, t.ms[0], t.ms[1]);
  return status;
}

static lp_status check_file(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const char *file = args->data[0];
  const bool *timing = command->user;
  certificate c;
  double begin = lp_now_ms();
  lp_status status = certificate_load(file, &c, diag);
  double loaded = lp_now_ms();
  if (status == LP_OK) status = judge(&c, file, diag);
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
