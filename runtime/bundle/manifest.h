/* What manifest.json says of a bundle (docs/bundle.md), every field checked, and the tables that the runtime walks: programs and
 * their steps. Data only: whoever runs it is elsewhere. Nothing outside of runtime/ and its tests includes it. */
#ifndef LP_RUNTIME_MANIFEST_H
#define LP_RUNTIME_MANIFEST_H

#include "base/file.h"
#include "base/poly.h"
#include "base/side.h"
#include "runtime/runtime.h"

enum { LP_MAX_SYMBOLS = 64, LP_MAX_RANK = 16, LP_MAX_BUFFERS = 1 << 20, LP_SHA256_HEX = 64 };

typedef enum {
  LP_DT_F32,
  LP_DT_F16,
  LP_DT_BF16,
  LP_DT_F64,
  LP_DT_I64,
  LP_DT_I32,
  LP_DT_I16,
  LP_DT_I8,
  LP_DT_U8,
  LP_DT_U16,
  LP_DT_U32,
  LP_DT_U64,
  LP_DT_BOOL,
  LP_DT_I4,
  LP_DT_U4,
  LP_DT_I2,
  LP_DT_U2,
  LP_DT_F8E4M3FN,
  LP_DT_F8E4M3FNUZ,
  LP_DT_F8E5M2,
  LP_DT_F8E5M2FNUZ,
  LP_DT_F8E8M0,
  LP_DT_F4E2M1,
  LP_DT_COUNT
} lp_element;

typedef struct {
  const char *name;
  lp_element dtype;
  int32_t rank;
  const lp_poly *shape[LP_MAX_RANK];
} lp_tensor_desc;

typedef struct {
  lp_tensor_desc tensor;
  int32_t append_axis; /* the axis of the capacity `c` */
  bool on[LP_SIDE_COUNT];
} lp_state_desc;

typedef enum { LP_ROLE_DATA, LP_ROLE_TOKENS, LP_ROLE_LOGITS } lp_role;

typedef struct {
  lp_tensor_desc tensor;
  lp_role role;
} lp_port; /* an input or an output */

/* An early exit: logits behind so many layers. */
typedef struct {
  int32_t layer;
  int32_t output;
} lp_exit;

/* Of which tokens a buffer holds one row each, those of all sequences of a pass behind each other (base/abi.h). */
typedef enum { LP_ROWS_NONE, LP_ROWS_NEW, LP_ROWS_LAST } lp_row_count; /* none: each sequence has a buffer; s; r */

typedef enum { LP_STEP_INPUT, LP_STEP_RUN, LP_STEP_SEND, LP_STEP_MOVE, LP_STEP_OUTPUT } lp_step_kind;

typedef struct {
  lp_step_kind kind;
  lp_side side;          /* who does it; the sender of `send` and `move` */
  lp_side to;            /* send and move; else equals `side` */
  int32_t port;          /* input or output */
  int32_t state;         /* move */
  int32_t exit;          /* run: the exit that alone needs it, an index into `exits`; -1: all do */
  int32_t buffer;        /* input, output, send: on `side` */
  int32_t to_buffer;     /* send: on `to` */
  lp_row_count rows;     /* input, send and output: how many rows the buffer has in a pass over several sequences */
  bool carries_tokens;   /* input and send: the tensor holds token ids, to be checked before use */
  lp_tensor_desc tensor; /* input, output, send */
  const char *segment;   /* run */
  int32_t part_count;    /* run: operators that it marks; 0 when not compiled to be profiled, and on a GPU */
  const char **part;     /* [part_count] "op.linear /layers.0/q" */
  lp_segment_fn *run;    /* set when the side's code is loaded, unless it is a GPU's: */
  int32_t gpu_segment;
} lp_step;

