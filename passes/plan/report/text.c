/* The report for people. */
#include "base/units.h"
#include "passes/plan/device.h"
#include "passes/plan/objective.h"
#include "passes/plan/report/report.h"

#include <math.h>

/* "6.74 G", "134.5 M" */
static const char *format_count(double count, char out[32]) {
  static const char *const units[] = {"", " k", " M", " G", " T"};
  size_t unit = 0;
  while (count >= 1000 && unit + 1 < LP_COUNT(units))
    count /= 1000, unit++;
  (void)snprintf(out, 32, "%.4g%s", count, units[unit]);
  return out;
}

/* The machines of all ranks have the price of all, and the memory of each. */
static void put_machine(const char *role, const lp_machine *machine, int64_t ranks, lp_buf *out) {
  if (!machine) return;
  char memory[32];
  lp_buf_printf(out, "%-12s", role);
  if (ranks > 1) lp_buf_printf(out, "%" PRId64 " x ", ranks);
  lp_buf_printf(out, "%s: %s", machine->name, machine->title);
  if (machine->figure[LP_HW_MEMORY] > 0)
    lp_buf_printf(out, ", %s%s", lp_format_bytes(machine->figure[LP_HW_MEMORY], memory), ranks > 1 ? " each" : "");
  if (machine->figure[LP_HW_PRICE] > 0)
    lp_buf_printf(out, ", %.3g USD/h%s", machine->figure[LP_HW_PRICE] * 3600, ranks > 1 ? " in all" : "");
  lp_buf_puts(out, "\n");
}

/* The origin of a side's times, and the code that is emitted for it. */
static void put_origin(const lp_report *report, lp_side side, lp_buf *out) {
  const lp_compile_request *request = report->request;
  const lp_machine *machine = side == LP_SIDE_DEVICE ? request->device : request->cloud;
  if (!machine) return;
  const char *source = lp_hw_measured_source(machine);
  double share = source ? lp_report_measured_share(report, side) : 0;
  lp_buf_printf(out, "%-12stimes: ", "");
  if (share > 0)
    lp_buf_printf(out, "%.3g %% from measured operators of %s, else ", 100 * share,
                  lp_hw_measured_kernels(machine) ? "llmpart's kernels" : "another library's kernels");
  lp_buf_puts(out, "the roofline");
  if (request->code[side]) lp_buf_printf(out, "; code: %s", request->code[side]);
  if (request->code_is_other[side]) lp_buf_puts(out, ", another processor than that of the figures");
  lp_buf_puts(out, "\n");
}

static void put_bound(const char *name, double ms, lp_buf *out) {
  char text[32];
  if (ms > 0)
    lp_buf_printf(out, "%s %s", name, lp_format_ms(ms, text));
  else
    lp_buf_printf(out, "%s any", name);
}

void lp_report_sla_text(const lp_compile_request *request, lp_buf *out) {
  lp_buf_printf(out, "%-12s", "SLA");
  put_bound("TTFT", request->ttft_ms, out);
  put_bound(", TPOT", request->tpot_ms, out);
  if (request->front && request->tpot_ms > 0) lp_buf_puts(out, ": the knee of cost against time");
}

void lp_report_workload_text(const lp_compile_request *request, lp_buf *out) {
  lp_buf_printf(out, "%-12s%" PRId64 " prompt tokens, %" PRId64 " generated, batch %" PRId64 "\n", "workload",
                request->isl, request->osl, request->batch);
}

/* A link without a name is named after its figures, which the line states anyway. */
static const char *link_name(const lp_link *link) {
  return link->name && !strchr(link->name, '=') ? link->name : "";
}

static void put_gap(const lp_report *report, lp_buf *out) {
  const lp_plan_proof *proof = &report->proof;
  if (!proof->known) return;
  if (proof->complete && !report->cheapest.name)
    lp_buf_puts(out, ", and no plan is better");
  else
    lp_buf_printf(out, ", gap %.2g %%", 100 * lp_plan_gap(proof, &report->plan, report->request));
}

static void put_type(const char *dtype, bool chosen, const char *where, lp_buf *out) {
  lp_buf_printf(out, "%s %s%s", dtype ? dtype : "as in the file", where, chosen ? " (chosen)" : "");
}

