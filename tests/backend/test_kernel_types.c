/* The kernels that the GPU backends launch multiply in the types that hwmodels/gpu_kernels.c tells the planner: for
 * every machine of the catalogue with code for a GPU, for products and attention, and for every type of weights and
 * caches. The names of kernels tell how they multiply. And the bytes of weights that a plan counts are those that both
 * backends emit, for every type of weights and of --dtype. */
#include "harness.h"
#include "tests/suite.h"

#include "hwmodels/hwmodels.h"
#include "ir/blocks.h"
#include "passes/plan/numbers.h"
#include "passes/plan/plan.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

LP_CASE(.timeout = 300);

enum { ROWS = 512, K = 96, NARROW_K = 40, ODD_K = 36 };

/* The class by which a runtime knows the GPU: the number of its architecture, or how OpenCL counts (rounded.c). */
static int64_t class_of(const lp_machine *machine) {
  if (lp_streq(machine->target.gpu_interface, "cuda")) return atoi(machine->target.gpu + strlen("sm_"));
  return lp_hw_prefers_halves(machine) ? 3 : 1;
}

static bool holds(const json_t *launch, const char *key, int64_t size) {
  const json_t *range = json_object_get(launch, key);
  const size_t at = range ? json_array_size(range) - 2 : 0;
  return !range || (size >= json_integer_value(json_array_get(range, at)) &&
                    size <= json_integer_value(json_array_get(range, at + 1)));
}

/* How a launch multiplies; LP_DTYPE_COUNT: it does not. */
static lp_dtype type_of(const json_t *launch, const char *kernel_stem, lp_dtype tensor) {
  const char *kernel = json_string_value(json_object_get(launch, "kernel"));
  if (!kernel || !lp_has_prefix(kernel, kernel_stem) || strstr(kernel, "_finish")) return LP_DTYPE_COUNT;
  if (strstr(kernel, "_tensor")) return tensor;
  if (strstr(kernel, "_half_")) return LP_F16;
  return strstr(kernel, "_dot_") ? LP_I8 : LP_F32;
}

/* The type in which the only kernel that is launched for ROWS rows on the machine multiplies. Of the library's products
 * those count that no kernel of ours does as well. */
static lp_dtype emitted(harness *h, const lp_machine *machine, const char *kernel_stem, lp_dtype tensor) {
  const char *interface = machine->target.gpu_interface;
  const lp_emit_options options = {.side = LP_SIDE_DEVICE,
                                   .march = lp_streq(interface, "cuda") ? machine->target.gpu : "native",
                                   .halves = lp_hw_prefers_halves(machine)};
  lp_buf table = {0};
  lp_dtype found = LP_DTYPE_COUNT;
  if (lp_backend_find(interface)->emit(h->module, &options, LP_EMIT_LAUNCHES, &table, h->diag) != LP_OK)
    harness_fail(h, machine->name);
  json_t *root = json_loads(lp_buf_text(&table), 0, NULL), *launcher, *launch;
  size_t i, k;
  json_array_foreach(json_object_get(root, "launchers"), i, launcher) {
    json_array_foreach(launcher, k, launch) {
      const lp_dtype dtype = type_of(launch, kernel_stem, tensor);
      if (dtype == LP_DTYPE_COUNT || !holds(launch, "when", ROWS) || !holds(launch, "sm", class_of(machine))) continue;
      ck_assert_int_eq(found, LP_DTYPE_COUNT);
      found = dtype;
    }
  }
  json_decref(root);
  lp_buf_free(&table);
  return found;
}

static void check(harness *h, const lp_machine *machine, lp_dtype emitted_as, lp_dtype priced, const char *what) {
  if (emitted_as == priced) return;
  fprintf(stderr, "%s, %s: the kernel multiplies in %s, the plan says %s\n", machine->name, what,
          emitted_as < LP_DTYPE_COUNT ? lp_dtype_name(emitted_as) : "nothing", lp_dtype_name(priced));
  harness_fail(h, what);
}

