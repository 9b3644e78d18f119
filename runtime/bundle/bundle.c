/* Loads a bundle: parses the manifest, maps the weights, opens the code with dlopen or hands it to gpu/, and compares
 * every file that it loads with the checksums of the manifest. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "base/seal.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/bundle_file.h"
#include "runtime/bundle/contract.h"
#include "runtime/bundle/manifest.h"
#include "runtime/bundle/safetensors.h"
#include "runtime/bundle/verifier.h"
#include "runtime/gpu/gpu.h"
#include "runtime/runtime.h"

typedef struct {
  lp_bundle *bundle;
  const lp_bundle_options *options;
  lp_diag *diag;
} loader;

static const char *file_path(lp_bundle *bundle, const char *relative) {
  return lp_arena_format(bundle->arena, "%s/%s", bundle->path, relative);
}

static lp_status parse_manifest(loader *load, const char *path, const lp_mapping *text) {
  const char *data = (const char *)text->data;
  lp_manifest *out = &load->bundle->manifest;
  LP_TRY(lp_manifest_parse(path, data ? data : "", text->size, load->bundle->arena, out, load->diag));
  if (lp_seal_holds(data, text->size)) return LP_OK;
  lp_status status = lp_error(load->diag, LP_LOC_FILE(path), "the seal is not that of this text");
  lp_note(load->diag, LP_LOC_FILE(path), "the file was changed after `llmpart compile`; compile the model again");
  return status;
}

static lp_status load_manifest(loader *load) {
  const char *path = file_path(load->bundle, "manifest.json");
  lp_mapping text;
  LP_TRY(lp_bundle_file_map(load->bundle->path, "manifest.json", path, &text, load->diag));
  lp_status status = parse_manifest(load, path, &text);
  lp_file_unmap(&text);
  return status;
}

static lp_status map_checked(loader *load, const lp_file_desc *want, const char *path, lp_mapping *out) {
  return lp_bundle_file_load(load->bundle->path, want, path, load->options->check_hashes, out, load->diag);
}

/* Checks a small file that another reader opens later by its path. */
static lp_status check_file(loader *load, const lp_file_desc *want, const char *path) {
  lp_mapping mapping = {0};
  lp_status status = map_checked(load, want, path, &mapping);
  lp_file_unmap(&mapping);
  return status;
}

static lp_status load_weights(loader *load, lp_side side) {
  lp_bundle *bundle = load->bundle;
  const lp_file_desc *want = bundle->manifest.side[side].weights;
  if (!want) return LP_OK;
  const char *path = file_path(bundle, want->path);
  lp_mapping *weights = &bundle->side[side].weights;
  LP_TRY(lp_bundle_file_open(bundle->path, want, path, weights, load->diag));
  size_t offset = 0;
  LP_TRY(lp_safetensors_check(path, weights, &offset, load->diag));
  if (weights->size - offset < (size_t)bundle->manifest.side[side].weight_bytes)
    return lp_error(load->diag, LP_LOC_FILE(path), "%zu bytes of weights; the code reads %" PRId64,
                    weights->size - offset, bundle->manifest.side[side].weight_bytes);
  bundle->side[side].data = (const char *)weights->data + offset;
  if (want->has_crc && !load->options->check_hashes) {
    if (!bundle->verifier) bundle->verifier = lp_verifier_create();
    lp_verifier_add(bundle->verifier, path, want, weights);
    return LP_OK;
  }
  if (!lp_bundle_file_checks_at_load(want, load->options->check_hashes)) return LP_OK;
  return lp_file_verify(path, want, weights->data, weights->size, load->options->check_hashes, load->diag);
}

/* ---- code -------------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
static const char host_arch[] = "x86_64";
#elif defined(__aarch64__)
static const char host_arch[] = "aarch64";
#else
static const char host_arch[] = "";
#endif

/* Tells whether this processor runs code that needs the level of x86-64. Older bundles name the level by `march`
 * only. */
