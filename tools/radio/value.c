/* llmpart radio pathloss, los, o2i, capacity: computes one value, or adds a column to a table. */
#include "base/csv.h"
#include "tools/radio/radio.h"

#include <math.h>
#include <strings.h>

/* A number that an option gives, or a column of the same name. */
typedef struct {
  const char *name;
  size_t offset; /* in radio_flags */
  double least, most;
} input;

#define INPUT(name, member, least, most) {name, offsetof(radio_flags, member), least, most}
static const input inputs[] = {
    INPUT("d2d", d2d, 0, 1e6),          INPUT("hbs", h_bs, 0.1, 1e4),
    INPUT("hut", h_ut, 0.1, 1e4),       INPUT("fc", fc, 1e-3, 1e3),
    INPUT("he", h_e, 0, 1e3),           INPUT("hbuilding", h_building, 1, 1e3),
    INPUT("wstreet", w_street, 1, 1e3), INPUT("din", d_in, 0, 1e3),
    INPUT("sinr", sinr_db, -300, 300),  INPUT("block_hz", block_hz, 1e-9, 1e12),
};

typedef struct {
  const char *column; /* column of the result */
  const char *needs;  /* the input that has no default */
  double (*value)(const radio_flags *flags, lp_radio_scenario scenario);
  bool wants_los; /* needs --los, --nlos or a column `los` */
} quantity;

/* ---- values ---- */

static lp_radio_path path_of(const radio_flags *flags, lp_radio_scenario scenario) {
  return (lp_radio_path){.scenario = scenario,
                         .los = flags->los,
                         .d2d = flags->d2d,
                         .h_bs = flags->h_bs,
                         .h_ut = flags->h_ut,
                         .fc = flags->fc,
                         .h_e = flags->h_e,
                         .h_building = flags->h_building,
                         .w_street = flags->w_street};
}

static double pathloss_of(const radio_flags *flags, lp_radio_scenario scenario) {
  lp_radio_path path = path_of(flags, scenario);
  return lp_radio_path_loss_db(&path);
}

static double los_of(const radio_flags *flags, lp_radio_scenario scenario) {
  return lp_radio_los_probability(scenario, flags->d2d, flags->h_ut);
}

static double o2i_of(const radio_flags *flags, lp_radio_scenario scenario) {
  (void)scenario;
  return lp_radio_o2i_db(flags->fc, flags->high_loss, flags->d_in);
}

static double capacity_of(const radio_flags *flags, lp_radio_scenario scenario) {
  (void)scenario;
  lp_radio_coding coding = {.gap_db = flags->gap_db, .cap = flags->cap};
  return lp_radio_capacity(flags->block_hz * (double)flags->blocks, lp_radio_linear(flags->sinr_db), &coding);
}

/* ---- inputs ---- */

static lp_status prepare(const quantity *q, radio_flags *flags, lp_radio_scenario *scenario, lp_diag *diag,
                         lp_loc loc) {
  double h_bs, h_ut;
  LP_TRY(lp_radio_scenario_parse(flags->scenario, scenario, diag, loc));
  lp_radio_usual_heights(*scenario, &h_bs, &h_ut);
  if (isnan(flags->h_bs)) flags->h_bs = h_bs;
  if (isnan(flags->h_ut)) flags->h_ut = h_ut;
  if (q->wants_los && flags->los == flags->nlos)
    return lp_error(diag, loc, "with line of sight or without? give one of '--los' and '--nlos', or a column 'los'");
  for (size_t i = 0; i < LP_COUNT(inputs); i++) {
    double value = *(const double *)((const char *)flags + inputs[i].offset);
    if (isnan(value) && lp_streq(inputs[i].name, q->needs))
      return lp_error(diag, loc, "'--%s' is not given, nor is there a column '%s'", q->needs, q->needs);
    if (!isnan(value) && (value < inputs[i].least || value > inputs[i].most))
      return lp_error(diag, loc, "'--%s' is %g, but it is from %g to %g", inputs[i].name, value, inputs[i].least,
                      inputs[i].most);
  }
  return LP_OK;
}

static void warn_outside(const quantity *q, const radio_flags *flags, lp_radio_scenario scenario, lp_diag *diag,
                         lp_loc loc) {
  lp_radio_path path = path_of(flags, scenario);
  const char *why = q->wants_los ? lp_radio_path_outside(&path) : NULL;
  if (why) lp_warning(diag, loc, "%s that the table of %s covers", why, lp_radio_scenario_names[scenario]);
}

