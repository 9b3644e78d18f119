/* Finds what is live between two units, and the order of the units of both stages. */
#include "base/number.h"
#include "proof/lister.h"

#include <math.h>

bool frontiers_can_move(const lp_certificate_holding *h) {
  return h->cache && h->first[0] >= 0 && h->first[1] >= 0 && h->move_bytes > 0;
}

/* Returns, for each unit of prefill, the last one of its block. At most one value crosses the end of a block. */
static int32_t *list_block_ends(const lp_certificate *c) {
  const lp_certificate_stage *s = &c->stages[0];
  int32_t *last = LP_NEW_ARRAY(c->arena, int32_t, s->value_count);
  int32_t *live = LP_NEW_ARRAY(c->arena, int32_t, s->unit_count + 1);
  int32_t *end = LP_NEW_ARRAY(c->arena, int32_t, s->unit_count), at = (int32_t)s->unit_count - 1;
  for (size_t i = 0; i < s->unit_count; i++)
    for (size_t k = 0; k < s->units[i].in_count; k++)
      last[s->units[i].in[k]] = (int32_t)i;
  for (size_t v = 0; v < s->value_count; v++)
    for (int32_t i = s->maker[v]; s->maker[v] >= 0 && i < last[v]; i++)
      live[i]++;
  for (size_t i = s->unit_count; i-- > 0;) {
    if (live[i] <= 1) at = (int32_t)i;
    end[i] = at;
  }
  return end;
}

/* Sorts the units of both stages so that users of a holding are near each other: a unit of decode follows the block of
 * the last unit of prefill that shares a holding with it or with a unit of decode before it. Between blocks a stage has
 * few frontiers, so that the units of the other stage multiply few. */
static void list_order(lister *l) {
  const lp_certificate *c = l->c;
  const int32_t *end = NULL;
  size_t next = 0;
  int32_t rank = -1;
  l->order = LP_NEW_ARRAY(c->arena, place, c->stages[0].unit_count + c->stages[1].unit_count);
  if (l->stages == 1 || l->stages == 2) {
    l->count = c->stages[l->stages - 1].unit_count;
    for (size_t i = 0; i < l->count; i++)
      l->order[i] = (place){(int32_t)l->stages - 1, (int32_t)i};
    return;
  }
  end = l->by_blocks ? list_block_ends(c) : NULL;
  for (size_t i = 0; i < c->stages[1].unit_count; i++) {
    const lp_certificate_unit *u = &c->stages[1].units[i];
    for (size_t k = 0; k < u->hold_count; k++) {
      int32_t first = c->holdings[u->hold[k]].first[0];
      if (first > rank) rank = end ? end[first] : first;
    }
    for (; (int32_t)next <= rank; next++)
      l->order[l->count++] = (place){0, (int32_t)next};
    l->order[l->count++] = (place){1, (int32_t)i};
  }
  for (; next < c->stages[0].unit_count; next++)
    l->order[l->count++] = (place){0, (int32_t)next};
}

static void find_lives(lister *l) {
  const lp_certificate *c = l->c;
  l->holding_slot = LP_NEW_ARRAY(c->arena, int32_t, c->holding_count);
  l->holding_first = LP_NEW_ARRAY(c->arena, int32_t, c->holding_count);
  l->holding_last = LP_NEW_ARRAY(c->arena, int32_t, c->holding_count);
  for (size_t i = 0; i < c->holding_count; i++)
    l->holding_slot[i] = l->holding_first[i] = l->holding_last[i] = -1;
  for (int w = 0; w < 2; w++) {
    const lp_certificate_stage *s = &c->stages[w];
    l->value_slot[w] = LP_NEW_ARRAY(c->arena, int32_t, s->value_count);
    l->last_reader[w] = LP_NEW_ARRAY(c->arena, int32_t, s->value_count);
    for (size_t i = 0; i < s->value_count; i++)
      l->value_slot[w][i] = l->last_reader[w][i] = -1;
    for (size_t i = 0; i < s->unit_count; i++) {
      bool begins = true;
      for (size_t k = 0; k < s->units[i].in_count; k++) {
        l->last_reader[w][s->units[i].in[k]] = (int32_t)i;
        if (s->maker[s->units[i].in[k]] >= 0)
          begins = false;
        else
          l->last_input[w] = (int32_t)i;
      }
      if (begins) l->anchor[w] = (int32_t)i;
    }
  }
  for (size_t i = 0; i < l->count; i++) {
    const lp_certificate_unit *u = &c->stages[l->order[i].stage].units[l->order[i].unit];
    for (size_t k = 0; k < u->hold_count; k++) {
      if (l->holding_first[u->hold[k]] < 0) l->holding_first[u->hold[k]] = (int32_t)i;
      l->holding_last[u->hold[k]] = (int32_t)i;
    }
  }
}

/* Lists the activations of each limited side. Where there are too many, the levels are fewer, and an activation counts
 * as the level below it. */
