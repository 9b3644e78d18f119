/* The CPU micro-kernels: the contract between them and the code generator, which links their bitcode, emits one
 * function for each set of a model's constants that calls a kernel, and optimises it for the target. Kernels know
 * vectors of 16 floats and an `isa` that picks tile shapes; they know no models or modules. C and freestanding: the
 * only outside functions are memcpy, memset and sched_yield.
 *
 * Calling. A kernel's parameters come in this order: output, inputs, run-time sizes, constants (below "const:"),
 * scratch, barrier, thread, threads. A constant must be a literal in the emitted call, otherwise code for every case is
 * emitted and tiles stay in memory. Kernels are alwaysinline, so the generator makes, for each distinct set of
 * constants, one function that is internal, noinline and nounwind. Its parameters are the pointers and the run-time
 * sizes.
 *
 * Attributes of those functions (and of every other emitted function):
 *   "target-cpu", "target-features"   of --march; x86-64 needs avx2, fma and f16c at least; aarch64 must not have
 *                                     outline-atomics (no shared library has its helpers); no "tune-cpu" of another
 *                                     CPU
 *   "prefer-vector-width"="512"       when the features include avx512f and avx512vl; otherwise leave it out
 *   "stackrealign"                    likewise: LLVM spills 64 bytes to addresses that are multiples of 16 otherwise
 *   "min-legal-vector-width"          must not be present: with a value below 512 LLVM splits the 512-bit vectors
 * Kernels carry "target-cpu"="x86-64" (aarch64: none) from their own compilation. Inlining needs only that the caller's
 * features include theirs. Externals must be made internal after linking, so that O3 drops the functions that nothing
 * calls.
 *
 * Threads. Every thread calls with the same arguments except `thread`, and each does its share. Inputs must be complete
 * before (a barrier between operators), outputs are complete after the next barrier. Kernels with phases take
 * `barrier`.
 *
 * Memory. float, f16, bf16 and i64 pointers are aligned to their element; packed weights and scratch to 64 bytes.
 * Nothing is read or written outside the stated shapes, except that prefetches touch addresses past the end of weights.
 * Outputs do not overlap inputs unless said. Strides are in elements, sizes in elements unless named bytes.
 */
#pragma once

#include "base/abi.h"

#include <stddef.h>
#include <stdint.h>

/* Element types. */
enum {
  LPK_F32,
  LPK_F16,
  LPK_BF16,
  LPK_I64,
  LPK_I32,
  LPK_U8,
  LPK_I8,
  LPK_I16,
  LPK_U16,
  LPK_U32,
  LPK_F64,
  LPK_I4, /* packed, the first element in the low bits */
  LPK_U4,
  LPK_I2,
  LPK_U2,
  LPK_MINI /* + lp_mini: floats of 8 bits, and of 4, packed */
};

/* Register tiles: AVX-512 12x32, AVX2 6x16, NEON 6x16. */
enum { LPK_ISA_AVX512, LPK_ISA_AVX2, LPK_ISA_NEON };

/* Integer dot products: vpmaddwd and vpmaddubsw of AVX2, vpdpbusd of 256 or 512 bits, smull of any NEON, sdot, smmla
 * for tiles beside sdot, and AMX for tiles beside vpdpbusd of 512 bits. */
enum { LPK_DOT_AVX2, LPK_DOT_VNNI256, LPK_DOT_VNNI512, LPK_DOT_SMULL, LPK_DOT_SDOT, LPK_DOT_I8MM, LPK_DOT_AMX };

/* Products of weights in bf16: in f32; or x is rounded to bf16 and multiplied by the target's dot product of bf16, or
 * by AMX, where k must be at least LPK_PAIRS_LEAST. */
enum { LPK_PAIRS_NONE, LPK_PAIRS_DOT, LPK_PAIRS_AMX };
#define LPK_PAIRS_LEAST 32

/* Activations. Quick GELU is x * sigmoid(1.702 x). */
enum {
  LPK_ACT_NONE,
  LPK_ACT_RELU,
  LPK_ACT_GELU_TANH,
  LPK_ACT_GELU_ERF,
  LPK_ACT_SILU,
  LPK_ACT_QUICK_GELU,
  LPK_ACT_SIGMOID,
  LPK_ACT_TANH
};

