/* Writes weights.safetensors: each constant in the form that kernels read, one panel or slice at a time. */
#include "backend/cpu/constants/weights.h"

#include "backend/constants.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/pack.h"
#include "backend/cpu/operands.h"
#include "base/file.h"

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

/* What panels are packed from: the elements, narrowed from f64 or dequantised where the packer has no such type, or
 * the values of blocks, a panel at a time. */
typedef struct {
  lpk_weight weight;
  float *narrow; /* released with free() */
  lp_block_rows rows;
} packer;

static lp_status packer_open(lp_module *module, const cpu_constant *constant, int which, packer *out, lp_diag *diag) {
  lp_tensor tensor;
  *out = (packer){0};
  LP_TRY(cpu_rows_open(module, constant, which, &out->rows, diag));
  if (out->rows.form) return LP_OK;
  LP_TRY(lp_constant_data(module, which ? constant->gate : constant->value, &tensor, diag));
  out->weight =
      (lpk_weight){tensor.data, constant->n, constant->k, cpu_kernel_dtype(tensor.type.dtype), constant->transpose};
  if (constant->scale[which]) {
    LP_TRY(cpu_dequantise(module, constant, which, &out->narrow, diag));
  } else if (tensor.type.dtype == LP_F64) {
    int64_t count = constant->experts * constant->n * constant->k;
    out->narrow = lp_alloc(sizeof *out->narrow * (size_t)count);
    for (int64_t i = 0; i < count; i++)
      out->narrow[i] = (float)lp_tensor_f64(&tensor, i);
  }
  if (!out->narrow) return LP_OK;
  out->weight.data = out->narrow;
  out->weight.dtype = LPK_F32;
  return LP_OK;
}

/* The elements of expert `e`. */
static lpk_weight of_expert(const lpk_weight *all, int64_t e) {
  lpk_weight own = *all;
  if (own.data) own.data = (const char *)all->data + e * all->n * all->k * (all->dtype == LPK_F32 ? 4 : 2);
  return own;
}

typedef struct {
  const cpu_constant *constant;
  packer source[2]; /* [1]: of the gate */
} panels;

/* Makes the panel of a cpu_panel_at(); `scratch` holds the floats of a panel in blocks. */
static void make_panel(const void *user, int64_t index, void *scratch, void *panel) {
  const panels *all = user;
  const cpu_constant *c = all->constant;
  const cpu_panel at = cpu_panel_at(c, index);
  const packer *p = &all->source[at.which];
  lpk_weight weight = of_expert(&p->weight, at.expert);
  if (p->rows.form) {
    const int64_t left = c->n - at.first, columns = left < LPK_PANEL ? left : LPK_PANEL;
    lp_block_rows_read(&p->rows, at.expert * c->n + at.first, columns, scratch);
    weight = (lpk_weight){scratch, columns, c->k, LPK_F32, true};
  }
  lpk_pack_panel(panel, cpu_kernel_dtype(c->stored.dtype), &weight, p->rows.form ? 0 : at.first);
}

static lp_status write_panels(lp_module *module, lp_writer *writer, const cpu_constant *constant, lp_diag *diag) {
  panels all = {.constant = constant};
  lp_status status = packer_open(module, constant, 0, &all.source[0], diag);
  if (status == LP_OK && constant->gate) status = packer_open(module, constant, 1, &all.source[1], diag);
  const lp_units units = {.count = cpu_panel_count(constant),
                          .bytes = lpk_panel_bytes(constant->k, cpu_kernel_dtype(constant->stored.dtype)),
                          .scratch = sizeof(float) * (size_t)(constant->k * LPK_PANEL),
                          .make = make_panel,
                          .user = &all};
  if (status == LP_OK) lp_put_units(writer, &units);
  free(all.source[0].narrow);
  free(all.source[1].narrow);
  return status;
}

static lp_status put_packed(lp_module *module, lp_writer *writer, const cpu_constant *constant, lp_diag *diag) {
  return constant->form == CPU_FORM_PANELS ? write_panels(module, writer, constant, diag)
                                           : cpu_write_groups(module, writer, constant, diag);
}

/* Makes *value expert `e` of it; false when the experts do not lie apart in their files. */
static bool take_expert(lp_module *module, lp_value **value, int64_t e, int64_t experts) {
  if (*value) *value = lp_constant_part(module, *value, e, experts);
  return *value != NULL;
}

/* Puts one expert after another. Of experts that lie apart in their files only one is in memory. */
static lp_status put_experts(lp_module *module, lp_writer *writer, const cpu_constant *constant, lp_diag *diag) {
  const int64_t experts = constant->experts;
  if (experts == 1 || !constant->transpose) return put_packed(module, writer, constant, diag);
  for (int64_t e = 0; e < experts; e++) {
    cpu_constant own = *constant;
    own.experts = 1;
    bool apart =
        take_expert(module, &own.value, e, experts) && (!own.gate || take_expert(module, &own.gate, e, experts));
    for (int i = 0; i < 2 && apart; i++)
      apart = (!own.scale[i] || take_expert(module, &own.scale[i], e, experts)) &&
              (!own.zero[i] || take_expert(module, &own.zero[i], e, experts));
    if (!apart) return put_packed(module, writer, constant, diag);
    LP_TRY(put_packed(module, writer, &own, diag));
    lp_shards_release(module);
  }
  return LP_OK;
}

static lp_status put_constant(lp_module *module, lp_writer *writer, const lp_stored_constant *stored, lp_diag *diag) {
  const cpu_constant *constant = (const cpu_constant *)stored;
  lp_tensor tensor;
  if (constant->form == CPU_FORM_PANELS || constant->form == CPU_FORM_GROUPS)
    return put_experts(module, writer, constant, diag);
  LP_TRY(lp_constant_data(module, constant->value, &tensor, diag));
  switch (constant->form) {
  case CPU_FORM_F32:
    if (lp_dtype_is_float(tensor.type.dtype))
      write_f32(writer, &tensor, constant->stored.bytes / 4);
    else
      write_raw(writer, &tensor, constant->stored.bytes);
    break;
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

lp_status cpu_weights_write(const lp_constants *constants, lp_module *module, lp_writer *writer, lp_diag *diag) {
  return lp_constants_write(constants, writer, write_constant, module, diag);
}
