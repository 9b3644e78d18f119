/* Writes weights.safetensors: every constant in the form its kernels read, in order of offset. Weights are mapped and
 * pass through one buffer of a panel or a slice, so the model never is in memory. */
#include "backend/cpu/cpu_internal.h"
#include "base/file.h"
#include "base/map.h"

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/pack.h"

#include <stdlib.h>
#include <string.h>

enum { SLICE_ELEMENTS = 1 << 16 };

static int by_offset(const void *a, const void *b) {
  const cpu_constant *const *x = a, *const *y = b;
  if ((*x)->offset != (*y)->offset) return (*x)->offset < (*y)->offset ? -1 : 1;
  return (*x)->bytes<(*y)->bytes ? -1 : (*x)->bytes>(*y)->bytes; /* an empty one first */
}

static const cpu_constant **sorted(const cpu_plan *plan, size_t *count) {
  *count = lp_map_count(plan->constants);
  const cpu_constant **list = LP_NEW_ARRAY(plan->arena, const cpu_constant *, *count + 1);
  for (size_t i = 0; i < *count; i++)
    list[i] = lp_map_value_at(plan->constants, i);
  qsort(list, *count, sizeof *list, by_offset);
  return list;
}

static void write_header(const cpu_plan *plan, lp_writer *writer, const cpu_constant *const *list, size_t count) {
  lp_safetensor *entry = LP_NEW_ARRAY(plan->arena, lp_safetensor, count + 1);
  for (size_t i = 0; i < count; i++)
    entry[i] =
        (lp_safetensor){list[i]->name, list[i]->dtype, list[i]->rank, list[i]->dim, list[i]->offset, list[i]->bytes};
  lp_safetensors_header(writer, entry, count);
}

/* ---- data -------------------------------------------------------------------------------------------------------------- */

/* A constant's own elements must be all there: what follows reads them without asking. */
lp_status cpu_constant_data(cpu_plan *plan, const lp_value *value, lp_tensor *out, lp_diag *diag) {
  int64_t numel;
  size_t bits;
  LP_TRY(lp_weight_data(plan->module, value, out, diag));
  if (!lp_type_static_numel(value->type, &numel) ||
      !lp_size_mul((size_t)numel, (size_t)lp_dtype_bits(value->type.dtype), &bits) || out->bytes < (bits + 7) / 8)
    return lp_error(diag, value->def->loc, "constant has %zu bytes, fewer than its shape wants", out->bytes);
  return LP_OK;
}

static void write_raw(lp_writer *writer, const lp_tensor *tensor, int64_t bytes) {
  lp_writer_put(writer, tensor->data, (size_t)bytes);
}

static void write_f32(lp_writer *writer, const lp_tensor *tensor, int64_t count) {
  if (tensor->type.dtype == LP_F32) {
    write_raw(writer, tensor, 4 * count);
    return;
  }
  float *slice = lp_alloc(sizeof *slice * SLICE_ELEMENTS);
  for (int64_t i = 0; i < count;) {
    int64_t n = 0;
    for (; n < SLICE_ELEMENTS && i < count; n++, i++)
      slice[n] = (float)lp_tensor_f64(tensor, i);
    lp_writer_put(writer, slice, sizeof *slice * (size_t)n);
  }
  free(slice);
}

static void write_bias(lp_writer *writer, const cpu_constant *constant, const lp_tensor *tensor) {
  static const float zero[LPK_PANEL];
  for (int64_t j = 0; j < LPK_PANELS(constant->n); j++) {
    float panel[LPK_PANEL] = {0};
    for (int64_t i = 0; i < LPK_PANEL && j * LPK_PANEL + i < constant->n; i++)
      panel[i] = (float)lp_tensor_f64(tensor, j * LPK_PANEL + i);
    if (constant->gated) lp_writer_put(writer, zero, sizeof zero);
    lp_writer_put(writer, panel, sizeof panel);
  }
}

