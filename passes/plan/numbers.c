/* The numbers of the plan problem: times and bytes of operators, values, weights and KV caches at a request's sizes,
 * in its types and on its machines. Everything is evaluated from closed forms; nothing here changes the module. */
#include "passes/plan/numbers.h"
#include "base/abi.h"
#include "base/poly.h"
#include "base/side.h"
#include "ir/blocks.h"
#include "passes/passes.h"
#include "passes/plan/objective.h"
#include "passes/plan/plan.h"
#include "passes/state.h"

#include <math.h>

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* A model's further symbols (the length of an encoder) count as long as the prompt. */
static double *symbol_values(const lp_module *module, const lp_compile_request *request, double batch, double s,
                             double p, double c, lp_arena *arena) {
  const lp_symbols *symbols = &module->symbols;
  double *values = LP_NEW_ARRAY(arena, double, symbols->names.count);
  for (size_t i = 0; i < symbols->names.count; i++)
    values[i] = (double)request->isl;
  const struct {
    const char *name;
    double value;
  } known[] = {{"b", batch}, {"s", s}, {"p", p}, {"r", 1}, {"c", c}, {"t", 1}};
  for (size_t i = 0; i < LP_COUNT(known); i++) {
    lp_symbol symbol = lp_symbols_find(symbols, known[i].name);
    if (symbol) values[symbol - 1] = known[i].value;
  }
  return values;
}

static double size_at(const lp_plan_sizes *sizes, lp_side side, const lp_poly *poly) {
  return poly ? lp_poly_eval_f64(poly, sizes->value[side], sizes->count) : 0;
}

static double numel_at(const lp_plan_sizes *sizes, lp_side side, lp_type type) {
  double product = 1;
  for (int32_t i = 0; i < type.rank; i++)
    product *= size_at(sizes, side, type.dim[i]);
  return product;
}

/* The bytes of a constant operand as the side stores it. */
static double operand_bytes(const lp_compile_request *request, lp_side side, const lp_op *op, int32_t operand) {
  lp_weight_form forms[LP_WEIGHT_FORMS];
  int32_t count = lp_plan_weight_forms(op, operand, forms);
  double sum = 0;
  for (int32_t i = 0; i < count; i++)
    sum += lp_plan_weight_bytes(request, side, op, operand, forms[i]);
  return sum;
}