static lp_status read_los(const lp_csv *csv, size_t row, int32_t column, radio_flags *flags, lp_diag *diag) {
  static const char *const yes[] = {"los", "1", "true", "yes"}, *const no[] = {"nlos", "0", "false", "no"};
  const char *text = lp_csv_at(csv, row, column);
  flags->los = flags->nlos = false;
  for (size_t i = 0; i < LP_COUNT(yes); i++) {
    flags->los |= strcasecmp(text, yes[i]) == 0;
    flags->nlos |= strcasecmp(text, no[i]) == 0;
  }
  if (flags->los || flags->nlos) return LP_OK;
  return lp_error(diag, lp_csv_loc(csv, row, column), "'los' is '%s', neither 'los' nor 'nlos'", text);
}

/* Sets the flags for one row: those of the command line, replaced by the row's columns. */
static lp_status read_row(const lp_csv *csv, size_t row, radio_flags *flags, lp_diag *diag) {
  int32_t scenario = lp_csv_column(csv, "scenario"), los = lp_csv_column(csv, "los");
  if (scenario >= 0) flags->scenario = lp_csv_at(csv, row, scenario);
  if (los >= 0) LP_TRY(read_los(csv, row, los, flags, diag));
  for (size_t i = 0; i < LP_COUNT(inputs); i++) {
    int32_t column = lp_csv_column(csv, inputs[i].name);
    if (column < 0) continue;
    double *place = (double *)((char *)flags + inputs[i].offset);
    LP_TRY(lp_csv_number(csv, row, column, inputs[i].least, inputs[i].most, place, diag));
  }
  return LP_OK;
}

/* ---- output ---- */

static lp_status each_row(const quantity *q, const radio_flags *flags, const lp_csv *csv, lp_buf *out, lp_diag *diag) {
  for (int32_t c = 0; c < csv->columns; c++)
    lp_buf_printf(out, "%s,", csv->name[c]);
  lp_buf_printf(out, "%s\n", q->column);
  for (size_t row = 0; row < csv->rows; row++) {
    radio_flags at_row = *flags;
    lp_radio_scenario scenario = LP_RADIO_UMA;
    lp_loc loc = {.file = csv->file, .line = csv->line[row]};
    LP_TRY(read_row(csv, row, &at_row, diag));
    LP_TRY(prepare(q, &at_row, &scenario, diag, loc));
    for (int32_t c = 0; c < csv->columns; c++)
      lp_buf_printf(out, "%s,", lp_csv_at(csv, row, c));
    lp_buf_printf(out, "%.10g\n", q->value(&at_row, scenario));
  }
  return LP_OK;
}

static lp_status run_table(const quantity *q, const radio_flags *flags, lp_buf *out, lp_diag *diag) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_csv csv;
  LP_TRY(lp_csv_read(flags->csv, arena, &csv, diag));
  return each_row(q, flags, &csv, out, diag);
}

static lp_status run_one(const quantity *q, const radio_flags *flags, lp_buf *out, lp_diag *diag) {
  radio_flags complete = *flags;
  lp_radio_scenario scenario = LP_RADIO_UMA;
  if (prepare(q, &complete, &scenario, diag, LP_LOC_NONE) != LP_OK) return LP_USAGE;
  warn_outside(q, &complete, scenario, diag, LP_LOC_NONE);
  lp_buf_printf(out, "%.10g\n", q->value(&complete, scenario));
  return LP_OK;
}

static lp_status run(const quantity *q, const radio_flags *flags, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf out = {0};
  LP_TRY(flags->csv ? run_table(q, flags, &out, diag) : run_one(q, flags, &out, diag));
  return lp_tool_write_as(flags->out, &out, diag);
}

lp_status radio_pathloss(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const radio_flags *flags = command->user;
  (void)args;
  return run(&(quantity){"pathloss_db", "d2d", pathloss_of, true}, flags, diag);
}

lp_status radio_los(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const radio_flags *flags = command->user;
  (void)args;
  return run(&(quantity){"los_probability", "d2d", los_of, false}, flags, diag);
}

lp_status radio_o2i(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const radio_flags *flags = command->user;
  (void)args;
  return run(&(quantity){"o2i_db", "fc", o2i_of, false}, flags, diag);
}

lp_status radio_capacity(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const radio_flags *flags = command->user;
  (void)args;
  return run(&(quantity){"capacity_bps", "sinr", capacity_of, false}, flags, diag);
}