/* The packer reads f32, f16 and bf16: a weight of f64 is narrowed first, one of integers dequantised. */
static lp_status packer_weight(cpu_plan *plan, const cpu_constant *constant, const lp_tensor *tensor, int which,
                               lpk_weight *out, float **narrow, lp_diag *diag) {
  *out =
      (lpk_weight){tensor->data, constant->n, constant->k, cpu_kernel_dtype(tensor->type.dtype), constant->transpose};
  *narrow = NULL;
  if (constant->scale[which]) {
    LP_TRY(cpu_dequantise(plan, constant, tensor, which, narrow, diag));
  } else if (tensor->type.dtype == LP_F64) {
    int64_t count = constant->n * constant->k;
    *narrow = lp_alloc(sizeof **narrow * (size_t)count);
    for (int64_t i = 0; i < count; i++)
      (*narrow)[i] = (float)lp_tensor_f64(tensor, i);
  }
  if (!*narrow) return LP_OK;
  out->data = *narrow;
  out->dtype = LPK_F32;
  return LP_OK;
}

static lp_status write_panels(cpu_plan *plan, lp_writer *writer, const cpu_constant *constant, const lp_tensor *tensor,
                              const lp_tensor *gate, lp_diag *diag) {
  float *narrow[2] = {NULL, NULL};
  lpk_weight weight, other = {0};
  LP_TRY(packer_weight(plan, constant, tensor, 0, &weight, &narrow[0], diag));
  lp_status status = gate ? packer_weight(plan, constant, gate, 1, &other, &narrow[1], diag) : LP_OK;
  if (status != LP_OK) {
    free(narrow[0]);
    return status;
  }
  int dtype = cpu_kernel_dtype(constant->dtype);
  size_t bytes = lpk_panel_bytes(constant->k, dtype);
  void *panel = lp_alloc(bytes);
  for (int64_t j = 0; j < LPK_PANELS(constant->n); j++) {
    if (gate) {
      lpk_pack_panel(panel, dtype, &other, j * LPK_PANEL);
      lp_writer_put(writer, panel, bytes);
    }
    lpk_pack_panel(panel, dtype, &weight, j * LPK_PANEL);
    lp_writer_put(writer, panel, bytes);
  }
  free(panel);
  free(narrow[0]);
  free(narrow[1]);
  return LP_OK;
}

static lp_status write_constant(cpu_plan *plan, lp_writer *writer, const cpu_constant *constant, lp_diag *diag) {
  lp_tensor tensor, gate = {0};
  LP_TRY(cpu_constant_data(plan, constant->value, &tensor, diag));
  if (constant->gate) LP_TRY(cpu_constant_data(plan, constant->gate, &gate, diag));
  switch (constant->form) {
  case CPU_FORM_F32:
    if (lp_dtype_is_float(tensor.type.dtype))
      write_f32(writer, &tensor, constant->bytes / 4);
    else
      write_raw(writer, &tensor, constant->bytes);
    break;
  case CPU_FORM_PANELS:
    return write_panels(plan, writer, constant, &tensor, constant->gate ? &gate : NULL, diag);
  case CPU_FORM_GROUPS:
    return cpu_write_groups(plan, writer, constant, &tensor, constant->gate ? &gate : NULL, diag);
  case CPU_FORM_BIAS:
    write_bias(writer, constant, &tensor);
    break;
  default:
    write_raw(writer, &tensor, constant->bytes);
  }
  return LP_OK;
}

lp_status cpu_weights_write(cpu_plan *plan, const char *path, lp_diag *diag) {
  lp_writer *writer;
  size_t count;
  const cpu_constant **list = sorted(plan, &count);
  LP_TRY(lp_writer_open(path, &writer, diag));
  write_header(plan, writer, list, count);
  for (size_t i = 0; i < count; i++) {
    lp_status status = write_constant(plan, writer, list[i], diag);
    if (status != LP_OK) {
      lp_writer_abandon(writer);
      return status;
    }
  }
  return lp_writer_commit(writer, diag);
}
