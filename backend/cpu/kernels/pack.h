/* Packs weights into the layout that lpk_linear reads. The compiler runs this host code while it writes a bundle. It
 * works panel by panel, so that no more than one panel of a weight is in memory twice. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  const void *data; /* row-major, contiguous */
  int64_t n, k;     /* outputs, inputs */
  int dtype;        /* LPK_F32, LPK_F16 or LPK_BF16 */
  bool transposed;  /* stored as [n][k] (a PyTorch weight), otherwise as [k][n] (an ONNX MatMul operand) */
} lpk_weight;

/* Bytes of one panel, [k][LPK_PANEL] elements of `dtype`. A packed weight is LPK_PANELS(n) panels in order. */
size_t lpk_panel_bytes(int64_t k, int dtype);

/* Fills `panel` with columns first .. first + LPK_PANEL of the weight, converted to `dtype` (to nearest, ties to
 * even); columns past n are zero. A gated product's weight interleaves: panel 2j from the gate's weight, 2j + 1 from
 * the up's. */
void lpk_pack_panel(void *panel, int dtype, const lpk_weight *weight, int64_t first);

/* Fills all panels, `stride` panels apart (1; 2 for one half of a gated weight). */
void lpk_pack_linear(void *packed, int dtype, const lpk_weight *weight, int64_t stride);

/* ---- weights in groups (lpk_groups) ---- */

typedef struct {
  int64_t n, k, group; /* group: k or less; a multiple of 16 unless it is k */
  int bits;            /* 8, 6, 5, 4 or 2; see lpk_groups */
  int scale; /* LPK_F32, LPK_F16 or LPK_BF16, or of super-blocks LPK_I8 or LPK_U8: of scales and zero points */
  int zeros; /* LPK_ZEROS or LPK_MINIMA: they are stored; or another kind of codes: see lpk_groups */
  int super; /* the number of groups of a super-block; 0: none */
} lpk_group_form;

size_t lpk_group_panel_bytes(const lpk_group_form *form);

/* Fills `panel` from its 32 columns: codes [k][LPK_PANEL], signed or floats for 8 bits, else unsigned; scale and zero
 * [ceil(k / group)][LPK_PANEL], zero NULL without zero points; super [super-blocks][2][LPK_PANEL], the units of scales
 * and of minima, NULL without super-blocks. */
void lpk_pack_group_panel(void *panel, const lpk_group_form *form, const uint8_t *codes, const float *scale,
                          const float *zero, const float *super);

/* The nearest value that `dtype` (LPK_F32, LPK_F16, LPK_BF16) holds. */
float lpk_round_to(float value, int dtype);
