/* The search of check-plan: on small random problems it proves the least cost of all placements, as
 * lp_certificate_add_up adds them up, and never more. */
#include "base/random.h"
#include "proof/certificate.h"
#include "tests/suite.h"

#include <math.h>

LP_CASE(.timeout = 120);

enum { CASES = 250, MOST_UNITS = 6 };

typedef struct {
  uint64_t seed, drawn;
} source;

static int draw(source *s, int count) {
  return (int)(lp_random_uniform(s->seed, 17, s->drawn++) * count);
}

/* A row of units, of which each reads the value before it or an earlier one. Amounts are small integers, so that sums
 * are exact. */
static void make_stage(source *s, lp_certificate *c, int which) {
  lp_certificate_stage *to = &c->stages[which];
  const int count = 3 + draw(s, MOST_UNITS - 2);
  to->unit_count = (size_t)count;
  to->value_count = (size_t)count + 2; /* two inputs come first */
  to->units = LP_NEW_ARRAY(c->arena, lp_certificate_unit, count);
  to->value = LP_NEW_ARRAY(c->arena, double, count + 2);
  to->maker = LP_NEW_ARRAY(c->arena, int, count + 2);
  for (int i = 0; i < count + 2; i++) {
    to->value[i] = draw(s, 4);
    to->maker[i] = i - 2;
  }
  to->maker[0] = to->maker[1] = -1;
  for (int i = 0; i < count; i++) {
    lp_certificate_unit *u = &to->units[i];
    *u = (lp_certificate_unit){.pin = draw(s, 8) ? -1 : draw(s, 2), .result_bytes = i == count - 1 ? draw(s, 3) : -1};
    u->ms[0] = 1 + draw(s, 9);
    u->ms[1] = draw(s, 4);
    for (int side = 0; side < 2; side++)
      u->activation[side] = draw(s, 3);
    u->in = LP_NEW_ARRAY(c->arena, int, 3);
    u->in[u->in_count++] = draw(s, 8) ? (i ? i + 1 : 0) : draw(s, i + 2);
    if (draw(s, 3) == 0) u->in[u->in_count++] = draw(s, i + 2);
    u->out = LP_NEW_ARRAY(c->arena, int, 1);
    u->out[u->out_count++] = i + 2;
    u->hold = LP_NEW_ARRAY(c->arena, int, 3);
  }
}

static void hold(lp_certificate *c, int which, int index, int what) {
  lp_certificate_unit *u = &c->stages[which].units[index];
  if (c->holdings[what].first[which] < 0) c->holdings[what].first[which] = index;
  u->hold[u->hold_count++] = what;
}

/* Weights of one unit in each stage, something that several units share, and caches. */
static void make_holdings(source *s, lp_certificate *c) {
  c->holding_count = MOST_UNITS + 2;
  c->holdings = LP_NEW_ARRAY(c->arena, lp_certificate_holding, c->holding_count);
  for (int i = 0; i < MOST_UNITS + 2; i++) {
    lp_certificate_holding *h = &c->holdings[i];
    *h = (lp_certificate_holding){
        .cache = i >= MOST_UNITS, .first = {-1, -1}, .bytes = {1 + draw(s, 4), 1 + draw(s, 4)}};
    h->move_bytes = h->cache ? draw(s, 5) : 0;
    for (int which = 0; which < 2 && i == 0; which++)
      for (int side = 0; side < 2; side++)
        h->ms[which][side] = draw(s, 3);
  }
  for (int which = 0; which < 2; which++) {
    const int count = (int)c->stages[which].unit_count;
    for (int i = 0; i < count; i++)
      if (draw(s, 3)) hold(c, which, i, draw(s, 3) ? i : 0);
    for (int i = MOST_UNITS; i < MOST_UNITS + 2; i++) {
      const int at = draw(s, count - 1);
      hold(c, which, at, i);
      if (draw(s, 2)) hold(c, which, at + 1, i);
    }
  }
}

/* Sets the sides to the bits of `index`. */
static void place(lp_certificate *c, unsigned index) {
  for (int which = 0; which < 2; which++)
    for (size_t i = 0; i < c->stages[which].unit_count; i++, index >>= 1)
      c->stages[which].units[i].side = (int)(index & 1);
}

