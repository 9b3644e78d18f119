/* The CUDA backend's table, and the folder that --emit=cuda writes. */
#include "backend/backends.h"

#include "backend/cuda/cuda_internal.h"
#include "backend/folder.h"
#include "backend/gpu/builder.h"
#include "backend/gpu/print.h"
#include "backend/gpu/rules.h"
#include "base/dir.h"
#include "base/json/writer.h"
#include "base/nvrtc/nvrtc.h"
#include "base/path.h"

static const gpu_word words[] = {{"kernel", "extern \"C\" __global__"},
                                 {"device", "__device__ __forceinline__"},
                                 {"global", ""},
                                 {"shared", "__shared__"},
                                 {"restrict", "__restrict__"},
                                 {"sync", "__syncthreads()"},
                                 {"after", "after_others()"},
                                 {"size", "Size"},
                                 {"unroll", "#pragma unroll"},
                                 {"thread", "(int)threadIdx.x"},
                                 {"block_x", "(int)blockIdx.x"},
                                 {"block_y", "(int)blockIdx.y"},
                                 {"as_float", "__uint_as_float"},
                                 {NULL, NULL}};

static const gpu_dialect dialect = {.name = "cuda",
                                    .words = words,
                                    .prologue = "cuda_prologue",
                                    .tensor = "cuda_tensor",
                                    .rounded = "cuda_rounded",
                                    .halves = GPU_HALVES_BY_ARCHITECTURE,
                                    .products = true};

/* ---- architectures ----------------------------------------------------------------------------------------------- */

static const char *const architectures[] = {"sm_53", "sm_60", "sm_61", "sm_70", "sm_72", "sm_75",
                                            "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100"};
static const char default_architecture[] = "sm_80", triple[] = "nvptx64-nvidia-cuda";

static int number_of(const char *architecture) {
  return lp_has_prefix(architecture, "sm_") ? atoi(architecture + strlen("sm_")) : 0;
}

static lp_status find_architecture(const char *march, lp_loc loc, int *sm, lp_diag *diag) {
  const char *near = architectures[0];
  if (lp_streq(march, "native")) march = default_architecture;
  const int wanted = number_of(march);
  for (size_t i = 0; i < LP_COUNT(architectures); i++) {
    *sm = number_of(architectures[i]);
    if (lp_streq(architectures[i], march)) return LP_OK;
    if (abs(*sm - wanted) < abs(number_of(near) - wanted)) near = architectures[i];
  }
  lp_status status = lp_error(diag, loc, "'%s' is not a CUDA architecture that llmpart knows", march);
  lp_note(diag, LP_LOC_NONE, "the nearest that it knows is '%s'", near);
  lp_note(diag, LP_LOC_NONE,
          "known: sm_53, sm_60, sm_61, sm_70, sm_72, sm_75, sm_80, sm_86, sm_87, sm_89, sm_90, sm_100");
  return status;
}

/* ---- with a list ------------------------------------------------------------------------------------------------- */

typedef lp_status list_work(gpu_launch_list *list, int sm, void *user, lp_diag *diag);

static lp_status check_march(const char *march, lp_loc loc, lp_diag *diag) {
  int sm;
  return find_architecture(march, loc, &sm, diag);
}

static lp_status with_list(lp_module *module, const lp_emit_options *options, list_work *work, void *user,
                           lp_diag *diag) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  gpu_launch_list *list = NULL;
  int sm = 0;
  lp_status status = find_architecture(options->march, LP_LOC_FILE("--march"), &sm, diag);
  if (status == LP_OK) status = gpu_launches_create(module, options->side, &dialect, arena, &list, diag);
  if (status == LP_OK) {
    list->contract = options->contract;
    status = work(list, sm, user, diag);
  }
  gpu_launches_free(list);
  return status;
}

/* ---- the backend's functions ------------------------------------------------------------------------------------- */

