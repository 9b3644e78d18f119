/* The cheapest fleet: an exact branch and bound over assignments of classes to pools.
 *
 * The programme has one integer decision per class and one count per pool, at most 8 classes, and the count of a pool
 * is a function of its classes that only a simulation knows; a solver of linear programmes could take only its lower
 * bound. So the search is our own. Every pool begins with the machines that work conservation asks for. The cheapest
 * assignment with these counts is the lower bound. Then pools of the cheapest assignment are simulated: where the
 * simulation refutes a count, the least one that it accepts replaces it, and the search goes on, until all pools of the
 * cheapest assignment are simulated. This is exact where more machines never break a limit that fewer keep. */
#include "fleet/bound.h"
#include "fleet/mix.h"

#include <math.h>

enum {
  MASKS = 1 << LP_FLEET_MOST_CLASSES,
  TRIED = 64, /* the most machines of a simulation: a larger pool is simulated as 64 machines at the same rate for each;
              * requests wait longer there than in the larger pool */
  MOST_NODES = 20000000,
  MOST_TIMES = 256 /* as many times the least machines: then a pool cannot keep its limits */
};

/* The report has the rate in nine digits, and its checker finds no fewer machines from them. */
static const double rounding = 1e-6;

/* A pool with some classes. */
typedef struct {
  bool known, tried, impossible;
  bool refuted; /* with one machine fewer than `needed` */
  int64_t needed, sessions;
  double busy;
  lp_fleet_policy policy;
  lp_fleet_times *times;  /* [classes of the mask] */
  lp_fleet_strain broken; /* by one machine fewer, of class `class` */
  int32_t class;
} entry;

typedef struct {
  const lp_fleet_spec *spec;
  lp_fleet_candidates *all;
  lp_fleet_plan *plan;
  entry *entries;       /* [option][mask] */
  lp_fleet_swap **swap; /* [kinds][LP_FLEET_MOST_SPOT + 1]; NULL: no spot market */
  int32_t at[LP_FLEET_MOST_CLASSES], best[LP_FLEET_MOST_CLASSES]; /* options; -1: on the device */
  double best_usd, known_usd; /* known: of the cheapest fleet that the simulation has accepted */
  int64_t nodes;
} search;

/* ---- pools ------------------------------------------------------------------------------------------------------- */

