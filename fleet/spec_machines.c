/* Reads the regions and the machines of a specification. */
#include "fleet/mix.h"
#include "fleet/spec.h"

enum { MOST_KINDS = 64 };

lp_status lp_fleet_machine_load(const lp_yaml *yaml, const lp_yaml_node *node, const char *key, const char *text,
                                lp_machine **out) {
  lp_diag *inner = lp_diag_create();
  if (lp_hw_load(lp_sweep_path(yaml, text), out, inner) != LP_OK) return lp_sweep_relay(yaml, node, key, inner);
  lp_diag_free(inner);
  return LP_OK;
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_fleet_reader *reader;
  lp_fleet_region *region;
} links_reader;

/* Loads the link of class `index` to a region. */
static lp_status load_region_link(lp_fleet_reader *r, const lp_yaml *yaml, const lp_yaml_node *node, size_t index,
                                  const char *text, lp_fleet_region *region) {
  lp_diag *inner = lp_diag_create();
  region->link_name[index] = text;
  if (r->load_link(lp_sweep_path(yaml, text), &region->link[index], inner) != LP_OK)
    return lp_sweep_relay(yaml, node, "link", inner);
  lp_diag_free(inner);
  return LP_OK;
}

static lp_status read_region_link(lp_yaml *yaml, const lp_yaml_node *key, const char *name, const lp_yaml_node *value,
                                  void *user) {
  const links_reader *to = user;
  const lp_fleet_spec *spec = to->reader->spec;
  const char *text, *names[LP_FLEET_MOST_CLASSES];
  LP_TRY(lp_yaml_text(yaml, value, name, &text));
  for (size_t i = 0; i < spec->classes.count; i++) {
    names[i] = spec->classes.data[i].name;
    if (lp_streq(name, names[i])) return load_region_link(to->reader, yaml, value, i, text, to->region);
  }
  return lp_yaml_unknown_key(yaml, key, name, names, spec->classes.count);
}

static lp_status read_region(lp_fleet_reader *r, lp_yaml *yaml, const lp_yaml_node *node) {
  typedef struct {
    const char *name;
    double price, rtt_s;
    const lp_yaml_node *links;
  } region_text;
  static const lp_yaml_field fields[] = {
      LP_YAML_FIELD(LP_YAML_TEXT, "name", region_text, name, .required = true),
      LP_YAML_FIELD(LP_YAML_F64, "price", region_text, price, .least = 1e-3, .most = 1e3),
      LP_YAML_FIELD(LP_YAML_TIME_S, "rtt", region_text, rtt_s, .least = 0, .most = 100),
      LP_YAML_FIELD(LP_YAML_NODE, "links", region_text, links, .least = 0)};
  region_text text = {.price = 1, .rtt_s = -1};
  LP_TRY(lp_yaml_fields(yaml, node, "a region", fields, LP_COUNT(fields), &text));
  lp_vec_push(&r->spec->regions, ((lp_fleet_region){.name = text.name, .price = text.price}));
  lp_fleet_region *region = &r->spec->regions.data[r->spec->regions.count - 1]; /* it owns its links from here on */
  if (text.links) LP_TRY(lp_yaml_each(yaml, text.links, "'links'", read_region_link, &(links_reader){r, region}));
  for (size_t i = 0; i < r->spec->classes.count; i++) {
    const char *link = r->spec->classes.data[i].link_name;
    if (region->link[i]) continue;
    if (text.rtt_s >= 0) link = lp_arena_format(r->spec->arena, "%s,rtt=%.9gms", link, 1e3 * text.rtt_s);
    LP_TRY(load_region_link(r, yaml, node, i, link, region));
  }
  return LP_OK;
}