enum {
  LPK_REDUCE_SUM,
  LPK_REDUCE_MEAN,
  LPK_REDUCE_MAX,
  LPK_REDUCE_MIN,
  LPK_REDUCE_PROD,
  LPK_REDUCE_SUMSQ,
  LPK_REDUCE_L1,
  LPK_REDUCE_L2,
  LPK_REDUCE_LOGSUM,
  LPK_REDUCE_LOGSUMEXP
};

enum { LPK_SCATTER_NONE, LPK_SCATTER_ADD, LPK_SCATTER_MUL, LPK_SCATTER_MIN, LPK_SCATTER_MAX };

enum { LPK_MAX_RANK = 8 };

/* Waits until all `threads` have called. Under 0.2 us between running threads; yields the processor after a long
 * spin. */
void lpk_barrier(lp_barrier *barrier, int64_t threads);
/* Thread 0 tells the frame's clock, when there is one, that an operator begins. */
void lpk_mark(const lp_frame *frame, int64_t thread);

/* ---- linear ------------------------------------------------------------------------------------------------------ */

/* Columns of a weight panel. Packed weights: [panels][k][LPK_PANEL], see pack.h; the same for every ISA. */
#define LPK_PANEL 32
#define LPK_PANELS(n) (((n) + LPK_PANEL - 1) / LPK_PANEL)

/* Blocking of the GEMM: inner block of k, rows of a block of m (a multiple of every tile height). */
#define LPK_KC 256
#define LPK_MC 192
#define LPK_PIECES_BYTES 64 /* counts the pieces of a thread's share (pieces.h) */
#define LPK_LINEAR_THREAD_BYTES (LPK_PIECES_BYTES + 4 * (LPK_KC * LPK_PANEL + 3 * LPK_MC * LPK_PANEL))

/* Scratch bytes of lpk_linear; `m` is the largest number of rows. The scratch holds the packed rows and their sums for
 * each group of k; a group has at least 16 elements. */
#define LPK_LINEAR_SCRATCH(m, k, threads)                                                                              \
  (((m) + 16) * ((k) + (k) / 16 + 1) * 4 + 64 + (threads) * LPK_LINEAR_THREAD_BYTES)

/* Weights in groups: rows [g * group, (g + 1) * group) of a panel share a scale, and with `zeros` a zero point, for
 * each column. A panel is its groups in order (pack.h): scales [LPK_PANEL] of type `scale` (LPK_F32, LPK_F16 or
 * LPK_BF16), zero points likewise, codes of `bits` (8, 6, 5, 4 or 2; 0: the weights are not in groups). A weight is
 * (code - zero) * scale, or with LPK_MINIMA code * scale - zero; without zero points the zero is 0 for 8 bits, which
 * have signed codes, and the middle of the range for the others. 32 / bits rows of a column share a word of 32 bits;
 * codes of 5 and 6 bits are words of 4 bits, and after those of the group words of the high bits (pack.h).
 *
 * LPK_DOUBLES, LPK_UNEVEN and LPK_NORMAL name a book of lp_block_books (ir/blocks.h). A code is then stored as 4 bits,
 * which select one of the book's 16 values. `bits` is the width of these values: 5 for LPK_DOUBLES, else 8. There are
 * no zero points.
 *
 * With LPK_E4M3 a code is a float of type f8e4m3fn, and there are no zero points. The kernels read its two NaN codes as
 * 480, so a group that contains a NaN must have NaN as its scale. Two rows of a column share 16 bits.
 * lpk_linear_integer does not accept such weights.
 *
 * If `super` is not 0, `super` groups form a super-block. Its scales and minima are bytes (`scale`: LPK_I8 or LPK_U8).
 * They are multiplied by an f16 for each column, which lies before the groups: [LPK_PANEL] for the scales, and
 * [LPK_PANEL] more for the minima. k is a multiple of the super-block's rows. A group may then have 16 rows for
 * lpk_linear_integer, but not with the dot products LPK_DOT_AMX and LPK_DOT_I8MM. */
enum { LPK_ZEROS = 1, LPK_MINIMA, LPK_DOUBLES, LPK_UNEVEN, LPK_NORMAL, LPK_E4M3 };
typedef struct {
  int bits, scale, zeros, super;
  int64_t group;
} lpk_groups;

