/* Networks in YAML. */
#include "runtime/radio/radio.h"

#include "base/yaml/yaml.h"

extern const lp_embedded_table lp_embedded_radio;

#define NUMBER(key, member, from, to)                                                                                  \
  LP_YAML_FIELD(LP_YAML_F64, key, lp_radio_profile, member, .least = (from), .most = (to))
#define WHOLE(key, member, from, to)                                                                                   \
  LP_YAML_FIELD(LP_YAML_I64, key, lp_radio_profile, member, .least = (from), .most = (to))
#define SWITCH(key, member) LP_YAML_FIELD(LP_YAML_BOOL, key, lp_radio_profile, member, .least = 0)
#define CHOICE(key, member, all, count)                                                                                \
  LP_YAML_FIELD(LP_YAML_CHOICE, key, lp_radio_profile, member, .names = (all), .name_count = (count))

static const lp_yaml_field fields[] = {
    LP_YAML_FIELD(LP_YAML_TEXT, "radio", lp_radio_profile, name, .required = true),
    LP_YAML_FIELD(LP_YAML_TEXT, "title", lp_radio_profile, title, .least = 0),
    CHOICE("scenario", scenario, lp_radio_scenario_names, LP_RADIO_SCENARIOS),
    WHOLE("sites", sites, 1, 19),
    WHOLE("sectors", sectors, 1, 3),
    SWITCH("wrap_around", wrap),
    NUMBER("inter_site_m", isd, 10, 1e5),
    NUMBER("bs_height_m", h_bs, 1, 150),
    NUMBER("user_height_m", h_ut, 0.5, 150),
    NUMBER("carrier_ghz", fc, 0.5, 100),
    NUMBER("building_height_m", h_building, 5, 50),
    NUMBER("street_width_m", w_street, 5, 50),
    NUMBER("min_distance_m", min_distance, 0, 1000),
    WHOLE("blocks", blocks, 1, 10000),
    NUMBER("block_hz", block_hz, 1, 1e9),
    NUMBER("power_dbm", power_dbm, -50, 100),
    NUMBER("user_power_dbm", ue_power_dbm, -50, 100),
    NUMBER("user_p0_dbm", p0_dbm, -200, 100),
    NUMBER("user_alpha", alpha, 0, 1),
    NUMBER("noise_dbm_hz", n0_dbm_hz, -250, 0),
    NUMBER("user_noise_figure_db", ue_noise_db, 0, 50),
    NUMBER("bs_noise_figure_db", bs_noise_db, 0, 50),
    NUMBER("antenna_gain_dbi", antenna.gain_dbi, -50, 50),
    NUMBER("antenna_azimuth_deg", antenna.azimuth_deg, 0, 360),
    NUMBER("antenna_elevation_deg", antenna.elevation_deg, 1, 360),
    NUMBER("antenna_tilt_deg", antenna.tilt_deg, -90, 90),
    NUMBER("antenna_floor_db", antenna.floor_db, 0, 100),
    NUMBER("indoor", indoor, 0, 1),
    NUMBER("high_loss", high_loss, 0, 1),
    SWITCH("shadowing", shadowing),
    NUMBER("shadow_correlation", shadow_correlation, 0, 1),
    SWITCH("rayleigh", rayleigh),
    NUMBER("load", load, 0, 1),
    NUMBER("gap_db", coding.gap_db, 0, 50),
    NUMBER("cap_bits_per_hz", coding.cap, 0, 100),
    CHOICE("scheduler", scheduler, lp_radio_scheduler_names, LP_RADIO_SCHEDULERS),
    NUMBER("beta", beta, 1e-9, 1),
};

