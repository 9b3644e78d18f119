/* The report as JSON, schema llmpart.report/1: keys carry their units; what is not known is null. */
#include "base/side.h"
#include "passes/plan/report/report.h"

#include <math.h>
#include <string.h>

/* ---- a small writer: two spaces per level, one member a line, operators one a line ------------------------------------ */

typedef struct {
  lp_buf *out;
  int depth;
  bool first, flat; /* flat: members go on one line */
} json;

static void put_string(json *j, const char *text) {
  lp_report_quote(text, j->out);
}

static void separate(json *j) {
  if (!j->first) lp_buf_puts(j->out, ",");
  if (!j->flat)
    lp_buf_printf(j->out, "\n%*s", 2 * j->depth, "");
  else if (!j->first)
    lp_buf_puts(j->out, " ");
  j->first = false;
}

static void key(json *j, const char *name) {
  separate(j);
  if (!name) return;
  put_string(j, name);
  lp_buf_puts(j->out, ": ");
}

static void open(json *j, const char *name, char bracket) {
  key(j, name);
  lp_buf_append(j->out, &bracket, 1);
  j->depth++;
  j->first = true;
}

static void close(json *j, char bracket) {
  j->depth--;
  if (!j->flat && !j->first) lp_buf_printf(j->out, "\n%*s", 2 * j->depth, "");
  lp_buf_append(j->out, &bracket, 1);
  j->first = false;
}

static void number(json *j, const char *name, double value) {
  key(j, name);
  if (isfinite(value))
    lp_buf_printf(j->out, "%.12g", value);
  else
    lp_buf_puts(j->out, "null");
}

static void integer(json *j, const char *name, int64_t value) {
  key(j, name);
  lp_buf_printf(j->out, "%" PRId64, value);
}

static void string(json *j, const char *name, const char *value) {
  key(j, name);
  if (value)
    put_string(j, value);
  else
    lp_buf_puts(j->out, "null");
}

static void boolean(json *j, const char *name, bool value) {
  key(j, name);
  lp_buf_puts(j->out, value ? "true" : "false");
}

static void nothing(json *j, const char *name) {
  key(j, name);
  lp_buf_puts(j->out, "null");
}

/* ---- parts ------------------------------------------------------------------------------------------------------------ */

static void put_model(json *j, const lp_report *report) {
  open(j, "model", '{');
  string(j, "name", report->name);
  integer(j, "params", report->params);
  integer(j, "layers", report->problem[0].layer_count);
  number(j, "weight_bytes", report->weight_bytes);
  close(j, '}');
}

static void put_machine(json *j, const char *role, const lp_machine *machine, const char *dtype, bool chosen) {
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
                 {"price_usd_per_s", LP_HW_PRICE}};
  if (!machine) {
    nothing(j, role);
    return;
  }
  open(j, role, '{');
  string(j, "name", machine->name);
  string(j, "title", machine->title);
  for (size_t i = 0; i < LP_COUNT(figures); i++)
    number(j, figures[i].name, machine->figure[figures[i].figure]);
  string(j, "weight_dtype", dtype ? dtype : "model");
  boolean(j, "weight_dtype_chosen", chosen);
  close(j, '}');
}

static void put_link(json *j, const lp_link *link) {
  if (!link) {
    nothing(j, "link");
    return;
  }
  open(j, "link", '{');
  string(j, "name", link->name);
  number(j, "rtt_ms", link->figure[LP_LINK_RTT]);
  number(j, "up_bps", link->figure[LP_LINK_UP]);
  number(j, "down_bps", link->figure[LP_LINK_DOWN]);
  number(j, "loss", link->figure[LP_LINK_LOSS]);
  close(j, '}');
}

static void put_request(json *j, const lp_compile_request *request) {
  open(j, "workload", '{');
  integer(j, "isl", request->isl);
  integer(j, "osl", request->osl);
  integer(j, "batch", request->batch);
  integer(j, "sessions", request->sessions > 1 ? request->sessions : 1);
  close(j, '}');
  open(j, "sla", '{');
  number(j, "ttft_ms", request->ttft_ms > 0 ? request->ttft_ms : NAN);
  number(j, "tpot_ms", request->tpot_ms > 0 ? request->tpot_ms : NAN);
  close(j, '}');
}

/* Numbers that only this plan has. */
static const char *proof_name(const lp_plan_proof *proof) {
  if (!proof->known) return NULL;
  return proof->complete ? "complete search" : "prices of the limits";
}

static void put_proof(json *j, const lp_report *report) {
  const lp_plan_proof *proof = &report->proof;
  const char *objective = report->request->objective;
  bool in_usd = proof->known && (!objective || lp_streq(objective, "cost"));
  number(j, "lower_bound", proof->known ? proof->lower_bound : NAN);
  number(j, "lower_bound_usd", in_usd ? proof->lower_bound : NAN);
  number(j, "gap", lp_plan_gap(&report->proof, &report->plan, report->request));
  string(j, "proof", proof_name(proof));
}

static void put_result(json *j, const char *name, const lp_plan_result *r, const lp_report *proved) {
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
                 {"cloud_memory_bytes", r->cloud_memory_bytes}};
  open(j, name, '{');
  boolean(j, "feasible", r->feasible);
  string(j, "binding", lp_plan_limit_names[r->binding]);
  for (size_t i = 0; i < LP_COUNT(numbers); i++)
    number(j, numbers[i].name, numbers[i].value);
  if (proved) put_proof(j, proved);
  close(j, '}');
}