static bool cpu_runs(const char *level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (lp_streq(level, "x86-64-v3")) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (lp_streq(level, "x86-64-v4")) return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
#endif
  (void)level;
  return true;
}

/* Reports the machine for which the half was compiled, and this one. */
static lp_status wrong_machine(loader *load, lp_side side, const char *path, const char *lacks) {
  const lp_side_desc *desc = &load->bundle->manifest.side[side];
  bool named = desc->machine[0] != '\0';
  lp_status status =
      lp_error(load->diag, LP_LOC_FILE(path), "code for %.60s%s%.60s%s%.60s%s; this machine is %s%s", desc->triple,
               desc->march[0] ? " (" : "", desc->march, named ? " of '" : "", desc->machine,
               named && desc->march[0] ? "')"
               : named                 ? "'"
               : desc->march[0]        ? ")"
                                       : "",
               host_arch, lacks);
  lp_note(load->diag, LP_LOC_FILE(path), "compile the %s's half for this machine: --march-%s=native",
          lp_side_name(side), lp_side_name(side));
  return status;
}

static lp_status check_machine(loader *load, lp_side side, const char *path) {
  const lp_side_desc *desc = &load->bundle->manifest.side[side];
  if (desc->triple[0] != '\0' && host_arch[0] != '\0' && !lp_has_prefix(desc->triple, host_arch))
    return wrong_machine(load, side, path, "");
  if (!cpu_runs(desc->level[0] ? desc->level : desc->march))
    return wrong_machine(load, side, path, " without the instructions that the code needs");
  return LP_OK;
}

/* ISO C has no conversion from object to function pointers; POSIX guarantees the same representation. */
static lp_status find_symbol(loader *load, lp_side side, const char *path, const char *name, void *out) {
  void *symbol = dlsym(load->bundle->side[side].code, name);
  if (!symbol) return lp_error(load->diag, LP_LOC_FILE(path), "the code has no symbol '%.80s'", name);
  memcpy(out, &symbol, sizeof symbol);
  return LP_OK;
}

static lp_status resolve_program(loader *load, lp_side side, const char *path, lp_program *program) {
  if (program->layout_name[side])
    LP_TRY(find_symbol(load, side, path, program->layout_name[side], &program->layout[side]));
  for (int32_t i = 0; i < program->step_count; i++) {
    lp_step *step = &program->step[i];
    if (step->kind == LP_STEP_RUN && step->side == side)
      LP_TRY(find_symbol(load, side, path, step->segment, &step->run));
  }
  return LP_OK;
}

/* ---- code for a GPU ---------------------------------------------------------------------------------------------- */

static lp_status resolve_gpu(loader *load, lp_side side, const char *path, lp_program *program) {
  const lp_gpu *gpu = load->bundle->side[side].gpu;
  if (!program->layout_name[side]) return LP_OK;
  int32_t layout = program->gpu_layout[side] = lp_gpu_find_layout(gpu, program->layout_name[side]);
  if (layout < 0 || lp_gpu_buffers(gpu, layout) != program->buffers[side])
    return lp_error(load->diag, LP_LOC_FILE(path), "there is no '%.80s' of %d buffers", program->layout_name[side],
                    program->buffers[side]);
  for (int32_t i = 0; i < program->step_count; i++) {
    lp_step *step = &program->step[i];
    if (step->kind != LP_STEP_RUN || step->side != side) continue;
    step->gpu_segment = lp_gpu_find_segment(gpu, step->segment, layout);
    step->part_count = 0; /* kernels mark no parts: the host does not see when one begins */
    if (step->gpu_segment < 0)
      return lp_error(load->diag, LP_LOC_FILE(path), "there is no '%.80s', or it does not fit the layout",
                      step->segment);
  }
  return LP_OK;
}

