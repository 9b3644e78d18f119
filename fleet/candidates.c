/* Candidates of classes: see candidates.h. */
#include "fleet/candidates.h"
#include "base/units.h"

#include <math.h>

/* An option's cuts leave the rest of each limit to the queue and to passes over several sessions. */
static const double idle_shares[] = {0.85, 0.6};
enum { SAMPLED = 500 };

/* ---- what a machine carries -------------------------------------------------------------------------------------- */

const lp_load_user *lp_fleet_user_of(const lp_fleet_candidates *all, const lp_fleet_option *option, size_t class) {
  return option->exits ? &all->with_exit[option->region][class] : &all->user[option->region][class][option->cut];
}

int64_t lp_fleet_sessions(const lp_fleet_spec *spec, const lp_fleet_candidates *all, const lp_fleet_option *option,
                          unsigned classes) {
  const double asks = option->exits ? spec->exits.asks : 1;
  int64_t sessions = option->law->sessions;
  if (option->exits)
    sessions =
        (int64_t)fmin((double)sessions, floor((double)lp_trial_most_rows(option->law) / spec->exits.question_rows));
  for (size_t i = 0; i < spec->classes.count; i++) {
    const double *limit = spec->classes.data[i].limit_s[LP_FLEET_TPOT],
                 user_s = lp_fleet_user_of(all, option, i)->token_s;
    for (int k = 0; k < LP_FLEET_QUANTILES && classes >> i & 1; k++)
      while (limit[k] > 0 && sessions > 0 &&
             asks * (lp_trial_pass_s(option->law, (double)sessions, 0) + user_s) > limit[k])
        sessions--;
  }
  return sessions;
}

static int by_answer(const void *a, const void *b) {
  const double x = ((const lp_fleet_length *)a)->answer, y = ((const lp_fleet_length *)b)->answer;
  return (x < y) - (x > y);
}

static int by_prompt(const void *a, const void *b) {
  const double x = ((const lp_fleet_length *)a)->prompt, y = ((const lp_fleet_length *)b)->prompt;
  return (x > y) - (x < y);
}

lp_fleet_means lp_fleet_means_of(const lp_fleet_spec *spec) {
  const size_t count = spec->lengths.count;
  lp_fleet_means out = {0};
  double longer = 0; /* the share of the requests with more than one token */
  lp_fleet_length *sorted = LP_NEW_ARRAY(spec->arena, lp_fleet_length, count);
  memcpy(sorted, spec->lengths.data, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, by_answer);
  for (size_t i = 0; i < count; i++) {
    out.prompt += sorted[i].weight * sorted[i].prompt;
    out.answer += sorted[i].weight * sorted[i].answer;
    if (sorted[i].answer > 1) longer += sorted[i].weight;
  }
  for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
    double late = (1 - lp_fleet_quantiles[k]) * longer, tokens = 0; /* of the longest answers */
    for (size_t i = 0; i < count && late > 0; i++) {
      tokens += fmin(late, sorted[i].weight) * (sorted[i].answer - 1);
      late -= sorted[i].weight;
    }
    out.kept[k] = out.answer > 1 ? fmax(0, 1 - tokens / (out.answer - 1)) : 0;
  }
  qsort(sorted, count, sizeof *sorted, by_prompt);
  out.longest = sorted[count - 1].prompt;
  for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
    size_t i = 0;
    for (double share = sorted[0].weight; i + 1 < count && share < lp_fleet_quantiles[k] * (1 - 1e-12);)
      share += sorted[++i].weight;
    out.on_time[k] = sorted[i].prompt;
  }
  return out;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* The nearest miss of a class. */
typedef struct {
  lp_fleet_strain strain;
  double value_s;
  const char *where;
} miss;

static void note_miss(const lp_fleet_class *class, const lp_fleet_times *times, const char *where, miss *nearest) {
  const lp_fleet_strain strain = lp_fleet_strain_of(class, times);
  if (nearest->where && strain.ratio >= nearest->strain.ratio) return;
  *nearest = (miss){strain, times->value_s[strain.figure][strain.quantile], where};
}

static void alone_on(const lp_fleet_spec *spec, const lp_load_user *user, const lp_load_law *law, lp_fleet_times *out) {
  const size_t count = spec->lengths.count, stride = law && count > SAMPLED ? count / SAMPLED : 1;
  lp_trial_alone(spec->lengths.data, count, stride, user, law, out);
}

