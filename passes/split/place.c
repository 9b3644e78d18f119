/* place: asks a scheduler for the side of every operator and replaces @main by @prefill and @decode, in which each
 * operator has its side and its times. Where no plan meets the SLA, it writes the best one and returns
 * LP_INFEASIBLE. A plan over more than two places comes with the request. */
#include "base/abi.h"
#include "base/side.h"
#include "base/units.h"
#include "passes/build.h"
#include "passes/plan/family/family.h"
#include "passes/plan/places/places.h"
#include "passes/plan/plan.h"
#include "passes/state.h"

/* ---- the request, changed by the pass's own options -------------------------------------------------------------- */

typedef struct {
  lp_compile_request request;
  lp_machine *device, *cloud; /* loaded here; NULL when the caller's are used */
  lp_link *link;
} place_request;

static lp_status read_count(const lp_pass_context *context, const char *name, int64_t min, int64_t *out) {
  const char *text = lp_pass_option(context, name);
  return text ? lp_parse_i64(text, min, INT32_MAX, out, context->diag, LP_LOC_FILE(name)) : LP_OK;
}

static lp_status read_time(const lp_pass_context *context, const char *name, double *out) {
  const char *text = lp_pass_option(context, name);
  return text ? lp_parse_time_ms(text, out, context->diag, LP_LOC_FILE(name)) : LP_OK;
}

static lp_status read_share(const lp_pass_context *context, const char *name, double *out) {
  const char *text = lp_pass_option(context, name);
  return text ? lp_parse_share(text, out, context->diag, LP_LOC_FILE(name)) : LP_OK;
}

static void read_text(const lp_pass_context *context, const char *name, const char **out) {
  const char *text = lp_pass_option(context, name);
  if (text) *out = text;
}

static lp_status read_machines(const lp_pass_context *context, place_request *out) {
  const char *device = lp_pass_option(context, "device"), *cloud = lp_pass_option(context, "cloud");
  const char *link = lp_pass_option(context, "link");
  if (device) LP_TRY(lp_hw_load(device, &out->device, context->diag));
  if (cloud) LP_TRY(lp_hw_load(cloud, &out->cloud, context->diag));
  if (link) LP_TRY(lp_link_load(link, &out->link, context->diag));
  if (out->device) out->request.device = out->device;
  if (out->cloud) out->request.cloud = out->cloud;
  if (out->link) out->request.link = out->link;
  return LP_OK;
}

static lp_status read_request(const lp_pass_context *context, place_request *out) {
  *out = (place_request){.request = *context->request};
  lp_compile_request *request = &out->request;
  LP_TRY(read_count(context, "isl", 1, &request->isl));
  LP_TRY(read_count(context, "osl", 0, &request->osl));
  LP_TRY(read_count(context, "batch", 1, &request->batch));
  LP_TRY(read_count(context, "cut", 0, &request->cut));
  LP_TRY(read_share(context, "tolerance", &request->tolerance));
  LP_TRY(read_time(context, "ttft", &request->ttft_ms));
  LP_TRY(read_time(context, "tpot", &request->tpot_ms));
  read_text(context, "scheduler", &request->scheduler);
  read_text(context, "objective", &request->objective);
  read_text(context, "node", &request->cut_node);
  read_text(context, "dtype-device", &request->dtype_device);
  read_text(context, "dtype-cloud", &request->dtype_cloud);
  read_text(context, "activations", &request->activations);
  return read_machines(context, out);
}

static void release_request(place_request *request) {
  lp_hw_free(request->device);
  lp_hw_free(request->cloud);
  lp_link_free(request->link);
}

/* Without a cloud there is nothing to choose. */
static const char *scheduler_name(const lp_compile_request *request) {
  if (request->device && !request->cloud) return "device-only";
  return request->scheduler ? request->scheduler : lp_scheduler_default;
}

/* ---- feasibility ------------------------------------------------------------------------------------------------- */

static void describe_memory(double needed, double limit, lp_side side, lp_buf *out) {
  char have[32], want[32];
  lp_buf_printf(out, "%s memory: %s needed, %s there", lp_side_name(side), lp_format_bytes(needed, have),
                lp_format_bytes(limit, want));
}

static void describe_miss(const lp_plan_result *result, const lp_compile_request *request, lp_buf *out) {
  switch (result->binding) {
  case LP_LIMIT_TTFT:
    lp_buf_printf(out, "TTFT is %.4g ms, the SLA asks %.4g ms", result->ttft_ms, request->ttft_ms);
    break;
  case LP_LIMIT_TPOT:
    lp_buf_printf(out, "TPOT is %.4g ms, the SLA asks %.4g ms", result->tpot_ms, request->tpot_ms);
    break;
  case LP_LIMIT_DEVICE_MEMORY:
    describe_memory(result->device_memory_bytes, lp_plan_memory_limit(request, LP_SIDE_DEVICE), LP_SIDE_DEVICE, out);
    break;
  case LP_LIMIT_CLOUD_MEMORY:
    describe_memory(result->cloud_memory_bytes, lp_plan_memory_limit(request, LP_SIDE_CLOUD), LP_SIDE_CLOUD, out);
    break;
  case LP_LIMIT_NONE:
  case LP_LIMIT_COUNT:
    break;
  }
}

