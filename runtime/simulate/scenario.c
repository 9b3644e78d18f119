/* Scenarios in YAML. */
#include <math.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/yaml/yaml.h"
#include "runtime/simulate/scenario_places.h"

const char *const lp_sim_axis_names[LP_SIM_AXES] = {"",        "rate",  "quality_share", "tokens",
                                                    "penalty", "slots", "decision",      "users"};

/* The values of a file's keys, before they are checked. */
typedef struct {
  lp_sim_scenario *scenario;
  const lp_sim_policies *known;
  const lp_yaml_node *service, *arrivals, *tasks, *place[LP_SITE_COUNT], *link, *policies, *vary, *drift;
} scenario_file;

/* Adds to the diagnostic of another file where the scenario names it. */
static lp_status named(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, lp_status status) {
  if (status != LP_OK) lp_note(yaml->diag, lp_yaml_loc(yaml, node), "it is named here, by '%s'", key);
  return status;
}

/* ---- lengths ---- */

typedef struct {
  double fixed, exponential, geometric, lognormal, sigma, least;
  const lp_yaml_node *uniform;
} lengths_file;

#define LENGTH(key, member) LP_YAML_FIELD(LP_YAML_F64, key, lengths_file, member, .least = 1, .most = 1e9)

static const lp_yaml_field length_fields[] = {
    LP_YAML_FIELD(LP_YAML_F64, "fixed", lengths_file, fixed, .least = 0, .most = 1e9),
    LENGTH("exponential", exponential),
    LENGTH("geometric", geometric),
    LENGTH("lognormal", lognormal),
    LP_YAML_FIELD(LP_YAML_F64, "sigma", lengths_file, sigma, .least = 0.001, .most = 5),
    LP_YAML_FIELD(LP_YAML_F64, "least", lengths_file, least, .least = 0, .most = 1e9),
    LP_YAML_FIELD(LP_YAML_NODE, "uniform", lengths_file, uniform, .least = 0),
};

/* Reads a number, or a distribution such as { exponential: 1000 }. */
static lp_status read_lengths(lp_yaml *yaml, const lp_yaml_node *node, const char *key, lp_sim_lengths *out) {
  lengths_file file = {.fixed = -1, .sigma = 1, .least = 1};
  if (lp_yaml_is_scalar(node)) return lp_yaml_number(yaml, node, key, 0, 1e9, &out->mean);
  LP_TRY(lp_yaml_fields(yaml, node, lp_arena_format(yaml->arena, "'%s'", key), length_fields, LP_COUNT(length_fields),
                        &file));
  int given =
      (file.fixed >= 0) + (file.exponential > 0) + (file.geometric > 0) + (file.lognormal > 0) + (file.uniform != NULL);
  if (given != 1)
    return lp_yaml_error(yaml, node, "'%s' wants one of 'fixed', 'uniform', 'exponential', 'lognormal', 'geometric'",
                         key);
  *out = (lp_sim_lengths){.shape = LP_SIM_FIXED, .mean = file.fixed, .sigma = file.sigma, .least = file.least};
  if (file.exponential > 0) out->shape = LP_SIM_EXPONENTIAL, out->mean = file.exponential;
  if (file.geometric > 0) out->shape = LP_SIM_GEOMETRIC, out->mean = file.geometric;
  if (file.lognormal > 0) out->shape = LP_SIM_LOGNORMAL, out->mean = file.lognormal;
  if (!file.uniform) return LP_OK;
  double *ends = NULL;
  int32_t count = 0;
  LP_TRY(lp_yaml_numbers(yaml, file.uniform, "uniform", &(lp_yaml_range){0, 1e9, true}, &ends, &count));
  if (count != 2) return lp_yaml_error(yaml, file.uniform, "'uniform' is not [least, most]");
  *out = (lp_sim_lengths){LP_SIM_UNIFORM, (ends[0] + ends[1]) / 2, ends[0], ends[1], 0, file.least};
  return LP_OK;
}

/* ---- tasks ---- */

