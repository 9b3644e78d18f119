/* Reads the specification of a sweep: a YAML file of axes. Every axis takes a value or a list of values, and the sweep
 * takes all combinations. */
#include "base/map.h"
#include "base/side.h"
#include "base/units.h"
#include "passes/plan/sweep/sweep.h"

#include "base/yaml/yaml.h"

enum { MOST_COLUMNS = 3, MOST_ROWS = 10000000 };

typedef struct {
  lp_sweep_spec *spec;
  lp_yaml *yaml;
  lp_sweep_link_loader *load_link;
  lp_map *machines; /* text -> machine: each is loaded once */
} reader;

/* ---- faults of values -------------------------------------------------------------------------------------------- */

lp_status lp_sweep_relay(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, lp_diag *inner) {
  lp_diag_relay(yaml->diag, lp_yaml_loc(yaml, node), key, inner);
  lp_diag_free(inner);
  return LP_FAILED;
}

/* ---- axes of mappings -------------------------------------------------------------------------------------------- */

/* One combination: the texts of the columns, NULL where absent, and their positions in the file. */
typedef lp_status add_combination(reader *r, const char *const *text, const lp_yaml_node *const *node);

typedef struct {
  const char *what; /* "a workload" */
  const char *key[MOST_COLUMNS];
  bool required[MOST_COLUMNS];
  add_combination *add;
} axis_form;

static int32_t column_count(const axis_form *form) {
  int32_t count = 0;
  while (count < MOST_COLUMNS && form->key[count])
    count++;
  return count;
}

/* Adds the combinations of the columns from `column` on; the earlier ones are chosen. */
static lp_status combine(reader *r, const axis_form *form, const lp_yaml_node *const *value, int32_t column,
                         const char **text, const lp_yaml_node **node) {
  if (column == column_count(form)) return form->add(r, text, node);
  const lp_yaml_node *list = value[column];
  text[column] = NULL;
  node[column] = list;
  if (!list) return combine(r, form, value, column + 1, text, node);
  int32_t count = 1;
  if (lp_yaml_is_list(list)) LP_TRY(lp_yaml_list(r->yaml, list, form->key[column], &count));
  for (int32_t i = 0; i < count; i++) {
    node[column] = lp_yaml_is_list(list) ? lp_yaml_item(r->yaml, list, i) : list;
    LP_TRY(lp_yaml_text(r->yaml, node[column], form->key[column], &text[column]));
    LP_TRY(combine(r, form, value, column + 1, text, node));
  }
  return LP_OK;
}

static lp_status read_combinations(reader *r, const axis_form *form, const lp_yaml_node *mapping) {
  const lp_yaml_node *value[MOST_COLUMNS] = {NULL}, *node[MOST_COLUMNS];
  const char *text[MOST_COLUMNS];
  lp_yaml_field fields[MOST_COLUMNS];
  int32_t count = column_count(form);
  for (int32_t i = 0; i < count; i++)
    fields[i] = (lp_yaml_field){
        .kind = LP_YAML_NODE, .key = form->key[i], .offset = (size_t)i * sizeof *value, .required = form->required[i]};
  LP_TRY(lp_yaml_fields(r->yaml, mapping, form->what, fields, (size_t)count, value));
  return combine(r, form, value, 0, text, node);
}

/* A mapping or a list of them. */
static lp_status read_axis(reader *r, const axis_form *form, const char *key, const lp_yaml_node *node) {
  if (lp_yaml_is_mapping(node)) return read_combinations(r, form, node);
  int32_t count = 0;
  LP_TRY(lp_yaml_list(r->yaml, node, key, &count));
  for (int32_t i = 0; i < count; i++)
    LP_TRY(read_combinations(r, form, lp_yaml_item(r->yaml, node, i)));
  return LP_OK;
}

/* ---- machines and links ------------------------------------------------------------------------------------------ */

const char *lp_sweep_path(const lp_yaml *yaml, const char *text) {
  size_t length = strcspn(text, ",");
  const char *name = lp_arena_strndup(yaml->arena, text, length);
  bool path =
      strchr(name, '/') || lp_has_suffix(name, ".yaml") || lp_has_suffix(name, ".yml") || lp_has_suffix(name, ".csv");
  return path && strcspn(text, "=") >= length ? lp_yaml_relative(yaml, text) : text;
}

