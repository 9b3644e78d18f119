/* What the files of runtime/ share with each other. Nothing outside of runtime/ and its tests includes it. */
#ifndef LP_RUNTIME_INTERNAL_H
#define LP_RUNTIME_INTERNAL_H

#include "runtime/gpu/gpu.h"
#include "runtime/link/link.h"
#include "runtime/bundle/manifest.h"

/* ---- bundle (bundle/bundle.c) ------------------------------------------------------------------------------------------- */

typedef struct {
  bool loaded;
  void *code;
  lp_mapping weights;
  const char *data; /* the data section of the weights, or NULL */
  lp_gpu *gpu;      /* code for a GPU, or NULL */
  bool sequences;   /* segments run several sequences at once */
} lp_side_code;

struct lp_bundle {
  lp_arena *arena;
  char *path;
  lp_manifest manifest;
  lp_side_code side[LP_SIDE_COUNT];
  lp_tokenizer *tokenizer;
  struct lp_verifier *verifier; /* checks the weights behind the loader's back; NULL: nothing to check */
};

/* Waits until the content of the weights has been compared with the manifest's checksums; reports damage. */
LP_MUST_USE lp_status lp_bundle_await_check(const lp_bundle *bundle, lp_diag *diag);

/* ---- verification of content (bundle/verifier.c) ------------------------------------------------------------------------ */

/* Compares mapped files with their CRC-32C on a thread of its own, which thereby brings them into memory. */
typedef struct lp_verifier lp_verifier;
lp_verifier *lp_verifier_create(void);
/* Before start. Everything is borrowed until free. */
void lp_verifier_add(lp_verifier *verifier, const char *path, const lp_file_desc *want, const lp_mapping *mapping);
void lp_verifier_start(lp_verifier *verifier);
LP_MUST_USE lp_status lp_verifier_await(lp_verifier *verifier, lp_diag *diag);
void lp_verifier_free(lp_verifier *verifier); /* stops it; NULL is allowed */
/* Compares at once: by CRC-32C, or by SHA-256 when there is none or `strong`. */
LP_MUST_USE lp_status lp_file_verify(const char *path, const lp_file_desc *want, const void *data, size_t size,
                                     bool strong, lp_diag *diag);

/* ---- KV caches (exec/state.c) ----------------------------------------------------------------------------------------- */

/* The states of one side of one session, in one region of zeros at first: the host's memory, which a GPU may share, or that of a
 * GPU whose memory is apart (gpu.h). */
typedef struct {
  const lp_manifest *manifest;
  lp_side_id side;
  lp_gpu *gpu; /* that works on them; NULL: a processor does */
  lp_gpu_memory *gpu_memory;
  bool apart; /* they lie in the GPU's memory */
  char *region;
  size_t region_bytes;
  int64_t batch, capacity;
  void **pointer; /* [states]; NULL for those of the other side */
  size_t *bytes;  /* [states] */
} lp_states;

void lp_states_init(lp_states *states, const lp_manifest *manifest, lp_side_id side);
void lp_states_drop(lp_states *states); /* forgets the content and gives the memory back; reserve begins anew */
void lp_states_free(lp_states *states);
/* Bytes that `sym` asks for; false when too large. */
bool lp_states_bytes(const lp_states *states, const int64_t *sym, size_t *bytes);
/* Makes room for batch sym[b] and capacity sym[c]; rows [0, sym[p]) are kept when the batch is unchanged. */
LP_MUST_USE lp_status lp_states_reserve(lp_states *states, const int64_t *sym, lp_diag *diag);
/* The rows [0, sym[p] + sym[s]) of a state, packed as [outer][rows][inner]. */
bool lp_states_rows_bytes(const lp_states *states, int32_t state, const int64_t *sym, size_t *bytes);
LP_MUST_USE lp_status lp_states_pack(const lp_states *states, int32_t state, const int64_t *sym, void *out,
                                     lp_diag *diag);
LP_MUST_USE lp_status lp_states_unpack(const lp_states *states, int32_t state, const int64_t *sym, const void *in,
                                       lp_diag *diag);
