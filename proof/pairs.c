/* Fronts of both stages, which a price couples: prefill pays it for each cache that it has on the device, and decode
 * receives it. A move of caches costs no less than the difference. */
#include "proof/seeker.h"

#include <math.h>

/* The points of a frontier while the price is searched, and after that. */
enum { FEW_POINTS = 100, MANY_POINTS = 1000 };

static int compare_points(const void *a, const void *b) {
  const front_point *x = a, *y = b;
  if (x->amount < y->amount || x->amount > y->amount) return x->amount < y->amount ? -1 : 1;
  return (x->value > y->value) - (x->value < y->value);
}

/* Lists the moves of caches: their time, and what they cost less the price of residence. */
static void list_moves(const lp_certificate *c, const moves *m, bool is_limited, double residence, front_points *out) {
  size_t kept = 0;
  out->count = 0;
  for (int32_t d = -m->most; d <= m->most; d++)
    lp_vec_push(out, ((front_point){m->ms[m->most + d], c->move * m->ms[m->most + d] - residence * d}));
  qsort(out->data, out->count, sizeof *out->data, compare_points);
  for (size_t i = 0; i < out->count; i++)
    if (!kept || out->data[i].value < out->data[kept - 1].value) out->data[kept++] = out->data[i];
  out->count = kept;
  if (is_limited) return;
  out->data[0] = (front_point){0, out->data[kept - 1].value};
  out->count = 1;
}

/* Makes the fronts at a price of residence. */
static void make_pair(front_pair *p, double wanted, double residence, int points) {
  static const front_point nothing = {0, 0};
  const bool is_limited = p->s[0].limit[0] > 0;
  double least[2];
  p->residence = residence;
  list_moves(p->s[0].c, p->m, is_limited, residence, &p->moves);
  for (int w = 0; w < 2; w++) {
    front *f = &p->f[w];
    f->of = p->s[w].limit[w] > 0 ? w : -1;
    memcpy(f->price, p->s[w].price, sizeof f->price);
    f->own = f->price[w];
    f->price[w] = 0;
    f->residence = w ? -residence : residence;
    f->ending = w ? &nothing : p->moves.data;
    f->ending_count = w ? 1 : (int32_t)p->moves.count;
    front_open(&p->s[w], f);
    least[w] = f->bound;
  }
  p->bound = 0;
  for (int w = 0; w < 2; w++) {
    front_fill(&p->s[w], wanted - least[!w], points, &p->f[w]);
    p->bound += fmax(p->f[w].bound, least[w]);
  }
}

double pair_improve(front_pair *p, seeker s[2], const moves *m, double wanted) {
  enum { MOST_STEPS = 9 };
  *p = (front_pair){.s = s, .m = m};
  for (int w = 0; w < 2; w++)
    front_create(&s[w], &p->f[w]);
  double best = -INFINITY, at = 0, step = fabs(wanted) / (4.0 * fmax(1, m->most)), turned = 0;
  for (int i = 0; i < (m->most ? MOST_STEPS : 1) && best < wanted; i++) {
    double next = i == 0 ? 0 : i == 1 ? step : at + step;
    make_pair(p, wanted, next, FEW_POINTS);
    if (p->bound > best) {
      best = p->bound;
      at = next;
      if (i > 1) step *= turned > 0 ? 1 : 2;
    } else {
      step = i == 1 ? -step : -step / 2;
      turned++;
    }
  }
  if (best < wanted) make_pair(p, wanted, at, MANY_POINTS);
  return fmax(best, p->bound);
}

void pair_free(front_pair *p) {
  for (int w = 0; w < 2; w++)
    front_free(&p->f[w]);
  lp_vec_free(&p->moves);
}
