/* The cheapest fleet: an exact branch and bound over assignments of classes to pools.
 *
 * The programme has one integer decision per class and one count per pool, at most 8 classes, and the count of a pool
 * is a function of its classes that only a simulation knows; a solver of linear programmes could take only its lower
 * bound. So the search is our own. Every pool begins with the machines that work conservation asks for. The cheapest
 * assignment with these counts is the lower bound. Then pools of the cheapest assignment are simulated: where the
 * simulation refutes a count, the least one that it accepts replaces it, and the search goes on, until all pools of the
 * cheapest assignment are simulated. This is exact where more machines never break a limit that fewer keep.
 *
 * Where machines come and go with the hours, a pool has a count for each rate of the day, and is simulated at each of
 * them with the policy of the busiest hour, in which its machines begin and end. */
#include "fleet/search.h"

#include <math.h>

enum {
  TRIED = 64, /* the most machines of a simulation: a larger pool is simulated as 64 machines at the same rate for each;
              * requests wait longer there than in the larger pool */
  MOST_NODES = 20000000,
  MOST_TIMES = 256 /* as many times the least machines: then a pool cannot keep its limits */
};

/* The report has the rate in nine digits, and its checker finds no fewer machines from them. */
static const double rounding = 1e-6;

/* ---- pools ------------------------------------------------------------------------------------------------------- */

double lp_search_work(const lp_search *s, int32_t option, unsigned mask, int64_t sessions) {
  const lp_fleet_option *o = &s->all->option[option];
  lp_fleet_pace pace[LP_FLEET_MOST_CLASSES];
  double share[LP_FLEET_MOST_CLASSES], sum = 0;
  int32_t classes = 0;
  for (size_t i = 0; i < s->spec->classes.count; i++) {
    if (!(mask >> i & 1)) continue;
    pace[classes] = lp_fleet_pace_of(s->spec, s->all, o, i);
    sum += share[classes++] = s->spec->classes.data[i].share;
  }
  for (int32_t i = 0; i < classes; i++)
    share[i] /= sum;
  return lp_fleet_work_s(&s->all->means, o, sessions, pace, share, classes);
}

double lp_search_rate(const lp_search *s, unsigned mask) {
  double share = 0;
  for (size_t i = 0; i < s->spec->classes.count; i++)
    if (mask >> i & 1) share += s->spec->classes.data[i].share;
  return share * s->spec->rate;
}

lp_fleet_mix lp_search_mix(const lp_search *s, int32_t option, const int64_t *needed) {
  const int32_t kind = s->all->option[option].kind;
  const lp_fleet_rent prices = lp_fleet_rent_of(&s->spec->kinds.data[kind]);
  const lp_fleet_rent alike = {1, isinf(prices.comes) ? INFINITY : 1, 0}; /* each hour of each machine */
  int64_t wanted[LP_SIM_HOURS];
  for (int32_t h = 0; h < lp_fleet_hours(&s->spec->day); h++)
    wanted[h] = needed[s->level_of[h]] + s->spec->spare;
  if (!s->energy) return lp_fleet_mix_of(&prices, s->spots[kind], &s->spec->day, wanted);
  lp_fleet_mix mix = lp_fleet_mix_of(&alike, NULL, &s->spec->day, wanted);
  const double comes = mix.rented - (double)mix.stay;
  mix.usd_per_hour = prices.stays * (double)mix.stay + (mix.count > mix.stay ? prices.comes * comes : 0);
  return mix;
}

double lp_search_usd(const lp_search *s, int32_t option, const int64_t *needed) {
  return (double)LP_FLEET_HOURS * lp_search_mix(s, option, needed).usd_per_hour;
}

static double kwh_of_devices(const lp_search *s, const double *joules, unsigned mask) {
  double watts = 0;
  for (size_t i = 0; i < s->spec->classes.count; i++)
    if (mask >> i & 1) watts += s->spec->classes.data[i].share * s->spec->rate * s->mean_level * joules[i];
  return watts * (double)LP_FLEET_HOURS / 1000;
}

