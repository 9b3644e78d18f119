/* The content of manifest.json (docs/bundle.md) in memory, every field checked: files, sides, tensors, programs and
 * their steps. A side is what one place has of the model, and has the place's number (base/place.h). This header
 * declares data and lookups; exec/ runs the programs. A manifest is immutable once its bundle is loaded, and any number
 * of threads may read it. Private to runtime/ and its tests. */
#pragma once

#include "base/file.h"
#include "base/place.h"
#include "base/poly.h"
#include "runtime/runtime.h"

enum { LP_MAX_SYMBOLS = 64, LP_MAX_RANK = 16, LP_MAX_BUFFERS = 1 << 20, LP_MAX_RANKS = 64, LP_SHA256_HEX = 64 };

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
  /* The axis of the capacity `c`; -1: prefill fills the whole state, and it stays, or each pass replaces it. */
  int32_t append_axis;
  bool on[LP_PLACES_MAX];
} lp_state_desc;

/* The roles LP_ROLE_SOURCE_* are the inputs of an encoder: tokens and their mask, or features of another kind. */
typedef enum {
  LP_ROLE_DATA,
  LP_ROLE_TOKENS,
  LP_ROLE_LOGITS,
  LP_ROLE_HIDDEN,    /* the last layer's states of each position, of a model without a head */
  LP_ROLE_EMBEDDING, /* what the model itself makes of them for each sequence */
  LP_ROLE_SOURCE_TOKENS,
  LP_ROLE_SOURCE_MASK,
  LP_ROLE_SOURCE_FEATURES,
  LP_ROLE_COUNT
} lp_role;

/* The way from the hidden states of all positions to an embedding. */
typedef enum {
  LP_POOLING_MEAN,
  LP_POOLING_FIRST,
  LP_POOLING_LAST,
  LP_POOLING_MAX,
  LP_POOLING_MEAN_SQRT,     /* the sum over the square root of the number of positions */
  LP_POOLING_WEIGHTED_MEAN, /* position i, counted from 1, has the weight i */
  LP_POOLING_COUNT
} lp_pooling;

typedef struct {
  lp_tensor_desc tensor;
  lp_role role;
} lp_port; /* an input or an output */

/* An early exit: a head that computes logits after the first `layer` layers of the model. */
typedef struct {
  int32_t layer;
  int32_t output; /* index into `outputs` */
} lp_exit;

/* In a pass over several sequences a buffer may hold one row per token, the rows of all sequences one after the other
 * (base/abi.h). This says which tokens have a row. */
typedef enum {
  LP_ROWS_NONE, /* the buffer is not shared: each sequence has its own */
  LP_ROWS_NEW,  /* the `s` new tokens of each sequence */
  LP_ROWS_LAST  /* the last `r` of them: their logits are computed */
} lp_row_count;

/* A tensor of one row per new token, in a buffer. */
typedef struct {
  int32_t buffer;
  lp_tensor_desc tensor;
} lp_row_buffer;

/* An operator of a segment multiplies the tensor in `buffer` by the weight of the tensor's name; or the tensor chooses
 * among the experts that the weight has. */
typedef struct {
  int32_t part; /* the operator, an index into lp_step.part */
  int32_t buffer;
  int32_t experts; /* to choose from; 0: the tensor is multiplied */
  lp_tensor_desc tensor;
} lp_operand;

typedef enum { LP_STEP_INPUT, LP_STEP_RUN, LP_STEP_SEND, LP_STEP_MOVE, LP_STEP_OUTPUT, LP_STEP_GATHER } lp_step_kind;

