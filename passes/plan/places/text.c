/* The report of a plan over places, for people. */
#include "base/units.h"
#include "passes/plan/places/model.h"

#include <math.h>

static const lp_places *places_of(const lp_places_facts *facts) {
  return facts->problem->places;
}

static void put_places(const lp_places_facts *facts, lp_buf *out) {
  char text[32];
  for (int p = 0; p < places_of(facts)->count; p++) {
    const lp_places_member *place = &places_of(facts)->place[p];
    const lp_machine *machine = place->machine;
    lp_buf_printf(out, "%-12s%-12s%s: %s", p ? "" : "places", place->name, machine->name, machine->title);
    if (lp_places_memory(facts->problem, p) > 0)
      lp_buf_printf(out, ", %s", lp_format_bytes(lp_places_memory(facts->problem, p), text));
    if (machine->figure[LP_HW_PRICE] > 0) lp_buf_printf(out, ", %.3g USD/h", machine->figure[LP_HW_PRICE] * 3600);
    lp_buf_puts(out, p ? "\n" : ", the device\n");
  }
}

/* The gaps that the search and the prices of the limits prove. */
static void put_proof(const lp_places_facts *facts, lp_buf *out) {
  const lp_places_plan *plan = facts->plan;
  if (!plan->result.feasible) {
    lp_buf_puts(out, isinf(plan->lower_bound) ? "; no plan meets the limits\n"
                                              : "; no plan was found, and none is proved not to exist\n");
    return;
  }
  const double gap = 100 * lp_places_gap(plan, plan->lower_bound), dual = 100 * lp_places_gap(plan, plan->dual_bound);
  if (plan->complete)
    lp_buf_puts(out, ", and no plan is better");
  else
    lp_buf_printf(out, ", gap %.2g %%", gap);
  if (dual > gap + 1e-6) lp_buf_printf(out, " (by search; prices of the limits prove a gap of %.2g %%)", dual);
  lp_buf_puts(out, "\n");
}

static void put_head(const lp_places_facts *facts, lp_buf *out) {
  const lp_compile_request *request = facts->problem->request;
  char text[80];
  lp_buf_printf(out, "%-12s%s: %.4g parameters, %" PRId32 " layers, weights ", "model", facts->model.name,
                (double)facts->model.params, facts->model.layers);
  lp_buf_printf(out, "%s\n", lp_format_bytes(facts->model.weight_bytes, text));
  put_places(facts, out);
  lp_report_workload_text(request, out);
  lp_report_sla_text(request, out);
  lp_buf_printf(out, "\n%-12sover %d places, least %s: ", "plan", places_of(facts)->count,
                request->objective ? request->objective : "cost");
  if (facts->plan->result.feasible)
    lp_buf_puts(out, "feasible");
  else
    lp_buf_printf(out, "INFEASIBLE, bound by %s",
                  lp_places_limit_name(places_of(facts), facts->plan->result.binding, text));
  put_proof(facts, out);
  if (facts->plan->is_pair) lp_buf_printf(out, "%-12sit is the best pair's\n", "");
}

static void put_placement(const lp_places_facts *facts, lp_buf *out) {
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_places_range *ranges;
    const int32_t count = lp_places_ranges(facts, stage, &ranges);
    lp_buf_printf(out, "\n%s\n", lp_stage_names[stage]);
    for (int32_t i = 0; i < count; i++) {
      char name[48];
      const char *between = "";
      lp_buf_printf(out, "  %-18s", lp_places_range_name(facts, &ranges[i], name));
      for (int p = 0; p < places_of(facts)->count; p++) {
        if (!(ranges[i].at >> p & 1)) continue;
        lp_buf_printf(out, "%s%s", between, places_of(facts)->place[p].name);
        between = ", ";
      }
      lp_buf_puts(out, "\n");
    }
  }
}

static void put_each_place(const lp_places_facts *facts, lp_buf *out) {
  const lp_places_result *r = &facts->plan->result;
  lp_buf_printf(out, "\n%-14s%12s%12s%14s%16s%12s%12s\n", "place", "TTFT", "TPOT", "request", "cost", "weights",
                "memory");
  for (int p = 0; p < places_of(facts)->count; p++) {
    const double ms[] = {r->busy_ms[0][p], r->busy_ms[1][p], r->request_ms[p]};
    char text[32];
    lp_buf_printf(out, "  %-12s", places_of(facts)->place[p].name);
    for (int i = 0; i < 3; i++)
      lp_buf_printf(out, i == 2 ? "%14s" : "%12s", lp_format_ms(ms[i], text));
    lp_buf_printf(
        out, "%16s",
        lp_format_usd(1e-3 * r->request_ms[p] * places_of(facts)->place[p].machine->figure[LP_HW_PRICE], text));
    lp_buf_printf(out, "%12s", lp_format_bytes(r->weight_bytes[p], text));
    lp_buf_printf(out, "%12s\n", lp_format_bytes(r->memory_bytes[p], text));
  }
  char first[32], next[32], sum[32], cost[32];
  lp_buf_printf(out, "  %-12s%12s%12s\n", "links", lp_format_ms(r->link_ms[0] + r->kv_move_ms, first),
                lp_format_ms(r->link_ms[1], next));
  lp_buf_printf(out, "  %-12s%12s%12s%14s%16s", "total", lp_format_ms(r->ttft_ms, first),
                lp_format_ms(r->tpot_ms, next), lp_format_ms(r->e2e_ms, sum), lp_format_usd(r->cost_usd, cost));
  lp_buf_printf(out, "   %s a million tokens\n", lp_format_usd(r->cost_per_mtok_usd, cost));
}

