/* Compares a bundle with the graph it was compiled from: runs the steps of a generation in both. */
#include "tools/equal/check.h"
#include "base/random.h"
#include "tools/equal/reference.h"
#include "tools/equal/results.h"

#include <math.h>

enum { MOST_STEP = 8 };

static const int64_t steps[] = {5, 1, 3, 1};

typedef struct {
  const lp_check_request *request;
  lp_reference *reference;
  lp_onnxruntime *runtime; /* NULL: the interpreter is the reference */
  lp_verify_bundle *bundle;
  lp_verify_results *results;
  double limit;
  uint64_t drawn;
} check;

double lp_check_limit(const char *const *types, size_t count) {
  static const struct {
    const char *name;
    double limit;
  } known[] = {{"f16", 2e-2}, {"bf16", 1e-1}, {"int8", 2e-1}, {"int4", 1}};
  double limit = 0;
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < LP_COUNT(known); k++)
      if (types[i] && lp_streq(types[i], known[k].name)) limit = fmax(limit, known[k].limit);
  return limit;
}

static double number(lp_dtype dtype, const void *data, int64_t i) {
  lp_tensor tensor = {.type = {.dtype = dtype}, .data = data};
  return lp_tensor_f64(&tensor, i);
}

/* Finds the bundle's logits. They are those of all positions, while the graph may give only the last position's. */
static const lp_verify_array *find_logits(const lp_verify_array *found, size_t count, const lp_array *wanted) {
  for (size_t i = 0; i < count; i++)
    if (found[i].rank == 3 && found[i].dim[0] == wanted->dim[0] && found[i].dim[2] == wanted->dim[2] &&
        (found[i].dim[1] == wanted->dim[1] || (wanted->dim[1] == 1 && found[i].dim[1] > 1)))
      return &found[i];
  return NULL;
}

/* The greatest difference, as a share of the greatest expected number; infinite when one of them is not a number. */
static double difference(const lp_verify_array *found, const lp_array *wanted, lp_verify_result *result) {
  int64_t sequence = wanted->dim[1] * wanted->dim[2], count = wanted->dim[0] * sequence;
  int64_t before = (found->dim[1] - wanted->dim[1]) * wanted->dim[2]; /* positions that only the bundle gives */
  lp_dtype dtype = lp_streq(found->dtype, "f16") ? LP_F16 : lp_streq(found->dtype, "bf16") ? LP_BF16 : LP_F32;
  double worst = 0, greatest = 0;
  for (int64_t i = 0; i < count; i++) {
    double x = number(dtype, found->data, i + (i / sequence + 1) * before), y = number(wanted->dtype, wanted->data, i);
    if (isnan(x) != isnan(y) || isinf(x) != isinf(y)) return INFINITY;
    if (isnan(x) || isinf(x)) continue;
    worst = fmax(worst, fabs(x - y));
    greatest = fmax(greatest, fabs(y));
  }
  result->max_error = worst;
  return worst == 0 ? 0 : worst / fmax(greatest, 1e-30);
}

static void compare(const check *c, const char *name, const lp_verify_array *found, size_t count,
                    const lp_array *wanted) {
  lp_verify_result result = {.name = (char *)(uintptr_t)name, .max_error = -1};
  const lp_verify_array *logits = find_logits(found, count, wanted);
  LP_OWNED(lp_buf_free) lp_buf why = {0};
  double share = logits ? difference(logits, wanted, &result) : INFINITY;
  if (!logits) {
    lp_buf_printf(&why, "the bundle gives no %s of the graph's shape", lp_reference_compared(c->reference));
  } else if (!(share <= c->limit)) {
    lp_buf_printf(&why, "%s differ by %.3g of the greatest, at most %.3g is allowed",
                  lp_reference_compared(c->reference), share, c->limit);
  }
  result.reason = why.data;
  result.status = why.size ? LP_VERIFY_FAILED : LP_VERIFY_PASSED;
  lp_verify_add(c->results, &result);
}

/* Runs a step of the reference. If ONNX Runtime refuses a step after others, the others stay valid, so the refusal
 * becomes a result and sets *refused. For example, GroupQueryAttention refuses several tokens of two sequences after a
 * past. */
static lp_status run_reference(check *c, const char *name, const int64_t *tokens, int64_t count, lp_array *wanted,
                               bool *refused, lp_diag *diag) {
  lp_diag *own = lp_diag_create();
  lp_status status = lp_reference_step(c->reference, tokens, count, wanted, own);
  *refused = status != LP_OK && lp_onnxruntime_refused(c->runtime) && c->results->count > 0;
  if (*refused) {
    lp_verify_add(c->results, &(lp_verify_result){.name = (char *)(uintptr_t)name,
                                                  .reason = (char *)(uintptr_t)lp_diag_get(own, 0)->text,
                                                  .status = LP_VERIFY_UNSUPPORTED,
                                                  .max_error = -1});
    status = LP_OK;
  } else {
    lp_diag_append(diag, own);
  }
  lp_diag_free(own);
  if (status == LP_OK && !*refused && wanted->rank != 3)
    return lp_error(diag, LP_LOC_FILE(c->request->model), "its logits do not have three axes");
  return status;
}

