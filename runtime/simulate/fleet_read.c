/* Reads the report of a fleet, and the scenario of its simulation: see fleet.h. */
#include <math.h>

#include "base/file.h"
#include "base/json/reader.h"
#include "base/yaml/yaml.h"
#include "runtime/simulate/fleet.h"

enum {
  MOST_KNOTS = 64,
  MOST_LENGTHS = 10000000,
  MOST_TOKENS = 1 << 24,
  MOST_MACHINES = 100000,
  USUAL_REQUESTS = 100000,
  MOST_REQUESTS = 1000000000
};

/* ---- the report -------------------------------------------------------------------------------------------------- */

static lp_status read_number(const lp_json *of, const char *key, double least, double most, double *out,
                             lp_diag *diag) {
  return lp_json_number(LP_MEMBER(of, key), least, most, out, diag);
}

/* The same, of a figure that may be unknown. */
static lp_status read_known(const lp_json *of, const char *key, double *out, lp_diag *diag) {
  const lp_json at = lp_json_member(of, key);
  *out = NAN;
  return lp_json_is_given(&at) ? lp_json_number(&at, 0, 1e9, out, diag) : LP_OK;
}

static lp_status read_text(const lp_json *of, const char *key, lp_arena *arena, const char **out, lp_diag *diag) {
  LP_TRY(lp_json_text(LP_MEMBER(of, key), out, diag));
  *out = lp_arena_strdup(arena, *out);
  return LP_OK;
}

static lp_status read_list(const lp_json *of, const char *key, int32_t most, int32_t *count, lp_diag *diag) {
  const lp_json at = lp_json_member(of, key);
  LP_TRY(lp_json_array(&at, diag));
  if (lp_json_count(&at) > (size_t)most)
    return lp_json_error(&at, diag, "has %zu items; at most %d are allowed", lp_json_count(&at), most);
  *count = (int32_t)lp_json_count(&at);
  return LP_OK;
}

/* Numbers from `least` on; `count` of them, or, where that is 0, as many as there are, from 2 on. With `ascending` each
 * is larger than the one before. Those of a key in ms become s. */
static lp_status read_numbers(const lp_json *of, const char *key, double least, bool ascending, int32_t *count,
                              lp_arena *arena, const double **out, lp_diag *diag) {
  const lp_json list = lp_json_member(of, key);
  const double unit = lp_has_suffix(key, "ms") ? 1e3 : 1;
  int32_t found = 0;
  LP_TRY(read_list(of, key, MOST_KNOTS, &found, diag));
  if (*count > 0 ? found != *count : found < 2)
    return lp_json_error(&list, diag, "has %d numbers; wanted %s%d", found, *count > 0 ? "" : "at least ",
                         *count > 0 ? *count : 2);
  double *number = LP_NEW_ARRAY(arena, double, found);
  for (int32_t i = 0; i < found; i++) {
    const lp_json at = lp_json_item(&list, (size_t)i);
    LP_TRY(lp_json_number(&at, least, 1e9, &number[i], diag));
    number[i] /= unit;
    if (ascending && i > 0 && number[i] <= number[i - 1])
      return lp_json_error(&at, diag, "is %g, which is not above the number before it", number[i] * unit);
  }
  *count = found;
  *out = number;
  return LP_OK;
}

static lp_status read_lengths(const lp_json *root, lp_sim_fleet *fleet, lp_diag *diag) {
  const lp_json list = lp_json_member(root, "lengths");
  int32_t count = 0;
  double sum = 0;
  LP_TRY(read_list(root, "lengths", MOST_LENGTHS, &count, diag));
  lp_fleet_length *length = LP_NEW_ARRAY(fleet->arena, lp_fleet_length, count + 1);
  for (int32_t i = 0; i < count; i++) {
    const lp_json row = lp_json_item(&list, (size_t)i);
    LP_TRY(lp_json_number(LP_ITEM(&row, 0), 1, MOST_TOKENS, &length[i].prompt, diag));
    LP_TRY(lp_json_number(LP_ITEM(&row, 1), 1, MOST_TOKENS, &length[i].answer, diag));
    LP_TRY(lp_json_number(LP_ITEM(&row, 2), 0, 1, &length[i].weight, diag));
    sum += length[i].weight;
  }
  if (sum <= 0) return lp_json_error(&list, diag, "has no request: the shares are to add up to 1");
  for (int32_t i = 0; i < count; i++)
    length[i].weight /= sum;
  fleet->length = length;
  fleet->lengths = (size_t)count;
  return LP_OK;
}