/* `store`: of floats; NULL: codes of the model, of type `dtype`. */
static void check_product(const lp_machine *machine, const char *store, lp_dtype dtype, int64_t k, bool bytes) {
  harness *h = harness_create(1, ROWS, 0);
  char dims[32];
  (void)snprintf(dims, sizeof dims, "b,s,%d", (int)k);
  lp_value *x = harness_input(h, LP_F32, dims, -1, 1);
  (void)snprintf(dims, sizeof dims, "%d,64", (int)k);
  lp_value *in[6] = {x, harness_constant(h, store ? LP_F32 : dtype, dims, -1, 1)};
  if (!store) in[5] = harness_constant(h, LP_F32, "", 0.1, 1);
  lp_value *y = harness_op1(h, LP_OP_LINEAR, 6, in, harness_type(h, LP_F32, "b,s,64"));
  if (store) harness_str(h, y, "weight_dtype", store);
  if (bytes) harness_str(h, y, "activations", "int8");
  harness_keep(h, y);
  harness_finish(h);
  const lp_dtype found = emitted(h, machine, "linear_", lp_hw_tensor_of(dtype).dtype);
  lp_dtype priced = lp_hw_product_dtype(machine, store ? dtype : LP_F8E4M3FN, k, bytes);
  /* Without the library, on sm_70 to sm_74, a kernel of ours multiplies halves only in rows of whole blocks. */
  if (found == LP_F32 && class_of(machine) < 75 && dtype == LP_F16 && k % LP_HW_ROUNDED_BLOCK != 0) priced = found;
  check(h, machine, found, priced, store ? store : lp_dtype_name(dtype));
  harness_free(h);
}

static void check_attention(const lp_machine *machine, lp_dtype store, int64_t d) {
  harness *h = harness_create(1, ROWS, 0);
  char dims[32];
  (void)snprintf(dims, sizeof dims, "b,s,4,%d", (int)d);
  lp_value *q = harness_input(h, LP_F32, dims, -1, 1);
  lp_value *k = harness_append_as(h, store, harness_input(h, LP_F32, dims, -1, 1), "bshd", 4, d);
  lp_value *v = harness_append_as(h, store, harness_input(h, LP_F32, dims, -1, 1), "bshd", 4, d);
  lp_value *y = HARNESS_OP(h, LP_OP_ATTENTION, q->type, q, k, v);
  harness_i64(h, harness_i64(h, harness_i64(h, y, "heads", 4), "kv_heads", 4), "head_dim", d);
  harness_bool(h, harness_str(h, harness_f64(h, y, "scale", 0.25), "layout", "bshd"), "causal", true);
  harness_keep(h, y);
  harness_finish(h);
  check(h, machine, emitted(h, machine, "attention_", store), lp_hw_attention_dtype(machine, store, d, d), "attention");
  harness_free(h);
}

static void check_machine(const lp_machine *machine) {
  static const struct {
    const char *name;
    lp_dtype dtype;
    bool integer;
  } stores[] = {{"f32", LP_F32, false},
                {"f16", LP_F16, false},
                {"bf16", LP_BF16, false},
                {"int8", LP_I8, true},
                {"int4", LP_U4, true}};
  static const int64_t widths[] = {K, NARROW_K, ODD_K};
  for (size_t i = 0; i < LP_COUNT(stores); i++)
    for (size_t k = 0; k < LP_COUNT(widths); k++)
      for (int bytes = 0; bytes <= stores[i].integer && (k == 0 || !stores[i].integer); bytes++)
        check_product(machine, stores[i].name, stores[i].dtype, widths[k], bytes);
  static const lp_dtype codes[] = {LP_I4, LP_U8, LP_F8E4M3FN};
  for (size_t i = 0; i < LP_COUNT(codes); i++)
    check_product(machine, NULL, codes[i], K, true);
  for (size_t i = 0; i < 3; i++) {
    check_attention(machine, stores[i].dtype, 64);
    check_attention(machine, stores[i].dtype, 36);
  }
  check_attention(machine, LP_I8, 64);
  check_attention(machine, LP_U8, 64);
}

