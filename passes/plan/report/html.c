/* The report as a page. This file writes the data, and page/page.js draws it. */
#include "base/page/page.h"
#include "base/side.h"
#include "passes/plan/evaluate.h"
#include "passes/plan/objective.h"
#include "passes/plan/report/report.h"

extern const char lp_report_page_js[];

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static void put_plan(lp_json_writer *j, const char *name, const lp_report *report, lp_side *const side[LP_STAGE_COUNT],
                     const lp_plan_result *result) {
  const lp_plan_sums sums = lp_plan_sum_up(report->problem, side);
  lp_json_put_object(j, NULL);
  lp_json_put_text(j, "name", name);
  lp_json_put_array(j, "stages");
  for (int i = 0; i < LP_STAGE_COUNT; i++) {
    lp_json_put_flat_object(j, NULL);
    lp_json_put_numbers(j, "busy_ms", sums.stage[i].busy_ms, LP_SIDE_COUNT);
    lp_json_put_numbers(j, "messages", sums.stage[i].messages, LP_SIDE_COUNT);
    lp_json_put_numbers(j, "bytes", sums.stage[i].bytes, LP_SIDE_COUNT);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
  lp_json_put_bool(j, "streams", sums.streams);
  lp_json_put_numbers(j, "move_bytes", sums.move_bytes, LP_SIDE_COUNT);
  lp_json_put_numbers(j, "memory_bytes", (const double[]){result->device_memory_bytes, result->cloud_memory_bytes},
                      LP_SIDE_COUNT);
  lp_json_put_end(j);
}

static void put_plans(lp_json_writer *j, const lp_report *report) {
  lp_json_put_array(j, "plans");
  put_plan(j, "this plan", report, report->side, &report->plan);
  for (int32_t i = 0; i < report->baseline_count; i++)
    put_plan(j, report->baselines[i].name, report, report->baselines[i].side, &report->baselines[i].result);
  lp_json_put_end(j);
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

static void put_ranges(lp_json_writer *j, const lp_report *report, lp_stage stage) {
  lp_report_range *ranges;
  const int32_t count = lp_report_ranges(report, stage, &ranges);
  lp_json_put_array(j, "ranges");
  for (int32_t i = 0; i < count; i++) {
    char name[48];
    lp_json_put_flat_object(j, NULL);
    lp_json_put_text(j, "name", lp_report_range_name(report, &ranges[i], name));
    lp_json_put_integer(j, "first", ranges[i].first);
    lp_json_put_integer(j, "last", ranges[i].last);
    lp_json_put_numbers(j, "ops", (const double[]){ranges[i].device_ops, ranges[i].cloud_ops}, LP_SIDE_COUNT);
    lp_json_put_numbers(j, "ms", (const double[]){ranges[i].device_ms, ranges[i].cloud_ms}, LP_SIDE_COUNT);
    lp_json_put_text(j, "what", ranges[i].what);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

typedef struct {
  int32_t to;   /* the layer that reads the tensors; beyond the last one: the token returns */
  lp_side side; /* which sends */
  double bytes;
  int64_t count;
} crossing;

static void put_crossings(lp_json_writer *j, const lp_report *report, lp_stage stage) {
  const lp_plan_problem *problem = &report->problem[stage];
  const lp_side *side = report->side[stage];
  lp_plan_crossings found;
  lp_plan_find_crossings(problem, side, report->arena, &found);
  const lp_plan_sums sums = lp_plan_sum_up(report->problem, report->side);
  const bool streams = stage == LP_STAGE_DECODE && lp_plan_link_streams(&sums, report->request); /* only tokens cross */
  LP_VEC(crossing) list = {0};
  for (int32_t i = 0; i <= problem->edge_count; i++) {
    const lp_plan_edge *edge = i < problem->edge_count ? &problem->edges[i] : NULL;
    if (edge ? !found.edge[i] || streams : !found.result) continue;
    const crossing one = {
        .to = edge ? problem->ops[edge->consumer].layer : problem->layer_count + 1,
        .side = !edge                ? LP_SIDE_CLOUD
                : edge->producer < 0 ? LP_SIDE_DEVICE
                                     : side[edge->producer],
        .bytes = edge ? edge->bytes : problem->result_bytes,
        .count = 1,
    };
    crossing *last = list.count ? &list.data[list.count - 1] : NULL;
    if (last && last->to == one.to && last->side == one.side) {
      last->bytes += one.bytes;
      last->count++;
    } else {
      lp_vec_push(&list, one);
    }
  }
  lp_json_put_array(j, "crossings");
  for (size_t i = 0; i < list.count; i++) {
    lp_json_put_flat_object(j, NULL);
    lp_json_put_integer(j, "to", list.data[i].to);
    lp_json_put_integer(j, "side", list.data[i].side);
    lp_json_put_number(j, "bytes", list.data[i].bytes);
    lp_json_put_integer(j, "count", list.data[i].count);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
  lp_vec_free(&list);
}

static void put_stages(lp_json_writer *j, const lp_report *report) {
  lp_json_put_array(j, "stages");
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_json_put_object(j, NULL);
    lp_json_put_text(j, "name", lp_stage_names[stage]);
    put_ranges(j, report, (lp_stage)stage);
    put_crossings(j, report, (lp_stage)stage);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

/* One row for each operator that its side computes: name, kind, layer, stage, side, FLOP, bytes, ms on either side. */
static void put_operators(lp_json_writer *j, const lp_report *report) {
  lp_json_put_array(j, "operators");
  LP_FOR_EACH(const lp_report_operator, item, report->operators, report->operator_count) {
    const lp_plan_op *op = item->op;
    lp_json_put_flat_array(j, NULL);
    lp_json_put_text(j, NULL, lp_op_str(op->op, "name", ""));
    lp_json_put_text(j, NULL, lp_op_info_get(op->op->kind)->name);
    lp_json_put_integer(j, NULL, lp_op_i64(op->op, "layer", -1));
    lp_json_put_integer(j, NULL, item->stage);
    lp_json_put_integer(j, NULL, item->side);
    lp_json_put_number(j, NULL, op->flops[LP_SIDE_DEVICE]);
    lp_json_put_number(j, NULL, op->bytes[item->side]);
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      lp_json_put_number(j, NULL, op->ms[side]);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

/* ---- the request ------------------------------------------------------------------------------------------------- */

static void put_verdict(lp_json_writer *j, const lp_report *report) {
  LP_OWNED(lp_buf_free) lp_buf text = {0}, times = {0};
  const char *binding = lp_plan_limit_names[report->plan.binding];
  lp_report_times_beside_cloud(report, &times);
  if (!report->plan.feasible)
    lp_buf_printf(&text, "No plan was found that meets the limit on %s.", binding ? binding : "a resource");
  else if (report->decrement > 0)
    lp_buf_printf(&text, "The plan costs %.3g %% less than the cloud alone%s.", 100 * report->decrement,
                  lp_buf_text(&times));
  else
    lp_buf_puts(&text, "The plan costs no less than the cloud alone.");
  lp_json_put_text(j, "verdict", lp_buf_text(&text));
}

static void put_link(lp_json_writer *j, const lp_link *link) {
  if (!link) {
    lp_json_put_null(j, "link");
    return;
  }
  lp_json_put_flat_object(j, "link");
  lp_json_put_text(j, "name", link->name);
  lp_json_put_number(j, "rtt_ms", link->figure[LP_LINK_RTT]);
  lp_json_put_number(j, "up_bps", link->figure[LP_LINK_UP]);
  lp_json_put_number(j, "down_bps", link->figure[LP_LINK_DOWN]);
  lp_json_put_end(j);
}

static void put_request(lp_json_writer *j, const lp_report *report) {
  const lp_compile_request *request = report->request;
  const lp_machine *machine[LP_SIDE_COUNT] = {request->device, request->cloud};
  double price[LP_SIDE_COUNT] = {0}, memory[LP_SIDE_COUNT];
  for (int i = 0; i < LP_SIDE_COUNT; i++) {
    lp_json_put_text(j, lp_side_name((lp_side)i), machine[i] ? machine[i]->name : NULL);
    if (machine[i]) price[i] = machine[i]->figure[LP_HW_PRICE];
    memory[i] = lp_plan_memory_limit(request, (lp_side)i);
  }
  lp_json_put_numbers(j, "price", price, LP_SIDE_COUNT);
  lp_json_put_numbers(j, "memory_limit", memory, LP_SIDE_COUNT);
  put_link(j, request->link);
  lp_json_put_number(j, "link_share", request->link ? 1 / (1 - request->link->figure[LP_LINK_LOSS]) : 1);
  lp_json_put_integer(j, "isl", request->isl);
  lp_json_put_integer(j, "osl", request->osl);
  lp_json_put_number(j, "steps", lp_plan_steps(request, LP_STAGE_DECODE));
  lp_json_put_number(j, "shared", lp_plan_shared_runs(request, LP_STAGE_DECODE, LP_SIDE_CLOUD));
  lp_json_put_number(j, "tokens", (double)request->batch * (double)(request->osl > 0 ? request->osl : 1));
  lp_json_put_numbers(j, "sla", (const double[]){request->ttft_ms, request->tpot_ms}, LP_SIDE_COUNT);
  lp_json_put_flat_array(j, "measured"); /* TTFT and TPOT of a run; 0: none */
  lp_json_put_number(j, NULL, request->measured_ttft_ms);
  lp_json_put_number(j, NULL, request->measured_tpot_ms);
  lp_json_put_end(j);
}

static void put_data(const lp_report *report, const char *text, lp_buf *out) {
  lp_json_writer j = lp_json_writer_begin(out, (lp_json_style){.digits = 6, .has_no_space = true});
  lp_json_put_object(&j, NULL);
  lp_json_put_text(&j, "name", report->model.name);
  lp_json_put_integer(&j, "params", report->model.params);
  lp_json_put_integer(&j, "layers", report->problem[0].layer_count);
  lp_json_put_number(&j, "weight_bytes", report->model.weight_bytes);
  lp_json_put_bool(&j, "feasible", report->plan.feasible);
  put_verdict(&j, report);
  lp_json_put_object(&j, "figures");
  lp_json_put_number(&j, "ttft_ms", report->plan.ttft_ms);
  lp_json_put_number(&j, "tpot_ms", report->plan.tpot_ms);
  lp_json_put_number(&j, "mtok", report->plan.cost_per_mtok_usd);
  lp_json_put_number(&j, "bytes_up", report->plan.bytes_up);
  lp_json_put_number(&j, "bytes_down", report->plan.bytes_down);
  lp_json_put_end(&j);
  put_request(&j, report);
  /* Without early exits the times of a placement are sums, which the page computes again. */
  lp_json_put_bool(&j, "exact_forms", report->request->exit_count == 0);
  put_plans(&j, report);
  put_stages(&j, report);
  put_operators(&j, report);
  lp_json_put_text(&j, "text", text);
  lp_json_put_end(&j);
}

void lp_report_html(const lp_report *report, lp_buf *out) {
  lp_buf text = {0}, data = {0}, title = {0};
  lp_report_text(report, &text);
  put_data(report, lp_buf_text(&text), &data);
  lp_buf_printf(&title, "%s: llmpart report", report->model.name);
  lp_page_write(&(lp_page){&title, &data, &text, lp_report_page_js}, out);
}