/* What is constant in a linear: its sizes, the type of its weights (LPK_U8 in groups), and what follows the product. */
typedef struct {
  int64_t n, k;
  int dtype, act, gated, isa;
  int dot;   /* LPK_DOT_*, for lpk_linear_integer */
  int pairs; /* LPK_PAIRS_* */
  lpk_groups q;
} lpk_linear_form;

/* y[m][n] = residual + act(x[m][k] . W + bias), or gated: y = residual + act(x . G + bias_g) * (x . U + bias_u). w:
 * LPK_PANELS(n) packed panels; gated: 2 * LPK_PANELS(n), panel 2j of G, panel 2j + 1 of U. bias: NULL or f32 [panels of
 * w][LPK_PANEL], zero padded. residual: NULL or rows at stride ldy; may equal y. m = 1 .. 4 streams each panel once
 * (GEMV); a larger m packs x into scratch (one inner barrier) and runs a blocked GEMM: its threads take panels in
 * pieces. A row's result does not depend on the other rows, to the bit. `bias` and `residual` must be literal null
 * where absent, and `form` must point to a constant. x must not overlap y. */
void lpk_linear(float *y, const float *x, const void *w, const float *bias, const float *residual, int64_t m,
                int64_t ldx, int64_t ldy, const lpk_linear_form *form, void *scratch, lp_barrier *barrier,
                int64_t thread, int64_t threads);

/* Like lpk_linear, with weights in groups and integer products: x is rounded to 8 bits with a scale for each row and
 * block of 32 elements. A group has a multiple of 32 rows, or all k. Also uses scratch for m = 1 .. 4. */
void lpk_linear_integer(float *y, const float *x, const void *w, const float *bias, const float *residual, int64_t m,
                        int64_t ldx, int64_t ldy, const lpk_linear_form *form, void *scratch, lp_barrier *barrier,
                        int64_t thread, int64_t threads);

/* Bytes of a row of rounded activations: codes of up to 16 bits, and the scale and sum of each block. */
#define LPK_INTEGER_ROW_BYTES(k) (((k) + 31) / 32 * 72)
#define LPK_INTEGER_PAIR_BYTES(k) ((2 * LPK_INTEGER_ROW_BYTES(k) + 63) / 64 * 64)
/* Scratch bytes: for each thread decoded weights and their scales, sums, and two pairs of rows; a tile more than m
 * rows. */
#define LPK_INTEGER_THREAD_BYTES(k)                                                                                    \
  (LPK_PIECES_BYTES + 4 * (LPK_KC / 2 * LPK_PANEL + LPK_KC / 16 * LPK_PANEL + 2 * LPK_MC * LPK_PANEL) +                \
   2 * LPK_INTEGER_PAIR_BYTES(k))
#define LPK_INTEGER_SCRATCH(m, k, threads)                                                                             \
  (((m) + 12) * LPK_INTEGER_ROW_BYTES(k) + (threads) * LPK_INTEGER_THREAD_BYTES(k))

/* y[m][n]: row r is x[r / shared] times the weight of expert index[r]. w has the panels of all `experts` one after the
 * other, and bias their biases. A row with another index is zero. Panels, bias and form are lpk_linear's; x has rows of
 * k. Threads divide the panels of the experts that have rows; rows of an expert are multiplied together. */
void lpk_experts(float *y, const float *x, const void *w, const float *bias, const int64_t *index, int64_t m,
                 int64_t experts, int64_t shared, const lpk_linear_form *form, void *scratch, int64_t thread,
                 int64_t threads);
/* The same as lpk_linear_integer. */
void lpk_experts_integer(float *y, const float *x, const void *w, const float *bias, const int64_t *index, int64_t m,
                         int64_t experts, int64_t shared, const lpk_linear_form *form, void *scratch, int64_t thread,
                         int64_t threads);

/* A thread's bytes besides the order of rows: `product`, LPK_LINEAR_SCRATCH or LPK_INTEGER_SCRATCH of LPK_MC rows and
 * one thread, and these rows. Each thread has a copy of the order. */
#define LPK_EXPERTS_THREAD_BYTES(product, k) (((product) + LPK_MC * (k) * 4 + 63) / 64 * 64)
#define LPK_EXPERTS_ORDER_BYTES(m, experts) (4 * ((m) + (experts)))

/* ---- quantising -------------------------------------------------------------------------------------------------- */

