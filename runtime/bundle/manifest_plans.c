/* Reads the plans of manifest.json: pairs of programs, and the regions of requests that each pair serves. */
#include "runtime/bundle/manifest.h"
#include "runtime/bundle/manifest_reader.h"

#include <math.h>

static const char *const axis_names[LP_PLAN_AXES] = {"prompt_tokens", "generated_tokens", "rtt_ms", "up_bps"};

static lp_status read_program(manifest_reader *reader, const lp_json *plan, const char *key, int32_t *out) {
  lp_json at = lp_json_member(plan, key);
  const char *name = NULL;
  LP_TRY(lp_json_text(&at, &name, reader->diag));
  *out = lp_manifest_program(reader->out, name);
  return *out >= 0 ? LP_OK : lp_json_error(&at, reader->diag, "there is no program '%.60s'", name);
}

/* Reads [low, high]; a `high` of null stands for infinity. */
static lp_status read_bounds(manifest_reader *reader, const lp_json *at, double *low, double *high) {
  LP_TRY(lp_json_array(at, reader->diag));
  if (lp_json_count(at) != 2) return lp_json_error(at, reader->diag, "wanted [least, below]");
  lp_json first = lp_json_item(at, 0), second = lp_json_item(at, 1);
  LP_TRY(lp_json_number(&first, 0, 1e18, low, reader->diag));
  *high = INFINITY;
  return lp_json_is(&second, LP_JSON_NULL) ? LP_OK : lp_json_number(&second, 0, 1e18, high, reader->diag);
}

static lp_status read_region(manifest_reader *reader, const lp_json *at, lp_plan_region *out) {
  LP_TRY(lp_json_object(at, reader->diag));
  for (int i = 0; i < LP_PLAN_AXES; i++)
    LP_TRY(read_bounds(reader, LP_MEMBER(at, axis_names[i]), &out->low[i], &out->high[i]));
  return LP_OK;
}

static lp_status read_plan(manifest_reader *reader, const lp_json *at, lp_plan_desc *out) {
  LP_TRY(lp_json_object(at, reader->diag));
  LP_TRY(read_program(reader, at, "prefill", &out->prefill));
  LP_TRY(read_program(reader, at, "decode", &out->decode));
  lp_json regions = lp_json_member(at, "regions");
  LP_TRY(lp_json_array(&regions, reader->diag));
  out->region = LP_NEW_ARRAY(reader->arena, lp_plan_region, lp_json_count(&regions) + 1);
  LP_FOR_ITEMS(item, &regions)
    LP_TRY(read_region(reader, &item, &out->region[out->region_count++]));
  return LP_OK;
}

/* A bundle without `plans` has one plan: its programs "prefill" and "decode". */
static void take_only_plan(manifest_reader *reader) {
  lp_manifest *out = reader->out;
  int32_t prefill = lp_manifest_program(out, "prefill"), decode = lp_manifest_program(out, "decode");
  if (prefill < 0 || decode < 0) return;
  out->plans = LP_NEW(reader->arena, lp_plan_desc);
  *out->plans = (lp_plan_desc){.prefill = prefill, .decode = decode};
  out->plan_count = 1;
}

lp_status lp_manifest_plans(manifest_reader *reader, const lp_json *root) {
  lp_json at = lp_json_member(root, "plans");
  if (!at.value) {
    take_only_plan(reader);
    return LP_OK;
  }
  LP_TRY(lp_json_array(&at, reader->diag));
  size_t count = lp_json_count(&at);
  if (count == 0) return lp_json_error(&at, reader->diag, "wanted at least one plan");
  reader->out->plans = LP_NEW_ARRAY(reader->arena, lp_plan_desc, count);
  LP_FOR_ITEMS(item, &at)
    LP_TRY(read_plan(reader, &item, &reader->out->plans[reader->out->plan_count++]));
  return LP_OK;
}
