/* Determines the target of each half: that of its machine, unless options say otherwise. */
#include "tools/compile/compile.h"

#include "backend/backend.h"
#include "ir/ir.h"
#include "passes/plan/plan.h"

static bool names_gpu(const char *march) {
  return lp_has_prefix(march, "sm_");
}

/* Tells whether --march=`march` applies to code of this backend. OpenCL's code is compiled on the machine that runs
 * it. */
static bool fits(const char *march, const char *backend) {
  return march && !lp_streq(backend, "opencl") && names_gpu(march) == lp_streq(backend, "cuda");
}

static const char *name_of(const lp_compile *compile, lp_place place) {
  return compile->has_more_places ? compile->place_name[place] : lp_side_name((lp_side)place);
}

/* Options name the halves of two sides; those of the cloud apply to every place but the device. */
static lp_side half_of(lp_place place) {
  return place == LP_SIDE_DEVICE ? LP_SIDE_DEVICE : LP_SIDE_CLOUD;
}

static const lp_machine *machine_of(const lp_compile *compile, lp_place place) {
  if (compile->place_machine[place]) return compile->place_machine[place];
  return place == LP_SIDE_DEVICE || !compile->cloud_machine ? compile->device_machine : compile->cloud_machine;
}

/* What the place's --place says, or the option for its half; NULL: nothing. */
static const char *own_march(const lp_compile *compile, lp_place place) {
  return compile->place_march[place] ? compile->place_march[place] : compile->march_side[half_of(place)];
}

static const char *own_backend(const lp_compile *compile, lp_place place) {
  return compile->place_backend[place] ? compile->place_backend[place] : compile->backend[half_of(place)];
}

static const char *own_dtype(const lp_compile *compile, lp_place place) {
  if (place == LP_SIDE_DEVICE) return compile->request.dtype_device;
  return compile->place_dtype[place] ? compile->place_dtype[place] : compile->request.dtype_cloud;
}

/* The GPU of the machine if its figures describe it and there is a backend for it. */
static const char *gpu_backend(const lp_machine *machine) {
  const char *interface = machine->target.gpu_interface;
  return machine->kind == LP_MACHINE_GPU && interface && lp_backend_find(interface) ? interface : NULL;
}

static const char *choose_backend(const lp_compile *compile, lp_place place) {
  const char *own = own_march(compile, place), *gpu = gpu_backend(machine_of(compile, place));
  if (own_backend(compile, place)) return own_backend(compile, place);
  if (own) return names_gpu(own) ? "cuda" : "cpu";
  return gpu && (!compile->march || names_gpu(compile->march)) ? gpu : "cpu";
}

const char *lp_compile_march(const lp_compile *compile, lp_place place, const char *backend) {
  const lp_hw_target *target = &machine_of(compile, place)->target;
  if (fits(own_march(compile, place), backend)) return own_march(compile, place);
  if (fits(compile->march, backend)) return compile->march;
  if (lp_streq(backend, "cpu") && target->cpu) return target->cpu;
  return lp_streq(backend, "cuda") && lp_streq(target->gpu_interface, "cuda") ? target->gpu : "native";
}

const char *lp_compile_os(const lp_compile *compile, lp_place place) {
  return compile->march || own_march(compile, place) ? NULL : machine_of(compile, place)->target.os;
}

static const char *march_option(const lp_compile *compile, lp_place place) {
  if (place == LP_SIDE_DEVICE) return "--march-device";
  return compile->place_march[place] ? "--place" : "--march-cloud";
}

lp_status lp_compile_target(const lp_compile *compile, lp_place place, lp_half_target *out, lp_diag *diag) {
  const char *own = own_march(compile, place);
  out->backend = choose_backend(compile, place);
  out->march = lp_compile_march(compile, place, out->backend);
  if (!own || fits(own, out->backend)) return LP_OK;
  return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(march_option(compile, place)),
                     "'%s' is nothing that the backend '%s' emits code for", own, out->backend);
}