/* Notes the GPU for which the half was compiled. Older bundles do not name its machine. */
static void note_gpu(loader *load, lp_side side, const char *path) {
  const lp_side_desc *desc = &load->bundle->manifest.side[side];
  const bool named = desc->machine[0] != '\0';
  lp_note(load->diag, LP_LOC_FILE(path), "the %s's half was made for %s%.60s%s%.60s %.60s%s", lp_side_name(side),
          named ? "the GPU of '" : "", desc->machine, named ? "' (" : "", desc->triple, desc->march, named ? ")" : "");
}

static lp_status load_gpu(loader *load, lp_side side) {
  lp_bundle *bundle = load->bundle;
  const lp_side_desc *desc = &bundle->manifest.side[side];
  const char *path = file_path(bundle, desc->code->path), *kernels_path = file_path(bundle, desc->kernels->path);
  lp_side_code *code = &bundle->side[side];
  lp_mapping table = {0}, kernels = {0};
  lp_status status = map_checked(load, desc->code, path, &table);
  if (status == LP_OK) status = lp_contract_check(&bundle->manifest, path, &table, load->diag);
  if (status == LP_OK) status = map_checked(load, desc->kernels, kernels_path, &kernels);
  if (status == LP_OK) {
    const lp_gpu_source source = {
        .kernels_file = kernels_path,
        .kernels = (const char *)kernels.data,
        .kernels_size = kernels.size,
        .table_file = path,
        .table = (const char *)table.data,
        .table_size = table.size,
        .weights = code->data,
        .weight_bytes = code->data ? code->weights.size - (size_t)(code->data - (const char *)code->weights.data) : 0,
        .states = bundle->manifest.state_count};
    status = lp_gpu_create(&source, &code->gpu, load->diag);
    if (status != LP_OK) note_gpu(load, side, path);
  }
  code->sequences = status == LP_OK && lp_gpu_runs_sequences(code->gpu);
  lp_file_unmap(&table);
  lp_file_unmap(&kernels);
  for (int32_t i = 0; i < bundle->manifest.program_count && status == LP_OK; i++)
    status = resolve_gpu(load, side, path, &bundle->manifest.programs[i]);
  return status;
}

/* ---- code for this processor ------------------------------------------------------------------------------------- */

/* Checks the file, and that it is the code that the manifest describes. */
static lp_status check_code(loader *load, const lp_file_desc *want, const char *path) {
  lp_mapping code = {0};
  lp_status status = map_checked(load, want, path, &code);
  if (status == LP_OK) status = lp_contract_check(&load->bundle->manifest, path, &code, load->diag);
  lp_file_unmap(&code);
  return status;
}

static lp_status load_code(loader *load, lp_side side) {
  lp_bundle *bundle = load->bundle;
  const lp_file_desc *want = bundle->manifest.side[side].code;
  if (!want) return LP_OK;
  if (bundle->manifest.side[side].kernels) return load_gpu(load, side);
  const char *path = file_path(bundle, want->path);
  LP_TRY(check_code(load, want, path));
  LP_TRY(check_machine(load, side, path));
  /* dlopen searches for a name without a slash; a path keeps it from doing so. */
  const char *direct = strchr(path, '/') ? path : lp_arena_format(bundle->arena, "./%s", path);
  bundle->side[side].code = dlopen(direct, RTLD_NOW | RTLD_LOCAL);
  if (!bundle->side[side].code)
    return lp_error(load->diag, LP_LOC_FILE(path), "the code cannot be loaded: %s", dlerror());
  const uint32_t *abi = NULL;
  LP_TRY(find_symbol(load, side, path, "lp_abi", &abi));
  if (*abi != LP_ABI_VERSION)
    return lp_error(load->diag, LP_LOC_FILE(path), "code of ABI %" PRIu32 "; this runtime runs ABI %u", *abi,
                    LP_ABI_VERSION);
  const uint32_t *sequences = dlsym(bundle->side[side].code, "lp_sequences");
  bundle->side[side].sequences = sequences && *sequences != 0;
  for (int32_t i = 0; i < bundle->manifest.program_count; i++)
    LP_TRY(resolve_program(load, side, path, &bundle->manifest.programs[i]));
  return LP_OK;
}