/* Of a pool by its counts; its machines are as busy as the bound says until all levels are simulated. */
static void set_cost(const lp_search *s, int32_t option, unsigned mask, lp_search_entry *e) {
  const lp_fleet_option *o = &s->all->option[option];
  const lp_machine *machine = s->spec->kinds.data[o->kind].machine;
  e->cost = e->usd = lp_search_usd(s, option, e->needed);
  if (!s->energy) return;
  const double idle = machine->figure[LP_HW_IDLE_POWER], passes = machine->figure[LP_HW_POWER];
  double busy = s->mean_level * lp_search_rate(s, mask) * lp_search_work(s, option, mask, e->sessions) * (1 - rounding);
  if (e->tried == s->levels) busy = fmax(busy, e->busy);
  const double watts = idle * lp_search_mix(s, option, e->needed).rented + (passes - idle) * busy;
  e->cost = watts * (double)LP_FLEET_HOURS / 1000 + kwh_of_devices(s, o->device_j, mask);
}

static bool too_many(const lp_search *s, int32_t option, int64_t needed) {
  const int64_t most = s->spec->kinds.data[s->all->option[option].kind].most;
  return most > 0 && needed + s->spec->spare > most;
}

lp_search_entry *lp_search_pool(lp_search *s, int32_t option, unsigned mask) {
  lp_search_entry *e = &s->entries[(size_t)option * LP_SEARCH_MASKS + mask];
  const lp_fleet_option *o = &s->all->option[option];
  if (e->known) return e;
  e->known = true;
  e->sessions = (mask & ~o->serves) ? 0 : lp_fleet_sessions(s->spec, s->all, o, mask);
  e->impossible = e->sessions == 0;
  if (e->impossible) return e;
  if (!e->needed) e->needed = LP_NEW_ARRAY(s->plan->arena, int64_t, s->levels);
  const double busy = lp_search_rate(s, mask) * lp_search_work(s, option, mask, e->sessions) * (1 - rounding);
  for (int32_t i = 0; i < s->levels; i++)
    e->needed[i] = (int64_t)fmax(1, ceil(s->level[i] * busy));
  for (unsigned part = (mask - 1) & mask; part; part = (part - 1) & mask) { /* fewer classes need no more machines */
    const lp_search_entry *smaller = lp_search_pool(s, option, part);
    e->impossible = e->impossible || smaller->impossible;
    for (int32_t i = 0; i < s->levels && smaller->needed; i++)
      if (smaller->needed[i] > e->needed[i]) e->needed[i] = smaller->needed[i];
  }
  set_cost(s, option, mask, e);
  e->impossible = e->impossible || too_many(s, option, e->needed[0]);
  return e;
}

/* ---- branch and bound -------------------------------------------------------------------------------------------- */

/* The cost of the first `classes` classes; INFINITY: a pool or a kind of machine cannot. */
static double cost_of_assignment(lp_search *s, int32_t classes) {
  double cost = 0;
  int64_t used[64] = {0};
  for (int32_t i = 0; i < classes; i++) {
    unsigned mask = 0;
    bool first = true;
    for (int32_t k = 0; k < classes && s->at[i] >= 0; k++) {
      if (s->at[k] != s->at[i]) continue;
      mask |= 1u << k;
      first = first && k >= i;
    }
    if (s->at[i] < 0 && s->energy) cost += kwh_of_devices(s, s->all->alone_j, 1u << i);
    if (s->at[i] < 0 || !first) continue;
    const lp_search_entry *e = lp_search_pool(s, s->at[i], mask);
    const int32_t kind = s->all->option[s->at[i]].kind;
    const int64_t most = s->spec->kinds.data[kind].most;
    if (e->impossible) return INFINITY;
    used[kind] += e->needed[0] + s->spec->spare;
    if (most > 0 && used[kind] > most) return INFINITY;
    cost += e->cost;
  }
  return cost;
}