static int greater_first(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* The experts of an operator that a pass is expected to read, but for the `resident` ones that are chosen most often.
 * One that a share p of tokens chooses is read by a pass over t tokens with the chance 1 - (1 - p)^t; where each token
 * chooses j of E experts, all equally often, p is j/E. */
static double expected_experts(const lp_plan_sizes *sizes, lp_side side, const lp_op *op, int64_t resident) {
  const lp_type index = lp_op_in(op, 3)->type;
  const lp_attr *shares = lp_op_attr(op, "shares");
  const int64_t experts = lp_op_i64(op, "experts", 1);
  const double chosen = size_at(sizes, side, index.dim[index.rank - 1]);
  const double tokens = numel_at(sizes, side, index) / fmax(1, chosen);
  double sum = 0;
  if (!shares) return fmax(0, (double)(experts - resident)) * (1 - pow(fmax(0, 1 - chosen / (double)experts), tokens));
  LP_OWNED(lp_free_at) double *use = lp_alloc((size_t)shares->count * sizeof *use + 1);
  memcpy(use, shares->fs, (size_t)shares->count * sizeof *use);
  if (resident > 0) qsort(use, (size_t)shares->count, sizeof *use, greater_first);
  for (int64_t i = resident; i < shares->count; i++)
    sum += 1 - pow(fmax(0, 1 - use[i]), tokens);
  return sum;
}

/* The share of an operator's matrices that a pass is expected to read: 1 for op.linear. */
static double read_share(const lp_plan_sizes *sizes, lp_side side, const lp_op *op) {
  if (op->kind != LP_OP_EXPERTS) return 1;
  return expected_experts(sizes, side, op, 0) / (double)lp_op_i64(op, "experts", 1);
}

/* The experts of an operator that the side's memory holds; INT64_MAX: it holds all. */
static int64_t resident_experts(const lp_compile_request *request, lp_side side, const lp_op *op) {
  const bool some = op->kind == LP_OP_EXPERTS && side == LP_SIDE_DEVICE && request->device_experts > 0;
  return some ? request->device_experts : INT64_MAX;
}

/* The time in which a pass reads the chosen experts that memory does not hold from storage, in ms. */
static double fetch_ms(const lp_plan_sizes *sizes, lp_side side, const lp_machine *machine, const lp_op *op) {
  const int64_t resident = resident_experts(sizes->request, side, op);
  double bytes = 0;
  if (resident == INT64_MAX) return 0;
  for (int32_t i = 0; i < op->in_count; i++)
    if (op->in[i].value && lp_value_is_constant(op->in[i].value)) bytes += operand_bytes(sizes->request, side, op, i);
  return 1e3 * expected_experts(sizes, side, op, resident) * bytes / (double)lp_op_i64(op, "experts", 1) /
         machine->figure[LP_HW_LOAD_BANDWIDTH];
}

/* The bytes that every pass over the model reads: matrices, keys and values. */
static double pass_bytes(const lp_plan_sizes *sizes, lp_side side, const lp_block *block) {
  double sum = 0;
  LP_FOR_OPS(op, block) {
    for (int32_t i = 1; op->kind == LP_OP_ATTENTION && i <= 2; i++) {
      lp_type type = op->in[i].value->type;
      sum += numel_at(sizes, side, type) * lp_dtype_bits(type.dtype) / 8;
    }
    for (int32_t i = 0; lp_op_is_weighted(op) && i < op->in_count; i++)
      if (lp_value_is_constant(op->in[i].value))
        sum += operand_bytes(sizes->request, side, op, i) * read_share(sizes, side, op);
  }
  return sum;
}

/* The same of one rank of the cloud. */
static double pass_bytes_of_rank(const lp_plan_sizes *sizes, const lp_block *block, const lp_shard_stage *part) {
  double sum = 0;
  int32_t index = 0;
  LP_FOR_OPS(op, block) {
    if (!lp_op_is_placeable(op)) continue;
    const lp_op *own = part->part[index++];
    for (int32_t i = 1; op->kind == LP_OP_ATTENTION && i <= 2; i++) {
      lp_type type = own->in[i].value->type;
      sum += numel_at(sizes, LP_SIDE_CLOUD, type) * lp_dtype_bits(type.dtype) / 8;
    }
    for (int32_t i = 0; lp_op_is_weighted(op) && i < op->in_count; i++)
      if (lp_value_is_constant(op->in[i].value))
        sum += operand_bytes(sizes->request, LP_SIDE_CLOUD, op, i) * read_share(sizes, LP_SIDE_CLOUD, op) /
               (double)lp_shard_parts(own, i);
  }
  return sum;
}

void lp_plan_sizes_set(lp_plan_sizes *sizes, const lp_module *module, const lp_compile_request *request, lp_stage stage,
                       const lp_shard_stage *part, lp_arena *arena) {
  const double isl = (double)request->isl, past = (double)request->past, most = LP_PROMPT_PART;
  const double all = past + isl + (double)request->osl;
  int64_t halfway = request->past + request->isl + request->osl / 2;
  *sizes = (lp_plan_sizes){.request = request, .count = module->symbols.names.count};
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    double batch = (double)request->batch * lp_plan_shared_runs(request, stage, (lp_side)side);
    sizes->value[side] = stage == LP_STAGE_PREFILL
                             ? symbol_values(module, request, batch, isl, past, all, arena)
                             : symbol_values(module, request, batch, 1, (double)halfway, all, arena);
    sizes->part[side] = stage == LP_STAGE_PREFILL && request->generation && isl > most
                            ? symbol_values(module, request, batch, most, past + isl - most, all, arena)
                            : sizes->value[side];
    const lp_machine *machine = side == LP_SIDE_DEVICE ? request->device : request->cloud;
    const lp_block *block = lp_plan_stage_block(module, stage);
    if (machine && block && lp_hw_asks_pass_bytes(machine))
      sizes->pass_bytes[side] = part && side == LP_SIDE_CLOUD ? pass_bytes_of_rank(sizes, block, part)
                                                              : pass_bytes(sizes, (lp_side)side, block);
  }
}