static unsigned placements(const lp_certificate *c) {
  return 1u << (c->stages[0].unit_count + c->stages[1].unit_count);
}

static lp_certificate make_problem(source *s) {
  lp_certificate c = {.arena = lp_arena_create(), .message_ms = draw(s, 4), .move = draw(s, 3) ? 0 : 1};
  make_stage(s, &c, 0);
  make_stage(s, &c, 1);
  make_holdings(s, &c);
  for (int i = 0; i < 2; i++) {
    c.busy[i][0] = draw(s, 2);
    c.busy[i][1] = 1 + draw(s, 5);
    c.link[i] = c.move;
    c.ms_per_byte[i] = draw(s, 3);
  }
  place(&c, (unsigned)draw(s, (int)placements(&c)));
  const lp_certificate_totals t = lp_certificate_add_up(&c);
  for (int i = 0; i < 2; i++) {
    c.limit_ms[i] = draw(s, 4) ? t.ms[i] + draw(s, 4) : 0;
    c.limit_bytes[i] = draw(s, 2) ? t.bytes[i] + draw(s, 4) : 0;
    c.price_bytes[i] = c.limit_bytes[i] > 0 ? draw(s, 3) : 0;
  }
  return c;
}

static bool is_feasible(const lp_certificate *c, const lp_certificate_totals *t) {
  for (int i = 0; i < 2; i++) {
    if (c->limit_ms[i] > 0 && t->ms[i] > c->limit_ms[i]) return false;
    if (c->limit_bytes[i] > 0 && t->bytes[i] > c->limit_bytes[i]) return false;
  }
  return t->pinned && t->caches;
}

static double least_value(lp_certificate *c) {
  double least = INFINITY;
  for (unsigned i = 0; i < placements(c); i++) {
    const lp_arena_mark mark = lp_arena_here(c->arena);
    place(c, i);
    const lp_certificate_totals t = lp_certificate_add_up(c);
    if (is_feasible(c, &t)) least = fmin(least, t.value);
    lp_arena_rewind(c->arena, mark);
  }
  return least;
}

LP_TEST(it_proves_the_least_cost_and_no_more) {
  int feasible = 0, moved = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    source s = {.seed = seed};
    lp_certificate c = make_problem(&s);
    c.value = least_value(&c);
    if (!isinf(c.value) && c.value > 0) {
      feasible++;
      moved += c.limit_bytes[0] > 0 || c.limit_bytes[1] > 0;
      const double proved = lp_certificate_search(&c, c.value), beyond = lp_certificate_search(&c, 1.1 * c.value + 1);
      ck_assert_msg(proved >= c.value, "seed %d: %g is proved, %g is the least cost", (int)seed, proved, c.value);
      ck_assert_msg(beyond <= c.value * (1 + 1e-9), "seed %d: %g is proved, %g is the least cost", (int)seed, beyond,
                    c.value);
    }
    lp_arena_free(c.arena);
  }
  ck_assert_int_gt(feasible, CASES / 2);
  ck_assert_int_gt(moved, CASES / 4);
}

/* Placements that stream cost less than the rest of the certificate says; what is proved holds with them too. */
LP_TEST(it_proves_the_least_cost_of_streams) {
  int streams = 0, others = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    source s = {.seed = seed};
    lp_certificate c = make_problem(&s);
    c.message_ms++;
    c.move = c.link[0] = c.link[1] = 1;
    const double without = least_value(&c);
    c.streams = true;
    c.value = least_value(&c);
    if (!isinf(c.value) && c.value > 0) {
      const double beyond = 1.1 * c.value + 1, proved = lp_certificate_prove(&c, c.value, c.value);
      ck_assert_msg(proved >= c.value, "seed %d: %g is proved, %g is the least cost", (int)seed, proved, c.value);
      ck_assert_msg(lp_certificate_prove(&c, beyond, beyond) <= c.value * (1 + 1e-9), "seed %d: beyond %g", (int)seed,
                    c.value);
      streams += c.value < without;
      others += c.value >= without;
    }
    lp_arena_free(c.arena);
  }
  ck_assert_int_gt(streams, CASES / 10);
  ck_assert_int_gt(others, CASES / 4);
}

enum { UNITS = 1000, BLOCK = 50 };