typedef struct {
  lp_step_kind kind;
  lp_place side;         /* the side that executes it; the sender of `send` and `move` */
  lp_place to;           /* send and move: the receiver; else equals `side` */
  int32_t port;          /* input and output: index into `inputs` or `outputs` */
  int32_t state;         /* move: index into `states` */
  int32_t exit;          /* run: index of the only exit that needs the segment; -1: the model itself needs it */
  int32_t buffer;        /* input, output, send, gather: on `side` */
  int32_t to_buffer;     /* send: on `to`; gather: of the result */
  int32_t axis, parts;   /* gather: the ranks' buffers are `parts` parts of this axis of the result */
  lp_row_count rows;     /* input, send and output: which rows the buffer has in a pass over several sequences */
  bool carries_tokens;   /* input and send: the tensor holds token ids, which are checked before use */
  lp_tensor_desc tensor; /* input, output, send; gather: the result */
  /* output of an exit: everything that its side's later steps read of earlier ones; 0: unknown */
  int32_t open_count;
  lp_row_buffer *open;  /* [open_count] */
  const char *segment;  /* run: name of the function */
  const char *fallback; /* run: its name in the side's `fallback`, or NULL */
  int32_t part_count;   /* run: operators that the code marks; 0 on a GPU, or unless compiled with --profile */
  const char **part;    /* [part_count] "op.linear /layers.0/q" */
  int32_t operand_count;
  lp_operand *operand; /* run: [operand_count] of those parts, in their order */
  lp_segment_fn *run;  /* run: set when the code of a CPU side is loaded */
  int32_t gpu_segment; /* run: set when the code of a GPU side is loaded */
} lp_step;

