/* Compares two reports: their figures, their settings, and the sides or places of their operators. */
#include "base/json/writer.h"
#include "base/map.h"
#include "tools/gate/gate.h"

#include <math.h>

/* ---- figures ----------------------------------------------------------------------------------------------------- */

/* What rounding may change in a figure that is computed twice. */
static const double rounding = 1e-9;

static lp_figure_change compare_figure(const lp_figure *figure, double old_value, double regression) {
  const double value = figure->value, sign = figure->better == LP_GATE_MORE ? -1 : 1;
  lp_figure_change out = {
      .name = figure->name, .old_value = old_value, .new_value = value, .is_judged = figure->better != LP_GATE_INFO};
  if (isnan(old_value) || isnan(value)) {
    out.change = NAN;
    out.is_worse = out.is_judged && !isnan(old_value);
    return out;
  }
  const double moved = value - old_value;
  out.change = moved == 0 ? 0 : old_value == 0 ? copysign(INFINITY, moved) : moved / fabs(old_value);
  out.is_worse = out.is_judged && sign * moved > (regression + rounding) * fabs(old_value);
  return out;
}

/* Appends the figures of the new report, then those that only the old one has. */
static void compare_figures(const lp_gate_report *old_report, const lp_gate_report *new_report, double regression,
                            lp_changes *out) {
  for (size_t i = 0; i < new_report->figures.count; i++) {
    const lp_figure *figure = &new_report->figures.data[i], *old_figure = lp_gate_find(old_report, figure->name);
    lp_vec_push(&out->figures, compare_figure(figure, old_figure ? old_figure->value : NAN, regression));
  }
  for (size_t i = 0; i < old_report->figures.count; i++) {
    lp_figure figure = old_report->figures.data[i];
    double old_value = figure.value;
    figure.value = NAN;
    if (!lp_gate_find(new_report, figure.name))
      lp_vec_push(&out->figures, compare_figure(&figure, old_value, regression));
  }
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

/* Members that hold results, and not what was asked for. */
static bool is_result(const char *key) {
  static const char *const keys[] = {"plan",   "baselines",  "operators",  "certificate", "fixes",       "plans",
                                     "faster", "cheapest",   "decrement",  "table1",      "plan_family", "times",
                                     "tests",  "load_ms",    "peak_bytes", "feasible",    "binding",     "pairs",
                                     "fleet",  "neighbours", "one_more",   "digest"};
  return LP_FIND_IN(keys, key) != NULL;
}

/* The value as one line of JSON, a text without its quotes; "-" for an absent one. */
static const char *text_of(const lp_json *at, lp_arena *arena) {
  if (!lp_json_is_given(at)) return "-";
  const char *text = lp_json_text_or(at, NULL);
  if (text) return lp_arena_strdup(arena, text);
  LP_OWNED(lp_buf_free) lp_buf out = {0};
  lp_json_writer writer = lp_json_writer_begin(&out, (lp_json_style){.digits = 12});
  lp_json_put_value(&writer, NULL, at->value);
  return lp_arena_strdup(arena, lp_buf_text(&out));
}

static void compare_value(const char *name, const lp_json *old_at, const lp_json *new_at, lp_arena *arena,
                          lp_changes *out);

static const char *joined(const char *name, const char *key, lp_arena *arena) {
  return name[0] ? lp_arena_format(arena, "%s.%s", name, key) : key;
}

static void compare_objects(const char *name, const lp_json *old_at, const lp_json *new_at, lp_arena *arena,
                            lp_changes *out) {
  for (size_t i = 0; i < lp_json_count(new_at); i++) {
    lp_json member = lp_json_entry(new_at, i), other = lp_json_member(old_at, member.key);
    if (!is_result(member.key)) compare_value(joined(name, member.key, arena), &other, &member, arena, out);
  }
  for (size_t i = 0; i < lp_json_count(old_at); i++) {
    lp_json member = lp_json_entry(old_at, i), other = lp_json_member(new_at, member.key);
    if (!other.value && !is_result(member.key))
      compare_value(joined(name, member.key, arena), &member, &other, arena, out);
  }
}

/* Tells whether both are lists of as many objects, which are compared one by one. */
static bool are_like_lists(const lp_json *a, const lp_json *b) {
  if (!lp_json_is(a, LP_JSON_ARRAY) || !lp_json_is(b, LP_JSON_ARRAY) || lp_json_count(a) != lp_json_count(b))
    return false;
  for (size_t i = 0; i < lp_json_count(a); i++) {
    const lp_json x = lp_json_item(a, i), y = lp_json_item(b, i);
    if (!lp_json_is(&x, LP_JSON_OBJECT) || !lp_json_is(&y, LP_JSON_OBJECT)) return false;
  }
  return true;
}

/* The name of a list's item: its member `name`, a link's two ends, or else its number. */
static const char *item_name(const lp_json *item, size_t number, lp_arena *arena) {
  const lp_json from = lp_json_member(item, "from"), to = lp_json_member(item, "to");
  if (lp_json_text_or(&from, NULL) && lp_json_text_or(&to, NULL))
    return lp_arena_format(arena, "%s-%s", lp_json_text_or(&from, ""), lp_json_text_or(&to, ""));
  const char *own = lp_json_text_or(LP_MEMBER(item, "name"), NULL);
  return own ? own : lp_arena_format(arena, "%zu", number);
}

static void compare_lists(const char *name, const lp_json *old_at, const lp_json *new_at, lp_arena *arena,
                          lp_changes *out) {
  for (size_t i = 0; i < lp_json_count(new_at); i++) {
    const lp_json from = lp_json_item(old_at, i), to = lp_json_item(new_at, i);
    compare_objects(joined(name, item_name(&to, i, arena), arena), &from, &to, arena, out);
  }
}

static void compare_value(const char *name, const lp_json *old_at, const lp_json *new_at, lp_arena *arena,
                          lp_changes *out) {
  if (lp_json_is(old_at, LP_JSON_OBJECT) && lp_json_is(new_at, LP_JSON_OBJECT)) {
    compare_objects(name, old_at, new_at, arena, out);
    return;
  }
  if (are_like_lists(old_at, new_at)) {
    compare_lists(name, old_at, new_at, arena, out);
    return;
  }
  const lp_setting_change change = {name, text_of(old_at, arena), text_of(new_at, arena)};
  if (!lp_streq(change.old_text, change.new_text)) lp_vec_push(&out->settings, change);
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

/* Where an operator runs: an operator that both sides compute stands in a report once for each. */
typedef struct {
  const char *name, *stage;
  int64_t layer;
  const char *side;
} placed;

static lp_status read_operator(const lp_json *at, const char *where, placed *out, lp_diag *diag) {
  const char **const texts[] = {&out->name, &out->stage, &out->side};
  const char *const keys[] = {"name", "stage", where};
  for (size_t i = 0; i < LP_COUNT(texts); i++)
    LP_TRY(lp_json_text(LP_MEMBER(at, keys[i]), texts[i], diag));
  return lp_json_i64(LP_MEMBER(at, "layer"), -1, INT32_MAX, &out->layer, diag);
}

static lp_status place_operators(const lp_gate_report *report, lp_arena *arena, lp_map *map, lp_diag *diag) {
  const char *where = lp_streq(report->schema, "llmpart.places/1") ? "place" : "side";
  lp_json operators = lp_json_member(&report->root, "operators");
  LP_TRY(lp_json_array(&operators, diag));
  LP_FOR_ITEMS(item, &operators) {
    placed *op = LP_NEW(arena, placed);
    LP_TRY(read_operator(&item, where, op, diag));
    const char *key = lp_arena_format(arena, "%s %s", op->stage, op->name);
    const placed *before = lp_map_get(map, key);
    if (before && !lp_streq(before->side, op->side)) op->side = "both";
    (void)lp_map_put(map, key, op);
  }
  return LP_OK;
}

static void count_move(const placed *from, const placed *to, lp_changes *out) {
  LP_FOR_VEC(lp_moved, moved, &out->moved) {
    if (moved->layer != to->layer || !lp_streq(moved->stage, to->stage)) continue;
    if (!lp_streq(moved->old_side, from->side) || !lp_streq(moved->new_side, to->side)) continue;
    moved->count++;
    return;
  }
  const lp_moved moved = {to->layer, to->stage, from->side, to->side, 1};
  lp_vec_push(&out->moved, moved);
}

static lp_status compare_operators(const lp_gate_report *old_report, lp_gate_report *new_report, lp_changes *out,
                                   lp_diag *diag) {
  LP_OWNED(lp_map_free_at) lp_map *before = lp_map_create(), *after = lp_map_create();
  lp_status status = place_operators(old_report, new_report->arena, before, diag);
  if (status == LP_OK) status = place_operators(new_report, new_report->arena, after, diag);
  for (size_t i = 0; i < lp_map_count(after) && status == LP_OK; i++) {
    const placed *to = lp_map_value_at(after, i), *from = lp_map_get(before, lp_map_key_at(after, i));
    if (from && !lp_streq(from->side, to->side)) count_move(from, to, out);
  }
  return status;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static lp_json feasible_of(const lp_gate_report *report) {
  const lp_json plan = lp_json_member(&report->root, "plan");
  return lp_json_member(lp_streq(report->schema, "llmpart.places/1") ? &plan : &report->root, "feasible");
}

/* Notes that a plan which met its SLA no longer does. */
static void compare_feasible(const lp_gate_report *old_report, const lp_gate_report *new_report, lp_changes *out) {
  const lp_json old_at = feasible_of(old_report), new_at = feasible_of(new_report);
  if (!old_at.value || !new_at.value) return;
  const lp_figure_change change = {.name = "feasible",
                                   .old_value = lp_json_is_true(&old_at),
                                   .new_value = lp_json_is_true(&new_at),
                                   .change = NAN,
                                   .is_judged = true,
                                   .is_worse = lp_json_is_true(&old_at) && !lp_json_is_true(&new_at)};
  lp_vec_push(&out->figures, change);
}

lp_status lp_gate_compare(const lp_gate_report *old_report, lp_gate_report *new_report, double regression,
                          lp_changes *out, lp_diag *diag) {
  *out = (lp_changes){0};
  if (!lp_streq(old_report->schema, new_report->schema))
    return lp_error(diag, LP_LOC_FILE(new_report->path), "found the schema '%s', wanted '%s' as in '%s'",
                    new_report->schema, old_report->schema, old_report->path);
  compare_feasible(old_report, new_report, out);
  compare_figures(old_report, new_report, regression, out);
  for (size_t i = 0; i < out->figures.count; i++)
    out->is_worse |= out->figures.data[i].is_worse;
  compare_objects("", &old_report->root, &new_report->root, new_report->arena, out);
  return lp_gate_is_plan(new_report) ? compare_operators(old_report, new_report, out, diag) : LP_OK;
}

void lp_changes_free(lp_changes *changes) {
  lp_vec_free(&changes->figures);
  lp_vec_free(&changes->settings);
  lp_vec_free(&changes->moved);
}
