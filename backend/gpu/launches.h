/* The launch list of one side: programs and segments of calls; each call names a launcher and the memory it works
 * on. */
#pragma once

#include "backend/gpu/constants.h"
#include "backend/gpu/dialect.h"
#include "backend/program.h"
#include "backend/rows.h"
#include "hwmodels/hwmodels.h"

typedef struct gpu_launch gpu_launch;
typedef struct gpu_launcher gpu_launcher;

typedef enum { GPU_AT_NOTHING, GPU_AT_BUFFER, GPU_AT_WEIGHT, GPU_AT_STATE } gpu_place;

/* The memory that a kernel's pointer points to. */
typedef struct {
  gpu_place place;
  int64_t index; /* of the buffer or state */
  const gpu_constant *constant;
  lp_rows rows;      /* of a buffer: in a batched pass it holds the rows of all sequences */
  int64_t row_bytes; /* of one such row */
} gpu_ref;

typedef struct {
  const char *name; /* "norm_rms_128" */
  const char *text; /* with the dialect's words unfilled */
  bool finishes;    /* it finishes the product of a library and is launched only after one */
} gpu_kernel;

typedef enum { GPU_ARG_REF, GPU_ARG_NULL, GPU_ARG_SIZE, GPU_ARG_SCRATCH } gpu_arg_kind;
typedef struct {
  gpu_arg_kind kind;
  int32_t ref;         /* the index of the call's operand */
  const lp_poly *size; /* a long */
} gpu_arg;

enum { GPU_MOST_ARGS = 64 }; /* of a kernel */

/* A product that a library computes instead of a kernel: y[rows][n] = epilogue(scale * x[rows][k] . w[n][k] + bias) +
 * add. The arguments of its launch are x, w, bias, add, y, rows, and the bytes of y's and w's memory at which they
 * begin; the last may be absent. */
typedef struct {
  int64_t n, k;
  lp_dtype dtype; /* of x and w; the others are f32 */
  int32_t scale;
  const char *epilogue; /* "none" "relu" "gelu_tanh"; not with `add` */
} gpu_gemm;

/* Tells whether a launch depends on the library, which computes all products of a call or none. */
typedef enum { GPU_BY_ANY, GPU_BY_LIBRARY, GPU_BY_KERNEL } gpu_by;

/* One kernel over a grid of ceil(size / per) groups on each axis, or one product. It is launched only when `few`
 * lies in [least, most] and the GPU's architecture (80: sm_80) in [least_sm, most_sm]. */
struct gpu_launch {
  const gpu_kernel *kernel; /* NULL: a product, which has no threads and no grid */
  const gpu_gemm *product;
  gpu_by by;
  int32_t threads;
  struct {
    const lp_poly *size;
    int64_t per;
  } grid[2];
  const lp_poly *few; /* NULL: always */
  int64_t least, most;
  int32_t least_sm, most_sm; /* both 0: any architecture */
  gpu_arg arg[GPU_MOST_ARGS];
  int32_t arg_count;
  bool spare;  /* the kernel allows more groups than the sizes need */
  bool spread; /* a third axis of the grid counts sequences; the kernel's pointers are PLACEs */
};

/* The launches of one kind of call, in order. Equal launchers are shared; refs are numbered within the call. */
struct gpu_launcher {
  const char *name, *what;
  gpu_launch *launch;
  int32_t launch_count;
};

typedef struct {
  lp_side_call base; /* first: see lp_side_program */
  const gpu_launcher *launcher;
  const gpu_ref *ref;
  int32_t ref_count;
} gpu_call;

static inline const gpu_call *gpu_call_at(const lp_side_segment *segment, size_t index) {
  return (const gpu_call *)segment->calls.data[index];
}

/* Scratch of the launches: bytes, needed only while `few` is at most `most`. */
typedef struct {
  const lp_poly *bytes, *few;
  int64_t most;
  bool library; /* needed only if a library computes products */
} gpu_scratch;

/* Activations that were narrowed to 16 bits or rounded for products and lie at the beginning of the scratch
 * (rules/tensor.c, rules/rounded.c). */
typedef struct {
  const lp_value *value; /* NULL: none */
  lp_dtype dtype;        /* of narrowed activations, or of the weight for which they were rounded */
  bool dot;              /* rounded to bytes */
  bool every_rows;       /* rounded for any number of rows, whether or not there is a library */
  int64_t segment;
  bool jointly; /* the activations of all sequences */
} gpu_narrowed;

typedef struct {
  lp_side_program base; /* first: see lp_side_programs */
  LP_VEC(gpu_scratch) scratch;
  gpu_narrowed narrowed, rounded; /* at the operator being lowered; of both or of the same activations */
} gpu_program;

typedef struct {
  lp_module *module;
  lp_arena *arena;
  lp_diag *diag;
  const char *contract;      /* of the bundle (base/abi.h); NULL: none */
  bool tensor;               /* kernels may use tensor cores */
  bool any_tensor;           /* whether a kernel uses them */
  gpu_halves halves;         /* the GPUs on which kernels multiply halves */
  bool any_rounded;          /* whether a kernel multiplies rounded activations */
  bool any_bytes;            /* whether one rounds them to bytes */
  bool products;             /* a library may compute products */
  lp_side_programs programs; /* of gpu_program */
  lp_constants constants;
  lp_map *kernels;      /* text -> gpu_kernel *, in order of first use */
  lp_map *kernel_names; /* taken */
  lp_map *launchers;    /* description -> gpu_launcher *, in order of first use */
} gpu_launch_list;

/* Tells whether a dimension is 0 for any sizes. Text that divides by it would not compile. */
bool gpu_type_is_empty(lp_type type);
/* Creates the list; `dialect` is the language in which the kernels will be printed. */
LP_MUST_USE lp_status gpu_launches_create(lp_module *module, lp_place side, const gpu_dialect *dialect, lp_arena *arena,
                                          gpu_launch_list **out, lp_diag *diag);
void gpu_launches_free(gpu_launch_list *list); /* NULL is allowed */
/* Describes the list for the manifest; `arena` may outlive the list's. */
void gpu_launches_describe(const gpu_launch_list *list, const char *triple, const char *march, lp_arena *arena,
                           lp_code *out);
static inline const gpu_program *gpu_program_at(const gpu_launch_list *list, size_t index) {
  return (const gpu_program *)list->programs.list.data[index];
}
