/* Adds up a placement from its definition: the times of operators, one message per turn, the holdings of each side. */
#include "proof/certificate.h"

#include <math.h>

/* Reports round figures to 12 digits, and the order of sums differs here. */
static const double rounding = 6e-12;

bool lp_certificate_near(double a, double b) {
  return fabs(a - b) <= rounding * fmax(fabs(a), fabs(b));
}

/* A unit runs in the first turn of its side that is not before the turns of the values it reads. Returns the last
 * turn. */
static int count_turns(const lp_certificate_stage *s, int *turn) {
  int last = 0;
  for (size_t i = 0; i < s->unit_count; i++) {
    for (size_t k = 0; k < s->units[i].in_count; k++) {
      int maker = s->maker[s->units[i].in[k]];
      if (maker >= 0 && turn[maker] > turn[i]) turn[i] = turn[maker];
    }
    turn[i] += turn[i] % 2 != s->units[i].side;
    if (turn[i] > last) last = turn[i];
  }
  return last;
}

/* Adds the messages of a stage: everything that one side has made when the other takes over is one message. */
static void add_messages(const lp_certificate *c, int which, lp_certificate_totals *t) {
  const lp_certificate_stage *s = &c->stages[which];
  int *turn = LP_NEW_ARRAY(c->arena, int, s->unit_count), last = count_turns(s, turn);
  bool *crossed = LP_NEW_ARRAY(c->arena, bool, s->value_count), *sent = LP_NEW_ARRAY(c->arena, bool, last + 1);
  for (size_t i = 0; i < s->unit_count; i++) {
    const lp_certificate_unit *u = &s->units[i];
    for (size_t k = 0; k < u->in_count; k++) {
      int maker = s->maker[u->in[k]], from = maker < 0 ? 0 : s->units[maker].side;
      if (from == u->side || crossed[u->in[k]]) continue;
      crossed[u->in[k]] = sent[maker < 0 ? 0 : turn[maker]] = true;
      t->crossings[which]++;
      t->sent[which][from] += s->value[u->in[k]];
    }
    if (u->result_bytes < 0 || !u->side) continue;
    sent[turn[i]] = true;
    t->crossings[which]++;
    t->sent[which][1] += u->result_bytes;
  }
  for (int i = 0; i <= last; i++)
    t->messages[which] += sent[i];
  t->link_ms[which] = t->messages[which] * c->message_ms;
  for (int side = 0; side < 2; side++)
    t->link_ms[which] += t->sent[which][side] * c->ms_per_byte[side];
}

/* A token comes down while the cloud makes the next one. */
static void add_stream(const lp_certificate *c, lp_certificate_totals *t) {
  t->messages[1] = t->crossings[1] = 1;
  t->link_ms[1] = lp_certificate_stall_ms(c);
  for (size_t i = 0; i < c->stages[1].unit_count; i++)
    if (c->stages[1].units[i].result_bytes >= 0) t->sent[1][1] += c->stages[1].units[i].result_bytes;
}

/* Records the sides on which each holding is used: bit 1 << side of held[2 * holding + stage]. */
static unsigned char *mark_held(const lp_certificate *c) {
  unsigned char *held = LP_NEW_ARRAY(c->arena, unsigned char, 2 * c->holding_count);
  for (size_t w = 0; w < 2; w++)
    for (size_t i = 0; i < c->stages[w].unit_count; i++)
      for (size_t k = 0; k < c->stages[w].units[i].hold_count; k++)
        held[2 * (size_t)c->stages[w].units[i].hold[k] + w] |= (unsigned char)(1 << c->stages[w].units[i].side);
  return held;
}

static void add_holdings(const lp_certificate *c, lp_certificate_totals *t) {
  const unsigned char *held = mark_held(c);
  for (size_t i = 0; i < c->holding_count; i++) {
    const lp_certificate_holding *h = &c->holdings[i];
    const unsigned char *on = &held[2 * i];
    for (int side = 0; side < 2; side++) {
      bool any = (on[0] | on[1]) >> side & 1;
      if (any) t->bytes[side] += h->bytes[side];
      if (any && !h->cache) t->weights[side] += h->bytes[side];
      for (int w = 0; w < 2; w++)
        if (on[w] >> side & 1) {
          t->shared[w][side] += h->ms[w][side];
          t->elsewhere[w][side] += h->ms[w][!side];
        }
    }
    if (!h->cache) continue;
    if (on[0] == 3 || on[1] == 3) t->caches = false;
    if (on[0] && on[1] && on[0] != on[1]) t->moved[on[0] == 2] += h->move_bytes;
  }
  for (int side = 0; side < 2; side++)
    if (t->moved[side] > 0) t->move_ms += c->message_ms + t->moved[side] * c->ms_per_byte[side];
}

lp_certificate_totals lp_certificate_add_up(const lp_certificate *c) {
  lp_certificate_totals t = {.pinned = true, .caches = true};
  double activation[2] = {0, 0};
  add_holdings(c, &t);
  t.value = c->move * t.move_ms;
  for (int w = 0; w < 2; w++) {
    const lp_certificate_stage *s = &c->stages[w];
    for (int side = 0; side < 2; side++)
      t.busy[w][side] = t.shared[w][side];
    LP_FOR_EACH(const lp_certificate_unit, u, s->units, s->unit_count) {
      t.busy[w][u->side] += u->ms[u->side];
      activation[u->side] = fmax(activation[u->side], u->activation[u->side]);
      if (u->pin >= 0 && u->pin != u->side) t.pinned = false;
    }
    if (w == 1 && lp_certificate_does_stream(c))
      add_stream(c, &t);
    else
      add_messages(c, w, &t);
    t.ms[w] = t.busy[w][0] + t.busy[w][1] + t.link_ms[w] + (w == 0 ? t.move_ms : 0);
    t.value += c->busy[w][0] * t.busy[w][0] + c->busy[w][1] * t.busy[w][1] + c->link[w] * t.link_ms[w];
  }
  for (int side = 0; side < 2; side++)
    t.bytes[side] += 2 * activation[side];
  return t;
}

bool lp_certificate_place(const lp_certificate *c, const lp_certificate_sides *sides) {
  for (int w = 0; w < 2; w++) {
    const lp_certificate_stage *s = &c->stages[w];
    const char *text = sides->side[w] ? sides->side[w] : "";
    for (size_t i = 0; i < s->unit_count; i++) {
      if (text[i] != '0' && text[i] != '1') return false;
      s->units[i].side = text[i] - '0';
    }
    if (text[s->unit_count]) return false;
  }
  return true;
}

/* The bytes of everything that a side could hold. */
double lp_certificate_most_bytes(const lp_certificate *c, int side) {
  double all = 0, activation = 0;
  for (size_t i = 0; i < c->holding_count; i++)
    all += c->holdings[i].bytes[side];
  for (int w = 0; w < 2; w++)
    for (size_t i = 0; i < c->stages[w].unit_count; i++)
      activation = fmax(activation, c->stages[w].units[i].activation[side]);
  return all + 2 * activation;
}