typedef struct {
  lp_sim_task task;
  const lp_yaml_node *prompt, *tokens;
} task_file;

static const lp_yaml_field task_fields[] = {
    LP_YAML_FIELD(LP_YAML_TEXT, "class", task_file, task.name, .required = true),
    LP_YAML_FIELD(LP_YAML_F64, "share", task_file, task.share, .least = 0, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_BOOL, "quality", task_file, task.quality, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "prompt", task_file, prompt, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "tokens", task_file, tokens, .required = true),
    LP_YAML_FIELD(LP_YAML_F64, "edge_success", task_file, task.success[LP_SITE_EDGE], .least = 0, .most = 1),
    LP_YAML_FIELD(LP_YAML_F64, "cloud_success", task_file, task.success[LP_SITE_CLOUD], .least = 0, .most = 1),
    LP_YAML_FIELD(LP_YAML_F64, "split_success", task_file, task.success[LP_SITE_SPLIT], .least = 0, .most = 1),
};

static lp_status read_tasks(lp_yaml *yaml, const lp_yaml_node *node, lp_sim_scenario *scenario) {
  double sum = 0;
  LP_TRY(lp_yaml_list(yaml, node, "tasks", &scenario->tasks));
  scenario->task = LP_NEW_ARRAY(yaml->arena, lp_sim_task, scenario->tasks);
  for (int32_t i = 0; i < scenario->tasks; i++) {
    const lp_yaml_node *item = lp_yaml_item(yaml, node, i);
    task_file file = {.task = {.share = 1, .success = {0, 1, 1}}};
    LP_TRY(lp_yaml_fields(yaml, item, "the task", task_fields, LP_COUNT(task_fields), &file));
    file.task.prompt = (lp_sim_lengths){.shape = LP_SIM_FIXED};
    file.task.tokens = (lp_sim_lengths){.shape = LP_SIM_FIXED, .least = 1};
    if (file.prompt) LP_TRY(read_lengths(yaml, file.prompt, "prompt", &file.task.prompt));
    LP_TRY(read_lengths(yaml, file.tokens, "tokens", &file.task.tokens));
    for (int32_t j = 0; j < i; j++)
      if (lp_streq(scenario->task[j].name, file.task.name))
        return lp_yaml_error(yaml, item, "the class '%s' occurs twice", file.task.name);
    scenario->task[i] = file.task;
    sum += file.task.share;
  }
  if (sum <= 0) return lp_yaml_error(yaml, node, "the shares of all tasks are 0");
  return LP_OK;
}

/* ---- arrivals ---- */

typedef struct {
  double poisson, per_user, every_s;
  const char *trace;
} arrivals_file;

static const lp_yaml_field arrival_fields[] = {
    LP_YAML_FIELD(LP_YAML_F64, "poisson", arrivals_file, poisson, .least = 1e-9, .most = 1e9),
    LP_YAML_FIELD(LP_YAML_F64, "poisson_per_user", arrivals_file, per_user, .least = 1e-9, .most = 1e9),
    LP_YAML_FIELD(LP_YAML_TIME_S, "every", arrivals_file, every_s, .least = 1e-9, .most = 1e9),
    LP_YAML_FIELD(LP_YAML_TEXT, "trace", arrivals_file, trace, .least = 0),
};

/* The columns of a trace; only the first two must be there. */
static const char *const trace_columns[] = {"time_s",       "class",         "tokens",        "prompt",
                                            "edge_success", "cloud_success", "split_success", "place"};
enum { TIME, CLASS, TOKENS, PROMPT, SUCCESS, PLACE = SUCCESS + LP_SITE_COUNT, TRACE_COLUMNS };

static lp_status read_place(const lp_csv *csv, size_t row, int32_t column, lp_sim_traced *traced, lp_diag *diag) {
  const char *name = column >= 0 ? lp_csv_at(csv, row, column) : "";
  traced->place = -1;
  for (int site = 0; site < LP_SITE_COUNT; site++)
    if (lp_streq(name, lp_site_names[site])) traced->place = site;
  if (traced->place >= 0 || *name == 0) return LP_OK;
  return lp_error(diag, lp_csv_loc(csv, row, column), "'%s' is not edge, cloud or split", name);
}

