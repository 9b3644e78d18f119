/* The names of operators in tables of measurements, and the FLOPs and bytes of each. */
#include "hwmodels/hwmodels.h"

const char *const lp_hw_size_names[LP_HW_SIZES] = {"m",      "n",     "k",        "batch",   "q_len",
                                                   "kv_len", "heads", "kv_heads", "head_dim"};

/* The size of that index in the facts. */
static const size_t size_offset[LP_HW_SIZES] = {
    offsetof(lp_op_facts, m),     offsetof(lp_op_facts, n),        offsetof(lp_op_facts, k),
    offsetof(lp_op_facts, batch), offsetof(lp_op_facts, q_len),    offsetof(lp_op_facts, kv_len),
    offsetof(lp_op_facts, heads), offsetof(lp_op_facts, kv_heads), offsetof(lp_op_facts, head_dim)};

enum { NEEDS_M = 1, NEEDS_N = 2, NEEDS_K = 4, POINTWISE = NEEDS_M | NEEDS_N, NEEDS_ATTENTION = 0x1f8 };

typedef struct {
  const char *name;
  lp_kind kind;
  int needs;    /* bit i: size i */
  double moved; /* pointwise: elements read and written per element of the result */
  double flops; /* pointwise: per element */
} op_row;

static const op_row rows[LP_HW_OP_COUNT] = {
    [LP_HW_LINEAR] = {"linear", LP_OP_LINEAR, POINTWISE | NEEDS_K, 0, 0},
    [LP_HW_ATTENTION] = {"attention", LP_OP_ATTENTION, NEEDS_ATTENTION, 0, 0},
    [LP_HW_EMBEDDING] = {"embedding", LP_OP_GATHER, POINTWISE, 2, 0},
    [LP_HW_ADD] = {"add", LP_OP_MAP, POINTWISE, 3, 1},
    [LP_HW_NORM] = {"norm", LP_OP_NORM, POINTWISE, 2, 5},
    [LP_HW_ROTARY] = {"rotary", LP_OP_ROTARY, POINTWISE, 2, 3},
    [LP_HW_GATED_ACT] = {"gated_act", LP_OP_FUSED, POINTWISE, 3, 2},
    [LP_HW_SOFTMAX] = {"softmax", LP_OP_SOFTMAX, POINTWISE, 2, 5},
    [LP_HW_COPY] = {"copy", LP_OP_KV_APPEND, POINTWISE, 2, 0},
    [LP_HW_SAMPLE] = {"sample", LP_OP_RETURN, POINTWISE, 1, 1},
    [LP_HW_ANY] = {"any", LP_OP_COUNT, 0, 0, 0},
};

const char *lp_hw_op_name(lp_hw_op op) {
  return rows[op].name;
}

lp_status lp_hw_op_parse(const char *text, lp_hw_op *op, lp_diag *diag, lp_loc loc) {
  const char *names[LP_HW_OP_COUNT];
  for (size_t i = 0; i < LP_HW_OP_COUNT; i++) {
    names[i] = rows[i].name;
    if (!lp_streq(text, names[i])) continue;
    *op = (lp_hw_op)i;
    return LP_OK;
  }
  return lp_error_near(diag, loc, text, names, LP_HW_ANY, "unknown operator '%s'", text);
}

lp_hw_op lp_hw_op_of(lp_kind kind) {
  for (size_t i = 0; i < LP_HW_ANY; i++)
    if (rows[i].kind == kind) return (lp_hw_op)i;
  if (kind == LP_OP_ADD_NORM) return LP_HW_NORM;
  bool moves = kind == LP_OP_CONCAT || kind == LP_OP_SLICE || kind == LP_OP_TRANSPOSE || kind == LP_OP_EXPAND ||
               kind == LP_OP_PAD;
  return moves ? LP_HW_COPY : LP_HW_ANY;
}

bool lp_hw_op_needs(lp_hw_op op, size_t size) {
  return rows[op].needs >> size & 1;
}

void lp_hw_op_set_size(lp_op_facts *facts, size_t size, int64_t value) {
  *(int64_t *)((char *)facts + size_offset[size]) = value;
}

int64_t lp_hw_op_size(const lp_op_facts *facts, size_t size) {
  return *(const int64_t *)((const char *)facts + size_offset[size]);
}

double lp_hw_attention_pairs(double q_len, double kv_len) {
  double unseen = q_len <= kv_len ? q_len * (q_len - 1) / 2 : 0;
  return q_len * kv_len - unseen;
}

void lp_hw_op_facts(lp_hw_op op, lp_op_facts *facts) {
  double size = lp_dtype_bits(facts->dtype) / 8.0;
  double m = (double)facts->m, n = (double)facts->n, k = (double)facts->k;
  facts->kind = rows[op].kind;
  if (op == LP_HW_LINEAR) {
    facts->flops = 2 * m * n * k;
    facts->bytes = size * (m * k + n * k + m * n);
  } else if (op == LP_HW_ATTENTION) {
    double batch = (double)facts->batch, q = (double)facts->q_len, kv = (double)facts->kv_len;
    double width = (double)(facts->heads * facts->head_dim), kv_width = (double)(facts->kv_heads * facts->head_dim);
    facts->flops = 4 * batch * width * lp_hw_attention_pairs(q, kv);
    facts->bytes = size * 2 * batch * (q * width + kv * kv_width);
  } else {
    facts->flops = rows[op].flops * m * n;
    facts->bytes = size * rows[op].moved * m * n;
  }
}
