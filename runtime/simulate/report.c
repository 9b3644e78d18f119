/* Results as JSON and as rows. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/simulate/simulate_internal.h"

/* ---- json ---- */

static void put_estimate(json_t *object, const char *key, const char *half_key, lp_sim_estimate estimate) {
  json_object_set_new(object, key, json_real(estimate.mean));
  json_object_set_new(object, half_key, json_real(estimate.half));
}

/* How the means of the twentieths of a run followed each other; `request` is the last of each. */
static json_t *learning_json(const lp_sim_scenario *s, const lp_sim_point *p) {
  json_t *parts = json_array();
  for (int32_t i = 0; i < LP_SIM_PARTS; i++) {
    json_t *part = json_object();
    json_object_set_new(part, "request", json_integer((json_int_t)lp_sim_part_end(s, i)));
    put_estimate(part, "reward", "reward_half95", p->part[i].reward);
    put_estimate(part, "regret", "regret_half95", p->part[i].regret);
    put_estimate(part, "quality", "quality_half95", p->part[i].quality);
    json_array_append_new(parts, part);
  }
  return parts;
}

static json_t *point_json(const lp_sim_scenario *s, const lp_sim_point *p) {
  json_t *point = json_object(), *tasks = json_object();
  json_object_set_new(point, "service", json_string(p->service));
  json_object_set_new(point, "policy", json_string(p->policy));
  if (s->axis != LP_SIM_NOTHING) json_object_set_new(point, lp_sim_axis_names[s->axis], json_real(p->value));
  json_object_set_new(point, "requests", json_integer(p->requests));
  json_object_set_new(point, "rejected", json_integer(p->rejected));
  json_object_set_new(point, "overflowed", json_integer(p->overflowed));
  put_estimate(point, "delay_s", "delay_half95_s", p->delay_s);
  put_estimate(point, "reward", "reward_half95", p->reward);
  put_estimate(point, "quality", "quality_half95", p->quality);
  put_estimate(point, "regret", "regret_half95", p->regret);
  put_estimate(point, "wait_s", "wait_half95_s", p->wait_s);
  put_estimate(point, "generation_s", "generation_half95_s", p->generation_s);
  put_estimate(point, "link_s", "link_half95_s", p->link_s);
  json_object_set_new(point, "delay_p50_s", json_real(p->p50_s));
  json_object_set_new(point, "delay_p90_s", json_real(p->p90_s));
  json_object_set_new(point, "delay_p99_s", json_real(p->p99_s));
  for (int place = 0; place < LP_PLACES; place++)
    json_object_set_new(point, lp_place_names[place],
                        json_pack("{s:f, s:f, s:f}", "share", p->share[place], "utilisation", p->utilisation[place],
                                  "queue_length", p->queue_length[place]));
  for (int32_t t = 0; t < s->tasks; t++) {
    json_t *task = json_object();
    put_estimate(task, "delay_s", "delay_half95_s", p->task_delay_s[t]);
    json_object_set_new(tasks, s->task[t].name, task);
  }
  json_object_set_new(point, "tasks", tasks);
  json_object_set_new(point, "learning", learning_json(s, p));
  return point;
}

void lp_sim_print_json(const lp_sim_result *result, lp_buf *out) {
  const lp_sim_scenario *s = result->scenario;
  json_t *points = json_array();
  for (int32_t i = 0; i < result->points; i++)
    json_array_append_new(points, point_json(s, &result->point[i]));
  json_t *root = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "schema",
                           "llmpart.simulate/1", "name", s->name, "title", s->title, "service", s->service->name,
                           "counting", lp_counting_names[s->counting], "seed", (json_int_t)s->seed, "runs",
                           (json_int_t)s->runs, "requests", (json_int_t)s->requests, "warm_up", (json_int_t)s->warm_up,
                           "target_s", s->target_s, "penalty", s->penalty, "backhaul_s", s->backhaul_s);
  json_object_set_new(root, "radio", s->radio ? json_string(s->radio->name) : json_null());
  json_object_set_new(root, "varied", s->axis ? json_string(lp_sim_axis_names[s->axis]) : json_null());
  json_object_set_new(root, "points", points);
  char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
  lp_buf_printf(out, "%s\n", text ? text : "{}");
  free(text);
  json_decref(root);
}

/* ---- csv ---- */

void lp_sim_print_csv(const lp_sim_result *result, lp_buf *out) {
  const lp_sim_scenario *s = result->scenario;
  lp_buf_puts(out, s->service_count > 1 ? "service,policy," : "policy,");
  if (s->axis) lp_buf_printf(out, "%s,", lp_sim_axis_names[s->axis]);
  lp_buf_puts(out, "requests,rejected,overflowed,delay_s,delay_half95_s,reward,reward_half95,quality,quality_half95,"
                   "wait_s,generation_s,link_s,delay_p50_s,delay_p90_s,delay_p99_s,edge_share,edge_utilisation,"
                   "edge_queue_length,cloud_share,cloud_utilisation,cloud_queue_length,regret,regret_half95\n");
  for (int32_t i = 0; i < result->points; i++) {
    const lp_sim_point *p = &result->point[i];
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
                              p->share[LP_AT_EDGE],
                              p->utilisation[LP_AT_EDGE],
                              p->queue_length[LP_AT_EDGE],
                              p->share[LP_AT_CLOUD],
                              p->utilisation[LP_AT_CLOUD],
                              p->queue_length[LP_AT_CLOUD],
                              p->regret.mean,
                              p->regret.half};
    for (size_t n = 0; n < LP_COUNT(numbers); n++)
      lp_buf_printf(out, ",%.9g", numbers[n]);
    lp_buf_puts(out, "\n");
  }
}
