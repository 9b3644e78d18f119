/* Reads the specification of a fleet. */
#include "fleet/spec.h"
#include "base/json/reader.h"
#include "fleet/lengths.h"

#include <math.h>

/* ---- the load ---------------------------------------------------------------------------------------------------- */

typedef struct {
  double rate, per_user_hour;
  int64_t users;
  const lp_yaml_node *diurnal;
} load_text;

/* The curve of the hours: 24 factors, or that of the trace. The rate is then that of the busiest hour. */
static lp_status read_diurnal(lp_yaml *yaml, const lp_yaml_node *node, const lp_fleet_traced *traced,
                              lp_fleet_spec *spec) {
  const bool of_trace = lp_yaml_is_scalar(node);
  double *factor = NULL, sum = 0, most = 0;
  int32_t count = LP_SIM_HOURS;
  if (of_trace) {
    int32_t only;
    LP_TRY(lp_yaml_choice(yaml, node, "diurnal", (const char *const[]){"trace"}, 1, &only));
  } else {
    LP_TRY(lp_yaml_numbers(yaml, node, "diurnal", &(lp_yaml_range){0, 1e6, false}, &factor, &count));
  }
  for (int32_t i = 0; i < count; i++) {
    const double one = of_trace ? traced->hour[i] : factor[i];
    sum += one, most = fmax(most, one);
    if (i < LP_SIM_HOURS) spec->day.hour[i] = one;
  }
  if (of_trace && sum <= 0) return lp_yaml_error(yaml, node, "there is no trace that has each of the 24 hours");
  if (count != LP_SIM_HOURS || sum <= 0)
    return lp_yaml_error(yaml, node, "'diurnal' has %d factors; it wants one for each of the 24 hours, and not only 0",
                         count);
  for (int i = 0; i < LP_SIM_HOURS; i++)
    spec->day.hour[i] /= most;
  spec->rate *= most * count / sum;
  return LP_OK;
}

static lp_status read_load(lp_yaml *yaml, const lp_yaml_node *node, const lp_fleet_traced *traced,
                           lp_fleet_spec *spec) {
  static const lp_yaml_field fields[] = {
      LP_YAML_FIELD(LP_YAML_F64, "rate", load_text, rate, .least = 1e-6, .most = 1e9),
      LP_YAML_FIELD(LP_YAML_I64, "users", load_text, users, .least = 1, .most = 1e12),
      LP_YAML_FIELD(LP_YAML_F64, "per_user_hour", load_text, per_user_hour, .least = 1e-6, .most = 1e6),
      LP_YAML_FIELD(LP_YAML_NODE, "diurnal", load_text, diurnal, .least = 0)};
  load_text load = {0};
  LP_TRY(lp_yaml_fields(yaml, node, "the load", fields, LP_COUNT(fields), &load));
  const bool by_users = load.users > 0 && load.per_user_hour > 0;
  if ((load.users > 0) != (load.per_user_hour > 0) || (load.rate > 0 && by_users) ||
      (load.rate <= 0 && !by_users && traced->rate <= 0))
    return lp_yaml_error(
        yaml, node,
        "'load' wants 'rate' (requests per s), or 'users' and 'per_user_hour', or lengths of a trace that takes time");
  spec->mean_rate = by_users        ? (double)load.users * load.per_user_hour / 3600
                    : load.rate > 0 ? load.rate
                                    : traced->rate;
  spec->rate = spec->mean_rate;
  spec->users = load.users;
  return load.diurnal ? read_diurnal(yaml, load.diurnal, traced, spec) : LP_OK;
}

static lp_status read_by_hour(lp_yaml *yaml, const lp_yaml_node *node, lp_fleet_day *day) {
  enum { MOST_S = 1799 }; /* both together are less than an hour: see mix.h */
  static const lp_yaml_field fields[] = {
      LP_YAML_FIELD(LP_YAML_TIME_S, "cold_start", lp_fleet_day, cold_s, .least = 0, .most = MOST_S, .required = true),
      LP_YAML_FIELD(LP_YAML_TIME_S, "drain", lp_fleet_day, drain_s, .least = 0, .most = MOST_S)};
  if (!node) return LP_OK;
  day->drain_s = 30; /* that of a deployed server */
  LP_TRY(lp_yaml_fields(yaml, node, "'by_hour'", fields, LP_COUNT(fields), day));
  double busiest = 0;
  for (int i = 0; i < LP_SIM_HOURS; i++)
    busiest = fmax(busiest, day->hour[i]);
  if (busiest <= 0) return lp_yaml_error(yaml, node, "'by_hour' wants a load with 'diurnal'");
  day->start_hours = (day->cold_s + day->drain_s) / 3600;
  day->given = true;
  return LP_OK;
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *name, *device, *link;
  double share;
  int64_t private_layers;
  const lp_yaml_node *device_at, *link_at, *limits;
} class_text;

