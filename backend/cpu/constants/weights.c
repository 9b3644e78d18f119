/* Writes weights.safetensors: each constant in the form that kernels read, one panel or slice at a time. */
#include "backend/cpu/constants/weights.h"

#include "backend/constants.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/pack.h"
#include "backend/cpu/operands.h"
#include "base/file.h"

#include <stdlib.h>

static void write_raw(lp_writer *writer, const lp_tensor *tensor, int64_t bytes) {
  lp_writer_put(writer, tensor->data, (size_t)bytes);
}

static void write_f32(lp_writer *writer, const lp_tensor *tensor, int64_t count) {
  if (tensor->type.dtype == LP_F32)
    write_raw(writer, tensor, 4 * count);
  else
    lp_put_floats(writer, tensor, count);
}

static void write_bias(lp_writer *writer, const cpu_constant *constant, const lp_tensor *tensor) {
  static const float zero[LPK_PANEL];
  const int64_t panels = LPK_PANELS(constant->n);
  for (int64_t at = 0; at < constant->experts * panels; at++) {
    float panel[LPK_PANEL] = {0};
    for (int64_t i = 0, j = at % panels * LPK_PANEL; i < LPK_PANEL && j + i < constant->n; i++)
      panel[i] = (float)lp_tensor_f64(tensor, at / panels * constant->n + j + i);
    if (constant->gated) lp_writer_put(writer, zero, sizeof zero);
    lp_writer_put(writer, panel, sizeof panel);
  }
}

/* The packer reads f32, f16 and bf16: weights of f64 are narrowed first, integer weights dequantised. */
static lp_status packer_weight(lp_module *module, const cpu_constant *constant, const lp_tensor *tensor, int which,
                               lpk_weight *out, float **narrow, lp_diag *diag) {
  *out =
      (lpk_weight){tensor->data, constant->n, constant->k, cpu_kernel_dtype(tensor->type.dtype), constant->transpose};
  *narrow = NULL;
  if (constant->scale[which]) {
    LP_TRY(cpu_dequantise(module, constant, tensor, which, narrow, diag));
  } else if (tensor->type.dtype == LP_F64) {
    int64_t count = constant->experts * constant->n * constant->k;
    *narrow = lp_alloc(sizeof **narrow * (size_t)count);
    for (int64_t i = 0; i < count; i++)
      (*narrow)[i] = (float)lp_tensor_f64(tensor, i);
  }
  if (!*narrow) return LP_OK;
  out->data = *narrow;
  out->dtype = LPK_F32;
  return LP_OK;
}

static lpk_weight of_expert(const lpk_weight *all, int64_t e) {
  lpk_weight own = *all;
  if (own.data) own.data = (const char *)all->data + e * all->n * all->k * (all->dtype == LPK_F32 ? 4 : 2);
  return own;
}

static lp_status write_panels(lp_module *module, lp_writer *writer, const cpu_constant *constant,
                              const lp_tensor *tensor, const lp_tensor *gate, lp_diag *diag) {
  float *narrow[2] = {NULL, NULL};
  lpk_weight weight, other = {0};
  LP_TRY(packer_weight(module, constant, tensor, 0, &weight, &narrow[0], diag));
  lp_status status = gate ? packer_weight(module, constant, gate, 1, &other, &narrow[1], diag) : LP_OK;
  if (status != LP_OK) {
    free(narrow[0]);
    return status;
  }
  int dtype = cpu_kernel_dtype(constant->stored.dtype);
  size_t bytes = lpk_panel_bytes(constant->k, dtype);
  void *panel = lp_alloc(bytes);
  for (int64_t e = 0; e < constant->experts; e++) {
    const lpk_weight own = of_expert(&weight, e), own_gate = of_expert(&other, e);
    for (int64_t j = 0; j < LPK_PANELS(constant->n); j++) {
      if (gate) {
        lpk_pack_panel(panel, dtype, &own_gate, j * LPK_PANEL);
        lp_writer_put(writer, panel, bytes);
      }
      lpk_pack_panel(panel, dtype, &own, j * LPK_PANEL);
      lp_writer_put(writer, panel, bytes);
    }
  }
  free(panel);
  free(narrow[0]);
  free(narrow[1]);
  return LP_OK;
}

static lp_status put_constant(lp_module *module, lp_writer *writer, const lp_stored_constant *stored, lp_diag *diag) {
  const cpu_constant *constant = (const cpu_constant *)stored;
  lp_tensor tensor, gate = {0};
  LP_TRY(lp_constant_data(module, constant->value, &tensor, diag));
  if (constant->gate) LP_TRY(lp_constant_data(module, constant->gate, &gate, diag));
  switch (constant->form) {
  case CPU_FORM_F32:
    if (lp_dtype_is_float(tensor.type.dtype))
      write_f32(writer, &tensor, constant->stored.bytes / 4);
    else
      write_raw(writer, &tensor, constant->stored.bytes);
    break;
  case CPU_FORM_PANELS:
    return write_panels(module, writer, constant, &tensor, constant->gate ? &gate : NULL, diag);
  case CPU_FORM_GROUPS:
    return cpu_write_groups(module, writer, constant, &tensor, constant->gate ? &gate : NULL, diag);
  case CPU_FORM_BIAS:
    write_bias(writer, constant, &tensor);
    break;
  default:
    write_raw(writer, &tensor, constant->stored.bytes);
  }
  return LP_OK;
}

static lp_status write_constant(void *user, lp_writer *writer, const lp_stored_constant *stored, lp_diag *diag) {
  lp_status status = put_constant(user, writer, stored, diag);
  lp_shards_release(user);
  return status;
}

lp_status cpu_weights_write(const lp_constants *constants, lp_module *module, const char *path, lp_diag *diag) {
  return lp_constants_write(constants, path, write_constant, module, diag);
}
