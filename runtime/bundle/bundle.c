/* Loads a bundle: parses the manifest, maps the weights, loads the code (code.c), and compares every file that it loads
 * with the checksums of the manifest. */
#include <sys/stat.h>

#include "base/companions.h"
#include "base/file.h"
#include "base/path.h"
#include "base/seal.h"
#include "base/units.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/bundle_file.h"
#include "runtime/bundle/code.h"
#include "runtime/bundle/manifest.h"
#include "runtime/bundle/signature.h"
#include "runtime/bundle/verifier.h"
#include "runtime/gpu/gpu.h"
#include "runtime/runtime.h"

static lp_status parse_manifest(const lp_loader *load, const char *path, const lp_mapping *text) {
  const char *data = (const char *)text->data;
  lp_manifest *out = &load->bundle->manifest;
  LP_TRY(lp_manifest_parse(path, data ? data : "", text->size, load->bundle->arena, out, load->diag));
  if (lp_seal_holds(data, text->size)) return LP_OK;
  lp_status status = lp_error(load->diag, LP_LOC_FILE(path), "the seal is not that of this text");
  lp_note(load->diag, LP_LOC_FILE(path), "the file was changed after `llmpart compile`; compile the model again");
  return status;
}

/* Takes the weights of the rank for which the bundle is loaded. */
static lp_status choose_rank(const lp_loader *load, const char *path) {
  int32_t rank = load->bundle->rank = load->options->rank;
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    lp_side_desc *side = &load->bundle->manifest.side[i];
    if (rank < 0 || (i == LP_SIDE_CLOUD && rank >= side->ranks))
      return lp_error(load->diag, LP_LOC_FILE(path), "rank %" PRId32 " of a half for %" PRId32, rank, side->ranks);
    if (side->shards) side->weights = side->shards[rank];
  }
  return LP_OK;
}

static lp_status load_manifest(const lp_loader *load) {
  const char *path = lp_loader_path(load, "manifest.json");
  lp_mapping text;
  LP_TRY(lp_bundle_file_map(load->bundle->path, "manifest.json", path, &text, load->diag));
  lp_status status = LP_OK;
  if (load->options->trust)
    status = lp_signature_check(load->bundle->path, load->options->trust, &text, load->diag);
  else
    lp_signature_warn(path, load->diag);
  if (status == LP_OK) status = parse_manifest(load, path, &text);
  if (status == LP_OK) status = choose_rank(load, path);
  lp_file_unmap(&text);
  return status;
}

/* Checks a small file that another reader opens later by its path. */
static lp_status check_file(const lp_loader *load, const lp_file_desc *want, const char *path) {
  lp_mapping mapping = {0};
  lp_status status = lp_loader_map(load, want, path, &mapping);
  lp_file_unmap(&mapping);
  return status;
}

static lp_status load_weights(const lp_loader *load, lp_place side) {
  lp_bundle *bundle = load->bundle;
  const lp_file_desc *want = bundle->manifest.side[side].weights;
  if (!want) return LP_OK;
  const char *path = lp_loader_path(load, want->path);
  lp_mapping *weights = &bundle->side[side].weights;
  LP_TRY(lp_bundle_file_open(bundle->path, want, path, weights, load->diag));
  size_t offset = 0;
  LP_TRY(lp_safetensors_check(path, weights, &offset, load->diag));
  if (weights->size - offset < (size_t)bundle->manifest.side[side].weight_bytes)
    return lp_error(load->diag, LP_LOC_FILE(path), "%zu bytes of weights; the code reads %" PRId64,
                    weights->size - offset, bundle->manifest.side[side].weight_bytes);
  bundle->side[side].data = (const char *)weights->data + offset;
  return LP_OK;
}