/* The layout of scales over an array [outer][size][inner]: the scale of element (o, a, i) is at o * so + a / group * sa
 * + i * si. */
typedef struct {
  int64_t total, size, inner, group, so, sa, si;
} lpk_cover;

/* y = (x - zero) * scale; x of `dtype`, zero NULL or of `zero_dtype`. */
void lpk_dequantize(float *y, const void *x, const float *scale, const void *zero, const lpk_cover *cover,
                    const lpk_cover *zero_cover,
                    /* const: */ int dtype, int zero_dtype, int64_t thread, int64_t threads);

/* y = saturated round(x / scale) + zero, of `dtype`, as zero (NULL: 0). Ties to even. */
void lpk_quantize(void *y, const float *x, const float *scale, const void *zero, const lpk_cover *cover,
                  const lpk_cover *zero_cover,
                  /* const: */ int dtype, int saturate, int64_t thread, int64_t threads);

/* ---- batched matrix product of two activations ------------------------------------------------------------------- */

/* Rows and columns of a block of C held by one thread. */
#define LPK_MATMUL_ROWS 96
#define LPK_MATMUL_COLS 128
#define LPK_MATMUL_SCRATCH(threads)                                                                                    \
  ((threads) * 4 * (LPK_KC * LPK_MATMUL_ROWS + LPK_KC * LPK_PANEL + LPK_MATMUL_ROWS * LPK_MATMUL_COLS))

/* Strides of one operand: row, column, and one for each batch dimension (0 where it is broadcast). */
typedef struct {
  int64_t row, col;
  int64_t batch[6];
} lpk_matrix;

/* c[batch..][m][n] = alpha * a[batch..][m][k] . b[batch..][k][n]; strides express a transposition. c's column stride is
 * 1. dims: [rank] batch sizes, rank 0 .. 6. */
void lpk_matmul(float *c, const float *a, const float *b, const int64_t *dims, const lpk_matrix *cs,
                const lpk_matrix *as, const lpk_matrix *bs, int64_t m, int64_t n, int64_t k,
                /* const: */ int rank, float alpha, int isa, void *scratch, int64_t thread, int64_t threads);

/* Like lpk_matmul in another element type: LPK_I32, LPK_I64 (both wrap) or LPK_F64; plain loops. */
void lpk_matmul_plain(void *c, const void *a, const void *b, const int64_t *dims, const lpk_matrix *cs,
                      const lpk_matrix *as, const lpk_matrix *bs, int64_t m, int64_t n, int64_t k,
                      /* const: */ int rank, int dtype, int64_t thread, int64_t threads);

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* Query rows of a unit of work (positions x the heads that share a KV head), keys of a block, and keys of a stretch.
 * Each stretch has a sum of its own. */
#define LPK_ATTENTION_ROWS 192
#define LPK_ATTENTION_KEYS 128
#define LPK_ATTENTION_STRETCH 512
#define LPK_ROUND16(n) (((n) + 15) / 16 * 16)

/* Floats of a thread's scratch: a count of pieces, Q, S, O, the rows' statistics, the sums of stretches, K and V. */
#define LPK_ATTENTION_THREAD_FLOATS(d, dv)                                                                             \
  (LPK_PIECES_BYTES / 4 + LPK_ATTENTION_ROWS * (LPK_ROUND16(d) + 2 * LPK_ROUND16(dv) + 24) +                           \
   LPK_ATTENTION_KEYS * (LPK_ROUND16(d) + LPK_ROUND16(dv) + LPK_ATTENTION_SLOT_ROWS))
/* Results of the stretches of a unit that threads share: it has few rows. */
#define LPK_ATTENTION_SLOT_ROWS 12
#define LPK_ATTENTION_SLOT_FLOATS(dv) (LPK_ATTENTION_SLOT_ROWS * (LPK_ROUND16(dv) + 16))
#define LPK_ATTENTION_SLOTS(keys) ((keys) / LPK_ATTENTION_STRETCH + 3)
/* Scratch bytes of lpk_attention for p + s <= keys; linear in `keys`. */
#define LPK_ATTENTION_KEY_BYTES(dv) (4 * LPK_ATTENTION_SLOT_FLOATS(dv) / LPK_ATTENTION_STRETCH + 1)
#define LPK_ATTENTION_SCRATCH(d, dv, keys, threads)                                                                    \
  ((threads) * (4 * LPK_ATTENTION_THREAD_FLOATS(d, dv) + 12 * LPK_ATTENTION_SLOT_FLOATS(dv) +                          \
                (keys) * LPK_ATTENTION_KEY_BYTES(dv)))

