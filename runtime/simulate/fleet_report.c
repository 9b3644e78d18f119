/* The results of a fleet's simulation as JSON, as rows and as a page: see fleet.h. */

#include "base/json/writer.h"
#include "base/page/page.h"
#include "runtime/simulate/fleet.h"

extern const char lp_sim_fleet_page_js[];

static const char *const keys[LP_FLEET_FIGURES][2] = {
    {"ttft_ms", "ttft_half95_ms"}, {"tpot_ms", "tpot_half95_ms"}, {"answer_ms", "answer_half95_ms"}};

static void put_class(lp_json_writer *w, const lp_sim_fleet_class *class, const lp_sim_fleet_class_result *result) {
  lp_json_put_object(w, NULL);
  lp_json_put_text(w, "name", class->name);
  if (class->pool < 0)
    lp_json_put_null(w, "pool");
  else
    lp_json_put_integer(w, "pool", class->pool);
  lp_json_put_integer(w, "requests", result->requests);
  for (int i = 0; i < LP_FLEET_FIGURES * 2; i++) {
    lp_json_put_flat_object(w, keys[i / 2][i % 2]);
    for (int k = 0; k < LP_FLEET_QUANTILES; k++) {
      const lp_sim_estimate *time_s = &result->time_s[i / 2][k];
      lp_json_put_number(w, lp_fleet_quantile_names[k], 1e3 * (i % 2 ? time_s->half : time_s->mean));
    }
    lp_json_put_end(w);
  }
  lp_json_put_bool(w, "keeps_limits", result->keeps);
  lp_json_put_number(w, "device_busy_kwh_per_month", result->busy_kwh);
  lp_json_put_end(w);
}

static void put_pool(lp_json_writer *w, const lp_sim_fleet_pool *pool, const lp_sim_fleet_pool_result *result) {
  lp_json_put_object(w, NULL);
  lp_json_put_text(w, "machine", pool->machine);
  lp_json_put_number(w, "machines", result->machines);
  lp_json_put_number(w, "busy", result->busy);
  lp_json_put_number(w, "usd_per_month", result->usd);
  lp_json_put_number(w, "busy_kwh_per_month", result->busy_kwh);
  lp_json_put_number(w, "idle_kwh_per_month", result->idle_kwh);
  lp_json_put_number(w, "failures_per_month", result->failures);
  lp_json_put_end(w);
}

static double usd_of(const lp_sim_fleet *fleet, const lp_sim_fleet_point *point) {
  double usd = 0;
  for (int32_t i = 0; i < fleet->pools; i++)
    usd += point->pool[i].usd;
  return usd;
}

static bool keeps(const lp_sim_fleet *fleet, const lp_sim_fleet_point *point) {
  bool all = true;
  for (int32_t i = 0; i < fleet->classes; i++)
    all = all && point->class[i].keeps;
  return all;
}

void lp_sim_fleet_print_json(const lp_sim_fleet *fleet, const lp_sim_fleet_point *point, lp_buf *out) {
  lp_json_writer w = lp_json_document_begin(out, (lp_json_style){.indent = 2, .digits = 9, .marks_reals = true},
                                            "llmpart.simulate-fleet/1");
  lp_json_put_text(&w, "fleet", fleet->path);
  lp_json_put_integer(&w, "seed", fleet->seed);
  lp_json_put_integer(&w, "runs", fleet->runs);
  lp_json_put_integer(&w, "requests", fleet->requests);
  lp_json_put_text(&w, "varied", fleet->varied);
  lp_json_put_array(&w, "points");
  for (int32_t p = 0; p < fleet->values; p++) {
    lp_json_put_object(&w, NULL);
    lp_json_put_number(&w, "value", point[p].value);
    lp_json_put_bool(&w, "keeps_limits", keeps(fleet, &point[p]));
    lp_json_put_number(&w, "usd_per_month", usd_of(fleet, &point[p]));
    lp_json_put_array(&w, "classes");
    for (int32_t i = 0; i < fleet->classes; i++)
      put_class(&w, &fleet->class[i], &point[p].class[i]);
    lp_json_put_end(&w);
    lp_json_put_array(&w, "pools");
    for (int32_t i = 0; i < fleet->pools; i++)
      put_pool(&w, &fleet->pool[i], &point[p].pool[i]);
    lp_json_put_end(&w);
    lp_json_put_end(&w);
  }
  lp_json_put_end(&w);
  lp_json_document_end(&w);
}

/* A row per class, with its pool. A comma would end a name. */
void lp_sim_fleet_print_csv(const lp_sim_fleet *fleet, const lp_sim_fleet_point *point, lp_buf *out) {
  lp_buf_printf(out, "%s%sclass,keeps_limits,requests", fleet->varied ? fleet->varied : "", fleet->varied ? "," : "");
  for (int i = 0; i < LP_FLEET_FIGURES * LP_FLEET_QUANTILES; i++)
    lp_buf_printf(out, ",%s_%s_ms", lp_fleet_figure_names[i / LP_FLEET_QUANTILES],
                  lp_fleet_quantile_names[i % LP_FLEET_QUANTILES]);
  lp_buf_puts(out, ",pool,machines,busy,usd_per_month\n");
  for (int32_t p = 0; p < fleet->values; p++)
    for (int32_t c = 0; c < fleet->classes; c++) {
      const lp_sim_fleet_class_result *class = &point[p].class[c];
      if (fleet->varied) lp_buf_printf(out, "%.9g,", point[p].value);
      for (const char *name = fleet->class[c].name; *name; name++)
        lp_buf_printf(out, "%c", *name == ',' || *name == '\n' ? ';' : *name);
      lp_buf_printf(out, ",%d,%" PRId64, class->keeps, class->requests);
      for (int i = 0; i < LP_FLEET_FIGURES * LP_FLEET_QUANTILES; i++)
        lp_buf_printf(out, ",%.9g", 1e3 * class->time_s[i / LP_FLEET_QUANTILES][i % LP_FLEET_QUANTILES].mean);
      if (fleet->class[c].pool < 0) {
        lp_buf_puts(out, ",,,,\n");
        continue;
      }
      const lp_sim_fleet_pool_result *pool = &point[p].pool[fleet->class[c].pool];
      lp_buf_printf(out, ",%" PRId32 ",%.9g,%.9g,%.9g\n", fleet->class[c].pool, pool->machines, pool->busy, pool->usd);
    }
}

void lp_sim_fleet_print_html(const lp_sim_fleet *fleet, const lp_sim_fleet_point *point, lp_buf *out) {
  lp_buf data = {0}, title = {0}, text = {0};
  lp_sim_fleet_print_json(fleet, point, &data);
  lp_sim_fleet_print_csv(fleet, point, &text);
  lp_buf_printf(&title, "%s: llmpart simulate", fleet->path);
  lp_page_write(&(lp_page){&title, &data, &text, lp_sim_fleet_page_js}, out);
}
