/* Loads the code of a side: opens a shared object, or hands kernels to gpu/. A half for a GPU that is not
 * there has another form where it was compiled with --fallback=cpu. */
#include "runtime/bundle/code.h"

#ifndef LP_STATIC
#include <dlfcn.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "base/amx.h"
#include "runtime/bundle/bundle_file.h"
#include "runtime/bundle/manifest.h"
#include "runtime/bundle/object.h"
#include "runtime/gpu/gpu.h"

const char *lp_loader_path(const lp_loader *load, const char *relative) {
  return lp_arena_format(load->bundle->arena, "%s/%s", load->bundle->path, relative);
}

lp_status lp_loader_map(const lp_loader *load, const lp_file_desc *want, const char *path, lp_mapping *out) {
  return lp_bundle_file_load(load->bundle->path, want, path, load->options->check_hashes, out, load->diag);
}

static const char *place_name(const lp_loader *load, lp_place side) {
  return load->bundle->manifest.place_name[side];
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

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

#if defined(__x86_64__)
/* Tells whether the processor has the tiles of AMX with products of bytes, and of bf16; those that have the latter have
 * the former (Intel SDM, CPUID leaf 7). */
static bool has_amx(bool bf16) {
  enum { BF16 = 1 << 22, TILE = 1 << 24, INT8 = 1 << 25 };
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  unsigned wanted = TILE | INT8 | (bf16 ? BF16 : 0);
  return (d & wanted) == wanted && __builtin_cpu_supports("avx512vnni") &&
         (!bf16 || __builtin_cpu_supports("avx512bf16"));
}
#endif

/* Tells whether this processor has an instruction set; one that is not known here is assumed absent. */
static bool cpu_has(const char *feature) {
#if defined(__x86_64__)
  if (lp_streq(feature, "avx512vnni")) return __builtin_cpu_supports("avx512vnni");
  if (lp_streq(feature, "avx512bf16")) return __builtin_cpu_supports("avx512bf16");
  if (lp_streq(feature, "avxvnni")) return __builtin_cpu_supports("avxvnni");
  if (lp_streq(feature, "amx-int8") || lp_streq(feature, "amx-bf16")) return has_amx(lp_streq(feature, "amx-bf16"));
#elif defined(__aarch64__) && defined(__linux__)
  if (lp_streq(feature, "dotprod")) return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  if (lp_streq(feature, "i8mm")) return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
  if (lp_streq(feature, "bf16")) return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
#elif defined(__aarch64__)
  if (lp_streq(feature, "dotprod")) return true; /* every processor of Apple's */
#endif
  return feature[0] == '\0';
}

/* Reports the machine for which the half was compiled, and this one. */
static lp_status wrong_machine(const lp_loader *load, lp_place side, const char *path, const char *lacks) {
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
  const bool two = load->bundle->manifest.place_count == LP_SIDE_COUNT;
  const char *name = place_name(load, side);
  lp_note(load->diag, LP_LOC_FILE(path), "compile the %s's half for this machine: --march%s%s=native", name,
          two ? "-" : "", two ? name : "");
  return status;
}

static lp_status check_machine(const lp_loader *load, lp_place side, const char *path) {
  const lp_side_desc *desc = &load->bundle->manifest.side[side];
  if (desc->triple[0] != '\0' && host_arch[0] != '\0' && !lp_has_prefix(desc->triple, host_arch))
    return wrong_machine(load, side, path, "");
  if (!cpu_runs(desc->level[0] ? desc->level : desc->march) || !cpu_has(desc->feature))
    return wrong_machine(load, side, path, " without the instructions that the code needs");
  if (lp_has_prefix(desc->feature, "amx-") && !lp_amx_request())
    return wrong_machine(load, side, path, ", where the operating system denies the tiles of AMX to this process");
  return LP_OK;
}

/* ---- shared objects ---------------------------------------------------------------------------------------------- */

#ifdef LP_STATIC
static lp_status open_object(const lp_loader *load, const char *path, const lp_mapping *file, void **out) {
  lp_object *object = NULL;
  lp_status status = lp_object_open(path, file->data, file->size, &object, load->diag);
  *out = object;
  return status;
}

static void *find_in_object(void *code, const char *name) {
  return lp_object_find(code, name);
}

void lp_loader_close_code(void *code) {
  lp_object_close(code);
}
#else
static lp_status open_object(const lp_loader *load, const char *path, const lp_mapping *file, void **out) {
  (void)file;
  /* dlopen searches for a name without a slash; a path keeps it from doing so. */
  *out = dlopen(strchr(path, '/') ? path : lp_arena_format(load->bundle->arena, "./%s", path), RTLD_NOW | RTLD_LOCAL);
  if (*out) return LP_OK;
  return lp_error(load->diag, LP_LOC_FILE(path), "the code cannot be loaded: %s", dlerror());
}

static void *find_in_object(void *code, const char *name) {
  return dlsym(code, name);
}

void lp_loader_close_code(void *code) {
  if (code) dlclose(code);
}
#endif

/* ISO C has no conversion from object to function pointers; POSIX guarantees the same representation. gcc 12's analyzer
 * takes a pointer whose bytes are copied for an uninitialized integer. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-use-of-uninitialized-value"
#endif
static lp_status find_symbol(const lp_loader *load, lp_place side, const char *path, const char *name, void *out) {
  void *symbol = find_in_object(load->bundle->side[side].code, name);
  if (!symbol) return lp_error(load->diag, LP_LOC_FILE(path), "the code has no symbol '%.80s'", name);
  memcpy(out, &symbol, sizeof symbol);
  return LP_OK;
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

static lp_status resolve_program(const lp_loader *load, lp_place side, const char *path, lp_program *program) {
  if (program->layout_name[side])
    LP_TRY(find_symbol(load, side, path, program->layout_name[side], &program->layout[side]));
  LP_FOR_EACH(lp_step, step, program->step, program->step_count)
    if (step->kind == LP_STEP_RUN && step->side == side)
      LP_TRY(find_symbol(load, side, path, step->segment, &step->run));
  return LP_OK;
}

/* ---- code for a GPU ---------------------------------------------------------------------------------------------- */

static lp_status resolve_gpu(const lp_loader *load, lp_place side, const char *path, lp_program *program) {
  const lp_gpu *gpu = load->bundle->side[side].gpu;
  if (!program->layout_name[side]) return LP_OK;
  int32_t layout = program->gpu_layout[side] = lp_gpu_find_layout(gpu, program->layout_name[side]);
  if (layout < 0 || lp_gpu_buffers(gpu, layout) != program->buffers[side])
    return lp_error(load->diag, LP_LOC_FILE(path), "there is no '%.80s' of %d buffers", program->layout_name[side],
                    program->buffers[side]);
  LP_FOR_EACH(lp_step, step, program->step, program->step_count) {
    if (step->kind != LP_STEP_RUN || step->side != side) continue;
    step->gpu_segment = lp_gpu_find_segment(gpu, step->segment, layout);
    if (!lp_gpu_is_profiled(gpu)) step->part_count = 0; /* its run marks no parts */
    if (step->gpu_segment < 0)
      return lp_error(load->diag, LP_LOC_FILE(path), "there is no '%.80s', or it does not fit the layout",
                      step->segment);
  }
  return LP_OK;
}

/* Notes the GPU for which the half was compiled. Older bundles do not name its machine. */
static void note_gpu(const lp_loader *load, lp_place side, const char *path) {
  const lp_side_desc *desc = &load->bundle->manifest.side[side];
  const bool named = desc->machine[0] != '\0';
  lp_note(load->diag, LP_LOC_FILE(path), "the %s's half was made for %s%.60s%s%.60s %.60s%s", place_name(load, side),
          named ? "the GPU of '" : "", desc->machine, named ? "' (" : "", desc->triple, desc->march, named ? ")" : "");
}

/* With another form of the half, a GPU that cannot run this one is a warning. */
static lp_status create_gpu(const lp_loader *load, lp_place side, const lp_gpu_source *source, bool *falls_back) {
  lp_gpu **gpu = &load->bundle->side[side].gpu;
  if (!load->bundle->manifest.side[side].fallback) return lp_gpu_create(source, gpu, load->diag);
  LP_OWNED(lp_diag_free_at) lp_diag *own = lp_diag_create();
  *falls_back = lp_gpu_create(source, gpu, own) != LP_OK;
  if (*falls_back)
    lp_warning(load->diag, LP_LOC_FILE(source->kernels_file), "%s; the %s's half runs on the processor instead",
               lp_diag_count(own) > 0 ? lp_diag_get(own, 0)->text : "the GPU cannot run the code",
               place_name(load, side));
  return LP_OK;
}

static lp_status load_gpu(const lp_loader *load, lp_place side, bool *falls_back) {
  lp_bundle *bundle = load->bundle;
  const lp_side_desc *desc = &bundle->manifest.side[side];
  const char *path = lp_loader_path(load, desc->code->path), *kernels_path = lp_loader_path(load, desc->kernels->path);
  lp_side_code *code = &bundle->side[side];
  lp_mapping table = {0}, kernels = {0};
  lp_status status = lp_loader_map(load, desc->code, path, &table);
  if (status == LP_OK) status = lp_contract_check(&bundle->manifest, path, &table, load->diag);
  if (status == LP_OK) status = lp_loader_map(load, desc->kernels, kernels_path, &kernels);
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
        .states = bundle->manifest.state_count,
        .number = desc->ranks > 1 ? load->options->gpu : 0};
    status = create_gpu(load, side, &source, falls_back);
    if (status != LP_OK) note_gpu(load, side, path);
  }
  code->sequences = code->gpu && lp_gpu_runs_sequences(code->gpu);
  lp_file_unmap(&table);
  lp_file_unmap(&kernels);
  for (int32_t i = 0; i < bundle->manifest.program_count && status == LP_OK && code->gpu; i++)
    status = resolve_gpu(load, side, path, &bundle->manifest.programs[i]);
  return status;
}

