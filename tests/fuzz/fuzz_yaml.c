/* The first byte chooses a reader of YAML; the rest is its file: machine, service, radio profile, scenario, the
 * configuration of a server, or the report (JSON) and the scenario of a fleet. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "hwmodels/hwmodels.h"
#include "runtime/radio/radio.h"
#include "runtime/serve/serve.h"
#include "runtime/service/service.h"
#include "runtime/simulate/fleet.h"

/* Files that a file names are looked up here, where nothing is. */
static const char *const name = "/nowhere/f.yaml";

static void read_machine(const char *text, size_t size, lp_diag *diag) {
  lp_machine *machine = NULL;
  if (lp_hw_parse(name, text, size, &machine, diag) == LP_OK) lp_hw_free(machine);
}

static void read_service(const char *text, size_t size, lp_diag *diag) {
  lp_service *service = NULL;
  if (lp_service_parse(name, text, size, &service, diag) == LP_OK) lp_service_free(service);
}

/* What is read prints as text that is read again. */
static void read_radio(const char *text, size_t size, lp_diag *diag) {
  lp_radio_profile *profile = NULL, *again = NULL;
  if (lp_radio_profile_parse(name, text, size, &profile, diag) != LP_OK) return;
  lp_buf out = {0};
  lp_radio_profile_print(profile, &out);
  if (lp_radio_profile_parse(name, out.data, out.size, &again, diag) != LP_OK) abort();
  lp_radio_profile_free(again);
  lp_radio_profile_free(profile);
  lp_buf_free(&out);
}

static void read_scenario(const char *text, size_t size, lp_diag *diag) {
  lp_sim_scenario *scenario = NULL;
  if (lp_sim_scenario_parse(name, text, size, &lp_sim_plain_policies, &scenario, diag) == LP_OK)
    lp_sim_scenario_free(scenario);
}

static void read_server(const char *text, size_t size, lp_diag *diag) {
  static const char *const path = "/dev/shm/llmpart-fuzz-yaml.yaml";
  lp_serve_config *config = NULL;
  if (lp_file_write(path, text, size, diag) != LP_OK) return;
  if (lp_serve_config_load(path, &config, diag) == LP_OK) lp_serve_config_free(config);
}

static void read_fleet(const char *text, size_t size, lp_diag *diag) {
  const char *path = size % 2 ? "/dev/shm/llmpart-fuzz-fleet.json" : "/dev/shm/llmpart-fuzz-fleet.yaml";
  lp_sim_fleet *fleet = NULL;
  if (lp_file_write(path, text, size, diag) != LP_OK) return;
  if (lp_sim_fleet_is(path) && lp_sim_fleet_load(path, &fleet, diag) == LP_OK) lp_sim_fleet_free(fleet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static void (*const readers[])(const char *, size_t, lp_diag *) = {read_machine,  read_service, read_radio,
                                                                     read_scenario, read_server,  read_fleet};
  if (size == 0) return 0;
  lp_diag *diag = lp_diag_create();
  readers[data[0] % LP_COUNT(readers)]((const char *)data + 1, size - 1, diag);
  lp_diag_free(diag);
  return 0;
}