LP_TEST(a_plan_prices_the_kernel_that_runs) {
  size_t count, checked = 0;
  const char *const *names;
  count = lp_hw_names(&names);
  for (size_t i = 0; i < count; i++) {
    lp_machine *machine = NULL;
    if (lp_streq(names[i], "host")) continue;
    ck_assert_int_eq(lp_hw_load(names[i], &machine, NULL), LP_OK);
    const char *interface = machine->target.gpu_interface;
    if (machine->kind == LP_MACHINE_GPU && !machine->target.ideal && interface && lp_backend_find(interface)) {
      check_machine(machine);
      checked++;
    }
    lp_hw_free(machine);
  }
  ck_assert_uint_ge(checked, 12);
}

/* ---- bytes ---- */

typedef struct {
  lp_dtype own;
  int64_t k, group; /* of codes */
  bool zero, gated, tied;
  const char *blocks; /* the form of the file's blocks, or NULL */
} weight_case;

static lp_value *weight_of(harness *h, const weight_case *c, const char *shape) {
  const lp_block_form *form = lp_block_form_named(c->blocks);
  if (!form) return harness_constant(h, c->own, shape, 0, 1);
  const lp_type type = harness_type(h, LP_F32, shape);
  lp_op *weight = lp_op_create(h->module, LP_OP_WEIGHT, LP_LOC_NONE, 0, NULL, 1, &type);
  lp_op_set_str(h->module, weight, "file", shape);
  lp_op_set_str(h->module, weight, "blocks", c->blocks);
  lp_op_set_i64(h->module, weight, "offset", 0);
  lp_op_set_i64(h->module, weight, "length", 24 * c->k / form->size * form->bytes);
  lp_op_append(h->block, weight);
  return weight->out[0];
}

static void add_product(harness *h, const weight_case *c, lp_value *x, lp_value *ids) {
  char dims[32], groups[32];
  const int64_t group = c->group > 0 && c->group < c->k ? c->group : c->k;
  (void)snprintf(dims, sizeof dims, "24,%d", (int)c->k);
  (void)snprintf(groups, sizeof groups, "24,%d", (int)((c->k + group - 1) / group));
  lp_value *in[9] = {x, weight_of(h, c, dims), harness_constant(h, LP_F32, "24", 0, 1)};
  if (c->gated) in[4] = weight_of(h, c, dims);
  for (int i = 5; i < (c->gated ? 9 : 7) && lp_dtype_is_code(c->own); i += 2) {
    in[i] = harness_constant(h, LP_F32, groups, 0.1, 1);
    if (c->zero) in[i + 1] = harness_constant(h, c->own, groups, 0, 1);
  }
  lp_value *y = harness_op1(h, LP_OP_LINEAR, 9, in, harness_type(h, LP_F32, "b,s,24"));
  harness_i64(h, harness_bool(h, y, "transpose_b", true), "group", c->group);
  harness_keep(h, y);
  if (!c->tied) return;
  (void)snprintf(dims, sizeof dims, "b,s,%d", (int)c->k);
  lp_value *rows = HARNESS_OP(h, LP_OP_GATHER, harness_type(h, LP_F32, dims), in[1], ids);
  harness_keep(h, harness_i64(h, rows, "axis", 0));
}

static double counted_bytes(const harness *h, const lp_compile_request *request) {
  double bytes = 0;
  LP_FOR_OPS(op, h->block) {
    for (int32_t i = 0; i < op->in_count && op->kind != LP_OP_RETURN; i++) {
      lp_weight_form forms[LP_WEIGHT_FORMS];
      if (!lp_op_in(op, i) || !lp_value_is_constant(lp_op_in(op, i))) continue;
      const int32_t count = lp_plan_weight_forms(op, i, forms);
      for (int32_t f = 0; f < count; f++) /* the first form is shared by all operators that read the weight */
        if (f > 0 || op->kind == LP_OP_LINEAR || forms[f] != LP_WEIGHT_TIED)
          bytes += lp_plan_weight_bytes(request, LP_SIDE_DEVICE, op, i, forms[f]);
    }
  }
  return bytes;
}

