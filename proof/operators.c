/* Compares the rows of `operators` with the units and holdings that they add up to. */
#include "proof/certificate.h"

#include <math.h>

typedef struct {
  int stage, side;
  double ms[2];
  bool taken; /* a unit contains it; otherwise it depends on positions only and belongs to a holding */
} row;

static lp_status bad_row(const char *file, size_t index, const char *what, lp_diag *diag) {
  return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "operators[%zu]: %s", index, what);
}

/* Reads a row and compares its figures with each other. */
static lp_status read_row(const lp_json *json, const char *file, size_t index, row *out, lp_diag *diag) {
  static const char *const keys[] = {"device_ms",     "cloud_ms",       "flops",        "bytes",        "ratio",
                                     "device_low_ms", "device_high_ms", "cloud_low_ms", "cloud_high_ms"};
  static const char *const stages[] = {"prefill", "decode"}, *const sides[] = {"device", "cloud"};
  double v[LP_COUNT(keys)];
  lp_json at_stage = lp_json_member(json, "stage"), at_side = lp_json_member(json, "side");
  *out = (row){0};
  for (size_t i = 0; i < LP_COUNT(keys); i++) {
    lp_json at = lp_json_member(json, keys[i]);
    if (lp_json_number(&at, 0, INFINITY, &v[i], NULL) != LP_OK) return bad_row(file, index, "a figure is absent", diag);
  }
  if (lp_json_choice(&at_stage, stages, 2, &out->stage, NULL) != LP_OK ||
      lp_json_choice(&at_side, sides, 2, &out->side, NULL) != LP_OK)
    return bad_row(file, index, "the stage or the side is none", diag);
  out->ms[0] = v[0];
  out->ms[1] = v[1];
  if (v[3] > 0 ? !lp_certificate_near(v[4] * v[3], v[2]) : v[4] != 0)
    return bad_row(file, index, "the ratio is not that of FLOPs and bytes", diag);
  for (int i = 0; i < 2; i++)
    if (v[5 + 2 * i] > v[i] * (1 + 1e-11) || v[6 + 2 * i] < v[i] * (1 - 1e-11))
      return bad_row(file, index, "the time is not within its interval", diag);
  return LP_OK;
}

/* Checks that a unit's time on each side is that of its operators, and that these are on the unit's side. */
static lp_status check_unit(const lp_certificate_unit *u, int which, const char *file, row *rows, size_t count,
                            lp_diag *diag) {
  double ms[2] = {0, 0};
  for (size_t k = 0; k < u->row_count; k++) {
    size_t index = (size_t)u->rows[k];
    if (index >= count || rows[index].taken || rows[index].stage != which || rows[index].side != u->side)
      return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "'%s': operators[%zu] does not belong to this unit",
                         u->name, index);
    rows[index].taken = true;
    for (int side = 0; side < 2; side++)
      ms[side] += rows[index].ms[side];
  }
  for (int side = 0; side < 2; side++)
    if (!lp_certificate_near(u->ms[side], ms[side]))
      return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file), "'%s' takes %.12g ms on the %s, its operators %.12g ms",
                         u->name, u->ms[side], lp_side_name((lp_side)side), ms[side]);
  return LP_OK;
}

/* Checks the operators without a unit. Each side computes them itself, and their times are those of the holdings. */
static lp_status check_shared(const lp_certificate *c, const char *file, const row *rows, size_t count, lp_diag *diag) {
  lp_certificate_totals t = lp_certificate_add_up(c);
  double ms[2][2] = {{0, 0}, {0, 0}}, elsewhere[2][2] = {{0, 0}, {0, 0}};
  for (size_t i = 0; i < count; i++) {
    if (rows[i].taken) continue;
    ms[rows[i].stage][rows[i].side] += rows[i].ms[rows[i].side];
    elsewhere[rows[i].stage][rows[i].side] += rows[i].ms[!rows[i].side];
  }
  for (int w = 0; w < 2; w++)
    for (int side = 0; side < 2; side++)
      if (!lp_certificate_near(t.elsewhere[w][side], elsewhere[w][side]))
        return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file),
                           "operators of positions on the %s take %.12g ms on the other side, the certificate says "
                           "%.12g ms",
                           lp_side_name((lp_side)side), elsewhere[w][side], t.elsewhere[w][side]);
      else if (!lp_certificate_near(t.shared[w][side], ms[w][side]))
        return lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(file),
                           "operators of positions take %.12g ms on the %s, the certificate says %.12g ms", ms[w][side],
                           lp_side_name((lp_side)side), t.shared[w][side]);
  return LP_OK;
}

lp_status lp_certificate_operators_check(const lp_certificate *c, const char *file, lp_diag *diag) {
  lp_json report = lp_json_root(file, c->report), list = lp_json_member(&report, "operators");
  size_t count = lp_json_count(&list);
  row *rows = LP_NEW_ARRAY(c->arena, row, count);
  LP_FOR_ITEMS(item, &list)
    LP_TRY(read_row(&item, file, item.index, &rows[item.index], diag));
  for (int w = 0; w < 2; w++)
    for (size_t i = 0; i < c->stages[w].unit_count; i++)
      LP_TRY(check_unit(&c->stages[w].units[i], w, file, rows, count, diag));
  return check_shared(c, file, rows, count, diag);
}