typedef struct {
  const char *name;
  const char *layout_name[LP_PLACES_MAX]; /* NULL: the side has no code in this program */
  const char *fallback[LP_PLACES_MAX];    /* the layout's name in the side's `fallback`, or NULL */
  lp_layout_fn *layout[LP_PLACES_MAX];    /* set when the code of a CPU side is loaded */
  int32_t gpu_layout[LP_PLACES_MAX];      /* set when the code of a GPU side is loaded */
  int32_t buffers[LP_PLACES_MAX];
  bool takes_part[LP_PLACES_MAX]; /* some step names the side */
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

typedef struct lp_side_desc {
  bool present;
  const lp_file_desc *code;    /* a shared object, or launches.json of a GPU; NULL: the side only moves data */
  const lp_file_desc *weights; /* NULL: none; of a sharded half that of rank 0, until a bundle is loaded for another */
  int32_t ranks;               /* that run the half together; 1: it is not sharded */
  const lp_file_desc **shards; /* [ranks] the weights of each; NULL: not sharded, or no weights */
  int64_t weight_bytes;        /* of the weights' data section, at least; 0: unknown */
  const lp_file_desc *kernels; /* source of a GPU's kernels (gpu/gpu.h); NULL: the code runs on a CPU */
  const char *triple, *march;
  /* The level of x86-64 that the code needs, an instruction set beyond it, and the machine that it was made for; "":
   * unknown, or none. */
  const char *level, *feature, *machine;
  const struct lp_side_desc *fallback; /* the same half as code for the machine's processor, or NULL */
} lp_side_desc;

/* The requests that a plan serves: low <= value < high on each axis; 0 and infinity where the region is unbounded. */
enum { LP_PLAN_PROMPT, LP_PLAN_GENERATED, LP_PLAN_RTT_MS, LP_PLAN_UP_BPS, LP_PLAN_AXES };
typedef struct {
  double low[LP_PLAN_AXES], high[LP_PLAN_AXES];
} lp_plan_region;

/* A placement of the model, as the two programs that carry it out. */
typedef struct {
  int32_t prefill, decode; /* indices into `programs` */
  int32_t region_count;
  lp_plan_region *region;
} lp_plan_desc;

/* manifest.json. All of it lives in the arena that it was parsed into. */
typedef struct {
  const char *file;                 /* path of the manifest, for messages */
  char hash[LP_SHA256_HEX + 1];     /* SHA-256 of its text: both sides of a link must hold the same one */
  char contract[LP_SHA256_HEX + 1]; /* the contract that the code must carry (bundle_file.h); "": none */
  const char *name;
  lp_symbols symbols;
  int32_t symbol_count;
  int32_t rank_symbol;    /* the index of the symbol that is the number of a rank; -1: no half is sharded */
  int64_t context_length; /* the most positions that the model supports; 0: unknown */
  int32_t vocab;
  const lp_file_desc *tokenizer; /* NULL: none */
  int32_t stop_count;
  int32_t *stops;       /* tokens that end a generation, in addition to the tokenizer's */
  lp_sampling sampling; /* the sampling that the model's files state */
  int32_t start_count;
  int32_t *start;         /* with an encoder: the tokens that its decoder begins with */
  int32_t pad;            /* with an encoder: the token that fills up a source */
  int64_t source_context; /* the longest source that the encoder takes; 0: unknown */
  lp_pooling pooling;     /* of hidden states into an embedding */
  bool normalises;        /* embeddings are made to have length 1 */
  const char *lacks;      /* what embeddings of the model need beyond that, and the bundle lacks; NULL: nothing */
  int32_t file_count, state_count, input_count, output_count, exit_count, program_count, plan_count;
  lp_file_desc *files;
  /* Of two sides both count, "device" and "cloud", of which one may be absent. A bundle over other places lists those
   * that hold anything, after the device. */
  int32_t place_count;
  const char *place_name[LP_PLACES_MAX];
  lp_side_desc side[LP_PLACES_MAX];
  lp_state_desc *states;
  lp_port *inputs, *outputs;
  lp_exit *exits; /* by ascending layer */
  lp_program *programs;
  lp_plan_desc *plans; /* none when the bundle lacks `plans` and the programs "prefill" and "decode" */
} lp_manifest;

/* Parses `size` bytes of JSON text; `file` names them in messages. Any bytes are safe input. The function zeroes `out`
 * first; the caller releases it with lp_manifest_clear, also after a failure. */
LP_MUST_USE lp_status lp_manifest_parse(const char *file, const char *text, size_t size, lp_arena *arena,
                                        lp_manifest *out, lp_diag *diag);
void lp_manifest_clear(lp_manifest *manifest);

/* Puts the `fallback` of a side, which has one, into the place of its code, weights, layouts and segments. */
void lp_manifest_fall_back(lp_manifest *manifest, lp_place side);

/* The number of places besides the device that take part in any program. */
int32_t lp_manifest_others(const lp_manifest *manifest);
/* The place that computes all of a program, takes nothing but tokens, and draws from the logits, so that it can decode
 * without the device; LP_SIDE_DEVICE: there is none. */
lp_place lp_manifest_streams(const lp_manifest *manifest, int32_t program);

/* Bytes of an element, rounded up to whole bytes. */
size_t lp_element_size(lp_element dtype);
const char *lp_element_name(lp_element dtype); /* "f32"; static text */
/* Computes the bytes of the tensor at the symbol values sym[symbol_count]; false: the size is negative or overflows. */
bool lp_tensor_bytes(const lp_tensor_desc *tensor, const int64_t *sym, int32_t symbol_count, size_t *bytes);

/* The index of the program of that name, or -1. */
int32_t lp_manifest_program(const lp_manifest *manifest, const char *name);
/* The index of the first plan with a region that contains the request; 0 when no region does. */
int32_t lp_manifest_plan(const lp_manifest *manifest, const double at[LP_PLAN_AXES]);
/* The greatest number of buffers that any program has on the side. */
int32_t lp_manifest_most_buffers(const lp_manifest *manifest, lp_place side);
/* The index of the first input or output of that role, or -1. */
int32_t lp_manifest_input(const lp_manifest *manifest, lp_role role);
int32_t lp_manifest_output(const lp_manifest *manifest, lp_role role);
/* The index of the early exit whose head makes this output, or -1. */
int32_t lp_manifest_exit(const lp_manifest *manifest, int32_t output);