static void put_types(const lp_compile_request *request, lp_buf *out) {
  if (!request->dtype_device && !request->dtype_cloud && !request->chose_dtype_device && !request->chose_dtype_cloud)
    return;
  lp_buf_printf(out, "%-12s", "weights");
  put_type(request->dtype_device, request->chose_dtype_device, "on the device", out);
  if (request->cloud) lp_buf_puts(out, ", ");
  if (request->cloud) put_type(request->dtype_cloud, request->chose_dtype_cloud, "in the cloud", out);
  lp_buf_puts(out, "\n");
}

static void put_activations(const lp_compile_request *request, lp_buf *out) {
  if (lp_rounds_activations(request))
    lp_buf_printf(out,
                  "%-12srounded where that is faster: to int8 for int8 and int4 weights, to bf16 for bf16 on CPUs\n",
                  "activations");
}

static void put_quantise(const lp_compile_request *request, lp_buf *out) {
  if (lp_streq(request->quantise, "search"))
    lp_buf_printf(out, "%-12sthe most sensitive products keep int8 beside int4%s\n", "quantise",
                  request->weighs_rounding ? "; scales by measured activations" : "");
}

static void put_experts(const lp_compile_request *request, lp_buf *out) {
  const char *chosen = request->experts_counted ? "as often as was measured" : "all equally often";
  if (request->device_experts > 0)
    lp_buf_printf(out, "%-12s%" PRId64 " of each mixture in the device's memory, the others from storage; chosen %s\n",
                  "experts", request->device_experts, chosen);
  else if (request->hot_experts > 0)
    lp_buf_printf(out, "%-12s%" PRId64 " of each mixture placed apart from the others (*.hot, *.rest); chosen %s\n",
                  "experts", request->hot_experts, chosen);
  else if (request->experts_counted)
    lp_buf_printf(out, "%-12schosen %s\n", "experts", chosen);
}

static void put_kv_dtype(const lp_compile_request *request, lp_buf *out) {
  if (request->kv_dtype) lp_buf_printf(out, "%-12s%s\n", "KV caches", request->kv_dtype);
}

static void put_states(const lp_link *link, lp_buf *out) {
  if (!link || link->state_count == 0) return;
  lp_buf_printf(out, "%-12sat least this good in %.4g %% of %" PRId32 " states\n", "", 100 * link->quantile,
                link->state_count);
}

static void put_probability(const lp_report *report, lp_buf *out) {
  if (!report->request->link || isnan(report->probability)) return;
  lp_buf_printf(out, ", wanted with a probability of %.4g, met with %.4g", report->request->link->quantile,
                report->probability);
}

static void put_head(const lp_report *report, lp_buf *out) {
  const lp_compile_request *request = report->request;
  char count[32], bytes[32], up[32], down[32];
  lp_buf_printf(out, "%-12s%s: %s parameters, %" PRId32 " layers, weights %s\n", "model", report->model.name,
                format_count((double)report->model.params, count), report->problem[0].layer_count,
                lp_format_bytes(report->model.weight_bytes, bytes));
  put_machine(lp_side_name(LP_SIDE_DEVICE), request->device, 1, out);
  put_origin(report, LP_SIDE_DEVICE, out);
  put_machine(lp_side_name(LP_SIDE_CLOUD), request->cloud, request->ranks, out);
  put_origin(report, LP_SIDE_CLOUD, out);
  lp_report_ranks_text(report, out);
  if (request->link)
    lp_buf_printf(out, "%-12s%s%srtt %.4g ms, up %s, down %s\n", "link", link_name(request->link),
                  link_name(request->link)[0] ? ": " : "", request->link->figure[LP_LINK_RTT],
                  lp_format_rate(request->link->figure[LP_LINK_UP], up),
                  lp_format_rate(request->link->figure[LP_LINK_DOWN], down));
  put_states(request->link, out);
  lp_report_workload_text(request, out);
  put_types(request, out);
  put_activations(request, out);
  put_quantise(request, out);
  put_experts(request, out);
  put_kv_dtype(request, out);
  lp_report_sla_text(request, out);
  put_probability(report, out);
  lp_buf_printf(out, "\n%-12s%s, least %s: %s", "scheduler", report->scheduler,
                request->objective ? request->objective : "cost",
                report->plan.feasible ? "feasible" : "INFEASIBLE, bound by ");
  lp_buf_printf(out, "%s", report->plan.feasible ? "" : lp_plan_limit_names[report->plan.binding]);
  put_gap(report, out);
  lp_buf_puts(out, "\n");
}

/* A figure with its unit and all its digits, as options take it: "4.00081ms", "12.5599MB". The end of its name tells
 * the unit, and is left out of `*name_length`. */