/* ---- code for this processor ------------------------------------------------------------------------------------- */

/* Opens the code, once the file is known to be what the manifest describes, and this machine to run it. */
static lp_status open_code(const lp_loader *load, lp_place side, const char *path) {
  const lp_file_desc *want = load->bundle->manifest.side[side].code;
  lp_mapping code = {0};
  lp_status status = lp_loader_map(load, want, path, &code);
  if (status == LP_OK) status = lp_contract_check(&load->bundle->manifest, path, &code, load->diag);
  if (status == LP_OK) status = check_machine(load, side, path);
  if (status == LP_OK) status = open_object(load, path, &code, &load->bundle->side[side].code);
  lp_file_unmap(&code);
  return status;
}

lp_status lp_loader_load_code(const lp_loader *load, lp_place side, bool *falls_back) {
  lp_bundle *bundle = load->bundle;
  const lp_file_desc *want = bundle->manifest.side[side].code;
  *falls_back = false;
  if (!want) return LP_OK;
  if (bundle->manifest.side[side].kernels) return load_gpu(load, side, falls_back);
  const char *path = lp_loader_path(load, want->path);
  LP_TRY(open_code(load, side, path));
  const uint32_t *abi = NULL;
  LP_TRY(find_symbol(load, side, path, "lp_abi", &abi));
  if (*abi != LP_ABI_VERSION)
    return lp_error(load->diag, LP_LOC_FILE(path), "code of ABI %" PRIu32 "; this runtime runs ABI %u", *abi,
                    LP_ABI_VERSION);
  const uint32_t *sequences = find_in_object(bundle->side[side].code, "lp_sequences");
  bundle->side[side].sequences = sequences && *sequences != 0;
  for (int32_t i = 0; i < bundle->manifest.program_count; i++)
    LP_TRY(resolve_program(load, side, path, &bundle->manifest.programs[i]));
  return LP_OK;
}