/* y[b][s][heads][dv] = softmax(cap(scale * q . K^T) + mask) . V over the first p + s rows of the caches. k_cache:
 * [b][kv_heads][c][d], v_cache: [b][kv_heads][c][dv], c >= p + s, of `dtype` (LPK_F32, LPK_F16, LPK_BF16; LPK_I8 and
 * LPK_U8: rows of codes, lp_cache_row, d and dv multiples of 32). Head h reads KV head h / (heads / kv_heads). sinks:
 * literal null or [heads], exp(sink) is added to each row's sum. qs, ys: strides of batch, token, head (a head's
 * elements are contiguous). mask: literal null or f32, added to the scaled scores, with strides ms of batch, head,
 * query, key (0 where broadcast). cap(x) = softcap * tanh(x / softcap) unless softcap is 0. causal: query i sees keys
 * 0 .. p + i. window > 0: only the last `window` of these. Without causal, p is any number with p + s = keys
 * (negative for a cross attention with fewer keys than queries), and window must be 0. A row that sees no key gives
 * zeros. A row's result depends neither on `threads` nor on the other rows, to the bit. */
void lpk_attention(float *y, const float *q, const void *k_cache, const void *v_cache, const float *mask,
                   const float *sinks, const int64_t *ys, const int64_t *qs, const int64_t *ms, int64_t b, int64_t s,
                   int64_t p, int64_t c,
                   /* const: */ int64_t heads, int64_t kv_heads, int64_t d, int64_t dv, float scale, float softcap,
                   int causal, int64_t window, int dtype, int isa, void *scratch, lp_barrier *barrier, int64_t thread,
                   int64_t threads);

/* Like lpk_attention, but q, k, v and the probabilities are rounded to bf16 and multiplied by the target's dot product
 * of bf16. */
void lpk_attention_pairs(float *y, const float *q, const void *k_cache, const void *v_cache, const float *mask,
                         const float *sinks, const int64_t *ys, const int64_t *qs, const int64_t *ms, int64_t b,
                         int64_t s, int64_t p, int64_t c,
                         /* const: */ int64_t heads, int64_t kv_heads, int64_t d, int64_t dv, float scale,
                         float softcap, int causal, int64_t window, int dtype, int isa, void *scratch,
                         lp_barrier *barrier, int64_t thread, int64_t threads);

/* y = rotary(x) for [b][s][heads][d], strides ys and xs of batch, token, head; the elements after rotary_dim are
 * copied. cos, sin: rotary_dim / 2 values for token t of batch i at i * table_batch + t * table_row. Half split:
 * pairs (i, i + rotary_dim / 2); interleaved: pairs (2i, 2i + 1). y may equal x. */
void lpk_rotary(float *y, const float *x, const float *cos, const float *sin, const int64_t *ys, const int64_t *xs,
                int64_t table_batch, int64_t table_row, int64_t b, int64_t s,
                /* const: */ int64_t heads, int64_t d, int64_t rotary_dim, int interleaved, int64_t thread,
                int64_t threads);

/* Copies rows x[b][s][kv_heads][d] (strides xs: batch, token, head) to rows p .. p + s of the cache
 * [b][kv_heads][c][d] of `dtype` (those of lpk_attention); with rotary_dim > 0, only in f32, rotated before they are
 * stored. */
void lpk_kv_append(void *cache, const float *x, const float *cos, const float *sin, const int64_t *xs,
                   int64_t table_batch, int64_t table_row, int64_t b, int64_t s, int64_t p, int64_t c,
                   /* const: */ int64_t kv_heads, int64_t d, int64_t rotary_dim, int interleaved, int dtype,
                   int64_t thread, int64_t threads);

/* Linear attention: for each token, S = exp(decay) S + k (x) w and y = scale * S^T q, where w is v, or with beta
 * beta * (v - S^T k). q, y: [b][rows][heads][d or dv]; k, v: [b][rows][kv_heads][d or dv]; past, state:
 * [b][kv_heads][d][dv], past null: zeros. decay: null, or per token one for each KV head (per_key: for each element
 * of its key). beta: null, or per token `betas` (1 or kv_heads). past, decay, beta are literal null where absent.
 * state must not equal past. `tokens`: -1, or those that `state` has seen, which goes on from there. */
