/* Placements whose decode is all in the cloud: it waits for no message, because the worker draws on by itself. */
#include "proof/certificate.h"

#include <math.h>

/* Tells whether the units of a stage read one value that no unit makes. */
static bool takes_one_input(const lp_certificate_stage *s) {
  int32_t value = -1;
  for (size_t i = 0; i < s->unit_count; i++)
    for (size_t k = 0; k < s->units[i].in_count; k++) {
      const int32_t read = s->units[i].in[k];
      if (s->maker[read] >= 0) continue;
      if (value >= 0 && read != value) return false;
      value = read;
    }
  return value >= 0;
}

/* The unit that gives the token; NULL: none does. */
static lp_certificate_unit *result_of(const lp_certificate_stage *s) {
  for (size_t i = 0; i < s->unit_count; i++)
    if (s->units[i].result_bytes >= 0) return &s->units[i];
  return NULL;
}

bool lp_certificate_may_stream(const lp_certificate *c) {
  const lp_certificate_stage *decode = &c->stages[1];
  const lp_certificate_unit *first = result_of(&c->stages[0]), *next = result_of(decode);
  return first && next && takes_one_input(decode);
}

double lp_certificate_stall_ms(const lp_certificate *c) {
  const lp_certificate_stage *decode = &c->stages[1];
  const lp_certificate_unit *next = result_of(decode);
  double ms = 0;
  for (size_t i = 0; i < decode->unit_count; i++)
    ms += decode->units[i].ms[1];
  for (size_t i = 0; i < c->holding_count; i++)
    if (c->holdings[i].first[1] >= 0) ms += c->holdings[i].ms[1][1];
  const double token_ms = next ? next->result_bytes * c->ms_per_byte[1] : 0;
  return token_ms > 1.001 * ms ? token_ms - ms : 0;
}

bool lp_certificate_does_stream(const lp_certificate *c) {
  const lp_certificate_unit *first = result_of(&c->stages[0]);
  if (!c->streams || !first || first->side == 0) return false;
  for (size_t i = 0; i < c->stages[1].unit_count; i++)
    if (c->stages[1].units[i].side == 0) return false;
  return true;
}

/* The most that a holding can cost more for being in the cloud in decode. */
static double most_price(const lp_certificate *c, const lp_certificate_holding *h) {
  const double price = c->price_bytes[1] * h->bytes[1] + c->busy[1][1] * h->ms[1][1];
  if (!h->cache) return price;
  return price +
         (c->move + c->price_ms[0]) * (c->message_ms + h->move_bytes * fmax(c->ms_per_byte[0], c->ms_per_byte[1]));
}

/* Decode shifts nothing between its units, and the first user of a holding pays all that it costs there. The shifts of
 * prefill stay. */
static void shift(const lp_certificate *c, lp_certificate_unit *u, int32_t index) {
  u->way = LP_NEW_ARRAY(c->arena, double, u->in_count);
  u->split = LP_NEW_ARRAY(c->arena, double, u->in_count + u->out_count + u->hold_count);
  u->return_way = 0;
  for (size_t k = 0; k < u->hold_count; k++) {
    const lp_certificate_holding *h = &c->holdings[u->hold[k]];
    if (h->first[1] == index) u->split[u->in_count + u->out_count + k] = most_price(c, h);
  }
}

/* Pins a unit to the cloud where streams need it there; false: it is pinned to the device. */
static bool pin(lp_certificate_unit *u, int which) {
  if (which == 0 && u->result_bytes < 0) return true;
  if (u->pin == 0) return false;
  u->pin = 1;
  return true;
}

static void drop_inputs(const lp_certificate *c, const lp_certificate_stage *s, lp_certificate_unit *u) {
  int32_t *kept = LP_NEW_ARRAY(c->arena, int32_t, u->in_count);
  size_t count = 0;
  for (size_t k = 0; k < u->in_count; k++)
    if (s->maker[u->in[k]] >= 0) kept[count++] = u->in[k];
  u->in = kept;
  u->in_count = count;
}

bool lp_certificate_stream(const lp_certificate *c, lp_certificate *out) {
  *out = *c;
  out->streams = false;
  out->price_ms[1] = 0; /* one time of decode is left, which meets the limit or does not */
  if (c->limit_ms[1] > 0) out->limit_ms[1] -= lp_certificate_stall_ms(c);
  if (c->limit_ms[1] > 0 && out->limit_ms[1] <= 0) return false;
  for (int w = 0; w < 2; w++) {
    lp_certificate_stage *s = &out->stages[w];
    s->units = lp_arena_copy(c->arena, s->units, s->unit_count * sizeof *s->units);
    for (size_t i = 0; i < s->unit_count; i++) {
      lp_certificate_unit *u = &s->units[i];
      if (!pin(u, w)) return false;
      if (w == 0) continue;
      u->result_bytes = -1;
      drop_inputs(out, s, u);
      shift(out, u, (int32_t)i);
    }
  }
  return true;
}
