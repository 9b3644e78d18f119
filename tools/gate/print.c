/* Writes changes as text, as JSON, as JUnit's XML and as annotations of GitHub's workflows. */
#include "base/json/writer.h"
#include "base/units.h"
#include "tools/gate/gate.h"

#include <math.h>

static const char *percent(double change, char out[32]) {
  if (isnan(change))
    (void)snprintf(out, 32, "-");
  else if (isinf(change))
    (void)snprintf(out, 32, "%s", change > 0 ? "from 0" : "from 0 down");
  else
    (void)snprintf(out, 32, "%+.2f %%", 100 * change);
  return out;
}

const char *lp_gate_format(const char *name, double value, char out[32]) {
  if (lp_has_suffix(name, "_ms")) return lp_format_ms(value, out);
  if (strstr(name, "bytes") && !strstr(name, "_per_")) return lp_format_bytes(value, out);
  if (strstr(name, "_usd")) return lp_format_usd(value, out);
  (void)snprintf(out, 32, isnan(value) ? "-" : fabs(value) >= 1e6 ? "%.0f" : "%.6g", value);
  return out;
}

static bool is_shown(const lp_figure_change *change) {
  const bool known = !isnan(change->old_value) || !isnan(change->new_value);
  return known && (change->is_worse || change->old_value != change->new_value);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static const char *verdict(const lp_figure_change *change) {
  return !change->is_judged ? "" : change->is_worse ? "  WORSE" : "";
}

static void write_text(const lp_changes *changes, double regression, lp_buf *out) {
  size_t shown = 0, worse = 0;
  char before[32], after[32], moved[32];
  LP_FOR_VEC(const lp_figure_change, change, &changes->figures) {
    worse += change->is_worse;
    if (!is_shown(change)) continue;
    if (shown++ == 0) lp_buf_printf(out, "%-28s %14s %14s %12s\n", "figure", "old", "new", "change");
    lp_buf_printf(
        out, "%-28s %14s %14s %12s%s\n", change->name, lp_gate_format(change->name, change->old_value, before),
        lp_gate_format(change->name, change->new_value, after), percent(change->change, moved), verdict(change));
  }
  for (size_t i = 0; i < changes->settings.count; i++) {
    const lp_setting_change *change = &changes->settings.data[i];
    lp_buf_printf(out, "%s%s: %.60s -> %.60s\n", i == 0 ? "\nsettings that differ\n  " : "  ", change->name,
                  change->old_text, change->new_text);
  }
  for (size_t i = 0; i < changes->moved.count; i++) {
    const lp_moved *moved_ops = &changes->moved.data[i];
    lp_buf_printf(out, "%slayer %" PRId64 ", %s: %" PRId64 " operator%s from %s to %s\n",
                  i == 0 ? "\noperators that moved\n  " : "  ", moved_ops->layer, moved_ops->stage, moved_ops->count,
                  moved_ops->count == 1 ? "" : "s", moved_ops->old_side, moved_ops->new_side);
  }
  if (shown + changes->settings.count + changes->moved.count == 0) lp_buf_puts(out, "nothing changed\n");
  if (worse)
    lp_buf_printf(out, "\n%zu figure%s worse by more than %.4g %%\n", worse, worse == 1 ? " is" : "s are",
                  100 * regression);
}

/* ---- json -------------------------------------------------------------------------------------------------------- */

static void put_figures(const lp_changes *changes, lp_json_writer *j) {
  lp_json_put_array(j, "figures");
  LP_FOR_VEC(const lp_figure_change, change, &changes->figures) {
    lp_json_put_flat_object(j, NULL);
    lp_json_put_text(j, "name", change->name);
    lp_json_put_number(j, "old", change->old_value);
    lp_json_put_number(j, "new", change->new_value);
    lp_json_put_number(j, "change", change->change);
    lp_json_put_bool(j, "judged", change->is_judged);
    lp_json_put_bool(j, "worse", change->is_worse);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

static void write_json(const lp_changes *changes, const lp_gate_report *old_report, const lp_gate_report *new_report,
                       double regression, lp_buf *out) {
  lp_json_writer j = lp_json_document_begin(out, (lp_json_style){.indent = 2, .digits = 12}, "llmpart.diff/1");
  lp_json_put_text(&j, "old", old_report->path);
  lp_json_put_text(&j, "new", new_report->path);
  lp_json_put_number(&j, "max_regression", regression);
  lp_json_put_bool(&j, "worse", changes->is_worse);
  put_figures(changes, &j);
  lp_json_put_array(&j, "settings");
  for (size_t i = 0; i < changes->settings.count; i++) {
    lp_json_put_flat_object(&j, NULL);
    lp_json_put_text(&j, "name", changes->settings.data[i].name);
    lp_json_put_text(&j, "old", changes->settings.data[i].old_text);
    lp_json_put_text(&j, "new", changes->settings.data[i].new_text);
    lp_json_put_end(&j);
  }
  lp_json_put_end(&j);
  lp_json_put_array(&j, "moved");
  LP_FOR_VEC(const lp_moved, moved, &changes->moved) {
    lp_json_put_flat_object(&j, NULL);
    lp_json_put_integer(&j, "layer", moved->layer);
    lp_json_put_text(&j, "stage", moved->stage);
    lp_json_put_text(&j, "from", moved->old_side);
    lp_json_put_text(&j, "to", moved->new_side);
    lp_json_put_integer(&j, "operators", moved->count);
    lp_json_put_end(&j);
  }
  lp_json_put_end(&j);
  lp_json_document_end(&j);
}

/* ---- pipelines --------------------------------------------------------------------------------------------------- */

static void escape_xml(const char *text, lp_buf *out) {
  for (; *text; text++)
    switch (*text) {
    case '&':
      lp_buf_puts(out, "&amp;");
      break;
    case '<':
      lp_buf_puts(out, "&lt;");
      break;
    case '>':
      lp_buf_puts(out, "&gt;");
      break;
    case '"':
      lp_buf_puts(out, "&quot;");
      break;
    default:
      lp_buf_append(out, text, 1);
    }
}

static void put_case(const lp_figure_change *change, double regression, lp_buf *out) {
  char before[32], after[32], moved[32];
  lp_buf_puts(out, "    <testcase classname=\"llmpart.diff\" name=\"");
  escape_xml(change->name, out);
  if (!change->is_worse) {
    lp_buf_puts(out, "\"/>\n");
    return;
  }
  lp_buf_printf(
      out, "\">\n      <failure message=\"%s -&gt; %s (%s), at most %.4g %% worse is allowed\"/>\n    </testcase>\n",
      lp_gate_format(change->name, change->old_value, before), lp_gate_format(change->name, change->new_value, after),
      percent(change->change, moved), 100 * regression);
}

static void write_junit(const lp_changes *changes, const lp_gate_report *new_report, double regression, lp_buf *out) {
  size_t judged = 0, worse = 0;
  for (size_t i = 0; i < changes->figures.count; i++) {
    judged += changes->figures.data[i].is_judged;
    worse += changes->figures.data[i].is_worse;
  }
  lp_buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"");
  escape_xml(new_report->path, out);
  lp_buf_printf(out, "\" tests=\"%zu\" failures=\"%zu\">\n", judged, worse);
  for (size_t i = 0; i < changes->figures.count; i++)
    if (changes->figures.data[i].is_judged) put_case(&changes->figures.data[i], regression, out);
  lp_buf_puts(out, "  </testsuite>\n</testsuites>\n");
}

/* One line for each figure that is worse: `::error file=...,title=...::...`, in which %, CR, LF, comma and colon of a
 * property are escaped. */
static void write_github(const lp_changes *changes, const lp_gate_report *new_report, double regression, lp_buf *out) {
  char before[32], after[32], moved[32];
  LP_FOR_VEC(const lp_figure_change, change, &changes->figures) {
    if (!change->is_worse) continue;
    lp_buf_puts(out, "::error file=");
    for (const char *at = new_report->path; *at; at++)
      if (*at == '%' || *at == ',' || *at == ':' || *at == '\n' || *at == '\r')
        lp_buf_printf(out, "%%%02X", (unsigned)(unsigned char)*at);
      else
        lp_buf_append(out, at, 1);
    lp_buf_printf(out, ",title=%s is worse::%s -> %s (%s), at most %.4g %%25 worse is allowed\n", change->name,
                  lp_gate_format(change->name, change->old_value, before),
                  lp_gate_format(change->name, change->new_value, after), percent(change->change, moved),
                  100 * regression);
  }
}

void lp_gate_write(const lp_changes *changes, const lp_gate_report *old_report, const lp_gate_report *new_report,
                   double regression, const char *form, lp_buf *out) {
  if (lp_streq(form, "json"))
    write_json(changes, old_report, new_report, regression, out);
  else if (lp_streq(form, "junit"))
    write_junit(changes, new_report, regression, out);
  else if (lp_streq(form, "github"))
    write_github(changes, new_report, regression, out);
  else
    write_text(changes, regression, out);
}