/* What the certificate has of the machines of a pool: the times of passes, and the spot market. */
static lp_status read_option(const lp_json *root, const lp_json *at, lp_arena *arena, lp_sim_fleet_pool *pool,
                             lp_diag *diag) {
  const lp_json certificate = lp_json_member(root, "certificate"), options = lp_json_member(&certificate, "options");
  int32_t which = 0;
  lp_sim_times *out = &pool->pass;
  LP_TRY(lp_json_array(&options, diag));
  LP_TRY(lp_json_i32(LP_MEMBER(at, "option"), 0, (int32_t)lp_json_count(&options) - 1, &which, diag));
  const lp_json option = lp_json_item(&options, (size_t)which), spot = lp_json_member(&option, "spot");
  LP_TRY(read_known(&option, "usd_by_hour", &pool->usd_by_hour, diag));
  if (pool->spot > 0) {
    LP_TRY(read_number(&spot, "usd_per_hour", 0, 1e9, &pool->spot_usd_per_hour, diag));
    LP_TRY(read_number(&spot, "every_s", 1, 1e10, &pool->losses.every_s, diag));
    LP_TRY(read_number(&spot, "restart_s", 0, 1e6, &pool->losses.restart_s, diag));
  }
  LP_TRY(read_numbers(&option, "rows", 1, true, &out->count, arena, (const double **)&out->rows, diag));
  LP_TRY(read_numbers(&option, "token_s", 1e-9, false, &out->count, arena, (const double **)&out->seconds, diag));
  return read_numbers(&option, "prompt_s", 1e-9, false, &out->count, arena, (const double **)&out->prompt_seconds,
                      diag);
}

static lp_status read_pool(const lp_json *root, const lp_json *at, lp_arena *arena, lp_sim_fleet_pool *pool,
                           bool by_hour, lp_diag *diag) {
  LP_TRY(read_text(at, "machine", arena, &pool->machine, diag));
  LP_TRY(lp_json_i64(LP_MEMBER(at, "count"), 1, MOST_MACHINES, &pool->count, diag));
  LP_TRY(lp_json_i64(LP_MEMBER(at, "needed"), 1, pool->count, &pool->needed, diag));
  LP_TRY(lp_json_i64(LP_MEMBER(at, "spare"), 0, pool->count - pool->needed, &pool->spare, diag));
  LP_TRY(lp_json_i64(LP_MEMBER(at, "spot"), 0, pool->count, &pool->spot, diag));
  LP_TRY(lp_json_i64(LP_MEMBER(at, "stay"), 0, pool->count - pool->spot, &pool->stay, diag));
  const lp_json hours = lp_json_member(at, "by_hour");
  for (size_t h = 0; by_hour && h < LP_SIM_HOURS; h++) {
    double needed;
    LP_TRY(lp_json_number(LP_ITEM(&hours, h), 1, (double)pool->needed, &needed, diag));
    pool->by_hour[h] = llround(needed);
  }
  LP_TRY(read_number(at, "sessions", 1, 4096, &pool->sessions, diag));
  LP_TRY(read_number(at, "prompt_stretch", 1, 1000, &pool->prompt_stretch, diag));
  LP_TRY(read_number(at, "prompt_turn", 1, 1e9, &pool->prompt_turn, diag));
  LP_TRY(read_number(at, "usd_per_hour", 0, 1e9, &pool->usd_per_hour, diag));
  LP_TRY(read_known(at, "power_w", &pool->power_w, diag));
  LP_TRY(read_known(at, "idle_power_w", &pool->idle_power_w, diag));
  return read_option(root, at, arena, pool, diag);
}