static double dim_at(const lp_plan_sizes *sizes, lp_side side, const lp_value *value, int32_t axis) {
  if (!value || value->type.rank <= 0) return 0;
  if (axis < 0) axis += value->type.rank;
  return axis >= 0 && axis < value->type.rank ? size_at(sizes, side, value->type.dim[axis]) : 0;
}

double lp_plan_value_bytes(const lp_plan_sizes *sizes, lp_type type) {
  return numel_at(sizes, LP_SIDE_DEVICE, type) * lp_dtype_bits(type.dtype) / 8;
}

/* ---- weights and KV caches --------------------------------------------------------------------------------------- */

/* Tells whether the side's code is a CPU's, which keeps the blocks of weights. */
static bool keeps_blocks(const lp_compile_request *request, lp_side side) {
  const lp_machine *machine = side == LP_SIDE_CLOUD ? request->cloud : request->device;
  if (request->code[side]) return lp_has_prefix(request->code[side], "cpu ");
  return !machine || machine->kind == LP_MACHINE_CPU;
}

static bool is_onnx(const lp_compile_request *request, lp_side side) {
  return request->code[side] && lp_has_prefix(request->code[side], "onnx");
}

/* Tells whether the operand is stored as the code of a GPU stores the weights of products. */
static bool is_on_gpu(const lp_compile_request *request, lp_side side, const lp_op *op) {
  return lp_op_is_weighted(op) && !keeps_blocks(request, side) && !is_onnx(request, side);
}

/* The form in which a side stores a linear operator's weight. Blocks that the code does not keep become int8. */
static lp_storage weight_storage(const lp_compile_request *request, lp_side side, const lp_op *op, int32_t operand) {
  const lp_value *weight = op->in[operand].value;
  const char *name = side == LP_SIDE_CLOUD ? request->dtype_cloud : request->dtype_device;
  const lp_dtype own = weight->type.dtype;
  const lp_block_form *form = lp_weight_blocks(weight);
  lp_storage asked;
  const bool float8 = own == LP_F8E4M3FN && !is_onnx(request, side), on_gpu = is_on_gpu(request, side, op);
  bool converts = (float8 || !lp_dtype_is_code(own)) && !lp_op_bool(op, "exact", false);
  if (!converts || !lp_storage_find(name, &asked) || asked.packed)
    name = converts && form ? (keeps_blocks(request, side) ? form->name : "int8") : NULL;
  if (on_gpu && (operand == 1 || operand == 4)) return lp_storage_on_gpu(op, operand, name);
  return lp_storage_find(name, &asked) ? asked : lp_storage_of(own);
}

/* Tells whether the operator reads the constant as rows of an embedding's table, of a float type that products read. */
static bool embeds(const lp_op *op, int32_t operand) {
  const lp_value *table = op->in[operand].value;
  lp_dtype dtype = table->type.dtype;
  return op->kind == LP_OP_GATHER && operand == 0 && lp_op_i64(op, "axis", 0) == 0 && table->type.rank == 2 &&
         lp_value_is_constant(table) && (dtype == LP_F32 || dtype == LP_F16 || dtype == LP_BF16) &&
         op->out[0]->type.dtype == LP_F32;
}

/* Tells whether the operator reads the constant as the matrix of a product; `alone`: stored by rows, without a gate. */
static bool multiplies(const lp_op *op, int32_t operand, bool alone) {
  if (!lp_op_is_weighted(op) || (operand != 1 && operand != 4)) return false;
  return !alone ||
         (op->kind == LP_OP_LINEAR && lp_op_bool(op, "transpose_b", false) && !lp_op_in(op, 4) && !lp_op_in(op, 5));
}

