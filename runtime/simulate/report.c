/* Results as JSON and as rows. */
#include "base/json/writer.h"
#include "runtime/simulate/statistics.h"

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_estimate(lp_json_writer *w, const char *key, const char *half_key, lp_sim_estimate estimate) {
  lp_json_put_number(w, key, estimate.mean);
  lp_json_put_number(w, half_key, estimate.half);
}

/* The means of the twentieths of a run, in order; `request` is the last request of each. */
static void put_learning(lp_json_writer *w, const lp_sim_scenario *s, const lp_sim_point *p) {
  lp_json_put_array(w, "learning");
  for (int32_t i = 0; i < LP_SIM_PARTS; i++) {
    lp_json_put_object(w, NULL);
    lp_json_put_integer(w, "request", lp_sim_part_end(s, i));
    put_estimate(w, "reward", "reward_half95", p->part[i].reward);
    put_estimate(w, "regret", "regret_half95", p->part[i].regret);
    put_estimate(w, "quality", "quality_half95", p->part[i].quality);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

static void put_sites(lp_json_writer *w, const lp_sim_scenario *s, const lp_sim_point *p) {
  for (int site = 0; site < LP_SITE_COUNT; site++) {
    if ((s->there >> site & 1u) == 0) continue;
    lp_json_put_object(w, lp_site_names[site]);
    lp_json_put_number(w, "share", p->share[site]);
    lp_json_put_number(w, "utilisation", p->utilisation[site]);
    lp_json_put_number(w, "queue_length", p->queue_length[site]);
    put_estimate(w, "delay_s", "delay_half95_s", p->site_delay_s[site]);
    lp_json_put_number(w, "delay_p95_s", p->site_p95_s[site]);
    lp_json_put_end(w);
  }
}

static void put_tasks(lp_json_writer *w, const lp_sim_scenario *s, const lp_sim_point *p) {
  lp_json_put_object(w, "tasks");
  for (int32_t t = 0; t < s->tasks; t++) {
    lp_json_put_object(w, s->task[t].name);
    put_estimate(w, "delay_s", "delay_half95_s", p->task_delay_s[t]);
    lp_json_put_end(w);
  }
  lp_json_put_end(w);
}

static void put_point(lp_json_writer *w, const lp_sim_scenario *s, const lp_sim_point *p) {
  lp_json_put_object(w, NULL);
  lp_json_put_text(w, "service", p->service);
  lp_json_put_text(w, "policy", p->policy);
  if (s->axis != LP_SIM_NOTHING) lp_json_put_number(w, lp_sim_axis_names[s->axis], p->value);
  lp_json_put_integer(w, "requests", p->requests);
  lp_json_put_integer(w, "rejected", p->rejected);
  lp_json_put_integer(w, "overflowed", p->overflowed);
  put_estimate(w, "delay_s", "delay_half95_s", p->delay_s);
  put_estimate(w, "reward", "reward_half95", p->reward);
  put_estimate(w, "quality", "quality_half95", p->quality);
  put_estimate(w, "regret", "regret_half95", p->regret);
  put_estimate(w, "wait_s", "wait_half95_s", p->wait_s);
  put_estimate(w, "generation_s", "generation_half95_s", p->generation_s);
  put_estimate(w, "link_s", "link_half95_s", p->link_s);
  put_estimate(w, "ttft_s", "ttft_half95_s", p->ttft_s);
  lp_json_put_number(w, "delay_p50_s", p->p50_s);
  lp_json_put_number(w, "delay_p90_s", p->p90_s);
  lp_json_put_number(w, "delay_p95_s", p->p95_s);
  lp_json_put_number(w, "delay_p99_s", p->p99_s);
  put_sites(w, s, p);
  put_tasks(w, s, p);
  put_learning(w, s, p);
  lp_json_put_end(w);
}

void lp_sim_print_json(const lp_sim_result *result, lp_buf *out) {
  const lp_sim_scenario *s = result->scenario;
  lp_json_writer w =
      lp_json_document_begin(out, (lp_json_style){.indent = 2, .digits = 9, .marks_reals = true}, "llmpart.simulate/1");
  lp_json_put_text(&w, "name", s->name);
  lp_json_put_text(&w, "title", s->title);
  lp_json_put_text(&w, "service", s->service->name);
  lp_json_put_text(&w, "counting", lp_counting_names[s->counting]);
  lp_json_put_integer(&w, "seed", s->seed);
  lp_json_put_integer(&w, "runs", s->runs);
  lp_json_put_integer(&w, "requests", s->requests);
  lp_json_put_integer(&w, "warm_up", s->warm_up);
  lp_json_put_number(&w, "target_s", s->target_s);
  lp_json_put_number(&w, "penalty", s->penalty);
  lp_json_put_number(&w, "backhaul_s", s->backhaul_s);
  lp_json_put_text(&w, "radio", s->radio ? s->radio->name : NULL);
  lp_json_put_text(&w, "varied", s->axis ? lp_sim_axis_names[s->axis] : NULL);
  lp_json_put_array(&w, "points");
  for (int32_t i = 0; i < result->points; i++)
    put_point(&w, s, &result->point[i]);
  lp_json_put_end(&w);
  lp_json_document_end(&w);
}

/* ---- CSV --------------------------------------------------------------------------------------------------------- */

void lp_sim_print_csv(const lp_sim_result *result, lp_buf *out) {
  const lp_sim_scenario *s = result->scenario;
  lp_buf_puts(out, s->service_count > 1 ? "service,policy," : "policy,");
  if (s->axis) lp_buf_printf(out, "%s,", lp_sim_axis_names[s->axis]);
  lp_buf_puts(out, "requests,rejected,overflowed,delay_s,delay_half95_s,reward,reward_half95,quality,quality_half95,"
                   "wait_s,generation_s,link_s,delay_p50_s,delay_p90_s,delay_p99_s,edge_share,edge_utilisation,"
                   "edge_queue_length,cloud_share,cloud_utilisation,cloud_queue_length,regret,regret_half95,"
                   "delay_p95_s,ttft_s,split_share,split_utilisation,split_queue_length\n");
  LP_FOR_EACH(const lp_sim_point, p, result->point, result->points) {
    if (s->service_count > 1) lp_buf_printf(out, "%s,", p->service);
    lp_buf_printf(out, "%s,", p->policy);
    if (s->axis) lp_buf_printf(out, "%.9g,", p->value);
    lp_buf_printf(out, "%" PRId64 ",%" PRId64 ",%" PRId64, p->requests, p->rejected, p->overflowed);
    const double numbers[] = {p->delay_s.mean,
                              p->delay_s.half,
                              p->reward.mean,
                              p->reward.half,
                              p->quality.mean,
                              p->quality.half,
                              p->wait_s.mean,
                              p->generation_s.mean,
                              p->link_s.mean,
                              p->p50_s,
                              p->p90_s,
                              p->p99_s,
                              p->share[LP_SITE_EDGE],
                              p->utilisation[LP_SITE_EDGE],
                              p->queue_length[LP_SITE_EDGE],
                              p->share[LP_SITE_CLOUD],
                              p->utilisation[LP_SITE_CLOUD],
                              p->queue_length[LP_SITE_CLOUD],
                              p->regret.mean,
                              p->regret.half,
                              p->p95_s,
                              p->ttft_s.mean,
                              p->share[LP_SITE_SPLIT],
                              p->utilisation[LP_SITE_SPLIT],
                              p->queue_length[LP_SITE_SPLIT]};
    for (size_t n = 0; n < LP_COUNT(numbers); n++)
      lp_buf_printf(out, ",%.9g", numbers[n]);
    lp_buf_puts(out, "\n");
  }
}
