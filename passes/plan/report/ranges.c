/* Summarises the placement: runs of layers with equal placements of their operators, shares of a side, and the time in
 * which weights load. */
#include "base/side.h"
#include "passes/plan/report/report.h"

#include <math.h>

/* The placement of a layer as text: one letter for the side of each operator that is not free, or a single letter when
 * all are on one side. Layers with equal texts are placed alike. */
static const char *layer_signature(const lp_report *report, lp_stage stage, int32_t layer) {
  const lp_plan_problem *problem = &report->problem[stage];
  char *text = LP_NEW_ARRAY(report->arena, char, problem->op_count + 1), *at = text;
  for (int32_t i = 0; i < problem->op_count; i++)
    if (problem->ops[i].layer == layer && !problem->ops[i].free)
      *at++ = report->side[stage][i] == LP_SIDE_CLOUD ? 'c' : 'd';
  if (!strchr(text, 'c') || !strchr(text, 'd')) text[text[0] ? 1 : 0] = 0;
  return text;
}

/* "op.linear" as "linear", with a count: "2 kv_append, 1 attention" */
static void describe_side(const lp_report *report, lp_stage stage, int32_t layer, lp_side side, lp_buf *out) {
  const lp_plan_problem *problem = &report->problem[stage];
  int32_t counts[LP_OP_COUNT] = {0};
  lp_kind order[64];
  int32_t kinds = 0;
  for (int32_t i = 0; i < problem->op_count; i++) {
    const lp_plan_op *item = &problem->ops[i];
    if (item->layer != layer || item->free || report->side[stage][i] != side) continue;
    if (lp_op_has(item->op, LP_ALIAS)) continue;
    if (!counts[item->op->kind]++ && kinds < (int32_t)LP_COUNT(order)) order[kinds++] = item->op->kind;
  }
  lp_buf_puts(out, side == LP_SIDE_CLOUD ? "cloud: " : "device: ");
  for (int32_t i = 0; i < kinds; i++) {
    const char *name = lp_op_info_get(order[i])->name;
    lp_buf_printf(out, "%s%" PRId32 " %s", i ? ", " : "", counts[order[i]], strchr(name, '.') + 1);
  }
}

static const char *describe_mixed(const lp_report *report, lp_stage stage, int32_t layer) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  describe_side(report, stage, layer, LP_SIDE_DEVICE, &text);
  lp_buf_puts(&text, "; ");
  describe_side(report, stage, layer, LP_SIDE_CLOUD, &text);
  return lp_arena_strdup(report->arena, lp_buf_text(&text));
}

static void add_layer(const lp_report *report, lp_stage stage, int32_t layer, lp_report_range *range) {
  const lp_plan_problem *problem = &report->problem[stage];
  range->last = layer;
  for (int32_t i = 0; i < problem->op_count; i++) {
    const lp_plan_op *item = &problem->ops[i];
    if (item->layer != layer || item->free) continue;
    bool cloud = report->side[stage][i] == LP_SIDE_CLOUD;
    *(cloud ? &range->cloud_ops : &range->device_ops) += 1;
    *(cloud ? &range->cloud_ms : &range->device_ms) += item->ms[cloud ? LP_SIDE_CLOUD : LP_SIDE_DEVICE];
  }
}

/* Tells whether the layer has a range of its own: the operators before the first layer, or those after the last. */
static bool stands_alone(const lp_report *report, lp_stage stage, int32_t layer) {
  return layer < 0 || layer >= report->problem[stage].layer_count;
}

int32_t lp_report_ranges(const lp_report *report, lp_stage stage, lp_report_range **out) {
  int32_t layers = report->problem[stage].layer_count, count = 0;
  lp_report_range *ranges = LP_NEW_ARRAY(report->arena, lp_report_range, layers + 2);
  const char *before = NULL;
  for (int32_t layer = -1; layer <= layers; layer++) {
    const char *signature = layer_signature(report, stage, layer);
    if (!*signature) continue;
    bool alone = stands_alone(report, stage, layer) || (count && stands_alone(report, stage, layer - 1));
    if (alone || !lp_streq(signature, before)) {
      ranges[count++] = (lp_report_range){.first = layer};
      if (strchr(signature, 'c') && strchr(signature, 'd'))
        ranges[count - 1].what = describe_mixed(report, stage, layer);
    }
    add_layer(report, stage, layer, &ranges[count - 1]);
    before = signature;
  }
  *out = ranges;
  return count;
}

const char *lp_report_layers_name(int32_t first, int32_t last, int32_t layers, char out[48]) {
  if (first < 0)
    (void)snprintf(out, 48, "%s", layers ? "embedding" : "model");
  else if (first >= layers)
    (void)snprintf(out, 48, "head");
  else if (first == last)
    (void)snprintf(out, 48, "layer %" PRId32, first);
  else
    (void)snprintf(out, 48, "layers %" PRId32 "-%" PRId32, first, last);
  return out;
}

const char *lp_report_range_name(const lp_report *report, const lp_report_range *range, char out[48]) {
  return lp_report_layers_name(range->first, range->last, report->problem[0].layer_count, out);
}

double lp_report_measured_share(const lp_report *report, lp_side side) {
  const lp_compile_request *request = report->request;
  const lp_machine *machine = side == LP_SIDE_DEVICE ? request->device : request->cloud;
  double measured = 0, all = 0;
  LP_FOR_EACH(const lp_report_operator, at, report->operators, report->operator_count) {
    if (at->side != side) continue;
    double ms = at->op->ms[side] * (at->stage == LP_STAGE_DECODE ? (double)request->osl : 1);
    all += ms;
    if (lp_hw_has_measured(machine, lp_hw_op_of(at->op->op->kind))) measured += ms;
  }
  return measured / all;
}

double lp_report_cold_ttft(const lp_report *report) {
  const lp_machine *machine[LP_SIDE_COUNT] = {report->request->device, report->request->cloud};
  const double bytes[LP_SIDE_COUNT] = {report->plan.device_weight_bytes, report->plan.cloud_weight_bytes};
  double before = 0, beside = 0; /* the pass begins, while it runs */
  for (int side = 0; side < LP_SIDE_COUNT; side++) {
    if (bytes[side] <= 0) continue;
    const double rate = machine[side]->figure[LP_HW_LOAD_BANDWIDTH];
    double *most = machine[side]->kind == LP_MACHINE_GPU ? &before : &beside;
    if (rate <= 0) return NAN;
    *most = fmax(*most, 1e3 * bytes[side] / rate);
  }
  return fmax(before + report->plan.ttft_ms, beside);
}

double lp_report_cold_energy(const lp_report *report) {
  const lp_machine *device = report->request->device;
  const double more_ms = lp_report_cold_ttft(report) - report->plan.ttft_ms;
  const double load_ms = report->plan.device_weight_bytes > 0
                             ? 1e3 * report->plan.device_weight_bytes / device->figure[LP_HW_LOAD_BANDWIDTH]
                             : 0;
  const double waiting_w = device->source[LP_HW_IDLE_POWER] ? device->figure[LP_HW_IDLE_POWER] : NAN;
  const double loading_ms = fmin(load_ms, more_ms);
  return report->plan.device.energy_j + 1e-3 * loading_ms * device->figure[LP_HW_POWER] +
         (more_ms > loading_ms ? 1e-3 * (more_ms - loading_ms) * waiting_w : 0);
}