static lp_weight_form form_of(const lp_op *op, int32_t operand) {
  bool table = false, matrix = false;
  for (const lp_use *use = op->in[operand].value->uses; use; use = use->next) {
    int32_t index = (int32_t)(use - use->owner->in);
    table |= embeds(use->owner, index);
    matrix |= multiplies(use->owner, index, true);
  }
  if (table && matrix && (embeds(op, operand) || multiplies(op, operand, true))) return LP_WEIGHT_TIED;
  if (embeds(op, operand)) return LP_WEIGHT_TABLE;
  return multiplies(op, operand, false) ? LP_WEIGHT_MATRIX : LP_WEIGHT_RAW;
}

int32_t lp_plan_weight_forms(const lp_op *op, int32_t operand, lp_weight_form forms[LP_WEIGHT_FORMS]) {
  forms[0] = form_of(op, operand);
  if (forms[0] != LP_WEIGHT_TIED) return 1;
  forms[1] = embeds(op, operand) ? LP_WEIGHT_TIED_ROWS : LP_WEIGHT_TIED_MATRIX;
  return 2;
}

static bool converts_tables(const lp_compile_request *request, lp_side side, const lp_value *table) {
  const lp_machine *machine = side == LP_SIDE_CLOUD ? request->cloud : request->device;
  return (machine && machine->kind == LP_MACHINE_CPU) || (lp_weight_blocks(table) && keeps_blocks(request, side));
}

lp_storage lp_plan_operand_storage(const lp_compile_request *request, lp_side side, const lp_op *op, int32_t operand) {
  lp_storage stored = weight_storage(request, side, op, operand), wide;
  lp_weight_form form = form_of(op, operand);
  bool table = form == LP_WEIGHT_TABLE || form == LP_WEIGHT_TIED, sensitive = lp_op_bool(op, "sensitive", false);
  return (table || sensitive) && lp_streq(stored.name, "int4") && lp_storage_find("int8", &wide) ? wide : stored;
}

int32_t lp_plan_converted_operand(const lp_compile_request *request, lp_side side, const lp_op *op) {
  if (lp_op_is_weighted(op)) return 1;
  if (op->in_count == 0 || !lp_op_in(op, 0) || !embeds(op, 0)) return -1;
  return converts_tables(request, side, lp_op_in(op, 0)) ? 0 : -1;
}

const char *lp_plan_weight_dtype(const lp_compile_request *request, lp_side side, const lp_op *op) {
  const int32_t operand = lp_plan_converted_operand(request, side, op);
  if (operand < 0) return NULL;
  const lp_storage stored = lp_plan_operand_storage(request, side, op, operand);
  return stored.dtype != op->in[operand].value->type.dtype && stored.group == 0 ? stored.name : NULL;
}

/* The storage of a weight; of one that is also an embedding's table, that for its product. */
static lp_storage storage_of(const lp_compile_request *request, lp_side side, const lp_op *op, int32_t operand) {
  for (const lp_use *use = op->in[operand].value->uses; use && embeds(op, operand); use = use->next)
    if (multiplies(use->owner, (int32_t)(use - use->owner->in), true))
      return lp_plan_operand_storage(request, side, use->owner, (int32_t)(use - use->owner->in));
  return lp_plan_operand_storage(request, side, op, operand);
}

/* The bits of an element of a weight in this form; 0 if the side does not store the form. */
static double stored_bits(const lp_compile_request *request, lp_side side, const lp_op *op, int32_t operand,
                          lp_weight_form form) {
  lp_dtype dtype = op->in[operand].value->type.dtype;
  lp_storage stored = storage_of(request, side, op, operand);
  double own = lp_dtype_bits(dtype);
  bool tables = converts_tables(request, side, op->in[operand].value), once = tables || stored.dtype == dtype;
  switch (form) {
  case LP_WEIGHT_RAW: /* the bits of a GPU's codes include their scales and zero points */
    return is_on_gpu(request, side, op) && operand >= 5 ? 0 : own;
  case LP_WEIGHT_MATRIX:
    return stored.bits;
  case LP_WEIGHT_TABLE:
    return tables ? stored.bits : own;
  case LP_WEIGHT_TIED:
    return once ? stored.bits : 0;
  case LP_WEIGHT_TIED_ROWS:
    return once ? 0 : own;
  case LP_WEIGHT_TIED_MATRIX:
    return once ? 0 : stored.bits;
  }
  return own;
}