static void branch(lp_search *s, int32_t class) {
  if (s->nodes++ > MOST_NODES) return;
  const double cost = cost_of_assignment(s, class);
  if (cost >= s->best_cost) return;
  if (class == (int32_t)s->spec->classes.count) {
    s->best_cost = cost;
    for (int32_t i = 0; i < class; i++)
      s->best[i] = s->at[i];
    return;
  }
  for (int32_t option = -1; option < s->all->options; option++) {
    const unsigned can = option < 0 ? s->all->alone : s->all->option[option].serves;
    if (!(can >> class & 1)) continue;
    s->at[class] = option;
    branch(s, class + 1);
  }
}

/* The cost of the cheapest division of the classes over pools with the least machines. */
static double bound_of(lp_search *s) {
  double pool[LP_SEARCH_MASKS] = {0}, best[LP_SEARCH_MASKS] = {0};
  for (unsigned mask = 1; mask < 1u << s->spec->classes.count; mask++) {
    pool[mask] = (mask & ~s->all->alone) ? INFINITY : s->energy ? kwh_of_devices(s, s->all->alone_j, mask) : 0;
    for (int32_t option = 0; option < s->all->options; option++) {
      const lp_search_entry *e = lp_search_pool(s, option, mask);
      if (!e->impossible) pool[mask] = fmin(pool[mask], e->cost);
    }
    best[mask] = INFINITY;
    for (unsigned part = mask; part; part = (part - 1) & mask)
      best[mask] = fmin(best[mask], pool[part] + best[mask & ~part]);
  }
  return best[(1u << s->spec->classes.count) - 1];
}

/* ---- simulations ------------------------------------------------------------------------------------------------- */

unsigned lp_search_mask(const lp_search *s, int32_t option) {
  unsigned mask = 0;
  for (size_t i = 0; i < s->spec->classes.count; i++)
    if (s->best[i] == option) mask |= 1u << i;
  return mask;
}

lp_fleet_policy lp_fleet_policy_of(const lp_load_law *law, int64_t turn, int32_t index) {
  static const double stretch[] = {LP_PROMPT_STRETCH, 2, 4, 8};
  const int64_t turns[] = {lp_trial_most_rows(law) / 2, LP_PROMPT_WHOLE, turn};
  return (lp_fleet_policy){stretch[index % LP_FLEET_SPLIT_POLICIES], turns[index / LP_FLEET_SPLIT_POLICIES]};
}

/* The longest prompt that is to be on time: of the share of the requests that the highest percentile of a limit names.
 * 0: there is no limit, or all prompts are to be. */
static int64_t turn_of(const lp_search *s, unsigned mask) {
  int highest = -1;
  for (size_t i = 0; i < s->spec->classes.count; i++)
    for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
      const lp_fleet_class *class = &s->spec->classes.data[i];
      const bool is_limited = class->limit_s[LP_FLEET_TTFT][k] > 0 || class->limit_s[LP_FLEET_ANSWER][k] > 0;
      if (mask >> i & 1 && is_limited && k > highest) highest = k;
    }
  return highest < 0 || s->all->means.on_time[highest] >= s->all->means.longest
             ? 0
             : (int64_t)s->all->means.on_time[highest];
}

lp_fleet_policy lp_search_policy(const lp_search *s, int32_t option, unsigned mask, int32_t index) {
  return lp_fleet_policy_of(s->all->option[option].law, turn_of(s, mask), index);
}

int32_t lp_search_policies(const lp_search *s, int32_t option, unsigned mask) {
  const lp_fleet_option *o = &s->all->option[option];
  if (o->cut > 0) return LP_FLEET_SPLIT_POLICIES;
  const bool is_own = turn_of(s, mask) > lp_trial_most_rows(o->law) / 2;
  return is_own ? LP_FLEET_POLICIES : LP_FLEET_POLICIES - LP_FLEET_SPLIT_POLICIES;
}