static lp_status read_limits(lp_yaml *yaml, const lp_yaml_node *node, lp_fleet_class *out) {
  typedef struct {
    const lp_yaml_node *figure[LP_FLEET_FIGURES];
  } figures_text;
  typedef struct {
    double quantile[LP_FLEET_QUANTILES];
  } quantiles_text;
  lp_yaml_field figures[LP_FLEET_FIGURES], quantiles[LP_FLEET_QUANTILES];
  figures_text text = {0};
  bool any = false;
  for (int i = 0; i < LP_FLEET_FIGURES; i++)
    figures[i] =
        (lp_yaml_field)LP_YAML_FIELD(LP_YAML_NODE, lp_fleet_figure_names[i], figures_text, figure[i], .least = 0);
  for (int i = 0; i < LP_FLEET_QUANTILES; i++)
    quantiles[i] = (lp_yaml_field)LP_YAML_FIELD(LP_YAML_TIME_S, lp_fleet_quantile_names[i], quantiles_text, quantile[i],
                                                .least = 1e-6, .most = 1e6);
  LP_TRY(lp_yaml_fields(yaml, node, "the limits", figures, LP_COUNT(figures), &text));
  for (int i = 0; i < LP_FLEET_FIGURES; i++) {
    quantiles_text limit = {0};
    if (!text.figure[i]) continue;
    LP_TRY(lp_yaml_fields(yaml, text.figure[i], "a limit", quantiles, LP_COUNT(quantiles), &limit));
    memcpy(out->limit_s[i], limit.quantile, sizeof limit.quantile);
    for (int k = 0; k < LP_FLEET_QUANTILES; k++)
      any = any || limit.quantile[k] > 0;
  }
  if (any) return LP_OK;
  return lp_yaml_error(yaml, node,
                       "'limits' sets none: give one, such as ttft: { p95: 1s }, so that a fleet can be too small");
}

static lp_status read_class(lp_fleet_reader *r, lp_yaml *yaml, const lp_yaml_node *node) {
  static const lp_yaml_field fields[] = {
      LP_YAML_FIELD(LP_YAML_TEXT, "name", class_text, name, .required = true),
      LP_YAML_FIELD(LP_YAML_F64, "share", class_text, share, .least = 1e-6, .most = 1e6),
      LP_YAML_FIELD(LP_YAML_I64, "private_layers", class_text, private_layers, .least = 0, .most = 1e6),
      LP_YAML_FIELD(LP_YAML_NODE, "device", class_text, device_at, .required = true),
      LP_YAML_FIELD(LP_YAML_NODE, "link", class_text, link_at, .required = true),
      LP_YAML_FIELD(LP_YAML_NODE, "limits", class_text, limits, .required = true)};
  class_text text = {.share = 1};
  lp_fleet_class one = {0};
  LP_TRY(lp_yaml_fields(yaml, node, "a class", fields, LP_COUNT(fields), &text));
  LP_TRY(lp_yaml_text(yaml, text.device_at, "device", &one.device_name));
  LP_TRY(lp_yaml_text(yaml, text.link_at, "link", &one.link_name));
  LP_TRY(read_limits(yaml, text.limits, &one));
  one.name = text.name;
  one.share = text.share;
  one.private_layers = text.private_layers;
  one.loc = lp_yaml_loc(yaml, node);
  LP_TRY(lp_fleet_machine_load(yaml, text.device_at, "device", one.device_name, &one.device));
  lp_vec_push(&r->spec->classes, one); /* it owns the device from here on */
  lp_diag *inner = lp_diag_create();
  lp_link **link = &r->spec->classes.data[r->spec->classes.count - 1].link;
  if (r->load_link(lp_sweep_path(yaml, one.link_name), link, inner) != LP_OK)
    return lp_sweep_relay(yaml, text.link_at, "link", inner);
  lp_diag_free(inner);
  return LP_OK;
}