void lpk_linear_attention(float *y, float *state, const float *q, const float *k, const float *v, const float *past,
                          const float *decay, const float *beta, int64_t b, int64_t rows, int64_t tokens,
                          /* const: */ int64_t heads, int64_t kv_heads, int64_t d, int64_t dv, float scale, int per_key,
                          int betas, int64_t thread, int64_t threads);

/* y[rows][n + s] = the n columns of last[rows][n], or zeros if it has seen 0 `tokens`, then x[rows][s]; `last` receives
 * the last n of them. */
void lpk_carry_columns(float *y, float *last, const float *x, int64_t rows, int64_t s, int64_t tokens,
                       /* const: */ int64_t n, int64_t thread, int64_t threads);

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* y[rows][n] = norm(x + residual) * weight + bias; rms: x / sqrt(mean(x^2) + eps), else layer norm. sum: NULL, or
 * receives x + residual. weight, bias, residual, sum: literal null where absent. All rows are contiguous except x
 * (stride ldx). y, sum may equal x or residual. */
void lpk_norm(float *y, float *sum, const float *x, const float *residual, const float *weight, const float *bias,
              int64_t rows, int64_t ldx, /* const: */ int64_t n, float eps, int rms, int64_t thread, int64_t threads);

/* Softmax or log-softmax of each row of [rows][n]; y may equal x. */
void lpk_softmax(float *y, const float *x, int64_t rows, int64_t n, /* const: */ int log, int64_t thread,
                 int64_t threads);

/* y[outer][inner] = reduction of x[outer][n][inner]; dtype LPK_F32 or LPK_I64 (SUM .. L1; MEAN truncates). */
void lpk_reduce(void *y, const void *x, int64_t outer, int64_t n, int64_t inner, /* const: */ int kind, int dtype,
                int64_t thread, int64_t threads);

/* y[outer][inner] = index of the first (last: the last) largest (min: smallest) element; f32. */
void lpk_argmax(int64_t *y, const float *x, int64_t outer, int64_t n, int64_t inner, /* const: */ int min, int last,
                int64_t thread, int64_t threads);

/* y[outer][k][inner], place[outer][k][inner] = the k <= n greatest (min: least) elements of x[outer][n][inner] in
 * order, and their indices along n. Of equal elements the first comes first; a NaN is greater than every number. dtype:
 * not a packed or mini one; natural: LPK_I64 is unsigned. */
void lpk_topk(void *y, int64_t *place, const void *x, int64_t outer, int64_t n, int64_t inner, int64_t k,
              /* const: */ int min, int dtype, int natural, int64_t thread, int64_t threads);

/* Running sums along n of [outer][n][inner]; dtype LPK_F32 or LPK_I64. y may equal x unless exclusive. */
void lpk_cumsum(void *y, const void *x, int64_t outer, int64_t n, int64_t inner, /* const: */ int exclusive,
                int reverse, int dtype, int64_t thread, int64_t threads);

/* ---- moving data ------------------------------------------------------------------------------------------------- */

/* Index operands are LPK_I64 or LPK_I32 (`itype`). A negative index counts from the end; an index outside is
 * clamped. */

/* y[outer][count][inner_bytes] = x[outer][index of axis][inner_bytes]; x has room for `rows` >= axis of these. */
void lpk_gather(void *y, const void *x, const void *index, int64_t outer, int64_t axis, int64_t rows,
                int64_t inner_bytes, int64_t count,
                /* const: */ int itype, int64_t thread, int64_t threads);

/* y[count][width] = f32(table[index][width]); table of dtype f32, f16 or bf16. */
void lpk_embed(float *y, const void *table, const void *index, int64_t count, int64_t vocab,
               /* const: */ int64_t width, int dtype, int itype, int64_t thread, int64_t threads);

/* The same for a table in groups, packed as the weight of a linear: row i of the table is column i of the panels. `q`
 * must point to a constant, and has no zero points. */
void lpk_embed_groups(float *y, const void *table, const void *index, int64_t count, int64_t vocab,
                      /* const: */ int64_t width, const lpk_groups *q, int itype, int64_t thread, int64_t threads);