/* Compares the mapped weights with their checksum, now or on the verifier's thread. */
static lp_status check_weights(const lp_loader *load, lp_place side) {
  lp_bundle *bundle = load->bundle;
  const lp_file_desc *want = bundle->manifest.side[side].weights;
  if (!want) return LP_OK;
  const char *path = lp_loader_path(load, want->path);
  const lp_mapping *weights = &bundle->side[side].weights;
  if (want->has_crc && !load->options->check_hashes) {
    if (!bundle->verifier) bundle->verifier = lp_verifier_create();
    lp_verifier_add(bundle->verifier, path, want, weights);
    return LP_OK;
  }
  if (!lp_bundle_file_checks_at_load(want, load->options->check_hashes)) return LP_OK;
  return lp_file_verify(path, want, weights->data, weights->size, load->options->check_hashes, load->diag);
}

/* Replaces the side's weights and code by those of the form that runs without a GPU. */
static lp_status fall_back(const lp_loader *load, lp_place side) {
  lp_side_code *code = &load->bundle->side[side];
  bool again = false;
  lp_file_unmap(&code->weights);
  *code = (lp_side_code){0};
  lp_manifest_fall_back(&load->bundle->manifest, side);
  LP_TRY(load_weights(load, side));
  return lp_loader_load_code(load, side, &again);
}

static lp_status load_side(const lp_loader *load, lp_place side) {
  bool falls_back = false;
  if (!load->bundle->manifest.side[side].present) return LP_OK;
  LP_TRY(load_weights(load, side));
  LP_TRY(lp_loader_load_code(load, side, &falls_back));
  if (falls_back) LP_TRY(fall_back(load, side));
  LP_TRY(check_weights(load, side));
  load->bundle->side[side].loaded = true;
  return LP_OK;
}

/* ---- tokenizer; the whole ---------------------------------------------------------------------------------------- */

/* Checks a file that the tokenizer opens if it exists: the manifest must list it. */
static lp_status check_companion(const lp_loader *load, const char *name) {
  const lp_manifest *manifest = &load->bundle->manifest;
  const char *path = lp_loader_path(load, name);
  for (int32_t i = 0; i < manifest->file_count; i++)
    if (lp_streq(manifest->files[i].path, name)) return check_file(load, &manifest->files[i], path);
  return lp_path_exists(path) ? lp_error(load->diag, LP_LOC_FILE(path), "the manifest does not list this file") : LP_OK;
}

static lp_status load_tokenizer(const lp_loader *load) {
  lp_bundle *bundle = load->bundle;
  const lp_file_desc *want = bundle->manifest.tokenizer;
  if (!want) return LP_OK;
  for (size_t i = 0; i < LP_TOKENIZER_COMPANIONS; i++)
    LP_TRY(check_companion(load, lp_tokenizer_companions[i]));
  const char *path = lp_loader_path(load, want->path);
  LP_TRY(check_file(load, want, path));
  LP_TRY(lp_tokenizer_load(path, &bundle->tokenizer, load->diag));
  bundle->eos = lp_tokenizer_eos(bundle->tokenizer);
  return LP_OK;
}

/* Free memory and what the system can free, in bytes; 0: unknown. */
static double available_memory(void) {
  FILE *file = fopen("/proc/meminfo", "re");
  char line[128];
  double kib = 0;
  while (file && kib == 0 && fgets(line, sizeof line, file))
    if (lp_has_prefix(line, "MemAvailable:")) kib = strtod(line + strlen("MemAvailable:"), NULL);
  if (file) (void)fclose(file);
  return 1024 * kib;
}

static void warn_of_memory(const lp_loader *load) {
  double mapped = 0, available = available_memory();
  char want[32], have[32];
  for (lp_place i = 0; i < LP_PLACES_MAX; i++)
    if (!load->bundle->side[i].gpu) mapped += (double)load->bundle->side[i].weights.size;
  if (available == 0 || mapped <= available) return;
  lp_warning(load->diag, LP_LOC_FILE(load->bundle->path),
             "the weights take %s and %s of memory are available: pages are read from the disk again for each token",
             lp_format_bytes(mapped, want), lp_format_bytes(available, have));
}

