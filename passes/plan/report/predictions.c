/* What a plan takes at other lengths and over other links than those that it was made for, so that a run can be
 * compared with a prediction of itself; and the text by which two reports tell whether their plans are one. */
#include "passes/plan/evaluate.h"
#include "passes/plan/report/report.h"

#include <math.h>

/* ---- the placement ----------------------------------------------------------------------------------------------- */

static uint64_t add_text(uint64_t hash, const char *text) {
  return lp_hash_bytes(text ? text : "", text ? strlen(text) + 1 : 1, hash);
}

void lp_report_placement(const lp_report *report, char out[17]) {
  const lp_compile_request *request = report->request;
  uint64_t hash = add_text(0, request->dtype_device);
  hash = add_text(hash, request->dtype_cloud);
  hash = add_text(hash, request->kv_dtype);
  hash = add_text(hash, lp_rounds_activations(request) ? "rounded" : NULL);
  if (request->device_experts > 0) hash = lp_hash_bytes(&request->device_experts, sizeof request->device_experts, hash);
  hash = lp_hash_bytes(&request->ranks, sizeof request->ranks, hash);
  LP_FOR_EACH(const lp_report_operator, item, report->operators, report->operator_count) {
    hash = add_text(hash, lp_op_str(item->op->op, "name", ""));
    hash = add_text(hash, lp_stage_names[item->stage]);
    hash = add_text(hash, lp_side_name(item->side));
  }
  (void)snprintf(out, 17, "%016" PRIx64, hash);
}

bool lp_report_crosses(const lp_report *report) {
  return report->plan.messages_prefill + report->plan.messages_decode > 0;
}

/* ---- predictions ------------------------------------------------------------------------------------------------- */

/* Lengths: powers of two up to the model's longest (16 times the request's where none is known), and the request's own
 * prompt and the middle of its answer. A time between two lengths is taken as linear, which is at most an eighth of a
 * quadratic term too much. */
enum { MOST_LENGTHS = 24, LONGEST = 1 << 17 };

/* The parts of a stage at a length, of which its time over any link follows. */
typedef struct {
  double device_ms, cloud_ms, round_trips, up_bytes, down_bytes;
} stage_parts;

static void add_length(int64_t *lengths, int32_t *count, int64_t length) {
  int32_t at = *count;
  while (at > 0 && lengths[at - 1] >= length)
    at--;
  if (at < *count && lengths[at] == length) return;
  memmove(&lengths[at + 1], &lengths[at], (size_t)(*count - at) * sizeof *lengths);
  lengths[at] = length;
  ++*count;
}

static int32_t choose_lengths(const lp_report *report, int64_t lengths[MOST_LENGTHS]) {
  const lp_op *func = lp_module_find_func(report->module, lp_stage_names[LP_STAGE_PREFILL]);
  const lp_compile_request *request = report->request;
  const int64_t context = func ? lp_op_i64(func, "context", 0) : 0,
                most = context > 0 ? context : 16 * (request->isl + request->osl);
  int32_t count = 0;
  add_length(lengths, &count, request->isl);
  add_length(lengths, &count, request->isl + request->osl / 2);
  for (int64_t length = 1; length <= most && length <= LONGEST; length *= 2)
    add_length(lengths, &count, length);
  return count;
}

/* The milliseconds of both stages over a link of these figures. */
static void link_times(const lp_plan_sums *sums, const lp_compile_request *request, double rtt_ms, double up_bps,
                       double down_bps, double out[LP_STAGE_COUNT]) {
  const lp_link link = {.figure = {[LP_LINK_RTT] = rtt_ms, [LP_LINK_UP] = up_bps, [LP_LINK_DOWN] = down_bps}};
  lp_compile_request over = *request;
  lp_plan_result result;
  over.link = request->link ? &link : NULL;
  lp_plan_conclude(sums, &over, &result);
  out[LP_STAGE_PREFILL] = result.prefill_link_ms + result.kv_move_ms;
  out[LP_STAGE_DECODE] = result.decode_link_ms;
}

/* Link times are sums of round trips and of bytes at 1 byte/ms each way. A decode that streams over the request's link
 * waits for no link. */