typedef struct {
  const char *name;
  const char *layout_name[LP_SIDE_COUNT]; /* NULL: the side has no part in it */
  lp_layout_fn *layout[LP_SIDE_COUNT];    /* set when the side's code is loaded, unless it is a GPU's: */
  int32_t gpu_layout[LP_SIDE_COUNT];
  int32_t buffers[LP_SIDE_COUNT];
  bool takes_part[LP_SIDE_COUNT]; /* does any step name the side? */
  int32_t step_count;
  lp_step *step;
} lp_program;

typedef struct {
  const char *path; /* relative to the bundle */
  char sha256[LP_SHA256_HEX + 1];
  int64_t bytes;
  bool has_crc;
  uint32_t crc32c;
} lp_file_desc;

typedef struct {
  bool present;
  const lp_file_desc *code;    /* NULL: the side only moves data */
  const lp_file_desc *weights; /* NULL: none */
  const lp_file_desc *kernels; /* of code for a GPU (gpu.h); NULL: code is a shared object */
  const char *triple, *march;
} lp_side_desc;

/* Requests that a plan is for: from low to below high on each axis, 0 and infinity where it is open. */
enum { LP_PLAN_PROMPT, LP_PLAN_GENERATED, LP_PLAN_RTT_MS, LP_PLAN_UP_BPS, LP_PLAN_AXES };
typedef struct {
  double low[LP_PLAN_AXES], high[LP_PLAN_AXES];
} lp_plan_region;

typedef struct {
  int32_t prefill, decode; /* programs */
  int32_t region_count;
  lp_plan_region *region;
} lp_plan_desc;

/* manifest.json, every field checked. All of it lives in the arena. */
typedef struct {
  const char *file; /* path of the manifest, for messages */
  char hash[LP_SHA256_HEX + 1];
  const char *name;
  lp_symbols symbols;
  int32_t symbol_count;
  int64_t context;
  int32_t vocab;
  const lp_file_desc *tokenizer;
  int32_t file_count, state_count, input_count, output_count, exit_count, program_count, plan_count;
  lp_file_desc *files;
  lp_side_desc side[LP_SIDE_COUNT];
  lp_state_desc *states;
  lp_port *inputs, *outputs;
  lp_exit *exits; /* in ascending order of layers */
  lp_program *programs;
  lp_plan_desc *plans; /* [plan_count]; none when there is no program "prefill" or "decode" */
} lp_manifest;

/* Reads `size` bytes of JSON text; `file` names them in messages. Safe on any bytes. `out` is zeroed first and released
 * with lp_manifest_clear in every case. */
LP_MUST_USE lp_status lp_manifest_parse(const char *file, const char *text, size_t size, lp_arena *arena,
                                        lp_manifest *out, lp_diag *diag);
void lp_manifest_clear(lp_manifest *manifest);
size_t lp_element_size(lp_element dtype);
const char *lp_element_name(lp_element dtype);
/* Bytes of the tensor at these symbol values; false when negative or too large. */
bool lp_tensor_bytes(const lp_tensor_desc *tensor, const int64_t *sym, int32_t symbol_count, size_t *bytes);
/* The index of the program of that name, or -1. */
int32_t lp_manifest_program(const lp_manifest *manifest, const char *name);
/* The plan for a request; 0 where none has it in a region. */
int32_t lp_manifest_plan(const lp_manifest *manifest, const double at[LP_PLAN_AXES]);
int32_t lp_manifest_most_buffers(const lp_manifest *manifest, lp_side side); /* of any program */
/* The first of that role, or -1. */
int32_t lp_manifest_input(const lp_manifest *manifest, lp_role role);
int32_t lp_manifest_output(const lp_manifest *manifest, lp_role role);

/* ---- safetensors (safetensors.c) --------------------------------------------------------------------------------- */

/* Checks the structure of a mapped safetensors file and returns where its data section begins. */
LP_MUST_USE lp_status lp_safetensors_check(const char *path, const lp_mapping *mapping, size_t *data_offset,
                                           lp_diag *diag);

#endif