/* kernels.cuh and cloud.cu as one text. */
static lp_status emit_source(gpu_launch_list *list, int sm, void *user, lp_diag *diag) {
  static const char include[] = "#include \"kernels.cuh\"\n";
  (void)sm, (void)diag;
  lp_buf *out = user, kernels = {0}, host = {0};
  gpu_print_kernels(list, &dialect, false, &kernels);
  cuda_print_host(list, &dialect, &host);
  const char *text = strstr(lp_buf_text(&kernels), "#pragma once\n"), *cut = strstr(lp_buf_text(&host), include);
  lp_buf_puts(out, text ? text + strlen("#pragma once\n") : lp_buf_text(&kernels));
  lp_buf_puts(out, cut ? cut + strlen(include) : lp_buf_text(&host));
  lp_buf_free(&kernels);
  lp_buf_free(&host);
  return LP_OK;
}

static lp_status emit_kernels(gpu_launch_list *list, int sm, void *user, lp_diag *diag) {
  (void)sm, (void)diag;
  gpu_print_kernels(list, &dialect, true, user);
  gpu_print_text(&dialect, gpu_template("cuda_top"), user);
  return LP_OK;
}

/* PTX of the kernels for architecture `sm` and newer. */
static lp_status emit_ptx(gpu_launch_list *list, int sm, void *user, lp_diag *diag) {
  enum { NEWEST_CUDA = 13, EVERY_GPU_CUDA = 12 /* knows sm_53 to sm_90 */ };
  lp_nvrtc *nvrtc;
  if (!lp_nvrtc_open(NEWEST_CUDA, &nvrtc))
    return lp_nvrtc_report_absent("--emit", EVERY_GPU_CUDA,
                                  "emit the source with --emit=cuda, and compile it where NVRTC is", diag);
  lp_buf text = {0}, *out = user;
  lp_status status = emit_kernels(list, sm, &text, diag);
  const char *const options[] = {gpu_format(list, "--gpu-architecture=compute_%d", sm), "--std=c++14"};
  const lp_nvrtc_source source = {"--emit", text.data, text.size};
  if (status == LP_OK) status = lp_nvrtc_compile(nvrtc, &source, options, LP_COUNT(options), true, out, diag);
  if (out->size > 0 && out->data[out->size - 1] == '\0') out->size--; /* NVRTC counts the end of the text */
  lp_buf_free(&text);
  lp_nvrtc_close(nvrtc);
  return status;
}

static lp_status emit_launches(gpu_launch_list *list, int sm, void *user, lp_diag *diag) {
  (void)sm, (void)diag;
  gpu_print_table(list, &dialect, user);
  return LP_OK;
}

static lp_status cuda_emit(lp_module *module, const lp_emit_options *options, lp_emit_form form, lp_buf *out,
                           lp_diag *diag) {
  switch (form) {
  case LP_EMIT_SOURCE:
    return with_list(module, options, emit_source, out, diag);
  case LP_EMIT_KERNELS:
    return with_list(module, options, emit_kernels, out, diag);
  case LP_EMIT_PTX:
    return with_list(module, options, emit_ptx, out, diag);
  case LP_EMIT_LAUNCHES:
    return with_list(module, options, emit_launches, out, diag);
  default:
    return lp_error(diag, LP_LOC_NONE, "the cuda backend emits source code and launches only");
  }
}

typedef struct {
  lp_arena *arena; /* the caller's: outlives the list */
  lp_code *out;
} description;

static lp_status describe_list(gpu_launch_list *list, int sm, void *user, lp_diag *diag) {
  (void)diag;
  const description *d = user;
  gpu_launches_describe(list, triple, lp_arena_format(d->arena, "sm_%d", sm), d->arena, d->out);
  return LP_OK;
}

static lp_status cuda_describe(lp_module *module, const lp_emit_options *options, lp_arena *arena, lp_code *out,
                               lp_diag *diag) {
  description d = {arena, out};
  return with_list(module, options, describe_list, &d, diag);
}

static lp_status write_list(gpu_launch_list *list, int sm, void *user, lp_diag *diag) {
  (void)sm;
  return gpu_weights_write(&list->constants, list->module, user, diag);
}

static lp_status cuda_write_weights(lp_module *module, const lp_emit_options *options, lp_writer *writer,
                                    lp_diag *diag) {
  return with_list(module, options, write_list, writer, diag);
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *folder;
  const lp_module *module;
  const lp_emit_options *options;
} destination;

static const char *side_of(const destination *d) {
  return lp_module_place_name(d->module, d->options->side);
}

static lp_status write_file(const destination *d, const char *name, const lp_buf *text, lp_diag *diag) {
  return lp_folder_put(d->folder, name, lp_buf_text(text), text->size, diag);
}