bool lp_compile_names_march(const lp_compile *compile, lp_place place, const lp_half_target *half) {
  return fits(own_march(compile, place), half->backend) || fits(compile->march, half->backend);
}

lp_status lp_compile_check_march(const lp_compile *compile, lp_place place, const lp_half_target *half, lp_diag *diag) {
  const lp_backend *backend = lp_backend_find(half->backend);
  const bool own = fits(own_march(compile, place), half->backend), both = fits(compile->march, half->backend);
  const char *option = march_option(compile, place), *machine = machine_of(compile, place)->name;
  if (!backend->check_march) return LP_OK;
  const lp_loc loc = LP_LOC_FILE(own ? option : both ? "--march" : machine);
  lp_status status = backend->check_march(half->march, loc, diag);
  if (status != LP_OK && !own && !both) lp_note(diag, loc, "%s names another processor to emit code for", option);
  return status;
}

/* Tells whether the code is for the processor that the machine's figures describe. */
static bool is_described(const lp_machine *machine, const lp_half_target *half) {
  const lp_hw_target *target = &machine->target;
  if (machine->kind == LP_MACHINE_CPU) return lp_streq(half->backend, "cpu") && lp_streq(half->march, target->cpu);
  if (!lp_streq(half->backend, target->gpu_interface)) return false;
  return lp_streq(half->backend, "opencl") || lp_streq(half->march, target->gpu);
}

void lp_compile_describe_target(lp_compile *compile, lp_place place, const lp_half_target *half) {
  const lp_machine *machine = machine_of(compile, place);
  const bool opencl = lp_streq(half->backend, "opencl");
  (void)snprintf(compile->code[half_of(place)], sizeof compile->code[half_of(place)], "%s%s%.80s", half->backend,
                 opencl ? "" : " ", opencl ? "" : half->march);
  compile->request.code[half_of(place)] = compile->code[half_of(place)];
  compile->request.code_is_other[half_of(place)] = machine->target.cpu && !is_described(machine, half);
}

