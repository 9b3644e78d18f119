/* opencl: kernels in OpenCL C and a launch list, for GPUs that share memory with the device's processor. */
#include "backend/backends.h"

#include "backend/gpu/print.h"
#include "backend/gpu/rules.h"

static const gpu_word words[] = {{"kernel", "__kernel"},
                                 {"after", "(void)0"},
                                 {"device", "static"},
                                 {"global", "__global"},
                                 {"shared", "__local"},
                                 {"restrict", "restrict"},
                                 {"sync", "barrier(CLK_LOCAL_MEM_FENCE)"},
                                 {"size", "long"},
                                 {"unroll", "#pragma unroll"},
                                 {"thread", "(int)get_local_id(0)"},
                                 {"block_x", "(int)get_group_id(0)"},
                                 {"block_y", "(int)get_group_id(1)"},
                                 {"as_float", "as_float"},
                                 {NULL, NULL}};

/* Kernels that multiply halves are added only for machines that are faster with them: they make the text longer. */
static gpu_dialect dialect_for(const lp_emit_options *options) {
  return (gpu_dialect){.name = "opencl",
                       .words = words,
                       .prologue = "opencl_prologue",
                       .rounded = "opencl_rounded",
                       .halves = options->halves ? GPU_HALVES_BY_DEVICE : GPU_HALVES_NEVER};
}

typedef lp_status list_work(const gpu_launch_list *list, const gpu_dialect *dialect, void *user, lp_diag *diag);

static lp_status with_list(lp_module *module, const lp_emit_options *options, list_work *work, void *user,
                           lp_diag *diag) {
  const gpu_dialect dialect = dialect_for(options);
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  gpu_launch_list *list = NULL;
  lp_status status = gpu_launches_create(module, options->side, &dialect, arena, &list, diag);
  if (status == LP_OK) {
    list->contract = options->contract;
    status = work(list, &dialect, user, diag);
  }
  gpu_launches_free(list);
  return status;
}

static lp_status emit_kernels(const gpu_launch_list *list, const gpu_dialect *dialect, void *user, lp_diag *diag) {
  (void)diag;
  gpu_print_kernels(list, dialect, false, user);
  return LP_OK;
}

static lp_status emit_launches(const gpu_launch_list *list, const gpu_dialect *dialect, void *user, lp_diag *diag) {
  (void)diag;
  gpu_print_table(list, dialect, user);
  return LP_OK;
}

static lp_status opencl_emit(lp_module *module, const lp_emit_options *options, lp_emit_form form, lp_buf *out,
                             lp_diag *diag) {
  if (form == LP_EMIT_SOURCE || form == LP_EMIT_KERNELS) return with_list(module, options, emit_kernels, out, diag);
  if (form == LP_EMIT_LAUNCHES) return with_list(module, options, emit_launches, out, diag);
  return lp_error(diag, LP_LOC_NONE, "the opencl backend emits source code and launches only");
}

typedef struct {
  lp_arena *arena;
  lp_code *out;
} description;

static lp_status describe_list(const gpu_launch_list *list, const gpu_dialect *dialect, void *user, lp_diag *diag) {
  const description *d = user;
  (void)dialect, (void)diag;
  gpu_launches_describe(list, "opencl", "1.2", d->arena, d->out);
  return LP_OK;
}

static lp_status opencl_describe(lp_module *module, const lp_emit_options *options, lp_arena *arena, lp_code *out,
                                 lp_diag *diag) {
  description d = {arena, out};
  return with_list(module, options, describe_list, &d, diag);
}

static lp_status write_list(const gpu_launch_list *list, const gpu_dialect *dialect, void *user, lp_diag *diag) {
  (void)dialect;
  return gpu_weights_write(&list->constants, list->module, user, diag);
}

static lp_status opencl_write_weights(lp_module *module, const lp_emit_options *options, lp_writer *writer,
                                      lp_diag *diag) {
  return with_list(module, options, write_list, writer, diag);
}

const lp_backend lp_backend_opencl = {
    .name = "opencl",
    .summary = "OpenCL C 1.2 for GPUs of devices",
    .emits_code = true,
    .kernels = "kernels.cl",
    .runs = gpu_op_runs,
    .emit = opencl_emit,
    .describe = opencl_describe,
    .write_weights = opencl_write_weights,
};