lp_trial lp_search_trial(const lp_search *s, int32_t option, unsigned mask, int32_t level, int64_t machines,
                         int64_t sessions) {
  const lp_fleet_option *o = &s->all->option[option];
  const double rate = lp_search_rate(s, mask);
  lp_trial trial = {.length = s->spec->lengths.data,
                    .lengths = s->spec->lengths.count,
                    .law = o->law,
                    .machines = machines < TRIED ? machines : TRIED,
                    .sessions = sessions,
                    .requests = s->spec->requests,
                    .seed = (uint64_t)s->spec->seed};
  trial.rate = s->level[level] * rate * (double)trial.machines / (double)machines;
  for (size_t i = 0; i < s->spec->classes.count; i++)
    if (mask >> i & 1)
      trial.class[trial.classes++] = (lp_trial_class){s->spec->classes.data[i].share * s->spec->rate / rate,
                                                      lp_fleet_user_of(s->all, o, i), &s->spec->classes.data[i]};
  return trial;
}

lp_fleet_strain lp_search_strain(const lp_search *s, unsigned mask, const lp_fleet_times *times, int32_t *class) {
  lp_fleet_strain most = {0};
  for (int32_t i = 0; i < (int32_t)s->spec->classes.count; i++) {
    if (!(mask >> i & 1)) continue;
    const lp_fleet_strain strain = lp_fleet_strain_of(&s->spec->classes.data[i], times++);
    if (strain.ratio >= most.ratio) *class = i, most = strain;
  }
  return most;
}

/* What the simulation that accepted a count has found. */
typedef struct {
  lp_fleet_times times[LP_FLEET_MOST_CLASSES];
  double busy;
} accepted;

/* Simulates a pool of `machines`, in the busiest hour with one policy after another, until all limits hold; false: they
 * hold with none. */
static bool try_count(lp_search *s, int32_t option, unsigned mask, int32_t level, int64_t machines, lp_search_entry *e,
                      accepted *out) {
  lp_trial trial = lp_search_trial(s, option, mask, level, machines, e->sessions);
  accepted found;
  for (int32_t k = 0; k < (level > 0 ? 1 : lp_search_policies(s, option, mask)); k++) {
    s->plan->trials++;
    trial.policy = level > 0 ? e->policy : lp_search_policy(s, option, mask, k);
    if (lp_trial_run(&trial, found.times, &found.busy)) {
      e->policy = trial.policy;
      *out = found;
      return true;
    }
    s->plan->refuted++;
  }
  if (level == 0) e->broken = lp_search_strain(s, mask, found.times, &e->class);
  return false;
}

/* Finds the least machines that the simulation accepts at a level, from those of the bound on; `affordable`: with more
 * of them the fleet costs at least as much as a known one. Where that is too few, it only raises the count. */
static bool find_count(lp_search *s, int32_t option, unsigned mask, int32_t level, int64_t affordable,
                       lp_search_entry *e, accepted *out) {
  const int64_t least = e->needed[level];
  int64_t high = affordable < INT64_MAX ? affordable : least, low = least - 1, step = 1;
  while (!try_count(s, option, mask, level, high, e, out)) {
    low = high;
    high += step;
    step *= 2;
    e->needed[level] = low + 1;
    e->refuted = e->refuted || level == 0;
    e->impossible = high > MOST_TIMES * (least + 1);
    if (e->impossible || low >= affordable) return false;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    *(try_count(s, option, mask, level, middle, e, out) ? &high : &low) = middle;
  }
  e->needed[level] = high;
  if (level == 0 && high == least && !e->refuted) e->broken = (lp_fleet_strain){0};
  return true;
}

/* Simulates the next level of a pool. Times are the longest ones of all levels. */
static void simulate(lp_search *s, int32_t option, unsigned mask, int64_t affordable, lp_search_entry *e) {
  const int32_t level = e->tried;
  accepted found = {0};
  if (s->level[level] > 0 && !find_count(s, option, mask, level, affordable, e, &found)) return;
  for (int i = 0; i < LP_FLEET_MOST_CLASSES * LP_FLEET_FIGURES * LP_FLEET_QUANTILES; i++) {
    double *longest = &e->times[0].value_s[0][0] + i;
    *longest = fmax(*longest, (&found.times[0].value_s[0][0])[i]);
  }
  if (level == 0) e->peak_busy = found.busy;
  e->busy += found.busy * (double)e->needed[level] * s->hours_at[level] / lp_fleet_hours(&s->spec->day);
  for (int32_t i = level; i > 0 && e->needed[i] > e->needed[i - 1]; i--) /* more load needs no fewer machines */
    e->needed[i - 1] = e->needed[i];
  e->tried++;
}

