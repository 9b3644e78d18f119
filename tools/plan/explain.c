/* llmpart explain: shows why an operator is on its side: its times on either side, and the effect of moving it. Of a
 * plan over more than two places it shows the times in each. */
#include "base/side.h"
#include "base/units.h"
#include "proof/proof.h"
#include "tools/tools.h"

#include <math.h>

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

static const char *verdict(const lp_certificate *c, const lp_certificate_totals *before,
                           const lp_certificate_totals *after) {
  for (int i = 0; i < 2; i++) {
    if (c->limit_ms[i] > 0 && after->ms[i] > c->limit_ms[i] * (1 + 1e-12))
      return i ? "it would miss TPOT" : "it would miss TTFT";
    if (c->limit_bytes[i] > 0 && after->bytes[i] > c->limit_bytes[i])
      return i ? "the cloud's memory would not suffice" : "the device's memory would not suffice";
  }
  if (!after->pinned) return "it is pinned";
  return after->value > before->value ? "the objective would be worse" : "no limit or cost prevents it by itself";
}

/* Explains an operator by the unit that the plan moves as a whole; `name` is the operator's. */
static void explain_unit(lp_certificate *c, int which, size_t index, const char *name) {
  const lp_certificate_unit *u = &c->stages[which].units[index];
  int side = u->side;
  lp_certificate_totals before = lp_certificate_add_up(c);
  char device[32], cloud[32];
  printf("%s in %s: on the %s; ", name, stages[which], lp_side_name((lp_side)side));
  if (u->row_count > 1) printf("its unit of %zu operators takes ", u->row_count);
  printf("%s on the device, %s in the cloud\n", lp_format_ms(u->ms[0], device), lp_format_ms(u->ms[1], cloud));
  int *kept = LP_NEW_ARRAY(c->arena, int, c->stages[which].unit_count);
  for (size_t i = 0; i < c->stages[which].unit_count; i++)
    kept[i] = c->stages[which].units[i].side;
  int moved = lp_certificate_move(c, which, index, !side);
  lp_certificate_totals after = lp_certificate_add_up(c);
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

/* ---- the operators of a report ----------------------------------------------------------------------------------- */

static double number_at(const lp_json *at) {
  double value = 0;
  return lp_json_number(at, -INFINITY, INFINITY, &value, NULL) == LP_OK ? value : NAN;
}

static double number_of(const lp_json *object, const char *key) {
  return number_at(LP_MEMBER(object, key));
}

static const char *text_of(const lp_json *object, const char *key) {
  return lp_json_text_or(LP_MEMBER(object, key), "");
}

static lp_status unknown_operator(const lp_json *operators, const char *file, const char *name, lp_diag *diag) {
  const char **names = lp_alloc((lp_json_count(operators) + 1) * sizeof *names);
  size_t count = 0;
  LP_FOR_ITEMS(row, operators)
    if (text_of(&row, "name")[0]) names[count++] = text_of(&row, "name");
  lp_status status = lp_error(diag, LP_LOC_FILE(file), "the plan has no operator '%s'", name);
  lp_note_near(diag, LP_LOC_FILE(file), name, names, count);
  free(names);
  return status;
}

/* ---- a plan of two sides ----------------------------------------------------------------------------------------- */

/* Finds the unit of a stage to which a row of `operators` belongs; false: none, since it runs wherever it is needed. */
static bool find_unit(const lp_certificate *c, int which, size_t row, size_t *out) {
  for (size_t i = 0; i < c->stages[which].unit_count; i++)
    for (size_t k = 0; k < c->stages[which].units[i].row_count; k++)
      if (c->stages[which].units[i].rows[k] == (int)row) {
        *out = i;
        return true;
      }
  return false;
}

static void explain_row(lp_certificate *c, const lp_json *row, size_t number) {
  const char *name = text_of(row, "name");
  const int which = lp_streq(text_of(row, "stage"), stages[1]);
  size_t index = 0;
  char device[32], cloud[32];
  if (find_unit(c, which, number, &index)) {
    explain_unit(c, which, index, name);
    return;
  }
  printf("%s in %s: on the %s, as on each side that needs its result; %s on the device, %s in the cloud\n", name,
         stages[which], text_of(row, "side"), lp_format_ms(number_of(row, "device_ms"), device),
         lp_format_ms(number_of(row, "cloud_ms"), cloud));
}

/* ---- a plan over places ------------------------------------------------------------------------------------------ */

static void explain_in_places(const lp_json *root, const lp_json *row) {
  const lp_json places = lp_json_member(root, "places"), times = lp_json_member(row, "ms");
  printf("%s in %s: at %s; ", text_of(row, "name"), text_of(row, "stage"), text_of(row, "place"));
  for (size_t i = 0; i < lp_json_count(&times) && i < lp_json_count(&places); i++) {
    const lp_json item = lp_json_item(&times, i), place = lp_json_item(&places, i);
    char text[32];
    printf("%s%s at %s", i ? ", " : "", lp_format_ms(number_at(&item), text), text_of(&place, "name"));
  }
  printf("\n");
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* Explains each row of that name. `c` is NULL for a plan over places. */
static lp_status explain_rows(const lp_json *root, lp_certificate *c, const char *file, const char *name,
                              lp_diag *diag) {
  const lp_json operators = lp_json_member(root, "operators");
  bool found = false;
  LP_TRY(lp_json_array(&operators, diag));
  LP_FOR_ITEMS(row, &operators) {
    if (!lp_streq(text_of(&row, "name"), name)) continue;
    found = true;
    if (c)
      explain_row(c, &row, row.index);
    else
      explain_in_places(root, &row);
  }
  return found ? LP_OK : unknown_operator(&operators, file, name, diag);
}

static lp_status explain(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  (void)command;
  const char *file = args->data[0], *name = args->data[1];
  lp_certificate c;
  lp_status status = lp_certificate_load(file, &c, diag);
  if (status == LP_OK) {
    const lp_json root = lp_json_root(file, c.report);
    status = explain_rows(&root, lp_certificate_is_over_places(&c) ? NULL : &c, file, name, diag);
  }
  lp_certificate_free(&c);
  return status;
}

int lp_tool_explain(int argc, char **argv) {
  const lp_command command = {
      .usage = "llmpart explain REPORT.json OPERATOR",
      .summary = "Prints an operator's times on either side, and the effect of moving it; of a plan over\n"
                 "more than two places, its times in each.",
      .args = {2, 2},
      .act = explain};
  return lp_tool_main(&command, argc, argv);
}