static void find_levels(lister *l) {
  const lp_certificate *c = l->c;
  for (int side = 0; side < 2; side++) {
    l->level_count[side] = 1;
    if (!l->counts_bytes || c->limit_bytes[side] <= 0) continue;
    double *all = LP_NEW_ARRAY(c->arena, double, l->count + 1);
    size_t distinct = 1;
    for (size_t i = 0; i < l->count; i++)
      all[i + 1] = fmax(0, c->stages[l->order[i].stage].units[l->order[i].unit].activation[side]);
    qsort(all, l->count + 1, sizeof *all, lp_compare_doubles);
    for (size_t i = 1; i <= l->count; i++)
      if (all[i] > all[distinct - 1]) all[distinct++] = all[i];
    /* The greatest ones matter most. */
    size_t kept = distinct < MOST_LEVELS ? distinct : MOST_LEVELS;
    for (size_t i = 1; i < kept; i++)
      l->level[side][i] = all[distinct - kept + i];
    l->level_count[side] = (int32_t)kept;
  }
}

/* Gives a slot to something; false when there is none left. */
static bool take_slot(lister *l, int32_t *slot) {
  for (int32_t i = 0; i < MOST_SLOTS; i++) {
    if (l->taken[i]) continue;
    l->taken[i] = true;
    *slot = i;
    return true;
  }
  return false;
}

static void give_slot(lister *l, int32_t *slot) {
  if (*slot != NO_SLOT) l->taken[*slot] = false;
  *slot = NO_SLOT;
}

static bool open_value(lister *l, int32_t which, int32_t value) {
  if (l->value_slot[which][value] != NO_SLOT || l->last_reader[which][value] < 0) return true;
  if (!take_slot(l, &l->value_slot[which][value])) return false;
  l->live[which][l->live_count[which]++] = value;
  return true;
}

static void close_value(lister *l, int32_t which, int32_t value) {
  for (int32_t i = 0; i < l->live_count[which]; i++)
    if (l->live[which][i] == value) l->live[which][i--] = l->live[which][--l->live_count[which]];
  give_slot(l, &l->value_slot[which][value]);
}

/* Tells whether the bytes of a holding of several units count. A few bytes that all layers share would double the
 * frontiers, so they are left out. */
static bool has_bytes(const lister *l, const lp_certificate_holding *h) {
  static const double least = 1e-6; /* of a limit */
  for (int side = 0; side < 2; side++)
    if (l->counts_bytes && l->c->limit_bytes[side] > 0 && h->bytes[side] > least * l->c->limit_bytes[side]) return true;
  return false;
}

static bool needs_slot(const lister *l, int32_t index) {
  const lp_certificate_holding *h = &l->c->holdings[index];
  bool has_ms = false;
  for (int w = 0; w < 2; w++)
    if (l->stages >> w & 1) has_ms = has_ms || h->ms[w][0] > 0 || h->ms[w][1] > 0;
  return h->cache || has_ms || has_bytes(l, h);
}

bool lister_open(lister *l, size_t index) {
  const place at = l->order[index];
  const lp_certificate_stage *s = &l->c->stages[at.stage];
  const lp_certificate_unit *u = &s->units[at.unit];
  for (size_t k = 0; k < u->hold_count; k++)
    if (l->holding_first[u->hold[k]] == (int32_t)index && l->holding_last[u->hold[k]] > (int32_t)index &&
        needs_slot(l, u->hold[k]) && !take_slot(l, &l->holding_slot[u->hold[k]]))
      return false;
  if (!l->counts_link[at.stage]) return true;
  for (size_t k = 0; k < u->in_count; k++)
    if (s->maker[u->in[k]] < 0 && !open_value(l, at.stage, u->in[k])) return false;
  for (size_t k = 0; k < u->out_count; k++)
    if (!open_value(l, at.stage, u->out[k])) return false;
  return true;
}

void lister_close(lister *l, size_t index) {
  const place at = l->order[index];
  const lp_certificate_unit *u = &l->c->stages[at.stage].units[at.unit];
  for (size_t k = 0; k < u->in_count; k++)
    if (l->last_reader[at.stage][u->in[k]] == at.unit) close_value(l, at.stage, u->in[k]);
  for (size_t k = 0; k < u->hold_count; k++)
    if (l->holding_last[u->hold[k]] == (int32_t)index) give_slot(l, &l->holding_slot[u->hold[k]]);
}

void lister_prepare(lister *l) {
  const lp_certificate *c = l->c;
  for (int w = 0; w < 2; w++) {
    l->counts_link[w] = c->link[w] > 0 || c->limit_ms[w] > 0;
    l->counts_turns[w] = l->counts_link[w] && c->message_ms > 0;
  }
  l->counts_bytes = c->limit_bytes[0] > 0 || c->limit_bytes[1] > 0;
  list_order(l);
  find_lives(l);
  find_levels(l);
}