/* Keys that a file omits have the values of uma-3gpp. */
static lp_radio_profile *profile_create(void) {
  lp_radio_profile *profile = lp_alloc(sizeof *profile);
  *profile = (lp_radio_profile){
      .arena = lp_arena_create(),
      .scenario = LP_RADIO_UMA,
      .sites = 19,
      .sectors = 3,
      .wrap = true,
      .isd = 500,
      .h_bs = 25,
      .h_ut = 1.5,
      .fc = 3.5,
      .h_building = 5,
      .w_street = 20,
      .min_distance = 35,
      .blocks = 100,
      .block_hz = 180e3,
      .power_dbm = 46,
      .ue_power_dbm = 23,
      .p0_dbm = -80,
      .alpha = 0.8,
      .n0_dbm_hz = -174,
      .ue_noise_db = 9,
      .bs_noise_db = 5,
      .antenna = {.gain_dbi = 8, .azimuth_deg = 65, .elevation_deg = 65, .tilt_deg = 12, .floor_db = 30},
      .indoor = 0.8,
      .high_loss = 0.5,
      .shadowing = true,
      .shadow_correlation = 0,
      .rayleigh = true,
      .load = 1,
      .scheduler = LP_RADIO_PF,
      .beta = 0.01};
  return profile;
}

void lp_radio_profile_free(lp_radio_profile *profile) {
  if (!profile) return;
  lp_arena_free(profile->arena);
  free(profile);
}

static lp_status read_root(void *user, lp_yaml *yaml, const lp_yaml_node *root) {
  lp_radio_profile *profile = user;
  lp_loc loc = lp_yaml_loc(yaml, root);
  LP_TRY(lp_yaml_fields(yaml, root, "the radio profile", fields, LP_COUNT(fields), profile));
  if (!profile->title) profile->title = profile->name;
  if (profile->sites != 1 && profile->sites != 2 && profile->sites != 7 && profile->sites != 19)
    return lp_error(yaml->diag, loc, "'sites' is %" PRId64 ", not 1, 2, 7 or 19", profile->sites);
  if (profile->sites == 2 && profile->wrap)
    return lp_error(yaml->diag, loc, "'wrap_around' needs 1, 7 or 19 'sites', not 2");
  if (profile->min_distance >= profile->isd / 2)
    return lp_error(yaml->diag, loc, "'min_distance_m' leaves no room: it is %g, half of 'inter_site_m' is %g",
                    profile->min_distance, profile->isd / 2);
  return LP_OK;
}

static lp_status finish(lp_status status, lp_radio_profile *profile, lp_radio_profile **out) {
  *out = status == LP_OK ? profile : NULL;
  if (status != LP_OK) lp_radio_profile_free(profile);
  return status;
}

lp_status lp_radio_profile_parse(const char *file, const char *text, size_t size, lp_radio_profile **out,
                                 lp_diag *diag) {
  lp_radio_profile *profile = profile_create();
  return finish(lp_yaml_parse(file, text, size, profile->arena, read_root, profile, diag), profile, out);
}

lp_status lp_radio_profile_load(const char *name, lp_radio_profile **out, lp_diag *diag) {
  lp_radio_profile *profile = profile_create();
  lp_status status =
      lp_embedded_load(&lp_embedded_radio, "radio profile", name, profile->arena, read_root, profile, diag);
  return finish(status, profile, out);
}

size_t lp_radio_profile_names(const char *const **names) {
  *names = lp_embedded_radio.names;
  return lp_embedded_radio.name_count;
}

void lp_radio_profile_print(const lp_radio_profile *profile, lp_buf *out) {
  LP_FOR_EACH(const lp_yaml_field, field, fields, LP_COUNT(fields)) {
    const void *place = (const char *)profile + field->offset;
    lp_buf_printf(out, "%s: ", field->key);
    if (field->kind == LP_YAML_F64)
      lp_buf_printf(out, "%.12g", *(const double *)place);
    else if (field->kind == LP_YAML_I64)
      lp_buf_printf(out, "%" PRId64, *(const int64_t *)place);
    else if (field->kind == LP_YAML_BOOL)
      lp_buf_puts(out, *(const bool *)place ? "true" : "false");
    else if (field->kind == LP_YAML_CHOICE)
      lp_buf_puts(out, field->names[*(const int32_t *)place]);
    else
      lp_yaml_print_quoted(*(const char *const *)place, out);
    lp_buf_puts(out, "\n");
  }
}
