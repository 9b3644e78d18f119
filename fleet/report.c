/* Writes a fleet as text, JSON, CSV and a page. */
#include "base/page/page.h"
#include "base/path.h"
#include "base/units.h"
#include "fleet/candidates.h"
#include "fleet/certificate.h"

#include <math.h>

extern const char lp_fleet_page_js[];

/* ---- parts that all formats have --------------------------------------------------------------------------------- */

static const char *runs(const lp_fleet_spec *spec, const lp_fleet_plan *plan, const lp_fleet_place *place) {
  if (place->pool < 0) return "device";
  if (!plan->pool[place->pool].exits) return plan->pool[place->pool].cut == 0 ? "cloud" : "split";
  return spec->exits.drafts > 0 ? "drafts" : "exits";
}

/* The layers on the device. Cut 1 leaves the embedding there. */
static int64_t layers(const lp_fleet_plan *plan, const lp_fleet_place *place) {
  const int64_t all = plan->cuts - 3, cut = place->pool < 0 ? all : plan->pool[place->pool].cut - 1;
  return cut < 0 ? 0 : cut > all ? all : cut;
}

/* The share of the requests that need no cloud. */
static double device_share(const lp_fleet_spec *spec, const lp_fleet_plan *plan) {
  double sum = 0;
  for (size_t i = 0; i < spec->classes.count; i++)
    if (plan->place[i].pool < 0) sum += spec->classes.data[i].share;
  return sum;
}

static double gap(const lp_fleet_plan *plan) {
  return plan->usd_per_month > 0 ? fmax(0, 1 - plan->bound / plan->usd_per_month) : 0;
}

/* The region of a pool; `place` on the device: no machine's. */
static lp_fleet_region region_of(const lp_fleet_spec *spec, const lp_fleet_plan *plan, const lp_fleet_place *place) {
  lp_fleet_region none = {.price = 1};
  for (size_t i = 0; i < spec->classes.count; i++)
    none.link_name[i] = spec->classes.data[i].link_name;
  return place->pool < 0 ? none : lp_fleet_region_of(spec, spec->kinds.data[plan->pool[place->pool].kind].region);
}

/* " in eu". */
static void put_region(const lp_fleet_spec *spec, const lp_fleet_pool *pool, lp_buf *out) {
  const lp_fleet_region region = lp_fleet_region_of(spec, spec->kinds.data[pool->kind].region);
  if (region.name) lp_buf_printf(out, " in %s", region.name);
}

/* What costs are told of: a user, or a request/s in the busiest hour. */
static double per_one(const lp_fleet_spec *spec, double usd_per_rate) {
  return spec->users > 0 ? usd_per_rate * spec->rate / (double)spec->users : usd_per_rate;
}

/* kWh a month. NAN: the power of a machine is not known. */
typedef struct {
  double passes, idle, devices; /* idle: of machines, also while they start and drain */
} energy;

static energy energy_of(const lp_fleet_spec *spec, const lp_fleet_plan *plan) {
  static const double kwh = (double)LP_FLEET_HOURS / 1000;
  const int32_t hours = lp_fleet_hours(&spec->day);
  energy out = {0};
  LP_FOR_EACH(const lp_fleet_pool, pool, plan->pool, plan->pools) {
    const lp_machine *machine = spec->kinds.data[pool->kind].machine;
    const double watts = machine->figure[LP_HW_POWER], idle = machine->figure[LP_HW_IDLE_POWER];
    double busy = 0;
    for (int32_t h = 0; h < hours; h++)
      busy += pool->busy * (double)pool->by_hour[h] / hours;
    out.passes += kwh * (watts > 0 ? busy * watts : NAN);
    out.idle += kwh * (idle > 0 ? (pool->rented - busy) * idle : NAN);
  }
  for (size_t i = 0; i < spec->classes.count; i++) {
    const lp_fleet_place *place = &plan->place[i];
    const double *joules =
        place->pool < 0 ? plan->all->alone_j : plan->all->option[plan->pool[place->pool].option].device_j;
    out.devices += kwh * spec->classes.data[i].share * spec->mean_rate * joules[i];
  }
  return out;
}

