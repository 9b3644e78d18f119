/* Reads the places of a scenario: see scenario_places.h. */
#include "runtime/simulate/scenario_places.h"

#include "base/units.h"
#include "runtime/simulate/passes.h"

/* Reads "unlimited", or an integer of at least `least`. */
static lp_status read_limit(lp_yaml *yaml, const lp_yaml_node *node, const char *key, int64_t least, int64_t *out) {
  const char *text = NULL;
  LP_TRY(lp_yaml_text(yaml, node, key, &text));
  *out = LP_SIM_UNLIMITED;
  if (lp_streq(text, "unlimited")) return LP_OK;
  if (lp_parse_i64(text, least, 1000000, out, NULL, LP_LOC_NONE) == LP_OK) return LP_OK;
  return lp_yaml_error(yaml, node, "'%s' is '%s', neither 'unlimited' nor a whole number from %" PRId64 " to 1000000",
                       key, text, least);
}

/* ---- passes ---- */

typedef struct {
  const lp_yaml_node *rows, *ms, *prompt_ms;
} times_file;

static const lp_yaml_field times_fields[] = {
    LP_YAML_FIELD(LP_YAML_NODE, "rows", times_file, rows, .required = true),
    LP_YAML_FIELD(LP_YAML_NODE, "ms", times_file, ms, .required = true),
    LP_YAML_FIELD(LP_YAML_NODE, "prompt_ms", times_file, prompt_ms, .least = 0),
};

/* Reads a time for each of the `count` rows. */
static lp_status read_ms(lp_yaml *yaml, const lp_yaml_node *node, const char *key, int32_t count, double **out) {
  int32_t found = 0;
  LP_TRY(lp_yaml_numbers(yaml, node, key, &(lp_yaml_range){0, 1e9, false}, out, &found));
  if (found != count) return lp_yaml_error(yaml, node, "'%s' has %d numbers for %d 'rows'", key, found, count);
  for (int32_t i = 0; i < count; i++)
    (*out)[i] /= 1e3;
  return LP_OK;
}

static lp_status read_times(lp_yaml *yaml, const lp_yaml_node *node, const char *key, lp_sim_times *out) {
  times_file file = {0};
  LP_TRY(lp_yaml_fields(yaml, node, lp_arena_format(yaml->arena, "'%s'", key), times_fields, LP_COUNT(times_fields),
                        &file));
  LP_TRY(lp_yaml_numbers(yaml, file.rows, "rows", &(lp_yaml_range){1, 1e6, true}, &out->rows, &out->count));
  LP_TRY(read_ms(yaml, file.ms, "ms", out->count, &out->seconds));
  return file.prompt_ms ? read_ms(yaml, file.prompt_ms, "prompt_ms", out->count, &out->prompt_seconds) : LP_OK;
}

/* ---- the other half of a split, and exits ---- */

static const lp_yaml_field link_fields[] = {
    LP_YAML_FIELD(LP_YAML_TIME_S, "rtt", lp_sim_crossing, rtt_s, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_BPS, "up", lp_sim_crossing, up_bps, .least = 1, .most = 1e15),
    LP_YAML_FIELD(LP_YAML_BPS, "down", lp_sim_crossing, down_bps, .least = 1, .most = 1e15),
    LP_YAML_FIELD(LP_YAML_F64, "row_bytes", lp_sim_crossing, row_bytes, .least = 0, .most = 1e9),
    LP_YAML_FIELD(LP_YAML_F64, "message_bytes", lp_sim_crossing, message_bytes, .least = 0, .most = 1e9),
};
static const lp_yaml_field exit_fields[] = {
    LP_YAML_FIELD(LP_YAML_F64, "share", lp_sim_exits, share, .least = 0, .most = 1, .required = true),
    LP_YAML_FIELD(LP_YAML_F64, "depth", lp_sim_exits, depth, .least = 0, .most = 1, .required = true),
};

/* ---- places ---- */

typedef struct {
  lp_sim_station station;
  const lp_yaml_node *slots, *queue, *passes, *worker, *link, *exits;
} station_file;

static const lp_yaml_field station_fields[] = {
    LP_YAML_FIELD(LP_YAML_I64, "replicas", station_file, station.replicas, .least = 1, .most = 1024),
    LP_YAML_FIELD(LP_YAML_NODE, "slots", station_file, slots, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "queue", station_file, queue, .least = 0),
    LP_YAML_FIELD(LP_YAML_F64, "slowdown", station_file, station.slowdown, .least = 0, .most = 1000),
    LP_YAML_FIELD(LP_YAML_TIME_S, "request", station_file, station.request_s, .most = 1e6),
    LP_YAML_FIELD(LP_YAML_NODE, "passes", station_file, passes, .least = 0),
    LP_YAML_FIELD(LP_YAML_F64, "prompt_stretch", station_file, station.prompt_stretch, .least = 1, .most = 1000),
    LP_YAML_FIELD(LP_YAML_NODE, "worker", station_file, worker, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "link", station_file, link, .least = 0),
    LP_YAML_FIELD(LP_YAML_NODE, "exits", station_file, exits, .least = 0),
};

/* What a place may not have, given the others of its keys; NULL: nothing. */
static const char *fault_of(const station_file *file, lp_site site) {
  if (site != LP_SITE_SPLIT && (file->worker || file->link || file->exits))
    return "only 'split' has 'worker', 'link' and 'exits'";
  if (file->worker && !file->passes) return "'worker' wants 'passes' of the device";
  if (file->station.prompt_stretch > 0 && !file->passes) return "'prompt_stretch' wants 'passes'";
  if (file->passes && file->station.slowdown > 0) return "'passes' and 'slowdown' are two ways of batching";
  if (file->passes && site == LP_SITE_SPLIT && !file->worker)
    return "'passes' of the device want those of the 'worker'";
  return NULL;
}

lp_status lp_sim_place_read(lp_yaml *yaml, const lp_yaml_node *node, lp_site site, lp_sim_station *out) {
  station_file file = {.station = *out};
  const char *what = lp_arena_format(yaml->arena, "'%s'", lp_site_names[site]);
  LP_TRY(lp_yaml_fields(yaml, node, what, station_fields, LP_COUNT(station_fields), &file));
  const char *fault = fault_of(&file, site);
  if (fault) return lp_yaml_error(yaml, node, "%s", fault);
  lp_sim_station *station = &file.station;
  if (file.passes) LP_TRY(read_times(yaml, file.passes, "passes", &station->pass));
  if (file.passes) station->slots = 64; /* as the engine's `parallel` */
  if (file.worker) LP_TRY(read_times(yaml, file.worker, "worker", &station->crossing.worker));
  if (file.link)
    LP_TRY(lp_yaml_fields(yaml, file.link, "'link'", link_fields, LP_COUNT(link_fields), &station->crossing));
  if (file.exits)
    LP_TRY(lp_yaml_fields(yaml, file.exits, "'exits'", exit_fields, LP_COUNT(exit_fields), &station->exits));
  if (file.slots) LP_TRY(read_limit(yaml, file.slots, "slots", 1, &station->slots));
  if (file.queue) LP_TRY(read_limit(yaml, file.queue, "queue", 0, &station->queue));
  if (file.passes) lp_sim_pace(station, LP_NEW_ARRAY(yaml->arena, int16_t, LP_PASS_MOST_SEQUENCES));
  *out = *station;
  return LP_OK;
}
