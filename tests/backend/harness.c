/* Building modules and comparing results. Running them: harness_run.c, harness_foreign.c. */
#include "harness.h"
#include "base/number.h"
#include "base/poly.h"

#include "tests/gpu/host_backend.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void harness_fail(const harness *h, const char *what) {
  lp_buf text = {0};
  lp_buf_printf(&text, "%s", what);
  for (size_t i = 0; i < lp_diag_count(h->diag); i++) {
    lp_buf_puts(&text, "\n");
    lp_diag_format(lp_diag_get(h->diag, i), &text);
  }
  ck_abort_msg("%s", lp_buf_text(&text));
}

static void must(const harness *h, lp_status status, const char *what) {
  if (status != LP_OK) harness_fail(h, what);
}

char *harness_temporary(const char *suffix) {
  static int count;
  lp_buf path = {0};
  lp_buf_printf(&path, "/tmp/llmpart-test-%d-%d%s", (int)getpid(), count++, suffix);
  return path.data;
}

harness *harness_create(int64_t b, int64_t s, int64_t p) {
  harness *h = lp_alloc(sizeof *h);
  const int64_t sym[] = {
      [LP_SYM_B] = b, [LP_SYM_S] = s, [LP_SYM_P] = p, [LP_SYM_R] = 1, [LP_SYM_C] = p + s + 3, [LP_SYM_T] = 1};
  memcpy(h->sym, sym, sizeof sym);
  h->module = lp_module_create("test");
  h->module->eval_steps = INT64_MAX; /* the reference computes whole decoders */
  h->arena = h->module->arena;
  h->module->directory = "/tmp";
  h->func = lp_module_add_func(h->module, "decode", 0, NULL);
  h->block = h->func->region;
  h->diag = lp_diag_create();
  h->random = 12345;
  h->constant_random = 54321;
  h->rtol = 2e-4;
  h->atol = 2e-5;
  return h;
}

void harness_free(harness *h) {
  for (int32_t i = 0; i < h->state_count; i++) {
    free(h->state[i].values);
    free(h->state[i].before);
    free(h->state[i].data);
  }
  lp_diag_free(h->diag);
  lp_module_free(h->module);
  free(h);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

lp_type harness_type(harness *h, lp_dtype dtype, const char *dims) {
  const lp_poly *dim[LP_MAX_RANK];
  int32_t rank = 0;
  for (const char *at = dims; *at; rank++) {
    size_t length = strcspn(at, ",");
    char *text = lp_arena_strndup(h->arena, at, length);
    must(h, lp_poly_parse(h->arena, &h->module->symbols, text, &dim[rank], h->diag, LP_LOC_NONE), "a dimension");
    at += length + (at[length] == ',');
  }
  return lp_type_make(h->module, dtype, rank, dim);
}

static double uniform(uint64_t *state, double low, double high, double step) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  double value = low + (high - low) * (double)(*state >> 11) / 9007199254740992.0;
  return step > 0 ? nearbyint(value / step) * step : value;
}

static void put(void *data, lp_dtype dtype, int64_t index, double value) {
  switch (dtype) {
  case LP_F32:
    ((float *)data)[index] = (float)value;
    break;
  case LP_F64:
    ((double *)data)[index] = value;
    break;
  case LP_F16:
    ((uint16_t *)data)[index] = lp_f32_to_f16((float)value);
    break;
  case LP_BF16:
    ((uint16_t *)data)[index] = lp_f32_to_bf16((float)value);
    break;
  default: {
    int64_t whole = (int64_t)floor(value);
    if (lp_dtype_bits(dtype) < 8)
      lp_packed_set(data, dtype, index, whole);
    else
      memcpy((char *)data + index * (lp_dtype_bits(dtype) / 8), &whole, (size_t)(lp_dtype_bits(dtype) / 8));
  }
  }
}

static lp_array make_array(harness *h, lp_type type, double low, double high, uint64_t *random) {
  lp_array array = {.dtype = type.dtype, .rank = type.rank};
  int64_t count = 1;
  for (int32_t i = 0; i < type.rank; i++) {
    array.dim[i] = lp_poly_eval(type.dim[i], h->sym, LP_SYM_COUNT);
    count *= array.dim[i];
  }
  if (type.dtype == LP_BOOL) low = 0, high = 2;
  array.data = lp_arena_alloc(h->arena, (size_t)count * 8 + 1);
  for (int64_t i = 0; i < count; i++)
    put(array.data, type.dtype, i, uniform(random, low, high, h->step));
  return array;
}