/* Runs the bundle on the same tokens and compares. */
static lp_status run_bundle(const check *c, const char *name, int64_t past, int64_t *tokens, int64_t count,
                            const lp_array *wanted, lp_diag *diag) {
  int64_t batch = wanted->dim[0];
  size_t inputs = lp_reference_data(c->reference, NULL) + 1, outputs = lp_verify_output_count(c->bundle);
  LP_OWNED(lp_free_at)
  lp_verify_array *in = lp_alloc(inputs * sizeof *in), *found = lp_alloc((outputs + 1) * sizeof *found);
  (void)lp_reference_data(c->reference, in + 1);
  int32_t narrow[2 * MOST_STEP];
  in[0] = lp_reference_tokens(c->reference);
  in[0].dim[0] = batch;
  in[0].dim[1] = count;
  in[0].data = tokens;
  in[0].size = (size_t)(batch * count) * sizeof *tokens;
  if (lp_streq(in[0].dtype, "i32")) {
    for (int64_t i = 0; i < batch * count; i++)
      narrow[i] = (int32_t)tokens[i];
    in[0].data = narrow;
    in[0].size /= 2;
  }
  lp_status status = lp_verify_step(c->bundle, past, in, inputs, found, diag);
  if (status == LP_OK) compare(c, name, found, outputs, wanted);
  for (size_t i = 0; i < outputs; i++)
    free(found[i].data);
  return status;
}

/* Sets *ends if this is the last step of the batch. */
static lp_status run_step(check *c, int64_t batch, int64_t past, int64_t count, bool *ends, lp_diag *diag) {
  int64_t tokens[2 * MOST_STEP], vocab = lp_reference_vocab(c->reference);
  for (int64_t i = 0; i < batch * count; i++)
    tokens[i] = vocab > 1 ? 1 + (int64_t)(lp_random_bits(3, 0, c->drawn++) % (uint64_t)(vocab - 1)) : 0;
  char name[96];
  (void)snprintf(name, sizeof name, "batch %" PRId64 ", %" PRId64 " after %" PRId64, batch, count, past);
  lp_array wanted;
  LP_TRY(run_reference(c, name, tokens, count, &wanted, ends, diag));
  return *ends ? LP_OK : run_bundle(c, name, past, tokens, count, &wanted, diag);
}

static lp_status run_batch(check *c, int64_t batch, lp_diag *diag) {
  int64_t context = lp_verify_context(c->bundle), fixed = lp_reference_length(c->reference), past = 0;
  LP_TRY(lp_reference_begin(c->reference, batch, diag));
  for (size_t i = 0; i < LP_COUNT(steps); i++) {
    int64_t count = fixed > 0 ? fixed : steps[i];
    if (count > MOST_STEP || (context > 0 && past + count > context)) break;
    bool ends;
    LP_TRY(run_step(c, batch, past, count, &ends, diag));
    if (ends || !lp_verify_has_caches(c->bundle)) break; /* without caches the model is an encoder */
    past += count;
  }
  return LP_OK;
}

static lp_status run_all(check *c, lp_diag *diag) {
  int64_t fixed = lp_reference_batch(c->reference);
  for (int64_t batch = 1; batch <= 2; batch++)
    if (fixed == 0 || fixed == batch) LP_TRY(run_batch(c, batch, diag));
  if (c->results->count) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(c->request->model), "its constant sizes leave no step to compare");
}

static lp_status open_reference(check *c, lp_diag *diag) {
  const lp_check_request *request = c->request;
  if (request->onnxruntime && lp_model_form_of(request->model) != LP_MODEL_ONNX)
    return lp_error(diag, LP_LOC_FILE(request->model), "is no ONNX file, which ONNX Runtime could run");
  if (request->onnxruntime) LP_TRY(lp_onnxruntime_open(request->model, request->threads, &c->runtime, diag));
  return lp_reference_open(request->model, request->import, c->runtime, &c->reference, diag);
}

lp_status lp_check_bundle(const lp_check_request *request, lp_verify_results *results, lp_diag *diag) {
  check c = {.request = request, .results = results};
  lp_status status = open_reference(&c, diag);
  if (status == LP_OK) status = lp_verify_open(request->bundle, request->threads, &c.bundle, diag);
  if (status == LP_OK) {
    const char *own = lp_dtype_name(lp_reference_dtype(c.reference));
    c.limit = request->limit > 0 ? fmax(request->limit, lp_check_limit(&own, 1)) : 0;
    status = run_all(&c, diag);
  }
  lp_verify_close(c.bundle);
  lp_reference_free(c.reference);
  lp_onnxruntime_close(c.runtime);
  return status;
}

lp_status lp_check_compiled(const lp_check_request *request, lp_diag *diag) {
  LP_OWNED(lp_verify_results_free) lp_verify_results results = {0};
  lp_status status = lp_check_bundle(request, &results, diag);
  for (size_t i = 0; i < results.count && status == LP_OK; i++)
    if (results.data[i].status != LP_VERIFY_PASSED)
      status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(request->model),
                           "the bundle does not compute what the model does: %s: %s", results.data[i].name,
                           results.data[i].reason);
  return status;
}

/* ---- lists of results -------------------------------------------------------------------------------------------- */

static char *copy(const char *text) {
  return text ? lp_strdup(text) : NULL;
}

void lp_verify_add(lp_verify_results *results, const lp_verify_result *result) {
  lp_verify_result own = {copy(result->name), copy(result->reason), copy(result->bound), result->status,
                          result->max_error};
  lp_vec_push(results, own);
}

void lp_verify_results_free(lp_verify_results *results) {
  for (size_t i = 0; i < results->count; i++) {
    free(results->data[i].name);
    free(results->data[i].reason);
    free(results->data[i].bound);
  }
  lp_vec_free(results);
}

int64_t lp_verify_count(const lp_verify_results *results, lp_verify_status status) {
  int64_t count = 0;
  for (size_t i = 0; i < results->count; i++)
    count += results->data[i].status == status;
  return count;
}
