/* Sheets of figures: values with units in and out, defaults, and changes given on the command line. sheet_yaml.c reads
 * them from files. */
#include "base/units.h"
#include "hwmodels/hwmodels_internal.h"

/* ---- values ---- */

typedef struct {
  lp_unit unit[6]; /* largest first; printing uses the first that is not larger than the value */
  const char *wanted;
} unit_table;

static const unit_table unit_tables[] = {
    [LP_IN_FLOPS] = {{{"PFLOP/s", 1e15}, {"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"MFLOP/s", 1e6}, {"FLOP/s", 1}},
                     "a rate such as 312 TFLOP/s"},
    [LP_IN_BYTES_PER_S] = {{{"TB/s", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}},
                           "a rate such as 2039 GB/s"},
    [LP_IN_BYTES] = {{{"GiB", 1073741824}, {"GB", 1e9}, {"MiB", 1048576}, {"MB", 1e6}, {"B", 1}}, ""},
    [LP_IN_MS] = {{{"s", 1e3}, {"ms", 1}, {"us", 1e-3}}, ""},
    [LP_IN_BPS] = {{{"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1}}, ""},
    [LP_IN_W] = {{{"W", 1}, {"mW", 1e-3}}, "a power such as 250 W"},
    [LP_IN_SHARE] = {{{"", 1}}, ""},
    [LP_IN_NUMBER] = {{{"", 1}}, ""},
};

static size_t unit_count(const unit_table *table) {
  size_t count = 0;
  while (count < LP_COUNT(table->unit) && table->unit[count].name)
    count++;
  return count;
}

static lp_status parse_figure(lp_figure_unit unit, const char *text, double *value, lp_diag *diag, lp_loc loc) {
  const unit_table *table = &unit_tables[unit];
  int64_t bytes = 0;
  switch (unit) {
  case LP_IN_BYTES:
    LP_TRY(lp_parse_size(text, &bytes, diag, loc));
    *value = (double)bytes;
    return LP_OK;
  case LP_IN_MS:
    return lp_parse_time_ms(text, value, diag, loc);
  case LP_IN_BPS:
    return lp_parse_rate_bps(text, value, diag, loc);
  case LP_IN_SHARE:
    return lp_parse_share(text, value, diag, loc);
  case LP_IN_NUMBER:
    return lp_parse_double(text, value, diag, loc);
  case LP_IN_FLOPS:
  case LP_IN_BYTES_PER_S:
  case LP_IN_W:
    break;
  }
  return lp_parse_unit(text, table->unit, unit_count(table), table->wanted, value, diag, loc);
}

/* The shortest text that reads back as the same value. */
static void print_figure(lp_figure_unit unit, double value, lp_buf *out) {
  const unit_table *table = &unit_tables[unit];
  char text[64];
  for (int digits = 1; digits <= 17; digits++) {
    for (size_t i = 0; i < unit_count(table); i++) {
      const lp_unit *u = &table->unit[i];
      if (value < u->factor && i + 1 < unit_count(table)) continue;
      snprintf(text, sizeof text, "%.*g%s%s", digits, value / u->factor, *u->name ? " " : "", u->name);
      double back = 0;
      bool same = parse_figure(unit, text, &back, NULL, LP_LOC_NONE) == LP_OK && back == value;
      if (same && (unit >= LP_IN_SHARE || !strchr(text, 'e'))) {
        lp_buf_puts(out, text);
        return;
      }
    }
  }
  const lp_unit *smallest = &table->unit[unit_count(table) - 1];
  lp_buf_printf(out, "%.17g%s%s", value / smallest->factor, *smallest->name ? " " : "", smallest->name);
}

/* ---- figures ---- */

size_t lp_sheet_find(const lp_sheet_form *form, const char *key) {
  size_t i = 0;
  while (i < form->count && !lp_streq(form->info[i].key, key))
    i++;
  return i;
}

lp_status lp_sheet_set(lp_sheet *sheet, size_t index, const char *text, lp_diag *diag, lp_loc loc) {
  const lp_figure_info *info = &sheet->form->info[index];
  double value = 0;
  lp_status status = parse_figure(info->unit, text, &value, diag, loc);
  if (status != LP_OK) lp_note(diag, loc, "it is given for '%s', %s", info->key, info->meaning);
  LP_TRY(status);
  if (value < info->least || value > info->most) {
    lp_buf least = {0}, most = {0};
    print_figure(info->unit, info->least, &least);
    print_figure(info->unit, info->most, &most);
    status = lp_error(diag, loc, "'%s' is '%s', but %s is from %s to %s", info->key, text, info->meaning,
                      lp_buf_text(&least), lp_buf_text(&most));
    lp_buf_free(&least);
    lp_buf_free(&most);
    return status;
  }
  sheet->figure[index] = value;
  return LP_OK;
}

lp_status lp_sheet_complete(lp_sheet *sheet, const bool *given, lp_diag *diag, lp_loc loc) {
  for (size_t i = 0; i < sheet->form->count; i++) {
    const lp_figure_info *info = &sheet->form->info[i];
    if (given[i]) continue;
    if (info->otherwise < 0)
      return lp_error(diag, loc, "the %s lacks '%s': %s", sheet->form->what, info->key, info->meaning);
    sheet->figure[i] = info->otherwise;
  }
  return LP_OK;
}

static lp_status override_one(lp_sheet *sheet, char *pair, bool *given, lp_diag *diag, lp_loc loc) {
  char *value = strchr(pair, '=');
  if (!value)
    return lp_error(diag, loc, "'%s' after the %s's name is not a change such as '%s=...'", pair, sheet->form->what,
                    sheet->form->info[0].key);
  *value++ = 0;
  if (sheet->form->override) {
    bool taken = false;
    LP_TRY(sheet->form->override(sheet->user, pair, value, &taken, diag));
    if (taken) return LP_OK;
  }
  size_t index = lp_sheet_find(sheet->form, pair);
  if (index == sheet->form->count) {
    const char *keys[LP_HW_FIGURE_COUNT];
    size_t count = 0;
    for (; count < sheet->form->count && count < LP_COUNT(keys); count++)
      keys[count] = sheet->form->info[count].key;
    return lp_error_near(diag, loc, pair, keys, count, "a %s has no figure '%s'", sheet->form->what, pair);
  }
  LP_TRY(lp_sheet_set(sheet, index, value, diag, loc));
  sheet->source[index] = "given on the command line";
  given[index] = true;
  return LP_OK;
}

lp_status lp_sheet_override(lp_sheet *sheet, const char *text, bool *given, lp_diag *diag, lp_loc loc) {
  char *copy = lp_arena_strdup(sheet->arena, text);
  while (copy) {
    char *next = strchr(copy, ',');
    if (next) *next++ = 0;
    LP_TRY(override_one(sheet, copy, given, diag, loc));
    copy = next;
  }
  return LP_OK;
}

/* ---- printing ---- */

void lp_sheet_print(const lp_sheet *sheet, lp_buf *out) {
  lp_buf_printf(out, "%s: ", sheet->form->what);
  lp_yaml_print_quoted(sheet->name, out);
  lp_buf_puts(out, "\ntitle: ");
  lp_yaml_print_quoted(sheet->title, out);
  lp_buf_puts(out, "\n");
  if (sheet->form->has_kind) lp_buf_printf(out, "kind: %s\n", sheet->kind);
  for (size_t i = 0; i < sheet->form->count; i++) {
    if (!sheet->source[i] && sheet->figure[i] == sheet->form->info[i].otherwise) continue;
    lp_buf_printf(out, "%s: { value: ", sheet->form->info[i].key);
    print_figure(sheet->form->info[i].unit, sheet->figure[i], out);
    if (sheet->source[i]) {
      lp_buf_puts(out, ", source: ");
      lp_yaml_print_quoted(sheet->source[i], out);
    }
    lp_buf_puts(out, " }\n");
  }
}