static lp_status read_regions(lp_fleet_reader *r, lp_yaml *yaml, const lp_yaml_node *node) {
  int32_t count = 0;
  if (!node) return LP_OK;
  LP_TRY(lp_yaml_list(yaml, node, "regions", &count));
  if (count > LP_FLEET_MOST_REGIONS)
    return lp_yaml_error(yaml, node, "there are %d regions; at most %d are compared", count, LP_FLEET_MOST_REGIONS);
  for (int32_t i = 0; i < count; i++)
    LP_TRY(read_region(r, yaml, lp_yaml_item(yaml, node, i)));
  return LP_OK;
}

lp_fleet_region lp_fleet_region_of(const lp_fleet_spec *spec, int32_t region) {
  lp_fleet_region out = {.price = 1};
  if (spec->regions.count > 0) return spec->regions.data[region];
  for (size_t i = 0; i < spec->classes.count; i++) {
    out.link[i] = spec->classes.data[i].link;
    out.link_name[i] = spec->classes.data[i].link_name;
  }
  return out;
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

typedef struct {
  const lp_yaml_node *machine, *spot;
  double usd_per_hour, reserved;
  int64_t most;
} kind_text;

/* Half of the time away would leave little of a probability of 1,024 machines. */
static const double most_away = 0.4;

static lp_status read_spot(lp_yaml *yaml, const lp_yaml_node *node, lp_fleet_kind *kind) {
  typedef struct {
    double usd_per_hour, losses, restart_s;
    int64_t most;
  } spot_text;
  static const lp_yaml_field fields[] = {
      LP_YAML_FIELD(LP_YAML_F64, "usd_per_hour", spot_text, usd_per_hour, .least = 1e-6, .most = 1e6, .required = true),
      LP_YAML_FIELD(LP_YAML_F64, "losses_per_hour", spot_text, losses, .least = 1e-6, .most = 3600, .required = true),
      LP_YAML_FIELD(LP_YAML_TIME_S, "restart", spot_text, restart_s, .least = 1e-3, .most = 1e6, .required = true),
      LP_YAML_FIELD(LP_YAML_I64, "most", spot_text, most, .least = 1, .most = LP_FLEET_MOST_SPOT)};
  spot_text text = {.most = LP_FLEET_MOST_SPOT};
  LP_TRY(lp_yaml_fields(yaml, node, "'spot'", fields, LP_COUNT(fields), &text));
  kind->spot_usd_per_hour = text.usd_per_hour;
  kind->most_spot = text.most;
  kind->losses = (lp_sim_pool_failures){3600 / text.losses, text.restart_s};
  const double away = text.restart_s / (kind->losses.every_s + text.restart_s);
  if (kind->most > 0) return lp_yaml_error(yaml, node, "a machine with 'most' has no 'spot': list it twice");
  if (away <= most_away) return LP_OK;
  return lp_yaml_error(yaml, node, "a spot machine is away for %.3g %% of the time; at most %g %% can be planned",
                       100 * away, 100 * most_away);
}

static lp_status read_kind(lp_yaml *yaml, const lp_yaml_node *node, lp_fleet_spec *spec) {
  static const lp_yaml_field fields[] = {
      LP_YAML_FIELD(LP_YAML_NODE, "machine", kind_text, machine, .required = true),
      LP_YAML_FIELD(LP_YAML_F64, "usd_per_hour", kind_text, usd_per_hour, .least = 1e-6, .most = 1e6),
      LP_YAML_FIELD(LP_YAML_F64, "reserved_usd_per_hour", kind_text, reserved, .least = 1e-6, .most = 1e6),
      LP_YAML_FIELD(LP_YAML_NODE, "spot", kind_text, spot, .least = 0),
      LP_YAML_FIELD(LP_YAML_I64, "most", kind_text, most, .least = 1, .most = 1e9)};
  kind_text text = {.machine = node};
  lp_fleet_kind kind = {0};
  if (lp_yaml_is_mapping(node)) LP_TRY(lp_yaml_fields(yaml, node, "a machine", fields, LP_COUNT(fields), &text));
  LP_TRY(lp_yaml_text(yaml, text.machine, "machine", &kind.name));
  LP_TRY(lp_fleet_machine_load(yaml, text.machine, "machine", kind.name, &kind.machine));
  kind.usd_by_hour = text.usd_per_hour > 0 ? text.usd_per_hour : 3600 * kind.machine->figure[LP_HW_PRICE];
  kind.usd_per_hour = kind.usd_by_hour;
  if (text.reserved > 0 && !(kind.usd_per_hour > 0 && kind.usd_per_hour < text.reserved))
    kind.usd_per_hour = text.reserved;
  kind.most = text.most;
  lp_vec_push(&spec->kinds, kind); /* it owns the machine from here on */
  if (text.spot) LP_TRY(read_spot(yaml, text.spot, &spec->kinds.data[spec->kinds.count - 1]));
  if (kind.usd_per_hour > 0) return LP_OK;
  return lp_yaml_error(yaml, text.machine, "'%s' has no price: give { machine: %s, usd_per_hour: ... }", kind.name,
                       kind.name);
}

/* All machines of hwmodels that have a price, but for those of papers. */
static lp_status take_all_kinds(lp_fleet_spec *spec, lp_diag *diag) {
  const char *const *names;
  const size_t count = lp_hw_names(&names);
  for (size_t i = 0; i < count; i++) {
    lp_machine *machine;
    if (lp_hw_is_host(names[i])) continue;
    LP_TRY(lp_hw_load(names[i], &machine, diag));
    const double usd = 3600 * machine->figure[LP_HW_PRICE];
    lp_fleet_kind kind = {.name = names[i], .usd_per_hour = usd, .usd_by_hour = usd, .machine = machine};
    if (kind.usd_per_hour > 0 && !machine->target.ideal)
      lp_vec_push(&spec->kinds, kind);
    else
      lp_hw_free(machine);
  }
  return LP_OK;
}

static lp_status read_kinds(lp_yaml *yaml, const lp_yaml_node *node, lp_fleet_spec *spec) {
  int32_t count = 0;
  if (!node) return take_all_kinds(spec, yaml->diag);
  LP_TRY(lp_yaml_list(yaml, node, "machines", &count));
  if (count > MOST_KINDS)
    return lp_yaml_error(yaml, node, "there are %d machines; at most %d are compared", count, MOST_KINDS);
  for (int32_t i = 0; i < count; i++)
    LP_TRY(read_kind(yaml, lp_yaml_item(yaml, node, i), spec));
  return LP_OK;
}

/* Offers each kind in each region. */
static lp_status place_kinds(lp_fleet_spec *spec, const lp_yaml *yaml, const lp_yaml_node *root) {
  const size_t kinds = spec->kinds.count, regions = spec->regions.count;
  if (kinds * regions > MOST_KINDS)
    return lp_yaml_error(yaml, root, "there are %zu machines in %zu regions; at most %d are compared", kinds, regions,
                         MOST_KINDS);
  for (size_t r = 0; r < regions; r++)
    for (size_t i = 0; i < kinds; i++) {
      lp_fleet_kind kind = spec->kinds.data[i];
      const double price = spec->regions.data[r].price;
      kind.region = (int32_t)r;
      kind.usd_per_hour *= price;
      kind.usd_by_hour *= price;
      kind.spot_usd_per_hour *= price;
      kind.borrows = r > 0;
      lp_vec_push(&spec->kinds, kind);
    }
  if (regions == 0) return LP_OK;
  spec->kinds.count -= kinds;
  memmove(spec->kinds.data, spec->kinds.data + kinds, spec->kinds.count * sizeof *spec->kinds.data);
  return LP_OK;
}

lp_status lp_fleet_machines_read(lp_fleet_reader *r, lp_yaml *yaml, const lp_yaml_node *root,
                                 const lp_yaml_node *regions, const lp_yaml_node *machines) {
  LP_TRY(read_regions(r, yaml, regions));
  LP_TRY(read_kinds(yaml, machines, r->spec));
  return place_kinds(r->spec, yaml, root);
}