static void check_bytes(const char *backend, const char *asked, const weight_case *c) {
  const lp_compile_request request = {.code[LP_SIDE_DEVICE] = backend, .dtype_device = asked};
  const lp_emit_options options = {.side = LP_SIDE_DEVICE, .march = "native"};
  harness *h = harness_create(1, 1, 0);
  char dims[32];
  lp_code code = {0};
  (void)snprintf(dims, sizeof dims, "b,s,%d", (int)c->k);
  lp_value *x = harness_input(h, LP_F32, dims, -1, 1), *ids = c->tied ? harness_input(h, LP_I64, "b,s", 0, 23) : NULL;
  add_product(h, c, x, ids);
  LP_FOR_OPS(op, h->block) {
    const char *dtype = lp_op_has(op, LP_PURE) ? lp_plan_weight_dtype(&request, LP_SIDE_DEVICE, op) : NULL;
    if (dtype) lp_op_set_str(h->module, op, "weight_dtype", dtype);
  }
  harness_finish(h);
  ck_assert_int_eq(lp_backend_find(backend)->describe(h->module, &options, h->arena, &code, h->diag), LP_OK);
  const double counted = counted_bytes(h, &request);
  if (counted != (double)code.weight_bytes)
    ck_abort_msg("%s, --dtype %s, %s in groups of %d, k %d: the plan counts %g bytes, %ld are stored", backend,
                 asked ? asked : "of the model", c->blocks ? c->blocks : lp_dtype_name(c->own), (int)c->group,
                 (int)c->k, counted, (long)code.weight_bytes);
  harness_free(h);
}

static void check_types(const weight_case *c) {
  static const char *const types[] = {NULL, "f32", "f16", "bf16", "int8", "int4"}, *const backends[] = {"cuda",
                                                                                                        "opencl"};
  for (size_t i = 0; i < LP_COUNT(types) * LP_COUNT(backends); i++)
    check_bytes(backends[i % LP_COUNT(backends)], types[i / LP_COUNT(backends)], c);
}

LP_TEST(a_plan_counts_the_bytes_that_are_emitted) {
  static const lp_dtype floats[] = {LP_F32, LP_F16, LP_BF16},
                        codes[] = {LP_I2, LP_U2, LP_I4, LP_U4, LP_I8, LP_U8, LP_F8E4M3FN};
  static const char *const blocks[] = {"Q4_0", "Q8_0", "Q4_K", "Q6_K", "IQ4_NL", "MXFP4", "NF4"};
  static const int64_t sizes[][2] = {{256, 128}, {256, 0}, {192, 64}, {96, 32}, {96, 16}, {72, 24}, {320, 512}};
  for (size_t i = 0; i < LP_COUNT(floats); i++)
    for (int64_t k = 40; k <= 64; k += 24)
      for (int form = 0; form < 4; form++)
        check_types(&(weight_case){.own = floats[i], .k = k, .gated = form == 1, .tied = form == 2});
  for (size_t i = 0; i < LP_COUNT(codes) * LP_COUNT(sizes); i++)
    for (int form = 0; form < 4; form++)
      check_types(&(weight_case){.own = codes[i / LP_COUNT(sizes)],
                                 .k = sizes[i % LP_COUNT(sizes)][0],
                                 .group = sizes[i % LP_COUNT(sizes)][1],
                                 .zero = form % 2,
                                 .gated = form / 2});
  for (size_t i = 0; i < LP_COUNT(blocks); i++) {
    ck_assert_ptr_nonnull(lp_block_form_named(blocks[i]));
    check_types(&(weight_case){.own = LP_F32, .k = 512, .blocks = blocks[i]});
  }
}

/* A machine as a paper takes it computes in the types of operands. */
LP_TEST(an_ideal_machine_computes_in_any_type) {
  lp_machine *machine = NULL;
  ck_assert_int_eq(lp_hw_load("jetson-nano-p1", &machine, NULL), LP_OK);
  ck_assert(machine->target.ideal);
  ck_assert_int_eq(lp_hw_attention_dtype(machine, LP_F16, 64, 64), LP_F16);
  ck_assert_int_eq(lp_hw_matmul_dtype(machine, LP_F16), LP_F16);
  ck_assert_int_eq(lp_hw_product_dtype(machine, LP_BF16, 64, false), LP_BF16);
  lp_hw_free(machine);
}
