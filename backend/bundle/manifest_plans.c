/* The plans of a family in the manifest: the programs of each and the requests it serves, from the attributes that the
 * pass `place` left on the first prefill. */
#include "backend/bundle/bundle_internal.h"

#include <jansson.h>

/* A region: the plan, then low and high along each axis; high below 0 is open. */
static const char *const axes[] = {"prompt_tokens", "generated_tokens", "rtt_ms", "up_bps"};
enum { AXES = LP_COUNT(axes), REGION_NUMBERS = 1 + 2 * AXES };

static const lp_attr *find_attr(const bundle *b, const char *name, lp_attr_kind kind) {
  const lp_op *func = lp_module_find_func(b->module, "prefill");
  const lp_attr *attr = func ? lp_op_attr(func, name) : NULL;
  return attr && attr->kind == kind ? attr : NULL;
}

static json_t *region_json(const double *numbers) {
  json_t *region = json_object();
  for (size_t i = 0; i < AXES; i++) {
    double high = numbers[2 * i + 1];
    json_object_set_new(region, axes[i], json_pack("[f, o]", numbers[2 * i], high < 0 ? json_null() : json_real(high)));
  }
  return region;
}

json_t *lp_bundle_plans(const bundle *b) {
  const lp_attr *prefill = find_attr(b, "plan_prefill", LP_ATTR_STRS),
                *decode = find_attr(b, "plan_decode", LP_ATTR_STRS);
  const lp_attr *numbers = find_attr(b, "plan_regions", LP_ATTR_F64S);
  if (!prefill || !decode || !numbers || prefill->count != decode->count || prefill->count < 2) return NULL;
  json_t *plans = json_array();
  for (int32_t i = 0; i < prefill->count; i++) {
    json_t *regions = json_array();
    for (int32_t k = 0; k + REGION_NUMBERS <= numbers->count; k += REGION_NUMBERS)
      if ((int32_t)numbers->fs[k] == i) json_array_append_new(regions, region_json(&numbers->fs[k + 1]));
    json_array_append_new(
        plans, json_pack("{s:s, s:s, s:o}", "prefill", prefill->ss[i], "decode", decode->ss[i], "regions", regions));
  }
  return plans;
}