static lp_status read_limits(const lp_json *at, lp_sim_fleet_class *class, lp_diag *diag) {
  static const char *const names[LP_FLEET_FIGURES] = {"ttft_ms", "tpot_ms", "answer_ms"};
  const lp_json limits = lp_json_member(at, "limits");
  for (int i = 0; i < LP_FLEET_FIGURES; i++) {
    const lp_json figure = lp_json_member(&limits, names[i]);
    for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
      double limit;
      LP_TRY(read_known(&figure, lp_fleet_quantile_names[k], &limit, diag));
      class->limit_s[i][k] = isnan(limit) ? 0 : limit / 1e3;
    }
  }
  return LP_OK;
}

static lp_status read_class(const lp_json *at, lp_arena *arena, int32_t pools, lp_sim_fleet_class *class,
                            lp_diag *diag) {
  const lp_json user = lp_json_member(at, "user"), pool = lp_json_member(at, "pool");
  class->pool = -1;
  LP_TRY(read_text(at, "name", arena, &class->name, diag));
  LP_TRY(read_number(at, "share", 0, 1, &class->share, diag));
  if (lp_json_is_given(&pool)) LP_TRY(lp_json_i32(&pool, 0, pools - 1, &class->pool, diag));
  LP_TRY(read_limits(at, class, diag));
  LP_TRY(lp_json_bool(LP_MEMBER(&user, "streams"), &class->user.streams, diag));
  LP_TRY(read_numbers(&user, "prompt", 1, true, &class->user.knots, arena, &class->user.prompt, diag));
  LP_TRY(read_numbers(&user, "first_ms", 0, false, &class->user.knots, arena, &class->user.first_s, diag));
  LP_TRY(read_numbers(&user, "device_first_ms", 0, false, &class->user.knots, arena, &class->device_first_s, diag));
  LP_TRY(read_number(&user, "token_ms", 0, 1e9, &class->user.token_s, diag));
  LP_TRY(read_number(&user, "asks", 1e-9, 1, &class->user.asks, diag));
  LP_TRY(read_number(&user, "question_rows", 1, 1e9, &class->user.question_rows, diag));
  LP_TRY(read_number(&user, "device_token_ms", 0, 1e9, &class->device_token_s, diag));
  class->user.token_s /= 1e3;
  class->device_token_s /= 1e3;
  return read_known(&user, "power_w", &class->power_w, diag);
}

/* The rates of the hours; a scenario's `diurnal` takes their place. */
static lp_status read_hours(const lp_json *root, lp_sim_fleet *fleet, lp_diag *diag) {
  const lp_json at = lp_json_member(root, "by_hour"), rates = lp_json_member(&at, "rate_per_s");
  double sum = 0;
  if (!lp_json_is_given(&at)) return LP_OK;
  double *hour = LP_NEW_ARRAY(fleet->arena, double, LP_SIM_HOURS);
  for (size_t h = 0; h < LP_SIM_HOURS; h++) {
    LP_TRY(lp_json_number(LP_ITEM(&rates, h), 0, 1e9, &hour[h], diag));
    sum += hour[h];
  }
  if (sum <= 0) return lp_json_error(&rates, diag, "has no request");
  for (size_t h = 0; h < LP_SIM_HOURS; h++)
    hour[h] *= (double)LP_SIM_HOURS / sum;
  if (!fleet->hour) fleet->hour = hour;
  fleet->by_hour = true;
  return read_number(&at, "cold_start_s", 0, 3599, &fleet->cold_s, diag);
}