/* From one side to the other. Both hold the same batch and capacity. */
LP_MUST_USE lp_status lp_states_copy(const lp_states *from, const lp_states *to, int32_t state, const int64_t *sym,
                                     lp_diag *diag);

/* ---- activations (exec/activations.c) --------------------------------------------------------------------------------- */

/* Memory of one pass. Its content does not outlive the pass. */
typedef struct {
  char *data;
  size_t bytes; /* mapped */
} lp_activations;
/* Room for `bytes`, which may move it and forgets the content then; false: no memory. */
bool lp_activations_reserve(lp_activations *activations, size_t bytes);
void lp_activations_free(lp_activations *activations);

/* ---- executor (exec/executor.c) --------------------------------------------------------------------------------------- */

typedef struct {
  void *data;
  size_t size;
} lp_span;

/* One side of one session: its KV caches, its activations, and where it is in a program. */
typedef struct lp_executor {
  const lp_bundle *bundle;
  lp_side_id side;
  lp_pool *pool; /* borrowed */
  lp_states states;
  lp_activations arena;
  size_t layout_bytes; /* asked for by the layout now in force */
  int64_t sym[LP_MAX_SYMBOLS];
  int64_t *offset; /* [most buffers of any program] */
  int32_t program; /* whose layout is in `offset`; -1: none */
  lp_frame frame;
  lp_gpu_memory *gpu_memory; /* NULL: the code is a processor's */
  bool apart;                /* the GPU works in memory of its own; `arena` holds copies of what is read from it */
} lp_executor;

lp_executor *lp_executor_create(const lp_bundle *bundle, lp_side_id side, lp_pool *pool);
void lp_executor_free(lp_executor *executor);   /* NULL is allowed */
void lp_executor_forget(lp_executor *executor); /* drops the KV caches: the next run begins anew */
/* Prepares a run of the program at these symbol values ([symbol_count]; t is replaced): layout, arena, KV caches. */
LP_MUST_USE lp_status lp_executor_begin(lp_executor *executor, int32_t program, const int64_t *sym, lp_diag *diag);
/* The bytes of `tensor` in `buffer` at the symbol values in force, to be read; lp_executor_fill writes. Of a GPU whose memory is
 * apart they are a copy, good until the next call. */
LP_MUST_USE lp_status lp_executor_buffer(lp_executor *executor, int32_t buffer, const lp_tensor_desc *tensor,
                                         lp_span *out, lp_diag *diag);
LP_MUST_USE lp_status lp_executor_run(lp_executor *executor, const lp_step *step, lp_diag *diag);
/* Copies `size` bytes in; they must be what the tensor takes, and token ids must be in the vocabulary. */
LP_MUST_USE lp_status lp_executor_fill(lp_executor *executor, int32_t buffer, const lp_step *step, const void *data,
                                       size_t size, lp_diag *diag);
/* Is the payload of a step as long as wanted, and are its token ids, if it holds any, in the vocabulary? */
LP_MUST_USE lp_status lp_payload_check(const lp_manifest *manifest, const lp_step *step, size_t wanted,
                                       const void *data, size_t size, lp_diag *diag);
/* Samples one token per sequence from the logits of an `output` step. */
LP_MUST_USE lp_status lp_executor_sample(lp_executor *executor, const lp_step *step, const lp_sampling *sampling,
                                         lp_sample *out, lp_buf *scratch, lp_diag *diag);

/* ---- what tokens are drawn from (exec/logits.c) ------------------------------------------------------------------------ */

/* Rows of logits, or what a GPU found of each (lp_gpu_find_top). Borrowed. */
typedef struct {
  const float *row;   /* [rows][vocab] */
  const float *found; /* [rows][1 + 2 * wanted]; NULL: all are there */
  int64_t wanted;
  int32_t vocab;
} lp_logits;
/* The bytes of logits [b][r][vocab] at these symbol values. */
LP_MUST_USE lp_status lp_logits_read(const lp_manifest *manifest, const int64_t *sym, const lp_span *span,
                                     lp_logits *out, lp_diag *diag);
/* A token behind one row, as number `place` of its sequence. */
lp_sample lp_logits_draw(const lp_logits *logits, int64_t row, const lp_sampling *sampling, uint64_t sequence,
                         uint64_t place, lp_buf *scratch);
