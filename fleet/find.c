/* Finds a fleet, and describes it and those beside it. */
#include "fleet/search.h"

#include <math.h>

/* ---- the description --------------------------------------------------------------------------------------------- */

/* The mean of the hours. */
static double mean_of(const lp_search *s, const int64_t *needed) {
  double sum = 0;
  for (int32_t i = 0; i < s->levels; i++)
    sum += (double)needed[i] * s->hours_at[i];
  return sum / lp_fleet_hours(&s->spec->day);
}

/* The share of the time in passes of a pool in which all machines stay, in the mean of the hours: each rate is
 * simulated once. */
static double busy_of_day(const lp_search *s, int32_t option, unsigned mask, const lp_search_entry *e) {
  const double *hour = s->spec->day.hour;
  double busy[LP_SIM_HOURS], sum = 0;
  lp_trial trial = lp_search_trial(s, option, mask, 0, e->needed[0], e->sessions);
  const double rate = trial.rate;
  trial.policy = e->policy;
  for (int32_t i = 0; i < trial.classes; i++)
    trial.class[i].limits = NULL;
  for (int h = 0; h < LP_SIM_HOURS; h++) {
    lp_fleet_times times[LP_FLEET_MOST_CLASSES];
    int same = 0;
    while (hour[same] < hour[h] || hour[same] > hour[h])
      same++;
    busy[h] = same < h ? busy[same] : hour[h] >= 1 ? e->peak_busy : 0;
    trial.rate = rate * hour[h];
    if (same == h && hour[h] > 0 && hour[h] < 1) (void)lp_trial_run(&trial, times, &busy[h]);
    sum += busy[h];
  }
  return sum / (double)LP_SIM_HOURS;
}

static void describe_pool(lp_search *s, int32_t option, lp_fleet_plan *out) {
  const unsigned mask = lp_search_mask(s, option);
  const lp_search_entry *e = lp_search_pool(s, option, mask);
  const lp_fleet_option *o = &s->all->option[option];
  const lp_fleet_mix mix = lp_search_mix(s, option, e->needed);
  const double needed = mean_of(s, e->needed),
               work = lp_search_rate(s, mask) * lp_search_work(s, option, mask, e->sessions);
  lp_fleet_pool *pool = &out->pool[out->pools];
  *pool = (lp_fleet_pool){.kind = o->kind,
                          .option = option,
                          .cut = o->cut,
                          .exits = o->exits,
                          .needed = e->needed[0],
                          .count = mix.count,
                          .stay = mix.stay,
                          .spot = mix.spot,
                          .rented = mix.rented,
                          .sessions = e->sessions,
                          .policy = e->policy,
                          .busy = e->busy / needed,
                          .peak_busy = e->peak_busy,
                          .utilisation = s->spec->mean_rate / s->spec->rate * work / needed,
                          .usd_per_month = e->usd,
                          .weight_bytes = o->law->weight_bytes,
                          .session_bytes = o->law->session_bytes,
                          .classes = mask,
                          .binds = "with fewer machines the work does not fit"};
  if (!s->spec->day.given && s->spec->mean_rate < s->spec->rate) pool->busy = busy_of_day(s, option, mask, e);
  for (int32_t h = 0; h < lp_fleet_hours(&s->spec->day); h++)
    pool->by_hour[h] = e->needed[s->level_of[h]];
  if (e->broken.ratio > 1)
    pool->binds = lp_arena_format(out->arena, "one fewer breaks %s %s of %s", lp_fleet_figure_names[e->broken.figure],
                                  lp_fleet_quantile_names[e->broken.quantile], s->spec->classes.data[e->class].name);
  for (int32_t i = 0, k = 0; i < (int32_t)s->spec->classes.count; i++)
    if (mask >> i & 1) out->place[i] = (lp_fleet_place){out->pools, e->times[k++]};
  out->pools++;
}

/* Simulates pool `index` with `more` machines in the hours that have the most, and fewer with the policy that
 * strains its limits least. Keeps the result if it strains them less than *strain. */