static lp_status load_all(const lp_loader *load) {
  LP_TRY(load_manifest(load));
  for (lp_place i = 0; i < load->bundle->manifest.place_count; i++)
    if ((load->options->load & (1u << i)) != 0) LP_TRY(load_side(load, i));
  if ((load->options->load & LP_LOAD_DEVICE) != 0) LP_TRY(load_tokenizer(load));
  if (load->bundle->verifier) lp_verifier_start(load->bundle->verifier);
  warn_of_memory(load);
  return LP_OK;
}

/* Tells whether the path is a model, which people take for a bundle: a file, or a folder of Hugging Face. */
static bool is_model(const char *path) {
  if (lp_has_suffix(path, ".onnx") || lp_has_suffix(path, ".gguf")) return lp_path_exists(path);
  LP_OWNED(lp_free_at)
  char *manifest = lp_path_join(path, "manifest.json"), *config = lp_path_join(path, "config.json");
  return !lp_path_exists(manifest) && lp_path_exists(config);
}

static lp_status refuse_model(const char *path, lp_diag *diag) {
  const char *base = lp_path_base(path);
  const bool is_file = lp_has_suffix(base, ".onnx") || lp_has_suffix(base, ".gguf");
  lp_status status = lp_error(diag, LP_LOC_FILE(path), "a model, not a bundle: compile it first");
  lp_note(diag, LP_LOC_NONE, "llmpart compile %s --device=host -o %.*s.llmpart", path,
          (int)(strlen(base) - (is_file ? 5 : 0)), base);
  return status;
}

lp_status lp_bundle_check_kind(const char *path, lp_diag *diag) {
  struct stat info;
  if (is_model(path)) return refuse_model(path, diag);
  if (stat(path, &info) != 0 || S_ISDIR(info.st_mode)) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(path),
                  "a file, not a bundle: a bundle is the folder that `llmpart compile` writes");
}

lp_status lp_bundle_load(const char *path, const lp_bundle_options *options, lp_bundle **out, lp_diag *diag) {
  lp_bundle *bundle = lp_alloc(sizeof *bundle);
  bundle->arena = lp_arena_create();
  bundle->path = lp_strdup(path);
  bundle->eos = -1;
  size_t length = strlen(bundle->path);
  while (length > 1 && bundle->path[length - 1] == '/')
    bundle->path[--length] = '\0';
  lp_bundle_options checks = *options;
  checks.check_hashes |= options->trust != NULL; /* a CRC-32C can be made to fit */
  const lp_loader load = {.bundle = bundle, .options = &checks, .diag = diag};
  lp_status status = lp_bundle_check_kind(bundle->path, diag);
  if (status == LP_OK) status = load_all(&load);
  if (status != LP_OK) {
    lp_bundle_free(bundle);
    bundle = NULL;
  }
  *out = bundle;
  return status;
}

void lp_bundle_free(lp_bundle *bundle) {
  if (!bundle) return;
  lp_verifier_free(bundle->verifier);
  for (lp_place i = 0; i < LP_PLACES_MAX; i++) {
    lp_loader_close_code(bundle->side[i].code);
    lp_gpu_free(bundle->side[i].gpu);
    lp_file_unmap(&bundle->side[i].weights);
  }
  lp_tokenizer_free(bundle->tokenizer);
  lp_manifest_clear(&bundle->manifest);
  lp_arena_free(bundle->arena);
  free(bundle->path);
  free(bundle);
}

bool lp_bundle_is_split(const lp_bundle *bundle) {
  return lp_manifest_others(&bundle->manifest) > 0;
}

int32_t lp_bundle_place_count(const lp_bundle *bundle) {
  return bundle->manifest.place_count;
}
const char *lp_bundle_place_name(const lp_bundle *bundle, lp_place place) {
  return bundle->manifest.place_name[place];
}

const lp_tokenizer *lp_bundle_tokenizer(const lp_bundle *bundle) {
  return bundle->tokenizer;
}
int32_t lp_bundle_vocab(const lp_bundle *bundle) {
  return bundle->manifest.vocab;
}
int32_t lp_bundle_ranks(const lp_bundle *bundle) {
  return bundle->manifest.side[LP_SIDE_CLOUD].ranks;
}
const char *lp_bundle_name(const lp_bundle *bundle) {
  return bundle->manifest.name;
}