static lp_status load_side(loader *load, lp_side side) {
  if (!load->bundle->manifest.side[side].present) return LP_OK;
  LP_TRY(load_weights(load, side));
  LP_TRY(load_code(load, side));
  load->bundle->side[side].loaded = true;
  return LP_OK;
}

/* ---- tokenizer; the whole ---------------------------------------------------------------------------------------- */

/* Checks a file that the tokenizer opens if it exists: the manifest must list it. */
static lp_status check_companion(loader *load, const char *name) {
  const lp_manifest *manifest = &load->bundle->manifest;
  const char *path = file_path(load->bundle, name);
  for (int32_t i = 0; i < manifest->file_count; i++)
    if (lp_streq(manifest->files[i].path, name)) return check_file(load, &manifest->files[i], path);
  return lp_path_exists(path) ? lp_error(load->diag, LP_LOC_FILE(path), "the manifest does not list this file") : LP_OK;
}

static lp_status load_tokenizer(loader *load) {
  lp_bundle *bundle = load->bundle;
  const lp_file_desc *want = bundle->manifest.tokenizer;
  if (!want) return LP_OK;
  static const char *const companion[] = {"tokenizer_config.json", "chat_template.jinja"};
  for (size_t i = 0; i < LP_COUNT(companion); i++)
    LP_TRY(check_companion(load, companion[i]));
  const char *path = file_path(bundle, want->path);
  LP_TRY(check_file(load, want, path));
  LP_TRY(lp_tokenizer_load(path, &bundle->tokenizer, load->diag));
  bundle->eos = lp_tokenizer_eos(bundle->tokenizer);
  return LP_OK;
}

static lp_status load_all(loader *load) {
  LP_TRY(load_manifest(load));
  for (int i = 0; i < LP_SIDE_COUNT; i++)
    if ((load->options->load & (1u << i)) != 0) LP_TRY(load_side(load, (lp_side)i));
  if ((load->options->load & LP_LOAD_DEVICE) != 0) LP_TRY(load_tokenizer(load));
  if (load->bundle->verifier) lp_verifier_start(load->bundle->verifier);
  return LP_OK;
}

lp_status lp_bundle_load(const char *path, const lp_bundle_options *options, lp_bundle **out, lp_diag *diag) {
  lp_bundle *bundle = lp_alloc(sizeof *bundle);
  bundle->arena = lp_arena_create();
  bundle->path = lp_strdup(path);
  bundle->eos = -1;
  size_t length = strlen(bundle->path);
  while (length > 1 && bundle->path[length - 1] == '/')
    bundle->path[--length] = '\0';
  loader load = {.bundle = bundle, .options = options, .diag = diag};
  lp_status status;
  if (lp_has_suffix(bundle->path, ".onnx") && lp_path_exists(bundle->path))
    status = lp_error(diag, LP_LOC_FILE(path), "a model, not a bundle: compile it first");
  else
    status = load_all(&load);
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
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    if (bundle->side[i].code) dlclose(bundle->side[i].code);
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
  for (int32_t i = 0; i < bundle->manifest.program_count; i++)
    if (bundle->manifest.programs[i].takes_part[LP_SIDE_CLOUD]) return true;
  return false;
}

const lp_tokenizer *lp_bundle_tokenizer(const lp_bundle *bundle) {
  return bundle->tokenizer;
}
int32_t lp_bundle_vocab(const lp_bundle *bundle) {
  return bundle->manifest.vocab;
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
                      "input '%.80s' is neither tokens nor made by the runtime, so the bundle "
                      "cannot generate text",
                      manifest->inputs[i].tensor.name);
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
