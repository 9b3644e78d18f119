/* Adds up what a unit does on a side: its time, what it holds there, and the messages. */
#include "proof/lister.h"

typedef struct {
  const lister *l;
  const lp_certificate_unit *u;
  size_t index; /* in the order */
  int32_t stage;
  int side;
  double link_ms, move_ms;
  frontier f;
  frontier_arc arc;
} walk;

/* Pays for the message of a turn unless it is paid. */
static void pay(walk *w, int turn) {
  if (!w->l->counts_turns[w->stage] || w->f.paid[w->stage] >> turn & 1) return;
  w->f.paid[w->stage] |= (uint64_t)1 << turn;
  w->link_ms += w->l->c->message_ms;
  w->arc.sent++;
}

static void read_input(walk *w, int32_t value) {
  unsigned char *slot = &w->f.slot[w->l->value_slot[w->stage][value]];
  if (!w->side || *slot) return;
  *slot = 1;
  w->link_ms += w->l->c->stages[w->stage].value[value] * w->l->c->ms_per_byte[0];
  if (!w->f.rebased[w->stage]) {
    pay(w, 0);
  } else if (w->l->counts_turns[w->stage] && !w->f.paid_first[w->stage]) {
    w->f.paid_first[w->stage] = 1;
    w->link_ms += w->l->c->message_ms;
    w->arc.sent++;
  }
}

/* Adds what the unit reads and sends back; returns its turn. Where turns do not count, a turn is its side. */
static int add_link(walk *w) {
  const lp_certificate *c = w->l->c;
  const lp_certificate_stage *s = &c->stages[w->stage];
  int turn = 0;
  for (size_t k = 0; k < w->u->in_count; k++) {
    int32_t value = w->u->in[k];
    if (s->maker[value] < 0) {
      read_input(w, value);
      continue;
    }
    unsigned char *slot = &w->f.slot[w->l->value_slot[w->stage][value]];
    int made = *slot / 2;
    if (made > turn) turn = made;
    if (made % 2 == w->side || *slot % 2) continue;
    *slot |= 1;
    w->link_ms += s->value[value] * c->ms_per_byte[made % 2];
    pay(w, made);
  }
  if (!w->l->counts_turns[w->stage]) turn = w->side;
  turn += turn % 2 != w->side;
  if (w->u->result_bytes < 0 || !w->side) return turn;
  w->link_ms += w->u->result_bytes * c->ms_per_byte[1];
  if (turn < MOST_TURNS) pay(w, turn);
  return turn;
}

/* Adds a holding that the side did not use in this stage before; false when a cache would be on both sides. */
static bool add_holding(walk *w, int32_t index) {
  const lp_certificate *c = w->l->c;
  const lp_certificate_holding *h = &c->holdings[index];
  int32_t at = w->l->holding_slot[index];
  const unsigned used = at == NO_SLOT ? 0 : w->f.slot[at], bit = 1u << (2 * w->stage + w->side);
  const unsigned own = used >> (2 * w->stage) & 3, other = used >> (2 * !w->stage) & 3;
  if (h->cache && own >> !w->side & 1) return false;
  if (used & bit) return true;
  if (at != NO_SLOT || w->l->holding_first[index] == w->l->holding_last[index])
    if (w->l->counts_bytes && !(other >> w->side & 1)) w->arc.amount[2 + w->side] += h->bytes[w->side];
  w->arc.amount[w->stage] += h->ms[w->stage][w->side];
  w->arc.objective += c->busy[w->stage][w->side] * h->ms[w->stage][w->side];
  if (w->l->stages != 3 && !w->side && frontiers_can_move(h)) w->arc.cached++;
  if (h->cache && other && !(other >> w->side & 1) && h->move_bytes > 0) {
    const int from = w->stage == 0 ? w->side : !w->side;
    w->move_ms += h->move_bytes * c->ms_per_byte[from];
    if (!w->f.moved[from]) w->move_ms += c->message_ms;
    w->f.moved[from] = 1;
  }
  if (at != NO_SLOT) w->f.slot[at] |= (unsigned char)bit;
  return true;
}