/* GatherElements: y[dims] = x[.. index[dims] on `axis` ..]; y and index contiguous, x of sizes xdims, contiguous. */
void lpk_gather_elements(void *y, const void *x, const void *index, const int64_t *dims, const int64_t *xdims,
                         /* const: */ int rank, int axis, int size, int itype, int64_t thread, int64_t threads);

/* ScatterElements: y = x, then updates y[.. index[dims] on axis ..] with updates[dims] in the order of the index. dims
 * are not larger than xdims except on `axis`. A reduction is computed in dtype: LPK_F32, LPK_F64, LPK_I32, LPK_I64,
 * else u64; a NaN stays. */
void lpk_scatter_elements(void *y, const void *x, const void *index, const void *updates, const int64_t *dims,
                          const int64_t *xdims,
                          /* const: */ int rank, int axis, int size, int itype, int reduction, int dtype,
                          lp_barrier *barrier, int64_t thread, int64_t threads);

/* ScatterND: y = x (of sizes xdims), then each of `count` index tuples of `depth` values selects a slice of y, which
 * updates[i] replaces or joins as in lpk_scatter_elements. */
void lpk_scatter_nd(void *y, const void *x, const void *index, const void *updates, const int64_t *xdims, int64_t count,
                    /* const: */ int rank, int depth, int size, int itype, int reduction, int dtype, int64_t thread,
                    int64_t threads);

/* Copies an array of `dims` between strides in elements of `size` bytes (1, 2, 4 or 8): transpose, slice, concat part,
 * expand (stride 0 in xs), reversal (negative strides). x and y point at the first element. */
void lpk_copy(void *y, const void *x, const int64_t *dims, const int64_t *ys, const int64_t *xs,
              /* const: */ int rank, int size, int64_t thread, int64_t threads);

/* Fills `count` contiguous elements of `size` bytes with the low bytes of `bits`. */
void lpk_fill(void *y, int64_t count, uint64_t bits, /* const: */ int size, int64_t thread, int64_t threads);

/* y[i] = start + i * step; dtype LPK_F32 (lpk_range) or LPK_I64 (lpk_range_i64). */
void lpk_range(float *y, int64_t count, float start, float step, int64_t thread, int64_t threads);
void lpk_range_i64(int64_t *y, int64_t count, int64_t start, int64_t step, int64_t thread, int64_t threads);

/* ---- scalar functions for generated loops ------------------------------------------------------------------------ */

/* They are branch-free, so that the loop vectoriser uses full width. Within 2 ulp of the true value (tanh, sigmoid,
 * gelu, silu, softplus, pow: 4), sin and cos for |x| <= 1e5; NaN and infinities as libm. */
float lpk_exp(float x);
float lpk_log(float x);
float lpk_tanh(float x);
float lpk_sigmoid(float x);
float lpk_erf(float x);
float lpk_gelu_erf(float x);
float lpk_gelu_tanh(float x);
float lpk_quick_gelu(float x);
float lpk_silu(float x);
float lpk_softplus(float x);
float lpk_sin(float x);
float lpk_cos(float x);
float lpk_pow(float x, float y);

/* The same functions in double precision, within a few ulp, and those that exist only in double; sin and cos for |x| <=
 * 1e8. */
double lpk_exp_f64(double x);
double lpk_log_f64(double x);
double lpk_tanh_f64(double x);
double lpk_sigmoid_f64(double x);
double lpk_erf_f64(double x);
double lpk_gelu_erf_f64(double x);
double lpk_gelu_tanh_f64(double x);
double lpk_quick_gelu_f64(double x);
double lpk_silu_f64(double x);
double lpk_softplus_f64(double x);
double lpk_sin_f64(double x);
double lpk_cos_f64(double x);
double lpk_pow_f64(double x, double y);
double lpk_expm1_f64(double x);
double lpk_log1p_f64(double x);
double lpk_atan_f64(double x);

/* Decode and encode a float of 8 or 4 bits; `mini` and `saturate` are those of base/minifloat.h. */
float lpk_mini_decode(uint32_t code, /* const: */ int mini);
uint32_t lpk_mini_encode(float x, /* const: */ int mini, int saturate);
uint32_t lpk_e8m0_encode(float x, /* const: */ int rounding, int saturate); /* mini_encode rounds it up */
