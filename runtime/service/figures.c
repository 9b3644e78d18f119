/* TTFT and TPOT of a model compiled by llmpart: measured by `llmpart bench`, or predicted in a report. */
#include "base/path.h"
#include "runtime/service/service.h"

#include "base/json/reader.h"

/* Reads the value of a document. */
typedef lp_status document_reader(const lp_json *root, void *user, lp_diag *diag);

static lp_status read_json(const char *path, const char *schema, document_reader *read, void *user, lp_diag *diag) {
  LP_OWNED(lp_json_free_at) lp_json_document *document = NULL;
  LP_TRY(lp_json_load(path, 0, &document, diag));
  lp_json root = lp_json_root(path, document), at = lp_json_member(&root, "schema");
  const char *found = NULL;
  lp_status status = lp_json_text(&at, &found, diag);
  if (status == LP_OK && !lp_streq(found, schema))
    status = lp_json_error(&at, diag, "is '%.80s', wanted '%s'", found, schema);
  if (status == LP_OK) status = read(&root, user, diag);
  return status;
}

/* ---- bench ---- */

typedef struct {
  lp_arena *arena;
  lp_service_model *out;
} bench_reader;

static lp_status read_test(const lp_json *test, lp_service_model *out, lp_diag *diag) {
  const char *name = NULL;
  double rate = 0;
  LP_TRY(lp_json_text(LP_MEMBER(test, "test"), &name, diag));
  LP_TRY(lp_json_number(LP_MEMBER(test, "tokens_per_s"), 1e-9, 1e12, &rate, diag));
  if (lp_has_prefix(name, "pp")) out->prompt_s = 1 / rate;
  if (lp_has_prefix(name, "tg")) out->tpot_s = 1 / rate;
  return LP_OK;
}

static lp_status read_bench(const lp_json *root, void *user, lp_diag *diag) {
  bench_reader *r = user;
  lp_json tests = lp_json_member(root, "tests"), bundle = lp_json_member(root, "bundle");
  const char *name = NULL;
  LP_TRY(lp_json_text(&bundle, &name, diag));
  LP_TRY(lp_json_array(&tests, diag));
  LP_FOR_ITEMS(test, &tests)
    LP_TRY(read_test(&test, r->out, diag));
  if (r->out->prompt_s <= 0 || r->out->tpot_s <= 0)
    return lp_json_error(&tests, diag, "lacks a row 'pp...' or 'tg...': measure with -p and -n above 0");
  r->out->model = lp_arena_strdup(r->arena, name);
  r->out->source = lp_arena_format(r->arena, "llmpart bench: %s", root->file);
  return LP_OK;
}

lp_status lp_service_from_bench(const char *path, lp_arena *arena, lp_service_model *out, lp_diag *diag) {
  *out = (lp_service_model){0};
  return read_json(path, "llmpart.bench/1", read_bench, &(bench_reader){arena, out}, diag);
}

/* ---- reports ---- */

typedef struct {
  lp_arena *arena;
  const char *plan; /* the baseline to take, or NULL for the plan itself */
  lp_service_model *out;
} report_reader;

/* The sum of some members in ms, as s. */
static lp_status sum_of(const lp_json *plan, const char *const *keys, size_t count, double *seconds, lp_diag *diag) {
  *seconds = 0;
  for (size_t i = 0; i < count; i++) {
    double ms = 0;
    LP_TRY(lp_json_number(LP_MEMBER(plan, keys[i]), 0, 1e15, &ms, diag));
    *seconds += ms / 1e3;
  }
  return LP_OK;
}

static lp_status read_report(const lp_json *root, void *user, lp_diag *diag) {
  static const char *const prefill[] = {"prefill_device_ms", "prefill_cloud_ms", "prefill_link_ms"};
  static const char *const decode[] = {"decode_device_ms", "decode_cloud_ms", "decode_link_ms"};
  report_reader *r = user;
  lp_json baselines = lp_json_member(root, "baselines"), model = lp_json_member(root, "model");
  lp_json name_at = lp_json_member(&model, "name"), plan = lp_json_member(root, "plan");
  const char *name = NULL;
  if (r->plan) plan = lp_json_member(&baselines, r->plan);
  LP_TRY(lp_json_text(&name_at, &name, diag));
  LP_TRY(lp_json_object(&plan, diag));
  size_t count = r->plan ? 2 : 3; /* the router adds the link's times; a split plan contains them */
  LP_TRY(sum_of(&plan, prefill, count, &r->out->ttft_s, diag));
  LP_TRY(sum_of(&plan, decode, count, &r->out->tpot_s, diag));
  r->out->model = lp_arena_strdup(r->arena, name);
  r->out->source = lp_arena_format(r->arena, "%s of %s", r->plan ? r->plan : "plan", root->file);
  return LP_OK;
}

/* A bundle is a folder with the report in it. */
static lp_status from_report(const char *path, report_reader *reader, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *inside = lp_path_join(path, "report.json");
  *reader->out = (lp_service_model){0};
  return read_json(lp_path_exists(inside) ? inside : path, "llmpart.report/1", read_report, reader, diag);
}

lp_status lp_service_from_report(const char *path, lp_site site, lp_arena *arena, lp_service_model *out,
                                 lp_diag *diag) {
  return from_report(path, &(report_reader){arena, site == LP_SITE_EDGE ? "device_only" : "cloud_only", out}, diag);
}

lp_status lp_service_from_split(const char *path, lp_arena *arena, lp_service_model *out, lp_diag *diag) {
  return from_report(path, &(report_reader){arena, NULL, out}, diag);
}