/* Raises the level of the side's largest activation. */
static void add_activation(walk *w) {
  const lister *l = w->l;
  unsigned char *level = &w->f.level[w->side];
  const double before = l->level[w->side][*level];
  while (*level + 1 < l->level_count[w->side] && l->level[w->side][*level + 1] <= w->u->activation[w->side])
    ++*level;
  w->arc.amount[2 + w->side] += 2 * (l->level[w->side][*level] - before);
}

/* Counts turns from the least that still matters. Before the anchor turn 0 still matters. */
static void rebase(walk *w) {
  const lp_certificate_stage *s = &w->l->c->stages[w->stage];
  int least = MOST_TURNS;
  if (!w->l->counts_turns[w->stage] || w->l->order[w->index].unit < w->l->anchor[w->stage]) return;
  for (int32_t i = 0; i < w->l->live_count[w->stage]; i++) {
    const int32_t value = w->l->live[w->stage][i], at = w->l->value_slot[w->stage][value];
    if (s->maker[value] < 0 || w->l->last_reader[w->stage][value] <= w->l->order[w->index].unit) continue;
    if (w->f.slot[at] / 2 < least) least = w->f.slot[at] / 2;
  }
  if (least == 0 && !w->f.rebased[w->stage]) return;
  if (!w->f.rebased[w->stage]) w->f.paid_first[w->stage] = w->f.paid[w->stage] & 1;
  if (w->l->last_input[w->stage] <= w->l->order[w->index].unit) w->f.paid_first[w->stage] = 0;
  w->f.rebased[w->stage] = least < MOST_TURNS;
  w->f.paid[w->stage] = least < MOST_TURNS ? w->f.paid[w->stage] >> least << least >> (least & ~1) : 0;
  for (int32_t i = 0; i < w->l->live_count[w->stage] && least < MOST_TURNS; i++) {
    const int32_t value = w->l->live[w->stage][i];
    if (s->maker[value] >= 0 && w->l->last_reader[w->stage][value] > w->l->order[w->index].unit)
      w->f.slot[w->l->value_slot[w->stage][value]] -= (unsigned char)(2 * (least & ~1));
  }
}

/* Empties the slots of what is not used after the unit. */
static void close_values(walk *w) {
  const lister *l = w->l;
  for (size_t k = 0; k < w->u->in_count; k++) {
    int32_t at = l->value_slot[w->stage][w->u->in[k]];
    if (at != NO_SLOT && l->last_reader[w->stage][w->u->in[k]] == l->order[w->index].unit) w->f.slot[at] = 0;
  }
  for (size_t k = 0; k < w->u->hold_count; k++) {
    int32_t at = l->holding_slot[w->u->hold[k]];
    if (at != NO_SLOT && l->holding_last[w->u->hold[k]] == (int32_t)w->index) w->f.slot[at] = 0;
  }
}

static bool step_over(walk *w, bool *fits) {
  const lp_certificate *c = w->l->c;
  const double ms = w->u->ms[w->side];
  if (w->u->pin >= 0 && w->u->pin != w->side) return false;
  w->arc = (frontier_arc){0};
  w->arc.amount[w->stage] = ms;
  w->arc.objective = c->busy[w->stage][w->side] * ms;
  for (size_t k = 0; k < w->u->hold_count; k++)
    if (!add_holding(w, w->u->hold[k])) return false;
  if (w->l->counts_bytes) add_activation(w);
  if (w->l->counts_link[w->stage]) {
    const int turn = add_link(w);
    *fits = *fits && turn < MOST_TURNS;
    for (size_t k = 0; k < w->u->out_count; k++) {
      int32_t at = w->l->value_slot[w->stage][w->u->out[k]];
      if (at != NO_SLOT) w->f.slot[at] = (unsigned char)(2 * turn);
    }
    close_values(w);
    rebase(w);
  } else {
    close_values(w);
  }
  w->arc.amount[w->stage] += w->link_ms;
  w->arc.amount[0] += w->move_ms;
  w->arc.objective += c->link[w->stage] * w->link_ms + c->move * w->move_ms;
  return true;
}

bool lister_step(const lister *l, size_t index, int side, frontier *f, frontier_arc *arc, bool *fits) {
  const place at = l->order[index];
  walk w = {
      .l = l, .u = &l->c->stages[at.stage].units[at.unit], .index = index, .stage = at.stage, .side = side, .f = *f};
  const bool allowed = step_over(&w, fits);
  *f = w.f;
  *arc = w.arc;
  return allowed;
}
