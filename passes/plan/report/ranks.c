/* What the report says of the ranks of a sharded half. */
#include "base/units.h"
#include "passes/plan/objective.h"
#include "passes/plan/report/report.h"
#include "passes/shard/view.h"

/* ---- what stays whole -------------------------------------------------------------------------------------------- */

/* Tells whether a rank computes all of a product or an attention; `part` is what it computes. */
static bool is_whole(const lp_op *op, const lp_op *part) {
  if (lp_op_is_weighted(op)) return lp_shard_parts(part, 1) == 1;
  return op->kind == LP_OP_ATTENTION && lp_op_i64(part, "heads", 0) == lp_op_i64(op, "heads", 0);
}

static void add_to_group(lp_report_whole *whole, const lp_op *op) {
  const lp_type type = op->out[0]->type;
  lp_report_whole_group own = {.first = op, .count = 1, .heads = lp_op_i64(op, "heads", 0)};
  if (op->kind == LP_OP_ATTENTION)
    own.size = lp_op_i64(op, "kv_heads", own.heads);
  else if (type.rank < 1 || !lp_type_static_dim(type, type.rank - 1, &own.size))
    own.size = 0;
  LP_FOR_EACH(lp_report_whole_group, group, whole->group, whole->group_count) {
    if (group->first->kind != op->kind || group->heads != own.heads || group->size != own.size) continue;
    group->count++;
    return;
  }
  if (whole->group_count < (int32_t)LP_COUNT(whole->group)) whole->group[whole->group_count++] = own;
}

/* Finds what `ranks` ranks leave whole of the cloud's products and attentions. */
static lp_report_whole find_whole(const lp_report *report, int64_t ranks) {
  lp_block *blocks[LP_STAGE_COUNT];
  lp_report_whole whole = {.share = 1};
  lp_shard_view *view = NULL;
  double all = 0, kept = 0;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    blocks[stage] = lp_plan_stage_block(report->module, (lp_stage)stage);
  if (lp_shard_view_make(report->module, blocks, LP_STAGE_COUNT, ranks, &view, NULL) != LP_OK) return whole;
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    const lp_plan_problem *problem = &report->problem[stage];
    const double steps = lp_plan_steps(report->request, (lp_stage)stage);
    for (int32_t i = 0; i < problem->op_count; i++) {
      const lp_op *op = problem->ops[i].op;
      if (problem->ops[i].free || report->side[stage][i] != LP_SIDE_CLOUD) continue;
      if (!lp_op_is_weighted(op) && op->kind != LP_OP_ATTENTION) continue;
      all += steps * problem->ops[i].flops[LP_SIDE_DEVICE];
      if (!is_whole(op, view->stage[stage].part[i])) continue;
      kept += steps * problem->ops[i].flops[LP_SIDE_DEVICE];
      if (stage == LP_STAGE_PREFILL) add_to_group(&whole, op);
    }
  }
  lp_shard_view_free(view);
  whole.share = all > 0 ? kept / all : 0;
  return whole;
}

static void put_group(const lp_report_whole_group *group, lp_buf *out) {
  const char *plural = group->count > 1 ? "s" : "";
  if (group->heads > 0)
    lp_buf_printf(out, "%" PRId32 " attention%s of %" PRId64 " heads and %" PRId64 " KV heads", group->count, plural,
                  group->heads, group->size);
  else
    lp_buf_printf(out, "%" PRId32 " product%s of %" PRId64 " columns", group->count, plural, group->size);
}

/* "2, 4 ranks divide everything" */
static void put_better(const lp_report_whole *whole, lp_buf *out) {
  for (int32_t i = 0; i < whole->better_count; i++)
    lp_buf_printf(out, "%s%" PRId64, i ? ", " : "", whole->better[i]);
  if (whole->better_share > 0)
    lp_buf_printf(out, " ranks leave only %.3g %% whole", 100 * whole->better_share);
  else
    lp_buf_puts(out, " ranks divide everything");
}

void lp_report_find_whole(lp_report *report, lp_diag *diag) {
  if (report->request->ranks < 2) return;
  lp_report_whole *whole = &report->whole;
  *whole = find_whole(report, report->request->ranks);
  if (whole->share == 0) return;
  whole->better_share = whole->share;
  for (int64_t n = 2; n <= LP_MOST_RANKS; n++) {
    const double share = find_whole(report, n).share;
    if (share < whole->better_share) whole->better_count = 0;
    if (share < whole->better_share) whole->better_share = share;
    if (share == whole->better_share && share < whole->share) whole->better[whole->better_count++] = n;
  }
  if (whole->better_count == 0) return;
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  put_better(whole, &text);
  lp_warning(diag, LP_LOC_FILE("--ranks"),
             "%" PRId64 " ranks do not divide %.3g %% of the cloud's products and attentions, which each of them "
             "computes whole; %s",
             report->request->ranks, 100 * whole->share, lp_buf_text(&text));
  for (int32_t i = 0; i < whole->group_count; i++) {
    lp_buf_clear(&text);
    put_group(&whole->group[i], &text);
    lp_note(diag, whole->group[i].first->loc, "whole: %s, from '%s' on", lp_buf_text(&text),
            lp_op_str(whole->group[i].first, "name", ""));
  }
}

static void put_whole_json(const lp_report_whole *whole, lp_json_writer *j) {
  if (whole->share == 0) return;
  lp_json_put_object(j, "whole");
  lp_json_put_number(j, "share", whole->share);
  lp_json_put_array(j, "operators");
  LP_FOR_EACH(const lp_report_whole_group, group, whole->group, whole->group_count) {
    lp_json_put_flat_object(j, NULL);
    lp_json_put_text(j, "first", lp_op_str(group->first, "name", ""));
    lp_json_put_text(j, "kind", lp_op_info_get(group->first->kind)->name);
    lp_json_put_integer(j, "count", group->count);
    if (group->heads > 0) lp_json_put_integer(j, "heads", group->heads);
    lp_json_put_integer(j, group->heads > 0 ? "kv_heads" : "columns", group->size);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
  lp_json_put_array(j, "better_ranks");
  for (int32_t i = 0; i < whole->better_count; i++)
    lp_json_put_integer(j, NULL, whole->better[i]);
  lp_json_put_end(j);
  lp_json_put_number(j, "better_share", whole->better_share);
  lp_json_put_end(j);
}

static void put_whole_text(const lp_report_whole *whole, lp_buf *out) {
  if (whole->share == 0) return;
  lp_buf_printf(out, "%-12swhole: ", "");
  for (int32_t i = 0; i < whole->group_count; i++) {
    if (i) lp_buf_puts(out, ", ");
    put_group(&whole->group[i], out);
  }
  lp_buf_printf(out, ", %.3g %% of their arithmetic", 100 * whole->share);
  if (whole->better_count > 0) lp_buf_puts(out, "; ");
  if (whole->better_count > 0) put_better(whole, out);
  lp_buf_puts(out, "\n");
}

/* ---- gathers ----------------------------------------------------------------------------------------------------- */

/* The gathers of a stage. */
typedef struct {
  int64_t count;
  double bytes, ms, share; /* share: of TTFT or TPOT */
} gathers;

static gathers sum_gathers(const lp_report *report, lp_stage stage) {
  const double total = stage == LP_STAGE_PREFILL ? report->plan.ttft_ms : report->plan.tpot_ms;
  gathers sum = {0};
  LP_FOR_EACH(const lp_report_operator, item, report->operators, report->operator_count) {
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
  put_whole_json(&report->whole, j);
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
  put_whole_text(&report->whole, out);
}
