/* Writes weights in groups, one panel at a time. The codes are those of the model, or are made from its floats. */
#include "backend/cpu/constants/weights.h"

#include "backend/constants.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/pack.h"
#include "backend/cpu/operands.h"
#include "backend/quantise.h"
#include "base/file.h"
#include "ir/blocks.h"

#include <stdlib.h>
#include <string.h>

/* A weight's data: its elements, and the scales and zero points of an integer weight. */
typedef struct {
  const cpu_constant *constant;
  lp_tensor w, scale, zero;
  lp_block_rows blocks; /* of columns that are rounded again, instead of w */
  const float *squares; /* see lp_constant_squares */
  bool quantised, has_zero;
  int64_t row_length; /* of the value when it is [n][..]: k, or more */
} source;

lp_status cpu_rows_open(lp_module *module, const cpu_constant *constant, int which, lp_block_rows *out, lp_diag *diag) {
  const lp_value *value = which ? constant->gate : constant->value;
  int64_t k;
  *out = (lp_block_rows){0};
  if (!constant->transpose || !lp_type_static_dim(value->type, 1, &k) || k != constant->k) return LP_OK;
  return lp_block_rows_open(module, value, out, diag);
}

static lp_status open_source(lp_module *module, const cpu_constant *constant, int which, source *out, lp_diag *diag) {
  const lp_value *value = which ? constant->gate : constant->value;
  *out = (source){.constant = constant, .row_length = constant->k};
  out->quantised = constant->scale[which] != NULL;
  out->has_zero = constant->zero[which] != NULL;
  out->squares = lp_constant_squares(module, value, constant->k);
  if (constant->transpose) lp_type_static_dim(value->type, 1, &out->row_length);
  LP_TRY(cpu_rows_open(module, constant, which, &out->blocks, diag));
  if (!out->blocks.form) LP_TRY(lp_constant_data(module, value, &out->w, diag));
  if (out->quantised) LP_TRY(lp_constant_data(module, constant->scale[which], &out->scale, diag));
  return out->has_zero ? lp_constant_data(module, constant->zero[which], &out->zero, diag) : LP_OK;
}

static int64_t element_at(const source *s, int64_t row, int64_t column) {
  return s->constant->transpose ? column * s->row_length + row : row * s->constant->n + column;
}

/* The element of a scale or zero point for group g and a column: the tensor has one element, one for each column, or
 * one for each group and column. */
static float of_group(const source *s, const lp_tensor *tensor, int64_t g, int64_t column) {
  const cpu_constant *c = s->constant;
  int64_t count = 1, groups = (c->k + c->group - 1) / c->group;
  (void)lp_type_static_numel(tensor->type, &count);
  int64_t at = count == 1 ? 0 : c->transpose ? column * groups + g : g * c->n + column;
  return (float)lp_tensor_f64(tensor, at);
}

/* The difference between the code that a kernel reads and the code of the model. Kernels read codes under 8 bits as
 * unsigned. */
static int64_t shift_of(const source *s) {
  switch (s->w.type.dtype) {
  case LP_U8:
    return -128;
  case LP_I4:
    return 8;
  case LP_I2:
    return 2;
  default:
    return 0;
  }
}

typedef struct {
  lpk_group_form form;
  uint8_t *codes;      /* [k][LPK_PANEL] */
  float *scale, *zero; /* [groups][LPK_PANEL] */
  float *super;        /* [super-blocks][2][LPK_PANEL], or of as many groups */
  float *column;       /* [k] */
  void *panel;
  size_t bytes;
} workspace;

static workspace workspace_create(const cpu_constant *c) {
  workspace w = {.form = cpu_group_form(c)};
  size_t groups = (size_t)((c->k + c->group - 1) / c->group) * LPK_PANEL;
  w.codes = lp_alloc((size_t)c->k * LPK_PANEL);
  w.scale = lp_alloc(groups * sizeof(float));
  w.zero = lp_alloc(groups * sizeof(float));
  w.super = lp_alloc(groups * 2 * sizeof(float));
  w.column = lp_alloc((size_t)c->k * sizeof(float));
  w.bytes = lpk_group_panel_bytes(&w.form);
  w.panel = lp_alloc(w.bytes);
  return w;
}

static void workspace_free(workspace *w) {
  free(w->codes);
  free(w->scale);
  free(w->zero);
  free(w->super);
  free(w->column);
  free(w->panel);
}

static void take_column(const source *s, workspace *w, int64_t column, int64_t j) {
  const cpu_constant *c = s->constant;
  int64_t shift = shift_of(s);
  for (int64_t k = 0; k < c->k; k++)
    w->codes[k * LPK_PANEL + j] = (uint8_t)(lp_tensor_i64(&s->w, element_at(s, k, column)) + shift);
  for (int64_t g = 0; g * c->group < c->k; g++) {
    w->scale[g * LPK_PANEL + j] = of_group(s, &s->scale, g, column);
    w->zero[g * LPK_PANEL + j] = (s->has_zero ? of_group(s, &s->zero, g, column) : 0) + (float)shift;
  }
}

