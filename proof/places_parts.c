/* Adds up the parts of a plan over more than two places: the times and memory of places, the bytes between them. */
#include "proof/places.h"

#include <math.h>

typedef struct {
  double busy[STAGES][MOST], bytes[STAGES][MOST][MOST], moved[MOST][MOST];
  double held[MOST], activation[MOST];
  unsigned used[STAGES][MOST]; /* [place] bits of what parts share */
  int32_t last[STAGES];        /* the place of the part before */
} sums;

static void add_part(const places_report *r, const places_part *part, bool is_first, sums *s) {
  const places_shape *shape = part->shape;
  for (int which = 0; which < STAGES; which++) {
    const int32_t at = part->at[which];
    const bool reads = !is_first || r->has_input[which];
    s->busy[which][at] += shape->ms[which][at];
    if (reads && s->last[which] != at) s->bytes[which][s->last[which]][at] += shape->read_bytes[which];
    s->last[which] = at;
    s->used[which][at] |= part->shared[which];
    s->held[at] += shape->weight_bytes[which][at];
    if (which == 0 || at != part->at[0]) s->held[at] += shape->both_bytes[at] + shape->cache_bytes[at];
    s->activation[at] = fmax(s->activation[at], shape->activation[which][at]);
  }
  if (part->at[0] != part->at[1]) s->moved[part->at[0]][part->at[1]] += shape->move_bytes;
}

static void add_shared(const places_report *r, sums *s) {
  for (size_t i = 0; i < r->shared_count; i++)
    for (int32_t p = 0; p < r->count; p++) {
      for (int which = 0; which < STAGES; which++)
        if (s->used[which][p] >> i & 1) s->busy[which][p] += r->shared[i].ms[which][p];
      if ((s->used[0][p] | s->used[1][p]) >> i & 1) s->held[p] += r->shared[i].bytes[p];
    }
}

static lp_status compare_sums(const places_report *r, const sums *s) {
  static const char *const times[STAGES] = {"prefill_ms", "decode_ms"};
  static const char *const sent[STAGES] = {"bytes_prefill from and to others", "bytes_decode from and to others"};
  for (int32_t p = 0; p < r->count; p++) {
    for (int which = 0; which < STAGES; which++) {
      LP_TRY(lp_certificate_places_same_of(r, times[which], p, r->busy[which][p], s->busy[which][p]));
      for (int32_t to = 0; to < r->count; to++)
        LP_TRY(lp_certificate_places_same_of(r, sent[which], p, r->bytes[which][p][to], s->bytes[which][p][to]));
    }
    for (int32_t to = 0; to < r->count; to++)
      LP_TRY(lp_certificate_places_same_of(r, "kv_move_bytes from and to others", p, r->moved[p][to], s->moved[p][to]));
    LP_TRY(lp_certificate_places_same_of(r, "memory_bytes", p, r->memory[p], s->held[p] + s->activation[p]));
  }
  return LP_OK;
}

/* The operators of a part take its time and hold its bytes together, and move no more than its caches. */
static lp_status check_operators(const places_report *r, const places_shape *shape) {
  double moved = 0;
  for (int32_t p = 0; p < r->count; p++) {
    double held = shape->both_bytes[p] + shape->cache_bytes[p], ms[STAGES] = {0, 0}, own = 0;
    LP_FOR_EACH(const places_operator, o, shape->operator, shape->operator_count) {
      own += o->both_bytes[p] + o->bytes[0][p] + o->bytes[1][p];
      for (int which = 0; which < STAGES; which++)
        ms[which] += o->ms[which][p];
    }
    for (int which = 0; which < STAGES; which++) {
      held += shape->weight_bytes[which][p];
      LP_TRY(lp_certificate_places_same_of(r, "the time of a part's operators", p, ms[which], shape->ms[which][p]));
    }
    LP_TRY(lp_certificate_places_same_of(r, "the memory of a part's operators", p, own, held));
  }
  for (size_t i = 0; i < shape->operator_count; i++)
    moved += shape->operator[i].move_bytes;
  if (moved <= shape->move_bytes * (1 + 1e-9)) return LP_OK;
  return lp_certificate_places_same(r, "what a part's operators move", moved, shape->move_bytes);
}

lp_status lp_certificate_places_parts_check(const places_report *r, bool *divides) {
  sums s = {0};
  *divides = false;
  for (size_t i = 0; i < r->shape_count; i++)
    LP_TRY(check_operators(r, &r->shape[i]));
  for (size_t i = 0; i < r->part_count; i++)
    if (r->part[i].at[0] < 0 || r->part[i].at[1] < 0) *divides = true;
  if (*divides) return LP_OK;
  for (size_t i = 0; i < r->part_count; i++)
    add_part(r, &r->part[i], i == 0, &s);
  add_shared(r, &s);
  for (int which = 0; which < STAGES; which++)
    if (r->has_result[which] && s.last[which]) s.bytes[which][s.last[which]][0] += r->result_bytes[which];
  return compare_sums(r, &s);
}
