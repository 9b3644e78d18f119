/* What the report says of the ranks of a sharded half. */
#include "base/units.h"
#include "passes/plan/report/report.h"

/* The gathers of a stage. */
typedef struct {
  int64_t count;
  double bytes, ms, share; /* share: of TTFT or TPOT */
} gathers;

static gathers sum_gathers(const lp_report *report, lp_stage stage) {
  const double total = stage == LP_STAGE_PREFILL ? report->plan.ttft_ms : report->plan.tpot_ms;
  gathers sum = {0};
  for (int32_t i = 0; i < report->operator_count; i++) {
    const lp_report_operator *item = &report->operators[i];
    if (item->stage != stage || item->side != LP_SIDE_CLOUD) continue;
    sum.count += item->op->gathers;
    sum.bytes += item->op->gather_bytes;
    sum.ms += item->op->gather_ms;
  }
  sum.share = total > 0 ? sum.ms / total : 0;
  return sum;
}

void lp_report_ranks_json(const lp_report *report, lp_json_writer *j) {
  const lp_compile_request *request = report->request;
  const lp_interconnect *over = request->interconnect;
  if (request->ranks < 2 && !request->chose_ranks) return;
  lp_json_put_object(j, "ranks");
  lp_json_put_integer(j, "count", request->ranks);
  lp_json_put_bool(j, "chosen", request->chose_ranks);
  if (over) {
    lp_json_put_object(j, "interconnect");
    lp_json_put_text(j, "name", over->name);
    lp_json_put_number(j, "alpha_ms", over->figure[LP_INTERCONNECT_ALPHA]);
    lp_json_put_number(j, "step_ms", over->figure[LP_INTERCONNECT_STEP]);
    lp_json_put_number(j, "beta_bytes_per_s", over->figure[LP_INTERCONNECT_BETA]);
    lp_json_put_end(j);
  }
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const gathers sum = sum_gathers(report, (lp_stage)stage);
    lp_json_put_object(j, lp_stage_names[stage]);
    lp_json_put_integer(j, "collectives", sum.count);
    lp_json_put_number(j, "gathered_bytes", sum.bytes);
    lp_json_put_number(j, "ms", sum.ms);
    lp_json_put_number(j, "share", sum.share);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

void lp_report_ranks_text(const lp_report *report, lp_buf *out) {
  const lp_compile_request *request = report->request;
  const lp_interconnect *over = request->interconnect;
  char first[32], next[32];
  if (request->ranks < 2 && !request->chose_ranks) return;
  lp_buf_printf(out, "%-12s%" PRId64 "%s", "ranks", request->ranks, request->chose_ranks ? " (chosen)" : "");
  if (request->ranks > 1 && over)
    lp_buf_printf(out, " over %s: %s and %s for each rank after the first, %s", over->name,
                  lp_format_ms(over->figure[LP_INTERCONNECT_ALPHA], first),
                  lp_format_ms(over->figure[LP_INTERCONNECT_STEP], next),
                  lp_format_rate(8 * over->figure[LP_INTERCONNECT_BETA], (char[32]){0}));
  lp_buf_puts(out, "\n");
  if (request->ranks < 2) return;
  const gathers prefill = sum_gathers(report, LP_STAGE_PREFILL), decode = sum_gathers(report, LP_STAGE_DECODE);
  lp_buf_printf(out, "%-12scollectives: %" PRId64 " take %s, %.3g %% of TTFT; %" PRId64 " take %s, %.3g %% of TPOT\n",
                "", prefill.count, lp_format_ms(prefill.ms, first), 100 * prefill.share, decode.count,
                lp_format_ms(decode.ms, next), 100 * decode.share);
}
