/* backend: emits the code of each side of an outlined module (passes/passes.h), and a bundle of both. A backend is one
 * const table of functions; null is the template to copy. This folder knows the IR and machine models, and neither the
 * frontend, nor the passes, nor the runtime. base/abi.h is the contract of emitted code, docs/bundle.md is the contract
 * of bundles.
 */
#pragma once

#include "base/file.h"
#include "base/side.h"
#include "hwmodels/hwmodels.h"
#include "ir/ir.h"

typedef struct {
  lp_place side;
  const char *march; /* "native", "x86-64-v3", "znver4", "armv8-a", "sm_80", ...: see cpu/target.c, cuda/cuda.c */
  const char *os;    /* of a stand-alone object file: "macos" is Mach-O, others and NULL are ELF */
  int opt_level;     /* 0..3 */
  bool halves;       /* of opencl: where the device multiplies halves, it is faster with them */
  /* The contract of a bundle's code: 64 hex digits that the code keeps (base/abi.h); NULL: none. */
  const char *contract;
} lp_emit_options;

typedef enum {
  LP_EMIT_LLVM_IR,
  LP_EMIT_ASM,
  LP_EMIT_OBJECT,
  LP_EMIT_SHARED,
  LP_EMIT_SOURCE,
  LP_EMIT_KERNELS,  /* the part of the source that the runtime compiles when it loads a bundle */
  LP_EMIT_LAUNCHES, /* the launch list: how the runtime launches those kernels */
  LP_EMIT_PTX       /* the kernels as PTX, by NVRTC, which needs no GPU */
} lp_emit_form;

/* The entry points of the code of one function, for the manifest. The arena of the caller holds all text. */
typedef struct {
  const char *name;   /* of the function: "prefill" */
  const char *layout; /* symbol */
  int64_t buffers;    /* number of offsets that the layout fills: at least those of plan-memory */
  int64_t segment_count;
  const char *const *segment; /* symbols, by the attribute `segment`; NULL for a segment without operators */
} lp_code_program;

typedef struct {
  const char *triple, *march; /* "native" resolved */
  const char *level; /* the processor level that the code needs: "x86-64-v3", "x86-64-v4"; NULL: the triple says it */
  int32_t program_count;
  const lp_code_program *program; /* in the module's order of functions */
  int64_t weight_bytes;           /* 0: no weights file is needed */
  const char *activations;        /* to what some products round them: "int8", "bf16", "int8,bf16"; NULL: none does */
  const char *feature;            /* an instruction set that the code needs beyond its level: "avx512vnni"; or NULL */
} lp_code;

typedef struct lp_backend {
  const char *name, *summary;
  bool emits_code; /* false: null */
  bool sharded;    /* several ranks can run its code of a half together */
  bool joins;      /* it runs the operators of a group that the pass join has marked in one launch */
  /* The name of the kernels' file in a bundle, if the runtime compiles kernels and runs a launch list (docs/gpu.md);
   * NULL if it loads LP_EMIT_SHARED. */
  const char *kernels;
  /* Tells whether the backend can run this op.* operator. If not, `why` (64 bytes) gets the missing feature. */
  bool (*runs)(const lp_op *op, char why[64]);
  /* Emits the code of options->side in `form` into `out`. */
  lp_status (*emit)(lp_module *module, const lp_emit_options *options, lp_emit_form form, lp_buf *out, lp_diag *diag);
  /* Reports at `loc` a `march` for which the backend emits no code, and names the nearest for which it does. NULL: it
   * emits the same code for any. */
  lp_status (*check_march)(const char *march, lp_loc loc, lp_diag *diag);
  /* Fills `out` without generating code. emit with the same options uses the same symbols. */
  lp_status (*describe)(lp_module *module, const lp_emit_options *options, lp_arena *arena, lp_code *out,
                        lp_diag *diag);
  /* Puts the side's weights, packed for its kernels, as weights.safetensors, without what the writer kept of it. */
  lp_status (*write_weights)(lp_module *module, const lp_emit_options *options, lp_writer *writer, lp_diag *diag);
} lp_backend;

const lp_backend *lp_backend_find(const char *name); /* "cpu", "cuda", "opencl", "null"; NULL when unknown */
size_t lp_backend_list(const lp_backend *const **list);

/* Fails unless a bundle may be written to `path`. The path may be free, an empty directory, or a directory with a
 * manifest.json of llmpart that lists every other file in it. The error names up to five files that are not listed. */
LP_MUST_USE lp_status lp_bundle_check_path(const char *path, lp_diag *diag);

/* Writes the bundle folder at `path`, atomically, if lp_bundle_check_path allows: code and weights of each place that
 * has operators, the manifest, the plan's IR, the report and tokenizer files given. Leaves `path` as it was when it
 * fails. */
typedef struct {
  /* By place, of which the module names as many as it has; `backend` NULL: nothing of the place is written. */
  const lp_backend *backend[LP_PLACES_MAX];
  lp_emit_options options[LP_PLACES_MAX];
  /* For a half with kernels, the options of its code by the cpu backend, which runs where the GPU is absent; all zero:
   * none. */
  lp_emit_options fallback[LP_PLACES_MAX];
  const char *machine[LP_PLACES_MAX]; /* names of the machines, for the manifest; or NULL */
  /* Path of tokenizer.json, or NULL; lp_tokenizer_companions of its folder are copied too. */
  const char *tokenizer;
  /* The folder that may hold config.json, generation_config.json and genai_config.json, or NULL. */
  const char *folder;
  const char *report_json; /* text, or NULL */
  int64_t context, vocab;  /* for the manifest */
  /* Of a bundle with `all` bytes of weights `done` are written; called before each file of code, and after at most some
   * MB of weights. NULL: no reports of progress. */
  void (*progress)(void *user, const char *place, const char *what, uint64_t done, uint64_t all);
  void *user;
  bool only_digest[LP_PLACES_MAX]; /* the place's weights are only digested, for the manifest */
  /* Judges the complete bundle in `folder` before it moves to its path; its failure is that of lp_bundle_write. NULL:
   * there is no check. */
  lp_status (*check)(const void *checked, const char *folder, lp_diag *diag);
  const void *checked;
} lp_bundle_request;
LP_MUST_USE lp_status lp_bundle_write(lp_module *module, const lp_bundle_request *request, const char *path,
                                      lp_diag *diag);

/* Writes a communicating module as ONNX models into the folder `path`, atomically, if lp_bundle_check_path allows: one
 * per turn of a side, the sides' weights as external data, and a manifest: see docs/onnx.md. */
typedef struct {
  int64_t opset; /* 17 or 21 */
} lp_onnx_options;
LP_MUST_USE lp_status lp_onnx_write(lp_module *module, const lp_onnx_options *options, const char *path, lp_diag *diag);

/* Writes the CUDA code of one side of an outlined module into the folder `path`, atomically, if lp_bundle_check_path
 * allows: see docs/gpu.md. options->march: sm_53, sm_70, .. ; needs no CUDA. */
LP_MUST_USE lp_status lp_cuda_write(lp_module *module, const lp_emit_options *options, const char *path, lp_diag *diag);
