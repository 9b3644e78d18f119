/* The report as JSON, schema llmpart.report/1: keys carry their units; unknown values are null. */
#include "base/json/writer.h"
#include "base/side.h"
#include "passes/plan/report/report.h"

#include <math.h>

/* ---- parts ------------------------------------------------------------------------------------------------------- */

void lp_report_model_json(const lp_report_model *model, lp_json_writer *j) {
  lp_json_put_object(j, "model");
  lp_json_put_text(j, "name", model->name);
  lp_json_put_integer(j, "params", model->params);
  lp_json_put_integer(j, "layers", model->layers);
  lp_json_put_number(j, "weight_bytes", model->weight_bytes);
  lp_json_put_end(j);
}

static void put_machine(lp_json_writer *j, const char *role, const lp_machine *machine, double memory_limit,
                        const char *dtype, bool chosen) {
  static const struct {
    const char *name;
    lp_hw_figure figure;
  } figures[] = {{"peak_f32_flops", LP_HW_PEAK_F32},
                 {"peak_f16_flops", LP_HW_PEAK_F16},
                 {"bandwidth_bytes_per_s", LP_HW_BANDWIDTH},
                 {"memory_bytes", LP_HW_MEMORY},
                 {"compute_utilisation", LP_HW_COMPUTE_UTILISATION},
                 {"memory_utilisation", LP_HW_MEMORY_UTILISATION},
                 {"launch_ms", LP_HW_LAUNCH},
                 {"price_usd_per_s", LP_HW_PRICE},
                 {"power_w", LP_HW_POWER}},
    of_device[] = {{"idle_power_w", LP_HW_IDLE_POWER},
                   {"purchase_usd", LP_HW_PURCHASE},
                   {"life_years", LP_HW_LIFE},
                   {"energy_usd_per_kwh", LP_HW_ENERGY_PRICE}};
  if (!machine) {
    lp_json_put_null(j, role);
    return;
  }
  lp_json_put_object(j, role);
  lp_json_put_text(j, "name", machine->name);
  lp_json_put_text(j, "title", machine->title);
  for (size_t i = 0; i < LP_COUNT(figures); i++)
    lp_json_put_number(j, figures[i].name, machine->figure[figures[i].figure]);
  for (size_t i = 0; i < LP_COUNT(of_device); i++)
    if (machine->source[of_device[i].figure])
      lp_json_put_number(j, of_device[i].name, machine->figure[of_device[i].figure]);
  if (machine->figure[LP_HW_LOAD_BANDWIDTH] > 0) {
    lp_json_put_text(j, "kind", machine->kind == LP_MACHINE_GPU ? "gpu" : "cpu");
    lp_json_put_number(j, "load_bandwidth_bytes_per_s", machine->figure[LP_HW_LOAD_BANDWIDTH]);
  }
  lp_json_put_number(j, "memory_limit_bytes", memory_limit > 0 ? memory_limit : NAN);
  lp_json_put_text(j, "weight_dtype", dtype ? dtype : "model");
  lp_json_put_bool(j, "weight_dtype_chosen", chosen);
}

/* The origin of a side's times, and the code that is emitted for it. */
static void put_origin(lp_json_writer *j, const lp_report *report, lp_side side) {
  const lp_compile_request *request = report->request;
  const lp_machine *machine = side == LP_SIDE_DEVICE ? request->device : request->cloud;
  if (!machine) return;
  const char *source = lp_hw_measured_source(machine), *kernels = lp_hw_measured_kernels(machine);
  lp_json_put_object(j, "times");
  lp_json_put_number(j, "measured_share", source ? lp_report_measured_share(report, side) : 0);
  if (source) {
    lp_json_put_text(j, "source", source);
    lp_json_put_text(j, "kernels", kernels ? kernels : "another library");
  }
  lp_json_put_end(j);
  if (request->code[side]) {
    lp_json_put_text(j, "code", request->code[side]);
    lp_json_put_bool(j, "code_is_described", !request->code_is_other[side]);
  }
  lp_json_put_end(j);
}

