/* The units of a packed weight that lpk_linear_integer sums in integers, and their words. */
#pragma once

#include "backend/cpu/kernels/linear_form.h"
#include "backend/cpu/kernels/rounded.h"

/* A unit is what products are summed of as integers: a block, or half of one where groups are as short. */
INLINE int64_t unit_rows(const groups *q) {
  return has_halves(q) ? BLOCK / 2 : BLOCK;
}
INLINE int64_t unit_count(const form *f) {
  return (f->k + unit_rows(&f->q) - 1) / unit_rows(&f->q);
}
INLINE int unit_steps(const form *f, int kind) {
  return has_halves(&f->q) ? block_steps(kind) / 2 : block_steps(kind);
}
INLINE int64_t unit_words(const groups *q) {
  return unit_rows(q) / word_rows(low_bits(q));
}

/* A unit of a panel: its group and its words; those of high bits, if any, follow the group's. */
typedef struct {
  group_place group;
  const uint32_t *words, *high; /* [count][LPK_PANEL] */
  int64_t count;
} block;

/* Unit `number` of a panel; its words number `count` unless it is the last. */
INLINE block find_block(const char *panel, const form *f, int64_t number) {
  int64_t row = number * unit_rows(&f->q), in_group = row % f->q.group;
  block b = {.group = find_group(&f->q, panel, row / f->q.group), .count = unit_words(&f->q)};
  const char *codes = b.group.head + head_bytes(&f->q);
  b.words = (const uint32_t *)codes + in_group / word_rows(low_bits(&f->q)) * LPK_PANEL;
  if (high_bits(&f->q))
    b.high = (const uint32_t *)(codes + plane_bytes(f->q.group, low_bits(&f->q))) +
             in_group / word_rows(high_bits(&f->q)) * LPK_PANEL;
  return b;
}

/* Words of unit `number`, of which the last of k may have fewer, or none. */
INLINE int64_t words_left(const form *f, int64_t number) {
  int64_t words = word_rows(low_bits(&f->q)), rows = unit_rows(&f->q);
  return max64(0, (min64(rows, f->k - number * rows) + words - 1) / words);
}

INLINE v16w load_word(const uint32_t *word) {
  return *(const v16w_any *)word;
}

/* The words of high bits of a unit, columns 16 h ..: one word. */
INLINE v16w load_high(const block *b, const form *f, int h) {
  return high_bits(&f->q) ? load_word(b->high + h * LANES) : (v16w)0u;
}
