/* Reads the rates of a model's early exits from the measurements of `llmpart calibrate`. */
#include "base/file.h"
#include "base/json/reader.h"
#include "tools/compile/compile.h"

#include <stdlib.h>

/* Bytes of a row in a codec, as a share of f32: a scale of 4 bytes for each group of 128. */
static double row_share(const char *codec) {
  if (lp_streq(codec, "f16")) return 0.5;
  if (lp_streq(codec, "int8")) return 0.25 + 1.0 / 128;
  return lp_streq(codec, "int4") ? 0.125 + 1.0 / 128 : 1;
}

static lp_status read_share(const lp_json *object, const char *key, double *out, lp_diag *diag) {
  lp_json at = lp_json_member(object, key);
  return lp_json_number(&at, 0, 1, out, diag);
}

/* Finds the exit of layer `layer` in a calibration; reports a missing one. */
static lp_status find_exit(const lp_json *list, int64_t layer, size_t *index, lp_diag *diag) {
  LP_TRY(lp_json_array(list, diag));
  for (*index = 0; *index < lp_json_count(list); (*index)++) {
    lp_json exit = lp_json_item(list, *index), at = lp_json_member(&exit, "layer");
    int64_t found = 0;
    LP_TRY(lp_json_i64(&at, 0, INT32_MAX, &found, diag));
    if (found == layer) return LP_OK;
  }
  return lp_json_error(list, diag, "no exit after layer %" PRId64 " was calibrated", layer);
}

/* The share of tokens for which an exit is sure at theta, interpolated between the measured thetas. */
static lp_status read_exit_rate(const lp_json *alone, double theta, double *out, lp_diag *diag) {
  double before = 0, rate_before = 1;
  *out = 0; /* beyond the last theta */
  LP_TRY(lp_json_array(alone, diag));
  for (size_t i = 0; i < lp_json_count(alone); i++) {
    lp_json step = lp_json_item(alone, i);
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

static lp_status read_rates(const lp_compile *compile, const lp_json *root, lp_exit_rates *out, lp_diag *diag) {
  lp_json schema = lp_json_member(root, "schema"), list = lp_json_member(root, "exits"),
          codec = lp_json_member(root, "codec");
  if (!lp_json_equals(&schema, "llmpart.calibration/1"))
    return lp_json_error(root, diag, "this is no calibration: wanted schema llmpart.calibration/1");
  size_t index;
  LP_TRY(find_exit(&list, compile->exits.data[compile->exits.count - 1], &index, diag));
  lp_json exit = lp_json_item(&list, index), alone = lp_json_member(&exit, "alone");
  if (out->mode == LP_EXITS_EXACT) return read_acceptance(&alone, &out->rate, diag);
  out->row_share = row_share(lp_json_text_or(&codec, "f16"));
  return read_exit_rate(&alone, compile->theta, &out->rate, diag);
}

static lp_status load_rates(const lp_compile *compile, const char *path, lp_exit_rates *out, lp_diag *diag) {
  char *text = NULL;
  size_t size = 0;
  lp_json_document *document = NULL;
  LP_TRY(lp_file_read(path, &text, &size, diag));
  lp_status status = lp_json_parse(path, text, size, 0, &document, diag);
  free(text);
  if (status != LP_OK) return status;
  lp_json root = lp_json_root(path, document);
  status = read_rates(compile, &root, out, diag);
  lp_json_free(document);
  return status;
}

static lp_exits_mode mode_of(const char *name) {
  int mode = LP_EXITS_FULL;
  for (int i = 0; i < LP_EXITS_COUNT; i++)
    if (lp_streq(name, lp_exits_modes[i])) mode = i;
  return (lp_exits_mode)mode;
}

lp_status lp_compile_read_exits(lp_compile *compile, lp_diag *diag) {
  lp_exit_rates *rates = &compile->request.exit_rates;
  const bool at_exit =
      compile->exits.count > 0 && compile->request.cut == compile->exits.data[compile->exits.count - 1];
  if ((compile->exit_rates || compile->exit_mode) && !at_exit)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(compile->exit_rates ? "--exit-rates" : "--exit-mode"),
                       "this is for --exits with --cloud and a device's half that ends at the last exit");
  if (!at_exit) return LP_OK;
  char *path =
      compile->exit_rates ? lp_strdup(compile->exit_rates) : lp_compile_find_companion(compile, "calibration.json");
  *rates = (lp_exit_rates){.mode = path ? LP_EXITS_EXACT : LP_EXITS_FULL, .row_share = 1};
  if (compile->exit_mode) rates->mode = mode_of(compile->exit_mode);
  lp_status status = LP_OK;
  bool needs_rates = rates->mode == LP_EXITS_EXACT || rates->mode == LP_EXITS_THRESHOLD;
  if (needs_rates && path) {
    const bool is_asked = compile->exit_rates || compile->exit_mode;
    status = load_rates(compile, path, rates, is_asked ? diag : NULL);
    if (status != LP_OK && !is_asked) { /* the calibration in the model's folder has other exits */
      *rates = (lp_exit_rates){.mode = LP_EXITS_FULL, .row_share = 1};
      status = LP_OK;
    }
  } else if (needs_rates) {
    status = lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--exit-mode"),
                         "'%s' needs the exits' rates: --exit-rates=FILE of `llmpart calibrate -o json`",
                         lp_exits_modes[rates->mode]);
  }
  free(path);
  return status;
}
