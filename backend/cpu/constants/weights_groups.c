/* Writes weights in groups, one panel at a time. The codes are those of the model, or are made from its floats. */
#include "backend/cpu/constants/weights.h"

#include "backend/constants.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/pack.h"
#include "backend/quantise.h"
#include "base/file.h"
#include "ir/blocks.h"

#include <math.h>

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

/* The element of a scale or zero point of the model for a row of k and a column: the tensor has one element, one for
 * each column, or one for each group and column. */
static float of_group(const source *s, const lp_tensor *tensor, int64_t row, int64_t column) {
  const cpu_constant *c = s->constant;
  int64_t count = 1, groups = (c->k + c->own_group - 1) / c->own_group, g = row / c->own_group;
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

/* The columns of a panel, in a thread's scratch memory. */
typedef struct {
  float *scale, *zero; /* [groups][LPK_PANEL] */
  float *super;        /* [super-blocks][2][LPK_PANEL], or of as many groups */
  float *column;       /* [k] */
  uint8_t *codes;      /* [k][LPK_PANEL] */
  uint8_t *own;        /* [k]: a column's codes */
} workspace;

static size_t workspace_groups(const cpu_constant *c) {
  return (size_t)((c->k + c->group - 1) / c->group) * LPK_PANEL;
}

static size_t workspace_bytes(const cpu_constant *c) {
  return (4 * workspace_groups(c) + (size_t)c->k) * sizeof(float) + (size_t)c->k * (LPK_PANEL + 1);
}

/* The columns that pad the last panel have zero scales. */
static workspace workspace_in(const cpu_constant *c, void *scratch) {
  const size_t groups = workspace_groups(c), k = (size_t)c->k;
  workspace w = {.scale = memset(scratch, 0, workspace_bytes(c))};
  w.zero = w.scale + groups;
  w.super = w.zero + groups;
  w.column = w.super + 2 * groups;
  w.codes = (uint8_t *)(w.column + k);
  w.own = w.codes + k * LPK_PANEL;
  return w;
}

/* A column of floats of 8 bits. A group with a NaN has a scale of NaN (lpk_groups). */
static void take_floats(const source *s, const workspace *w, int64_t column, int64_t j) {
  const cpu_constant *c = s->constant;
  for (int64_t k = 0; k < c->k; k++) {
    const int64_t at = k / c->group * LPK_PANEL + j;
    const uint8_t code = ((const uint8_t *)s->w.data)[element_at(s, k, column)];
    w->codes[k * LPK_PANEL + j] = code;
    if (k % c->group == 0) w->scale[at] = of_group(s, &s->scale, k, column);
    if ((code & 0x7f) == 0x7f) w->scale[at] = NAN;
  }
}

static void take_column(const source *s, const workspace *w, int64_t column, int64_t j) {
  const cpu_constant *c = s->constant;
  int64_t shift = shift_of(s);
  for (int64_t k = 0; k < c->k; k++)
    w->codes[k * LPK_PANEL + j] = (uint8_t)(lp_tensor_i64(&s->w, element_at(s, k, column)) + shift);
  for (int64_t g = 0; g * c->group < c->k; g++) {
    w->scale[g * LPK_PANEL + j] = of_group(s, &s->scale, g * c->group, column);
    w->zero[g * LPK_PANEL + j] = (s->has_zero ? of_group(s, &s->zero, g * c->group, column) : 0) + (float)shift;
  }
}

/* The codes, scales and minima of a column's blocks, as they are. */
static void take_blocks(const source *s, const workspace *w, int64_t column, int64_t j) {
  const cpu_constant *c = s->constant;
  const lp_block_form *form = c->blocks;
  const uint8_t *at = s->blocks.data + column * (c->k / form->size) * form->bytes;
  const int shift = form->mins || form->bits == 8 ? 0 : 1 << (form->bits - 1);
  uint8_t code_of[256] = {0}; /* of values */
  for (int code = form->book ? 15 : 255; code >= 0; code--)
    code_of[(uint8_t)(form->book ? lp_block_books[form->book][code] : code - shift)] = (uint8_t)code;
  lp_block_parts p;
  for (int64_t k0 = 0; k0 < c->k; k0 += form->size, at += form->bytes) {
    lp_block_split(form, at, &p);
    for (int64_t i = 0; i < form->size; i++)
      w->codes[(k0 + i) * LPK_PANEL + j] = code_of[(uint8_t)p.code[i]];
    for (int64_t i = 0, g = k0 / form->group; i < form->size / form->group; i++, g++) {
      w->scale[g * LPK_PANEL + j] = (float)p.scale[i] * (c->super ? 1 : p.d);
      w->zero[g * LPK_PANEL + j] = (float)p.min[i] * (c->super ? 1 : p.m);
    }
    w->super[k0 / form->size * 2 * LPK_PANEL + j] = p.d;
    w->super[(k0 / form->size * 2 + 1) * LPK_PANEL + j] = p.m;
  }
}

static void quantise_column(const source *s, const workspace *w, int64_t column, int64_t j) {
  const cpu_constant *c = s->constant;
  if (s->blocks.form) lp_block_rows_read(&s->blocks, column, 1, w->column);
  for (int64_t k = 0; k < c->k && !s->blocks.form; k++)
    w->column[k] =
        (float)lp_tensor_f64(&s->w, element_at(s, k, column)) * (s->quantised ? of_group(s, &s->scale, k, column) : 1);
  for (int64_t k0 = 0, g = 0; k0 < c->k; k0 += c->group, g++) {
    int64_t rows = c->k - k0 < c->group ? c->k - k0 : c->group;
    w->scale[g * LPK_PANEL + j] = lp_quantise(w->column + k0, rows, 1, s->squares ? s->squares + k0 : NULL, c->codes,
                                              c->scale_dtype, w->own + k0);
  }
  for (int64_t k = 0; k < c->k; k++)
    w->codes[k * LPK_PANEL + j] = w->own[k];
}

int64_t cpu_panel_count(const cpu_constant *constant) {
  return constant->experts * LPK_PANELS(constant->n) * (constant->gate ? 2 : 1);
}

cpu_panel cpu_panel_at(const cpu_constant *constant, int64_t index) {
  const int64_t panels = LPK_PANELS(constant->n), at = constant->gate ? index / 2 : index;
  return (cpu_panel){at / panels, at % panels * LPK_PANEL, constant->gate && index % 2 == 0 ? 1 : 0};
}

static void make_panel(const void *user, int64_t index, void *scratch, void *panel) {
  const source *sources = user;
  const cpu_constant *c = sources->constant;
  const cpu_panel at = cpu_panel_at(c, index);
  const source *s = &sources[at.which];
  const lpk_group_form form = cpu_group_form(c);
  const workspace w = workspace_in(c, scratch);
  for (int64_t j = 0; j < LPK_PANEL && at.first + j < c->n; j++) {
    int64_t column = at.expert * c->n + at.first + j;
    if (c->blocks)
      take_blocks(s, &w, column, j);
    else if (c->codes == LP_F8E4M3FN)
      take_floats(s, &w, column, j);
    else if (s->quantised && s->w.type.dtype != LP_F8E4M3FN)
      take_column(s, &w, column, j);
    else
      quantise_column(s, &w, column, j);
  }
  lpk_pack_group_panel(panel, &form, w.codes, w.scale, w.zero, w.super);
}

lp_status cpu_write_groups(lp_module *module, lp_writer *writer, const cpu_constant *constant, lp_diag *diag) {
  source sources[2] = {0}; /* [1]: of the gate */
  LP_TRY(open_source(module, constant, 0, &sources[0], diag));
  if (constant->gate) LP_TRY(open_source(module, constant, 1, &sources[1], diag));
  const lpk_group_form form = cpu_group_form(constant);
  const lp_units units = {.count = cpu_panel_count(constant),
                          .bytes = lpk_group_panel_bytes(&form),
                          .scratch = workspace_bytes(constant),
                          .make = make_panel,
                          .user = sources};
  lp_put_units(writer, &units);
  return LP_OK;
}

lp_status cpu_dequantise(lp_module *module, const cpu_constant *constant, int which, float **out, lp_diag *diag) {
  source s;
  LP_TRY(open_source(module, constant, which, &s, diag));
  const int64_t n = constant->experts * constant->n, k = constant->k;
  float *values = lp_alloc((size_t)(n * k) * sizeof(float) + 1);
  for (int64_t row = 0; row < k; row++)
    for (int64_t column = 0; column < n; column++) {
      float zero = s.has_zero ? of_group(&s, &s.zero, row, column) : 0;
      float code = (float)lp_tensor_f64(&s.w, element_at(&s, row, column)) - zero;
      values[constant->transpose ? column * k + row : row * n + column] = code * of_group(&s, &s.scale, row, column);
    }
  *out = values;
  return LP_OK;
}