static double work_of(const search *s, int32_t option, unsigned mask, int64_t sessions) {
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

static double rate_of(const search *s, unsigned mask) {
  double share = 0;
  for (size_t i = 0; i < s->spec->classes.count; i++)
    if (mask >> i & 1) share += s->spec->classes.data[i].share;
  return share * s->spec->rate;
}

static entry *entry_of(search *s, int32_t option, unsigned mask) {
  entry *e = &s->entries[(size_t)option * MASKS + mask];
  const lp_fleet_option *o = &s->all->option[option];
  const lp_fleet_kind *kind = &s->spec->kinds.data[o->kind];
  if (e->known) return e;
  e->known = true;
  e->sessions = (mask & ~o->serves) ? 0 : lp_fleet_sessions(s->spec, s->all, o, mask);
  e->impossible = e->sessions == 0;
  if (e->impossible) return e;
  e->needed = (int64_t)fmax(1, ceil(rate_of(s, mask) * work_of(s, option, mask, e->sessions) * (1 - rounding)));
  for (unsigned part = (mask - 1) & mask; part; part = (part - 1) & mask) { /* fewer classes need no more machines */
    const entry *smaller = entry_of(s, option, part);
    e->impossible = e->impossible || smaller->impossible;
    if (smaller->needed > e->needed) e->needed = smaller->needed;
  }
  e->impossible = e->impossible || (kind->most > 0 && e->needed + s->spec->spare > kind->most);
  return e;
}

static lp_fleet_mix mix_of(const search *s, int32_t option, int64_t needed) {
  const int32_t kind = s->all->option[option].kind;
  return lp_fleet_mix_of(&s->spec->kinds.data[kind], s->swap[kind], needed + s->spec->spare);
}

static double usd_of(const search *s, int32_t option, int64_t needed) {
  return (double)LP_FLEET_HOURS * mix_of(s, option, needed).usd_per_hour;
}

/* ---- branch and bound -------------------------------------------------------------------------------------------- */

/* USD a month of the first `classes` classes; INFINITY: a pool or a kind of machine cannot. */
static double usd_of_assignment(search *s, int32_t classes) {
  double usd = 0;
  int64_t used[64] = {0};
  for (int32_t i = 0; i < classes; i++) {
    unsigned mask = 0;
    bool first = true;
    for (int32_t k = 0; k < classes && s->at[i] >= 0; k++) {
      if (s->at[k] != s->at[i]) continue;
      mask |= 1u << k;
      first = first && k >= i;
    }
    if (s->at[i] < 0 || !first) continue;
    const entry *e = entry_of(s, s->at[i], mask);
    const int32_t kind = s->all->option[s->at[i]].kind;
    const int64_t most = s->spec->kinds.data[kind].most;
    used[kind] += e->needed + s->spec->spare;
    if (e->impossible || (most > 0 && used[kind] > most)) return INFINITY;
    usd += usd_of(s, s->at[i], e->needed);
  }
  return usd;
}

static void branch(search *s, int32_t class) {
  if (s->nodes++ > MOST_NODES) return;
  const double usd = usd_of_assignment(s, class);
  if (usd >= s->best_usd) return;
  if (class == (int32_t)s->spec->classes.count) {
    s->best_usd = usd;
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

/* The cheapest division of the classes over pools with the least machines, in USD a month. */
static double bound_of(search *s) {
  double pool[MASKS] = {0}, best[MASKS] = {0};
  for (unsigned mask = 1; mask < 1u << s->spec->classes.count; mask++) {
    pool[mask] = (mask & ~s->all->alone) ? INFINITY : 0;
    for (int32_t option = 0; option < s->all->options; option++) {
      const entry *e = entry_of(s, option, mask);
      if (!e->impossible) pool[mask] = fmin(pool[mask], usd_of(s, option, e->needed));
    }
    best[mask] = INFINITY;
    for (unsigned part = mask; part; part = (part - 1) & mask)
      best[mask] = fmin(best[mask], pool[part] + best[mask & ~part]);
  }
  return best[(1u << s->spec->classes.count) - 1];
}

/* ---- simulations ------------------------------------------------------------------------------------------------- */

static unsigned mask_of(const search *s, int32_t option) {
  unsigned mask = 0;
  for (size_t i = 0; i < s->spec->classes.count; i++)
    if (s->best[i] == option) mask |= 1u << i;
  return mask;
}

lp_fleet_policy lp_fleet_policy_of(const lp_load_law *law, int32_t index) {
  static const double stretch[] = {LP_PROMPT_STRETCH, 2, 4, 8};
  const bool is_short = index < LP_FLEET_SPLIT_POLICIES;
  return (lp_fleet_policy){stretch[index % LP_FLEET_SPLIT_POLICIES],
                           is_short ? lp_trial_most_rows(law) / 2 : LP_PROMPT_WHOLE};
}

static int32_t policies_of(const search *s, int32_t option) {
  return s->all->option[option].cut == 0 ? LP_FLEET_POLICIES : LP_FLEET_SPLIT_POLICIES;
}

/* The simulation of a pool of `machines`. */
static lp_trial trial_of(const search *s, int32_t option, unsigned mask, int64_t machines, int64_t sessions) {
  const lp_fleet_option *o = &s->all->option[option];
  const double rate = rate_of(s, mask);
  lp_trial trial = {.length = s->spec->lengths.data,
                    .lengths = s->spec->lengths.count,
                    .law = o->law,
                    .machines = machines < TRIED ? machines : TRIED,
                    .sessions = sessions,
                    .requests = s->spec->requests,
                    .seed = (uint64_t)s->spec->seed};
  trial.rate = rate * (double)trial.machines / (double)machines;
  for (size_t i = 0; i < s->spec->classes.count; i++)
    if (mask >> i & 1)
      trial.class[trial.classes++] = (lp_trial_class){s->spec->classes.data[i].share * s->spec->rate / rate,
                                                      lp_fleet_user_of(s->all, o, i), &s->spec->classes.data[i]};
  return trial;
}

/* The nearest limit of the classes in `mask`, and its class. times[classes of the mask]. */
static lp_fleet_strain strain_of(const search *s, unsigned mask, const lp_fleet_times *times, int32_t *class) {
  lp_fleet_strain most = {0};
  for (int32_t i = 0; i < (int32_t)s->spec->classes.count; i++) {
    if (!(mask >> i & 1)) continue;
    const lp_fleet_strain strain = lp_fleet_strain_of(&s->spec->classes.data[i], times++);
    if (strain.ratio >= most.ratio) *class = i, most = strain;
  }
  return most;
}

/* Simulates a pool of `machines` with one policy after another, until all limits hold; false: they hold with none. */
static bool try_count(search *s, int32_t option, unsigned mask, int64_t machines, entry *e) {
  lp_trial trial = trial_of(s, option, mask, machines, e->sessions);
  lp_fleet_times times[LP_FLEET_MOST_CLASSES];
  for (int32_t k = 0; k < policies_of(s, option); k++) {
    s->plan->trials++;
    double busy;
    trial.policy = lp_fleet_policy_of(trial.law, k);
    if (lp_trial_run(&trial, times, &busy)) {
      e->policy = trial.policy;
      e->busy = busy;
      for (int32_t i = 0; i < trial.classes; i++)
        e->times[i] = times[i];
      return true;
    }
    s->plan->refuted++;
  }
  e->broken = strain_of(s, mask, times, &e->class);
  return false;
}

/* Finds the least machines that the simulation accepts, from those of the bound on; `affordable`: with more of them the
 * fleet costs at least as much as a known one. Where that is too few, it only raises the count. */
static void simulate(search *s, int32_t option, unsigned mask, int64_t affordable, entry *e) {
  const int64_t least = e->needed, most = s->spec->kinds.data[s->all->option[option].kind].most;
  int64_t high = affordable < INT64_MAX ? affordable : least, low = least - 1, step = 1;
  while (!try_count(s, option, mask, high, e)) {
    low = high;
    high += step;
    step *= 2;
    e->needed = low + 1;
    e->refuted = true;
    e->impossible = high > MOST_TIMES * (least + 1);
    if (e->impossible || low >= affordable) return;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    *(try_count(s, option, mask, middle, e) ? &high : &low) = middle;
  }
  e->tried = true;
  e->needed = high;
  if (high == least && !e->refuted) e->broken = (lp_fleet_strain){0};
  e->impossible = most > 0 && high + s->spec->spare > most;
}

/* Forgets what entries of more classes have of this one, so that they take its new count. */
static void forget_larger(search *s, int32_t option, unsigned mask) {
  for (unsigned larger = 1; larger < MASKS; larger++) {
    entry *e = &s->entries[(size_t)option * MASKS + larger];
    if (larger != mask && (larger & mask) == mask && !e->tried) *e = (entry){0};
  }
}

/* Simulates a pool of the best assignment that was not yet; false: there is none. */
static bool refine(search *s) {
  for (size_t i = 0; i < s->spec->classes.count; i++) {
    const int32_t option = s->best[i];
    if (option < 0) continue;
    const unsigned mask = mask_of(s, option);
    entry *e = entry_of(s, option, mask);
    if (e->tried) continue;
    const double each = (double)LP_FLEET_HOURS * lp_fleet_least_usd(&s->spec->kinds.data[s->all->option[option].kind]);
    const double more = ceil((s->known_usd - s->best_usd) / each) - 1;
    if (!e->times) e->times = LP_NEW_ARRAY(s->plan->arena, lp_fleet_times, LP_FLEET_MOST_CLASSES);
    simulate(s, option, mask, more < 1e15 ? e->needed + (int64_t)fmax(0, more) : INT64_MAX, e);
    forget_larger(s, option, mask);
    return true;
  }
  return false;
}

/* Notes the cost of the best assignment if all its pools are simulated. */
static void note_known(search *s) {
  for (size_t i = 0; i < s->spec->classes.count; i++) {
    s->at[i] = s->best[i];
    if (s->best[i] >= 0 && !entry_of(s, s->best[i], mask_of(s, s->best[i]))->tried) return;
  }
  s->known_usd = fmin(s->known_usd, usd_of_assignment(s, (int32_t)s->spec->classes.count));
}

/* ---- the fleet --------------------------------------------------------------------------------------------------- */

static void describe_pool(search *s, int32_t option, lp_fleet_plan *out) {
  const unsigned mask = mask_of(s, option);
  const entry *e = entry_of(s, option, mask);
  const lp_fleet_option *o = &s->all->option[option];
  const lp_fleet_mix mix = mix_of(s, option, e->needed);
  lp_fleet_pool *pool = &out->pool[out->pools];
  *pool = (lp_fleet_pool){.kind = o->kind,
                          .option = option,
                          .cut = o->cut,
                          .exits = o->exits,
                          .needed = e->needed,
                          .count = mix.count,
                          .spot = mix.spot,
                          .sessions = e->sessions,
                          .policy = e->policy,
                          .busy = e->busy,
                          .utilisation = rate_of(s, mask) * work_of(s, option, mask, e->sessions) / (double)e->needed,
                          .usd_per_month = usd_of(s, option, e->needed),
                          .weight_bytes = o->law->weight_bytes,
                          .session_bytes = o->law->session_bytes,
                          .classes = mask,
                          .binds = "with fewer machines the work does not fit"};
  if (e->broken.ratio > 1)
    pool->binds = lp_arena_format(out->arena, "one fewer breaks %s %s of %s", lp_fleet_figure_names[e->broken.figure],
                                  lp_fleet_quantile_names[e->broken.quantile], s->spec->classes.data[e->class].name);
  for (int32_t i = 0, k = 0; i < (int32_t)s->spec->classes.count; i++)
    if (mask >> i & 1) out->place[i] = (lp_fleet_place){out->pools, e->times[k++]};
  out->pools++;
}

static void describe(search *s, lp_fleet_plan *out) {
  out->usd_per_month = s->best_usd;
  for (int32_t i = 0; i < (int32_t)s->spec->classes.count; i++) {
    if (s->best[i] < 0) out->place[i] = (lp_fleet_place){-1, s->all->alone_times[i]};
    if (s->best[i] >= 0 && mask_of(s, s->best[i]) % (1u << i) == 0) describe_pool(s, s->best[i], out);
  }
}

/* Simulates pool `index` with `more` machines, and fewer with the policy that strains its limits least. Keeps the
 * result if it strains them less than *strain. */
static void note_neighbour(search *s, int32_t index, int64_t more, double *strain, lp_fleet_neighbour *out) {
  const lp_fleet_pool *pool = &s->plan->pool[index];
  lp_trial trial = trial_of(s, pool->option, pool->classes, pool->needed + more, pool->sessions);
  for (int32_t i = 0; i < trial.classes; i++)
    trial.class[i].limits = NULL; /* so that it does not end at the first limit that breaks */
  for (int32_t k = 0; k < policies_of(s, pool->option); k++) {
    lp_fleet_times times[LP_FLEET_MOST_CLASSES];
    double busy;
    int32_t class = 0, place = 0;
    trial.policy = more > 0 ? pool->policy : lp_fleet_policy_of(trial.law, k);
    if (more > 0 && k > 0) break;
    s->plan->trials++;
    (void)lp_trial_run(&trial, times, &busy);
    const lp_fleet_strain found = strain_of(s, pool->classes, times, &class);
    for (int32_t i = 0; i < class; i++)
      place += (int32_t)(pool->classes >> i & 1);
    if (found.ratio >= *strain) continue;
    *strain = found.ratio;
    *out = (lp_fleet_neighbour){.pool = index,
                                .count = mix_of(s, pool->option, pool->needed + more).count,
                                .usd_per_month = s->plan->usd_per_month + usd_of(s, pool->option, pool->needed + more) -
                                                 pool->usd_per_month,
                                .class = class,
                                .figure = found.figure,
                                .quantile = found.quantile,
                                .value_s = times[place].value_s[found.figure][found.quantile]};
  }
}

/* The fleets beside the cheapest one. One machine fewer where that breaks limits least, if the work still fits; one
 * more where limits are nearest. */
static void describe_neighbours(search *s, lp_fleet_plan *out) {
  double least = INFINITY, any = INFINITY, most = 0;
  int32_t tightest = -1;
  out->cheaper.pool = out->faster.pool = -1;
  for (int32_t i = 0; i < out->pools; i++) {
    const lp_fleet_pool *pool = &out->pool[i];
    const entry *e = entry_of(s, pool->option, pool->classes);
    int32_t class;
    const double strain = strain_of(s, pool->classes, e->times, &class).ratio;
    const int64_t limit = s->spec->kinds.data[pool->kind].most;
    if (pool->needed > 1 && pool->utilisation * (double)pool->needed <= (double)(pool->needed - 1))
      note_neighbour(s, i, -1, &least, &out->cheaper);
    if (strain > most && (limit == 0 || pool->count < limit)) tightest = i, most = strain;
    const double kind_usd = lp_fleet_least_usd(&s->spec->kinds.data[pool->kind]) * (double)LP_FLEET_HOURS;
    out->least_usd_per_rate += kind_usd * pool->utilisation * (double)pool->needed / s->spec->rate;
  }
  if (tightest >= 0) note_neighbour(s, tightest, 1, &any, &out->faster);
  out->mean_usd_per_rate = out->usd_per_month / s->spec->rate;
}

static lp_status solve(search *s, lp_diag *diag) {
  const lp_fleet_spec *spec = s->spec;
  s->plan->complete = true;
  s->plan->bound = bound_of(s);
  s->known_usd = s->best_usd = INFINITY;
  do {
    if (!isinf(s->best_usd)) note_known(s);
    s->best_usd = INFINITY;
    s->nodes = 0;
    branch(s, 0);
    s->plan->complete = s->plan->complete && s->nodes <= MOST_NODES;
    if (isinf(s->best_usd))
      return lp_error_as(LP_INFEASIBLE, diag, LP_LOC_FILE(spec->path),
                         "no number of machines keeps the limits of all classes under this load; raise a limit, or "
                         "'most' of a machine");
  } while (refine(s));
  describe(s, s->plan);
  describe_neighbours(s, s->plan);
  return LP_OK;
}

static lp_status find_cheapest(const lp_fleet_spec *spec, lp_module *module, lp_fleet_plan *out, lp_diag *diag) {
  search s = {.spec = spec, .plan = out};
  *out = (lp_fleet_plan){.arena = lp_arena_create()};
  s.all = out->all = LP_NEW(out->arena, lp_fleet_candidates);
  LP_TRY(lp_fleet_candidates_find(spec, module, out->arena, s.all, diag));
  out->cuts = s.all->cuts;
  for (int32_t i = 0; i < s.all->options; i++)
    lp_fleet_prices_find(spec, s.all, &s.all->option[i]);
  s.swap = LP_NEW_ARRAY(out->arena, lp_fleet_swap *, spec->kinds.count);
  for (size_t i = 0; i < spec->kinds.count; i++) {
    if (spec->kinds.data[i].spot_usd_per_hour <= 0) continue;
    s.swap[i] = LP_NEW_ARRAY(out->arena, lp_fleet_swap, LP_FLEET_MOST_SPOT + 1);
    lp_fleet_swaps_find(&spec->kinds.data[i], spec->availability, s.swap[i]);
  }
  s.entries = LP_NEW_ARRAY(out->arena, entry, (size_t)s.all->options * MASKS + 1);
  return solve(&s, diag);
}

static void scale_limits(lp_fleet_spec *spec, double scale) {
  LP_FOR_VEC(lp_fleet_class, class, &spec->classes)
    for (int i = 0; i < LP_FLEET_FIGURES * LP_FLEET_QUANTILES; i++)
      class->limit_s[i / LP_FLEET_QUANTILES][i % LP_FLEET_QUANTILES] *= scale / spec->limits_scale;
  spec->limits_scale = scale;
}

/* Halves the interval of scales between one that the budget allows and one that it does not. */
static void tighten(lp_fleet_spec *spec, lp_module *module, lp_fleet_plan *out) {
  static const double precision = 0.01;
  double low = 0, high = 1;
  while (high - low > precision * high) {
    lp_diag *diag = lp_diag_create();
    lp_fleet_plan plan;
    scale_limits(spec, (low + high) / 2);
    if (find_cheapest(spec, module, &plan, diag) == LP_OK && plan.usd_per_month <= spec->budget) {
      lp_fleet_free(out);
      *out = plan;
      high = spec->limits_scale;
    } else {
      lp_fleet_free(&plan);
      low = spec->limits_scale;
    }
    lp_diag_free(diag);
  }
  scale_limits(spec, high);
}

lp_status lp_fleet_find(lp_fleet_spec *spec, lp_module *module, lp_fleet_plan *out, lp_diag *diag) {
  LP_TRY(find_cheapest(spec, module, out, diag));
  if (out->usd_per_month > spec->budget)
    return lp_error_as(LP_INFEASIBLE, diag, LP_LOC_FILE(spec->path),
                       "the cheapest fleet that keeps all limits costs USD %.2f a month, the budget is USD %.2f; no "
                       "fleet of the space costs less than USD %.2f",
                       out->usd_per_month, spec->budget, out->bound);
  if (spec->wants_latency) tighten(spec, module, out);
  return LP_OK;
}

void lp_fleet_serve_times(const lp_fleet_spec *spec, const lp_fleet_plan *plan, const lp_fleet_pool *pool,
                          lp_fleet_times *out, double *rate) {
  const search s = {.spec = spec, .all = plan->all};
  const lp_load_user beside = {.streams = true}; /* machines do not tell classes apart, which have the same lengths */
  lp_trial trial = trial_of(&s, pool->option, pool->classes, pool->needed, pool->sessions);
  double busy;
  trial.policy = pool->policy;
  trial.classes = 1;
  trial.class[0] = (lp_trial_class){1, &beside, NULL};
  (void)lp_trial_run(&trial, out, &busy);
  *rate = trial.rate / (double)trial.machines;
}

void lp_fleet_free(lp_fleet_plan *plan) {
  lp_arena_free(plan->arena);
}