static lp_status write_sources(gpu_launch_list *list, int sm, const destination *d, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  gpu_print_kernels(list, &dialect, false, &text);
  lp_status status = write_file(d, "kernels.cuh", &text, diag);
  lp_buf_clear(&text);
  cuda_print_host(list, &dialect, &text);
  if (status == LP_OK) status = write_file(d, lp_arena_format(list->arena, "%s.cu", side_of(d)), &text, diag);
  lp_buf_clear(&text);
  const char *const params[] = {"SIDE", side_of(d), "SM", gpu_format(list, "%d", sm), NULL};
  lp_buf_puts(&text, gpu_fill(list, gpu_template("cuda_cmake"), params));
  if (status == LP_OK) status = write_file(d, "CMakeLists.txt", &text, diag);
  return status;
}

/* Names the functions for the program that loads the code, and marks the folder as one that may be replaced. */
static lp_status write_manifest(gpu_launch_list *list, int sm, const destination *d, lp_diag *diag) {
  lp_code code;
  gpu_launches_describe(list, triple, gpu_format(list, "sm_%d", sm), list->arena, &code);
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_json_writer w = lp_json_document_begin(&text, (lp_json_style){.indent = 2}, "llmpart.cuda/1");
  lp_json_put_text(&w, "side", side_of(d));
  lp_json_put_array(&w, "files");
  lp_json_put_text(&w, NULL, "kernels.cuh");
  lp_json_put_text(&w, NULL, gpu_format(list, "%s.cu", side_of(d)));
  lp_json_put_text(&w, NULL, "CMakeLists.txt");
  lp_json_put_text(&w, NULL, "weights.safetensors");
  lp_json_put_end(&w);
  lp_json_put_text(&w, "march", code.march);
  lp_json_put_integer(&w, "weight_bytes", code.weight_bytes);
  lp_json_put_object(&w, "programs");
  LP_FOR_EACH(const lp_code_program, program, code.program, code.program_count) {
    lp_json_put_object(&w, program->name);
    lp_json_put_text(&w, "layout", program->layout);
    lp_json_put_integer(&w, "buffers", program->buffers);
    lp_json_put_array(&w, "segments");
    for (int64_t k = 0; k < program->segment_count; k++)
      lp_json_put_text(&w, NULL, program->segment[k]);
    lp_json_put_end(&w);
    lp_json_put_end(&w);
  }
  lp_json_put_end(&w);
  lp_json_put_end(&w);
  lp_buf_puts(&text, "\n");
  return write_file(d, "manifest.json", &text, diag);
}

static lp_status write_folder(gpu_launch_list *list, int sm, void *user, lp_diag *diag) {
  const destination *d = user;
  LP_TRY(lp_dir_check_space(d->folder, (uint64_t)list->constants.bytes, diag));
  LP_TRY(write_sources(list, sm, d, diag));
  LP_TRY(write_manifest(list, sm, d, diag));
  char *path = lp_path_join(d->folder, "weights.safetensors");
  lp_writer *writer = NULL;
  lp_status status = lp_writer_open(path, &writer, diag);
  free(path);
  LP_TRY(status);
  status = gpu_weights_write(&list->constants, list->module, writer, diag);
  return lp_writer_end(writer, status, diag);
}

typedef struct {
  lp_module *module;
  const lp_emit_options *options;
} source;

static lp_status fill_folder(void *user, const char *folder, lp_diag *diag) {
  lp_module *module = ((const source *)user)->module;
  destination d = {folder, module, ((const source *)user)->options};
  return with_list(module, d.options, write_folder, &d, diag);
}

lp_status lp_cuda_write(lp_module *module, const lp_emit_options *options, const char *path, lp_diag *diag) {
  source s = {module, options};
  return lp_folder_write(path, fill_folder, &s, diag);
}

const lp_backend lp_backend_cuda = {
    .name = "cuda",
    .summary = "CUDA C++ for NVIDIA GPUs",
    .emits_code = true,
    .sharded = true,
    .joins = true,
    .kernels = "kernels.cu",
    .runs = gpu_op_runs,
    .emit = cuda_emit,
    .check_march = check_march,
    .describe = cuda_describe,
    .write_weights = cuda_write_weights,
};