static lp_status read_root(const lp_json *root, lp_sim_fleet *fleet, lp_diag *diag) {
  const lp_json pools = lp_json_member(root, "pools"), classes = lp_json_member(root, "classes");
  double sum = 0;
  if (!lp_json_equals(LP_MEMBER(root, "schema"), "llmpart.fleet/1"))
    return lp_json_error(root, diag, "this is no fleet: wanted the schema llmpart.fleet/1 of `llmpart fleet -o json`");
  LP_TRY(read_number(root, "rate_per_s", 1e-9, 1e9, &fleet->rate, diag));
  LP_TRY(read_number(root, "mean_rate_per_s", 1e-9, 1e9, &fleet->mean_rate, diag));
  LP_TRY(read_hours(root, fleet, diag));
  if (fleet->requests == 0) {
    const double rate = isnan(fleet->numbers.rate) ? fleet->mean_rate : fleet->numbers.rate, day = 86400;
    fleet->requests = fleet->by_hour ? llround(fmin(MOST_REQUESTS, fmax(USUAL_REQUESTS, day * rate))) : USUAL_REQUESTS;
  }
  LP_TRY(read_lengths(root, fleet, diag));
  LP_TRY(read_list(root, "pools", LP_FLEET_MOST_CLASSES, &fleet->pools, diag));
  LP_TRY(read_list(root, "classes", LP_FLEET_MOST_CLASSES, &fleet->classes, diag));
  for (int32_t i = 0; i < fleet->pools; i++)
    LP_TRY(read_pool(root, LP_ITEM(&pools, (size_t)i), fleet->arena, &fleet->pool[i], fleet->by_hour, diag));
  for (int32_t i = 0; i < fleet->classes; i++) {
    LP_TRY(read_class(LP_ITEM(&classes, (size_t)i), fleet->arena, fleet->pools, &fleet->class[i], diag));
    sum += fleet->class[i].share;
  }
  if (sum <= 0) return lp_json_error(&classes, diag, "has no request: the shares are to add up to 1");
  for (int32_t i = 0; i < fleet->classes; i++) {
    fleet->class[i].share /= sum;
    if (fleet->class[i].pool >= 0) fleet->pool[fleet->class[i].pool].share += fleet->class[i].share;
  }
  return LP_OK;
}

static lp_status read_report(const char *path, lp_sim_fleet *fleet, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *text = NULL;
  size_t size = 0;
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  fleet->path = lp_arena_strdup(fleet->arena, path);
  LP_TRY(lp_file_read(path, &text, &size, diag));
  fleet->digest = lp_hash_bytes(text, size, fleet->digest);
  LP_TRY(lp_json_parse(fleet->path, text, size, 0, &document, diag));
  const lp_json root = lp_json_root(fleet->path, document);
  return read_root(&root, fleet, diag);
}

/* ---- the scenario ------------------------------------------------------------------------------------------------ */

typedef struct {
  lp_sim_fleet fleet;
  const char *name;
  const lp_yaml_node *report_at, *diurnal, *failures, *losses, *autoscale, *vary;
} scenario_file;

/* A number of the scenario, and the values that it may have. */
typedef struct {
  const char *key;
  size_t offset;
  double least, most;
} number;
#define NUMBER(name, member, low, high) {name, offsetof(lp_sim_fleet_numbers, member), low, high}
static const number numbers[] = {NUMBER("rate", rate, 1e-6, 1e9),
                                 NUMBER("replicas", replicas, 1, MOST_MACHINES),
                                 NUMBER("spare", spare, -MOST_MACHINES, MOST_MACHINES),
                                 NUMBER("sessions", sessions, 1, 4096),
                                 NUMBER("prompt_stretch", prompt_stretch, 1, 1000),
                                 NUMBER("prompt_turn", prompt_turn, 1, 1e9),
                                 NUMBER("every", failures.every_s, 1, 1e9),
                                 NUMBER("restart", failures.restart_s, 0, 1e6),
                                 NUMBER("losses_every", losses.every_s, 1, 1e10),
                                 NUMBER("losses_restart", losses.restart_s, 0, 1e6),
                                 NUMBER("target", target, 1e-3, 1e6),
                                 NUMBER("least", least, 1, MOST_MACHINES),
                                 NUMBER("cold_start", cold_s, 0, 1e6),
                                 NUMBER("keep", keep_s, 0, 1e6)};

static lp_status read_axis_entry(lp_yaml *yaml, const lp_yaml_node *key, const char *name, const lp_yaml_node *value,
                                 void *user) {
  lp_sim_fleet *fleet = user;
  const char *names[LP_COUNT(numbers)];
  if (fleet->varied)
    return lp_error(yaml->diag, lp_yaml_loc(yaml, key), "'vary' takes one key, and '%s' is there already",
                    fleet->varied);
  for (size_t i = 0; i < LP_COUNT(numbers); i++) {
    names[i] = numbers[i].key;
    if (!lp_streq(name, names[i])) continue;
    fleet->varied = names[i];
    fleet->varied_at = numbers[i].offset;
    return lp_yaml_numbers(yaml, value, name, &(lp_yaml_range){numbers[i].least, numbers[i].most, true}, &fleet->value,
                           &fleet->values);
  }
  return lp_yaml_unknown_key(yaml, key, name, names, LP_COUNT(names));
}

