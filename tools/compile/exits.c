/* Reads the rates of a model's early exits from the measurements of `llmpart calibrate`. */
#include "base/json/reader.h"
#include "tools/compile/compile.h"

#include <math.h>

/* Bytes of a row in a codec, as a share of f32: a scale of 4 bytes for each group of 128. */
static double row_share(const char *codec) {
  if (lp_streq(codec, "f16")) return 0.5;
  if (lp_streq(codec, "int8")) return 0.25 + 1.0 / 128;
  return lp_streq(codec, "int4") ? 0.125 + 1.0 / 128 : 1;
}

static lp_status read_share(const lp_json *object, const char *key, double *out, lp_diag *diag) {
  return lp_json_number(LP_MEMBER(object, key), 0, 1, out, diag);
}

/* Finds the exit of layer `layer` in a calibration; the number of its exits: it is missing. */
static lp_status find_exit(const lp_json *list, int64_t layer, size_t *index, lp_diag *diag) {
  LP_TRY(lp_json_array(list, diag));
  for (*index = 0; *index < lp_json_count(list); (*index)++) {
    lp_json exit = lp_json_item(list, *index), at = lp_json_member(&exit, "layer");
    int64_t found = 0;
    LP_TRY(lp_json_i64(&at, 0, INT32_MAX, &found, diag));
    if (found == layer) return LP_OK;
  }
  return LP_OK;
}

/* The codec's name as the reports' own text. */
static const char *codec_of(const char *name) {
  static const char *const names[] = {"f32", "f16", "int8", "int4"};
  for (size_t i = 0; i < LP_COUNT(names); i++)
    if (lp_streq(names[i], name)) return names[i];
  return "f32";
}

/* The share of tokens for which an exit is sure at theta, interpolated between the measured thetas. */
static lp_status read_exit_rate(const lp_json *alone, double theta, double *out, lp_diag *diag) {
  double before = 0, rate_before = 1;
  *out = 0; /* beyond the last theta */
  LP_TRY(lp_json_array(alone, diag));
  LP_FOR_ITEMS(step, alone) {
    double at, rate;
    LP_TRY(read_share(&step, "theta", &at, diag));
    LP_TRY(read_share(&step, "exit_rate", &rate, diag));
    if (at >= theta) {
      *out = at > before ? rate_before + (rate - rate_before) * (theta - before) / (at - before) : rate;
      return LP_OK;
    }
    before = at;
    rate_before = rate;
  }
  return LP_OK;
}

/* The share of tokens that an exit predicts correctly, sure or not, which is the share at theta 0. */
static lp_status read_acceptance(const lp_json *alone, double *out, lp_diag *diag) {
  lp_json step = lp_json_item(alone, 0);
  double theta;
  LP_TRY(read_share(&step, "theta", &theta, diag));
  if (theta > 0) return lp_json_error(&step, diag, "the first theta should be 0");
  return read_share(&step, "agreement", out, diag);
}

lp_status lp_calibration_file_open(const lp_compile *compile, lp_calibration_file *out, lp_diag *diag) {
  *out = (lp_calibration_file){0};
  out->path =
      compile->exit_rates ? lp_strdup(compile->exit_rates) : lp_compile_find_companion(compile, "calibration.json");
  if (!out->path) return LP_OK;
  LP_TRY(lp_json_load(out->path, 0, &out->document, diag));
  out->root = lp_json_root(out->path, out->document);
  if (lp_json_equals(LP_MEMBER(&out->root, "schema"), "llmpart.calibration/1")) return LP_OK;
  return lp_json_error(&out->root, diag, "this is no calibration: wanted schema llmpart.calibration/1");
}

void lp_calibration_file_close(lp_calibration_file *file) {
  lp_json_free(file->document);
  free(file->path);
  *file = (lp_calibration_file){0};
}

lp_status lp_calibration_file_layers(const lp_calibration_file *file, lp_numbers *out, lp_diag *diag) {
  lp_json list = lp_json_member(&file->root, "exits");
  LP_TRY(lp_json_array(&list, diag));
  for (size_t i = 0; i < lp_json_count(&list); i++) {
    lp_json exit = lp_json_item(&list, i), at = lp_json_member(&exit, "layer");
    int64_t layer = 0;
    LP_TRY(lp_json_i64(&at, 1, INT32_MAX, &layer, diag));
    if (i > 0 && layer <= out->data[i - 1]) return lp_json_error(&at, diag, "layers should be ascending");
    lp_vec_push(out, layer);
  }
  return LP_OK;
}

/* The figures of an exit, by theta, and the members that they are in: a member points to the one around it. */
typedef struct {
  lp_json list, exit, alone;
} exit_figures;

static lp_status find_figures(const lp_calibration_file *file, int64_t layer, exit_figures *out, lp_diag *diag) {
  size_t index;
  out->list = lp_json_member(&file->root, "exits");
  LP_TRY(find_exit(&out->list, layer, &index, diag));
  if (index == lp_json_count(&out->list))
    return lp_json_error(&out->list, diag, "no exit after layer %" PRId64 " was calibrated", layer);
  out->exit = lp_json_item(&out->list, index);
  out->alone = lp_json_member(&out->exit, "alone");
  return lp_json_array(&out->alone, diag);
}

