/* Reads lengths: see lengths.h. */
#include "fleet/lengths.h"
#include "base/csv.h"
#include "base/json/reader.h"
#include "passes/plan/sweep/sweep.h"

#include <math.h>

enum { MOST_TOKENS = 1 << 24, MOST_PAIRS = 1000 };

/* Makes the weights shares. */
static void normalise(lp_fleet_spec *spec) {
  double sum = 0;
  for (size_t i = 0; i < spec->lengths.count; i++)
    sum += spec->lengths.data[i].weight;
  for (size_t i = 0; i < spec->lengths.count; i++)
    spec->lengths.data[i].weight /= sum;
}

static void push(lp_fleet_spec *spec, double prompt, double answer, double weight) {
  if (weight > 0) lp_vec_push(&spec->lengths, ((lp_fleet_length){prompt, answer, weight}));
}

/* ---- a table ----------------------------------------------------------------------------------------------------- */

typedef struct {
  int64_t isl, osl;
  double share;
} row_text;

static lp_status read_table(lp_yaml *yaml, const lp_yaml_node *node, lp_fleet_spec *spec) {
  static const lp_yaml_field fields[] = {
      LP_YAML_FIELD(LP_YAML_I64, "isl", row_text, isl, .least = 1, .most = MOST_TOKENS, .required = true),
      LP_YAML_FIELD(LP_YAML_I64, "osl", row_text, osl, .least = 1, .most = MOST_TOKENS, .required = true),
      LP_YAML_FIELD(LP_YAML_F64, "share", row_text, share, .least = 1e-6, .most = 1e6)};
  int32_t count = 0;
  LP_TRY(lp_yaml_list(yaml, node, "lengths", &count));
  for (int32_t i = 0; i < count; i++) {
    row_text row = {.share = 1};
    LP_TRY(lp_yaml_fields(yaml, lp_yaml_item(yaml, node, i), "lengths", fields, LP_COUNT(fields), &row));
    push(spec, (double)row.isl, (double)row.osl, row.share);
  }
  return LP_OK;
}

/* ---- a trace ----------------------------------------------------------------------------------------------------- */

/* The columns of our traces, and of those that Azure has published. */
static const char *const columns[2][3] = {{"time_s", "input", "output"},
                                          {"TIMESTAMP", "ContextTokens", "GeneratedTokens"}};

/* Days from 1970-01-01 in the civil calendar. */
static double days(int year, int month, int day) {
  const int64_t march = (month + 9) % 12, y = year - (month <= 2);
  const int64_t whole = 365 * y + y / 4 - y / 100 + y / 400 + (153 * march + 2) / 5 + day - 1 - 719468;
  return (double)whole;
}

static lp_status read_time(const lp_csv *csv, size_t row, int32_t column, bool dated, double *out, lp_diag *diag) {
  int year, month, day, hour, minute;
  double second;
  if (!dated) return lp_csv_number(csv, row, column, 0, 1e15, out, diag);
  const char *text = lp_csv_at(csv, row, column);
  if (sscanf(text, "%d-%d-%d %d:%d:%lf", &year, &month, &day, &hour, &minute, &second) != 6 ||
      !(second >= 0 && second < 61))
    return lp_error(diag, lp_csv_loc(csv, row, column), "'%s' is not a time like 2023-11-16 18:17:03.9", text);
  *out = 86400 * days(year, month, day) + 3600 * hour + 60 * minute + second;
  return LP_OK;
}

static int compare(const void *a, const void *b) {
  const lp_fleet_length *x = a, *y = b;
  if (x->prompt != y->prompt) return x->prompt < y->prompt ? -1 : 1;
  return (x->answer > y->answer) - (x->answer < y->answer);
}

static int hour_of(double time_s) {
  const double hours = floor(time_s / 3600);
  return (int)(hours - (double)LP_SIM_HOURS * floor(hours / (double)LP_SIM_HOURS));
}

/* Makes equal lengths one. */
static void merge(lp_fleet_spec *spec) {
  lp_fleet_length *length = spec->lengths.data;
  size_t kept = 0;
  qsort(length, spec->lengths.count, sizeof *length, compare);
  for (size_t i = 1; i < spec->lengths.count; i++)
    if (compare(&length[kept], &length[i]) == 0)
      length[kept].weight += length[i].weight;
    else
      length[++kept] = length[i];
  spec->lengths.count = kept + 1;
}