static lp_status load_machine(reader *r, const char *key, const char *text, const lp_yaml_node *node,
                              lp_machine **out) {
  *out = lp_map_get(r->machines, text);
  if (*out) return LP_OK;
  lp_diag *inner = lp_diag_create();
  if (lp_hw_load(lp_sweep_path(r->yaml, text), out, inner) != LP_OK) return lp_sweep_relay(r->yaml, node, key, inner);
  lp_diag_free(inner);
  lp_map_put(r->machines, text, *out);
  return LP_OK;
}

static lp_status add_machines(reader *r, const char *const *text, const lp_yaml_node *const *node) {
  lp_sweep_machines pair;
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    pair.name[i] = text[i];
    LP_TRY(load_machine(r, lp_side_names[i], text[i], node[i], &pair.machine[i]));
  }
  lp_vec_push(&r->spec->machines, pair);
  return LP_OK;
}

/* Links that do not vary are planned as they are. */
static lp_status plan_for_quantile(const reader *r, const char *text, const lp_yaml_node *node, lp_link *link) {
  double quantile = r->spec->sla_quantile;
  if (quantile == 0 || link->state_count == 0 || lp_link_plan_for(link, quantile)) return LP_OK;
  return lp_yaml_error(r->yaml, node, "nothing passes over '%s' in a state for which %g %% are at least as good", text,
                       100 * quantile);
}

static lp_status add_link(reader *r, const char *text, const lp_yaml_node *node) {
  lp_sweep_link link = {.name = text};
  lp_diag *inner = lp_diag_create();
  if (r->load_link(lp_sweep_path(r->yaml, text), &link.link, inner) != LP_OK)
    return lp_sweep_relay(r->yaml, node, "links", inner);
  lp_diag_free(inner);
  lp_vec_push(&r->spec->links, link);
  return plan_for_quantile(r, text, node, link.link);
}

/* ---- the other axes ---------------------------------------------------------------------------------------------- */

static lp_status read_count(reader *r, const char *key, const char *text, const lp_yaml_node *node, int64_t *out) {
  return text ? lp_yaml_whole(r->yaml, node, key, 1, out) : LP_OK;
}

static lp_status add_workload(reader *r, const char *const *text, const lp_yaml_node *const *node) {
  lp_sweep_workload workload = {.batch = 1};
  LP_TRY(read_count(r, "isl", text[0], node[0], &workload.isl));
  LP_TRY(read_count(r, "osl", text[1], node[1], &workload.osl));
  LP_TRY(read_count(r, "batch", text[2], node[2], &workload.batch));
  lp_vec_push(&r->spec->workloads, workload);
  return LP_OK;
}

static lp_status read_time(reader *r, const char *key, const char *text, const lp_yaml_node *node, double *ms) {
  *ms = 0;
  if (!text || lp_streq(text, "none")) return LP_OK;
  lp_diag *inner = lp_diag_create();
  if (lp_parse_time_ms(text, ms, inner, LP_LOC_NONE) != LP_OK) return lp_sweep_relay(r->yaml, node, key, inner);
  lp_diag_free(inner);
  if (*ms > 0) return LP_OK;
  return lp_yaml_error(r->yaml, node, "'%s' is 0, which no plan can meet; 'none' sets no limit", key);
}

static lp_status add_sla(reader *r, const char *const *text, const lp_yaml_node *const *node) {
  lp_sweep_sla sla;
  LP_TRY(read_time(r, "ttft", text[0], node[0], &sla.ttft_ms));
  LP_TRY(read_time(r, "tpot", text[1], node[1], &sla.tpot_ms));
  lp_vec_push(&r->spec->slas, sla);
  return LP_OK;
}

static lp_status add_dtypes(reader *r, const char *const *text, const lp_yaml_node *const *node) {
  static const char *const names[] = {"model", "f32", "f16", "bf16", "int8", "int4"};
  lp_sweep_dtypes dtypes = {0};
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    int32_t index = 0;
    if (text[i]) LP_TRY(lp_yaml_choice(r->yaml, node[i], lp_side_names[i], names, LP_COUNT(names), &index));
    dtypes.dtype[i] = index ? names[index] : NULL;
  }
  lp_vec_push(&r->spec->dtypes, dtypes);
  return LP_OK;
}

static lp_status add_scheduler(reader *r, const char *text, const lp_yaml_node *node) {
  static const char *const names[] = {
#define LP_SCHEDULER(symbol, name, ignores_link, summary) name,
#define LP_ONE_CUT(symbol, name, ignores_link, summary)
#include "passes/plan/schedulers.def"
  };
  int32_t index;
  (void)text;
  LP_TRY(lp_yaml_choice(r->yaml, node, "schedulers", names, LP_COUNT(names), &index));
  lp_vec_push(&r->spec->schedulers, names[index]);
  return LP_OK;
}