void lp_compile_note_target(const lp_compile *compile, lp_place place, const lp_half_target *half, lp_diag *diag) {
  const lp_machine *machine = machine_of(compile, place);
  const lp_hw_target *target = &machine->target;
  const lp_loc loc = LP_LOC_FILE(name_of(compile, place));
  if (!target->cpu) {
    if (!compile->march && !own_march(compile, place) && !own_backend(compile, place))
      lp_note(diag, loc, "the machine '%s' names no target, so its code is for the processor that llmpart runs on",
              machine->name);
    return;
  }
  if (is_described(machine, half)) return;
  const bool gpu = machine->kind == LP_MACHINE_GPU, native = lp_streq(half->march, "native");
  const char *code = native ? "the processor that llmpart runs on" : "the processor ",
             *march = native ? "" : half->march;
  if (lp_streq(half->backend, "cuda")) code = native ? "any GPU of CUDA" : "cuda ";
  if (lp_streq(half->backend, "opencl")) code = "opencl", march = "";
  lp_note(diag, loc, "the code is for %s%s, and the figures of '%s' describe another processor: %s %s", code, march,
          machine->name, gpu ? target->gpu_interface : target->isa, gpu ? target->gpu : target->cpu);
  if (lp_streq(lp_compile_os(compile, place), "macos"))
    lp_note(diag, loc, "there is no runtime for macOS: the code is a library for Linux, and --emit=obj writes Mach-O");
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* Tells whether the GPU of the half computes in bf16: CUDA's do from sm_80 on, others where their machine's file says
 * so. Processors widen bf16 at no cost. */
static bool has_bf16(const lp_machine *machine, const lp_half_target *half) {
  const lp_hw_target *target = &machine->target;
  if (lp_streq(half->backend, "cuda")) return !names_gpu(half->march) || atoi(half->march + strlen("sm_")) >= 80;
  return !lp_streq(half->backend, target->gpu_interface) || target->has_type[LP_HW_PEAK_BF16 - LP_HW_PEAK_F32];
}

bool lp_compile_has_bf16(const lp_compile *compile, lp_place place, const lp_half_target *half) {
  return has_bf16(machine_of(compile, place), half);
}

bool lp_compile_prefers_halves(const lp_compile *compile, lp_place place) {
  const lp_machine *machine = machine_of(compile, place);
  const lp_hw_target *target = &machine->target;
  if (machine->kind != LP_MACHINE_GPU || !lp_streq(target->gpu_interface, "opencl")) return true;
  return lp_hw_prefers_halves(machine);
}

static const char *gpu_text(const lp_machine *machine, const lp_half_target *half) {
  return lp_streq(half->backend, "cuda") ? half->march : machine->target.gpu;
}

static lp_status refuse_bf16(const lp_machine *machine, const lp_half_target *half, const char *option, lp_diag *diag) {
  lp_status status =
      lp_error_as(LP_USAGE, diag, LP_LOC_FILE(option), "'bf16' is nothing that the GPU of '%s' (%s %s) computes in",
                  machine->name, half->backend, gpu_text(machine, half));
  lp_note(diag, LP_LOC_FILE(option), "the nearest type that it computes in is f16");
  return status;
}

lp_status lp_compile_check_dtype(const lp_compile *compile, lp_place place, const lp_half_target *half, lp_diag *diag) {
  const lp_machine *machine = machine_of(compile, place);
  if (!lp_streq(own_dtype(compile, place), "bf16") || has_bf16(machine, half)) return LP_OK;
  const char *option = compile->place_dtype[place] ? "--place" : "--dtype-cloud";
  return refuse_bf16(machine, half, place == LP_SIDE_DEVICE ? "--dtype-device" : option, diag);
}

bool lp_compile_runs_op(const lp_op *op, lp_place place) {
  return lp_op_attr(op, "segment") && lp_op_place(op, "side") == place;
}

static bool reads_bf16(const lp_module *module, lp_place place) {
  LP_FOR_FUNCS(func, module) {
    LP_FOR_OPS(op, func->region) {
      if (!lp_compile_runs_op(op, place)) continue;
      for (int32_t i = 0; i < op->in_count; i++)
        if (lp_value_is_constant(lp_op_in(op, i)) && lp_op_in(op, i)->type.dtype == LP_BF16) return true;
    }
  }
  return false;
}

lp_status lp_compile_check_types(const lp_compile *compile, const lp_module *module, lp_place place,
                                 const lp_half_target *half, lp_diag *diag) {
  const lp_machine *machine = machine_of(compile, place);
  if (has_bf16(machine, half)) return LP_OK;
  if (lp_streq(compile->request.kv_dtype, "bf16")) return refuse_bf16(machine, half, "--kv-dtype", diag);
  LP_TRY(lp_compile_check_dtype(compile, place, half, diag));
  if (reads_bf16(module, place))
    lp_note(diag, LP_LOC_FILE(name_of(compile, place)),
            "the weights are bf16, which %s %s lacks: each is widened to f32 when it is read; --dtype-%s=f16 stores "
            "them in a type that '%s' computes in",
            half->backend, gpu_text(machine, half), lp_side_name(half_of(place)), machine->name);
  return LP_OK;
}

lp_status lp_compile_check_dtype_name(const char *option, const char *dtype, lp_diag *diag) {
  static const char *const runs[] = {LP_DTYPE_AUTO, "f32", "f16", "bf16", "int8", "int4"};
  if (!dtype) return LP_OK;
  for (size_t i = 0; i < LP_COUNT(runs); i++)
    if (lp_streq(dtype, runs[i])) return LP_OK;
  lp_status status = lp_error_as(LP_USAGE, diag, LP_LOC_FILE(option), "weights in '%s' are not supported", dtype);
  lp_note(diag, LP_LOC_FILE(option), "supported: f32, f16, bf16, int8, int4, and auto");
  return status;
}