static lp_status read_traced(const lp_csv *csv, size_t row, const int32_t column[TRACE_COLUMNS],
                             lp_sim_scenario *scenario, lp_diag *diag) {
  lp_sim_traced *traced = &scenario->trace[row];
  *traced = (lp_sim_traced){.task = -1, .prompt = -1, .tokens = -1, .success = {-1, -1, -1}};
  double before = row > 0 ? scenario->trace[row - 1].at_s : 0;
  LP_TRY(lp_csv_number(csv, row, column[TIME], 0, 1e12, &traced->at_s, diag));
  if (traced->at_s < before)
    return lp_error(diag, lp_csv_loc(csv, row, column[TIME]), "'time_s' is %g, but the request before came at %g",
                    traced->at_s, before);
  const char *name = lp_csv_at(csv, row, column[CLASS]);
  for (int32_t t = 0; t < scenario->tasks; t++)
    if (lp_streq(scenario->task[t].name, name)) traced->task = t;
  if (traced->task < 0)
    return lp_error(diag, lp_csv_loc(csv, row, column[CLASS]), "'%s' is not a class of the scenario", name);
  if (column[TOKENS] >= 0 && *lp_csv_at(csv, row, column[TOKENS]))
    LP_TRY(lp_csv_number(csv, row, column[TOKENS], 0, 1e9, &traced->tokens, diag));
  if (column[PROMPT] >= 0 && *lp_csv_at(csv, row, column[PROMPT]))
    LP_TRY(lp_csv_number(csv, row, column[PROMPT], 0, 1e9, &traced->prompt, diag));
  for (int p = 0; p < LP_SITE_COUNT; p++)
    if (column[SUCCESS + p] >= 0 && *lp_csv_at(csv, row, column[SUCCESS + p]))
      LP_TRY(lp_csv_number(csv, row, column[SUCCESS + p], 0, 1, &traced->success[p], diag));
  return read_place(csv, row, column[PLACE], traced, diag);
}

static lp_status read_trace(const char *path, lp_sim_scenario *scenario, lp_diag *diag) {
  lp_csv csv;
  LP_TRY(lp_csv_read(path, scenario->arena, &csv, diag));
  int32_t column[TRACE_COLUMNS];
  for (int c = 0; c < TRACE_COLUMNS; c++)
    column[c] = lp_csv_column(&csv, trace_columns[c]);
  for (int c = TIME; c <= CLASS; c++)
    if (column[c] < 0) return lp_error(diag, LP_LOC_FILE(path), "the trace lacks the column '%s'", trace_columns[c]);
  if (csv.rows == 0) return lp_error(diag, LP_LOC_FILE(path), "the trace holds no request");
  scenario->trace = LP_NEW_ARRAY(scenario->arena, lp_sim_traced, csv.rows);
  scenario->trace_count = (int64_t)csv.rows;
  for (size_t row = 0; row < csv.rows; row++)
    LP_TRY(read_traced(&csv, row, column, scenario, diag));
  return LP_OK;
}

static lp_status read_arrivals(lp_yaml *yaml, const lp_yaml_node *node, lp_sim_scenario *scenario) {
  arrivals_file file = {0};
  LP_TRY(lp_yaml_fields(yaml, node, "'arrivals'", arrival_fields, LP_COUNT(arrival_fields), &file));
  if ((file.poisson > 0) + (file.per_user > 0) + (file.every_s > 0) + (file.trace != NULL) != 1)
    return lp_yaml_error(yaml, node, "'arrivals' wants one of 'poisson', 'poisson_per_user', 'every', 'trace'");
  scenario->rate = file.poisson;
  scenario->user_rate = file.per_user;
  scenario->every_s = file.every_s;
  if (!file.trace) return LP_OK;
  LP_TRY(named(yaml, node, "trace", read_trace(lp_yaml_relative(yaml, file.trace), scenario, yaml->diag)));
  if (scenario->requests == 0 || scenario->requests > scenario->trace_count) scenario->requests = scenario->trace_count;
  return LP_OK;
}

