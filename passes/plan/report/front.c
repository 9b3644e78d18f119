/* The front of cost against time in reports: the plans that a request without limits could have, and what the plan
 * costs in time and saves in money beside the cloud alone. */
#include "base/units.h"
#include "passes/plan/report/report.h"

/* The rows, in which the plan itself stands for the knee. Those than which it is as fast and as cheap are left out. */
static int32_t list_rows(const lp_report *report, lp_plan_front_row rows[LP_FRONT_MOST], int32_t *knee) {
  const lp_plan_front *front = report->request->front;
  int32_t count = 0;
  for (int32_t i = 0; i < front->count; i++) {
    const lp_plan_result *other = &front->row[i].result;
    if (i != front->knee && other->e2e_ms >= report->plan.e2e_ms && other->cost_usd >= report->plan.cost_usd) continue;
    rows[count] = front->row[i];
    if (i == front->knee) {
      rows[count].result = report->plan;
      *knee = count;
    }
    count++;
  }
  return count;
}

/* "--ttft=37ms --tpot=4.3ms": the options that ask for a row's plan. */
static void put_options(const lp_plan_front_row *row, lp_buf *out) {
  if (row->tpot_ms > 0)
    lp_buf_printf(out, "--ttft=%.12gms --tpot=%.12gms", row->ttft_ms, row->tpot_ms);
  else
    lp_buf_puts(out, "--objective=cost");
}

void lp_report_front_text(const lp_report *report, lp_buf *out) {
  lp_plan_front_row rows[LP_FRONT_MOST];
  int32_t knee = 0;
  if (!report->request->front) return;
  const int32_t count = list_rows(report, rows, &knee);
  lp_buf_printf(out, "no limits are given, so the plan is the knee of cost against time; options take another one:\n");
  lp_buf_printf(out, "  %12s%12s%12s%12s\n", "TTFT", "TPOT", "request", "USD/Mreq");
  for (int32_t i = 0; i < count; i++) {
    const lp_plan_result *r = &rows[i].result;
    char ttft[32], tpot[32], request[32], usd[32];
    lp_buf_printf(out, "%s%12s%12s%12s%12s  ", i == knee ? "* " : "  ", lp_format_ms(r->ttft_ms, ttft),
                  lp_format_ms(r->tpot_ms, tpot), lp_format_ms(r->e2e_ms, request),
                  lp_format_usd(1e6 * r->cost_usd, usd));
    put_options(&rows[i], out);
    lp_buf_puts(out, i == knee ? " (this plan)\n" : "\n");
  }
}

void lp_report_front_json(const lp_report *report, lp_json_writer *j) {
  lp_plan_front_row rows[LP_FRONT_MOST];
  int32_t knee = 0;
  if (!report->request->front) return;
  const int32_t count = list_rows(report, rows, &knee);
  lp_json_put_object(j, "front");
  lp_json_put_integer(j, "knee", knee);
  lp_json_put_array(j, "plans");
  for (int32_t i = 0; i < count; i++) {
    const lp_plan_result *r = &rows[i].result;
    LP_OWNED(lp_buf_free) lp_buf options = {0};
    put_options(&rows[i], &options);
    lp_json_put_flat_object(j, NULL);
    lp_json_put_number(j, "ttft_ms", r->ttft_ms);
    lp_json_put_number(j, "tpot_ms", r->tpot_ms);
    lp_json_put_number(j, "e2e_ms", r->e2e_ms);
    lp_json_put_number(j, "cost_usd", r->cost_usd);
    lp_json_put_text(j, "options", lp_buf_text(&options));
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
  lp_json_put_end(j);
}

void lp_report_times_beside_cloud(const lp_report *report, lp_buf *out) {
  const lp_plan_result *plan = &report->plan;
  for (int32_t i = 0; i < report->baseline_count && report->request->front; i++) {
    const lp_plan_result *cloud = &report->baselines[i].result;
    if (!lp_streq(report->baselines[i].name, "cloud_only")) continue;
    const bool slower = plan->e2e_ms >= cloud->e2e_ms;
    lp_buf_printf(out, ", and is %.3g times %s (TTFT %.3g times, TPOT %.3g times)",
                  slower ? plan->e2e_ms / cloud->e2e_ms : cloud->e2e_ms / plan->e2e_ms, slower ? "slower" : "faster",
                  plan->ttft_ms / cloud->ttft_ms, plan->tpot_ms / cloud->tpot_ms);
  }
}