static lp_status read_diurnal(lp_yaml *yaml, const lp_yaml_node *node, lp_sim_fleet *fleet) {
  int32_t count = 0;
  double sum = 0;
  LP_TRY(lp_yaml_numbers(yaml, node, "diurnal", &(lp_yaml_range){0, 1e6, false}, &fleet->hour, &count));
  for (int32_t i = 0; i < count; i++)
    sum += fleet->hour[i];
  if (count != LP_SIM_HOURS || sum <= 0)
    return lp_error(yaml->diag, lp_yaml_loc(yaml, node),
                    "'diurnal' has %d factors; it wants one for each of the 24 hours, and not only 0", count);
  for (int32_t i = 0; i < count; i++)
    fleet->hour[i] *= count / sum;
  return LP_OK;
}

#define IN(of, name, member, ...) LP_YAML_FIELD(of, name, lp_sim_fleet_numbers, member, __VA_ARGS__)
static const lp_yaml_field failure_fields[] = {
    IN(LP_YAML_TIME_S, "every", failures.every_s, .least = 1, .most = 1e9, .required = true),
    IN(LP_YAML_TIME_S, "restart", failures.restart_s, .least = 0, .most = 1e6, .required = true)};
static const lp_yaml_field losses_fields[] = {IN(LP_YAML_TIME_S, "every", losses.every_s, .least = 1, .most = 1e10),
                                              IN(LP_YAML_TIME_S, "restart", losses.restart_s, .least = 0, .most = 1e6)};
static const lp_yaml_field scaling_fields[] = {
    IN(LP_YAML_F64, "target", target, .least = 1e-3, .most = 1e6, .required = true),
    IN(LP_YAML_F64, "least", least, .least = 1, .most = MOST_MACHINES),
    IN(LP_YAML_TIME_S, "cold_start", cold_s, .least = 0, .most = 1e6, .required = true),
    IN(LP_YAML_TIME_S, "keep", keep_s, .least = 0, .most = 1e6)};

static lp_status read_scenario(void *user, lp_yaml *yaml, const lp_yaml_node *root) {
  scenario_file file = {.fleet = *(lp_sim_fleet *)user};
#define TOP(of, name, member, ...) LP_YAML_FIELD(of, name, scenario_file, member, __VA_ARGS__)
  const lp_yaml_field fields[] = {
      TOP(LP_YAML_TEXT, "simulate", name, .least = 0),
      TOP(LP_YAML_NODE, "fleet", report_at, .required = true),
      TOP(LP_YAML_I64, "seed", fleet.seed, .least = 0, .most = 1e15),
      TOP(LP_YAML_I64, "runs", fleet.runs, .least = 1, .most = 10000),
      TOP(LP_YAML_I64, "requests", fleet.requests, .least = 100, .most = MOST_REQUESTS),
      TOP(LP_YAML_F64, "rate", fleet.numbers.rate, .least = 1e-6, .most = 1e9),
      TOP(LP_YAML_F64, "replicas", fleet.numbers.replicas, .least = 1, .most = MOST_MACHINES),
      TOP(LP_YAML_F64, "spare", fleet.numbers.spare, .least = -MOST_MACHINES, .most = MOST_MACHINES),
      TOP(LP_YAML_F64, "sessions", fleet.numbers.sessions, .least = 1, .most = 4096),
      TOP(LP_YAML_F64, "prompt_stretch", fleet.numbers.prompt_stretch, .least = 1, .most = 1000),
      TOP(LP_YAML_F64, "prompt_turn", fleet.numbers.prompt_turn, .least = 1, .most = 1e9),
      TOP(LP_YAML_NODE, "diurnal", diurnal, .least = 0),
      TOP(LP_YAML_NODE, "failures", failures, .least = 0),
      TOP(LP_YAML_NODE, "losses", losses, .least = 0),
      TOP(LP_YAML_NODE, "autoscale", autoscale, .least = 0),
      TOP(LP_YAML_NODE, "vary", vary, .least = 0)};
#undef TOP
  LP_TRY(lp_yaml_fields(yaml, root, "the scenario", fields, LP_COUNT(fields), &file));
  lp_sim_fleet *fleet = &file.fleet;
  if (file.diurnal) LP_TRY(read_diurnal(yaml, file.diurnal, fleet));
  if (file.failures)
    LP_TRY(
        lp_yaml_fields(yaml, file.failures, "'failures'", failure_fields, LP_COUNT(failure_fields), &fleet->numbers));
  if (file.losses)
    LP_TRY(lp_yaml_fields(yaml, file.losses, "'losses'", losses_fields, LP_COUNT(losses_fields), &fleet->numbers));
  if (file.autoscale)
    LP_TRY(
        lp_yaml_fields(yaml, file.autoscale, "'autoscale'", scaling_fields, LP_COUNT(scaling_fields), &fleet->numbers));
  if (file.vary) LP_TRY(lp_yaml_each(yaml, file.vary, "'vary'", read_axis_entry, fleet));
  const bool of_failures = fleet->varied_at == offsetof(lp_sim_fleet_numbers, failures.every_s) ||
                           fleet->varied_at == offsetof(lp_sim_fleet_numbers, failures.restart_s);
  const bool of_scaling = fleet->varied_at >= offsetof(lp_sim_fleet_numbers, target);
  if ((of_failures && !file.failures) || (of_scaling && !file.autoscale))
    return lp_error(yaml->diag, lp_yaml_loc(yaml, file.vary), "to vary '%s', there must be '%s'", fleet->varied,
                    of_failures ? "failures" : "autoscale");
  *(lp_sim_fleet *)user = *fleet;
  const char *report;
  LP_TRY(lp_yaml_text(yaml, file.report_at, "fleet", &report));
  LP_OWNED(lp_diag_free_at) lp_diag *inner = lp_diag_create();
  const lp_status status = read_report(lp_yaml_relative(yaml, report), user, inner);
  lp_diag_relay(yaml->diag, lp_yaml_loc(yaml, file.report_at), "fleet", inner);
  return status;
}