/* Writes the distribution of a link that varies, one row for each state. */
static void put_states(lp_json_writer *j, const lp_link *link) {
  lp_json_put_number(j, "quantile", link->quantile);
  lp_json_put_array(j, "states_rtt_ms_up_bps_down_bps");
  LP_FOR_EACH(const lp_link_state, state, link->state, link->state_count)
    lp_json_put_numbers(j, NULL, (double[]){state->rtt_ms, state->up_bps, state->down_bps}, 3);
  lp_json_put_end(j);
}

static void put_link(lp_json_writer *j, const lp_link *link) {
  static const char *const radio[] = {"radio_up_j_per_bit", "radio_down_j_per_bit", "radio_awake_w", "radio_tail_j"};
  if (!link) {
    lp_json_put_null(j, "link");
    return;
  }
  lp_json_put_object(j, "link");
  lp_json_put_text(j, "name", link->name);
  lp_json_put_number(j, "rtt_ms", link->figure[LP_LINK_RTT]);
  lp_json_put_number(j, "up_bps", link->figure[LP_LINK_UP]);
  lp_json_put_number(j, "down_bps", link->figure[LP_LINK_DOWN]);
  lp_json_put_number(j, "loss", link->figure[LP_LINK_LOSS]);
  for (int i = LP_LINK_RADIO_UP; i <= LP_LINK_RADIO_TAIL; i++)
    if (link->source[i]) lp_json_put_number(j, radio[i - LP_LINK_RADIO_UP], link->figure[i]);
  if (link->state_count > 0) put_states(j, link);
  lp_json_put_end(j);
}

void lp_report_request(const lp_compile_request *request, lp_json_writer *j) {
  lp_json_put_object(j, "workload");
  lp_json_put_integer(j, "isl", request->isl);
  lp_json_put_integer(j, "osl", request->osl);
  lp_json_put_integer(j, "batch", request->batch);
  lp_json_put_integer(j, "sessions", request->sessions > 1 ? request->sessions : 1);
  lp_json_put_end(j);
  lp_json_put_object(j, "sla");
  lp_json_put_number(j, "ttft_ms", request->ttft_ms > 0 ? request->ttft_ms : NAN);
  lp_json_put_number(j, "tpot_ms", request->tpot_ms > 0 ? request->tpot_ms : NAN);
  lp_json_put_end(j);
}

/* The method that proved the lower bound; NULL when none is known. */
static const char *proof_name(const lp_plan_proof *proof) {
  if (!proof->known) return NULL;
  if (proof->complete) return "complete search";
  return proof->lower_bound > proof->dual_bound ? "search" : "prices of the limits";
}

static void put_proof(lp_json_writer *j, const lp_report *report) {
  const lp_plan_proof *proof = &report->proof;
  const char *objective = report->request->objective;
  bool in_usd = proof->known && (!objective || lp_streq(objective, "cost"));
  lp_json_put_number(j, "lower_bound", proof->known ? proof->lower_bound : NAN);
  lp_json_put_number(j, "lower_bound_usd", in_usd ? proof->lower_bound : NAN);
  lp_json_put_number(j, "gap", lp_plan_gap(&report->proof, &report->plan, report->request));
  lp_json_put_text(j, "proof", proof_name(proof));
}