double lp_plan_resident_share(const lp_compile_request *request, lp_side side, const lp_op *op) {
  return fmin(1, (double)resident_experts(request, side, op) / (double)lp_op_i64(op, "experts", 1));
}

double lp_plan_weight_bytes(const lp_compile_request *request, lp_side side, const lp_op *op, int32_t operand,
                            lp_weight_form form) {
  int64_t count;
  if (!lp_type_static_numel(op->in[operand].value->type, &count)) return 0;
  return (double)count * stored_bits(request, side, op, operand, form) / 8;
}

double lp_plan_state_bytes(const lp_module *module, const lp_compile_request *request, const lp_op *state,
                           double tokens, lp_arena *arena) {
  const lp_attr *shape = lp_op_attr(state, "shape");
  lp_dtype dtype = LP_F32;
  if (!shape || shape->kind != LP_ATTR_POLYS || !lp_dtype_parse(lp_op_str(state, "dtype", "f32"), &dtype)) return 0;
  const double *values = symbol_values(module, request, (double)request->batch, tokens, 0, tokens, arena);
  double bytes = lp_dtype_bits(dtype) / 8.0;
  for (int32_t i = 0; i < shape->count; i++)
    bytes *= lp_poly_eval_f64(shape->polys[i], values, module->symbols.names.count);
  return bytes;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static int64_t whole(double size) {
  return size < 9e15 ? (int64_t)size : INT64_MAX;
}

/* Experts count as one product as wide as those that are read, with the mean of their rows. */
static void linear_facts(const lp_plan_sizes *sizes, lp_side side, const lp_op *op, lp_op_facts *facts) {
  double n = dim_at(sizes, side, lp_op_out(op, 0), -1), rows = numel_at(sizes, side, op->out[0]->type) / n;
  double read = fmax(1, (double)lp_op_i64(op, "experts", 1) * read_share(sizes, side, op));
  facts->kind = LP_OP_LINEAR;
  facts->m = whole(rows / read);
  facts->n = whole(n * read) * (lp_op_in(op, 4) ? 2 : 1);
  facts->k = whole(dim_at(sizes, side, lp_op_in(op, 0), -1));
}

static void attention_facts(const lp_plan_sizes *sizes, lp_side side, const lp_op *op, lp_op_facts *facts) {
  bool bshd = lp_streq(lp_op_str(op, "layout", "bhsd"), "bshd");
  const lp_value *q = lp_op_in(op, 0), *k = lp_op_in(op, 1);
  facts->batch = whole(dim_at(sizes, side, q, 0));
  facts->q_len = whole(dim_at(sizes, side, q, bshd ? 1 : 2));
  facts->kv_len = whole(dim_at(sizes, side, k, 2));
  facts->heads = lp_op_i64(op, "heads", 1);
  facts->kv_heads = lp_op_i64(op, "kv_heads", facts->heads);
  facts->head_dim = lp_op_i64(op, "head_dim", 1);
}

static void pointwise_facts(const lp_plan_sizes *sizes, lp_side side, const lp_op *op, lp_op_facts *facts) {
  double n = dim_at(sizes, side, lp_op_out(op, 0), -1);
  facts->n = whole(n);
  facts->m = n > 0 ? whole(numel_at(sizes, side, op->out[0]->type) / n) : 0;
}

/* The type in which products with the weight are computed. A CPU that rounds activations (`activations`) multiplies in
 * the type of the weights, and else widens them to f32. */
static lp_dtype product_dtype(const lp_compile_request *request, const lp_op *op, lp_side side,
                              const lp_machine *machine) {
  const lp_storage storage = weight_storage(request, side, op, 1);
  /* Codes that a GPU keeps are multiplied in the same types as floats of 8 bits. */
  const lp_dtype stored = storage.group > 0 ? LP_F8E4M3FN : storage.dtype;
  const bool integer = !lp_dtype_is_float(stored), asks = lp_rounds_activations(request);
  int64_t k = 0;
  if (machine->kind != LP_MACHINE_CPU) {
    (void)lp_type_static_dim(lp_op_in(op, 0)->type, -1, &k);
    return lp_hw_product_dtype(machine, stored, k, asks);
  }
  if (stored == LP_F8E4M3FN) return LP_F32;
  if (!integer && stored != LP_BF16) return stored;
  return asks && (integer || !request->code_lacks_bf16[side]) ? stored : LP_F32;
}

/* The type in which attention multiplies; a CPU's times were measured in f32. */
static lp_dtype attention_dtype(const lp_op *op, const lp_machine *machine) {
  const lp_type k = lp_op_in(op, 1)->type, v = lp_op_in(op, 2)->type;
  int64_t d = 0, dv = 0;
  if (machine->kind == LP_MACHINE_CPU) return lp_op_in(op, 0)->type.dtype;
  (void)lp_type_static_dim(k, -1, &d), (void)lp_type_static_dim(v, -1, &dv);
  return lp_hw_attention_dtype(machine, k.dtype, d, dv);
}

/* The type of the arithmetic: that of products, else the type of the first operand. */
static lp_dtype arithmetic_dtype(const lp_compile_request *request, const lp_op *op, lp_side side,
                                 const lp_machine *machine) {
  if (lp_op_is_weighted(op)) return product_dtype(request, op, side, machine);
  if (op->kind == LP_OP_ATTENTION) return attention_dtype(op, machine);
  const lp_value *first = lp_op_in(op, 0) ? lp_op_in(op, 0) : lp_op_out(op, 0);
  const lp_dtype own = first && lp_dtype_is_float(first->type.dtype) ? first->type.dtype : LP_F32;
  const bool multiplies = op->kind == LP_OP_MATMUL || op->kind == LP_OP_LINEAR_ATTENTION;
  return multiplies && machine->kind != LP_MACHINE_CPU ? lp_hw_matmul_dtype(machine, own) : own;
}

/* The time to draw one token for each sequence; 0 where the machine file has no such measurement. */
static double draw_ms(const lp_plan_sizes *sizes, lp_side side, const lp_machine *machine, const lp_op *op) {
  if (!lp_hw_has_measured(machine, LP_HW_SAMPLE)) return 0;
  lp_op_facts facts = {.dtype = LP_F32, .m = sizes->request->batch};
  facts.n = whole(dim_at(sizes, side, lp_op_out(op, 0), -1));
  lp_hw_op_facts(LP_HW_SAMPLE, &facts);
  return lp_hw_predict(machine, &facts).time_ms;
}

/* `op`: item->op, or the part of it that a rank computes. */
static void predict(const lp_plan_sizes *sizes, lp_side side, const lp_machine *machine, const lp_op *op,
                    const lp_cost *cost, lp_plan_op *item) {
  lp_op_facts facts = {.kind = op->kind, .flops = size_at(sizes, side, cost->flops), .bytes = item->bytes[side]};
  if (lp_op_is_weighted(op))
    linear_facts(sizes, side, op, &facts);
  else if (op->kind == LP_OP_ATTENTION)
    attention_facts(sizes, side, op, &facts);
  else
    pointwise_facts(sizes, side, op, &facts);
  facts.dtype = arithmetic_dtype(sizes->request, op, side, machine);
  facts.pass_bytes = sizes->pass_bytes[side];
  lp_prediction prediction = lp_hw_predict(machine, &facts);
  item->draw_ms[side] = item->draws ? draw_ms(sizes, side, machine, item->op) : 0;
  const double besides = item->draw_ms[side] + fetch_ms(sizes, side, machine, op);
  item->ms[side] = prediction.time_ms + besides;
  item->low_ms[side] = prediction.low_ms + besides;
  item->high_ms[side] = prediction.high_ms + besides;
}

/* The bytes that an operator moves besides weights, at these sizes. */
static double activation_at(const lp_plan_sizes *sizes, const double *value, const lp_cost *cost) {
  const lp_poly *const moved[] = {cost->bytes_read, cost->bytes_written, cost->weight_bytes};
  double bytes[LP_COUNT(moved)] = {0};
  for (size_t i = 0; i < LP_COUNT(moved); i++)
    if (moved[i]) bytes[i] = lp_poly_eval_f64(moved[i], value, sizes->count);
  return fmax(0, bytes[0] + bytes[1] - bytes[2]);
}

/* The bytes of an operator's weights as the side stores them, in units of those in the module. A GPU's codes have their
 * scales beside them. */
static double stored_share(const lp_compile_request *request, lp_side side, const lp_op *op, int32_t operand) {
  const double bits = lp_plan_operand_storage(request, side, op, operand).bits;
  double stored = 0, own = 0;
  if (!is_on_gpu(request, side, op) || !lp_op_in(op, 5)) return bits / lp_dtype_bits(op->in[operand].value->type.dtype);
  for (int32_t i = 1; i < op->in_count; i++) {
    int64_t count;
    const lp_value *in = lp_op_in(op, i);
    if (!in || !lp_value_is_constant(in) || !lp_type_static_numel(in->type, &count)) continue;
    own += (double)count * lp_dtype_bits(in->type.dtype) / 8;
    stored += operand_bytes(request, side, op, i);
  }
  return own > 0 ? stored / own : 1;
}

/* The numbers of a side. `part`: item->op, or what a rank computes of it; the types of its weights are those of the
 * whole operator. */
static void price_side(const lp_plan_sizes *sizes, lp_side side, const lp_op *part, const lp_cost *cost,
                       lp_plan_op *item) {
  const struct lp_machine *machine = side == LP_SIDE_DEVICE ? sizes->request->device : sizes->request->cloud;
  const lp_op *op = item->op;
  double weight = size_at(sizes, side, cost->weight_bytes), scale = 1, read = 1;
  double bytes = size_at(sizes, side, cost->bytes_read) + size_at(sizes, side, cost->bytes_written);
  int32_t operand = lp_plan_converted_operand(sizes->request, side, op);
  if (operand >= 0) scale = stored_share(sizes->request, side, op, operand);
  if (lp_op_is_weighted(op)) read = scale * read_share(sizes, side, part); /* an embedding reads a few rows only */
  item->flops[side] = size_at(sizes, LP_SIDE_DEVICE, cost->flops);
  item->weight_bytes[side] = weight * scale;
  item->bytes[side] = bytes - weight + weight * read;
  item->activation[side] = activation_at(sizes, sizes->part[side], cost);
  item->whole_activation[side] = activation_at(sizes, sizes->value[side], cost);
  if (machine && !lp_op_has(op, LP_ALIAS)) predict(sizes, side, machine, part, cost, item);
}

void lp_plan_op_price(const lp_plan_sizes *sizes, const lp_cost *cost, lp_plan_op *item) {
  item->macs = size_at(sizes, LP_SIDE_DEVICE, cost->macs);
  item->elements = size_at(sizes, LP_SIDE_DEVICE, cost->elements);
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    price_side(sizes, (lp_side)side, item->op, cost, item);
}

void lp_plan_op_price_part(const lp_plan_sizes *sizes, const lp_op *part, const lp_cost *cost, lp_plan_op *item) {
  price_side(sizes, LP_SIDE_CLOUD, part, cost, item);
}

void lp_plan_op_gather(const lp_plan_sizes *sizes, lp_type type, lp_plan_op *item) {
  const lp_compile_request *request = sizes->request;
  const double bytes = numel_at(sizes, LP_SIDE_CLOUD, type) * lp_dtype_bits(type.dtype) / 8;
  const double ms = request->interconnect ? lp_interconnect_gather_ms(request->interconnect, request->ranks, bytes) : 0;
  item->gathers++;
  item->gather_bytes += bytes;
  item->gather_ms += ms;
  item->ms[LP_SIDE_CLOUD] += ms;
  item->low_ms[LP_SIDE_CLOUD] += ms;
  item->high_ms[LP_SIDE_CLOUD] += ms;
}

/* ---- rounded activations ----------------------------------------------------------------------------------------- */

static bool multiplies_rounded(const char *dtype) {
  return lp_streq(dtype, "bf16") || lp_streq(dtype, "int8") || lp_streq(dtype, "int4");
}

bool lp_rounds_activations(const lp_compile_request *request) {
  if (request->activations) return lp_streq(request->activations, "auto");
  return multiplies_rounded(request->dtype_device) || multiplies_rounded(request->dtype_cloud);
}