static lp_status read_classes(lp_fleet_reader *r, lp_yaml *yaml, const lp_yaml_node *node) {
  lp_fleet_spec *spec = r->spec;
  int32_t count = 0;
  double sum = 0;
  LP_TRY(lp_yaml_list(yaml, node, "classes", &count));
  if (count > LP_FLEET_MOST_CLASSES)
    return lp_yaml_error(yaml, node, "there are %d classes; at most %d can be planned", count, LP_FLEET_MOST_CLASSES);
  for (int32_t i = 0; i < count; i++)
    LP_TRY(read_class(r, yaml, lp_yaml_item(yaml, node, i)));
  for (int32_t i = 0; i < count; i++)
    sum += spec->classes.data[i].share;
  for (int32_t i = 0; i < count; i++)
    spec->classes.data[i].share /= sum;
  return LP_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

typedef struct {
  const lp_yaml_node *model, *decoder, *load, *lengths, *classes, *machines, *dtypes, *kv, *exits, *by_hour, *regions;
  int64_t spare, requests, seed;
  int32_t objective;
  double availability, budget;
} file_text;

typedef struct {
  int32_t device, cloud;
} dtypes_text;

static lp_status read_dtypes(lp_yaml *yaml, const file_text *file, lp_fleet_spec *spec) {
  static const char *const names[] = {"model", "f32", "f16", "bf16", "int8", "int4"}, *const kv[] = {"f32", "f16",
                                                                                                     "bf16", "int8",
                                                                                                     "int4"};
  static const lp_yaml_field fields[] = {
      LP_YAML_FIELD(LP_YAML_CHOICE, "device", dtypes_text, device, .names = names, .name_count = LP_COUNT(names)),
      LP_YAML_FIELD(LP_YAML_CHOICE, "cloud", dtypes_text, cloud, .names = names, .name_count = LP_COUNT(names))};
  dtypes_text text = {0};
  int32_t index = 0;
  if (file->dtypes) LP_TRY(lp_yaml_fields(yaml, file->dtypes, "types", fields, LP_COUNT(fields), &text));
  if (file->kv) LP_TRY(lp_yaml_choice(yaml, file->kv, "kv_dtype", kv, LP_COUNT(kv), &index));
  spec->dtype_device = text.device ? names[text.device] : NULL;
  spec->dtype_cloud = text.cloud ? names[text.cloud] : NULL;
  spec->kv_dtype = file->kv ? kv[index] : NULL;
  return LP_OK;
}

typedef struct {
  int64_t layer, drafts;
  double asks, accepts;
  const char *calibration;
} exits_text;

/* Takes the deepest exit of a calibration, the share of tokens that leaves it for the cloud at its theta, and the share
 * of all tokens in which it agrees with the full model. */
static lp_status read_calibration(const char *path, exits_text *out, lp_diag *diag) {
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  LP_TRY(lp_json_load(path, LP_JSON_REFUSE_NUL, &document, diag));
  const lp_json root = lp_json_root(path, document), exits = lp_json_member(&root, "exits");
  if (!lp_json_equals(LP_MEMBER(&root, "schema"), "llmpart.calibration/1"))
    return lp_json_error(&root, diag, "this is no calibration: wanted schema llmpart.calibration/1");
  if (lp_json_count(&exits) == 0) return lp_json_error(&exits, diag, "the calibration has no exits");
  const lp_json last = lp_json_item(&exits, lp_json_count(&exits) - 1);
  LP_TRY(lp_json_i64(LP_MEMBER(&last, "layer"), 1, 1000000, &out->layer, diag));
  if (out->drafts == 0) return lp_json_number(LP_MEMBER(&root, "cloud_request_rate"), 0.01, 0.99, &out->asks, diag);
  const lp_json alone = lp_json_member(&last, "alone"), any = lp_json_item(&alone, 0);
  double theta;
  LP_TRY(lp_json_number(LP_MEMBER(&any, "theta"), 0, 0, &theta, diag));
  return lp_json_number(LP_MEMBER(&any, "agreement"), 0.01, 0.999, &out->accepts, diag);
}

/* A question with n drafts, each of which holds with the chance p if those before it do, gives 1 + p + ... + p^n tokens
 * in the mean: those that hold, and the cloud's. */
static double tokens_of(int64_t drafts, double accepts) {
  double sum = 1, chance = 1;
  for (int64_t i = 0; i < drafts; i++)
    sum += chance *= accepts;
  return sum;
}

static lp_status read_exits(lp_yaml *yaml, const lp_yaml_node *node, lp_fleet_spec *spec) {
  static const lp_yaml_field fields[] = {
      LP_YAML_FIELD(LP_YAML_I64, "layer", exits_text, layer, .least = 1, .most = 1e6),
      LP_YAML_FIELD(LP_YAML_F64, "asks", exits_text, asks, .least = 0.01, .most = 0.99),
      LP_YAML_FIELD(LP_YAML_I64, "drafts", exits_text, drafts, .least = 1, .most = 64),
      LP_YAML_FIELD(LP_YAML_F64, "accepts", exits_text, accepts, .least = 0.01, .most = 0.999),
      LP_YAML_FIELD(LP_YAML_TEXT, "calibration", exits_text, calibration, .least = 0)};
  exits_text text = {0};
  if (!node) return LP_OK;
  LP_TRY(lp_yaml_fields(yaml, node, "'exits'", fields, LP_COUNT(fields), &text));
  const bool has_number = text.layer > 0 || text.asks > 0 || text.accepts > 0;
  const bool has_numbers = text.layer > 0 && (text.drafts > 0 ? text.accepts > 0 && text.asks <= 0 : text.asks > 0);
  if (text.calibration ? has_number : !has_numbers || (text.drafts == 0 && text.accepts > 0))
    return lp_yaml_error(yaml, node,
                         "'exits' wants 'layer' and 'asks', or 'layer', 'drafts' and 'accepts', or a 'calibration' in "
                         "place of all but 'drafts'");
  lp_diag *inner = lp_diag_create();
  if (text.calibration && read_calibration(lp_yaml_relative(yaml, text.calibration), &text, inner) != LP_OK)
    return lp_sweep_relay(yaml, node, "calibration", inner);
  lp_diag_free(inner);
  spec->exits_loc = lp_yaml_loc(yaml, node);
  spec->exits.layer = text.layer;
  spec->exits.drafts = text.drafts;
  spec->exits.asks = text.drafts > 0 ? 1 / tokens_of(text.drafts, text.accepts) : text.asks;
  spec->exits.question_rows = text.drafts > 0 ? (double)text.drafts + 1 : 1 / text.asks;
  return LP_OK;
}

/* With the objective 'energy' all powers are known, and no hour is planned as if it were the busiest one. */
static lp_status check_energy(const lp_yaml *yaml, const lp_yaml_node *root, const lp_fleet_spec *spec) {
  if (spec->rate > spec->mean_rate && !spec->day.given)
    return lp_yaml_error(yaml, root, "the objective 'energy' wants 'by_hour' for a load with 'diurnal'");
  LP_FOR_VEC(const lp_fleet_kind, kind, &spec->kinds) {
    const double idle = kind->machine->figure[LP_HW_IDLE_POWER];
    if (idle <= 0 || idle > kind->machine->figure[LP_HW_POWER])
      return lp_yaml_error(yaml, root,
                           "the objective 'energy' wants of '%s' a power, and an idle_power that is at most as high: "
                           "\"%s,idle_power=20W\" gives one",
                           kind->name, kind->name);
  }
  LP_FOR_VEC(const lp_fleet_class, class, &spec->classes)
    if (class->device->figure[LP_HW_POWER] <= 0)
      return lp_yaml_error(yaml, root, "the objective 'energy' wants a power of '%s'", class->device_name);
  return LP_OK;
}

static lp_status read_root(void *user, lp_yaml *yaml, const lp_yaml_node *root) {
  lp_fleet_reader *r = user;
  lp_fleet_spec *spec = r->spec;
  static const char *const objectives[] = {"cost", "latency", "energy"};
  file_text file = {.requests = 4000, .availability = 0.999};
  lp_fleet_traced traced;
#define NODE(name, member, needed) LP_YAML_FIELD(LP_YAML_NODE, name, file_text, member, .required = (needed))
  const lp_yaml_field fields[] = {
      NODE("model", model, false),
      NODE("decoder", decoder, false),
      NODE("load", load, true),
      NODE("lengths", lengths, true),
      NODE("classes", classes, true),
      NODE("machines", machines, false),
      NODE("dtypes", dtypes, false),
      NODE("kv_dtype", kv, false),
      NODE("exits", exits, false),
      NODE("by_hour", by_hour, false),
      NODE("regions", regions, false),
      LP_YAML_FIELD(LP_YAML_I64, "spare", file_text, spare, .least = 0, .most = 1000),
      LP_YAML_FIELD(LP_YAML_F64, "availability", file_text, availability, .least = 0.5, .most = 0.999999),
      LP_YAML_FIELD(LP_YAML_F64, "budget", file_text, budget, .least = 1e-6, .most = 1e15),
      LP_YAML_FIELD(LP_YAML_CHOICE, "objective", file_text, objective, .names = objectives,
                    .name_count = LP_COUNT(objectives)),
      LP_YAML_FIELD(LP_YAML_I64, "requests", file_text, requests, .least = 100, .most = 1e8),
      LP_YAML_FIELD(LP_YAML_I64, "seed", file_text, seed, .least = 0, .most = 1e12)};
#undef NODE
  LP_TRY(lp_yaml_fields(yaml, root, "a fleet", fields, LP_COUNT(fields), &file));
  LP_TRY(lp_sweep_model(yaml, root, file.model, file.decoder, &spec->model, &spec->decoder, &spec->model_loc));
  LP_TRY(lp_fleet_lengths_read(yaml, file.lengths, spec, &traced));
  LP_TRY(read_load(yaml, file.load, &traced, spec));
  LP_TRY(read_by_hour(yaml, file.by_hour, &spec->day));
  LP_TRY(read_dtypes(yaml, &file, spec));
  LP_TRY(read_exits(yaml, file.exits, spec));
  spec->spare = file.spare;
  spec->availability = file.availability;
  spec->requests = file.requests;
  spec->seed = file.seed;
  spec->budget = file.budget > 0 ? file.budget : INFINITY;
  spec->wants_latency = file.objective == 1;
  spec->wants_energy = file.objective == 2;
  spec->limits_scale = 1;
  if (spec->wants_latency && file.budget <= 0)
    return lp_yaml_error(yaml, root, "the objective 'latency' wants a 'budget', in USD a month");
  LP_TRY(read_classes(r, yaml, file.classes));
  LP_TRY(lp_fleet_machines_read(r, yaml, root, file.regions, file.machines));
  return spec->wants_energy ? check_energy(yaml, root, spec) : LP_OK;
}

lp_status lp_fleet_spec_read(const char *path, lp_fleet_link_loader *load_link, lp_fleet_spec *out, lp_diag *diag) {
  lp_fleet_reader r = {.spec = out, .load_link = load_link ? load_link : lp_link_load};
  *out = (lp_fleet_spec){.arena = lp_arena_create()};
  out->path = lp_arena_strdup(out->arena, path);
  return lp_yaml_load(out->path, out->arena, read_root, &r, diag);
}

void lp_fleet_spec_free(lp_fleet_spec *spec) {
  for (size_t i = 0; i < spec->classes.count; i++) {
    lp_hw_free(spec->classes.data[i].device);
    lp_link_free(spec->classes.data[i].link);
  }
  LP_FOR_VEC(lp_fleet_region, region, &spec->regions)
    for (size_t i = 0; i < LP_FLEET_MOST_CLASSES; i++)
      lp_link_free(region->link[i]);
  for (size_t i = 0; i < spec->kinds.count; i++)
    if (!spec->kinds.data[i].borrows) lp_hw_free(spec->kinds.data[i].machine);
  lp_vec_free(&spec->regions);
  lp_vec_free(&spec->classes);
  lp_vec_free(&spec->kinds);
  lp_vec_free(&spec->lengths);
  lp_arena_free(spec->arena);
}

lp_compile_request lp_fleet_request(const lp_fleet_spec *spec) {
  return (lp_compile_request){.device = spec->classes.data[0].device,
                              .cloud = spec->kinds.data[0].machine,
                              .link = spec->classes.data[0].link,
                              .isl = 1,
                              .osl = 1,
                              .batch = 1,
                              .sessions = 1,
                              .objective = "cost",
                              .dtype_device = spec->dtype_device,
                              .dtype_cloud = spec->dtype_cloud,
                              .kv_dtype = spec->kv_dtype,
                              .generation = true};
}