static void write_energy(const lp_fleet_spec *spec, const lp_fleet_plan *plan, lp_buf *out) {
  const energy all = energy_of(spec, plan);
  if (plan->pools > 0 && all.passes > 0) lp_buf_printf(out, "passes take %.4g kWh a month", all.passes);
  if (plan->pools > 0 && all.passes > 0 && !isnan(all.idle)) lp_buf_printf(out, ", idle machines %.4g kWh", all.idle);
  if (plan->pools > 0 && all.passes > 0) lp_buf_puts(out, "\n");
  if (all.devices > 0) lp_buf_printf(out, "devices take %.4g kWh a month in their passes\n", all.devices);
  if (spec->wants_energy)
    lp_buf_printf(out, "%.6g kWh a month in all; no fleet of the space takes less than %.6g kWh\n",
                  all.passes + all.idle + all.devices, plan->kwh_bound);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void write_class(const lp_fleet_spec *spec, const lp_fleet_plan *plan, size_t index, lp_buf *out) {
  const lp_fleet_class *class = &spec->classes.data[index];
  const lp_fleet_place *place = &plan->place[index];
  lp_buf_printf(out, "%s: %.3g %% of requests, %s over %s: ", class->name, 100 * class->share, class->device_name,
                region_of(spec, plan, place).link_name[index]);
  if (place->pool < 0)
    lp_buf_puts(out, "all on the device\n");
  else if (plan->pool[place->pool].cut == 0)
    lp_buf_printf(out, "all in the cloud, on %s\n", spec->kinds.data[plan->pool[place->pool].kind].name);
  else
    lp_buf_printf(out, "%s, %" PRId64 " of %" PRId64 " layers on the device, the rest on %s\n",
                  lp_streq(runs(spec, plan, place), "exits") ? "an exit" : runs(spec, plan, place), layers(plan, place),
                  plan->cuts - 3, spec->kinds.data[plan->pool[place->pool].kind].name);
  for (int i = 0; i < LP_FLEET_FIGURES; i++) {
    lp_buf_printf(out, "  %-7s", lp_fleet_figure_names[i]);
    for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
      char value[32], limit[32];
      lp_buf_printf(out, " %s %s", lp_fleet_quantile_names[k], lp_format_ms(1e3 * place->times.value_s[i][k], value));
      if (class->limit_s[i][k] > 0) lp_buf_printf(out, " (limit %s)", lp_format_ms(1e3 * class->limit_s[i][k], limit));
      lp_buf_puts(out, k + 1 < LP_FLEET_QUANTILES ? "," : "\n");
    }
  }
}

static void write_hours(const lp_fleet_spec *spec, const lp_fleet_pool *pool, lp_buf *out) {
  if (!spec->day.given) return;
  lp_buf_puts(out, "  machines by hour:");
  for (int h = 0; h < LP_SIM_HOURS; h++)
    lp_buf_printf(out, " %" PRId64, pool->by_hour[h] + pool->count - pool->needed);
  lp_buf_printf(out, "; %" PRId64 " of them stay\n", pool->stay);
}

static void write_neighbour(const lp_fleet_spec *spec, const lp_fleet_plan *plan, const char *which,
                            const lp_fleet_neighbour *one, lp_buf *out) {
  char value[32], limit[32], now[32];
  if (one->pool < 0) return;
  const lp_fleet_class *class = &spec->classes.data[one->class];
  lp_buf_printf(out, "next %s: %" PRId64 " x %s", which, one->count, spec->kinds.data[plan->pool[one->pool].kind].name);
  put_region(spec, &plan->pool[one->pool], out);
  lp_buf_printf(out, ", USD %.2f a month: %s %s of %s %s, now %s, limit %s\n", one->usd_per_month,
                lp_fleet_figure_names[one->figure], lp_fleet_quantile_names[one->quantile], class->name,
                lp_format_ms(1e3 * one->value_s, value),
                lp_format_ms(1e3 * plan->place[one->class].times.value_s[one->figure][one->quantile], now),
                lp_format_ms(1e3 * class->limit_s[one->figure][one->quantile], limit));
}