static void put_result(lp_json_writer *j, const char *name, const lp_plan_result *r, const lp_report *proved) {
  const struct {
    const char *name;
    double value;
  } numbers[] = {{"ttft_ms", r->ttft_ms},
                 {"tpot_ms", r->tpot_ms},
                 {"e2e_ms", r->e2e_ms},
                 {"cloud_busy_ms", r->cloud_busy_ms},
                 {"device_busy_ms", r->device_busy_ms},
                 {"cost_usd", r->cost_usd},
                 {"cost_per_mtok_usd", r->cost_per_mtok_usd},
                 {"energy_j", r->energy_j},
                 {"crossings_prefill", (double)r->crossings_prefill},
                 {"crossings_decode", (double)r->crossings_decode},
                 {"messages_prefill", (double)r->messages_prefill},
                 {"messages_decode", (double)r->messages_decode},
                 {"bytes_up", r->bytes_up},
                 {"bytes_down", r->bytes_down},
                 {"prefill_device_ms", r->prefill_device_ms},
                 {"prefill_cloud_ms", r->prefill_cloud_ms},
                 {"prefill_link_ms", r->prefill_link_ms},
                 {"decode_device_ms", r->decode_device_ms},
                 {"decode_cloud_ms", r->decode_cloud_ms},
                 {"decode_link_ms", r->decode_link_ms},
                 {"kv_move_ms", r->kv_move_ms},
                 {"device_weight_bytes", r->device_weight_bytes},
                 {"cloud_weight_bytes", r->cloud_weight_bytes},
                 {"device_memory_bytes", r->device_memory_bytes},
                 {"cloud_memory_bytes", r->cloud_memory_bytes},
                 {"device_energy_j", r->device.energy_j},
                 {"device_busy_j", r->device.busy_j},
                 {"device_waiting_j", r->device.waiting_j},
                 {"device_radio_j", r->device.radio_j},
                 {"cloud_energy_j", r->device.cloud_j},
                 {"device_purchase_usd", r->device.purchase_usd},
                 {"device_energy_usd", r->device.energy_usd},
                 {"device_cost_usd", r->device.cost_usd},
                 {"total_cost_usd", r->device.total_usd}};
  lp_json_put_object(j, name);
  lp_json_put_bool(j, "feasible", r->feasible);
  lp_json_put_text(j, "binding", lp_plan_limit_names[r->binding]);
  for (size_t i = 0; i < LP_COUNT(numbers); i++)
    lp_json_put_number(j, numbers[i].name, numbers[i].value);
  if (proved && !isnan(proved->probability)) lp_json_put_number(j, "sla_probability", proved->probability);
  if (proved && !isnan(lp_report_cold_ttft(proved))) {
    lp_json_put_number(j, "cold_ttft_ms", lp_report_cold_ttft(proved));
    lp_json_put_number(j, "cold_device_energy_j", lp_report_cold_energy(proved));
  }
  if (proved) put_proof(j, proved);
  lp_json_put_end(j);
}

/* Writes a plan that is much faster and hardly worse, or null. */
static void put_faster(lp_json_writer *j, const lp_report *report) {
  if (!report->faster.name) {
    lp_json_put_null(j, "faster");
    return;
  }
  lp_json_put_object(j, "faster");
  lp_json_put_text(j, "scheduler", report->faster.name);
  lp_json_put_number(j, "saving", lp_report_saving(report));
  put_result(j, "plan", &report->faster.result, NULL);
  lp_json_put_end(j);
}

/* Writes the plan of the least objective found, or null where the plan itself is that one. */
static void put_cheapest(lp_json_writer *j, const lp_report *report) {
  lp_json_put_number(j, "tolerance", report->request->tolerance);
  if (report->cheapest.name)
    put_result(j, "cheapest", &report->cheapest.result, NULL);
  else
    lp_json_put_null(j, "cheapest");
}

/* Writes the assumptions of the plan's time per token with early exits, or null. */
static void put_exits(lp_json_writer *j, const lp_report *report) {
  const lp_exit_rates *rates = &report->request->exit_rates;
  if (report->request->exit_count == 0) return;
  lp_json_put_object(j, "exits");
  lp_json_put_array(j, "layers");
  for (int32_t i = 0; i < report->request->exit_count; i++)
    lp_json_put_integer(j, NULL, report->request->exits[i]);
  lp_json_put_end(j);
  lp_json_put_text(j, "mode", lp_exits_modes[rates->mode]);
  if (rates->mode == LP_EXITS_EXACT || rates->mode == LP_EXITS_THRESHOLD) {
    lp_json_put_number(j, "rate", rates->rate);
    lp_json_put_number(j, "row_share", rates->row_share);
    lp_json_put_text(j, "codec", rates->codec);
    if (rates->mode == LP_EXITS_THRESHOLD) {
      lp_json_put_number(j, "theta", rates->theta);
      lp_json_put_number(j, "layer_runs_per_token", rates->layer_runs);
    }
    lp_json_put_integer(j, "drafts", report->plan.drafts);
    lp_json_put_number(j, "questions_per_token", report->plan.questions);
  }
  lp_json_put_end(j);
}