/* Every unit is pinned, in blocks of both sides in turn, so that there is one placement, which sends many messages. The
 * caches of all units are too many to count that many messages beside them. */
static void pin_blocks(lp_certificate *c, int which) {
  lp_certificate_stage *to = &c->stages[which];
  *to = (lp_certificate_stage){.unit_count = UNITS, .value_count = UNITS + 1};
  to->units = LP_NEW_ARRAY(c->arena, lp_certificate_unit, UNITS);
  to->value = LP_NEW_ARRAY(c->arena, double, UNITS + 1);
  to->maker = LP_NEW_ARRAY(c->arena, int, UNITS + 1);
  for (int i = 0; i < UNITS; i++) {
    lp_certificate_unit *u = &to->units[i];
    const int side = i / BLOCK % 2;
    *u = (lp_certificate_unit){
        .ms = {1, 1}, .pin = side, .side = side, .in_count = 1, .out_count = 1, .result_bytes = -1};
    u->in = LP_NEW_ARRAY(c->arena, int, 1);
    u->out = LP_NEW_ARRAY(c->arena, int, 1);
    u->hold = LP_NEW_ARRAY(c->arena, int, 1);
    to->maker[i] = (u->in[0] = i) - 1;
    u->out[0] = i + 1;
    hold(c, which, i, i);
  }
  to->maker[UNITS] = UNITS - 1;
}

LP_TEST(it_covers_placements_of_more_messages_than_it_counts) {
  lp_certificate c = {.arena = lp_arena_create(), .message_ms = 1, .move = 1, .link = {1, 1}, .holding_count = UNITS};
  c.holdings = LP_NEW_ARRAY(c.arena, lp_certificate_holding, UNITS);
  for (int i = 0; i < UNITS; i++)
    c.holdings[i] = (lp_certificate_holding){.cache = true, .first = {-1, -1}, .move_bytes = 1};
  for (int which = 0; which < 2; which++) {
    c.ms_per_byte[which] = 1;
    c.busy[which][LP_SIDE_CLOUD] = 1;
    pin_blocks(&c, which);
  }
  c.value = lp_certificate_add_up(&c).value;
  ck_assert_double_le(lp_certificate_search(&c, 2 * c.value), c.value * (1 + 1e-9));
  lp_arena_free(c.arena);
}

/* Searches that stop early prove less, and nothing that is false. */
LP_TEST(it_proves_no_more_with_little_effort) {
  int complete = 0, cut = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    source s = {.seed = seed};
    lp_certificate c = make_problem(&s);
    const double least = c.value = least_value(&c);
    for (int i = 0; i < 12 && !isinf(least) && least > 0; i++) {
      const lp_certificate_effort effort = {.frontiers = draw(&s, 3) ? 60000 : (size_t)draw(&s, 60),
                                            .frontiers_in_all = 3000000,
                                            .potentials = (size_t)draw(&s, 3000),
                                            .short_labels = (size_t)draw(&s, 100),
                                            .long_labels = (size_t)draw(&s, 400),
                                            .all_labels = (size_t)draw(&s, 2000),
                                            .most_width = 1 + (size_t)draw(&s, 40),
                                            .least_width = 1 + (size_t)draw(&s, 4)};
      c.effort = &effort;
      const double proved = lp_certificate_search(&c, 1.1 * least + 1);
      ck_assert_msg(proved <= least * (1 + 1e-9), "seed %d, effort %d: %g is proved, %g is the least cost", (int)seed,
                    i, proved, least);
      *(proved >= least * (1 - 1e-9) ? &complete : &cut) += 1;
    }
    lp_arena_free(c.arena);
  }
  ck_assert_int_gt(complete, CASES);
  ck_assert_int_gt(cut, CASES / 2);
}