static void write_text(const lp_fleet_spec *spec, const lp_fleet_plan *plan, lp_buf *out) {
  lp_buf_printf(out, "%.6g requests/s in the busiest hour, %.6g in the mean\n\n", spec->rate, spec->mean_rate);
  for (size_t i = 0; i < spec->classes.count; i++)
    write_class(spec, plan, i, out);
  lp_buf_puts(out, "\n");
  LP_FOR_EACH(const lp_fleet_pool, pool, plan->pool, plan->pools) {
    lp_buf_printf(out, "%" PRId64 " x %s", pool->count, spec->kinds.data[pool->kind].name);
    put_region(spec, pool, out);
    if (spec->spare > 0) lp_buf_printf(out, ", %" PRId64 " of them spare", spec->spare);
    if (pool->spot > 0)
      lp_buf_printf(out, ", %" PRId64 " of the spot market, so that %.6g %% of the time %" PRId64 " are there",
                    pool->spot, 100 * spec->availability, pool->needed + spec->spare);
    lp_buf_printf(out,
                  ": at most %" PRId64
                  " sessions at a time each, passes up to %g times as long for prompts, which %s, busy %.3g %% of the "
                  "time with %.3g %% of what full passes carry, USD %.2f a month; %s\n",
                  pool->sessions, pool->policy.stretch,
                  pool->policy.turn == LP_PROMPT_WHOLE ? "run one after the other" : "take turns", 100 * pool->busy,
                  100 * pool->utilisation, pool->usd_per_month, pool->binds);
    write_hours(spec, pool, out);
  }
  lp_buf_printf(out, "USD %.2f a month; no fleet of the space costs less than USD %.2f, gap %.3g %%%s\n",
                plan->usd_per_month, plan->bound, 100 * gap(plan), plan->complete ? "" : "; the search was cut short");
  if (spec->wants_latency)
    lp_buf_printf(out, "all limits are %.3g times those of the file: tighter ones cost more than USD %.2f a month\n",
                  spec->limits_scale, spec->budget);
  write_energy(spec, plan, out);
  write_neighbour(spec, plan, "cheaper", &plan->cheaper, out);
  write_neighbour(spec, plan, "faster", &plan->faster, out);
  lp_buf_printf(out, "a %s costs USD %.4g a month in the mean, one more at least USD %.4g\n",
                spec->users > 0 ? "user" : "request/s", per_one(spec, plan->mean_usd_per_rate),
                per_one(spec, plan->least_usd_per_rate));
  lp_buf_printf(out, "%.3g %% of the requests need no cloud; %" PRId64 " simulations, %" PRId64 " of them refuted\n",
                100 * device_share(spec, plan), plan->trials, plan->refuted);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_times(lp_json_writer *w, const char *key, const double value_s[LP_FLEET_FIGURES][LP_FLEET_QUANTILES]) {
  static const char *const names[LP_FLEET_FIGURES] = {"ttft_ms", "tpot_ms", "answer_ms"};
  lp_json_put_object(w, key);
  for (int i = 0; i < LP_FLEET_FIGURES; i++) {
    lp_json_put_flat_object(w, names[i]);
    for (int k = 0; k < LP_FLEET_QUANTILES; k++) /* a limit of 0 is none */
      lp_json_put_number(w, lp_fleet_quantile_names[k], value_s[i][k] > 0 ? 1e3 * value_s[i][k] : NAN);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

/* What a simulation of the fleet needs beside the certificate (runtime/simulate/fleet.h). */

static void put_hours(lp_json_writer *w, const lp_fleet_spec *spec) {
  double rate[LP_SIM_HOURS];
  if (!spec->day.given) {
    lp_json_put_null(w, "by_hour");
    return;
  }
  for (int h = 0; h < LP_SIM_HOURS; h++)
    rate[h] = spec->rate * spec->day.hour[h];
  lp_json_put_object(w, "by_hour");
  lp_json_put_numbers(w, "rate_per_s", rate, LP_SIM_HOURS);
  lp_json_put_number(w, "cold_start_s", spec->day.cold_s);
  lp_json_put_number(w, "drain_s", spec->day.drain_s);
  lp_json_put_end(w);
}

static void put_lengths(lp_json_writer *w, const lp_fleet_spec *spec) {
  lp_json_put_lines(w, "lengths");
  LP_FOR_VEC(const lp_fleet_length, one, &spec->lengths)
    lp_json_put_numbers(w, NULL, (const double[]){one->prompt, one->answer, one->weight}, 3);
  lp_json_put_end(w);
}

static void put_ms(lp_json_writer *w, const char *key, const double seconds[LP_LOAD_KNOTS]) {
  double ms[LP_LOAD_KNOTS];
  for (int i = 0; i < LP_LOAD_KNOTS; i++)
    ms[i] = 1e3 * seconds[i];
  lp_json_put_numbers(w, key, ms, LP_LOAD_KNOTS);
}

static void put_power(lp_json_writer *w, const lp_machine *machine) {
  const double watts = machine->figure[LP_HW_POWER], idle = machine->figure[LP_HW_IDLE_POWER];
  lp_json_put_number(w, "power_w", watts > 0 ? watts : NAN);
  lp_json_put_number(w, "idle_power_w", idle > 0 ? idle : NAN);
}

static void put_user(lp_json_writer *w, const lp_load_user *user, const lp_machine *device) {
  lp_json_put_object(w, "user");
  lp_json_put_bool(w, "streams", user->streams);
  lp_json_put_numbers(w, "prompt", user->prompt, LP_LOAD_KNOTS);
  put_ms(w, "first_ms", user->first_s);
  lp_json_put_number(w, "token_ms", 1e3 * user->token_s);
  lp_json_put_number(w, "asks", user->asks);
  lp_json_put_number(w, "question_rows", user->question_rows);
  put_ms(w, "device_first_ms", user->device_first_s);
  lp_json_put_number(w, "device_token_ms", 1e3 * user->device_token_s);
  put_power(w, device);
  lp_json_put_end(w);
}

static void put_classes(lp_json_writer *w, const lp_fleet_spec *spec, const lp_fleet_plan *plan) {
  lp_json_put_array(w, "classes");
  for (size_t i = 0; i < spec->classes.count; i++) {
    const lp_fleet_class *class = &spec->classes.data[i];
    const lp_fleet_place *place = &plan->place[i];
    lp_json_put_object(w, NULL);
    lp_json_put_text(w, "name", class->name);
    lp_json_put_number(w, "share", class->share);
    lp_json_put_text(w, "device", class->device_name);
    lp_json_put_text(w, "link", region_of(spec, plan, place).link_name[i]);
    lp_json_put_text(w, "runs", runs(spec, plan, place));
    lp_json_put_integer(w, "device_layers", layers(plan, place));
    lp_json_put_integer(w, "private_layers", class->private_layers);
    if (place->pool < 0)
      lp_json_put_null(w, "pool");
    else
      lp_json_put_integer(w, "pool", place->pool);
    put_times(w, "times", place->times.value_s);
    put_times(w, "limits", class->limit_s);
    const lp_load_user *whole = &plan->all->user[0][i][plan->cuts - 1];
    put_user(
        w, place->pool < 0 ? whole : lp_fleet_user_of(plan->all, &plan->all->option[plan->pool[place->pool].option], i),
        class->device);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

static void put_pools(lp_json_writer *w, const lp_fleet_spec *spec, const lp_fleet_plan *plan) {
  lp_json_put_array(w, "pools");
  LP_FOR_EACH(const lp_fleet_pool, pool, plan->pool, plan->pools) {
    lp_json_put_object(w, NULL);
    lp_json_put_text(w, "machine", spec->kinds.data[pool->kind].name);
    lp_json_put_text(w, "region", lp_fleet_region_of(spec, spec->kinds.data[pool->kind].region).name);
    lp_json_put_integer(w, "option", pool->option);
    lp_json_put_integer(w, "count", pool->count);
    lp_json_put_integer(w, "needed", pool->needed);
    lp_json_put_integer(w, "stay", pool->stay);
    lp_json_put_integer(w, "spot", pool->spot);
    lp_json_put_flat_array(w, "by_hour");
    for (int32_t h = 0; h < lp_fleet_hours(&spec->day); h++)
      lp_json_put_integer(w, NULL, pool->by_hour[h]);
    lp_json_put_end(w);
    lp_json_put_integer(w, "spare", spec->spare);
    lp_json_put_integer(w, "sessions", pool->sessions);
    lp_json_put_number(w, "prompt_stretch", pool->policy.stretch);
    lp_json_put_integer(w, "prompt_turn", pool->policy.turn);
    lp_json_put_number(w, "busy", pool->busy);
    lp_json_put_number(w, "utilisation", pool->utilisation);
    lp_json_put_number(w, "usd_per_hour", spec->kinds.data[pool->kind].usd_per_hour);
    lp_json_put_number(w, "usd_per_month", pool->usd_per_month);
    lp_json_put_number(w, "weight_bytes", pool->weight_bytes);
    lp_json_put_number(w, "session_bytes", pool->session_bytes);
    lp_json_put_text(w, "binds", pool->binds);
    put_power(w, spec->kinds.data[pool->kind].machine);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

/* What a fleet costs, and the limit that is nearest or furthest exceeded. */
static void put_figure(lp_json_writer *w, const lp_fleet_spec *spec, const lp_fleet_neighbour *one) {
  lp_json_put_number(w, "usd_per_month", one->usd_per_month);
  lp_json_put_text(w, "class", spec->classes.data[one->class].name);
  lp_json_put_text(w, "figure", lp_fleet_figure_names[one->figure]);
  lp_json_put_text(w, "quantile", lp_fleet_quantile_names[one->quantile]);
  lp_json_put_number(w, "value_ms", 1e3 * one->value_s);
  lp_json_put_number(w, "limit_ms", 1e3 * spec->classes.data[one->class].limit_s[one->figure][one->quantile]);
}

static void put_neighbour(lp_json_writer *w, const char *key, const lp_fleet_spec *spec, const lp_fleet_plan *plan,
                          const lp_fleet_neighbour *one) {
  if (one->pool < 0) {
    lp_json_put_null(w, key);
    return;
  }
  lp_json_put_object(w, key);
  lp_json_put_integer(w, "pool", one->pool);
  lp_json_put_integer(w, "count", one->count);
  put_figure(w, spec, one);
  lp_json_put_number(w, "now_ms", 1e3 * plan->place[one->class].times.value_s[one->figure][one->quantile]);
  lp_json_put_end(w);
}

static void put_neighbours(lp_json_writer *w, const lp_fleet_spec *spec, const lp_fleet_plan *plan) {
  lp_json_put_object(w, "neighbours");
  put_neighbour(w, "cheaper", spec, plan, &plan->cheaper);
  put_neighbour(w, "faster", spec, plan, &plan->faster);
  lp_json_put_array(w, "front");
  for (int32_t i = 0; i < plan->fronts; i++) {
    const lp_fleet_neighbour *one = &plan->front[i];
    lp_json_put_object(w, NULL);
    lp_json_put_integer(w, "machines", one->machines);
    put_figure(w, spec, one);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
  lp_json_put_end(w);
  lp_json_put_object(w, "one_more");
  lp_json_put_text(w, "of", spec->users > 0 ? "user" : "request/s");
  lp_json_put_number(w, "mean_usd_per_month", per_one(spec, plan->mean_usd_per_rate));
  lp_json_put_number(w, "least_usd_per_month", per_one(spec, plan->least_usd_per_rate));
  lp_json_put_end(w);
}

static int64_t machines(const lp_fleet_plan *plan) {
  int64_t count = 0;
  for (int32_t i = 0; i < plan->pools; i++)
    count += plan->pool[i].count;
  return count;
}

/* The digest of a report that still lacks it. */
static void put_digest(lp_json_writer *w) {
  lp_json_document *document = NULL;
  char text[20] = "";
  const size_t size = w->out->size;
  lp_buf_puts(w->out, "}");
  if (lp_json_parse("report", lp_buf_text(w->out), w->out->size, 0, &document, NULL) == LP_OK) {
    const lp_json root = lp_json_root("report", document);
    (void)snprintf(text, sizeof text, "%016" PRIx64, lp_json_digest(&root, "digest"));
  }
  lp_json_free(document);
  w->out->size = size;
  lp_json_put_text(w, "digest", text);
}

static void write_json(const lp_fleet_spec *spec, const lp_fleet_plan *plan, lp_buf *out) {
  lp_json_writer w =
      lp_json_document_begin(out, (lp_json_style){.indent = 2, .digits = 9, .marks_reals = true}, "llmpart.fleet/1");
  lp_json_put_text(&w, "spec", spec->path);
  lp_json_put_number(&w, "rate_per_s", spec->rate);
  lp_json_put_number(&w, "mean_rate_per_s", spec->mean_rate);
  put_hours(&w, spec);
  put_lengths(&w, spec);
  put_classes(&w, spec, plan);
  put_pools(&w, spec, plan);
  lp_json_put_object(&w, "fleet");
  lp_json_put_number(&w, "usd_per_month", plan->usd_per_month);
  lp_json_put_number(&w, "lower_bound", plan->bound);
  lp_json_put_number(&w, "gap", gap(plan));
  lp_json_put_integer(&w, "machines", machines(plan));
  lp_json_put_number(&w, "device_share", device_share(spec, plan));
  const energy all = energy_of(spec, plan);
  lp_json_put_number(&w, "kwh_per_month", all.passes);
  lp_json_put_number(&w, "idle_kwh_per_month", all.idle);
  lp_json_put_number(&w, "device_kwh_per_month", all.devices);
  lp_json_put_number(&w, "kwh_lower_bound", plan->kwh_bound);
  lp_json_put_number(&w, "limits_scale", spec->limits_scale);
  lp_json_put_end(&w);
  put_neighbours(&w, spec, plan);
  lp_json_put_object(&w, "search");
  lp_json_put_bool(&w, "complete", plan->complete);
  lp_json_put_integer(&w, "simulations", plan->trials);
  lp_json_put_integer(&w, "refuted", plan->refuted);
  lp_json_put_integer(&w, "requests", spec->requests);
  lp_json_put_integer(&w, "seed", spec->seed);
  lp_json_put_end(&w);
  lp_fleet_certificate_put(spec, plan, &w);
  put_digest(&w);
  lp_json_document_end(&w);
}

/* ---- CSV --------------------------------------------------------------------------------------------------------- */

/* A name as a field: a comma, as in "l4,price=1", would end it. */
static void put_name(const char *name, lp_buf *out) {
  for (; *name; name++)
    lp_buf_printf(out, "%c", *name == ',' ? ';' : *name);
  lp_buf_puts(out, ",");
}

/* A row per class, with its pool. */
static void write_csv(const lp_fleet_spec *spec, const lp_fleet_plan *plan, lp_buf *out) {
  lp_buf_puts(
      out, "class,device,link,machine,runs,share,device_layers,pool,machines,sessions,busy,utilisation,usd_per_month");
  for (int i = 0; i < LP_FLEET_FIGURES; i++)
    for (int k = 0; k < LP_FLEET_QUANTILES; k++)
      lp_buf_printf(out, ",%s_%s_ms", lp_fleet_figure_names[i], lp_fleet_quantile_names[k]);
  lp_buf_puts(out, "\n");
  for (size_t i = 0; i < spec->classes.count; i++) {
    const lp_fleet_class *class = &spec->classes.data[i];
    const lp_fleet_place *place = &plan->place[i];
    const lp_fleet_pool *pool = place->pool < 0 ? NULL : &plan->pool[place->pool];
    put_name(class->name, out);
    put_name(class->device_name, out);
    put_name(region_of(spec, plan, place).link_name[i], out);
    put_name(pool ? spec->kinds.data[pool->kind].name : "", out);
    lp_buf_printf(out, "%s,%.9g,%" PRId64 ",", runs(spec, plan, place), class->share, layers(plan, place));
    if (pool)
      lp_buf_printf(out, "%" PRId32 ",%" PRId64 ",%" PRId64 ",%.9g,%.9g,%.9g", place->pool, pool->count, pool->sessions,
                    pool->busy, pool->utilisation, pool->usd_per_month);
    else
      lp_buf_puts(out, ",,,,,");
    for (int k = 0; k < LP_FLEET_FIGURES * LP_FLEET_QUANTILES; k++)
      lp_buf_printf(out, ",%.9g", 1e3 * place->times.value_s[k / LP_FLEET_QUANTILES][k % LP_FLEET_QUANTILES]);
    lp_buf_puts(out, "\n");
  }
}

static void write_html(const lp_fleet_spec *spec, const lp_fleet_plan *plan, lp_buf *out) {
  lp_buf data = {0}, title = {0}, text = {0};
  write_json(spec, plan, &data);
  write_text(spec, plan, &text);
  lp_buf_printf(&title, "%s: llmpart fleet", lp_path_base(spec->path));
  lp_page_write(&(lp_page){&title, &data, &text, lp_fleet_page_js}, out);
}

void lp_fleet_write(const lp_fleet_spec *spec, const lp_fleet_plan *plan, const char *format, lp_buf *out) {
  if (lp_streq(format, "json"))
    write_json(spec, plan, out);
  else if (lp_streq(format, "csv"))
    write_csv(spec, plan, out);
  else if (lp_streq(format, "html"))
    write_html(spec, plan, out);
  else
    write_text(spec, plan, out);
}
