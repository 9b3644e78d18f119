/* llmpart radio pf, drop, list, show: the shares that schedulers give to the users of a cell, random users of a
 * network, and network profiles. */
#include "base/csv.h"
#include "base/number.h"
#include "tools/radio/radio.h"

#include <math.h>

/* ---- tables ---- */

/* Numbers by row and column, written as text, csv or json. */
typedef struct {
  const char *schema;
  const char *const *column;
  int32_t columns, rows;
  const double *value;                                        /* [rows][columns] */
  void (*put_totals)(lp_json_writer *json, const void *user); /* writes further members next to the rows */
  const void *user;
} table;

static void put_json(const table *t, lp_buf *out) {
  lp_json_writer json = lp_tool_json(out, 9, t->schema);
  t->put_totals(&json, t->user);
  lp_json_put_array(&json, "users");
  for (int32_t r = 0; r < t->rows; r++) {
    lp_json_put_object(&json, NULL);
    for (int32_t c = 0; c < t->columns; c++)
      lp_json_put_number(&json, t->column[c], t->value[r * t->columns + c]);
    lp_json_put_end(&json);
  }
  lp_json_put_end(&json);
  lp_json_document_end(&json);
}

static void put_rows(const table *t, bool csv, lp_buf *out) {
  lp_buf_puts(out, csv ? "user" : "  user");
  for (int32_t c = 0; c < t->columns; c++)
    lp_buf_printf(out, csv ? ",%s" : " %15s", t->column[c]);
  for (int32_t r = 0; r < t->rows; r++) {
    lp_buf_printf(out, csv ? "\n%d" : "\n%6d", r);
    for (int32_t c = 0; c < t->columns; c++)
      lp_buf_printf(out, csv ? ",%.8g" : " %15.6g", t->value[r * t->columns + c]);
  }
  lp_buf_puts(out, "\n");
}

static lp_status write_table(const radio_flags *flags, const table *t, const lp_buf *summary, lp_diag *diag) {
  lp_buf out = {0};
  if (lp_tool_wants(flags->out, "json"))
    put_json(t, &out);
  else
    put_rows(t, lp_tool_wants(flags->out, "csv"), &out);
  if (!lp_tool_wants(flags->out, "json") && !lp_tool_wants(flags->out, "csv"))
    lp_buf_append(&out, summary->data, summary->size);
  return lp_tool_write_as(flags->out, &out, diag);
}

/* ---- pf ---- */

static lp_status read_sinrs(const char *path, double **sinr_db, int32_t *count, lp_diag *diag) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_csv csv;
  lp_status status = lp_csv_read(path, arena, &csv, diag);
  int32_t column = status == LP_OK ? lp_csv_column(&csv, "sinr") : 0;
  if (status == LP_OK && (column < 0 || csv.rows == 0))
    status = lp_error(diag, LP_LOC_FILE(path), "holds no column 'sinr' with the dB of each user");
  if (status == LP_OK) {
    *sinr_db = lp_alloc(csv.rows * sizeof **sinr_db);
    *count = (int32_t)csv.rows;
  }
  for (size_t row = 0; status == LP_OK && row < csv.rows; row++)
    status = lp_csv_number(&csv, row, column, -300, 300, &(*sinr_db)[row], diag);
  return status;
}

static lp_radio_cell cell_of(const radio_flags *flags) {
  int64_t intervals = flags->intervals > 0 ? flags->intervals : 4000;
  lp_radio_cell cell = {.blocks = (int32_t)flags->blocks,
                        .block_hz = flags->block_hz,
                        .rayleigh = flags->rayleigh,
                        .coding = {.gap_db = flags->gap_db, .cap = flags->cap},
                        .beta = flags->beta,
                        .intervals = intervals,
                        .warm_up = intervals / 4,
                        .seed = (uint64_t)flags->seed};
  for (int i = 0; i < LP_RADIO_SCHEDULERS; i++)
    if (lp_streq(flags->scheduler, lp_radio_scheduler_names[i])) cell.scheduler = (lp_radio_scheduler)i;
  return cell;
}

typedef struct {
  double sum_bps, gain;
} cell_totals;

static void put_cell_totals(lp_json_writer *json, const void *user) {
  const cell_totals *totals = user;
  lp_json_put_number(json, "capacity_bps", totals->sum_bps);
  lp_json_put_number(json, "fading_gain", totals->gain);
}

static lp_status run_cell(const radio_flags *flags, const double *sinr_db, int32_t users, lp_diag *diag) {
  static const char *const columns[] = {"sinr_db", "share", "capacity_bps"};
  double *values = lp_alloc(6 * (size_t)users * sizeof *values), *signal = values + 3 * (size_t)users;
  lp_radio_schedule out = {.rate = signal + users, .share = signal + 2 * (size_t)users};
  lp_radio_cell cell = cell_of(flags);
  cell.users = users;
  cell.signal = signal;
  for (int32_t k = 0; k < users; k++)
    signal[k] = lp_radio_linear(sinr_db[k]);
  lp_radio_schedule_run(&cell, &out);
  double sum = 0;
  for (int32_t k = 0; k < users; k++) {
    values[3 * k] = sinr_db[k];
    values[3 * k + 1] = out.share[k];
    values[3 * k + 2] = out.rate[k];
    sum += out.rate[k];
  }
  LP_OWNED(lp_buf_free) lp_buf summary = {0};
  lp_buf_printf(&summary, "all: %.6g bit/s, fading gain of the blocks served %.4f\n", sum, out.gain);
  table t = {.schema = "llmpart.radio-pf/1",
             .column = columns,
             .columns = 3,
             .rows = users,
             .value = values,
             .put_totals = put_cell_totals,
             .user = &(cell_totals){sum, out.gain}};
  lp_status status = write_table(flags, &t, &summary, diag);
  free(values);
  return status;
}

