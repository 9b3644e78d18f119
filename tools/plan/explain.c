/* llmpart explain: shows why an operator is on its side: its times on either side, and the effect of moving it. */
#include "base/side.h"
#include "base/units.h"
#include "tools/certificate/certificate.h"
#include "tools/tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const stages[] = {"prefill", "decode"};

/* lp_format_ms and its like */
typedef const char *format_value(double value, char out[32]);

static const char *plain(double value, char out[32]) {
  (void)snprintf(out, 32, "%.6g", value);
  return out;
}

static void print_limit(const char *name, double before, double after, double limit, format_value *format) {
  char a[32], b[32];
  printf("    %-14s %s -> %s", name, format(before, a), format(after, b));
  if (limit > 0) printf(", limit %s%s", format(limit, a), after > limit * (1 + 1e-12) ? ": EXCEEDED" : "");
  printf("\n");
}

static const char *verdict(const certificate *c, const totals *before, const totals *after) {
  for (int i = 0; i < 2; i++) {
    if (c->limit_ms[i] > 0 && after->ms[i] > c->limit_ms[i] * (1 + 1e-12))
      return i ? "it would miss TPOT" : "it would miss TTFT";
    if (c->limit_bytes[i] > 0 && after->bytes[i] > c->limit_bytes[i])
      return i ? "the cloud's memory would not suffice" : "the device's memory would not suffice";
  }
  if (!after->pinned) return "it is pinned";
  return after->value > before->value ? "the objective would be worse" : "no limit or cost prevents it by itself";
}

static void explain_unit(certificate *c, int which, size_t index) {
  const unit *u = &c->stages[which].units[index];
  int side = u->side;
  totals before = certificate_add_up(c);
  char device[32], cloud[32];
  printf("%s in %s: on the %s; %s on the device, %s in the cloud\n", u->name, stages[which],
         lp_side_name((lp_side)side), lp_format_ms(u->ms[0], device), lp_format_ms(u->ms[1], cloud));
  int *kept = LP_NEW_ARRAY(c->arena, int, c->stages[which].unit_count);
  for (size_t i = 0; i < c->stages[which].unit_count; i++)
    kept[i] = c->stages[which].units[i].side;
  int moved = certificate_move(c, which, index, !side);
  totals after = certificate_add_up(c);
  printf("  to the %s%s: %s\n", lp_side_name(lp_side_other((lp_side)side)),
         moved > 1 ? ", with the operators that share its KV cache" : "", verdict(c, &before, &after));
  print_limit("objective", before.value, after.value, 0, plain);
  print_limit("TTFT", before.ms[0], after.ms[0], c->limit_ms[0], lp_format_ms);
  print_limit("TPOT", before.ms[1], after.ms[1], c->limit_ms[1], lp_format_ms);
  print_limit("device memory", before.bytes[0], after.bytes[0], c->limit_bytes[0], lp_format_bytes);
  print_limit("cloud memory", before.bytes[1], after.bytes[1], c->limit_bytes[1], lp_format_bytes);
  for (size_t i = 0; i < c->stages[which].unit_count; i++)
    c->stages[which].units[i].side = kept[i];
}

static lp_status unknown_operator(const certificate *c, const char *file, const char *name, lp_diag *diag) {
  const stage *s = &c->stages[0];
  const char **names = lp_alloc((s->unit_count + 1) * sizeof *names);
  size_t count = 0;
  for (size_t i = 0; i < s->unit_count; i++)
    if (s->units[i].name) names[count++] = s->units[i].name;
  lp_status status = lp_error(diag, LP_LOC_FILE(file), "the plan has no operator '%s'", name);
  lp_note_near(diag, LP_LOC_FILE(file), name, names, count);
  free(names);
  return status;
}

static lp_status explain(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  (void)command;
  const char *file = args->data[0], *name = args->data[1];
  certificate c;
  lp_status status = certificate_load(file, &c, diag);
  bool found = false;
  for (int which = 0; which < 2 && status == LP_OK; which++)
    for (size_t i = 0; i < c.stages[which].unit_count; i++) {
      if (!lp_streq(c.stages[which].units[i].name, name)) continue;
      found = true;
      explain_unit(&c, which, i);
    }
  if (status == LP_OK && !found) status = unknown_operator(&c, file, name, diag);
  certificate_free(&c);
  return status;
}

int lp_tool_explain(int argc, char **argv) {
  const lp_command command = {.usage = "llmpart explain REPORT.json OPERATOR",
                              .summary = "Prints an operator's times on either side, and the effect of moving it.",
                              .min_args = 2,
                              .max_args = 2,
                              .act = explain};
  return lp_tool_main(&command, argc, argv);
}