/* With one label and no counted messages, fronts prove most of what can be proved where memory does not bind. */
LP_TEST(fronts_prove_what_few_labels_do_not) {
  static const lp_certificate_effort least_effort = {
      .frontiers = 60000, .frontiers_in_all = 3000000, .short_labels = 1, .most_width = 1, .least_width = 1};
  int proved = 0, tried = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    source s = {.seed = seed};
    lp_certificate c = make_problem(&s);
    c.limit_bytes[0] = c.limit_bytes[1] = c.price_bytes[0] = c.price_bytes[1] = 0;
    const double least = c.value = least_value(&c);
    c.effort = &least_effort;
    if (!isinf(least) && least > 0) {
      const double found = lp_certificate_search(&c, least);
      tried++;
      proved += found >= least * (1 - 1e-9);
      ck_assert_double_le(lp_certificate_search(&c, 1.2 * least), least * (1 + 1e-9));
    }
    lp_arena_free(c.arena);
  }
  ck_assert_int_gt(proved, tried - tried / 20);
}

/* With one label, parts by the number of messages prove more than all placements at once. */
LP_TEST(parts_by_messages_prove_more) {
  const lp_certificate_effort whole = {
      .frontiers = 60000, .frontiers_in_all = 3000000, .short_labels = 1, .most_width = 1, .least_width = 1};
  lp_certificate_effort parts = whole;
  parts.potentials = 3000000;
  int more = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    source s = {.seed = seed};
    lp_certificate c = make_problem(&s);
    const double least = c.value = least_value(&c);
    if (!isinf(least) && least > 0) {
      c.effort = &whole;
      const double at_once = lp_certificate_search(&c, least);
      c.effort = &parts;
      const double proved = lp_certificate_search(&c, least);
      ck_assert_double_le(proved, least * (1 + 1e-9));
      more += proved > at_once * (1 + 1e-9);
    }
    lp_arena_free(c.arena);
  }
  ck_assert_int_gt(more, 5);
}

/* A search that may end at a known bound proves the same, or no more than that bound. */
LP_TEST(a_search_ends_at_a_known_bound) {
  static const lp_certificate_effort little = {.frontiers = 60000,
                                               .frontiers_in_all = 3000000,
                                               .short_labels = 1,
                                               .all_labels = 1,
                                               .most_width = 1,
                                               .least_width = 1};
  int below = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    source s = {.seed = seed};
    lp_certificate c = make_problem(&s);
    const double least = c.value = least_value(&c);
    c.effort = &little;
    if (!isinf(least) && least > 0) {
      const double proved = lp_certificate_search(&c, least), less = proved - 0.01 * least;
      ck_assert_double_eq(lp_certificate_search_above(&c, least, less), proved);
      ck_assert_double_le(lp_certificate_search_above(&c, least, proved), proved);
      below += proved < least * (1 - 1e-9);
    }
    lp_arena_free(c.arena);
  }
  ck_assert_int_gt(below, 0);
}

/* A search of a model with more units than few ends once little is missing, and proves at least that much. */
static int count_ended(const lp_certificate_effort *effort, double gap) {
  lp_certificate_effort few = *effort;
  few.few_units = SIZE_MAX;
  int ended = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    source s = {.seed = seed};
    lp_certificate c = make_problem(&s);
    const double least = c.value = least_value(&c);
    if (!isinf(least) && least > 0) {
      c.effort = &few;
      const double whole = lp_certificate_search(&c, least);
      c.effort = effort;
      const double proved = lp_certificate_search(&c, least);
      ck_assert_double_le(proved, whole * (1 + 1e-9));
      ck_assert_double_ge(proved, fmin(whole, (1 - gap) * least) * (1 - 1e-9));
      ended += proved < whole * (1 - 1e-9);
    }
    lp_arena_free(c.arena);
  }
  return ended;
}

LP_TEST(a_search_ends_where_little_is_missing) {
  const lp_certificate_effort all = {.frontiers = 60000,
                                     .frontiers_in_all = 3000000,
                                     .potentials = 3000,
                                     .short_labels = 1,
                                     .long_labels = 400000,
                                     .all_labels = 1000000,
                                     .most_width = 1000,
                                     .least_width = 1};
  lp_certificate_effort effort = all;
  ck_assert_int_eq(count_ended(&effort, 0), 0);
  effort.near = 0.3;
  const int near = count_ended(&effort, effort.near);
  ck_assert_int_gt(near, 0);
  effort = all;
  effort.close = effort.rest = 0.3; /* the plan's objective is wanted */
  ck_assert_int_eq(count_ended(&effort, effort.close), near);
  effort.rest = 0;
  ck_assert_int_eq(count_ended(&effort, effort.close), 0);
  effort = all;
  effort.far = 0.3;
  ck_assert_int_gt(count_ended(&effort, effort.far), 0);
}