static void put_fixes(lp_json_writer *j, const lp_report *report) {
  lp_json_put_array(j, "fixes");
  for (int32_t i = 0; i < report->fix_count; i++) {
    lp_json_put_object(j, NULL);
    lp_json_put_text(j, "change", report->fixes[i].name);
    if (report->fixes[i].to_text) {
      lp_json_put_text(j, "from", report->fixes[i].from_text);
      lp_json_put_text(j, "to", report->fixes[i].to_text);
    } else {
      lp_json_put_number(j, "from", report->fixes[i].from);
      lp_json_put_number(j, "to", report->fixes[i].to);
    }
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

static void put_operator(lp_json_writer *j, const lp_report_operator *item) {
  const lp_plan_op *op = item->op;
  double bytes = op->bytes[item->side], flops = op->flops[item->side];
  lp_json_put_flat_object(j, NULL);
  lp_json_put_text(j, "name", lp_op_str(op->op, "name", ""));
  lp_json_put_text(j, "kind", lp_op_info_get(op->op->kind)->name);
  lp_json_put_integer(j, "layer", lp_op_i64(op->op, "layer", -1));
  lp_json_put_text(j, "stage", lp_stage_names[item->stage]);
  lp_json_put_text(j, "side", lp_side_name(item->side));
  lp_json_put_number(j, "flops", flops);
  lp_json_put_number(j, "bytes", bytes);
  lp_json_put_number(j, "ratio", bytes > 0 ? flops / bytes : 0);
  if (item->side == LP_SIDE_CLOUD && op->gathers > 0) lp_json_put_number(j, "gather_ms", op->gather_ms);
  if (op->draw_ms[item->side] > 0) lp_json_put_number(j, "draw_ms", op->draw_ms[item->side]);
  lp_json_put_number(j, "device_ms", op->ms[LP_SIDE_DEVICE]);
  lp_json_put_number(j, "device_low_ms", op->low_ms[LP_SIDE_DEVICE]);
  lp_json_put_number(j, "device_high_ms", op->high_ms[LP_SIDE_DEVICE]);
  lp_json_put_number(j, "cloud_ms", op->ms[LP_SIDE_CLOUD]);
  lp_json_put_number(j, "cloud_low_ms", op->low_ms[LP_SIDE_CLOUD]);
  lp_json_put_number(j, "cloud_high_ms", op->high_ms[LP_SIDE_CLOUD]);
  lp_json_put_end(j);
}

static void put_region(lp_json_writer *j, const lp_family_region *region) {
  lp_json_put_flat_object(j, NULL);
  for (int i = 0; i < LP_FAMILY_AXES; i++)
    lp_json_put_numbers(j, lp_family_axis_names[i], (double[]){region->low[i], region->high[i]}, 2);
  lp_json_put_end(j);
}

static void put_plans(lp_json_writer *j, const lp_report *report) {
  const lp_plan_family *family = &report->family;
  const lp_family_regret *regret = &family->regret;
  lp_json_put_object(j, "plan_family");
  lp_json_put_integer(j, "grid_points", regret->points);
  lp_json_put_integer(j, "missed_points", regret->missed);
  lp_json_put_number(j, "worst_regret", regret->worst);
  lp_json_put_number(j, "mean_regret", regret->mean);
  lp_json_put_integer(j, "one_plan_missed_points", regret->alone_missed);
  lp_json_put_number(j, "one_plan_worst_regret", regret->alone_worst);
  lp_json_put_end(j);
  lp_json_put_array(j, "plans");
  for (int32_t i = 0; i < family->count; i++) {
    const lp_plan_result *r = &report->of_plan[i];
    lp_json_put_object(j, NULL);
    lp_json_put_integer(j, "plan", i);
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      lp_json_put_text(j, lp_stage_names[stage],
                       lp_op_str(lp_plan_func(report->module, (lp_stage)stage, i), "sym_name", NULL));
    put_result(j, "at_request", r, NULL);
    lp_json_put_array(j, "regions");
    for (int32_t k = 0; k < family->region_count; k++)
      if (family->region[k].plan == i) put_region(j, &family->region[k]);
    lp_json_put_end(j);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

static void put_table1(lp_json_writer *j, const lp_report *report) {
  lp_table1_row rows[64];
  int32_t count = lp_table1_rows(report, rows, (int32_t)LP_COUNT(rows));
  lp_json_put_array(j, "table1");
  for (int32_t i = 0; i < count; i++) {
    lp_json_put_flat_object(j, NULL);
    lp_json_put_text(j, "operator", rows[i].name);
    lp_json_put_text(j, "stage", rows[i].stage);
    lp_json_put_integer(j, "k", rows[i].k);
    lp_json_put_integer(j, "n", rows[i].n);
    lp_json_put_number(j, "ops", rows[i].ops);
    lp_json_put_number(j, "elements", rows[i].elements);
    lp_json_put_number(j, "ratio", rows[i].ops / rows[i].elements);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

void lp_report_json(const lp_report *report, lp_buf *out) {
  lp_json_writer j = lp_json_writer_begin(out, (lp_json_style){.indent = 2, .digits = 12});
  const lp_compile_request *request = report->request;
  char placement[17];
  lp_json_put_object(&j, NULL);
  lp_json_put_text(&j, "schema", "llmpart.report/1");
  lp_report_model_json(&report->model, &j);
  put_machine(&j, lp_side_name(LP_SIDE_DEVICE), request->device, lp_plan_memory_limit(request, LP_SIDE_DEVICE),
              request->dtype_device, request->chose_dtype_device);
  put_origin(&j, report, LP_SIDE_DEVICE);
  put_machine(&j, lp_side_name(LP_SIDE_CLOUD), request->cloud, lp_plan_memory_limit(request, LP_SIDE_CLOUD),
              request->dtype_cloud, request->chose_dtype_cloud);
  put_origin(&j, report, LP_SIDE_CLOUD);
  lp_report_ranks_json(report, &j);
  put_link(&j, request->link);
  lp_report_request(request, &j);
  if (lp_rounds_activations(request)) lp_json_put_text(&j, "activations", "auto");
  if (lp_streq(request->quantise, "search")) lp_json_put_text(&j, "quantise", request->quantise);
  if (request->weighs_rounding) lp_json_put_bool(&j, "weighs_rounding", true);
  if (request->experts_counted) lp_json_put_bool(&j, "measured_experts", true);
  if (request->hot_experts > 0) lp_json_put_integer(&j, "hot_experts", request->hot_experts);
  if (request->device_experts > 0) lp_json_put_integer(&j, "device_experts", request->device_experts);
  if (request->kv_dtype) lp_json_put_text(&j, "kv_dtype", request->kv_dtype);
  lp_json_put_text(&j, "scheduler", report->scheduler);
  lp_json_put_text(&j, "objective", request->objective ? request->objective : "cost");
  lp_json_put_bool(&j, "feasible", report->plan.feasible);
  lp_json_put_text(&j, "binding", lp_plan_limit_names[report->plan.binding]);
  put_fixes(&j, report);
  put_exits(&j, report);
  lp_report_placement(report, placement);
  lp_json_put_text(&j, "placement", placement);
  put_result(&j, "plan", &report->plan, report);
  lp_json_put_object(&j, "baselines");
  for (int32_t i = 0; i < report->baseline_count; i++)
    put_result(&j, report->baselines[i].name, &report->baselines[i].result, NULL);
  lp_json_put_end(&j);
  lp_json_put_number(&j, "decrement", report->decrement);
  put_cheapest(&j, report);
  put_faster(&j, report);
  lp_report_front_json(report, &j);
  if (request->measured_ttft_ms > 0) {
    lp_json_put_object(&j, "measured");
    lp_json_put_number(&j, "ttft_ms", request->measured_ttft_ms);
    lp_json_put_number(&j, "tpot_ms", request->measured_tpot_ms);
    lp_json_put_end(&j);
  }
  if (report->family.count > 1) put_plans(&j, report);
  if (report->table1) put_table1(&j, report);
  lp_report_predictions_json(report, &j);
  lp_json_put_array(&j, "operators");
  for (int32_t i = 0; i < report->operator_count; i++)
    put_operator(&j, &report->operators[i]);
  lp_json_put_end(&j);
  lp_report_certificate_json(report, &j);
  lp_json_document_end(&j);
}
