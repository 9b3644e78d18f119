#include "backend/cpu/kernels/pack.h"

#include "backend/cpu/kernels/kernels.h"

#include <math.h>
#include <string.h>

static size_t element_bytes(int dtype) {
  return dtype == LPK_F32 ? 4 : dtype == LPK_I8 || dtype == LPK_U8 ? 1 : 2;
}

size_t lpk_panel_bytes(int64_t k, int dtype) {
  return (size_t)k * LPK_PANEL * element_bytes(dtype);
}

static uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static float from_f16(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 0x3ff;
  if (exponent == 0) return float_of(sign | bits_of((float)mantissa * 0x1p-24f));
  if (exponent == 31) return float_of(sign | 0x7f800000 | mantissa << 13);
  return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
}

static uint16_t to_f16(float f) {
  uint32_t bits = bits_of(f), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (magnitude >= 0x477ff000) /* rounds to 65520 or more */
    return (uint16_t)(sign | 0x7c00);
  if (magnitude < 0x38800000) /* a denormal half: the sum's low bits are its rounded mantissa */
    return (uint16_t)(sign | (bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f)));
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return (uint16_t)(sign | (rounded - 0x38000000) >> 13);
}

static uint16_t to_bf16(float f) {
  uint32_t bits = bits_of(f);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float read_element(const lpk_weight *w, int64_t at) {
  if (w->dtype == LPK_F32) return ((const float *)w->data)[at];
  uint16_t h = ((const uint16_t *)w->data)[at];
  return w->dtype == LPK_F16 ? from_f16(h) : float_of((uint32_t)h << 16);
}

static void write_element(void *panel, int64_t at, int dtype, float value) {
  if (dtype == LPK_I8 || dtype == LPK_U8)
    ((uint8_t *)panel)[at] = (uint8_t)(int)value;
  else if (dtype == LPK_F32)
    ((float *)panel)[at] = value;
  else
    ((uint16_t *)panel)[at] = dtype == LPK_F16 ? to_f16(value) : to_bf16(value);
}

/* The types agree: moves elements of `size` bytes without reading them. */
static void move_panel(char *panel, const lpk_weight *w, size_t size, int64_t first, int64_t columns) {
  const char *data = w->data;
  if (!w->transposed) {
    for (int64_t i = 0; i < w->k; i++)
      memcpy(panel + (size_t)(i * LPK_PANEL) * size, data + (size_t)(i * w->n + first) * size, (size_t)columns * size);
    return;
  }
  for (int64_t j = 0; j < columns; j++) {
    const char *row = data + (size_t)((first + j) * w->k) * size;
    if (size == 4)
      for (int64_t i = 0; i < w->k; i++)
        memcpy(panel + (i * LPK_PANEL + j) * 4, row + i * 4, 4);
    else
      for (int64_t i = 0; i < w->k; i++)
        memcpy(panel + (i * LPK_PANEL + j) * 2, row + i * 2, 2);
  }
}

void lpk_pack_panel(void *panel, int dtype, const lpk_weight *w, int64_t first) {
  int64_t columns = w->n - first < LPK_PANEL ? w->n - first : LPK_PANEL;
  if (columns < LPK_PANEL) memset(panel, 0, lpk_panel_bytes(w->k, dtype));
  if (dtype == w->dtype) {
    move_panel(panel, w, element_bytes(dtype), first, columns);
    return;
  }
  for (int64_t j = 0; j < columns; j++)
    for (int64_t i = 0; i < w->k; i++) {
      int64_t at = w->transposed ? (first + j) * w->k + i : i * w->n + first + j;
      write_element(panel, i * LPK_PANEL + j, dtype, read_element(w, at));
    }
}

void lpk_pack_linear(void *packed, int dtype, const lpk_weight *weight, int64_t stride) {
  size_t bytes = lpk_panel_bytes(weight->k, dtype);
  for (int64_t j = 0; j < LPK_PANELS(weight->n); j++)
    lpk_pack_panel((char *)packed + (size_t)(j * stride) * bytes, dtype, weight, j * LPK_PANEL);
}

/* ---- weights in groups ---- */

static bool stores_zeros(const lpk_group_form *form) {
  return form->zeros == LPK_ZEROS || form->zeros == LPK_MINIMA;
}

static bool has_book(const lpk_group_form *form) {
  return form->zeros >= LPK_DOUBLES && form->zeros <= LPK_NORMAL;
}

static int high_bits(const lpk_group_form *form) {
  return has_book(form) ? 0 : form->bits == 5 ? 1 : form->bits == 6 ? 2 : 0;
}

static int low_bits(const lpk_group_form *form) {
  return has_book(form) ? 4 : form->bits - high_bits(form);
}

/* Bytes of `bits` of each code of `rows` rows. */
static size_t plane_bytes(int64_t rows, int bits) {
  int64_t words = 32 / bits;
  return (size_t)((rows + words - 1) / words) * 4 * LPK_PANEL;
}

static size_t code_bytes(const lpk_group_form *form, int64_t rows) {
  int high = high_bits(form);
  return plane_bytes(rows, low_bits(form)) + (high ? plane_bytes(rows, high) : 0);
}

size_t lpk_group_panel_bytes(const lpk_group_form *form) {
  int64_t whole = form->k / form->group, rest = form->k % form->group;
  size_t heads = stores_zeros(form) ? 2 : 1, head = LPK_PANEL * element_bytes(form->scale) * heads;
  size_t bytes = (size_t)whole * (head + code_bytes(form, form->group));
  if (form->super) bytes += (size_t)(whole / form->super) * LPK_PANEL * 2 * heads;
  return rest ? bytes + head + code_bytes(form, rest) : bytes;
}

/* The bit of a word of 4 bits and fewer at which row `row` of it begins; `high`: of a word of high bits (groups.h). */
static int64_t place_of(int64_t row, int bits, bool high) {
  return high ? row % 8 / 2 * 8 + (row / 8 * 2 + row % 2) * bits : row * bits;
}

/* Packs `bits` of each code, from bit `from` on. */
static void pack_plane(uint8_t *to, const uint8_t *codes, int64_t rows, int from, int bits) {
  int64_t words = 32 / bits;
  for (int64_t i = 0; i < rows; i += words)
    for (int64_t j = 0; j < LPK_PANEL; j++) {
      uint32_t word = 0;
      for (int64_t r = 0; r < words && i + r < rows; r++) {
        uint32_t code = codes[(i + r) * LPK_PANEL + j] >> from & ((1u << bits) - 1);
        word |= code << place_of(r, bits, from > 0);
      }
      memcpy(to + (i / words * LPK_PANEL + j) * 4, &word, sizeof word);
    }
}

/* Packs bytes: 16 bits of each column hold two rows, the first in the low byte. */
static void pack_pairs(uint8_t *to, const uint8_t *codes, int64_t rows) {
  memset(to, 0, plane_bytes(rows, 8));
  for (int64_t i = 0; i < rows * LPK_PANEL; i++)
    to[i / (2 * LPK_PANEL) * 2 * LPK_PANEL + i % LPK_PANEL * 2 + i / LPK_PANEL % 2] = codes[i];
}

static uint8_t *put_row(uint8_t *at, int dtype, const float *row) {
  for (int64_t j = 0; j < LPK_PANEL; j++)
    write_element(at, j, dtype, row[j]);
  return at + LPK_PANEL * element_bytes(dtype);
}

void lpk_pack_group_panel(void *panel, const lpk_group_form *form, const uint8_t *codes, const float *scale,
                          const float *zero, const float *super) {
  uint8_t *at = panel;
  int high = high_bits(form), low = low_bits(form);
  for (int64_t k0 = 0, g = 0; k0 < form->k; k0 += form->group, g++) {
    int64_t rows = form->k - k0 < form->group ? form->k - k0 : form->group;
    for (int i = 0; form->super && g % form->super == 0 && i < (stores_zeros(form) ? 2 : 1); i++)
      at = put_row(at, LPK_F16, super + (g / form->super * 2 + i) * LPK_PANEL);
    at = put_row(at, form->scale, scale + g * LPK_PANEL);
    if (stores_zeros(form)) at = put_row(at, form->scale, zero + g * LPK_PANEL);
    if (form->zeros == LPK_E4M3)
      pack_pairs(at, codes + k0 * LPK_PANEL, rows);
    else
      pack_plane(at, codes + k0 * LPK_PANEL, rows, 0, low);
    at += plane_bytes(rows, low);
    if (!high) continue;
    pack_plane(at, codes + k0 * LPK_PANEL, rows, low, high);
    at += plane_bytes(rows, high);
  }
}

float lpk_round_to(float value, int dtype) {
  if (dtype == LPK_F32) return value;
  return dtype == LPK_F16 ? from_f16(to_f16(value)) : float_of((uint32_t)to_bf16(value) << 16);
}