/* A search that wants a little more than the least cost, which decides in which rooms it looks, proves no more. */
LP_TEST(it_proves_no_more_than_the_least_cost_when_it_wants_a_little_more) {
  int tried = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    source s = {.seed = seed};
    lp_certificate c = make_problem(&s);
    const double least = c.value = least_value(&c);
    for (double wanted = 1.001; wanted < 1.5 && !isinf(least) && least > 0; wanted += 0.05) {
      const double proved = lp_certificate_search(&c, wanted * least);
      tried++;
      ck_assert_msg(proved <= least * (1 + 1e-9), "seed %d, wanted %g times: %g is proved, %g is the least cost",
                    (int)seed, wanted, proved, least);
    }
    lp_arena_free(c.arena);
  }
  ck_assert_int_gt(tried, CASES);
}

/* Where a search for the value of the plan proves much less than the claimed bound, one for that bound follows. */
LP_TEST(it_proves_the_claimed_bound_where_it_finds_no_better_one) {
  int again = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    source s = {.seed = seed};
    lp_certificate c = make_problem(&s);
    const double least = c.value = least_value(&c);
    for (int i = 0; i < 12 && !isinf(least) && least > 0; i++) {
      const lp_certificate_effort effort = {.frontiers = 60000,
                                            .frontiers_in_all = 3000000,
                                            .short_labels = (size_t)draw(&s, 30),
                                            .long_labels = (size_t)draw(&s, 60),
                                            .all_labels = (size_t)draw(&s, 200),
                                            .most_width = 1 + (size_t)draw(&s, 10),
                                            .least_width = 1};
      c.effort = &effort;
      const double claimed = (0.6 + 0.03 * i) * least, at_once = lp_certificate_prove(&c, claimed, claimed);
      double aim;
      const double bound = lp_certificate_find_bound(&c, claimed, least, &aim);
      ck_assert_double_ge(bound, at_once * (1 - 1.1e-3));
      ck_assert_double_eq(lp_certificate_prove(&c, bound, aim), bound);
      again += lp_certificate_search(&c, least) < at_once * (1 - 2e-3);
    }
    lp_arena_free(c.arena);
  }
  printf("%d bounds are found at the second attempt\n", again);
  ck_assert_int_gt(again, 5);
}

LP_TEST(it_finds_a_better_bound_than_the_claimed_one) {
  int found = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    source s = {.seed = seed};
    lp_certificate c = make_problem(&s);
    const double least = least_value(&c), claimed[] = {0, least / 2, least};
    c.value = least;
    for (size_t i = 0; i < LP_COUNT(claimed) && !isinf(least) && least > 0; i++) {
      double aim;
      const double bound = lp_certificate_find_bound(&c, claimed[i], least, &aim);
      found++;
      ck_assert_msg(bound >= least * (1 - 1e-9) && bound <= least, "seed %d: %g is found, %g is the least cost",
                    (int)seed, bound, least);
      ck_assert_double_eq(lp_certificate_prove(&c, bound, aim), bound);
    }
    lp_arena_free(c.arena);
  }
  ck_assert_int_gt(found, CASES);
}

/* A term without a factor counts once; a name that is none, or half of one, is refused. */
LP_TEST(objectives_are_read) {
  static const struct {
    const char *text;
    double factor[3];
  } right[] = {{"cost", {1, 0, 0}},
               {"energy+cost", {1, 0, 1}},
               {"cost+1e-6*latency", {1, 1e-6, 0}},
               {"0.5*latency+2*energy+latency", {0, 1.5, 2}}};
  static const char *const wrong[] = {"", "costs", "cos", "cost+", "2*", "cost+2*", "cost latency", "3cost"};
  for (size_t i = 0; i < LP_COUNT(right); i++) {
    double factor[3] = {0};
    ck_assert(lp_certificate_objective_read(right[i].text, factor));
    for (int k = 0; k < 3; k++)
      ck_assert_double_eq(factor[k], right[i].factor[k]);
  }
  for (size_t i = 0; i < LP_COUNT(wrong); i++) {
    double factor[3] = {0};
    ck_assert(!lp_certificate_objective_read(wrong[i], factor));
  }
}