static lp_status judge(const lp_plan_result *result, const lp_scheduler *scheduler, const lp_compile_request *request,
                       lp_status status, lp_diag *diag) {
  if (status != LP_OK || result->feasible) return status;
  LP_OWNED(lp_buf_free) lp_buf miss = {0};
  describe_miss(result, request, &miss);
  status = lp_error_as(LP_INFEASIBLE, diag, LP_LOC_NONE, "no plan of scheduler '%s' meets the constraints: %s",
                       scheduler->name, lp_buf_text(&miss));
  if (scheduler->ignores_link && (result->binding == LP_LIMIT_TTFT || result->binding == LP_LIMIT_TPOT))
    lp_note(diag, LP_LOC_NONE, "'%s' plans as if communication took no time; these figures include it",
            scheduler->name);
  return status;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static lp_value *mapped(void *user, lp_value *value) {
  (void)user;
  return value->scratch;
}

/* One stage of a plan. */
typedef struct {
  const lp_plan_problem *problem;
  const lp_side *side, *cheapest; /* [op_count]; cheapest: of the proof, NULL: none */
  const char *name;               /* of its function */
  /* Of a plan over more than two places, without `side` and `cheapest`. */
  const lp_places_solution *over;
} stage_plan;

static bool is_narrow(lp_dtype dtype) {
  return dtype == LP_F16 || dtype == LP_BF16;
}

/* An operator where it runs: with the place's name and figures, and the request in which the place is a side. */
typedef struct {
  const char *name;
  const lp_plan_op *item;
  lp_side side;
  lp_compile_request request;
} site;

static site find_site(const stage_plan *plan, int32_t index, const lp_compile_request *request) {
  if (!plan->over)
    return (site){lp_side_name(plan->side[index]), &plan->problem->ops[index], plan->side[index], *request};
  const lp_places_problem *problem = &plan->over->problem;
  const int place = plan->over->plan.place[plan->problem->stage][index];
  return (site){problem->places->place[place].name, &problem->of[place][plan->problem->stage].ops[index],
                place ? LP_SIDE_CLOUD : LP_SIDE_DEVICE, lp_places_request_of(problem, place ? place : 1)};
}

static void set_times(lp_module *module, lp_op *op, const stage_plan *plan, int32_t index) {
  const lp_plan_op *item = &plan->problem->ops[index];
  if (!plan->over) {
    lp_op_set_f64(module, op, "device_ms", item->ms[LP_SIDE_DEVICE]);
    lp_op_set_f64(module, op, "cloud_ms", item->ms[LP_SIDE_CLOUD]);
    return;
  }
  const lp_places_problem *problem = &plan->over->problem;
  double ms[LP_PLACES_MAX];
  for (int p = 0; p < problem->places->count; p++)
    ms[p] = problem->of[p][plan->problem->stage].ops[index].ms[p ? LP_SIDE_CLOUD : LP_SIDE_DEVICE];
  lp_op_set_f64s(module, op, "place_ms", ms, problem->places->count);
}

/* Writes the types in which the place keeps weights and rounds activations. */
static void set_types(lp_module *module, lp_op *op, const site *at) {
  const bool rounds = lp_rounds_activations(&at->request);
  if (op->kind == LP_OP_ATTENTION && rounds && is_narrow(lp_op_in(op, 1)->type.dtype))
    lp_op_set_str(module, op, "activations", "bf16");
  const char *dtype = lp_plan_weight_dtype(&at->request, at->side, at->item->op);
  if (dtype) lp_op_set_str(module, op, "weight_dtype", dtype);
  if (!lp_op_is_weighted(op)) return;
  const lp_storage stored = lp_plan_operand_storage(&at->request, at->side, at->item->op, 1);
  if (!rounds || lp_op_bool(op, "exact", false)) return;
  if (!lp_dtype_is_float(stored.dtype) && stored.group == 0) lp_op_set_str(module, op, "activations", "int8");
  if (stored.dtype == LP_BF16) lp_op_set_str(module, op, "activations", "bf16");
}

static void annotate_op(lp_module *module, lp_op *op, const stage_plan *plan, int32_t index,
                        const lp_compile_request *request) {
  const site at = find_site(plan, index, request);
  lp_op_set_str(module, op, "side", at.item->free ? LP_SIDE_BOTH : at.name);
  if (plan->cheapest && !at.item->free && plan->cheapest[index] != at.side)
    lp_plan_cheapest_write(module, op, plan->cheapest[index]);
  set_times(module, op, plan, index);
  const double bytes = at.item->bytes[at.side];
  lp_op_set_f64(module, op, "ratio", bytes > 0 ? at.item->flops[at.side] / bytes : 0);
  set_types(module, op, &at);
}

static lp_op *add_stage(lp_module *module, const lp_op *from, lp_stage stage, const char *name) {
  lp_block *block = from->region;
  lp_op *func = lp_module_add_func(module, name, 0, NULL);
  for (int32_t i = 0; i < from->attr_count; i++)
    if (!lp_streq(from->attr[i].name, "sym_name")) lp_op_set_attr(module, func, &from->attr[i]);
  lp_op_set_str(module, func, "stage", lp_stage_names[stage]);
  func->loc = from->loc;
  for (int32_t i = 0; i < block->arg_count; i++) {
    lp_value *arg = lp_block_add_arg(func->region, block->arg[i]->type);
    arg->name = block->arg[i]->name;
    block->arg[i]->scratch = arg;
  }
  return func;
}

/* Removes from @decode the rows of caches that @prefill fills once, and all operators that only these rows need. */
static void drop_once(lp_module *module, lp_op *decode) {
  bool any = false;
  LP_FOR_OPS(op, decode->region) {
    if (!lp_op_bool(op, "once", false)) continue;
    lp_op_set_ins(module, op, 0, NULL);
    for (const char *const *name = (const char *const[]){"flops", "bytes_read", "bytes_written", NULL}; *name; name++)
      if (lp_op_attr(op, *name)) lp_op_set_poly(module, op, *name, lp_dim_const(module, 0));
    any = true;
  }
  if (any) lp_build_remove_dead(decode->region);
}

/* Writes a copy of @main in which operator i of the problem has plan->side[i]. */
static void write_stage(lp_module *module, const lp_op *from, const stage_plan *plan,
                        const lp_compile_request *request) {
  const lp_plan_problem *problem = plan->problem;
  lp_op *func = add_stage(module, from, problem->stage, plan->name);
  int32_t index = 0;
  LP_FOR_OPS(op, from->region) {
    lp_op *copy = lp_op_clone(module, op, mapped, NULL);
    lp_op_append(func->region, copy);
    for (int32_t i = 0; i < op->out_count; i++)
      op->out[i]->scratch = copy->out[i];
    if (index >= problem->op_count || problem->ops[index].op != op) continue;
    annotate_op(module, copy, plan, index, request);
    for (int p = 0; plan->over && p < plan->over->problem.places->count; p++)
      plan->over->problem.of[p][problem->stage].ops[index].op = copy; /* the report is of the placed module */
    index++;
  }
  if (problem->stage == LP_STAGE_DECODE) drop_once(module, func);
  lp_block_forget(from->region);
}

/* Writes the functions of plan `plan`, or shares those of an earlier plan that places a stage alike. A prefill ends
 * with the moves of caches that its decode needs, so it is shared only together with its decode. */
static void write_plan(lp_module *module, const lp_op *from, const lp_plan_problem problem[LP_STAGE_COUNT],
                       const lp_plan_family *family, int32_t plan, const lp_compile_request *request,
                       lp_side *const cheapest[LP_STAGE_COUNT], const char *name[LP_STAGE_COUNT][LP_FAMILY_MOST]) {
  int32_t decode = plan;
  for (int32_t i = plan; i-- > 0;)
    if (memcmp(family->side[i][LP_STAGE_DECODE], family->side[plan][LP_STAGE_DECODE],
               (size_t)problem[LP_STAGE_DECODE].op_count * sizeof **family->side[i]) == 0)
      decode = i;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    bool shared = stage == LP_STAGE_DECODE && decode < plan;
    name[stage][plan] = shared ? name[stage][decode]
                        : plan ? lp_arena_format(module->arena, "%s_%" PRId32, lp_stage_names[stage], plan)
                               : lp_stage_names[stage];
    const stage_plan own = {.problem = &problem[stage],
                            .side = family->side[plan][stage],
                            .cheapest = plan ? NULL : cheapest[stage],
                            .name = name[stage][plan]};
    if (!shared) write_stage(module, from, &own, request);
  }
}