lp_value *harness_input(harness *h, lp_dtype dtype, const char *dims, double low, double high) {
  lp_type type = harness_type(h, dtype, dims);
  lp_value *value = lp_block_add_arg(h->block, type);
  h->input[h->input_count] = value;
  h->array[h->input_count++] = make_array(h, type, low, high, &h->random);
  return value;
}

lp_value *harness_constant(harness *h, lp_dtype dtype, const char *dims, double low, double high) {
  lp_type type = harness_type(h, dtype, dims);
  lp_array array = make_array(h, type, low, high, &h->constant_random);
  int64_t count = 0;
  ck_assert(lp_type_static_numel(type, &count));
  lp_tensor tensor = {type, array.data, (size_t)(count * lp_dtype_bits(dtype) + 7) / 8};
  lp_op *op = lp_constant_create(h->module, LP_LOC_NONE, tensor);
  lp_op_append(h->block, op);
  return op->out[0];
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

lp_op *harness_op(harness *h, lp_kind kind, int32_t in_count, lp_value *const *in, int32_t out_count,
                  const lp_type *out) {
  lp_op *op = lp_op_create(h->module, kind, LP_LOC_NONE, in_count, in, out_count, out);
  lp_op_set_str(h->module, op, "side", "device");
  lp_op_set_i64(h->module, op, "segment", 0);
  lp_op_append(h->block, op);
  return op;
}

lp_value *harness_op1(harness *h, lp_kind kind, int32_t in_count, lp_value *const *in, lp_type out) {
  while (in_count > 0 && !in[in_count - 1])
    in_count--;
  return harness_op(h, kind, in_count, in, 1, &out)->out[0];
}

lp_value *harness_f64(harness *h, lp_value *value, const char *name, double number) {
  lp_op_set_f64(h->module, value->def, name, number);
  return value;
}

lp_value *harness_str(harness *h, lp_value *value, const char *name, const char *word) {
  lp_op_set_str(h->module, value->def, name, word);
  return value;
}

lp_value *harness_i64(harness *h, lp_value *value, const char *name, int64_t number) {
  lp_op_set_i64(h->module, value->def, name, number);
  return value;
}

lp_value *harness_last_rows(harness *h, lp_value *x) {
  const lp_poly *zero = lp_dim_const(h->module, 0), *first = harness_type(h, LP_I64, "s - r").dim[0];
  int64_t n;
  char dims[32];
  if (!lp_type_static_dim(x->type, 2, &n)) harness_fail(h, "the size of a row is not constant");
  snprintf(dims, sizeof dims, "b,r,%" PRId64, n);
  lp_value *last = HARNESS_OP(h, LP_OP_SLICE, harness_type(h, x->type.dtype, dims), x);
  lp_op_set_polys(h->module, last->def, "starts", (const lp_poly *[]){zero, first, zero}, 3);
  lp_op_set_i64s(h->module, last->def, "steps", (int64_t[]){1, 1, 1}, 3);
  return last;
}

lp_value *harness_bool(harness *h, lp_value *value, const char *name, bool on) {
  lp_op_set_bool(h->module, value->def, name, on);
  return value;
}

void harness_keep(harness *h, lp_value *value) {
  ck_assert_int_lt(h->result_count, HARNESS_MOST_VALUES);
  h->result[h->result_count++] = value;
}

lp_value *harness_append_as(harness *h, lp_dtype dtype, lp_value *x, const char *layout, int64_t heads, int64_t d) {
  char dims[64];
  snprintf(dims, sizeof dims, "b,%d,p + s,%d", (int)heads, (int)lp_cache_row(dtype, d));
  lp_value *in[] = {x};
  lp_type type = harness_type(h, dtype, dims);
  lp_op *op = harness_op(h, LP_OP_KV_APPEND, 1, in, 1, &type);
  lp_op_set_str(h->module, op, "layout", layout);
  lp_op_set_i64(h->module, op, "state", h->state_count);
  harness_state *state = &h->state[h->state_count++];
  int64_t rows = h->sym[LP_SYM_B] * heads * h->sym[LP_SYM_C], each = lp_cache_row(dtype, d) * lp_dtype_bits(dtype) / 8;
  *state = (harness_state){.result = op->out[0],
                           .bytes = rows * each,
                           .values = lp_alloc((size_t)(4 * rows * d)),
                           .before = lp_alloc((size_t)(rows * each)),
                           .data = lp_alloc((size_t)(rows * each))};
  for (int64_t i = 0; i < rows * d; i++)
    state->values[i] = (float)uniform(&h->random, -1, 1, h->step);
  for (int64_t i = 0; i < rows; i++) {
    char *row = (char *)state->before + i * each;
    lp_cache_encode(dtype, d, state->values + i * d, row);
    lp_cache_decode(dtype, d, row, state->values + i * d);
  }
  return op->out[0];
}

lp_value *harness_append(harness *h, lp_value *x, const char *layout, int64_t heads, int64_t d) {
  return harness_append_as(h, LP_F32, x, layout, heads, d);
}

static void plan_results(harness *h, lp_op *op) {
  int64_t buffer[8] = {0};
  for (int32_t i = 0; i < op->out_count; i++) {
    const lp_attr *operand =
        lp_op_has(op, LP_ALIAS) && lp_op_in(op, 0)->def ? lp_op_attr(lp_op_in(op, 0)->def, "buffer") : NULL;
    if (lp_value_cache(op->out[i]))
      buffer[i] = -1;
    else if (operand)
      buffer[i] = operand->is[lp_op_in(op, 0)->index];
    else if (lp_op_has(op, LP_ALIAS))
      buffer[i] = lp_op_in(op, 0)->def ? -1 : lp_op_in(op, 0)->index;
    else
      buffer[i] = h->buffer_count++;
  }
  lp_op_set_i64s(h->module, op, "buffer", buffer, op->out_count);
}

static int64_t buffer_of(const lp_value *value) {
  if (!value->def) return value->index;
  const lp_attr *attr = lp_op_attr(value->def, "buffer");
  return attr ? attr->is[value->index] : -1;
}

/* The position of the last operator of the group that runs in one launch. */
static int64_t last_joined(const lp_op *op, int64_t position) {
  const int64_t group = lp_op_i64(op, "join", -1);
  for (op = op->next; op && group >= 0 && lp_op_i64(op, "join", -1) == group; op = op->next)
    position++;
  return position;
}

/* The position of the last reader of each buffer; buffers of results that are kept have no end. */
static void find_ends(const harness *h, int64_t *end) {
  int64_t position = 0;
  LP_FOR_OPS(op, h->block) {
    const int64_t last = last_joined(op, ++position);
    for (int32_t i = 0; i < op->in_count + op->out_count; i++) {
      const lp_value *value = i < op->in_count ? lp_op_in(op, i) : op->out[i - op->in_count];
      int64_t buffer = value ? buffer_of(value) : -1;
      if (buffer >= 0 && end[buffer] < last) end[buffer] = last;
    }
  }
  for (int32_t i = 0; i < h->result_count; i++)
    end[buffer_of(h->result[i])] = INT64_MAX;
}

/* Each buffer takes the first slot with a last buffer that is no longer read, as in plan-memory. */
static void plan_slots(harness *h) {
  int64_t end[2 * HARNESS_MOST_VALUES] = {0}, slot[2 * HARNESS_MOST_VALUES], free_after[2 * HARNESS_MOST_VALUES] = {0};
  find_ends(h, end);
  for (int64_t i = 0; i < h->input_count; i++) {
    slot[i] = i;
    free_after[i] = end[i];
  }
  int64_t position = 0, buffer = h->input_count, slots = h->input_count;
  LP_FOR_OPS(op, h->block) {
    position++;
    for (int32_t i = 0; i < op->out_count; i++) {
      if (buffer_of(op->out[i]) != buffer) continue;
      int64_t at = 0;
      while (at < slots && free_after[at] >= position)
        at++;
      slots += at == slots;
      free_after[at] = end[buffer];
      slot[buffer++] = at;
    }
  }
  lp_op_set_i64s(h->module, h->func, "slot_device", slot, (int32_t)h->buffer_count);
}

void harness_finish(harness *h) {
  int64_t numbers[HARNESS_MOST_VALUES];
  for (int32_t i = 0; i < h->input_count; i++)
    numbers[i] = h->buffer_count++;
  lp_op_set_i64s(h->module, h->func, "arg_buffer_device", numbers, h->input_count);
  LP_FOR_OPS(op, h->block) {
    if (!lp_op_has(op, LP_CONSTANT)) plan_results(h, op);
  }
  plan_slots(h);
  lp_op *end = lp_op_create(h->module, LP_OP_RETURN, LP_LOC_NONE, h->result_count, h->result, 0, NULL);
  lp_op_append(h->block, end);
  must(h, lp_module_verify(h->module, h->diag), "the test's module is not valid");
}

/* ---- reference --------------------------------------------------------------------------------------------------- */

/* Appends rows [0, p) of the cache's initial content, and then x, to an empty past, by the reference's own append. */
static lp_array cache_array(harness *h, const harness_state *state, lp_binding *bindings, size_t count) {
  const lp_op *op = state->result->def;
  lp_array x, out = {.dtype = LP_F32, .rank = 4};
  must(h, lp_value_eval(h->module, lp_op_in(op, 0), bindings, count, h->sym, h->arena, &x, h->diag), "the reference");
  for (int32_t i = 0; i < 4; i++)
    out.dim[i] = lp_poly_eval(state->result->type.dim[i], h->sym, LP_SYM_COUNT);
  const lp_dtype dtype = state->result->type.dtype;
  out.dim[3] = lp_cache_width(dtype, out.dim[3]);
  const int64_t b = out.dim[0], heads = out.dim[1], total = out.dim[2], d = out.dim[3], past = h->sym[LP_SYM_P];
  char *stored = lp_arena_alloc(h->arena, (size_t)d * sizeof(float));
  const bool bshd = lp_streq(lp_op_str(op, "layout", ""), "bshd");
  float *data = lp_arena_alloc(h->arena, (size_t)(b * heads * total * d) * 4);
  out.data = data;
  for (int64_t row = 0; row < b * heads * total; row++) {
    int64_t t = row % total, head = row / total % heads, batch = row / total / heads, s = total - past, i = t - past;
    const float *from =
        (const float *)x.data + ((bshd ? (batch * s + i) * heads + head : (batch * heads + head) * s + i)) * d;
    if (t < past) from = state->values + ((batch * heads + head) * h->sym[LP_SYM_C] + t) * d;
    lp_cache_encode(dtype, d, from, stored);
    lp_cache_decode(dtype, d, stored, data + row * d);
  }
  return out;
}

static double element(const lp_array *array, int64_t index) {
  lp_tensor tensor = {.type = {.dtype = array->dtype}, .data = array->data};
  return lp_tensor_f64(&tensor, index);
}

static int64_t array_count(const lp_array *array) {
  int64_t count = 1;
  for (int32_t i = 0; i < array->rank; i++)
    count *= array->dim[i];
  return count;
}

int64_t harness_array_bytes(const lp_array *array) {
  return (array_count(array) * lp_dtype_bits(array->dtype) + 7) / 8;
}

/* Widens a table of half precision: op.gather widens its rows, while the reference keeps their type. */
void harness_widen(harness *h, lp_dtype dtype, lp_array *array) {
  if (array->dtype == dtype) return;
  lp_array wide = *array;
  wide.dtype = dtype;
  wide.data = lp_arena_alloc(h->arena, (size_t)array_count(array) * 8 + 1);
  for (int64_t i = 0; i < array_count(array); i++)
    put(wide.data, dtype, i, element(array, i));
  *array = wide;
}

static void reference(harness *h, lp_array *out) {
  static lp_binding bindings[HARNESS_MOST_VALUES + 64];
  size_t count = 0;
  for (int32_t i = 0; i < h->input_count; i++)
    bindings[count++] = (lp_binding){h->input[i], h->array[i]};
  for (int32_t i = 0; i < h->state_count && h->state[i].result; i++) {
    lp_array cache = cache_array(h, &h->state[i], bindings, count);
    bindings[count++] = (lp_binding){h->state[i].result, cache};
  }
  for (int32_t i = 0; i < h->result_count; i++) {
    must(h, lp_value_eval(h->module, h->result[i], bindings, count, h->sym, h->arena, &out[i], h->diag),
         "the reference");
    harness_widen(h, h->result[i]->type.dtype, &out[i]);
  }
}

static bool near(const harness *h, lp_dtype dtype, double got, double want) {
  if (isnan(want)) return isnan(got);
  if (isinf(want) || !lp_dtype_is_float(dtype)) return got == want;
  double coarse = dtype == LP_F16 ? 8 : dtype == LP_BF16 ? 64 : 1;
  return fabs(got - want) <= h->atol * coarse + h->rtol * coarse * fabs(want);
}

static void compare(const harness *h, int32_t result, const lp_array *want, const void *data, const char *how) {
  lp_array got = *want;
  int64_t count = array_count(want);
  got.data = (void *)(uintptr_t)data;
  for (int64_t i = 0; i < count; i++) {
    double a = element(&got, i), b = element(want, i);
    if (near(h, want->dtype, a, b)) continue;
    ck_abort_msg("%s: element %ld of %ld of '%s' is %.9g, should be %.9g", how, (long)i, (long)count,
                 lp_op_info_get(h->result[result]->def->kind)->name, a, b);
  }
}

uint64_t harness_code_key(const harness *h, const lp_backend *backend, const lp_emit_options *options) {
  lp_buf text = {0};
  lp_module_print(h->module, false, &text);
  lp_buf_printf(&text, "%s %s", backend->name, options->march);
  uint64_t key = lp_hash_bytes(text.data, text.size, 0);
  lp_buf_free(&text);
  return key;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void fill_job(harness *h, runner_job *job, runner_port *in, runner_port *out, const lp_array *want) {
  for (int32_t i = 0; i < h->input_count; i++)
    in[i] = (runner_port){i, (size_t)harness_array_bytes(&h->array[i]), h->array[i].data};
  for (int32_t i = 0; i < h->result_count; i++) {
    size_t bytes = (size_t)harness_array_bytes(&want[i]);
    out[i] = (runner_port){buffer_of(h->result[i]), bytes, lp_arena_alloc(h->arena, bytes + 1)};
  }
  for (int32_t i = 0; i < h->state_count; i++)
    memcpy(h->state[i].data, h->state[i].before, (size_t)h->state[i].bytes);
  *job = (runner_job){.sym = h->sym, .sym_count = LP_SYM_COUNT, .buffers = h->buffer_count + 1, .in = in, .out = out};
  job->in_count = (size_t)h->input_count;
  job->out_count = (size_t)h->result_count;
}

static void run_and_compare(harness *h, const lp_backend *backend, const char *march, int64_t threads,
                            const lp_array *want) {
  static runner_port in[HARNESS_MOST_VALUES], out[HARNESS_MOST_VALUES];
  lp_emit_options options = {.side = LP_SIDE_DEVICE, .march = march, .opt_level = 3, .halves = true};
  runner_job job;
  char how[96];
  snprintf(how, sizeof how, "%s, %s, %d threads", backend->name, march, (int)threads);
  fill_job(h, &job, in, out, want);
  job.threads = threads;
  if (lp_has_prefix(march, "cortex") || lp_has_prefix(march, "armv8")) {
    if (!harness_run_foreign(h, backend, &options, &job)) return;
  } else if (backend->kernels) {
    harness_run_gpu(h, backend, &options, &job);
  } else {
    harness_run_native(h, backend, &options, &job);
  }
  for (int32_t i = 0; i < h->result_count; i++)
    compare(h, i, &want[i], out[i].data, how);
  if (backend->kernels) harness_record(h, backend, &options, &job);
}

void harness_check(harness *h, const char *backend, const char *march, int64_t threads) {
  static lp_array want[HARNESS_MOST_VALUES];
  if (getenv("LP_TEST_GPU") || getenv("LP_TEST_ONNX")) return;
  reference(h, want);
  run_and_compare(h, lp_backend_find(backend), march, threads, want);
}

/* The GPU code of a module. Where there is none for an operator, the test has to name the gap. */
static void check_gpu(harness *h, const lp_backend *backend, const lp_array *want) {
  char why[64] = "";
  LP_FOR_OPS(op, h->block) {
    if (lp_op_has(op, LP_CONSTANT) || lp_op_has(op, LP_TERMINATOR) || backend->runs(op, why)) continue;
    ck_assert_msg(h->gpu_lacks && lp_streq(h->gpu_lacks, why), "not run on a GPU: '%s': %s",
                  lp_op_info_get(op->kind)->name, why);
    return;
  }
  ck_assert_msg(!h->gpu_lacks, "a GPU runs the case, of which the test says '%s'", h->gpu_lacks);
  run_and_compare(h, backend, "sm_80", 1, want);
}

static const char *language_of(const char *gpu) {
  return lp_streq(gpu, "driver") ? "cuda" : gpu;
}

/* A backend that runs nothing accepts every module and gives no results. */
static void check_silent(harness *h, const lp_backend *backend) {
  const lp_emit_options options = {.side = LP_SIDE_DEVICE, .march = "native"};
  lp_buf out = {0};
  lp_code code;
  if (backend->emit(h->module, &options, LP_EMIT_SHARED, &out, h->diag) != LP_OK ||
      backend->describe(h->module, &options, h->arena, &code, h->diag) != LP_OK)
    harness_fail(h, backend->name);
  ck_assert_uint_eq(out.size, 0);
  ck_assert_int_eq(code.weight_bytes, 0);
}

/* The function as ONNX, without the operators that have none there. Attributes of ONNX are f32, so that doubles are as
 * exact only as those. */
static void check_onnx(harness *h, int opset) {
  static lp_array want[HARNESS_MOST_VALUES], got[HARNESS_MOST_VALUES];
  char how[32];
  h->rtol = fmax(h->rtol, 1e-6);
  h->atol = fmax(h->atol, 1e-7);
  snprintf(how, sizeof how, "ONNX opset %d", opset);
  if (!harness_run_onnx(h, opset, got)) return;
  reference(h, want);
  for (int32_t i = 0; i < h->result_count; i++) {
    harness_widen(h, got[i].dtype, &want[i]);
    ck_assert_int_eq(got[i].rank, want[i].rank);
    ck_assert_mem_eq(got[i].dim, want[i].dim, (size_t)want[i].rank * sizeof want[i].dim[0]);
    compare(h, i, &want[i], got[i].data, how);
  }
}

void harness_check_all(harness *h) {
  static lp_array want[HARNESS_MOST_VALUES];
  const lp_backend *const *list;
  const char *opset = getenv("LP_TEST_ONNX");
  if (opset) {
    check_onnx(h, atoi(opset));
    return;
  }
  reference(h, want);
  const lp_backend cuda = gpu_host_backend();
  const char *gpu = getenv("LP_TEST_GPU");
  if (gpu) {
    check_gpu(h, lp_streq(gpu, "cuda") ? &cuda : lp_backend_find(language_of(gpu)), want);
    return;
  }
  for (size_t i = 0; i < lp_backend_list(&list); i++) {
    if (!list[i]->emits_code) check_silent(h, list[i]);
    if (!list[i]->emits_code || list[i]->kernels) continue;
    for (int64_t threads = 1; lp_part(h->only_long ? "long" : "quick") && threads <= 3; threads++)
      run_and_compare(h, list[i], "native", threads, want);
    if (!lp_part(harness_code_key(h, list[i], &(lp_emit_options){.march = ""}) & 1 ? "soak" : "long")) continue;
    for (int64_t threads = 1; threads <= 3; threads++)
      run_and_compare(h, list[i], "x86-64-v3", threads, want);
    run_and_compare(h, list[i], "armv8-a", 2, want);
  }
}

static const char *no_gpu(void) {
  static char why[256];
  const char *gpu = getenv("LP_TEST_GPU");
  return gpu && !lp_streq(gpu, "cuda") && !harness_has_gpu(language_of(gpu), why) ? why : NULL;
}

LP_SKIP_IF(no_gpu);