lp_status radio_pf(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const radio_flags *flags = command->user;
  (void)args;
  double *sinr_db = NULL;
  int32_t users = flags->users > 0 ? (int32_t)flags->users : 1;
  lp_status status = LP_OK;
  if (flags->beta <= 0 || flags->beta > 1)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'--beta' is %g, but it is from 0 to 1", flags->beta);
  if (flags->users > 100000 || flags->blocks > 10000)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "more than 100000 '--users' or 10000 '--blocks'");
  if (flags->csv) {
    status = read_sinrs(flags->csv, &sinr_db, &users, diag);
  } else if (isnan(flags->sinr_db)) {
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "'--sinr' is not given, nor a table with '--csv'");
  } else {
    sinr_db = lp_alloc((size_t)users * sizeof *sinr_db);
    for (int32_t k = 0; k < users; k++)
      sinr_db[k] = flags->sinr_db;
  }
  if (status == LP_OK) status = run_cell(flags, sinr_db, users, diag);
  free(sinr_db);
  return status;
}

/* ---- networks ---- */

/* "name: 5 % A, median B, 95 % C unit" over one column. */
static void summarise(const table *t, int32_t column, const char *unit, lp_buf *out) {
  size_t rows = (size_t)t->rows;
  LP_OWNED(lp_free_at) double *sorted = lp_alloc(rows * sizeof *sorted);
  for (size_t r = 0; r < rows; r++)
    sorted[r] = t->value[r * (size_t)t->columns + (size_t)column];
  qsort(sorted, rows, sizeof *sorted, lp_compare_doubles);
  lp_buf_printf(out, "%s: 5 %% %.4g, median %.4g, 95 %% %.4g %s\n", t->column[column], sorted[rows / 20],
                sorted[rows / 2], sorted[rows - 1 - rows / 20], unit);
}

static void put_network(lp_json_writer *json, const void *user) {
  const lp_radio_network *network = user;
  lp_json_put_text(json, "profile", network->profile->name);
  lp_json_put_integer(json, "sectors", network->sectors);
}

static lp_status drop(const radio_flags *flags, const lp_radio_profile *profile, lp_diag *diag) {
  static const char *const columns[] = {"x_m",     "y_m",        "indoor",   "sector",
                                        "sinr_db", "sinr_up_db", "down_bps", "up_bps"};
  int32_t width = LP_COUNT(columns);
  int64_t wanted = flags->users > 0 ? flags->users : 10 * profile->sites * profile->sectors;
  if (wanted > 100000) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "more than 100000 '--users'");
  lp_radio_network *network = lp_radio_drop(profile, (int32_t)wanted, (uint64_t)flags->seed);
  LP_OWNED(lp_free_at) double *value = lp_alloc((size_t)wanted * (size_t)(width + 2) * sizeof *value);
  double *down = value + wanted * width, *up = down + wanted;
  int64_t intervals = flags->intervals > 0 ? flags->intervals : 400;
  lp_radio_rates(network, LP_RADIO_DOWN, intervals, (uint64_t)flags->seed, down);
  lp_radio_rates(network, LP_RADIO_UP, intervals, (uint64_t)flags->seed, up);
  for (int32_t i = 0; i < network->users; i++) {
    const lp_radio_user *user = &network->user[i];
    double row[] = {user->at.x,
                    user->at.y,
                    user->indoor,
                    user->sector,
                    lp_radio_db(lp_radio_mean_sinr(network, LP_RADIO_DOWN, i)),
                    lp_radio_db(lp_radio_mean_sinr(network, LP_RADIO_UP, i)),
                    down[i],
                    up[i]};
    for (int32_t c = 0; c < width; c++)
      value[i * width + c] = row[c];
  }
  table t = {.schema = "llmpart.radio-drop/1",
             .column = columns,
             .columns = width,
             .rows = network->users,
             .value = value,
             .put_totals = put_network,
             .user = network};
  LP_OWNED(lp_buf_free) lp_buf summary = {0};
  summarise(&t, 4, "dB", &summary);
  summarise(&t, 5, "dB", &summary);
  summarise(&t, 6, "bit/s", &summary);
  summarise(&t, 7, "bit/s", &summary);
  lp_status status = write_table(flags, &t, &summary, diag);
  lp_radio_free(network);
  return status;
}

lp_status radio_drop(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const radio_flags *flags = command->user;
  lp_radio_profile *profile = NULL;
  LP_TRY(lp_radio_profile_load(args->data[1], &profile, diag));
  lp_status status = drop(flags, profile, diag);
  lp_radio_profile_free(profile);
  return status;
}

lp_status radio_show(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const radio_flags *flags = command->user;
  lp_radio_profile *profile = NULL;
  LP_TRY(lp_radio_profile_load(args->data[1], &profile, diag));
  lp_buf out = {0};
  lp_radio_profile_print(profile, &out);
  lp_status status = lp_tool_write_as(flags->out, &out, diag);
  lp_radio_profile_free(profile);
  return status;
}

lp_status radio_list(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const radio_flags *flags = command->user;
  (void)args;
  const char *const *names = NULL;
  size_t count = lp_radio_profile_names(&names);
  LP_OWNED(lp_buf_free) lp_buf out = {0};
  lp_status status = LP_OK;
  for (size_t i = 0; i < count && status == LP_OK; i++) {
    lp_radio_profile *profile = NULL;
    status = lp_radio_profile_load(names[i], &profile, diag);
    if (status == LP_OK) lp_buf_printf(&out, "%-12s %s\n", profile->name, profile->title);
    lp_radio_profile_free(profile);
  }
  if (status == LP_OK) status = lp_tool_write_as(flags->out, &out, diag);
  return status;
}
