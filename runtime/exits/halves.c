/* Determines the support of a bundle for early exits: whether it splits into two halves, the modes that it allows, and
 * its calibration. */

#include "runtime/exits/halves.h"
#include "base/file.h"
#include "base/json/reader.h"
#include "base/path.h"
#include "base/poly.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/bundle_file.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/state.h"
#include "runtime/runtime.h"

/* ---- the halves of a bundle -------------------------------------------------------------------------------------- */

static bool is_symbol(const lp_poly *poly, lp_symbol symbol) {
  return poly->count == 1 && poly->term[0].coef == 1 && poly->term[0].symbol[0] == symbol &&
         poly->term[0].symbol[1] == 0;
}

size_t lp_halves_row_width(const lp_tensor_desc *tensor) {
  size_t width = 1;
  if (tensor->dtype != LP_DT_F32 || tensor->rank < 2 || !is_symbol(tensor->shape[0], LP_SYM_B + 1) ||
      !is_symbol(tensor->shape[1], LP_SYM_S + 1))
    return 0;
  for (int32_t i = 2; i < tensor->rank; i++) {
    int64_t dim = 0;
    if (!lp_poly_is_const(tensor->shape[i], &dim) || dim < 1 || !lp_size_mul(width, (size_t)dim, &width)) return 0;
  }
  return width;
}

/* The chain of places that the rows of a program pass. */
typedef struct {
  lp_place place[LP_PLACES_MAX];
  int32_t links;
  size_t width[LP_PLACES_MAX];
  uint64_t shape; /* a hash of the widths of the send steps, in order */
} chain;

static int32_t link_of(const lp_place *place, int32_t links, lp_place wanted) {
  for (int32_t i = 0; i < links; i++)
    if (place[i] == wanted) return i;
  return -1;
}

/* Adds the columns that a step sends to the next place, which is a new one, or the one that the sender sends to. */
static const char *add_send(chain *of, const lp_step *step) {
  const size_t width = lp_halves_row_width(&step->tensor);
  const int32_t from = step->side == LP_SIDE_DEVICE ? -1 : link_of(of->place, of->links, step->side);
  if (step->to == LP_SIDE_DEVICE) return "the cloud sends more than tokens back";
  if (width == 0) return "the tensors that cross do not have one row per position";
  if (step->side != LP_SIDE_DEVICE && from < 0) return "a place sends rows and takes none";
  if (from + 1 == of->links && link_of(of->place, of->links, step->to) < 0) of->place[of->links++] = step->to;
  if (from + 1 >= of->links || of->place[from + 1] != step->to) return "the places do not form a chain";
  of->width[from + 1] += width;
  of->shape = lp_hash_bytes(&of->width[from + 1], sizeof width, of->shape + (uint64_t)step->to + 1);
  return NULL;
}

static const char *step_problem(const lp_manifest *manifest, chain *of, const lp_step *step) {
  if (step->kind == LP_STEP_MOVE) return "a KV cache moves between the sides";
  if (step->kind == LP_STEP_SEND) return add_send(of, step);
  if (step->kind == LP_STEP_INPUT && step->side != LP_SIDE_DEVICE) return "the cloud reads the tokens itself";
  if (step->kind != LP_STEP_OUTPUT) return NULL;
  bool logits = manifest->outputs[step->port].role == LP_ROLE_LOGITS;
  if (step->side != LP_SIDE_DEVICE && lp_manifest_exit(manifest, step->port) >= 0)
    return "an exit is computed in the cloud";
  if (logits && step->side == LP_SIDE_DEVICE) return "the device computes the whole model";
  return logits && link_of(of->place, of->links, step->side) + 1 != of->links ? "the logits are not at the chain's end"
                                                                              : NULL;
}

static const char *program_problem(const lp_manifest *manifest, const lp_program *program, chain *out) {
  *out = (chain){0};
  for (int32_t i = 0; i < program->step_count; i++) {
    const char *problem = step_problem(manifest, out, &program->step[i]);
    if (problem) return problem;
  }
  LP_FOR_EACH(const lp_step, step, program->step, program->step_count)
    if (step->kind == LP_STEP_RUN && step->side != LP_SIDE_DEVICE && link_of(out->place, out->links, step->side) < 0)
      return "a place runs without the device's rows";
  return out->links > 0 ? NULL : "nothing crosses to the cloud";
}