static void put_fixes(json *j, const lp_report *report) {
  open(j, "fixes", '[');
  for (int32_t i = 0; i < report->fix_count; i++) {
    open(j, NULL, '{');
    string(j, "change", report->fixes[i].name);
    if (report->fixes[i].to_text) {
      string(j, "from", report->fixes[i].from_text);
      string(j, "to", report->fixes[i].to_text);
    } else {
      number(j, "from", report->fixes[i].from);
      number(j, "to", report->fixes[i].to);
    }
    close(j, '}');
  }
  close(j, ']');
}

static void put_operator(json *j, const lp_report_operator *item) {
  const lp_plan_op *op = item->op;
  double bytes = op->bytes[item->side];
  open(j, NULL, '{');
  j->flat = true;
  string(j, "name", lp_op_str(op->op, "name", ""));
  string(j, "kind", lp_op_info_get(op->op->kind)->name);
  integer(j, "layer", lp_op_i64(op->op, "layer", -1));
  string(j, "stage", lp_stage_names[item->stage]);
  string(j, "side", lp_side_name(item->side));
  number(j, "flops", op->flops);
  number(j, "bytes", bytes);
  number(j, "ratio", bytes > 0 ? op->flops / bytes : 0);
  if (op->draw_ms[item->side] > 0) number(j, "draw_ms", op->draw_ms[item->side]);
  number(j, "device_ms", op->ms[LP_SIDE_DEVICE]);
  number(j, "device_low_ms", op->low_ms[LP_SIDE_DEVICE]);
  number(j, "device_high_ms", op->high_ms[LP_SIDE_DEVICE]);
  number(j, "cloud_ms", op->ms[LP_SIDE_CLOUD]);
  number(j, "cloud_low_ms", op->low_ms[LP_SIDE_CLOUD]);
  number(j, "cloud_high_ms", op->high_ms[LP_SIDE_CLOUD]);
  close(j, '}');
  j->flat = false;
}

static void put_region(json *j, const lp_family_region *region) {
  open(j, NULL, '{');
  j->flat = true;
  for (int i = 0; i < LP_FAMILY_AXES; i++) {
    open(j, lp_family_axis_names[i], '[');
    number(j, NULL, region->low[i]);
    number(j, NULL, region->high[i]);
    close(j, ']');
  }
  close(j, '}');
  j->flat = false;
}

static void put_plans(json *j, const lp_report *report) {
  const lp_plan_family *family = &report->family;
  const lp_family_regret *regret = &family->regret;
  open(j, "plan_family", '{');
  integer(j, "grid_points", regret->points);
  integer(j, "missed_points", regret->missed);
  number(j, "worst_regret", regret->worst);
  number(j, "mean_regret", regret->mean);
  integer(j, "one_plan_missed_points", regret->alone_missed);
  number(j, "one_plan_worst_regret", regret->alone_worst);
  close(j, '}');
  open(j, "plans", '[');
  for (int32_t i = 0; i < family->count; i++) {
    const lp_plan_result *r = &report->of_plan[i];
    open(j, NULL, '{');
    integer(j, "plan", i);
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      string(j, lp_stage_names[stage], lp_op_str(lp_plan_func(report->module, (lp_stage)stage, i), "sym_name", NULL));
    put_result(j, "at_request", r, NULL);
    open(j, "regions", '[');
    for (int32_t k = 0; k < family->region_count; k++)
      if (family->region[k].plan == i) put_region(j, &family->region[k]);
    close(j, ']');
    close(j, '}');
  }
  close(j, ']');
}

static void put_table1(json *j, const lp_report *report) {
  lp_table1_row rows[64];
  int32_t count = lp_table1_rows(report, rows, (int32_t)LP_COUNT(rows));
  open(j, "table1", '[');
  for (int32_t i = 0; i < count; i++) {
    open(j, NULL, '{');
    j->flat = true;
    string(j, "operator", rows[i].name);
    string(j, "stage", rows[i].stage);
    integer(j, "k", rows[i].k);
    integer(j, "n", rows[i].n);
    number(j, "ops", rows[i].ops);
    number(j, "elements", rows[i].elements);
    number(j, "ratio", rows[i].ops / rows[i].elements);
    close(j, '}');
    j->flat = false;
  }
  close(j, ']');
}

void lp_report_json(const lp_report *report, lp_buf *out) {
  json j = {.out = out, .depth = 1, .first = true};
  const lp_compile_request *request = report->request;
  lp_buf_puts(out, "{");
  string(&j, "schema", "llmpart.report/1");
  put_model(&j, report);
  put_machine(&j, lp_side_name(LP_SIDE_DEVICE), request->device, request->dtype_device, request->chose_dtype_device);
  put_machine(&j, lp_side_name(LP_SIDE_CLOUD), request->cloud, request->dtype_cloud, request->chose_dtype_cloud);
  put_link(&j, request->link);
  put_request(&j, request);
  string(&j, "scheduler", report->scheduler);
  string(&j, "objective", request->objective ? request->objective : "cost");
  boolean(&j, "feasible", report->plan.feasible);
  string(&j, "binding", lp_plan_limit_names[report->plan.binding]);
  put_fixes(&j, report);
  put_result(&j, "plan", &report->plan, report);
  open(&j, "baselines", '{');
  for (int32_t i = 0; i < report->baseline_count; i++)
    put_result(&j, report->baselines[i].name, &report->baselines[i].result, NULL);
  close(&j, '}');
  number(&j, "decrement", report->decrement);
  if (report->family.count > 1) put_plans(&j, report);
  if (report->table1) put_table1(&j, report);
  open(&j, "operators", '[');
  for (int32_t i = 0; i < report->operator_count; i++)
    put_operator(&j, &report->operators[i]);
  close(&j, ']');
  if (report->proof.known) {
    key(&j, "certificate");
    lp_report_certificate(report, out);
  }
  lp_buf_puts(out, "\n}\n");
}