bool lp_bundle_is_stop(const lp_bundle *bundle, int32_t token) {
  for (int32_t i = 0; i < bundle->manifest.stop_count; i++)
    if (bundle->manifest.stops[i] == token) return true;
  return token >= 0 && token == bundle->eos;
}
lp_sampling lp_bundle_sampling(const lp_bundle *bundle) {
  return bundle->manifest.sampling;
}
int64_t lp_bundle_context_length(const lp_bundle *bundle) {
  return bundle->manifest.context_length;
}

static bool has_input(const lp_bundle *bundle, lp_role role) {
  return lp_manifest_input(&bundle->manifest, role) >= 0;
}
bool lp_bundle_reads_source(const lp_bundle *bundle) {
  return has_input(bundle, LP_ROLE_SOURCE_TOKENS) || lp_bundle_reads_features(bundle);
}
bool lp_bundle_reads_features(const lp_bundle *bundle) {
  return has_input(bundle, LP_ROLE_SOURCE_FEATURES);
}
size_t lp_bundle_start(const lp_bundle *bundle, const int32_t **tokens) {
  *tokens = bundle->manifest.start;
  return (size_t)bundle->manifest.start_count;
}

/* the model gives hidden states, or embeddings */
bool lp_bundle_embeds(const lp_bundle *bundle) {
  const lp_manifest *manifest = &bundle->manifest;
  return lp_manifest_output(manifest, LP_ROLE_HIDDEN) >= 0 || lp_manifest_output(manifest, LP_ROLE_EMBEDDING) >= 0;
}

lp_status lp_bundle_await_check(const lp_bundle *bundle, lp_diag *diag) {
  return bundle->verifier ? lp_verifier_await(bundle->verifier, diag) : LP_OK;
}

/* Tells whether a pass computes the logits of every position. Only a model without KV caches does: its tokens attend to
 * later ones, so a token that is added changes the rows before it. */
static bool encodes(const lp_manifest *manifest) {
  const lp_tensor_desc *logits = &manifest->outputs[lp_manifest_output(manifest, LP_ROLE_LOGITS)].tensor;
  for (int32_t i = 0; i < logits->rank; i++)
    if (lp_poly_has(logits->shape[i], LP_SYM_S + 1)) return true;
  return false;
}

lp_status lp_bundle_check_generates(const lp_bundle *bundle, lp_diag *diag) {
  const lp_manifest *manifest = &bundle->manifest;
  const lp_loc loc = LP_LOC_FILE(manifest->file);
  if (manifest->plan_count == 0)
    return lp_error(diag, loc, "no program '%s', so the bundle cannot generate text",
                    lp_manifest_program(manifest, "prefill") < 0 ? "prefill" : "decode");
  for (int32_t i = 0; i < manifest->input_count; i++)
    if (manifest->inputs[i].role == LP_ROLE_DATA || manifest->inputs[i].role == LP_ROLE_LOGITS)
      return lp_error(diag, loc,
                      "input '%.80s' is neither tokens nor made by the runtime, so the bundle cannot generate text",
                      manifest->inputs[i].tensor.name);
  if (lp_bundle_embeds(bundle))
    return lp_error(diag, loc,
                    "the model gives hidden states and no logits, so the bundle cannot generate text; 'embeddings' of "
                    "`llmpart serve` serves it");
  bool reads = lp_manifest_input(manifest, LP_ROLE_TOKENS) >= 0;
  if (!reads || lp_manifest_output(manifest, LP_ROLE_LOGITS) < 0)
    return lp_error(diag, loc, "no %s, so the bundle cannot generate text",
                    reads ? "logits among the outputs" : "tokens among the inputs");
  if (encodes(manifest))
    return lp_error(diag, loc,
                    "the tokens attend to later ones, so the model encodes and cannot generate text; `llmpart verify` "
                    "computes its outputs");
  return LP_OK;
}