static void note_neighbour(lp_search *s, int32_t index, int64_t more, double *strain, lp_fleet_neighbour *out) {
  const lp_fleet_pool *pool = &s->plan->pool[index];
  lp_trial trial = lp_search_trial(s, pool->option, pool->classes, 0, pool->needed + more, pool->sessions);
  const lp_search_entry *e = lp_search_pool(s, pool->option, pool->classes);
  int64_t needed[LP_SIM_HOURS];
  for (int32_t i = 0; i < s->levels; i++)
    needed[i] = e->needed[i] == pool->needed ? pool->needed + more : e->needed[i];
  for (int32_t i = 0; i < trial.classes; i++)
    trial.class[i].limits = NULL; /* so that it does not end at the first limit that breaks */
  for (int32_t k = 0; k < lp_search_policies(s, pool->option, pool->classes); k++) {
    lp_fleet_times times[LP_FLEET_MOST_CLASSES];
    double busy;
    int32_t class = 0, place = 0;
    trial.policy = more >= 0 ? pool->policy : lp_search_policy(s, pool->option, pool->classes, k);
    if (more >= 0 && k > 0) break;
    s->plan->trials++;
    (void)lp_trial_run(&trial, times, &busy);
    const lp_fleet_strain found = lp_search_strain(s, pool->classes, times, &class);
    for (int32_t i = 0; i < class; i++)
      place += (int32_t)(pool->classes >> i & 1);
    if (found.ratio >= *strain) continue;
    *strain = found.ratio;
    *out = (lp_fleet_neighbour){.pool = index,
                                .count = lp_search_mix(s, pool->option, needed).count,
                                .usd_per_month = s->plan->usd_per_month + lp_search_usd(s, pool->option, needed) -
                                                 pool->usd_per_month,
                                .class = class,
                                .figure = found.figure,
                                .quantile = found.quantile,
                                .value_s = times[place].value_s[found.figure][found.quantile]};
  }
}

/* The fleets beside the cheapest one. One machine fewer where that breaks limits least, if the work still fits; one
 * more where limits are nearest. */
static void describe_neighbours(lp_search *s, lp_fleet_plan *out) {
  double least = INFINITY, any = INFINITY, most = 0;
  int32_t tightest = -1;
  out->cheaper.pool = out->faster.pool = -1;
  for (int32_t i = 0; i < out->pools; i++) {
    const lp_fleet_pool *pool = &out->pool[i];
    const lp_search_entry *e = lp_search_pool(s, pool->option, pool->classes);
    int32_t class;
    const double strain = lp_search_strain(s, pool->classes, e->times, &class).ratio;
    const int64_t limit = s->spec->kinds.data[pool->kind].most;
    /* Machines, in the busiest hour. */
    const double busy = pool->utilisation * mean_of(s, e->needed) * s->spec->rate / s->spec->mean_rate;
    if (pool->needed > 1 && busy <= (double)(pool->needed - 1)) note_neighbour(s, i, -1, &least, &out->cheaper);
    if (strain > most && (limit == 0 || pool->count < limit)) tightest = i, most = strain;
    const double kind_usd = lp_fleet_least_usd(&s->spec->kinds.data[pool->kind]) * (double)LP_FLEET_HOURS;
    out->least_usd_per_rate += kind_usd * busy * s->mean_level / s->spec->rate;
  }
  if (tightest >= 0) note_neighbour(s, tightest, 1, &any, &out->faster);
  out->mean_usd_per_rate = out->usd_per_month / s->spec->rate;
}