static void write_family(lp_module *module, const lp_op *from, const lp_plan_problem problem[LP_STAGE_COUNT],
                         const lp_plan_family *family, const lp_compile_request *request,
                         lp_side *const cheapest[LP_STAGE_COUNT]) {
  const char *name[LP_STAGE_COUNT][LP_FAMILY_MOST];
  for (int32_t plan = 0; plan < family->count; plan++) {
    write_plan(module, from, problem, family, plan, request, cheapest, name);
    if (request->isl > LP_PROMPT_PART &&
        (problem->whole_prompts || !lp_plan_runs_in_parts(problem, family->side[plan])))
      lp_op_set_bool(module, lp_module_find_func(module, name[LP_STAGE_PREFILL][plan]), LP_WHOLE_PROMPTS, true);
  }
  if (family->regret.points)
    lp_plan_family_write(module, lp_module_find_func(module, lp_stage_names[LP_STAGE_PREFILL]), family, name);
}

/* Each rank has the heads of its own, so there is no cache to move. */
static lp_status check_moves(const lp_plan_result *result, const lp_compile_request *request, lp_diag *diag) {
  if (request->ranks < 2 || result->kv_move_ms <= 0) return LP_OK;
  lp_status status = lp_error(
      diag, LP_LOC_FILE("--ranks"),
      "the plan moves KV caches between the sides, and the caches of %" PRId64 " ranks cannot move", request->ranks);
  lp_note(diag, LP_LOC_NONE, "a limit on TTFT (--ttft), --scheduler=layer and --cut=N leave each cache on one side");
  return status;
}