/* ---- link ---- */

typedef struct {
  const char *radio;
  int64_t users, intervals;
  double up_bps, down_bps;
} link_file;

static const lp_yaml_field link_fields[] = {
    LP_YAML_FIELD(LP_YAML_TEXT, "radio", link_file, radio, .least = 0),
    LP_YAML_FIELD(LP_YAML_I64, "users", link_file, users, .least = 1, .most = 100000),
    LP_YAML_FIELD(LP_YAML_I64, "intervals", link_file, intervals, .least = 1, .most = 1000000),
    LP_YAML_FIELD(LP_YAML_BPS, "up", link_file, up_bps, .least = 1, .most = 1e15),
    LP_YAML_FIELD(LP_YAML_BPS, "down", link_file, down_bps, .least = 1, .most = 1e15),
};

static lp_status read_link(lp_yaml *yaml, const lp_yaml_node *node, lp_sim_scenario *scenario) {
  link_file file = {.intervals = 200};
  lp_loc loc = lp_yaml_loc(yaml, node);
  LP_TRY(lp_yaml_fields(yaml, node, "'link'", link_fields, LP_COUNT(link_fields), &file));
  bool rates = file.up_bps > 0 || file.down_bps > 0;
  if ((file.radio != NULL) == rates)
    return lp_error(yaml->diag, loc, "'link' wants either 'radio' or the rates 'up' and 'down'");
  if (rates && (file.up_bps <= 0 || file.down_bps <= 0))
    return lp_error(yaml->diag, loc, "'link' lacks '%s'", file.up_bps > 0 ? "down" : "up");
  scenario->up_bps = rates ? file.up_bps : INFINITY;
  scenario->down_bps = rates ? file.down_bps : INFINITY;
  scenario->users = file.users;
  if (rates) return LP_OK;
  LP_TRY(
      named(yaml, node, "radio", lp_radio_profile_load(lp_yaml_named(yaml, file.radio), &scenario->radio, yaml->diag)));
  scenario->users = file.users > 0 ? file.users : 10 * scenario->radio->sites * scenario->radio->sectors;
  scenario->intervals = file.intervals;
  return LP_OK;
}

/* ---- policies, axis ---- */

static lp_status read_policies(lp_yaml *yaml, const lp_yaml_node *node, const lp_sim_policies *known,
                               lp_sim_scenario *scenario) {
  const char **names = LP_NEW_ARRAY(yaml->arena, const char *, known->count);
  for (size_t i = 0; i < known->count; i++)
    names[i] = known->policy[i]->name;
  if (node) LP_TRY(lp_yaml_list(yaml, node, "policies", &scenario->policies));
  if (!node) scenario->policies = 1;
  scenario->policy = LP_NEW_ARRAY(yaml->arena, const lp_sim_policy *, scenario->policies);
  scenario->policy[0] = known->policy[0];
  for (int32_t i = 0; node && i < scenario->policies; i++) {
    int32_t index = 0;
    LP_TRY(lp_yaml_choice(yaml, lp_yaml_item(yaml, node, i), "policies", names, known->count, &index));
    scenario->policy[i] = known->policy[index];
  }
  return LP_OK;
}

static lp_status read_axis_entry(lp_yaml *yaml, const lp_yaml_node *key, const char *name, const lp_yaml_node *value,
                                 void *user) {
  static const lp_yaml_range ranges[] = {{0, 0, false},  {1e-9, 1e9, true}, {0, 1, true},   {1, 1e9, true},
                                         {0, 1e9, true}, {1, 1e6, true},    {0, 1e6, true}, {1, 1e5, true}};
  lp_sim_scenario *scenario = user;
  if (scenario->axis != LP_SIM_NOTHING)
    return lp_yaml_error(yaml, key, "'vary' takes one key, and '%s' is there already",
                         lp_sim_axis_names[scenario->axis]);
  for (int axis = LP_SIM_RATE; axis < LP_SIM_AXES; axis++)
    if (lp_streq(name, lp_sim_axis_names[axis])) scenario->axis = (lp_sim_axis)axis;
  if (scenario->axis == LP_SIM_NOTHING)
    return lp_yaml_unknown_key(yaml, key, name, lp_sim_axis_names + 1, LP_SIM_AXES - 1);
  return lp_yaml_numbers(yaml, value, name, &ranges[scenario->axis], &scenario->value, &scenario->values);
}