static void add(lp_fleet_candidates *all, int32_t kind, int32_t region, int64_t cut, bool exits,
                const lp_load_law *law) {
  for (int32_t i = 0; i < all->options; i++)
    if (all->option[i].kind == kind && all->option[i].cut == cut && all->option[i].exits == exits) return;
  all->option[all->options++] =
      (lp_fleet_option){.kind = kind, .region = region, .cut = cut, .exits = exits, .law = &law[cut]};
}

/* Tells whether a layer of the class that is private runs in the cloud. */
static bool has_left(const lp_fleet_class *class, int64_t cut) {
  return class->private_layers > 0 && cut - 1 < class->private_layers;
}

/* How near the limits of a class are on an idle machine; INFINITY: it does not fit, or a private layer leaves. */
static double ratio_of(const lp_fleet_spec *spec, int32_t class, int32_t kind, const lp_load_user *user, int64_t cut,
                       const lp_load_law *law, miss *nearest) {
  const lp_fleet_class *one = &spec->classes.data[class];
  lp_fleet_times times;
  if (law[cut].sessions == 0 || !user->fits || has_left(one, cut)) return INFINITY;
  alone_on(spec, user, &law[cut], &times);
  note_miss(one, &times, spec->kinds.data[kind].name, nearest);
  return lp_fleet_strain_of(one, &times).ratio;
}

/* Adds the cuts of a class on a kind: all in the cloud, the deepest ones that leave a share of the limits, and that at
 * the exit. */
static void add_cuts(const lp_fleet_spec *spec, int32_t class, int32_t kind, const lp_load_law *law,
                     lp_fleet_candidates *all, miss *nearest) {
  const int64_t exit = spec->exits.layer + 1;
  const int32_t region = spec->kinds.data[kind].region;
  double *ratio = LP_NEW_ARRAY(spec->arena, double, all->cuts);
  for (int64_t cut = 0; cut < all->cuts - 1; cut++)
    ratio[cut] = ratio_of(spec, class, kind, &all->user[region][class][cut], cut, law, nearest);
  if (ratio[0] <= 1) add(all, kind, region, 0, false, law);
  if (exit > 1 && ratio_of(spec, class, kind, &all->with_exit[region][class], exit, law, nearest) <= 1)
    add(all, kind, region, exit, true, law);
  for (size_t i = 0; i < LP_COUNT(idle_shares); i++) {
    int64_t cut = all->cuts - 2;
    while (cut > 0 && ratio[cut] > idle_shares[i])
      cut--;
    if (cut > 0) add(all, kind, region, cut, false, law);
  }
}

static double device_j(const lp_fleet_spec *spec, size_t class, const lp_load_user *user) {
  const double watts = spec->classes.data[class].device->figure[LP_HW_POWER];
  return watts > 0 ? watts * lp_trial_device_s(spec->lengths.data, spec->lengths.count, user) : NAN;
}

static void mark_classes(const lp_fleet_spec *spec, lp_fleet_candidates *all) {
  LP_FOR_EACH(lp_fleet_option, option, all->option, all->options) {
    for (size_t class = 0; class < spec->classes.count; class ++) {
      const lp_load_user *user = lp_fleet_user_of(all, option, class);
      lp_fleet_times times;
      if (!user->fits || has_left(&spec->classes.data[class], option->cut) ||
          lp_fleet_sessions(spec, all, option, 1u << class) == 0)
        continue;
      alone_on(spec, user, option->law, &times);
      if (lp_fleet_strain_of(&spec->classes.data[class], &times).ratio > 1) continue;
      option->serves |= 1u << class;
      option->device_j[class] = device_j(spec, class, user);
    }
  }
}