/* Forgets what entries of more classes have of this one, so that they take its new counts. */
static void forget_larger(lp_search *s, int32_t option, unsigned mask) {
  for (unsigned larger = 1; larger < LP_SEARCH_MASKS; larger++) {
    lp_search_entry *e = &s->entries[(size_t)option * LP_SEARCH_MASKS + larger];
    if (larger != mask && (larger & mask) == mask && e->tried == 0) *e = (lp_search_entry){.needed = e->needed};
  }
}

/* Simulates a pool of the best assignment, in the busiest hour if one was not yet, or else in the other hours; false:
 * there is none. */
static bool refine(lp_search *s) {
  int32_t class = -1;
  for (int32_t i = 0; i < (int32_t)s->spec->classes.count; i++) {
    const int32_t tried =
        s->best[i] < 0 ? s->levels : lp_search_pool(s, s->best[i], lp_search_mask(s, s->best[i]))->tried;
    if (tried < (class < 0 ? s->levels : 1)) class = i;
    if (tried == 0) break;
  }
  if (class < 0) return false;
  const int32_t option = s->best[class];
  const unsigned mask = lp_search_mask(s, option);
  lp_search_entry *e = lp_search_pool(s, option, mask);
  const lp_fleet_kind *kind = &s->spec->kinds.data[s->all->option[option].kind];
  const double hourly = s->energy ? kind->machine->figure[LP_HW_IDLE_POWER] / 1000 : lp_fleet_least_usd(kind);
  const double each = (double)LP_FLEET_HOURS * hourly * s->hours_at[0] / lp_fleet_hours(&s->spec->day);
  const double more = ceil((s->known_cost - s->best_cost) / each) - 1;
  if (!e->times) e->times = LP_NEW_ARRAY(s->plan->arena, lp_fleet_times, LP_FLEET_MOST_CLASSES);
  if (e->tried == 0)
    simulate(s, option, mask, more < 1e15 ? e->needed[0] + (int64_t)fmax(0, more) : INT64_MAX, e);
  else
    while (e->tried < s->levels && !e->impossible)
      simulate(s, option, mask, INT64_MAX, e);
  e->impossible = e->impossible || too_many(s, option, e->needed[0]);
  set_cost(s, option, mask, e);
  forget_larger(s, option, mask);
  return true;
}

/* Notes the cost of the best assignment if all its pools are simulated. */
static void note_known(lp_search *s) {
  for (size_t i = 0; i < s->spec->classes.count; i++) {
    s->at[i] = s->best[i];
    if (s->best[i] >= 0 && lp_search_pool(s, s->best[i], lp_search_mask(s, s->best[i]))->tried < s->levels) return;
  }
  s->known_cost = fmin(s->known_cost, cost_of_assignment(s, (int32_t)s->spec->classes.count));
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

lp_status lp_search_run(lp_search *s, lp_diag *diag) {
  const lp_fleet_spec *spec = s->spec;
  s->plan->complete = true;
  s->plan->bound = bound_of(s);
  s->plan->kwh_bound = NAN;
  if (spec->wants_energy) {
    s->energy = true;
    for (int32_t i = 0; i < s->all->options * LP_SEARCH_MASKS; i++)
      s->entries[i] = (lp_search_entry){.needed = s->entries[i].needed};
    s->plan->kwh_bound = bound_of(s);
  }
  s->known_cost = s->best_cost = INFINITY;
  do {
    if (!isinf(s->best_cost)) note_known(s);
    s->best_cost = INFINITY;
    s->nodes = 0;
    branch(s, 0);
    s->plan->complete = s->plan->complete && s->nodes <= MOST_NODES;
    if (isinf(s->best_cost))
      return lp_error_as(LP_INFEASIBLE, diag, LP_LOC_FILE(spec->path),
                         "no number of machines keeps the limits of all classes under this load; raise a limit, or "
                         "'most' of a machine");
  } while (refine(s));
  return LP_OK;
}
