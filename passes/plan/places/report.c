/* The report of a plan over places: builds the problem of a module, plans it, and writes it in each format. */
#include "base/page/page.h"
#include "passes/plan/places/model.h"

#include <math.h>

extern const char lp_places_page_js[];

/* Builds one plan problem for each kind of machine but the device's, whose figures all of them have. */
static lp_status build_problems(lp_module *module, const lp_compile_request *request, const lp_places *places,
                                lp_arena *arena, lp_places_problem *out, lp_diag *diag) {
  *out = (lp_places_problem){.places = places, .request = request};
  for (int p = 1; p < places->count; p++) {
    if (places->place[p].member > 0) {
      out->of[p] = out->of[p - 1];
      continue;
    }
    const lp_compile_request own = lp_places_request_of(out, p);
    lp_plan_problem *problem = LP_NEW_ARRAY(arena, lp_plan_problem, LP_STAGE_COUNT);
    LP_TRY(lp_plan_build(module, &own, arena, problem, diag));
    out->of[p] = problem;
  }
  out->of[0] = out->of[1];
  return LP_OK;
}

lp_status lp_places_judge(const lp_module *module, const lp_places_solution *solution, lp_diag *diag) {
  const lp_places_result *r = &solution->plan.result;
  char name[80];
  if (r->feasible) return LP_OK;
  const char *limit = lp_places_limit_name(solution->problem.places, r->binding, name);
  if (isinf(solution->plan.lower_bound))
    return lp_error_as(LP_INFEASIBLE, diag, LP_LOC_FILE(module->name),
                       "no plan over these places meets the limits: in the nearest one %s is exceeded", limit);
  return lp_error_as(LP_INFEASIBLE, diag, LP_LOC_FILE(module->name),
                     "no plan over these places was found that meets the limits, though none is proved not to exist: "
                     "in the nearest one %s is exceeded",
                     limit);
}

lp_status lp_places_plan_module(lp_module *module, const lp_compile_request *request, lp_places_solution *out,
                                lp_diag *diag) {
  lp_arena *arena = out->arena;
  LP_TRY(build_problems(module, request, out->problem.places, arena, &out->problem, diag));
  if (request->exit_count > 0) out->problem.exit_layer = request->exits[request->exit_count - 1];
  LP_TRY(lp_plan_pin_used(&out->problem.of[0][0], request, diag));
  LP_TRY(lp_places_pin(&out->problem, arena, diag));
  return lp_places_solve(&out->problem, &(lp_places_options){.pairs = true}, arena, &out->plan, diag);
}

static void write_json(const lp_places_facts *facts, lp_buf *out) {
  lp_places_json(facts, false, out);
}

/* The data of the page is the report's JSON, and page/page.js draws it. */
static void write_html(const lp_places_facts *facts, lp_buf *out) {
  lp_buf text = {0}, data = {0}, title = {0};
  lp_places_text(facts, &text);
  lp_places_json(facts, true, &data);
  lp_buf_printf(&title, "%s: llmpart report", facts->model.name);
  lp_page_write(&(lp_page){&title, &data, &text, lp_places_page_js}, out);
}

/* The operators, one row each, for spreadsheets: as the report of two sides, with a column for each place. */
static void write_csv(const lp_places_facts *facts, lp_buf *out) {
  const lp_places *places = facts->problem->places;
  lp_buf_puts(out, "name,kind,layer,stage,place,flops,bytes,ratio");
  for (int p = 0; p < places->count; p++) {
    lp_buf_puts(out, ",");
    lp_report_csv_field(lp_arena_format(facts->arena, "%s_ms", places->place[p].name), out);
  }
  lp_buf_puts(out, "\n");
  for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
    for (int32_t i = 0; i < facts->problem->of[0][stage].op_count; i++) {
      lp_places_row row;
      if (!lp_places_row_of(facts, stage, i, &row)) continue;
      lp_report_csv_field(row.name, out);
      lp_buf_printf(out, ",%s,%" PRId64 ",%s,", row.kind, row.layer, lp_stage_names[stage]);
      lp_report_csv_field(row.place, out);
      lp_buf_printf(out, ",%.12g,%.12g,%.12g", row.flops, row.bytes, row.bytes > 0 ? row.flops / row.bytes : 0);
      for (int p = 0; p < places->count; p++)
        lp_buf_printf(out, ",%.12g", row.ms[p]);
      lp_buf_puts(out, "\n");
    }
}

lp_status lp_places_report(lp_module *module, const lp_places_solution *solution, const char *format, lp_buf *out,
                           lp_diag *diag) {
  static const struct {
    const char *name;
    void (*write)(const lp_places_facts *facts, lp_buf *out);
  } formats[] = {{"txt", lp_places_text},
                 {"json", write_json},
                 {"csv", write_csv},
                 {"html", write_html},
                 {"line", lp_places_line}};
  void (*write)(const lp_places_facts *facts, lp_buf *out) = NULL;
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_places_facts facts = {.module = module, .arena = arena, .problem = &solution->problem, .plan = &solution->plan};
  facts.model = lp_report_model_of(module, solution->problem.of[0][0].layer_count, arena);
  for (size_t i = 0; i < LP_COUNT(formats); i++)
    if (lp_streq(formats[i].name, format)) write = formats[i].write;
  if (write) write(&facts, out);
  return write ? LP_OK
               : lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "no report format '%s': txt, json, csv or html", format);
}