static void erase_main(lp_op *func) {
  while (func->region->last)
    lp_op_erase(func->region->last);
  lp_op_erase(func);
}

static lp_status place(lp_module *module, const lp_compile_request *request, lp_pass_context *context) {
  lp_op *from = lp_module_find_func(module, "main");
  if (!from) return lp_error(context->diag, LP_LOC_FILE(module->name), "there is no function '@main' to place");
  const lp_scheduler *scheduler;
  LP_TRY(lp_scheduler_get(scheduler_name(request), &scheduler, context->diag));
  lp_plan_problem problem[LP_STAGE_COUNT];
  LP_TRY(lp_plan_build(module, request, context->scratch, problem, context->diag));
  LP_TRY(lp_plan_pin_used(&problem[LP_STAGE_PREFILL], request, context->diag));
  lp_side *side[LP_STAGE_COUNT];
  lp_plan_proof proof;
  lp_status status =
      lp_plan_choose_to_run(problem, scheduler->name, request, side, &proof, context->scratch, context->diag);
  if (status != LP_OK && status != LP_INFEASIBLE) return status;
  lp_plan_result result;
  lp_plan_evaluate(problem, request, side, &result);
  LP_TRY(check_moves(&result, request, context->diag));
  status = judge(&result, scheduler, request, status, context->diag);
  if (status != LP_OK && status != LP_INFEASIBLE) return status;
  lp_plan_family family = {.count = 1, .side = {{side[LP_STAGE_PREFILL], side[LP_STAGE_DECODE]}}};
  if (request->plans > 1 && request->cloud && status == LP_OK)
    LP_TRY(
        lp_plan_family_find(module, request, (int32_t)request->plans, side, context->scratch, &family, context->diag));
  write_family(module, from, problem, &family, request, proof.cheapest);
  lp_plan_proof_write(module, lp_module_find_func(module, lp_stage_names[LP_STAGE_PREFILL]), &proof);
  erase_main(from);
  return status;
}

/* Plans over the request's places, more than two, and writes the plan. */
static lp_status place_over(lp_module *module, const lp_compile_request *request, lp_diag *diag) {
  lp_places_solution *over = request->places;
  const lp_places *places = over->problem.places;
  lp_op *from = lp_module_find_func(module, "main");
  if (!from) return lp_error(diag, LP_LOC_FILE(module->name), "there is no function '@main' to place");
  const lp_status planned = lp_places_plan_module(module, request, over, diag);
  if (planned != LP_OK && planned != LP_INFEASIBLE) return planned;
  const char *names[LP_PLACES_MAX];
  for (int p = 0; p < places->count; p++)
    names[p] = lp_arena_strdup(module->arena, places->place[p].name);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const stage_plan own = {.problem = &over->problem.of[0][stage], .name = lp_stage_names[stage], .over = over};
    write_stage(module, from, &own, request);
    lp_op_set_strs(module, lp_module_find_func(module, own.name), "places", names, places->count);
  }
  erase_main(from);
  return lp_places_judge(module, over, diag);
}

static lp_status run(lp_module *module, lp_pass_context *context) {
  if (context->request->places) return place_over(module, context->request, context->diag);
  place_request own;
  lp_status status = read_request(context, &own);
  if (status == LP_OK) status = place(module, &own.request, context);
  release_request(&own);
  return status;
}

const lp_pass lp_pass_place = {
    .name = "place",
    .summary = "give every operator a side and write @prefill and @decode",
    .needs = LP_STATE_LOWERED,
    .makes = LP_STATE_PLACED,
    .breaks = LP_STATE_COUNT,
    .options = "device cloud link scheduler objective tolerance cut node isl osl batch ttft tpot dtype-device "
               "dtype-cloud activations",
    .run = run,
};