static lp_status read_axis(lp_yaml *yaml, const lp_yaml_node *node, lp_sim_scenario *scenario) {
  LP_TRY(lp_yaml_each(yaml, node, "'vary'", read_axis_entry, scenario));
  if (scenario->axis == LP_SIM_RATE && scenario->rate <= 0)
    return lp_yaml_error(yaml, node, "to vary 'rate', 'arrivals' must be 'poisson'");
  if (scenario->axis == LP_SIM_USERS && !scenario->radio && scenario->user_rate <= 0)
    return lp_yaml_error(yaml, node,
                         "to vary 'users', there must be a 'radio' network, or 'arrivals' 'poisson_per_user'");
  bool some = false, others = false;
  for (int32_t t = 0; t < scenario->tasks; t++)
    *(scenario->task[t].quality ? &some : &others) = true;
  if (scenario->axis == LP_SIM_QUALITY_SHARE && !(some && others))
    return lp_yaml_error(yaml, node, "to vary 'quality_share', there must be tasks with and without 'quality'");
  return LP_OK;
}

/* ---- services, drift ---- */

/* Reads a name or a list of names. */
static lp_status read_services(lp_yaml *yaml, const lp_yaml_node *node, lp_sim_scenario *scenario) {
  int32_t count = 1;
  if (node && lp_yaml_is_list(node)) LP_TRY(lp_yaml_list(yaml, node, "service", &count));
  scenario->services = LP_NEW_ARRAY(yaml->arena, lp_service *, count);
  for (int32_t i = 0; i < count; i++) {
    const char *name = "llama3";
    const lp_yaml_node *item = node && lp_yaml_is_list(node) ? lp_yaml_item(yaml, node, i) : node;
    if (item) LP_TRY(lp_yaml_text(yaml, item, "service", &name));
    LP_TRY(
        named(yaml, item, "service", lp_service_load(lp_yaml_named(yaml, name), &scenario->services[i], yaml->diag)));
    scenario->service_count = i + 1;
  }
  scenario->service = scenario->services[0];
  return LP_OK;
}

typedef struct {
  int64_t after;
  const char *service;
  double penalty;
} drift_file;

static const lp_yaml_field drift_fields[] = {
    LP_YAML_FIELD(LP_YAML_I64, "after", drift_file, after, .least = 1, .most = 1e12, .required = true),
    LP_YAML_FIELD(LP_YAML_TEXT, "service", drift_file, service, .least = 0),
    LP_YAML_FIELD(LP_YAML_F64, "penalty", drift_file, penalty, .least = 0, .most = 1e9),
};

static lp_status read_drift(lp_yaml *yaml, const lp_yaml_node *node, lp_sim_scenario *scenario) {
  drift_file file = {.penalty = -1};
  lp_loc loc = lp_yaml_loc(yaml, node);
  LP_TRY(lp_yaml_fields(yaml, node, "'drift'", drift_fields, LP_COUNT(drift_fields), &file));
  if (!file.service && file.penalty < 0)
    return lp_error(yaml->diag, loc, "'drift' changes nothing: it wants 'service' or 'penalty'");
  if (file.after >= scenario->requests)
    return lp_error(yaml->diag, loc, "'drift' comes after request %" PRId64 " of %" PRId64, file.after,
                    scenario->requests);
  scenario->drift_after = file.after;
  scenario->drift_penalty = file.penalty;
  if (!file.service) return LP_OK;
  return named(yaml, node, "service",
               lp_service_load(lp_yaml_named(yaml, file.service), &scenario->drift_service, yaml->diag));
}

/* ---- files ---- */