/* Finds the chain that both programs share. */
static const char *find_chain(const lp_manifest *manifest, lp_halves *out) {
  chain of[2];
  const char *problem = program_problem(manifest, &manifest->programs[out->prefill], &of[0]);
  if (!problem) problem = program_problem(manifest, &manifest->programs[out->decode], &of[1]);
  if (problem) return problem;
  if (of[0].links != of[1].links || of[0].shape != of[1].shape) return "prefill and decode send different rows";
  out->links = of[0].links;
  memcpy(out->chain, of[0].place, sizeof out->chain);
  memcpy(out->width, of[0].width, sizeof out->width);
  return NULL;
}

int32_t lp_halves_link(const lp_halves *halves, lp_place place) {
  return link_of(halves->chain, halves->links, place);
}

size_t lp_halves_made_width(const lp_halves *halves, int32_t link) {
  return link + 1 < halves->links ? halves->width[link + 1] : 0;
}

bool lp_halves_find(const lp_bundle *bundle, lp_halves *out, const char **why) {
  const lp_manifest *manifest = &bundle->manifest;
  *out = (lp_halves){.bundle = bundle,
                     .prefill = lp_manifest_program(manifest, "prefill"),
                     .decode = lp_manifest_program(manifest, "decode"),
                     .tokens = lp_manifest_input(manifest, LP_ROLE_TOKENS)};
  *why = "the bundle has no early exits (compile --exits)";
  if (manifest->exit_count == 0) return false;
  *why = "the bundle does not generate text";
  if (out->prefill < 0 || out->decode < 0 || out->tokens < 0 || manifest->input_count != 1 ||
      manifest->exit_count > LP_MOST_EXITS || lp_manifest_output(manifest, LP_ROLE_LOGITS) < 0)
    return false;
  *why = "a layer keeps a state and not a row for each token, so that drafts cannot be taken back";
  for (lp_place place = 0; place < manifest->place_count; place++)
    if (!lp_states_have_rows(manifest, place)) return false;
  *why = find_chain(manifest, out);
  return *why == NULL;
}

int32_t lp_halves_program(const lp_halves *halves, int64_t past) {
  return past == 0 ? halves->prefill : halves->decode;
}

/* ---- modes ------------------------------------------------------------------------------------------------------- */

static const char *const mode_names[] = {[LP_MODE_FULL] = "full",
                                         [LP_MODE_EXACT] = "exact",
                                         [LP_MODE_THRESHOLD] = "threshold",
                                         [LP_MODE_STANDALONE] = "standalone"};

const char *lp_mode_name(lp_mode mode) {
  return mode_names[mode];
}

bool lp_mode_parse(const char *name, lp_mode *out) {
  for (size_t i = 0; i < LP_COUNT(mode_names); i++) {
    if (!lp_streq(name, mode_names[i])) continue;
    *out = (lp_mode)i;
    return true;
  }
  return false;
}

bool lp_bundle_allows(const lp_bundle *bundle, lp_mode mode, const char **why) {
  lp_halves halves;
  *why = "";
  return mode == LP_MODE_FULL || mode == LP_MODE_EXACT || lp_halves_find(bundle, &halves, why);
}

/* ---- calibration ------------------------------------------------------------------------------------------------- */

/* A device can have a calibration that the worker lacks: the manifest does not list the file, and the two sides compare
 * only the manifest. */
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
  LP_OWNED(lp_free_at) char *path = lp_path_join(bundle->path, LP_CALIBRATION_FILE);
  lp_mapping text = {0};
  lp_json_document *document = NULL;
  lp_status status = LP_OK;
  if (!lp_path_exists(path)) {
    status = lp_error(diag, LP_LOC_FILE(bundle->path), "the bundle carries no calibration");
    lp_note(diag, LP_LOC_FILE(bundle->path), "`llmpart calibrate %s --data=FILE --apply` gives it one", bundle->path);
  }
  if (status == LP_OK) status = lp_bundle_file_map(bundle->path, LP_CALIBRATION_FILE, path, &text, diag);
  if (status == LP_OK) status = lp_json_parse(path, (const char *)text.data, text.size, 0, &document, diag);
  if (status == LP_OK) {
    lp_json root = lp_json_root(path, document);
    status = read_fields(bundle, &root, out, diag);
  }
  lp_json_free(document);
  lp_file_unmap(&text);
  return status;
}