lp_status lp_calibration_file_theta(const lp_calibration_file *file, int64_t layer, double *out, lp_diag *diag) {
  exit_figures figures;
  double risk;
  LP_TRY(find_figures(file, layer, &figures, diag));
  LP_TRY(lp_json_number(LP_MEMBER(&file->root, "risk"), 0, 1, &risk, diag));
  LP_FOR_ITEMS(step, &figures.alone) {
    double sure, right = 1;
    LP_TRY(read_share(&step, "exit_rate", &sure, diag));
    if (sure > 0) LP_TRY(read_share(&step, "agreement", &right, diag));
    if (sure * (1 - right) <= risk) return read_share(&step, "theta", out, diag);
  }
  return lp_json_error(&figures.alone, diag, "no theta keeps the calibration's risk of %g after layer %" PRId64, risk,
                       layer);
}

/* The runs per token of layers that a share `needed` of the tokens needs. They run for such a token, or once MOST_OPEN
 * rows wait for them (runtime/exits/device_half.c). */
static double runs_of(double needed) {
  enum { MOST_OPEN = 8 };
  return needed > 0 ? needed / (1 - pow(1 - needed, MOST_OPEN)) : 1 / (double)MOST_OPEN;
}

static lp_status is_calibrated(const lp_calibration_file *file, int64_t layer, bool *out, lp_diag *diag) {
  lp_json list = lp_json_member(&file->root, "exits");
  size_t index;
  LP_TRY(find_exit(&list, layer, &index, diag));
  *out = index < lp_json_count(&list);
  return LP_OK;
}

/* Reads layer_runs. A token taken at an exit, or before it, does not need the layers after it. An exit that was not
 * calibrated counts as if it took none. */
static lp_status read_layer_runs(const lp_calibration_file *file, const lp_compile *compile, double *out,
                                 lp_diag *diag) {
  const lp_numbers *exits = &compile->exits;
  double taken = 0;
  *out = 0;
  for (size_t i = 0; i < exits->count; i++) {
    const double layers = (double)(exits->data[i] - (i ? exits->data[i - 1] : 0));
    exit_figures figures;
    double sure;
    bool known;
    *out += runs_of(1 - taken) * layers / (double)exits->data[exits->count - 1];
    LP_TRY(is_calibrated(file, exits->data[i], &known, diag));
    if (!known) continue;
    LP_TRY(find_figures(file, exits->data[i], &figures, diag));
    LP_TRY(read_exit_rate(&figures.alone, compile->theta, &sure, diag));
    taken = fmax(taken, sure);
  }
  return LP_OK;
}

lp_status lp_calibration_file_rates(const lp_calibration_file *file, const lp_compile *compile, lp_exit_rates *out,
                                    lp_diag *diag) {
  exit_figures figures;
  LP_TRY(find_figures(file, compile->exits.data[compile->exits.count - 1], &figures, diag));
  if (out->mode == LP_EXITS_EXACT) return read_acceptance(&figures.alone, &out->rate, diag);
  out->codec = codec_of(lp_json_text_or(LP_MEMBER(&file->root, "codec"), "f16"));
  out->row_share = row_share(out->codec);
  out->theta = compile->theta;
  LP_TRY(read_layer_runs(file, compile, &out->layer_runs, diag));
  return read_exit_rate(&figures.alone, compile->theta, &out->rate, diag);
}

lp_exits_mode lp_compile_exits_mode(const lp_compile *compile, lp_exits_mode otherwise) {
  if (!compile->exit_mode) return otherwise;
  int mode = LP_EXITS_FULL;
  for (int i = 0; i < LP_EXITS_COUNT; i++)
    if (lp_streq(compile->exit_mode, lp_exits_modes[i])) mode = i;
  return (lp_exits_mode)mode;
}

/* Takes the rates of a calibration. One that is merely in the model's folder may have other exits; the plan is then for
 * `full`. */
static lp_status take_rates(const lp_compile *compile, lp_exit_rates *rates, lp_diag *diag) {
  const bool is_asked = compile->exit_rates || compile->exit_mode;
  lp_diag *reports = is_asked ? diag : NULL;
  lp_calibration_file file;
  *rates = (lp_exit_rates){.row_share = 1, .codec = "f32"};
  lp_status status = lp_calibration_file_open(compile, &file, reports);
  rates->mode = lp_compile_exits_mode(compile, file.path ? LP_EXITS_EXACT : LP_EXITS_FULL);
  const bool needs_rates = rates->mode == LP_EXITS_EXACT || rates->mode == LP_EXITS_THRESHOLD;
  if (status == LP_OK && needs_rates && !file.path)
    status = lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--exit-mode"),
                         "'%s' needs the exits' rates: --exit-rates=FILE of `llmpart calibrate -o json`",
                         lp_exits_modes[rates->mode]);
  else if (status == LP_OK && needs_rates)
    status = lp_calibration_file_rates(&file, compile, rates, reports);
  lp_calibration_file_close(&file);
  if (status == LP_OK || is_asked) return status;
  *rates = (lp_exit_rates){.mode = LP_EXITS_FULL, .row_share = 1, .codec = "f32"};
  return LP_OK;
}

lp_status lp_compile_read_exits(lp_compile *compile, lp_diag *diag) {
  const bool at_exit =
      compile->exits.count > 0 && compile->request.cut == compile->exits.data[compile->exits.count - 1];
  if (compile->exits_auto) return LP_OK;
  if (compile->theta < 0) compile->theta = 0.8;
  if ((compile->exit_rates || compile->exit_mode) && !at_exit)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(compile->exit_rates ? "--exit-rates" : "--exit-mode"),
                       "this is for --exits with --cloud and a device's half that ends at the last exit");
  return at_exit ? take_rates(compile, &compile->request.exit_rates, diag) : LP_OK;
}