#define TOP(of, key, member, ...) LP_YAML_FIELD(of, key, lp_sim_scenario, member, __VA_ARGS__)
#define PART(key, member, ...) LP_YAML_FIELD(LP_YAML_NODE, key, scenario_file, member, __VA_ARGS__)

static const lp_yaml_field top_fields[] = {
    TOP(LP_YAML_TEXT, "simulate", name, .required = true),
    TOP(LP_YAML_TEXT, "title", title, .least = 0),
    TOP(LP_YAML_I64, "seed", seed, .least = 0, .most = 1e15),
    TOP(LP_YAML_I64, "runs", runs, .least = 1, .most = 10000),
    TOP(LP_YAML_I64, "requests", requests, .least = 1, .most = 1e12),
    TOP(LP_YAML_I64, "warm_up", warm_up, .least = 0, .most = 1e12),
    TOP(LP_YAML_CHOICE, "counting", counting, .names = lp_counting_names, .name_count = LP_COUNTINGS),
    TOP(LP_YAML_F64, "token_bytes", token_bytes, .least = 0, .most = 1e9),
    TOP(LP_YAML_TIME_S, "backhaul", backhaul_s, .most = 1e6),
    TOP(LP_YAML_TIME_S, "target", target_s, .most = 1e9),
    TOP(LP_YAML_TIME_S, "decision", decision_s, .most = 1e6),
    TOP(LP_YAML_F64, "penalty", penalty, .least = 0, .most = 1e9),
    TOP(LP_YAML_F64, "patience", patience, .least = 0, .most = 1000),
};

static const lp_yaml_field part_fields[] = {
    PART("service", service, .least = 0),
    PART("arrivals", arrivals, .required = true),
    PART("tasks", tasks, .required = true),
    PART("edge", place[LP_SITE_EDGE], .least = 0),
    PART("cloud", place[LP_SITE_CLOUD], .least = 0),
    PART("split", place[LP_SITE_SPLIT], .least = 0),
    PART("link", link, .least = 0),
    PART("policies", policies, .least = 0),
    PART("vary", vary, .least = 0),
    PART("drift", drift, .least = 0),
};

/* Joins the two tables: the fields of the second lie in the file's own struct. */
typedef struct {
  lp_sim_scenario top;
  scenario_file parts;
} whole_file;

static lp_status read_keys(lp_yaml *yaml, const lp_yaml_node *root, whole_file *file) {
  lp_yaml_field fields[LP_COUNT(top_fields) + LP_COUNT(part_fields)];
  size_t count = 0;
  for (size_t i = 0; i < LP_COUNT(top_fields); i++)
    fields[count++] = top_fields[i];
  for (size_t i = 0; i < LP_COUNT(part_fields); i++) {
    fields[count] = part_fields[i];
    fields[count++].offset += offsetof(whole_file, parts);
  }
  return lp_yaml_fields(yaml, root, "the scenario", fields, count, file);
}

/* The split is there if the file names it, or the service has figures of one. */
static lp_status read_places(lp_yaml *yaml, const scenario_file *parts, lp_sim_scenario *scenario) {
  scenario->there = 1u << LP_SITE_EDGE | 1u << LP_SITE_CLOUD;
  for (lp_site site = 0; site < LP_SITE_COUNT; site++)
    if (parts->place[site]) LP_TRY(lp_sim_place_read(yaml, parts->place[site], site, &scenario->station[site]));
  bool figures = true;
  for (int32_t i = 0; i < scenario->service_count; i++)
    figures &= scenario->services[i]->at[LP_SITE_SPLIT].model != NULL;
  if (figures || scenario->station[LP_SITE_SPLIT].pass.count > 0)
    scenario->there |= 1u << LP_SITE_SPLIT;
  else if (parts->place[LP_SITE_SPLIT])
    return lp_yaml_error(yaml, parts->place[LP_SITE_SPLIT],
                         "'split' has no times: it wants 'passes', or a 'service' with a split");
  for (int64_t i = 0; i < scenario->trace_count; i++)
    if (scenario->trace[i].place == LP_SITE_SPLIT && (scenario->there >> LP_SITE_SPLIT & 1u) == 0)
      return lp_error(yaml->diag, LP_LOC_FILE(yaml->file),
                      "request %" PRId64 " of the trace names the split, and there is none", i + 1);
  return LP_OK;
}