static void figure_of(const char *name, double value, int *name_length, char out[32]) {
  static const struct {
    const char *ending;
    lp_unit units[4];
  } kinds[] = {{"_ms", {{"s", 1e3}, {"ms", 1}, {"us", 1e-3}}},
               {"_bytes", {{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}},
               {"_bps", {{"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1}}}};
  *name_length = (int)strlen(name);
  (void)snprintf(out, 32, "%.6g", value);
  for (size_t i = 0; i < LP_COUNT(kinds); i++) {
    if (!lp_has_suffix(name, kinds[i].ending)) continue;
    *name_length -= (int)strlen(kinds[i].ending);
    const lp_unit *unit = kinds[i].units;
    while (value < unit->factor && unit + 1 < kinds[i].units + LP_COUNT(kinds[i].units) && unit[1].name)
      unit++;
    (void)snprintf(out, 32, "%.6g%s", value / unit->factor, unit->name);
  }
}

static void put_fixes(const lp_report *report, lp_buf *out) {
  if (report->plan.feasible) return;
  lp_buf_puts(out, report->fix_count
                       ? "\nany one of these makes it feasible\n"
                       : "\nnone of SLA, link, device memory and weight types, changed alone, makes it feasible\n");
  LP_FOR_EACH(const lp_report_fix, fix, report->fixes, report->fix_count) {
    if (fix->to_text) {
      lp_buf_printf(out, "  %-16s from %s to %s\n", fix->name, fix->from_text, fix->to_text);
      continue;
    }
    char from[32], to[32];
    int length;
    figure_of(fix->name, fix->from, &length, from);
    figure_of(fix->name, fix->to, &length, to);
    lp_buf_printf(out, "  %-16.*s from %s to %s\n", length, fix->name, from, to);
  }
}

static const char *range_side(const lp_report_range *range) {
  return range->what ? "both" : lp_side_name(range->cloud_ops ? LP_SIDE_CLOUD : LP_SIDE_DEVICE);
}

static void put_range(const lp_report *report, const lp_report_range *range, lp_buf *out) {
  char name[48], time[32];
  lp_buf_printf(out, "  %-16s%-8s%10s", lp_report_range_name(report, range, name), range_side(range),
                lp_format_ms(range->device_ms + range->cloud_ms, time));
  if (range->what) lp_buf_printf(out, "   %s", range->what);
  lp_buf_puts(out, "\n");
}

static void put_exits(const lp_report *report, lp_buf *out) {
  const lp_exit_rates *rates = &report->request->exit_rates;
  if (report->request->exit_count == 0) return;
  lp_buf_printf(out, "%-12s", "exits");
  for (int32_t i = 0; i < report->request->exit_count; i++)
    lp_buf_printf(out, "%s%" PRId64, i ? ", " : "after layers ", report->request->exits[i]);
  lp_buf_printf(out, ", mode %s", lp_exits_modes[rates->mode]);
  if (rates->mode == LP_EXITS_EXACT)
    lp_buf_printf(out, ", %.3g %% of drafts are confirmed: %" PRId64 " drafts and %.3g tokens a round trip",
                  100 * rates->rate, report->plan.drafts, report->plan.questions > 0 ? 1 / report->plan.questions : 0);
  if (rates->mode == LP_EXITS_THRESHOLD)
    lp_buf_printf(out,
                  ", %.3g %% of tokens are taken at exits with theta %.3g, %.3g %% of the device's layers run for a "
                  "token, rows in %s",
                  100 * rates->rate, rates->theta, 100 * rates->layer_runs, rates->codec);
  if (rates->mode == LP_EXITS_FULL) lp_buf_puts(out, ": the cloud is asked for every token");
  lp_buf_puts(out, "\n");
}

static void put_placement(const lp_report *report, lp_buf *out) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_report_range *ranges;
    int32_t count = lp_report_ranges(report, (lp_stage)stage, &ranges);
    lp_buf_printf(out, "\n%s\n", lp_stage_names[stage]);
    for (int32_t i = 0; i < count; i++)
      put_range(report, &ranges[i], out);
  }
}

static void put_times(const lp_report *report, lp_buf *out) {
  const lp_plan_result *plan = &report->plan;
  const struct {
    const char *name;
    double prefill, decode;
  } rows[] = {{lp_side_name(LP_SIDE_DEVICE), plan->prefill_device_ms, plan->decode_device_ms},
              {lp_side_name(LP_SIDE_CLOUD), plan->prefill_cloud_ms, plan->decode_cloud_ms},
              {"link", plan->prefill_link_ms, plan->decode_link_ms},
              {"total", plan->ttft_ms, plan->tpot_ms}};
  char first[32], next[32];
  lp_buf_printf(out, "\n%-12s%14s%14s\n", "time", "TTFT", "TPOT");
  for (size_t i = 0; i < LP_COUNT(rows); i++)
    lp_buf_printf(out, "  %-10s%14s%14s\n", rows[i].name, lp_format_ms(rows[i].prefill, first),
                  lp_format_ms(rows[i].decode, next));
  const lp_compile_request *request = report->request;
  if (request->measured_ttft_ms > 0)
    lp_buf_printf(out, "  %-10s%14s%14s   of a run: the prediction is %+.3g and %+.3g %% off\n", "measured",
                  lp_format_ms(request->measured_ttft_ms, first), lp_format_ms(request->measured_tpot_ms, next),
                  100 * (plan->ttft_ms / request->measured_ttft_ms - 1),
                  100 * (plan->tpot_ms / request->measured_tpot_ms - 1));
  const double cold_ms = lp_report_cold_ttft(report);
  if (!isnan(cold_ms))
    lp_buf_printf(out, "  %-10s%14s%14s   of a first request, for which the weights load\n", "cold",
                  lp_format_ms(cold_ms, first), "");
  lp_buf_printf(out, "%-12s%14" PRId64 "%14" PRId64 "   tensors, in %" PRId64 " and %" PRId64 " messages\n",
                "crossings", plan->crossings_prefill, plan->crossings_decode, plan->messages_prefill,
                plan->messages_decode);
  char up[32], down[32], device[32], cloud[32];
  lp_buf_printf(out, "%-12s%s up, %s down over the request", "traffic", lp_format_bytes(plan->bytes_up, up),
                lp_format_bytes(plan->bytes_down, down));
  if (plan->kv_move_ms > 0) lp_buf_printf(out, "; moving KV caches takes %s", lp_format_ms(plan->kv_move_ms, first));
  lp_buf_printf(out, "\n%-12s%s on the device (weights %s)", "memory", lp_format_bytes(plan->device_memory_bytes, up),
                lp_format_bytes(plan->device_weight_bytes, device));
  lp_buf_printf(out, ", %s in the cloud (weights %s)\n", lp_format_bytes(plan->cloud_memory_bytes, down),
                lp_format_bytes(plan->cloud_weight_bytes, cloud));
}

/* The device's energy and cost of an answer beside those of the cloud, or which figure is missing. */
static void put_device(const lp_report *report, lp_buf *out) {
  const lp_plan_device *d = &report->plan.device;
  const char *unknown = lp_plan_device_unknown(&report->plan);
  char total[32], purchase[32], energy[32];
  if (isnan(d->energy_j))
    lp_buf_printf(out, "%-12s%.3g J of the cloud; of the device %.3g J to compute, the rest is unknown: %s\n", "energy",
                  d->cloud_j, d->busy_j, unknown);
  else
    lp_buf_printf(out,
                  "%-12s%.3g J of the device: %.3g to compute, %.3g to wait, %.3g for its radio; %.3g J of the cloud\n",
                  "energy", d->energy_j, d->busy_j, d->waiting_j, d->radio_j, d->cloud_j);
  if (isnan(d->cost_usd) && !isnan(d->energy_j))
    lp_buf_printf(out, "%-12sof the device is unknown: %s\n", "cost", unknown);
  if (!isnan(d->cost_usd))
    lp_buf_printf(out, "%-12s%s USD/Mreq with the device: %s for its purchase, %s for its energy\n", "cost",
                  lp_format_usd(1e6 * d->total_usd, total), lp_format_usd(1e6 * d->purchase_usd, purchase),
                  lp_format_usd(1e6 * d->energy_usd, energy));
}

static void put_plan_row(const char *name, const lp_plan_result *result, lp_buf *out) {
  const double times[] = {result->ttft_ms, result->tpot_ms, result->e2e_ms, result->cloud_busy_ms};
  char text[32];
  lp_buf_printf(out, "  %-14s", name);
  for (size_t i = 0; i < LP_COUNT(times); i++)
    lp_buf_printf(out, "%12s", lp_format_ms(times[i], text));
  lp_buf_printf(out, "%12s", lp_format_usd(1e6 * result->cost_usd, text));
  lp_buf_printf(out, "%12s  %s\n", lp_format_usd(result->cost_per_mtok_usd, text),
                result->feasible ? "yes" : lp_plan_limit_names[result->binding]);
}

/* ", 40 ms instead of 1.2 s to the first token, ..." */
static void put_times_instead(const lp_plan_result *plan, const lp_plan_result *other, lp_buf *out) {
  char a[32], b[32];
  lp_buf_printf(out, ", %s instead of %s to the first token", lp_format_ms(plan->ttft_ms, a),
                lp_format_ms(other->ttft_ms, b));
  lp_buf_printf(out, ", %s instead of %s in all\n", lp_format_ms(plan->e2e_ms, a), lp_format_ms(other->e2e_ms, b));
}

/* Says what the plan costs more than the cheapest one, and the time that this saves. */
static void put_tolerance(const lp_report *report, lp_buf *out) {
  const lp_plan_result *plan = &report->plan, *best = &report->cheapest.result;
  const lp_compile_request *request = report->request;
  if (!report->cheapest.name) return;
  double more = lp_plan_objective_value(plan, request) / lp_plan_objective_value(best, request) - 1;
  lp_buf_printf(out, "within the tolerance of %.3g %% it is faster: %.2g %% above the least %s",
                100 * request->tolerance, 100 * more, request->objective ? request->objective : "cost");
  put_times_instead(plan, best, out);
}

static void put_warning(const lp_report *report, lp_buf *out) {
  const lp_plan_result *other = &report->faster.result;
  const double saving = lp_report_saving(report);
  if (!report->faster.name) return;
  lp_buf_puts(out, "warning: it saves ");
  if (saving > 0)
    lp_buf_printf(out, "only %.2g %%", 100 * saving);
  else
    lp_buf_puts(out, "nothing");
  lp_buf_printf(out, " over %s", report->faster.name);
  put_times_instead(other, &report->plan, out);
}

static void put_comparison(const lp_report *report, lp_buf *out) {
  lp_buf_printf(out, "\n  %-14s%12s%12s%12s%12s%12s%12s  %s\n", "plan", "TTFT", "TPOT", "request", "cloud", "USD/Mreq",
                "USD/Mtoken", "feasible");
  put_plan_row("this plan", &report->plan, out);
  for (int32_t i = 0; i < report->baseline_count; i++)
    put_plan_row(report->baselines[i].name, &report->baselines[i].result, out);
  if (report->cheapest.name) put_plan_row("the cheapest", &report->cheapest.result, out);
  if (report->faster.name) put_plan_row("a faster plan", &report->faster.result, out);
  if (report->plan.feasible && !isnan(report->decrement)) {
    lp_buf_printf(out, "this plan costs %.1f %% %s than the cloud alone", 100 * fabs(report->decrement),
                  report->decrement < 0 ? "more" : "less");
    lp_report_times_beside_cloud(report, out);
    lp_buf_puts(out, "\n");
  }
  put_tolerance(report, out);
  put_warning(report, out);
}

static void put_bounds(double low, double high, const char *unit, double factor, lp_buf *out) {
  char text[48];
  if (low <= 0 && isinf(high))
    (void)snprintf(text, sizeof text, "any");
  else if (low <= 0)
    (void)snprintf(text, sizeof text, "below %.4g%s", high * factor, unit);
  else if (isinf(high))
    (void)snprintf(text, sizeof text, "from %.4g%s", low * factor, unit);
  else
    (void)snprintf(text, sizeof text, "%.4g to %.4g%s", low * factor, high * factor, unit);
  lp_buf_printf(out, "%-22s", text);
}

/* Prints the family: each plan at the request, and the regions where it is taken. */
static void put_family(const lp_report *report, lp_buf *out) {
  static const char *const units[LP_FAMILY_AXES] = {"", "", " ms", " Mbit/s"};
  static const double factor[LP_FAMILY_AXES] = {1, 1, 1, 1e-6};
  const lp_plan_family *family = &report->family;
  const lp_family_regret *regret = &family->regret;
  if (family->count < 2) return;
  lp_buf_printf(
      out, "\n%" PRId32 " plans; at %" PRId32 " points the worst is %.2f %% of the cloud alone above the best there",
      family->count, regret->points, 100 * regret->worst);
  lp_buf_printf(out, " (mean %.2f %%, %" PRId32 " miss the SLA)\nthe first plan alone: %.2f %%, %" PRId32 " miss it\n",
                100 * regret->mean, regret->missed, 100 * regret->alone_worst, regret->alone_missed);
  for (int32_t i = 0; i < family->count; i++) {
    char name[24];
    (void)snprintf(name, sizeof name, "plan %" PRId32, i);
    put_plan_row(name, &report->of_plan[i], out);
  }
  lp_buf_printf(out, "\n  %-8s%-22s%-22s%-22s%-22s\n", "plan", "prompt tokens", "generated tokens", "round trip", "up");
  for (int32_t i = 0; i < family->region_count; i++) {
    lp_buf_printf(out, "  %-8" PRId32, family->region[i].plan);
    for (int axis = 0; axis < LP_FAMILY_AXES; axis++)
      put_bounds(family->region[i].low[axis], family->region[i].high[axis], units[axis], factor[axis], out);
    lp_buf_puts(out, "\n");
  }
}

static void put_table1(const lp_report *report, lp_buf *out) {
  lp_table1_row rows[64];
  int32_t count = lp_table1_rows(report, rows, (int32_t)LP_COUNT(rows));
  lp_buf_printf(out, "\nTable I of P1 at s = %" PRId64 " (multiply-adds, elements)\n  %-20s%-9s%14s%20s%16s%12s\n",
                report->request->isl, "operator", "stage", "size", "OPs", "elements", "ratio");
  for (int32_t i = 0; i < count; i++) {
    char size[40];
    if (rows[i].n)
      (void)snprintf(size, sizeof size, "%" PRId64 "x%" PRId64, rows[i].k, rows[i].n);
    else
      (void)snprintf(size, sizeof size, "%" PRId64, rows[i].k);
    lp_buf_printf(out, "  %-20s%-9s%14s%20.0f%16.0f%12.3f\n", rows[i].name, rows[i].stage, size, rows[i].ops,
                  rows[i].elements, rows[i].ops / rows[i].elements);
  }
}

void lp_report_text(const lp_report *report, lp_buf *out) {
  put_head(report, out);
  put_exits(report, out);
  put_fixes(report, out);
  put_placement(report, out);
  put_times(report, out);
  put_device(report, out);
  put_comparison(report, out);
  put_family(report, out);
  if (report->table1) put_table1(report, out);
  if (report->request->front) lp_buf_puts(out, "\n");
  lp_report_front_text(report, out);
}

/* ---- one line ---------------------------------------------------------------------------------------------------- */

/* "embedding, layers 0-6" for the runs of decode on one side; "everything" when the other side has none. */
static void put_runs(const lp_report *report, const lp_report_range *ranges, int32_t count, const char *side,
                     lp_buf *out) {
  char name[48];
  int32_t here = 0;
  for (int32_t i = 0; i < count; i++)
    here += lp_streq(range_side(&ranges[i]), side);
  if (here == 0) return;
  if (out->size > 0) lp_buf_puts(out, ", ");
  for (int32_t i = 0, put = 0; i < count && here < count; i++)
    if (lp_streq(range_side(&ranges[i]), side))
      lp_buf_printf(out, "%s%s", put++ ? ", " : "", lp_report_range_name(report, &ranges[i], name));
  if (here == count) lp_buf_puts(out, "everything");
  lp_buf_printf(out, " %s",
                lp_streq(side, "device")  ? "on the device"
                : lp_streq(side, "cloud") ? "in the cloud"
                                          : "on both sides");
}

void lp_report_line(const lp_report *report, lp_buf *out) {
  const lp_plan_result *plan = &report->plan;
  lp_report_range *ranges;
  int32_t count = lp_report_ranges(report, LP_STAGE_DECODE, &ranges);
  char a[32], b[32];
  put_runs(report, ranges, count, "device", out);
  put_runs(report, ranges, count, "both", out);
  put_runs(report, ranges, count, "cloud", out);
  lp_buf_printf(out, "; TTFT %s, TPOT %s", lp_format_ms(plan->ttft_ms, a), lp_format_ms(plan->tpot_ms, b));
  if (plan->cost_usd > 0) lp_buf_printf(out, "; %s USD/Mtoken", lp_format_usd(plan->cost_per_mtok_usd, a));
  if ((plan->cost_usd > 0 || report->request->front) && report->decrement > 0) {
    lp_buf_printf(out, "%s %.3g %% less than the cloud alone", plan->cost_usd > 0 ? "," : "; costs",
                  100 * report->decrement);
    lp_report_times_beside_cloud(report, out);
  }
  lp_buf_printf(out, "; weights %s on the device", lp_format_bytes(plan->device_weight_bytes, a));
  if (report->request->cloud) lp_buf_printf(out, ", %s in the cloud", lp_format_bytes(plan->cloud_weight_bytes, b));
}
