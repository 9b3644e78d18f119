/* The lower bound that a certificate's prices prove (a Lagrangian dual): every placement costs at least the minimum of
 * cost plus prices over all placements, less prices times limits.
 *
 * Two relaxations make that minimum separable. A stage sends at least one message for each change of sides along any
 * path, so each read pays the share of a message that a convex combination of paths assigns to it. Each unit shifts
 * cost to the values and holdings that it shares with others; the shifts cancel. The minima of each unit, value and
 * holding then add up to at most the minimum over all placements. */
#include "proof/certificate.h"

#include <math.h>

/* The cost of the reads of a value, besides its bytes, after the shifts. */
typedef struct {
  double up;    /* the value is made on the device, and the readers that save cost so are in the cloud */
  double all;   /* the value is made in the cloud, and so are all readers */
  double down;  /* the value is made in the cloud, and the readers that save cost so are on the device */
  double maker; /* the cost that the maker shifts to the value */
} reads;

/* The cost that users shift to a holding, by stage: with all users in the cloud, or with each on its cheaper side. */
typedef struct {
  double all[2], best[2];
} uses;

static double value_least(const lp_certificate *c, const lp_certificate_stage *s, int which, size_t value,
                          const reads *r) {
  double per_byte = (c->link[which] + c->price_ms[which]) * s->value[value];
  double device = fmin(0, per_byte * c->ms_per_byte[0] + r->up);
  double cloud = fmin(-r->all, per_byte * c->ms_per_byte[1] + r->down) - r->maker;
  return s->maker[value] < 0 ? device : fmin(device, cloud);
}

/* The minimum over the units and values of a stage; NaN when reads pay more than one message along a path. */
static double stage_least(const lp_certificate *c, int which, uses *used) {
  const lp_certificate_stage *s = &c->stages[which];
  reads *read = LP_NEW_ARRAY(c->arena, reads, s->value_count);
  double *flow = LP_NEW_ARRAY(c->arena, double, s->unit_count), least = 0, begun = 0;
  double per_ms = c->link[which] + c->price_ms[which];
  for (size_t i = s->unit_count; i-- > 0;) { /* readers come after the unit they read from */
    const lp_certificate_unit *u = &s->units[i];
    double gain =
        u->result_bytes < 0 ? 0 : per_ms * (u->result_bytes * c->ms_per_byte[1] + u->return_way * c->message_ms);
    const double *split = u->split;
    if (!split || !u->way || u->return_way < 0) return NAN;
    flow[i] += u->return_way;
    for (size_t k = 0; k < u->in_count; k++, split++) {
      reads *r = &read[u->in[k]];
      double charged = u->way[k] * c->message_ms * per_ms;
      if (u->way[k] < 0) return NAN;
      gain += *split;
      r->up += fmin(0, charged - *split);
      r->down += fmin(-*split, charged);
      r->all += *split;
      flow[i] -= u->way[k];
      *(s->maker[u->in[k]] < 0 ? &begun : &flow[s->maker[u->in[k]]]) += u->way[k];
    }
    begun += fmax(flow[i], 0); /* all readers have been visited, so the outflow beyond its inflow begins here */
    for (size_t k = 0; k < u->out_count; k++, split++) {
      gain += *split;
      read[u->out[k]].maker = *split;
    }
    for (size_t k = 0; k < u->hold_count; k++, split++) {
      gain += *split;
      used[u->hold[k]].all[which] += *split;
      used[u->hold[k]].best[which] += fmax(*split, 0);
    }
    double device = (c->busy[which][0] + c->price_ms[which]) * u->ms[0];
    double cloud = (c->busy[which][1] + c->price_ms[which]) * u->ms[1] + gain;
    least += u->pin < 0 ? fmin(device, cloud) : u->pin ? cloud : device;
  }
  for (size_t i = 0; i < s->value_count; i++)
    least += value_least(c, s, which, i, &read[i]);
  return begun <= 1 + 1e-9 ? least : NAN;
}

static double holding_cost(const lp_certificate *c, const lp_certificate_holding *h, const int on[2],
                           double message_share) {
  double price = 0;
  for (int side = 0; side < 2; side++) {
    if ((on[0] | on[1]) >> side & 1) price += c->price_bytes[side] * h->bytes[side];
    for (int which = 0; which < 2; which++)
      if (on[which] >> side & 1) price += (c->busy[which][side] + c->price_ms[which]) * h->ms[which][side];
  }
  if (!h->cache || !on[0] || !on[1] || on[0] == on[1] || !(h->move_bytes > 0)) return price;
  double ms = h->move_bytes * c->ms_per_byte[on[0] == 2] + message_share * c->message_ms;
  return price + (c->move + c->price_ms[0]) * ms;
}

static double holding_least(const lp_certificate *c, const lp_certificate_holding *h, const uses *used,
                            double message_share) {
  double least = INFINITY;
  for (int i = 0; i < 16; i++) {
    const int on[2] = {i % 4, i / 4}; /* bit 1 << side; 0: no users in that stage */
    double price = holding_cost(c, h, on, message_share);
    bool possible = true;
    for (int which = 0; which < 2; which++) {
      possible = possible && (on[which] == 0) == (h->first[which] < 0) && !(h->cache && on[which] == 3);
      price -= on[which] == 2 ? used->all[which] : on[which] == 3 ? used->best[which] : 0;
    }
    if (possible) least = fmin(least, price);
  }
  return least;
}

double lp_certificate_bound(const lp_certificate *c) {
  uses *used = LP_NEW_ARRAY(c->arena, uses, c->holding_count);
  double bound = stage_least(c, 0, used) + stage_least(c, 1, used), moves = 0;
  for (size_t i = 0; i < c->holding_count; i++)
    moves += c->holdings[i].cache && c->holdings[i].move_bytes > 0;
  for (size_t i = 0; i < c->holding_count; i++)
    if (c->holdings[i].first[0] >= 0 || c->holdings[i].first[1] >= 0)
      bound += holding_least(c, &c->holdings[i], &used[i], 1 / fmax(moves, 1));
  for (int i = 0; i < 2; i++)
    bound -= c->price_ms[i] * c->limit_ms[i] + c->price_bytes[i] * c->limit_bytes[i];
  return bound;
}

double lp_certificate_gap(double bound, double value) {
  return value > 0 ? fmax(0, 1 - bound / value) : 0;
}
