/* Reads the calibration that a bundle carries beside its manifest: a device can have one without the worker's knowledge, since
 * the manifest, by whose hash they know each other, does not list it. */
#include <stdlib.h>

#include "base/file.h"
#include "base/json/json_reader.h"
#include "base/path.h"
#include "runtime/bundle/bundle.h"
#include "runtime/runtime.h"

static lp_status read_fields(const lp_bundle *bundle, const lp_json *root, lp_calibration *out, lp_diag *diag) {
  lp_json schema = lp_json_member(root, "schema"), hash = lp_json_member(root, "bundle");
  lp_json theta = lp_json_member(root, "theta"), codec = lp_json_member(root, "codec");
  const char *text = NULL;
  LP_TRY(lp_json_object(root, diag));
  LP_TRY(lp_json_text(&schema, &text, diag));
  if (!lp_streq(text, "llmpart.calibration/1"))
    return lp_json_error(&schema, diag, "'%.40s' is not llmpart.calibration/1", text);
  LP_TRY(lp_json_text(&hash, &text, diag));
  if (!lp_streq(text, bundle->manifest.hash))
    return lp_json_error(&hash, diag, "it was made for another bundle; calibrate this one again");
  LP_TRY(lp_json_number(&theta, 0, 1, &out->theta, diag));
  LP_TRY(lp_json_text(&codec, &text, diag));
  if (lp_codec_parse(text, &out->codec) && out->codec != LP_CODEC_AUTO) return LP_OK;
  return lp_json_error(&codec, diag, "'%.40s' is no codec", text);
}

lp_status lp_calibration_read(const lp_bundle *bundle, lp_calibration *out, lp_diag *diag) {
  char *path = lp_path_join(bundle->path, LP_CALIBRATION_FILE), *text = NULL;
  size_t size = 0;
  json_t *value = NULL;
  lp_status status = LP_OK;
  if (!lp_path_exists(path)) {
    status = lp_error(diag, LP_LOC_FILE(bundle->path), "the bundle carries no calibration");
    lp_note(diag, LP_LOC_FILE(bundle->path), "`llmpart calibrate %s --data=FILE --apply` gives it one", bundle->path);
  }
  if (status == LP_OK) status = lp_file_read(path, &text, &size, diag);
  if (status == LP_OK) status = lp_json_load(path, text, size, &value, diag);
  if (status == LP_OK) {
    lp_json root = lp_json_root(path, value);
    status = read_fields(bundle, &root, out, diag);
  }
  json_decref(value);
  free(text);
  free(path);
  return status;
}