static lp_status add_sessions(reader *r, const char *text, const lp_yaml_node *node) {
  int64_t sessions = 1;
  LP_TRY(read_count(r, "sessions", text, node, &sessions));
  lp_vec_push(&r->spec->sessions, sessions);
  return LP_OK;
}

/* A value or a list of values. */
static lp_status read_values(reader *r, const char *key, const lp_yaml_node *node,
                             lp_status (*add)(reader *, const char *, const lp_yaml_node *)) {
  int32_t count = 1;
  if (lp_yaml_is_list(node)) LP_TRY(lp_yaml_list(r->yaml, node, key, &count));
  for (int32_t i = 0; i < count; i++) {
    const lp_yaml_node *item = lp_yaml_is_list(node) ? lp_yaml_item(r->yaml, node, i) : node;
    const char *text;
    LP_TRY(lp_yaml_text(r->yaml, item, key, &text));
    LP_TRY(add(r, text, item));
  }
  return LP_OK;
}

/* ---- model ------------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_decoder_shape shape;
  int32_t dtype;
} decoder_text;

static lp_status read_decoder(lp_yaml *yaml, const lp_yaml_node *node, lp_decoder_shape *out) {
  static const char *const names[] = {"f32", "f16", "bf16"};
  static const lp_dtype dtypes[] = {LP_F32, LP_F16, LP_BF16};
  decoder_text d = {.shape = {.causal = true, .context = 4096}, .dtype = 1};
#define SIZE(name, member, limit, needed)                                                                              \
  LP_YAML_FIELD(LP_YAML_I64, name, decoder_text, shape.member, .least = 1, .most = (limit), .required = (needed))
  const lp_yaml_field fields[] = {
      SIZE("layers", layers, 1000, true),
      SIZE("hidden", hidden, 1 << 20, true),
      SIZE("ffn", ffn, 1 << 22, true),
      SIZE("heads", heads, 4096, true),
      SIZE("kv_heads", kv_heads, 4096, false),
      SIZE("vocab", vocab, 1 << 24, true),
      SIZE("context", context, 1 << 24, false),
      LP_YAML_FIELD(LP_YAML_BOOL, "tied", decoder_text, shape.tied, .required = false),
      LP_YAML_FIELD(LP_YAML_CHOICE, "dtype", decoder_text, dtype, .names = names, .name_count = LP_COUNT(names))};
#undef SIZE
  LP_TRY(lp_yaml_fields(yaml, node, "a decoder", fields, LP_COUNT(fields), &d));
  if (!d.shape.kv_heads) d.shape.kv_heads = d.shape.heads;
  d.shape.dtype = dtypes[d.dtype];
  if (d.shape.hidden % (2 * d.shape.heads) || d.shape.heads % d.shape.kv_heads)
    return lp_yaml_error(yaml, node,
                         "'hidden' %" PRId64 ", 'heads' %" PRId64 " and 'kv_heads' %" PRId64
                         " do not divide into heads of an even size",
                         d.shape.hidden, d.shape.heads, d.shape.kv_heads);
  *out = d.shape;
  return LP_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

typedef struct {
  const lp_yaml_node *model_at, *decoder, *machines, *links, *workloads, *slas, *dtypes, *schedulers, *sessions,
      *objective_at, *memory_at, *kv_at, *quantile_at, *rank_at;
} file_parts;

lp_status lp_sweep_model(lp_yaml *yaml, const lp_yaml_node *root, const lp_yaml_node *model,
                         const lp_yaml_node *decoder, const char **path, lp_decoder_shape *shape, lp_loc *loc) {
  if (!model == !decoder)
    return lp_yaml_error(yaml, root, "expected 'model' (a file) or 'decoder' (a shape)%s",
                         decoder ? ", and not both" : "");
  *loc = lp_yaml_loc(yaml, decoder ? decoder : model);
  if (decoder) return read_decoder(yaml, decoder, shape);
  const char *text;
  LP_TRY(lp_yaml_text(yaml, model, "model", &text));
  *path = lp_yaml_relative(yaml, text);
  return LP_OK;
}

/* A quantile is for links that vary. */
static lp_status check_quantile(const reader *r, const file_parts *parts) {
  bool varies = false;
  for (size_t i = 0; i < r->spec->links.count; i++)
    varies = varies || r->spec->links.data[i].link->state_count > 0;
  if (varies || !parts->quantile_at) return LP_OK;
  return lp_yaml_error(
      r->yaml, parts->quantile_at,
      "'sla_quantile' is for links that vary, and none of 'links' does: give a trace (.csv) or a radio profile");
}