/* Makes counts of an hour of the day rates, if the trace has half of each hour at least. */
static void rate_hours(double first, double last, double *hour) {
  static const double day_s = 86400, hour_s = 3600, least_s = 1800;
  const double whole = floor((last - first) / day_s);
  double seconds[LP_SIM_HOURS], least = INFINITY;
  for (int h = 0; h < LP_SIM_HOURS; h++)
    seconds[h] = whole * hour_s;
  for (double from = first + whole * day_s; from < last;) {
    const double end = fmin(last, hour_s * (floor(from / hour_s) + 1));
    seconds[hour_of(from)] += end - from;
    from = end;
  }
  for (int h = 0; h < LP_SIM_HOURS; h++)
    least = fmin(least, seconds[h]);
  for (int h = 0; h < LP_SIM_HOURS; h++)
    hour[h] = least >= least_s ? hour[h] / seconds[h] : 0;
}

static lp_status read_rows(const lp_csv *csv, lp_fleet_spec *spec, lp_fleet_traced *traced, lp_diag *diag) {
  int32_t at[3];
  bool dated = lp_csv_column(csv, columns[1][0]) >= 0;
  double first = INFINITY, last = -INFINITY;
  for (int i = 0; i < 3; i++) {
    at[i] = lp_csv_column(csv, columns[dated][i]);
    if (at[i] < 0)
      return lp_error(diag, LP_LOC_FILE(csv->file),
                      "there is no column '%s': a trace has %s, %s and %s, or %s, %s and %s", columns[dated][i],
                      columns[0][0], columns[0][1], columns[0][2], columns[1][0], columns[1][1], columns[1][2]);
  }
  for (size_t i = 0; i < csv->rows; i++) {
    double time_s, prompt, answer;
    LP_TRY(read_time(csv, i, at[0], dated, &time_s, diag));
    LP_TRY(lp_csv_number(csv, i, at[1], 0, MOST_TOKENS, &prompt, diag));
    LP_TRY(lp_csv_number(csv, i, at[2], 0, MOST_TOKENS, &answer, diag));
    first = fmin(first, time_s), last = fmax(last, time_s);
    traced->hour[hour_of(time_s)]++;
    push(spec, fmax(1, prompt), fmax(1, answer), 1);
  }
  if (csv->rows == 0) return lp_error(diag, LP_LOC_FILE(csv->file), "the trace has no row");
  merge(spec);
  if (last > first) traced->rate = (double)(csv->rows - 1) / (last - first);
  rate_hours(first, last, traced->hour);
  return LP_OK;
}

/* ---- distributions ----------------------------------------------------------------------------------------------- */

typedef struct {
  double tokens[MOST_PAIRS], share[MOST_PAIRS];
  size_t count;
} cdf;

/* A list of pairs [tokens, share of requests that have at most so many]; both ascend, and the last share is 1. */
static lp_status read_pairs(const lp_json *list, cdf *out, lp_diag *diag) {
  LP_TRY(lp_json_array(list, diag));
  double before = 0, least = 1;
  out->count = lp_json_count(list);
  if (out->count == 0 || out->count > MOST_PAIRS)
    return lp_json_error(list, diag, "has %zu pairs; from 1 to %d are allowed", out->count, MOST_PAIRS);
  for (size_t i = 0; i < out->count; i++) {
    lp_json pair = lp_json_item(list, i), tokens = lp_json_item(&pair, 0), share = lp_json_item(&pair, 1);
    double below;
    LP_TRY(lp_json_number(&tokens, least, MOST_TOKENS, &out->tokens[i], diag));
    LP_TRY(lp_json_number(&share, before, 1, &below, diag));
    out->share[i] = below - before;
    before = below, least = out->tokens[i];
  }
  if (before >= 1 - 1e-6) return LP_OK;
  return lp_json_error(list, diag, "ends with the share %g; the last pair of a distribution has 1", before);
}

static lp_status read_cdf_file(const char *path, cdf *out, lp_diag *diag) {
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  LP_TRY(lp_json_load(path, 0, &document, diag));
  const lp_json root = lp_json_root(path, document), inner = lp_json_member(&root, "cdf");
  return read_pairs(lp_json_is_given(&inner) ? &inner : &root, out, diag);
}