/* Adds one machine at a time, each to the pool that is nearest to breaking a limit. */
static void describe_front(lp_search *s, lp_fleet_plan *out) {
  lp_fleet_neighbour at[LP_FLEET_MOST_CLASSES];
  double strain[LP_FLEET_MOST_CLASSES];
  int64_t more[LP_FLEET_MOST_CLASSES] = {0}, machines = 0;
  int32_t class, worst = 0;
  for (int32_t i = 0; i < out->pools; i++) {
    const lp_fleet_pool *pool = &out->pool[i];
    strain[i] = lp_search_strain(s, pool->classes, lp_search_pool(s, pool->option, pool->classes)->times, &class).ratio;
    at[i] = (lp_fleet_neighbour){.usd_per_month = out->usd_per_month, .count = pool->count};
    machines += pool->count;
    if (strain[i] > strain[worst]) worst = i;
  }
  for (out->fronts = 0; out->fronts < LP_FLEET_FRONT && out->pools > 0; out->fronts++) {
    const int64_t limit = s->spec->kinds.data[out->pool[worst].kind].most, before = at[worst].count;
    if (limit > 0 && before >= limit) return;
    strain[worst] = INFINITY;
    note_neighbour(s, worst, ++more[worst], &strain[worst], &at[worst]);
    machines += at[worst].count - before;
    for (int32_t i = 0; i < out->pools; i++)
      if (strain[i] > strain[worst]) worst = i;
    if (more[worst] == 0) { /* its limits are those of the fleet as it is */
      double now = INFINITY;
      note_neighbour(s, worst, 0, &now, &at[worst]);
    }
    lp_fleet_neighbour *point = &out->front[out->fronts];
    *point = at[worst];
    point->machines = machines;
    point->usd_per_month = out->usd_per_month;
    for (int32_t i = 0; i < out->pools; i++)
      point->usd_per_month += at[i].usd_per_month - out->usd_per_month;
  }
}

static void describe(lp_search *s, lp_fleet_plan *out) {
  for (int32_t i = 0; i < (int32_t)s->spec->classes.count; i++) {
    if (s->best[i] < 0) out->place[i] = (lp_fleet_place){-1, s->all->alone_times[i]};
    if (s->best[i] >= 0 && lp_search_mask(s, s->best[i]) % (1u << i) == 0) describe_pool(s, s->best[i], out);
  }
  for (int32_t i = 0; i < out->pools; i++)
    out->usd_per_month += out->pool[i].usd_per_month;
  describe_neighbours(s, out);
  describe_front(s, out);
}

/* ---- the fleet --------------------------------------------------------------------------------------------------- */

/* The rates that the hours have, each once. */
static void find_levels(lp_search *s) {
  const lp_fleet_day *day = &s->spec->day;
  double below = INFINITY;
  for (;;) {
    double next = -1;
    for (int32_t h = 0; h < lp_fleet_hours(day); h++) {
      const double rate = day->given ? day->hour[h] : 1;
      if (rate < below) next = fmax(next, rate);
    }
    if (next < 0) return;
    for (int32_t h = 0; h < lp_fleet_hours(day); h++) {
      if ((day->given ? day->hour[h] : 1) < next || (day->given && day->hour[h] >= below)) continue;
      s->level_of[h] = s->levels;
      s->hours_at[s->levels]++;
      s->mean_level += next / lp_fleet_hours(day);
    }
    s->level[s->levels++] = below = next;
  }
}

static lp_status find_cheapest(const lp_fleet_spec *spec, lp_module *module, lp_fleet_plan *out, lp_diag *diag) {
  lp_search s = {.spec = spec, .plan = out};
  *out = (lp_fleet_plan){.arena = lp_arena_create()};
  s.all = out->all = LP_NEW(out->arena, lp_fleet_candidates);
  LP_TRY(lp_fleet_candidates_find(spec, module, out->arena, s.all, diag));
  out->cuts = s.all->cuts;
  for (int32_t i = 0; i < s.all->options; i++)
    lp_fleet_prices_find(spec, s.all, &s.all->option[i]);
  find_levels(&s);
  s.spots = LP_NEW_ARRAY(out->arena, int32_t *, spec->kinds.count);
  for (size_t i = 0; i < spec->kinds.count; i++) {
    if (spec->kinds.data[i].spot_usd_per_hour <= 0) continue;
    s.spots[i] = LP_NEW_ARRAY(out->arena, int32_t, LP_FLEET_MOST_SPOT + 1);
    lp_fleet_spots_find(&spec->kinds.data[i], spec->availability, s.spots[i]);
  }
  s.entries = LP_NEW_ARRAY(out->arena, lp_search_entry, (size_t)s.all->options * LP_SEARCH_MASKS + 1);
  LP_TRY(lp_search_run(&s, diag));
  describe(&s, out);
  return LP_OK;
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
  const lp_search s = {.spec = spec, .all = plan->all, .level = {1}};
  const lp_load_user beside = {.streams = true}; /* machines do not tell classes apart, which have the same lengths */
  lp_trial trial = lp_search_trial(&s, pool->option, pool->classes, 0, pool->needed, pool->sessions);
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