static lp_status note_fleet(lp_yaml *yaml, const lp_yaml_node *key, const char *name, const lp_yaml_node *value,
                            void *user) {
  (void)yaml, (void)key, (void)value;
  *(bool *)user |= lp_streq(name, "fleet");
  return LP_OK;
}

static lp_status note_keys(void *user, lp_yaml *yaml, const lp_yaml_node *root) {
  return lp_yaml_each(yaml, root, "the scenario", note_fleet, user);
}

bool lp_sim_fleet_is(const char *path) {
  bool found = lp_has_suffix(path, ".json");
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  if (!found && lp_yaml_load(path, arena, note_keys, &found, quiet) != LP_OK) found = false;
  return found;
}

static lp_status load_scenario(const char *path, lp_sim_fleet *fleet, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *text = NULL;
  size_t size = 0;
  LP_TRY(lp_file_read(path, &text, &size, diag));
  fleet->digest = lp_hash_bytes(text, size, 0);
  return lp_yaml_parse(path, text, size, fleet->arena, read_scenario, fleet, diag);
}

lp_status lp_sim_fleet_load(const char *path, lp_sim_fleet **out, lp_diag *diag) {
  lp_sim_fleet *fleet = lp_alloc(sizeof *fleet);
  *fleet = (lp_sim_fleet){.arena = lp_arena_create(),
                          .seed = 1,
                          .runs = 1,
                          .numbers = {.rate = NAN,
                                      .replicas = NAN,
                                      .spare = NAN,
                                      .sessions = NAN,
                                      .prompt_stretch = NAN,
                                      .prompt_turn = NAN,
                                      .losses = {NAN, NAN},
                                      .least = 1,
                                      .keep_s = 300},
                          .values = 1};
  const lp_status status =
      lp_has_suffix(path, ".json") ? read_report(path, fleet, diag) : load_scenario(path, fleet, diag);
  *out = status == LP_OK ? fleet : NULL;
  if (status != LP_OK) lp_sim_fleet_free(fleet);
  return status;
}

void lp_sim_fleet_free(lp_sim_fleet *fleet) {
  if (!fleet) return;
  lp_arena_free(fleet->arena);
  free(fleet);
}