/* One token per sequence from the last of its r rows: out[b]. */
void lp_logits_sample(const lp_logits *logits, const int64_t *sym, const lp_sampling *sampling, lp_sample *out,
                      lp_buf *scratch);

/* ---- passes over several sequences (exec/batch.c) --------------------------------------------------------------------- */

/* Rows of one sequence in one pass at most: a long prompt is run in as many passes as that takes, between which others have theirs. */
enum { LP_PASS_ROWS = 128 };

/* A sequence of a pass: its caches, which the pass reserves, and its symbols (t is the pool's). */
typedef struct {
  lp_states *states; /* borrowed until the pass has ended */
  int64_t sym[LP_MAX_SYMBOLS];
} lp_batch_member;

/* One side of a program run on several sequences at once, each at a position of its own: weights are read once for all. What a
 * sequence gets is, to the bit, what it would get alone. Belongs to one thread. */
typedef struct lp_batch lp_batch;
lp_batch *lp_batch_create(const lp_bundle *bundle, lp_side_id side,
                          lp_pool *pool); /* NULL: the code runs one at a time */
void lp_batch_free(lp_batch *batch);      /* NULL is allowed */
LP_MUST_USE lp_status lp_batch_begin(lp_batch *batch, int32_t program, const lp_batch_member *member, size_t count,
                                     lp_diag *diag);
/* What a sequence has in `buffer` for an input, send or output step, in the host's memory. It counts when lp_batch_bring has brought it
 * to where the code runs, and can be read when lp_batch_fetch has fetched it from there: all sequences' at once. */
LP_MUST_USE lp_status lp_batch_buffer(const lp_batch *batch, size_t sequence, int32_t buffer, const lp_step *step,
                                      lp_span *out, lp_diag *diag);
LP_MUST_USE lp_status lp_batch_bring(lp_batch *batch, int32_t buffer, const lp_step *step, lp_diag *diag);
/* whom[count]: whose; NULL: everybody's. */
LP_MUST_USE lp_status lp_batch_fetch(lp_batch *batch, int32_t buffer, const lp_step *step, const bool *whom,
                                     lp_diag *diag);
/* Logits of an output step can be drawn from without being fetched, once the `wanted` greatest of each row were found. */
bool lp_batch_finds_top(const lp_batch *batch, const lp_step *step);
LP_MUST_USE lp_status lp_batch_find_top(lp_batch *batch, const lp_step *step, int32_t wanted, lp_diag *diag);
/* The logits that a sequence has for the step: what was fetched, or `found` of them. */
LP_MUST_USE lp_status lp_batch_logits(const lp_batch *batch, size_t sequence, const lp_step *step, bool found,
                                      lp_logits *out, lp_diag *diag);
LP_MUST_USE lp_status lp_batch_run(lp_batch *batch, const lp_step *step, lp_diag *diag);
lp_gpu_memory *lp_batch_gpu_memory(lp_batch *batch); /* NULL: a processor's code */
/* Behind a pass: waits for all of it, so that its sequences may be run alone or end. */
LP_MUST_USE lp_status lp_batch_end(lp_batch *batch, lp_diag *diag);
/* The first program that is the same code on this side, step by step. */
int32_t lp_program_code(const lp_bundle *bundle, lp_side_id side, int32_t program);

/* ---- what happened when (exec/trace.c) -------------------------------------------------------------------------------- */

typedef enum { LP_LANE_DEVICE, LP_LANE_UPLOAD, LP_LANE_LINK, LP_LANE_CLOUD, LP_LANE_COUNT } lp_trace_lane;

/* Times are lp_now_ms(). `position` is that of the first token; counts below 0 are left out. */
typedef struct {
  const char *name; /* not copied */
  double begin_ms, end_ms;
  int64_t position, tokens, bytes;
} lp_trace_span;
/* By the worker's clock. */
typedef struct {
  double asked_ms, began_ms, sent_ms;
} lp_cloud_times;

/* Without a trace (NULL) they do nothing. */
void lp_trace_put(lp_trace *trace, lp_trace_lane lane, const lp_trace_span *span);
/* A request and its answer: the span is the device's, first sent to received. What the worker says of it is put there and on the cloud's
 * lane, and bounds how far its clock is from the device's: what it was asked came after it was sent, its answer before it was
 * received. `times` NULL: it says nothing. */