static lp_status read_settings(reader *r, const file_parts *parts) {
  static const char *const kv[] = {"f32", "f16", "bf16", "int8", "int4"};
  static const char *const ranks[] = {"cost_per_mtok_usd", "total_cost_per_mtok_usd"};
  lp_sweep_spec *spec = r->spec;
  spec->objective = "cost";
  if (parts->objective_at) {
    LP_TRY(lp_yaml_text(r->yaml, parts->objective_at, "objective", &spec->objective));
    LP_TRY(lp_plan_objective_check(spec->objective, r->yaml->diag, lp_yaml_loc(r->yaml, parts->objective_at)));
  }
  int32_t index = 0;
  if (parts->rank_at) LP_TRY(lp_yaml_choice(r->yaml, parts->rank_at, "rank_by", ranks, LP_COUNT(ranks), &index));
  spec->ranks_by_total = index == 1;
  if (parts->kv_at) LP_TRY(lp_yaml_choice(r->yaml, parts->kv_at, "kv_dtype", kv, LP_COUNT(kv), &index));
  spec->kv_dtype = parts->kv_at ? kv[index] : NULL;
  if (parts->quantile_at)
    LP_TRY(lp_yaml_number(r->yaml, parts->quantile_at, "sla_quantile", 1e-9, 1, &spec->sla_quantile));
  if (!parts->memory_at) return LP_OK;
  const char *text;
  LP_TRY(lp_yaml_text(r->yaml, parts->memory_at, "device_memory", &text));
  lp_diag *inner = lp_diag_create();
  if (lp_parse_size(text, &spec->device_memory, inner, LP_LOC_NONE) != LP_OK)
    return lp_sweep_relay(r->yaml, parts->memory_at, "device_memory", inner);
  lp_diag_free(inner);
  return LP_OK;
}

static lp_status read_axes(reader *r, const file_parts *parts) {
  const axis_form machines = {
      "machines", {lp_side_names[LP_SIDE_DEVICE], lp_side_names[LP_SIDE_CLOUD]}, {true, true}, add_machines};
  static const axis_form workloads = {"a workload", {"isl", "osl", "batch"}, {true, true, false}, add_workload};
  static const axis_form slas = {"an SLA", {"ttft", "tpot"}, {false, false}, add_sla};
  const axis_form dtypes = {
      "types", {lp_side_names[LP_SIDE_DEVICE], lp_side_names[LP_SIDE_CLOUD]}, {false, false}, add_dtypes};
  LP_TRY(read_axis(r, &machines, "machines", parts->machines));
  LP_TRY(read_values(r, "links", parts->links, add_link));
  LP_TRY(read_axis(r, &workloads, "workloads", parts->workloads));
  if (parts->slas)
    LP_TRY(read_axis(r, &slas, "slas", parts->slas));
  else
    lp_vec_push(&r->spec->slas, (lp_sweep_sla){0});
  if (parts->dtypes)
    LP_TRY(read_axis(r, &dtypes, "dtypes", parts->dtypes));
  else
    lp_vec_push(&r->spec->dtypes, (lp_sweep_dtypes){0});
  if (parts->schedulers)
    LP_TRY(read_values(r, "schedulers", parts->schedulers, add_scheduler));
  else
    lp_vec_push(&r->spec->schedulers, lp_scheduler_default);
  if (parts->sessions) return read_values(r, "sessions", parts->sessions, add_sessions);
  lp_vec_push(&r->spec->sessions, 1);
  return LP_OK;
}

static lp_status count_rows(const reader *r, const lp_yaml_node *root) {
  lp_sweep_spec *spec = r->spec;
  const size_t count[LP_SWEEP_AXES] = {spec->machines.count, spec->links.count,  spec->workloads.count,
                                       spec->slas.count,     spec->dtypes.count, spec->schedulers.count,
                                       spec->sessions.count};
  spec->rows = 1;
  for (int i = 0; i < LP_SWEEP_AXES; i++) {
    spec->count[i] = count[i];
    if (!lp_size_mul(spec->rows, count[i], &spec->rows) || spec->rows > MOST_ROWS)
      return lp_yaml_error(r->yaml, root, "the specification has more than %d combinations", MOST_ROWS);
  }
  return LP_OK;
}