static lp_status read_root(void *user, lp_yaml *yaml, const lp_yaml_node *root) {
  scenario_file *given = user;
  lp_sim_scenario *scenario = given->scenario;
  whole_file file = {.top = *scenario};
  const scenario_file *parts = &file.parts;
  LP_TRY(read_keys(yaml, root, &file));
  *scenario = file.top;
  if (!scenario->title) scenario->title = scenario->name;
  LP_TRY(read_services(yaml, parts->service, scenario));
  LP_TRY(read_tasks(yaml, parts->tasks, scenario));
  LP_TRY(read_arrivals(yaml, parts->arrivals, scenario));
  if (scenario->requests == 0) scenario->requests = 10000;
  LP_TRY(read_places(yaml, parts, scenario));
  if (parts->link) LP_TRY(read_link(yaml, parts->link, scenario));
  if (scenario->user_rate > 0 && scenario->users == 0)
    return lp_yaml_error(yaml, parts->arrivals, "'poisson_per_user' wants 'users' in 'link'");
  LP_TRY(read_policies(yaml, parts->policies, given->known, scenario));
  if (parts->vary) LP_TRY(read_axis(yaml, parts->vary, scenario));
  if (parts->drift) LP_TRY(read_drift(yaml, parts->drift, scenario));
  if (scenario->warm_up >= scenario->requests)
    return lp_yaml_error(yaml, root, "'warm_up' leaves nothing to count: it is %" PRId64 " of %" PRId64 " requests",
                         scenario->warm_up, scenario->requests);
  return LP_OK;
}

static lp_sim_scenario *scenario_create(void) {
  lp_sim_scenario *scenario = lp_alloc(sizeof *scenario);
  const lp_sim_station unlimited = {.replicas = 1, .slots = LP_SIM_UNLIMITED, .queue = LP_SIM_UNLIMITED};
  *scenario = (lp_sim_scenario){.arena = lp_arena_create(),
                                .seed = 1,
                                .runs = 1,
                                .token_bytes = 4,
                                .backhaul_s = 0.1,
                                .target_s = 60,
                                .penalty = 40,
                                .patience = 0.75,
                                .drift_penalty = -1,
                                .station = {unlimited, unlimited, unlimited},
                                .up_bps = INFINITY,
                                .down_bps = INFINITY};
  return scenario;
}

void lp_sim_scenario_free(lp_sim_scenario *scenario) {
  if (!scenario) return;
  for (int32_t i = 0; i < scenario->service_count; i++)
    lp_service_free(scenario->services[i]);
  lp_service_free(scenario->drift_service);
  lp_radio_profile_free(scenario->radio);
  lp_arena_free(scenario->arena);
  free(scenario);
}

static lp_status finish(lp_status status, lp_sim_scenario *scenario, lp_sim_scenario **out) {
  *out = status == LP_OK ? scenario : NULL;
  if (status != LP_OK) lp_sim_scenario_free(scenario);
  return status;
}

lp_status lp_sim_scenario_parse(const char *name, const char *text, size_t size, const lp_sim_policies *known,
                                lp_sim_scenario **out, lp_diag *diag) {
  scenario_file file = {.scenario = scenario_create(), .known = known};
  file.scenario->digest = lp_hash_bytes(text, size, 0);
  return finish(lp_yaml_parse(name, text, size, file.scenario->arena, read_root, &file, diag), file.scenario, out);
}

lp_status lp_sim_scenario_load(const char *path, const lp_sim_policies *known, lp_sim_scenario **out, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *text = NULL;
  size_t size = 0;
  *out = NULL;
  LP_TRY(lp_file_read(path, &text, &size, diag));
  return lp_sim_scenario_parse(path, text, size, known, out, diag);
}
