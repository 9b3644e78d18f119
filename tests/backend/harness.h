/* The conformance suite's bench: builds a planned module of one function and one segment by calls, gives it random
 * operands, runs it through a backend and compares every result with the reference interpreter (lp_value_eval). */
#ifndef LP_TEST_HARNESS_H
#define LP_TEST_HARNESS_H

#include "backend/backend.h"
#include "runner.h"

#include "tests/suite.h"

enum { HARNESS_MOST_VALUES = 512 };

/* A KV cache: its rows [0, p) are random, the function appends the rest. */
typedef struct {
  lp_value *result; /* of op.kv_append; NULL: the state, like all after it, is replaced and not compared */
  int64_t bytes;
  float *values;       /* [b][heads][c][d] at the start */
  void *before, *data; /* the initial content in the cache's type; the content after the run */
} harness_state;

typedef struct {
  lp_module *module;
  lp_op *func;
  lp_block *block;
  lp_diag *diag;
  lp_arena *arena;
  int64_t sym[LP_SYM_COUNT];
  uint64_t random, constant_random; /* two seeds, so that constants do not depend on the sizes of inputs */
  lp_value *input[HARNESS_MOST_VALUES];
  lp_array array[HARNESS_MOST_VALUES]; /* of the inputs */
  int32_t input_count;
  lp_value *result[HARNESS_MOST_VALUES];
  int32_t result_count;
  harness_state state[64];
  int32_t state_count;
  int64_t buffer_count;
  double rtol, atol;
  double step;    /* later operands are multiples of it; 0: any values */
  bool only_long; /* the quick part leaves this case out, so the long part also runs it as code for this processor */
  const char *gpu_lacks; /* why a GPU does not run the case, as its backend says of an operator; NULL: it has to run */
} harness;

/* Symbols: b batch, s new tokens, p past tokens; capacity is p + s + 3, r is 1. */
harness *harness_create(int64_t b, int64_t s, int64_t p);
void harness_free(harness *h);

/* "b,s,64" in the module's symbols; f32 unless said. */
lp_type harness_type(harness *h, lp_dtype dtype, const char *dims);

/* Random operands in [low, high]; integers are whole, bools 0 or 1. Make inputs before any operator. */
lp_value *harness_input(harness *h, lp_dtype dtype, const char *dims, double low, double high);
lp_value *harness_constant(harness *h, lp_dtype dtype, const char *dims, double low, double high);

/* An operator on the side "device"; absent operands are NULL. Its results are not compared unless kept. */
lp_op *harness_op(harness *h, lp_kind kind, int32_t in_count, lp_value *const *in, int32_t out_count,
                  const lp_type *out);
lp_value *harness_op1(harness *h, lp_kind kind, int32_t in_count, lp_value *const *in, lp_type out);
#define HARNESS_OP(h, kind, out, ...)                                                                                  \
  harness_op1((h), (kind), (int32_t)(sizeof((lp_value *[]){__VA_ARGS__}) / sizeof(lp_value *)),                        \
              (lp_value *[]){__VA_ARGS__}, (out))
/* A floating-point attribute, a word or a number, on the operator that made `value`; returns `value`. */
lp_value *harness_f64(harness *h, lp_value *value, const char *name, double number);
lp_value *harness_str(harness *h, lp_value *value, const char *name, const char *word);
lp_value *harness_i64(harness *h, lp_value *value, const char *name, int64_t number);
lp_value *harness_bool(harness *h, lp_value *value, const char *name, bool on);
void harness_keep(harness *h, lp_value *value);
/* The last r rows of x, which is [b, s, n]. */
lp_value *harness_last_rows(harness *h, lp_value *x);
/* Appends x to a new cache. */
lp_value *harness_append(harness *h, lp_value *x, const char *layout, int64_t heads, int64_t d);
lp_value *harness_append_as(harness *h, lp_dtype dtype, lp_value *x, const char *layout, int64_t heads, int64_t d);

/* Ends the function and plans it: one segment; buffers that never live at once share slots. */
void harness_finish(harness *h);

/* Runs and compares, unless the suite is on a GPU or in ONNX. Fails the test with the operator's text. */
void harness_check(harness *h, const char *backend, const char *march, int64_t threads);
/* Runs and compares under every runnable backend: native with 1, 2 and 3 threads; about half of the modules in the
 * long part, and the others in the soak, for x86-64-v3, and for aarch64 under an emulator if there is one; with
 * LP_TEST_GPU in the environment instead: "cuda" as CUDA code with its own launches, compiled for the CPU (tests/gpu);
 * "opencl" or "driver" (CUDA) by the runtime, on whatever GPU there is; with LP_TEST_ONNX as ONNX of that opset,
 * imported again. */
void harness_check_all(harness *h);

/* ---- parts (harness_run.c, harness_foreign.c) ---- */

/* Runs the code: result i goes to out[i], and states are updated. Code is emitted once per module text and march and
 * kept for the process: sizes are not part of it. */
void harness_run_native(harness *h, const lp_backend *backend, const lp_emit_options *options, runner_job *job);
/* false: a tool is missing and the check is skipped, with a note. */
bool harness_run_foreign(harness *h, const lp_backend *backend, const lp_emit_options *options, runner_job *job);
/* Runs on a GPU by the runtime; the results can be recorded afterwards. */
void harness_run_gpu(harness *h, const lp_backend *backend, const lp_emit_options *options, runner_job *job);
void harness_record(harness *h, const lp_backend *backend, const lp_emit_options *options, const runner_job *job);
/* Tells whether a GPU's code runs the case, or will once it is recorded. */
bool harness_is_for_gpu(void);
/* Tells whether there is a device. If not, `why` (256 bytes) receives the reason. */
bool harness_has_gpu(const char *language, char why[256]);
/* Writes the function as ONNX, and gives what the reference makes of the imported model. Operators that ONNX cannot say
 * leave the function first, with those that read them; false: nothing is left. */
bool harness_run_onnx(harness *h, int64_t opset, lp_array *out);
int64_t harness_array_bytes(const lp_array *array);
/* Gives the array this type, which holds its values. */
void harness_widen(harness *h, lp_dtype dtype, lp_array *array);
/* The data section of the side's weights; `file` owns it. */
const char *harness_weights(harness *h, const lp_backend *backend, const lp_emit_options *options, lp_buf *file);
_Noreturn void harness_fail(const harness *h, const char *what);
/* The key of an emission: the module's text, the backend, the march. */
uint64_t harness_code_key(const harness *h, const lp_backend *backend, const lp_emit_options *options);
char *harness_temporary(const char *suffix); /* a path of this process; release with free() */

#endif