static void put_each_link(const lp_places_facts *facts, lp_buf *out) {
  const lp_places *places = places_of(facts);
  const lp_places_result *r = &facts->plan->result;
  lp_buf_printf(out, "\n%-30s%24s%24s\n", "link", "TTFT", "TPOT");
  for (int from = 0; from < places->count; from++)
    for (int to = 0; to < places->count; to++) {
      if (!r->messages[0][from][to] && !r->messages[1][from][to] && !(r->move_bytes[from][to] > 0)) continue;
      char name[96], text[32];
      (void)snprintf(name, sizeof name, "%.40s to %.40s", places->place[from].name, places->place[to].name);
      lp_buf_printf(out, "  %-28s", name);
      for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
        char traffic[64];
        (void)snprintf(traffic, sizeof traffic, "%" PRId32 " message%s, %s", r->messages[stage][from][to],
                       r->messages[stage][from][to] == 1 ? "" : "s", lp_format_bytes(r->bytes[stage][from][to], text));
        lp_buf_printf(out, "%24s", traffic);
      }
      if (r->move_bytes[from][to] > 0)
        lp_buf_printf(out, "   and %s of KV caches after the prompt", lp_format_bytes(r->move_bytes[from][to], text));
      lp_buf_puts(out, "\n");
    }
}

static void put_row(const char *name, const lp_places *places, const lp_places_result *r, lp_buf *out) {
  char text[80];
  lp_buf_printf(out, "  %-28s%12s", name, lp_format_ms(r->ttft_ms, text));
  lp_buf_printf(out, "%12s", lp_format_ms(r->tpot_ms, text));
  lp_buf_printf(out, "%12s", lp_format_ms(r->e2e_ms, text));
  lp_buf_printf(out, "%16s", lp_format_usd(r->cost_usd, text));
  lp_buf_printf(out, "  %s\n", r->feasible ? "yes" : lp_places_limit_name(places, r->binding, text));
}

static void put_pairs(const lp_places_facts *facts, lp_buf *out) {
  const lp_places *places = places_of(facts);
  const lp_places_plan *plan = facts->plan;
  lp_buf_printf(out, "\n%-30s%12s%12s%12s%16s  %s\n", "plans", "TTFT", "TPOT", "request", "cost", "feasible");
  put_row("this one", places, &plan->result, out);
  for (int32_t i = 0; i < plan->pair_count; i++) {
    char name[96];
    (void)snprintf(name, sizeof name, "%.40s and %.40s", places->place[0].name, places->place[plan->pair[i].with].name);
    put_row(name, places, &plan->pair[i].result, out);
  }
  const lp_places_result *best = plan->best_pair >= 0 ? &plan->pair[plan->best_pair].result : NULL;
  if (best && best->feasible && plan->result.feasible && best->objective > 0)
    lp_buf_printf(out, "saves %.3g %% over the best pair\n", 100 * (1 - plan->result.objective / best->objective));
  else if (plan->result.feasible && !(best && best->feasible))
    lp_buf_puts(out, "no pair of the device and another place meets the limits\n");
}

void lp_places_line(const lp_places_facts *facts, lp_buf *out) {
  const lp_places_result *r = &facts->plan->result;
  lp_places_range *ranges;
  char text[48];
  const int32_t count = lp_places_ranges(facts, LP_STAGE_DECODE, &ranges);
  for (int32_t i = 0; i < count; i++) {
    lp_buf_printf(out, "%s%s at", i ? "; " : "", lp_places_range_name(facts, &ranges[i], text));
    for (int p = 0; p < places_of(facts)->count; p++)
      if (ranges[i].at >> p & 1) lp_buf_printf(out, " %s", places_of(facts)->place[p].name);
  }
  lp_buf_printf(out, "; TTFT %s", lp_format_ms(r->ttft_ms, text));
  lp_buf_printf(out, ", TPOT %s", lp_format_ms(r->tpot_ms, text));
}

void lp_places_text(const lp_places_facts *facts, lp_buf *out) {
  put_head(facts, out);
  put_placement(facts, out);
  put_each_place(facts, out);
  put_each_link(facts, out);
  put_pairs(facts, out);
}