static lp_status check_class(const lp_fleet_spec *spec, const lp_fleet_candidates *all, size_t class,
                             const miss *nearest, lp_diag *diag) {
  char found[32], limit[32];
  bool any = all->alone >> class & 1;
  for (int32_t i = 0; i < all->options; i++)
    any = any || all->option[i].serves >> class & 1;
  if (any) return LP_OK;
  const lp_fleet_class *one = &spec->classes.data[class];
  if (!nearest->where)
    return lp_error_as(LP_INFEASIBLE, diag, LP_LOC_FILE(spec->path),
                       "no machine's memory holds the model for class '%s', and its device does not either; add a "
                       "larger machine, or smaller 'dtypes'",
                       one->name);
  const bool keeps = nearest->strain.ratio <= 1;
  return lp_error_as(LP_INFEASIBLE, diag, LP_LOC_FILE(spec->path),
                     "no candidate %s the limits of class '%s'%s: at best, %s %s is %s on %s, %s %s",
                     keeps ? "leaves room for a queue within" : "keeps", one->name,
                     keeps ? "" : ", even without other requests", lp_fleet_figure_names[nearest->strain.figure],
                     lp_fleet_quantile_names[nearest->strain.quantile], lp_format_ms(1e3 * nearest->value_s, found),
                     nearest->where, keeps ? "and the limit" : "over",
                     lp_format_ms(1e3 * one->limit_s[nearest->strain.figure][nearest->strain.quantile], limit));
}

static void find_users(const lp_fleet_spec *spec, const lp_load *load, lp_compile_request *request,
                       const lp_load_lengths *lengths, int32_t region, lp_arena *arena, lp_fleet_candidates *out) {
  const lp_fleet_region to = lp_fleet_region_of(spec, region);
  for (size_t i = 0; i < spec->classes.count; i++) {
    lp_load_user *user = out->user[region][i] = LP_NEW_ARRAY(arena, lp_load_user, out->cuts);
    request->device = spec->classes.data[i].device, request->link = to.link[i];
    lp_load_users(load, request, lengths, user);
    if (spec->exits.layer > 0)
      out->with_exit[region][i] =
          lp_load_user_with_exit(user, out->cuts, spec->exits.layer, spec->exits.asks, spec->exits.question_rows);
  }
}

lp_status lp_fleet_candidates_find(const lp_fleet_spec *spec, lp_module *module, lp_arena *arena,
                                   lp_fleet_candidates *out, lp_diag *diag) {
  const lp_load_lengths lengths = lp_fleet_lengths(spec);
  lp_compile_request request = lp_fleet_request(spec);
  lp_load *load;
  miss nearest[LP_FLEET_MOST_CLASSES] = {0};
  *out = (lp_fleet_candidates){0};
  LP_TRY(lp_load_create(module, &request, arena, &load, diag));
  out->cuts = lp_load_cuts(load);
  LP_FOR_VEC(const lp_fleet_class, class, &spec->classes)
    if (class->private_layers > out->cuts - 3)
      return lp_error(diag, class->loc, "class '%s' has %" PRId64 " private layers; the model has %" PRId64,
                      class->name, class->private_layers, out->cuts - 3);
  if (spec->exits.layer > out->cuts - 4)
    return lp_error(diag, spec->exits_loc,
                    "the exit is after layer %" PRId64 " of %" PRId64 ", and layers after it are wanted",
                    spec->exits.layer, out->cuts - 3);
  out->option =
      LP_NEW_ARRAY(arena, lp_fleet_option, spec->kinds.count * spec->classes.count * (2 + LP_COUNT(idle_shares)));
  for (int32_t region = 0; region == 0 || region < (int32_t)spec->regions.count; region++)
    find_users(spec, load, &request, &lengths, region, arena, out);
  for (size_t i = 0; i < spec->classes.count; i++) {
    const lp_fleet_class *class = &spec->classes.data[i];
    const lp_load_user *whole = &out->user[0][i][out->cuts - 1]; /* no link has a part in it */
    if (!whole->fits) continue;
    alone_on(spec, whole, NULL, &out->alone_times[i]);
    note_miss(class, &out->alone_times[i], "the device alone", &nearest[i]);
    if (lp_fleet_strain_of(class, &out->alone_times[i]).ratio > 1) continue;
    out->alone |= 1u << i;
    out->alone_j[i] = device_j(spec, i, whole);
  }
  for (size_t kind = 0; kind < spec->kinds.count; kind++) {
    lp_load_law *law = LP_NEW_ARRAY(arena, lp_load_law, out->cuts);
    request.device = request.cloud = spec->kinds.data[kind].machine;
    lp_load_laws(load, &request, &lengths, law);
    for (size_t i = 0; i < spec->classes.count; i++)
      add_cuts(spec, (int32_t)i, (int32_t)kind, law, out, &nearest[i]);
  }
  out->means = lp_fleet_means_of(spec);
  mark_classes(spec, out);
  for (size_t i = 0; i < spec->classes.count; i++)
    LP_TRY(check_class(spec, out, i, &nearest[i], diag));
  return LP_OK;
}
