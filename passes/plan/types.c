/* Chooses the weight types that the request leaves to the planner: the most precise ones with which a plan meets the
 * SLA and fits both memories; among equally precise ones those of the better plan. Chooses the number of ranks. */
#include "base/side.h"
#include "passes/passes.h"
#include "passes/plan/plan.h"

#include <math.h>

/* A type in which a side may store its weights, with its largest error. For floats that is half a step, as a share of
 * the weight itself; for integers, as a share of the largest weight in the group. */
typedef struct {
  const char *name;
  lp_hw_figure peak; /* the figure that a machine needs for it; LP_HW_FIGURE_COUNT: none */
  double bits, error;
} weight_type;

/* Integers are widened to floats before they are multiplied, so every machine has them. */
static const weight_type types[] = {{"f32", LP_HW_FIGURE_COUNT, 32, 0},
                                    {"f16", LP_HW_PEAK_F16, 16, 1.0 / 2048},
                                    {"bf16", LP_HW_PEAK_BF16, 16, 1.0 / 256},
                                    {"int8", LP_HW_FIGURE_COUNT, 8, 1.0 / 254},
                                    {"int4", LP_HW_FIGURE_COUNT, 4, 1.0 / 14}};

enum { TYPES = LP_COUNT(types), MOST_PAIRS = (TYPES + 1) * (TYPES + 1) };

/* The types that a side may take; NULL: as in the file. */
typedef struct {
  const char *name[TYPES + 1];
  double error[TYPES + 1];
  int count;
} choices;

typedef struct {
  const char *name[LP_SIDE_COUNT];
  double error;
} pair;

/* The width of the widest float among the weights of products in the file. */
static double file_bits(const lp_module *module) {
  double most = 0;
  const lp_op *func = lp_module_find_func(module, "main");
  LP_FOR_OPS(op, func->region) {
    if (!lp_op_is_weighted(op) || !lp_value_is_constant(op->in[1].value)) continue;
    lp_dtype dtype = op->in[1].value->type.dtype;
    if (lp_dtype_is_float(dtype)) most = fmax(most, lp_dtype_bits(dtype));
  }
  return most;
}

static void add_choice(choices *c, const char *name, double error) {
  c->name[c->count] = name;
  c->error[c->count++] = error;
}

/* Tells whether the machine has the type, and the processor that the code is for, which may be another one. */
static bool has_type(const lp_compile_request *request, lp_side side, const weight_type *type) {
  const lp_machine *machine = side == LP_SIDE_DEVICE ? request->device : request->cloud;
  if (type->peak == LP_HW_PEAK_BF16 && request->code_lacks_bf16[side]) return false;
  return type->peak == LP_HW_FIGURE_COUNT || machine->figure[type->peak] > 0;
}

/* Lists the file's own type and the narrower ones; or only the type that the request names. */
static void find_choices(const lp_compile_request *request, lp_side side, double bits, choices *out) {
  *out = (choices){.count = 0};
  const bool device = side == LP_SIDE_DEVICE;
  const char *asked = device ? request->dtype_device : request->dtype_cloud;
  const lp_machine *machine = device ? request->device : request->cloud;
  const bool is_auto = lp_streq(asked, LP_DTYPE_AUTO);
  add_choice(out, is_auto ? NULL : asked, 0);
  for (size_t i = 0; i < TYPES && is_auto && machine; i++)
    if (types[i].bits < bits && has_type(request, side, &types[i])) add_choice(out, types[i].name, types[i].error);
}

/* Pairs of types, sorted by error; pairs of equal error keep the order in which they are made. */
static int make_pairs(const choices of[LP_SIDE_COUNT], pair *out) {
  int count = 0;
  for (int d = 0; d < of[LP_SIDE_DEVICE].count; d++)
    for (int c = 0; c < of[LP_SIDE_CLOUD].count; c++) {
      pair made = {{of[LP_SIDE_DEVICE].name[d], of[LP_SIDE_CLOUD].name[c]},
                   of[LP_SIDE_DEVICE].error[d] + of[LP_SIDE_CLOUD].error[c]};
      int at = count++;
      for (; at > 0 && out[at - 1].error > made.error; at--)
        out[at] = out[at - 1];
      out[at] = made;
    }
  return count;
}

static lp_compile_request with_types(const lp_compile_request *request, const pair *types_of) {
  lp_compile_request changed = *request;
  changed.dtype_device = types_of->name[LP_SIDE_DEVICE];
  changed.dtype_cloud = types_of->name[LP_SIDE_CLOUD];
  return changed;
}

lp_status lp_plan_choose_types(lp_module *module, lp_compile_request *request, lp_diag *diag) {
  bool device = lp_streq(request->dtype_device, LP_DTYPE_AUTO), cloud = lp_streq(request->dtype_cloud, LP_DTYPE_AUTO);
  if (!device && !cloud) return LP_OK;
  choices of[LP_SIDE_COUNT];
  double bits = file_bits(module);
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    find_choices(request, (lp_side)side, bits, &of[side]);
  pair pairs[MOST_PAIRS] = {{.error = 0}};
  int count = make_pairs(of, pairs), best = 0;
  lp_plan_result least = {0};
  for (int i = 0; i < count; i++) {
    if (least.feasible && pairs[i].error > pairs[best].error) break;
    lp_compile_request changed = with_types(request, &pairs[i]);
    lp_plan_result result;
    changed.tolerance = 0; /* types are compared by their best plans */
    LP_TRY(lp_plan_try(module, &changed, &result, diag));
    if (i > 0 && lp_plan_compare(&result, &least, request) >= 0) continue;
    best = i;
    least = result;
  }
  *request = with_types(request, &pairs[best]);
  request->chose_dtype_device = device;
  request->chose_dtype_cloud = cloud && request->cloud;
  return LP_OK;
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

lp_status lp_plan_choose_ranks(lp_module *module, lp_compile_request *request, lp_machine *all, lp_diag *diag) {
  static const int64_t counts[] = {1, 2, 4, 8};
  const lp_machine *one = request->cloud;
  lp_plan_result best = {0};
  for (size_t i = 0; i < LP_COUNT(counts); i++) {
    lp_compile_request changed = *request;
    const lp_machine machines = lp_hw_of_ranks(one, counts[i]);
    changed.cloud = &machines;
    changed.ranks = counts[i];
    LP_TRY(lp_plan_choose_types(module, &changed, diag));
    lp_plan_result result;
    changed.tolerance = 0; /* numbers of ranks are compared by their best plans */
    LP_TRY(lp_plan_try(module, &changed, &result, diag));
    /* The shards of a cache do not move between the sides. */
    if (i > 0 && (result.kv_move_ms > 0 || lp_plan_compare(&result, &best, request) >= 0)) continue;
    best = result;
    request->ranks = counts[i];
  }
  *all = lp_hw_of_ranks(one, request->ranks);
  request->cloud = all;
  request->chose_ranks = true;
  return LP_OK;
}