/* The codes, scales and minima of a column's blocks, as they are. */
static void take_blocks(const source *s, workspace *w, int64_t column, int64_t j) {
  const cpu_constant *c = s->constant;
  const lp_block_form *form = c->blocks;
  const uint8_t *at = s->blocks.data + column * (c->k / form->size) * form->bytes;
  const int shift = form->mins || form->bits == 8 ? 0 : 1 << (form->bits - 1);
  lp_block_parts p;
  for (int64_t k0 = 0; k0 < c->k; k0 += form->size, at += form->bytes) {
    lp_block_split(form, at, &p);
    for (int64_t i = 0; i < form->size; i++)
      w->codes[(k0 + i) * LPK_PANEL + j] = (uint8_t)(p.code[i] + shift);
    for (int64_t i = 0, g = k0 / form->group; i < form->size / form->group; i++, g++) {
      w->scale[g * LPK_PANEL + j] = (float)p.scale[i] * (c->super ? 1 : p.d);
      w->zero[g * LPK_PANEL + j] = (float)p.min[i] * (c->super ? 1 : p.m);
    }
    w->super[k0 / form->size * 2 * LPK_PANEL + j] = p.d;
    w->super[(k0 / form->size * 2 + 1) * LPK_PANEL + j] = p.m;
  }
}

static void quantise_column(const source *s, workspace *w, int64_t column, int64_t j) {
  const cpu_constant *c = s->constant;
  uint8_t *codes = lp_alloc((size_t)c->k);
  if (s->blocks.form) lp_block_rows_read(&s->blocks, column, 1, w->column);
  for (int64_t k = 0; k < c->k && !s->blocks.form; k++)
    w->column[k] = (float)lp_tensor_f64(&s->w, element_at(s, k, column));
  for (int64_t k0 = 0, g = 0; k0 < c->k; k0 += c->group, g++) {
    int64_t rows = c->k - k0 < c->group ? c->k - k0 : c->group;
    w->scale[g * LPK_PANEL + j] =
        lp_quantise(w->column + k0, rows, 1, s->squares ? s->squares + k0 : NULL, c->codes, c->scale_dtype, codes + k0);
  }
  for (int64_t k = 0; k < c->k; k++)
    w->codes[k * LPK_PANEL + j] = codes[k];
  free(codes);
}

/* Writes columns first .. of an expert's n. The columns that pad the last panel have zero scales. */
static void write_panel(lp_writer *writer, const source *s, workspace *w, int64_t expert, int64_t first) {
  const cpu_constant *c = s->constant;
  size_t groups = (size_t)((c->k + c->group - 1) / c->group) * LPK_PANEL;
  memset(w->codes, 0, (size_t)c->k * LPK_PANEL);
  memset(w->scale, 0, groups * sizeof(float));
  memset(w->zero, 0, groups * sizeof(float));
  memset(w->super, 0, groups * 2 * sizeof(float));
  for (int64_t j = 0; j < LPK_PANEL && first + j < c->n; j++) {
    int64_t column = expert * c->n + first + j;
    if (c->blocks)
      take_blocks(s, w, column, j);
    else if (s->quantised)
      take_column(s, w, column, j);
    else
      quantise_column(s, w, column, j);
  }
  lpk_pack_group_panel(w->panel, &w->form, w->codes, w->scale, w->zero, w->super);
  lp_writer_put(writer, w->panel, w->bytes);
}

lp_status cpu_write_groups(lp_module *module, lp_writer *writer, const cpu_constant *constant, lp_diag *diag) {
  source value, other = {0};
  LP_TRY(open_source(module, constant, 0, &value, diag));
  if (constant->gate) LP_TRY(open_source(module, constant, 1, &other, diag));
  workspace work = workspace_create(constant);
  const int64_t panels = LPK_PANELS(constant->n);
  for (int64_t at = 0; at < constant->experts * panels; at++) {
    if (constant->gate) write_panel(writer, &other, &work, at / panels, at % panels * LPK_PANEL);
    write_panel(writer, &value, &work, at / panels, at % panels * LPK_PANEL);
  }
  workspace_free(&work);
  return LP_OK;
}

lp_status cpu_dequantise(lp_module *module, const cpu_constant *constant, int which, float **out, lp_diag *diag) {
  source s;
  LP_TRY(open_source(module, constant, which, &s, diag));
  const int64_t n = constant->experts * constant->n, k = constant->k;
  float *values = lp_alloc((size_t)(n * k) * sizeof(float) + 1);
  for (int64_t row = 0; row < k; row++)
    for (int64_t column = 0; column < n; column++) {
      int64_t g = row / constant->group;
      float zero = s.has_zero ? of_group(&s, &s.zero, g, column) : 0;
      float code = (float)lp_tensor_f64(&s.w, element_at(&s, row, column)) - zero;
      values[constant->transpose ? column * k + row : row * n + column] = code * of_group(&s, &s.scale, g, column);
    }
  *out = values;
  return LP_OK;
}