static void get_parts(const lp_plan_problem problem[LP_STAGE_COUNT], const lp_compile_request *request,
                      lp_side *const side[LP_STAGE_COUNT], stage_parts out[LP_STAGE_COUNT]) {
  const lp_plan_sums sums = lp_plan_sum_up(problem, side);
  double trips[LP_STAGE_COUNT], up[LP_STAGE_COUNT], down[LP_STAGE_COUNT];
  link_times(&sums, request, 1, INFINITY, INFINITY, trips);
  link_times(&sums, request, 0, 8e3, INFINITY, up);
  link_times(&sums, request, 0, INFINITY, 8e3, down);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    out[stage] = (stage_parts){.device_ms = sums.stage[stage].busy_ms[LP_SIDE_DEVICE],
                               .cloud_ms = sums.stage[stage].busy_ms[LP_SIDE_CLOUD],
                               .round_trips = trips[stage],
                               .up_bytes = up[stage],
                               .down_bytes = down[stage]};
  stage_parts *decode = &out[LP_STAGE_DECODE];
  if (lp_plan_link_streams(&sums, request)) decode->round_trips = decode->up_bytes = decode->down_bytes = 0;
}

/* The parts of plan `plan` at each length. False: it cannot be priced there. */
static bool price(const lp_report *report, int32_t plan, const int64_t *lengths, int32_t count,
                  stage_parts (*out)[LP_STAGE_COUNT]) {
  lp_status status = LP_OK;
  for (int32_t i = 0; i < count && status == LP_OK; i++) {
    LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
    lp_plan_problem problem[LP_STAGE_COUNT];
    lp_side *side[LP_STAGE_COUNT];
    lp_compile_request request = *report->request;
    request.isl = lengths[i];
    request.osl = 1; /* decode then reads as many positions as the prompt has */
    status = lp_plan_build_of(report->module, &request, plan, arena, problem, NULL);
    if (status == LP_OK) lp_plan_sides(problem, side, arena);
    if (status == LP_OK) get_parts(problem, &request, side, out[i]);
  }
  return status == LP_OK;
}

static void put_parts(const char *name, size_t offset, stage_parts (*parts)[LP_STAGE_COUNT], int stage, int32_t count,
                      lp_json_writer *j) {
  lp_json_put_flat_array(j, name);
  for (int32_t i = 0; i < count; i++) {
    double value = 0;
    memcpy(&value, (const char *)&parts[i][stage] + offset, sizeof value);
    lp_json_put_number(j, NULL, value);
  }
  lp_json_put_end(j);
}

static void put_plan(int32_t plan, const int64_t *lengths, int32_t count, stage_parts (*parts)[LP_STAGE_COUNT],
                     lp_json_writer *j) {
  lp_json_put_object(j, NULL);
  lp_json_put_integer(j, "plan", plan);
  lp_json_put_flat_array(j, "tokens");
  for (int32_t i = 0; i < count; i++)
    lp_json_put_integer(j, NULL, lengths[i]);
  lp_json_put_end(j);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_json_put_object(j, lp_stage_names[stage]);
    put_parts("device_ms", offsetof(stage_parts, device_ms), parts, stage, count, j);
    put_parts("cloud_ms", offsetof(stage_parts, cloud_ms), parts, stage, count, j);
    put_parts("round_trips", offsetof(stage_parts, round_trips), parts, stage, count, j);
    put_parts("up_bytes", offsetof(stage_parts, up_bytes), parts, stage, count, j);
    put_parts("down_bytes", offsetof(stage_parts, down_bytes), parts, stage, count, j);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

/* Early exits decide during a run how often the cloud is asked, so there is no table of them. */
void lp_report_predictions_json(const lp_report *report, lp_json_writer *j) {
  int64_t lengths[MOST_LENGTHS];
  stage_parts parts[MOST_LENGTHS][LP_STAGE_COUNT];
  if (report->request->exit_count > 0) return;
  const int32_t count = choose_lengths(report, lengths), plans = report->family.count > 1 ? report->family.count : 1;
  lp_json_put_array(j, "predictions");
  for (int32_t plan = 0; plan < plans; plan++)
    if (price(report, plan, lengths, count, parts)) put_plan(plan, lengths, count, parts, j);
  lp_json_put_end(j);
}
