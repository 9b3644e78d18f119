/* Pairs of models in YAML, and the equations of their times. */
#include "base/yaml/yaml.h"
#include "runtime/service/service.h"

#include <math.h>

extern const lp_embedded_table lp_embedded_services;

/* ---- one site ---- */

typedef struct {
  lp_service_model model;
  double tokens_per_s;
  const char *bench, *report;
} place_file;

static const lp_yaml_field place_fields[] = {
    LP_YAML_FIELD(LP_YAML_TEXT, "model", place_file, model.model, .least = 0),
    LP_YAML_FIELD(LP_YAML_TIME_S, "ttft", place_file, model.ttft_s, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_TIME_S, "per_prompt_token", place_file, model.prompt_s, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_TIME_S, "tpot", place_file, model.tpot_s, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_F64, "tokens_per_s", place_file, tokens_per_s, .least = 1e-6, .most = 1e9),
    LP_YAML_FIELD(LP_YAML_TEXT, "bench", place_file, bench, .least = 0),
    LP_YAML_FIELD(LP_YAML_TEXT, "report", place_file, report, .least = 0),
    LP_YAML_FIELD(LP_YAML_TEXT, "source", place_file, model.source, .least = 0),
};

static lp_status read_site(lp_yaml *yaml, const lp_yaml_node *node, lp_site site, lp_service_model *out) {
  place_file file = {.model = {.ttft_s = -1, .tpot_s = -1}};
  const char *what = lp_site_names[site];
  lp_loc loc = lp_yaml_loc(yaml, node);
  LP_TRY(lp_yaml_fields(yaml, node, lp_arena_format(yaml->arena, "'%s'", what), place_fields, LP_COUNT(place_fields),
                        &file));
  bool given = file.model.ttft_s >= 0 || file.model.tpot_s >= 0 || file.tokens_per_s > 0 || file.model.prompt_s > 0;
  if ((file.bench != NULL) + (file.report != NULL) + given != 1)
    return lp_error(yaml->diag, loc, "'%s' wants one of 'bench', 'report', or figures ('ttft' and 'tpot')", what);
  if (file.bench) return lp_service_from_bench(lp_yaml_relative(yaml, file.bench), yaml->arena, out, yaml->diag);
  if (file.report && site == LP_SITE_SPLIT)
    return lp_service_from_split(lp_yaml_relative(yaml, file.report), yaml->arena, out, yaml->diag);
  if (file.report)
    return lp_service_from_report(lp_yaml_relative(yaml, file.report), site, yaml->arena, out, yaml->diag);
  if ((file.model.tpot_s >= 0) == (file.tokens_per_s > 0))
    return lp_error(yaml->diag, loc, "'%s' wants one of 'tpot' and 'tokens_per_s'", what);
  if (file.model.ttft_s < 0) return lp_error(yaml->diag, loc, "'%s' lacks 'ttft'", what);
  *out = file.model;
  if (file.tokens_per_s > 0) out->tpot_s = 1 / file.tokens_per_s;
  if (!out->model) out->model = what;
  return LP_OK;
}

/* ---- files ---- */

typedef struct {
  const char *name, *title;
  const lp_yaml_node *at[LP_SITE_COUNT];
} service_file;

static const lp_yaml_field fields[] = {
    LP_YAML_FIELD(LP_YAML_TEXT, "service", service_file, name, .required = true),
    LP_YAML_FIELD(LP_YAML_TEXT, "title", service_file, title, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "edge", service_file, at[LP_SITE_EDGE], .required = true),
    LP_YAML_FIELD(LP_YAML_NODE, "cloud", service_file, at[LP_SITE_CLOUD], .required = true),
    LP_YAML_FIELD(LP_YAML_NODE, "split", service_file, at[LP_SITE_SPLIT], .least = 0),
};

static lp_status read_root(void *user, lp_yaml *yaml, const lp_yaml_node *root) {
  lp_service *service = user;
  service_file file = {0};
  LP_TRY(lp_yaml_fields(yaml, root, "the service", fields, LP_COUNT(fields), &file));
  service->name = file.name;
  service->title = file.title ? file.title : file.name;
  for (int site = 0; site < LP_SITE_COUNT; site++)
    if (file.at[site]) LP_TRY(read_site(yaml, file.at[site], (lp_site)site, &service->at[site]));
  return LP_OK;
}

