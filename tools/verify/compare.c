/* Compares the results of a model with those of its test data. */
#include "tools/verify/compare.h"

#include <math.h>

static void put_shape(lp_buf *out, int32_t rank, const int64_t *dim) {
  lp_buf_puts(out, "[");
  for (int32_t i = 0; i < rank; i++)
    lp_buf_printf(out, "%s%" PRId64, i ? "," : "", dim[i]);
  lp_buf_puts(out, "]");
}

static bool same_shape(const lp_verify_array *found, const lp_array *wanted) {
  if (found->rank != wanted->rank) return false;
  for (int32_t i = 0; i < found->rank; i++)
    if (found->dim[i] != wanted->dim[i]) return false;
  return true;
}

/* Neighbouring numbers of 16 bits differ by up to this share, and a result may be rounded to either. For bfloat16, with
 * expectations that were computed step by step, ONNX's own runner allows twice as much. */
static double spacing(lp_dtype dtype) {
  return dtype == LP_BF16 ? 0x1p-6 : dtype == LP_F16 ? 0x1p-10 : 0;
}

static bool near(double found, double wanted, lp_dtype dtype, const lp_tolerance *tolerance) {
  if (isnan(wanted) || isnan(found)) return isnan(wanted) && isnan(found);
  if (isinf(wanted) || isinf(found)) return found == wanted;
  double rtol = tolerance->rtol > 0 ? fmax(tolerance->rtol, spacing(dtype)) : 0;
  return fabs(found - wanted) <= tolerance->atol + rtol * fabs(wanted);
}

static bool equal_at(const lp_tensor *found, const lp_tensor *wanted, int64_t index, const lp_tolerance *tolerance) {
  if (!lp_dtype_is_float(wanted->type.dtype)) return lp_tensor_i64(found, index) == lp_tensor_i64(wanted, index);
  return near(lp_tensor_f64(found, index), lp_tensor_f64(wanted, index), wanted->type.dtype, tolerance);
}

lp_status lp_verify_compare(const lp_verify_array *found, const lp_array *wanted, const lp_tolerance *tolerance,
                            lp_verify_outcome *outcome) {
  lp_buf *why = &outcome->why;
  /* old test data stores bf16 as integers with its bits */
  lp_dtype dtype = wanted->dtype == LP_U16 && lp_streq(found->dtype, "bf16") ? LP_BF16 : wanted->dtype;
  if (!lp_streq(found->dtype, lp_dtype_name(dtype))) {
    lp_buf_printf(why, "'%s' is %s, expected %s", found->name, found->dtype, lp_dtype_name(wanted->dtype));
    return LP_MISMATCH;
  }
  if (!same_shape(found, wanted)) {
    lp_buf_printf(why, "'%s' has shape ", found->name);
    put_shape(why, found->rank, found->dim);
    lp_buf_puts(why, ", expected ");
    put_shape(why, wanted->rank, wanted->dim);
    return LP_MISMATCH;
  }
  int64_t count = 1, differ = 0, first = 0;
  for (int32_t i = 0; i < wanted->rank; i++)
    count *= wanted->dim[i];
  lp_type type = {.dtype = dtype};
  lp_tensor a = {.type = type, .data = found->data}, b = {.type = type, .data = wanted->data};
  double worst = 0;
  for (int64_t i = 0; i < count; i++) {
    double apart = lp_dtype_is_float(dtype) ? fabs(lp_tensor_f64(&a, i) - lp_tensor_f64(&b, i)) : 0;
    if (isfinite(apart)) outcome->worst = fmax(outcome->worst, apart);
    if (equal_at(&a, &b, i, tolerance)) continue;
    if (!differ++) first = i;
    worst = fmax(worst, fabs(lp_tensor_f64(&a, i) - lp_tensor_f64(&b, i)));
  }
  if (!differ) return LP_OK;
  lp_buf_printf(why,
                "'%s' differs in %" PRId64 " of %" PRId64 " elements, by %.4g at most; first at %" PRId64
                ": %.9g, expected %.9g",
                found->name, differ, count, worst, first, lp_tensor_f64(&a, first), lp_tensor_f64(&b, first));
  return LP_MISMATCH;
}