void lp_trace_request(lp_trace *trace, lp_trace_lane lane, const lp_trace_span *span, const lp_cloud_times *times);
void lp_trace_token(lp_trace *trace, double ms, const lp_generated *token);

struct Lp__Wire__Times;
/* NULL for NULL. */
const lp_cloud_times *lp_cloud_times_of(const struct Lp__Wire__Times *times, lp_cloud_times *out);

/* ---- session (session/session.c) ----------------------------------------------------------------------------------------- */

/* Times one walk. A step is as many parts as it marks, or one. */
typedef struct lp_stopwatch {
  lp_clock clock; /* first: the code is handed its address */
  double *mark;   /* [most] when parts of the running step began */
  int32_t marks, most;
  double *part_ms; /* [parts of the program] */
  size_t parts;    /* so far */
} lp_stopwatch;

struct lp_session {
  const lp_bundle *bundle;
  lp_generate_options options;
  lp_pool *pool;
  lp_executor *executor[LP_SIDE_COUNT]; /* the cloud's only when it runs in this process */
  bool remote;                          /* the cloud's side is a worker */
  lp_wire *link;                        /* NULL: one process, or not connected */
  uint64_t id;
  int32_t logits; /* the output that tokens are sampled from, or -1 */
  bool lost;      /* the connection broke in the last walk: what the worker knew of the session is gone */
  lp_endpoint endpoint;
  struct lp_link_emulator *emulator;
  struct lp_security *security;
  uint64_t bytes_up, bytes_down; /* over connections that are closed */
  uint64_t told_up, told_down;   /* of all connections: in the totals of earlier generations */
  uint64_t waits;                /* times the device waited for the cloud */
  double wait_ms, cloud_ms;      /* for how long, and of that: the cloud computed */
  lp_buf scratch, rows;
  lp_stopwatch *watch; /* of a walk in this process; NULL: nobody times */
};

/* One run of a program. `input[i]` is what the manifest's input i holds (`input_size` bytes). */
typedef struct {
  int32_t program;
  int64_t sym[LP_MAX_SYMBOLS];
  const lp_span *input; /* [inputs] */
  lp_span *output;      /* [outputs], each allocated by the run; NULL: sample instead */
  lp_sample *sample;    /* [b]: filled when the program has logits */
  lp_side_id sampled_on;
  lp_buf *logits; /* NULL or: where sequence 0's logits go when they are in this process */
} lp_walk;

LP_MUST_USE lp_status lp_session_walk(lp_session *session, lp_walk *walk, lp_diag *diag);
/* An input step and an output step of a side in this process. */
LP_MUST_USE lp_status lp_walk_fill(lp_walk *walk, lp_executor *executor, const lp_step *step, lp_diag *diag);
LP_MUST_USE lp_status lp_walk_output(lp_session *session, lp_walk *walk, lp_executor *executor, const lp_step *step,
                                     lp_diag *diag);
/* What a side in this process ran. */
void lp_walk_trace(const lp_session *session, const lp_walk *walk, const lp_step *step, double begin_ms, double end_ms);
bool lp_walk_wants(const lp_session *session, const lp_walk *walk, const lp_step *step);

/* With a worker (session/session_remote.c). */
/* Once; does nothing when the cloud's side is here. */
LP_MUST_USE lp_status lp_session_connect(lp_session *session, lp_diag *diag);
LP_MUST_USE lp_status lp_session_walk_remote(lp_session *session, lp_walk *walk, lp_diag *diag);
void lp_session_disconnect(lp_session *session);
double lp_session_timeout_ms(const lp_session *session); /* the longest wait for the worker */

/* The plan for prompts of `length` tokens that are to be gone on with for `most`: the one that the options name, or else the one
 * in whose regions the request and the link as measured lie. Says it in `out`. The session is connected. (session/choose_plan.c) */
LP_MUST_USE lp_status lp_session_choose_plan(lp_session *session, int64_t length, int64_t most, lp_generation *out,
                                             lp_diag *diag);

#endif
