/* The report of a plan over places as JSON, schema llmpart.places/1, with the certificate: the parts, the prices and
 * the plan, from which others can compute the figures and the bound anew. Arrays of numbers are by place. */
#include "base/json/writer.h"
#include "passes/plan/places/model.h"

#include <math.h>

/* A limit, or null where there is none. */
static void put_limit(lp_json_writer *j, const char *name, double limit) {
  lp_json_put_number(j, name, limit > 0 ? limit : NAN);
}

/* ---- the request ------------------------------------------------------------------------------------------------- */

static void put_places(lp_json_writer *j, const lp_places_facts *facts) {
  const lp_places *places = facts->problem->places;
  const lp_compile_request *request = facts->problem->request;
  lp_json_put_array(j, "places");
  for (int p = 0; p < places->count; p++) {
    const lp_machine *machine = places->place[p].machine;
    const char *dtype = p ? lp_places_request_of(facts->problem, p).dtype_cloud : request->dtype_device;
    lp_json_put_flat_object(j, NULL);
    lp_json_put_text(j, "name", places->place[p].name);
    lp_json_put_text(j, "machine", machine->name);
    lp_json_put_text(j, "title", machine->title);
    lp_json_put_integer(j, "kind", places->place[p].kind);
    put_limit(j, "memory_limit_bytes", lp_places_memory(facts->problem, p));
    lp_json_put_number(j, "price_usd_per_s", machine->figure[LP_HW_PRICE]);
    lp_json_put_number(j, "power_w", machine->figure[LP_HW_POWER]);
    lp_json_put_text(j, "weight_dtype", dtype ? dtype : "model");
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

static void put_links(lp_json_writer *j, const lp_places_facts *facts) {
  const lp_places *places = facts->problem->places;
  const lp_places_model *m = facts->plan->model;
  lp_json_put_array(j, "links");
  for (int from = 0; from < places->count; from++)
    for (int to = 0; to < places->count; to++) {
      if (from == to) continue;
      lp_json_put_flat_object(j, NULL);
      lp_json_put_text(j, "from", places->place[from].name);
      lp_json_put_text(j, "to", places->place[to].name);
      lp_json_put_text(j, "link", places->link[from][to]->name);
      lp_json_put_number(j, "message_ms", m->message_ms[from][to]);
      lp_json_put_number(j, "ms_per_byte", m->ms_per_byte[from][to]);
      lp_json_put_end(j);
    }
  lp_json_put_end(j);
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

static void put_figures(lp_json_writer *j, const lp_places *places, const lp_places_result *r) {
  char text[80];
  lp_json_put_bool(j, "feasible", r->feasible);
  lp_json_put_text(j, "binding", lp_places_limit_name(places, r->binding, text));
  lp_json_put_number(j, "ttft_ms", r->ttft_ms);
  lp_json_put_number(j, "tpot_ms", r->tpot_ms);
  lp_json_put_number(j, "e2e_ms", r->e2e_ms);
  lp_json_put_number(j, "cost_usd", r->cost_usd);
  lp_json_put_number(j, "cost_per_mtok_usd", r->cost_per_mtok_usd);
  lp_json_put_number(j, "energy_j", r->energy_j);
  lp_json_put_number(j, "objective", r->objective);
}

static void put_each_place(lp_json_writer *j, const lp_places_facts *facts) {
  const lp_places *places = facts->problem->places;
  const lp_places_result *r = &facts->plan->result;
  lp_json_put_array(j, "places");
  for (int p = 0; p < places->count; p++) {
    lp_json_put_flat_object(j, NULL);
    lp_json_put_text(j, "name", places->place[p].name);
    lp_json_put_number(j, "prefill_ms", r->busy_ms[LP_STAGE_PREFILL][p]);
    lp_json_put_number(j, "decode_ms", r->busy_ms[LP_STAGE_DECODE][p]);
    lp_json_put_number(j, "request_ms", r->request_ms[p]);
    lp_json_put_number(j, "cost_usd", 1e-3 * r->request_ms[p] * places->place[p].machine->figure[LP_HW_PRICE]);
    lp_json_put_number(j, "weight_bytes", r->weight_bytes[p]);
    lp_json_put_number(j, "memory_bytes", r->memory_bytes[p]);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

static void put_each_link(lp_json_writer *j, const lp_places_facts *facts) {
  const lp_places *places = facts->problem->places;
  const lp_places_result *r = &facts->plan->result;
  lp_json_put_array(j, "links");
  for (int from = 0; from < places->count; from++)
    for (int to = 0; to < places->count; to++) {
      if (!r->messages[0][from][to] && !r->messages[1][from][to] && !(r->move_bytes[from][to] > 0)) continue;
      lp_json_put_flat_object(j, NULL);
      lp_json_put_text(j, "from", places->place[from].name);
      lp_json_put_text(j, "to", places->place[to].name);
      lp_json_put_integer(j, "messages_prefill", r->messages[LP_STAGE_PREFILL][from][to]);
      lp_json_put_integer(j, "messages_decode", r->messages[LP_STAGE_DECODE][from][to]);
      lp_json_put_number(j, "bytes_prefill", r->bytes[LP_STAGE_PREFILL][from][to]);
      lp_json_put_number(j, "bytes_decode", r->bytes[LP_STAGE_DECODE][from][to]);
      lp_json_put_number(j, "kv_move_bytes", r->move_bytes[from][to]);
      lp_json_put_end(j);
    }
  lp_json_put_end(j);
}

static void put_ranges(lp_json_writer *j, const lp_places_facts *facts) {
  lp_json_put_object(j, "layers");
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_places_range *ranges;
    const int32_t count = lp_places_ranges(facts, stage, &ranges);
    lp_json_put_array(j, lp_stage_names[stage]);
    for (int32_t i = 0; i < count; i++) {
      char name[48];
      lp_json_put_flat_object(j, NULL);
      lp_json_put_text(j, "layers", lp_places_range_name(facts, &ranges[i], name));
      lp_json_put_flat_array(j, "places");
      for (int p = 0; p < facts->problem->places->count; p++)
        if (ranges[i].at >> p & 1) lp_json_put_text(j, NULL, facts->problem->places->place[p].name);
      lp_json_put_end(j);
      lp_json_put_end(j);
    }
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

/* The method that proved the lower bound, or that no plan meets the limits; NULL: nothing is proved. */
static const char *proof_name(const lp_places_plan *plan) {
  if (!plan->result.feasible && !isinf(plan->lower_bound)) return NULL;
  if (!plan->result.feasible) return isinf(plan->dual_bound) ? "infeasible by prices" : "infeasible by search";
  if (plan->complete) return "complete search";
  return plan->lower_bound > plan->dual_bound ? "search" : "prices of the limits";
}

static void put_plan(lp_json_writer *j, const lp_places_facts *facts) {
  const lp_places_plan *plan = facts->plan;
  const lp_places_result *r = &plan->result;
  lp_json_put_object(j, "plan");
  put_figures(j, facts->problem->places, r);
  lp_json_put_number(j, "prefill_link_ms", r->link_ms[LP_STAGE_PREFILL]);
  lp_json_put_number(j, "decode_link_ms", r->link_ms[LP_STAGE_DECODE]);
  lp_json_put_number(j, "kv_move_ms", r->kv_move_ms);
  lp_json_put_bool(j, "is_best_pair", plan->is_pair);
  lp_json_put_number(j, "lower_bound", plan->lower_bound);
  lp_json_put_number(j, "gap", lp_places_gap(plan, plan->lower_bound));
  lp_json_put_number(j, "proved_lower_bound", plan->dual_bound);
  lp_json_put_number(j, "proved_gap", lp_places_gap(plan, plan->dual_bound));
  lp_json_put_text(j, "proof", proof_name(plan));
  put_each_place(j, facts);
  put_each_link(j, facts);
  put_ranges(j, facts);
  lp_json_put_end(j);
}

static void put_pairs(lp_json_writer *j, const lp_places_facts *facts) {
  const lp_places_plan *plan = facts->plan;
  const lp_places *places = facts->problem->places;
  lp_json_put_array(j, "pairs");
  for (int32_t i = 0; i < plan->pair_count; i++) {
    lp_json_put_flat_object(j, NULL);
    lp_json_put_text(j, "with", places->place[plan->pair[i].with].name);
    lp_json_put_bool(j, "planned_exactly", plan->pair[i].is_exact);
    put_figures(j, places, &plan->pair[i].result);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

/* The operators that the plan places, in order: those that depend on positions only run wherever they are needed. */
static void put_placed(lp_json_writer *j, const lp_places_facts *facts) {
  lp_json_put_array(j, "operators");
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < facts->problem->of[0][stage].op_count; i++) {
      lp_places_row row;
      if (!lp_places_row_of(facts, stage, i, &row)) continue;
      lp_json_put_flat_object(j, NULL);
      lp_json_put_text(j, "name", row.name);
      lp_json_put_text(j, "kind", row.kind);
      lp_json_put_integer(j, "layer", row.layer);
      lp_json_put_text(j, "stage", lp_stage_names[stage]);
      lp_json_put_text(j, "place", row.place);
      lp_json_put_number(j, "flops", row.flops);
      lp_json_put_number(j, "bytes", row.bytes);
      lp_json_put_numbers(j, "ms", row.ms, (size_t)facts->problem->places->count);
      lp_json_put_end(j);
    }
  lp_json_put_end(j);
}

/* ---- the certificate --------------------------------------------------------------------------------------------- */

static bool are_equal(const double *a, const double *b, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (a[i] != b[i]) return false;
  return true;
}

static bool are_pinned_alike(const lp_places_model *m, const lp_places_part *a, const lp_places_part *b, int stage) {
  for (int32_t i = 0; i < a->end_op - a->first_op; i++)
    if (lp_places_allowed(m->problem, stage, a->first_op + i) != lp_places_allowed(m->problem, stage, b->first_op + i))
      return false;
  return true;
}

static bool is_same_stage(const lp_places_model *m, const lp_places_part *a, const lp_places_part *b, int stage) {
  const size_t count = (size_t)(a->end_op - a->first_op) * LP_PLACES_MAX;
  const size_t at = (size_t)a->first_op * LP_PLACES_MAX, to = (size_t)b->first_op * LP_PLACES_MAX;
  return a->hop_bytes[stage] == b->hop_bytes[stage] && a->inner_ms[stage] == b->inner_ms[stage] &&
         a->divides[stage] == b->divides[stage] && are_pinned_alike(m, a, b, stage) &&
         are_equal(a->ms[stage], b->ms[stage], LP_PLACES_MAX) &&
         are_equal(a->activation[stage], b->activation[stage], LP_PLACES_MAX) &&
         are_equal(&m->op_ms[stage][at], &m->op_ms[stage][to], count) &&
         are_equal(&m->op_bytes[stage][at], &m->op_bytes[stage][to], count);
}

/* Tells whether two parts differ only in what they share with others. */
static bool is_same_shape(const lp_places_model *m, const lp_places_part *a, const lp_places_part *b) {
  const size_t ops = (size_t)(a->end_op - a->first_op);
  if (a->end_op - a->first_op != b->end_op - b->first_op || a->move_bytes != b->move_bytes) return false;
  for (int use = 0; use < LP_PLACES_USES; use++)
    if (!are_equal(a->weight_bytes[use], b->weight_bytes[use], LP_PLACES_MAX)) return false;
  return is_same_stage(m, a, b, 0) && is_same_stage(m, a, b, 1) &&
         are_equal(a->cache_bytes, b->cache_bytes, LP_PLACES_MAX) &&
         are_equal(&m->op_both[(size_t)a->first_op * LP_PLACES_MAX], &m->op_both[(size_t)b->first_op * LP_PLACES_MAX],
                   ops * LP_PLACES_MAX) &&
         are_equal(&m->op_moves[a->first_op], &m->op_moves[b->first_op], ops);
}

/* The operators of a part that need anything anywhere, each with its times and bytes. */
static void put_operators(lp_json_writer *j, const lp_places_model *m, const lp_places_part *part) {
  lp_json_put_array(j, "operators");
  for (int32_t op = part->first_op; op < part->end_op; op++) {
    const int32_t at = op * LP_PLACES_MAX;
    double any = 0;
    for (int p = at; p < at + m->count; p++)
      any += m->op_ms[0][p] + m->op_ms[1][p] + m->op_bytes[0][p] + m->op_bytes[1][p] + m->op_both[p];
    if (!(any > 0)) continue;
    lp_json_put_flat_object(j, NULL);
    lp_json_put_numbers(j, "prefill_ms", &m->op_ms[0][at], (size_t)m->count);
    lp_json_put_numbers(j, "decode_ms", &m->op_ms[1][at], (size_t)m->count);
    lp_json_put_numbers(j, "prefill_bytes", &m->op_bytes[0][at], (size_t)m->count);
    lp_json_put_numbers(j, "decode_bytes", &m->op_bytes[1][at], (size_t)m->count);
    lp_json_put_numbers(j, "bytes", &m->op_both[at], (size_t)m->count);
    lp_json_put_number(j, "move_bytes", m->op_moves[op]);
    lp_json_put_flat_array(j, "allowed");
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      lp_json_put_integer(j, NULL, lp_places_allowed(m->problem, stage, op));
    lp_json_put_end(j);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

static void put_shape(lp_json_writer *j, const lp_places_model *m, const lp_places_part *part) {
  lp_json_put_object(j, NULL);
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
    lp_json_put_object(j, lp_stage_names[stage]);
    lp_json_put_numbers(j, "ms", part->ms[stage], (size_t)m->count);
    lp_json_put_number(j, "read_bytes", part->hop_bytes[stage]);
    lp_json_put_numbers(j, "weight_bytes", part->weight_bytes[stage], (size_t)m->count);
    lp_json_put_numbers(j, "activation_bytes", part->activation[stage], (size_t)m->count);
    lp_json_put_integer(j, "allowed", part->allowed[stage]);
    lp_json_put_bool(j, "divides", part->divides[stage]);
    lp_json_put_number(j, "inner_ms", part->inner_ms[stage]);
    lp_json_put_end(j);
  }
  lp_json_put_numbers(j, "weight_bytes", part->weight_bytes[LP_PLACES_BOTH], (size_t)m->count);
  lp_json_put_numbers(j, "cache_bytes", part->cache_bytes, (size_t)m->count);
  lp_json_put_number(j, "move_bytes", part->move_bytes);
  put_operators(j, m, part);
  lp_json_put_end(j);
}

/* The place of a part in the plan; -1: it is divided. */
static int place_of(const lp_places_facts *facts, const lp_places_part *part, int stage) {
  int found = -2;
  for (int32_t op = part->first_op; op < part->end_op; op++) {
    if (facts->problem->of[0][stage].ops[op].free) continue;
    const int own = facts->plan->place[stage][op];
    if (found >= 0 && found != own) return -1;
    found = own;
  }
  return found < 0 ? 0 : found;
}

static void put_shared(lp_json_writer *j, const char *name, uint8_t shared) {
  lp_json_put_flat_array(j, name);
  for (int h = 0; h < LP_PLACES_SHARED; h++)
    if (shared >> h & 1) lp_json_put_integer(j, NULL, h);
  lp_json_put_end(j);
}

static void put_parts(lp_json_writer *j, const lp_places_facts *facts) {
  const lp_places_model *m = facts->plan->model;
  int32_t *shape = LP_NEW_ARRAY(facts->arena, int32_t, m->part_count);
  int32_t *first = LP_NEW_ARRAY(facts->arena, int32_t, m->part_count), count = 0;
  for (int32_t i = 0; i < m->part_count; i++) {
    for (shape[i] = 0; shape[i] < count; shape[i]++)
      if (is_same_shape(m, &m->part[first[shape[i]]], &m->part[i])) break;
    if (shape[i] == count) first[count++] = i;
  }
  lp_json_put_array(j, "shapes");
  for (int32_t i = 0; i < count; i++)
    put_shape(j, m, &m->part[first[i]]);
  lp_json_put_end(j);
  lp_json_put_array(j, "parts");
  for (int32_t i = 0; i < m->part_count; i++) {
    lp_json_put_flat_object(j, NULL);
    lp_json_put_integer(j, "shape", shape[i]);
    lp_json_put_integer(j, "layer", facts->problem->of[0][0].ops[m->part[i].first_op].layer);
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      lp_json_put_integer(j, lp_stage_names[stage], place_of(facts, &m->part[i], stage));
    put_shared(j, "prefill_shared", m->part[i].shared[0]);
    put_shared(j, "decode_shared", m->part[i].shared[1]);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

static void put_holdings(lp_json_writer *j, const lp_places_model *m) {
  lp_json_put_array(j, "shared");
  for (int32_t h = 0; h < m->holding_count; h++) {
    lp_json_put_flat_object(j, NULL);
    lp_json_put_numbers(j, "bytes", m->holding[h].bytes, (size_t)m->count);
    lp_json_put_numbers(j, "prefill_ms", m->holding[h].ms[0], (size_t)m->count);
    lp_json_put_numbers(j, "decode_ms", m->holding[h].ms[1], (size_t)m->count);
    lp_json_put_end(j);
  }
  lp_json_put_end(j);
}

static void put_certificate(lp_json_writer *j, const lp_places_facts *facts) {
  const lp_places_model *m = facts->plan->model;
  lp_json_put_object(j, "certificate");
  lp_json_put_object(j, "objective");
  lp_json_put_numbers(j, "prefill_per_ms", m->busy[0], (size_t)m->count);
  lp_json_put_numbers(j, "decode_per_ms", m->busy[1], (size_t)m->count);
  lp_json_put_numbers(j, "link_per_ms", m->link, LP_STAGE_COUNT);
  lp_json_put_number(j, "move_per_ms", m->move);
  lp_json_put_end(j);
  lp_json_put_object(j, "limits");
  lp_json_put_numbers(j, "ms", m->limit_ms, LP_STAGE_COUNT);
  lp_json_put_numbers(j, "bytes", m->limit_bytes, (size_t)m->count);
  lp_json_put_end(j);
  lp_json_put_object(j, "prices");
  lp_json_put_numbers(j, "per_ms", facts->plan->duals.per_ms, LP_STAGE_COUNT);
  lp_json_put_numbers(j, "per_byte", facts->plan->duals.per_byte, (size_t)m->count);
  lp_json_put_end(j);
  lp_json_put_numbers(j, "result_bytes", m->result_bytes, LP_STAGE_COUNT);
  lp_json_put_flat_array(j, "has_input");
  lp_json_put_bool(j, NULL, m->has_input[0]);
  lp_json_put_bool(j, NULL, m->has_input[1]);
  lp_json_put_end(j);
  lp_json_put_flat_array(j, "has_result");
  lp_json_put_bool(j, NULL, m->has_result[0]);
  lp_json_put_bool(j, NULL, m->has_result[1]);
  lp_json_put_end(j);
  put_holdings(j, m);
  put_parts(j, facts);
  lp_json_put_number(j, "value", facts->plan->result.objective);
  lp_json_put_number(j, "bound", facts->plan->dual_bound);
  lp_json_put_end(j);
}

void lp_places_json(const lp_places_facts *facts, bool is_data, lp_buf *out) {
  const lp_compile_request *request = facts->problem->request;
  const lp_json_style style =
      is_data ? (lp_json_style){.digits = 6, .has_no_space = true} : (lp_json_style){.indent = 2};
  lp_json_writer json = lp_json_document_begin(out, style, "llmpart.places/1"), *j = &json;
  lp_report_model_json(&facts->model, j);
  put_places(j, facts);
  put_links(j, facts);
  lp_report_request(request, j);
  lp_json_put_text(j, "objective", request->objective ? request->objective : "cost");
  put_plan(j, facts);
  put_pairs(j, facts);
  put_placed(j, facts);
  if (!is_data) put_certificate(j, facts);
  lp_json_document_end(j);
}