static lp_service *service_create(void) {
  lp_service *service = lp_alloc(sizeof *service);
  service->arena = lp_arena_create();
  return service;
}

void lp_service_free(lp_service *service) {
  if (!service) return;
  lp_arena_free(service->arena);
  free(service);
}

static lp_status finish(lp_status status, lp_service *service, lp_service **out) {
  *out = status == LP_OK ? service : NULL;
  if (status != LP_OK) lp_service_free(service);
  return status;
}

lp_status lp_service_parse(const char *file, const char *text, size_t size, lp_service **out, lp_diag *diag) {
  lp_service *service = service_create();
  return finish(lp_yaml_parse(file, text, size, service->arena, read_root, service, diag), service, out);
}

lp_status lp_service_load(const char *name, lp_service **out, lp_diag *diag) {
  lp_service *service = service_create();
  return finish(lp_embedded_load(&lp_embedded_services, "service", name, service->arena, read_root, service, diag),
                service, out);
}

size_t lp_service_names(const char *const **names) {
  *names = lp_embedded_services.names;
  return lp_embedded_services.name_count;
}

void lp_service_print(const lp_service *service, lp_buf *out) {
  lp_buf_puts(out, "service: ");
  lp_yaml_print_quoted(service->name, out);
  lp_buf_puts(out, "\ntitle: ");
  lp_yaml_print_quoted(service->title, out);
  for (int site = 0; site < LP_SITE_COUNT; site++) {
    const lp_service_model *model = &service->at[site];
    if (!model->model) continue;
    lp_buf_printf(out, "\n%s:\n  model: ", lp_site_names[site]);
    lp_yaml_print_quoted(model->model, out);
    lp_buf_printf(out, "\n  ttft: %.12gs\n  per_prompt_token: %.12gs\n  tpot: %.12gs", model->ttft_s, model->prompt_s,
                  model->tpot_s);
    if (!model->source) continue;
    lp_buf_puts(out, "\n  source: ");
    lp_yaml_print_quoted(model->source, out);
  }
  lp_buf_puts(out, "\n");
}

/* ---- equations --------------------------------------------------------------------------------------------------- */

const char *const lp_site_names[LP_SITE_COUNT] = {"edge", "cloud", "split"};
const char *const lp_counting_names[LP_COUNTINGS] = {"once", "paper"};

double lp_generation_s(const lp_service_model *model, double prompt_tokens, double tokens, lp_counting counting) {
  double more = counting == LP_COUNT_PAPER ? tokens : fmax(tokens - 1, 0);
  return model->ttft_s + prompt_tokens * model->prompt_s + more * model->tpot_s;
}

double lp_transmission_s(double tokens, double token_bytes, double bps, lp_site site, double backhaul_s) {
  return 8 * tokens * token_bytes / bps + (site == LP_SITE_CLOUD ? backhaul_s : 0);
}

double lp_service_reward(double target_s, double total_s, double penalty, bool missed_quality) {
  return target_s - total_s - (missed_quality ? penalty : 0);
}

double lp_service_slope_s(const lp_service *service, double tokens, double backhaul_s, lp_counting counting) {
  return lp_generation_s(&service->at[LP_SITE_CLOUD], 0, tokens, counting) + backhaul_s -
         lp_generation_s(&service->at[LP_SITE_EDGE], 0, tokens, counting);
}

double lp_service_break_even(const lp_service *service, double penalty, double backhaul_s, lp_counting counting) {
  const lp_service_model *edge = &service->at[LP_SITE_EDGE], *cloud = &service->at[LP_SITE_CLOUD];
  double per_token = cloud->tpot_s - edge->tpot_s;
  if (per_token <= 0) return INFINITY;
  double tokens = (penalty - (cloud->ttft_s - edge->ttft_s) - backhaul_s) / per_token;
  return counting == LP_COUNT_PAPER ? tokens : tokens + 1;
}