static lp_status read_cdf(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, cdf *out) {
  const char *text;
  LP_TRY(lp_yaml_text(yaml, node, key, &text));
  lp_diag *inner = lp_diag_create();
  if (read_cdf_file(lp_yaml_relative(yaml, text), out, inner) != LP_OK) return lp_sweep_relay(yaml, node, key, inner);
  lp_diag_free(inner);
  return LP_OK;
}

/* Prompts and answers are independent of each other; a request has the length at the end of its pair. */
static lp_status read_cdfs(lp_yaml *yaml, const lp_yaml_node *prompts, const lp_yaml_node *answers,
                           lp_fleet_spec *spec) {
  cdf *prompt = LP_NEW(spec->arena, cdf), *answer = LP_NEW(spec->arena, cdf);
  LP_TRY(read_cdf(yaml, prompts, "prompts", prompt));
  LP_TRY(read_cdf(yaml, answers, "answers", answer));
  for (size_t i = 0; i < prompt->count; i++)
    for (size_t k = 0; k < answer->count; k++)
      push(spec, round(prompt->tokens[i]), round(answer->tokens[k]), prompt->share[i] * answer->share[k]);
  return LP_OK;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

typedef struct {
  const lp_yaml_node *trace, *prompts, *answers;
} lengths_text;

static lp_status read_trace(const char *path, lp_fleet_spec *spec, lp_fleet_traced *traced, lp_diag *diag) {
  lp_csv csv;
  LP_TRY(lp_csv_read(path, spec->arena, &csv, diag));
  return read_rows(&csv, spec, traced, diag);
}

static lp_status read_files(lp_yaml *yaml, const lp_yaml_node *node, lp_fleet_spec *spec, lp_fleet_traced *traced) {
  static const lp_yaml_field fields[] = {LP_YAML_FIELD(LP_YAML_NODE, "trace", lengths_text, trace, .least = 0),
                                         LP_YAML_FIELD(LP_YAML_NODE, "prompts", lengths_text, prompts, .least = 0),
                                         LP_YAML_FIELD(LP_YAML_NODE, "answers", lengths_text, answers, .least = 0)};
  lengths_text text = {0};
  const char *path;
  LP_TRY(lp_yaml_fields(yaml, node, "lengths", fields, LP_COUNT(fields), &text));
  if (!text.trace == !text.prompts || !text.prompts != !text.answers)
    return lp_yaml_error(
        yaml, node,
        "'lengths' is a list of { isl, osl, share }, or has 'trace' (a .csv), or 'prompts' and 'answers' (.json each)");
  if (text.prompts) return read_cdfs(yaml, text.prompts, text.answers, spec);
  LP_TRY(lp_yaml_text(yaml, text.trace, "trace", &path));
  lp_diag *inner = lp_diag_create();
  if (read_trace(lp_yaml_relative(yaml, path), spec, traced, inner) != LP_OK)
    return lp_sweep_relay(yaml, text.trace, "trace", inner);
  lp_diag_free(inner);
  return LP_OK;
}

lp_status lp_fleet_lengths_read(lp_yaml *yaml, const lp_yaml_node *node, lp_fleet_spec *spec, lp_fleet_traced *traced) {
  *traced = (lp_fleet_traced){0};
  LP_TRY(lp_yaml_is_mapping(node) ? read_files(yaml, node, spec, traced) : read_table(yaml, node, spec));
  normalise(spec);
  return LP_OK;
}

lp_load_lengths lp_fleet_lengths(const lp_fleet_spec *spec) {
  double prompt = 0, rows = 0, answer = 0, context = 0, kept = 0, longest = 0;
  LP_FOR_VEC(const lp_fleet_length, one, &spec->lengths) {
    prompt += one->weight * one->prompt;
    rows += one->weight * one->prompt * one->prompt;
    answer += one->weight * one->answer;
    context += one->weight * one->answer * (one->prompt + one->answer / 2);
    kept += one->weight * one->answer * (one->prompt + one->answer);
    longest = fmax(longest, one->prompt + one->answer);
  }
  return (lp_load_lengths){.prompt = llround(fmax(1, rows / prompt)),
                           .context = llround(fmax(1, context / answer)),
                           .kept = llround(fmax(1, kept / answer)),
                           .longest = llround(longest)};
}
