/* Lists the frontiers of a certificate's stages, each once, and the arcs between them. */
#include "proof/frontiers.h"
#include "base/item_set.h"
#include "proof/lister.h"

/* ---- equal steps ------------------------------------------------------------------------------------------------- */

static void put_double(lp_buf *to, double value) {
  lp_buf_append(to, &value, sizeof value);
}

static void put_int(lp_buf *to, int32_t value) {
  lp_buf_append(to, &value, sizeof value);
}

static void put_holding(const lister *l, size_t index, int32_t holding_index, lp_buf *to) {
  const lp_certificate_holding *h = &l->c->holdings[holding_index];
  for (int i = 0; i < 2; i++) {
    put_double(to, h->bytes[i]);
    put_double(to, h->ms[i][0]);
    put_double(to, h->ms[i][1]);
    put_int(to, h->first[i] < 0);
  }
  put_double(to, h->move_bytes);
  put_int(to, h->cache);
  put_int(to, l->holding_slot[holding_index]);
  put_int(to, l->holding_last[holding_index] == (int32_t)index);
}

/* Writes everything on which the arcs of a step depend besides the frontiers before it. */
static void describe(const lister *l, size_t index, lp_buf *to) {
  const place at = l->order[index];
  const lp_certificate_stage *s = &l->c->stages[at.stage];
  const lp_certificate_unit *u = &s->units[at.unit];
  put_int(to, at.stage);
  put_int(to, at.unit < l->anchor[at.stage]);
  put_int(to, at.unit < l->last_input[at.stage]);
  put_int(to, u->pin);
  put_double(to, u->result_bytes);
  for (int side = 0; side < 2; side++) {
    put_double(to, u->ms[side]);
    put_double(to, u->activation[side]);
  }
  for (size_t k = 0; k < u->in_count; k++) {
    put_int(to, l->value_slot[at.stage][u->in[k]]);
    put_int(to, s->maker[u->in[k]] < 0);
    put_int(to, l->last_reader[at.stage][u->in[k]] == at.unit);
    put_double(to, s->value[u->in[k]]);
  }
  for (size_t k = 0; k < u->out_count; k++)
    put_int(to, l->value_slot[at.stage][u->out[k]]);
  for (size_t k = 0; k < u->hold_count; k++)
    put_holding(l, index, u->hold[k], to);
  unsigned char live[MOST_SLOTS] = {0};
  for (int32_t i = 0; i < l->live_count[at.stage]; i++) {
    const int32_t value = l->live[at.stage][i];
    if (l->last_reader[at.stage][value] > at.unit) live[l->value_slot[at.stage][value]] = s->maker[value] < 0 ? 2 : 1;
  }
  lp_buf_append(to, live, sizeof live);
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_buf form;           /* from `describe` */
  int32_t before, after; /* sets of frontiers */
  frontier_arc (*arc)[LP_SIDE_COUNT];
} cached_step;

typedef struct {
  lp_item_sets set; /* of frontiers */
  LP_VEC(cached_step) step;
} step_cache;

static void release_cache(step_cache *k) {
  lp_item_sets_free(&k->set);
  for (size_t i = 0; i < k->step.count; i++)
    lp_buf_free(&k->step.data[i].form);
  lp_vec_free(&k->step);
}

/* Lists the frontiers after a unit and the arcs to them. */
static bool step_all(const lister *l, size_t index, const lp_item_set *before, lp_item_set *after, cached_step *out) {
  const frontier *from = before->data;
  bool fits = true;
  out->arc = lp_arena_array(l->c->arena, before->count, sizeof *out->arc);
  for (size_t i = 0; i < before->count; i++)
    for (int side = 0; side < 2; side++) {
      frontier f = from[i];
      frontier_arc *arc = &out->arc[i][side];
      const bool allowed = lister_step(l, index, side, &f, arc, &fits);
      if (!fits || after->count > lp_certificate_effort_of(l->c)->frontiers) return false;
      arc->to = allowed ? lp_item_set_add(after, &f) : -1;
    }
  return true;
}

/* Sets `arc` of a step and the number of the set after it, from an equal step where there is one. */
static bool take_step(const lister *l, size_t index, step_cache *k, int32_t *set, frontier_step *out) {
  lp_buf form = {0};
  lp_item_set after = {.size = sizeof(frontier)};
  describe(l, index, &form);
  *out = (frontier_step){.count = (int32_t)k->set.data[*set].count};
  for (size_t i = k->step.count; i-- > 0;) {
    const cached_step *other = &k->step.data[i];
    if (other->before != *set || other->form.size != form.size) continue;
    if (memcmp(other->form.data, form.data, form.size) != 0) continue;
    lp_buf_free(&form);
    out->arc = other->arc;
    *set = other->after;
    return true;
  }
  cached_step step = {.form = form, .before = *set};
  if (!step_all(l, index, &k->set.data[*set], &after, &step)) {
    lp_buf_free(&form);
    lp_item_set_free(&after);
    return false;
  }
  step.after = *set = lp_item_sets_add(&k->set, &after);
  out->arc = step.arc;
  lp_vec_push(&k->step, step);
  return true;
}

static bool build_in_order(const lp_certificate *c, unsigned stages, bool by_blocks, frontier_graph *out) {
  lister l = {.c = c, .stages = stages, .by_blocks = by_blocks};
  step_cache k = {0};
  lp_item_set first = {.size = sizeof(frontier)};
  bool fits = true;
  size_t all = 0;
  lister_prepare(&l);
  *out = (frontier_graph){.step = LP_NEW_ARRAY(c->arena, frontier_step, l.count), .step_count = l.count};
  (void)lp_item_set_add(&first, &(frontier){0});
  int32_t set = lp_item_sets_add(&k.set, &first);
  for (size_t i = 0; i < l.count && fits; i++) {
    fits = lister_open(&l, i) && take_step(&l, i, &k, &set, &out->step[i]);
    lister_close(&l, i);
    all += k.set.data[set].count;
    fits = fits && all <= lp_certificate_effort_of(c)->frontiers_in_all;
  }
  out->last_count = (int32_t)k.set.data[set].count;
  release_cache(&k);
  return fits;
}

/* In the order of blocks the sides of a whole block's weights are part of the frontiers where memory is limited. */
bool frontiers_build(const lp_certificate *c, unsigned stages, frontier_graph *out) {
  const bool by_blocks = stages == 3 && !(c->limit_bytes[0] > 0) && !(c->limit_bytes[1] > 0);
  if (build_in_order(c, stages, by_blocks, out)) return true;
  return stages == 3 && build_in_order(c, stages, !by_blocks, out);
}