/* `user`: a reader without its document. */
static lp_status read_root(void *user, lp_yaml *yaml, const lp_yaml_node *root) {
  reader r = *(const reader *)user;
  r.yaml = yaml;
  r.machines = lp_map_create();
  file_parts parts = {0};
#define PART(name, member, needed) LP_YAML_FIELD(LP_YAML_NODE, name, file_parts, member, .required = (needed))
  const lp_yaml_field fields[] = {PART("model", model_at, false),
                                  PART("decoder", decoder, false),
                                  PART("machines", machines, true),
                                  PART("links", links, true),
                                  PART("workloads", workloads, true),
                                  PART("slas", slas, false),
                                  PART("dtypes", dtypes, false),
                                  PART("schedulers", schedulers, false),
                                  PART("sessions", sessions, false),
                                  PART("objective", objective_at, false),
                                  PART("device_memory", memory_at, false),
                                  PART("kv_dtype", kv_at, false),
                                  PART("sla_quantile", quantile_at, false),
                                  PART("rank_by", rank_at, false)};
#undef PART
  lp_status status = lp_yaml_fields(yaml, root, "a sweep", fields, LP_COUNT(fields), &parts);
  if (status == LP_OK)
    status =
        lp_sweep_model(yaml, root, parts.model_at, parts.decoder, &r.spec->model, &r.spec->decoder, &r.spec->model_loc);
  if (status == LP_OK) status = read_settings(&r, &parts);
  if (status == LP_OK) status = read_axes(&r, &parts);
  if (status == LP_OK) status = check_quantile(&r, &parts);
  if (status == LP_OK) status = count_rows(&r, root);
  for (size_t i = 0; i < lp_map_count(r.machines); i++)
    lp_vec_push(&r.spec->loaded, lp_map_value_at(r.machines, i));
  lp_map_free(r.machines);
  return status;
}

lp_status lp_sweep_spec_read(const char *path, lp_sweep_link_loader *load_link, lp_sweep_spec *out, lp_diag *diag) {
  reader r = {.spec = out, .load_link = load_link ? load_link : lp_link_load};
  *out = (lp_sweep_spec){.arena = lp_arena_create()};
  out->path = lp_arena_strdup(out->arena, path);
  return lp_yaml_load(out->path, out->arena, read_root, &r, diag);
}

void lp_sweep_spec_free(lp_sweep_spec *spec) {
  for (size_t i = 0; i < spec->loaded.count; i++)
    lp_hw_free(spec->loaded.data[i]);
  for (size_t i = 0; i < spec->links.count; i++)
    lp_link_free(spec->links.data[i].link);
  lp_vec_free(&spec->loaded);
  lp_vec_free(&spec->machines);
  lp_vec_free(&spec->links);
  lp_vec_free(&spec->workloads);
  lp_vec_free(&spec->slas);
  lp_vec_free(&spec->dtypes);
  lp_vec_free(&spec->schedulers);
  lp_vec_free(&spec->sessions);
  lp_arena_free(spec->arena);
}

lp_compile_request lp_sweep_request(const lp_sweep_spec *spec, size_t row, size_t at[LP_SWEEP_AXES]) {
  for (int i = LP_SWEEP_AXES; i-- > 0; row /= spec->count[i])
    at[i] = row % spec->count[i];
  const lp_sweep_machines *machines = &spec->machines.data[at[LP_SWEEP_MACHINES]];
  const lp_sweep_workload *workload = &spec->workloads.data[at[LP_SWEEP_WORKLOADS]];
  const lp_sweep_sla *sla = &spec->slas.data[at[LP_SWEEP_SLAS]];
  const lp_sweep_dtypes *dtypes = &spec->dtypes.data[at[LP_SWEEP_DTYPES]];
  return (lp_compile_request){.device = machines->machine[LP_SIDE_DEVICE],
                              .cloud = machines->machine[LP_SIDE_CLOUD],
                              .link = spec->links.data[at[LP_SWEEP_LINKS]].link,
                              .ttft_ms = sla->ttft_ms,
                              .tpot_ms = sla->tpot_ms,
                              .isl = workload->isl,
                              .osl = workload->osl,
                              .batch = workload->batch,
                              .sessions = spec->sessions.data[at[LP_SWEEP_SESSIONS]],
                              .scheduler = spec->schedulers.data[at[LP_SWEEP_SCHEDULERS]],
                              .objective = spec->objective,
                              .device_memory = spec->device_memory,
                              .dtype_device = dtypes->dtype[LP_SIDE_DEVICE],
                              .dtype_cloud = dtypes->dtype[LP_SIDE_CLOUD],
                              .kv_dtype = spec->kv_dtype,
                              .generation = true};
}
