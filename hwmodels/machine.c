/* Reads, changes and prints the sheets of machines, and predicts times from them. */
#include "hwmodels/hwmodels_internal.h"

static const lp_figure_info infos[LP_HW_FIGURE_COUNT] = {
    [LP_HW_PEAK_F32] = {"peak_f32", LP_IN_FLOPS, 1, 1e21, -1, "the peak rate in f32"},
    [LP_HW_PEAK_F16] = {"peak_f16", LP_IN_FLOPS, 0, 1e21, 0, "the peak rate in f16"},
    [LP_HW_PEAK_BF16] = {"peak_bf16", LP_IN_FLOPS, 0, 1e21, 0, "the peak rate in bf16"},
    [LP_HW_PEAK_INT8] = {"peak_int8", LP_IN_FLOPS, 0, 1e21, 0, "the peak rate in int8"},
    [LP_HW_PEAK_INT4] = {"peak_int4", LP_IN_FLOPS, 0, 1e21, 0, "the peak rate in int4"},
    [LP_HW_BANDWIDTH] = {"memory_bandwidth", LP_IN_BYTES_PER_S, 1, 1e18, -1, "the bandwidth of memory"},
    [LP_HW_MEMORY] = {"memory", LP_IN_BYTES, 1, 1e18, -1, "the size of memory"},
    [LP_HW_CACHE] = {"cache", LP_IN_BYTES, 0, 1e18, 0, "the size of the last level of cache"},
    [LP_HW_CACHE_BANDWIDTH] = {"cache_bandwidth", LP_IN_BYTES_PER_S, 0, 1e18, 0, "the bandwidth of the last cache"},
    [LP_HW_LOAD_BANDWIDTH] = {"load_bandwidth", LP_IN_BYTES_PER_S, 0, 1e18, 0, "the rate of loading weights"},
    [LP_HW_MESSAGE] = {"message", LP_IN_MS, 0, 1e6, 0, "the time of a message between two processes"},
    [LP_HW_MESSAGE_BANDWIDTH] = {"message_bandwidth", LP_IN_BYTES_PER_S, 0, 1e18, 0, "the rate of large messages"},
    [LP_HW_COMPUTE_UTILISATION] = {"compute_utilisation", LP_IN_SHARE, 1e-6, 1, 1, "the share of the peak reached"},
    [LP_HW_MEMORY_UTILISATION] = {"memory_utilisation", LP_IN_SHARE, 1e-6, 1, 1, "the share of the bandwidth reached"},
    [LP_HW_LAUNCH] = {"launch", LP_IN_MS, 0, 1e6, 0, "the time that starting an operator takes"},
    [LP_HW_PRICE] = {"price_usd_per_s", LP_IN_NUMBER, 0, 1e6, 0, "the price in USD per second"},
    [LP_HW_POWER] = {"power", LP_IN_W, 0, 1e9, 0, "the power drawn when busy"},
    [LP_HW_IDLE_POWER] = {"idle_power", LP_IN_W, 0, 1e9, 0, "the power drawn when it waits"},
    [LP_HW_PURCHASE] = {"purchase_usd", LP_IN_NUMBER, 0, 1e9, 0, "the price of the machine in USD"},
    [LP_HW_LIFE] = {"life_years", LP_IN_NUMBER, 1e-3, 1e3, 0, "the years that it is used"},
    [LP_HW_ENERGY_PRICE] = {"energy_usd_per_kwh", LP_IN_NUMBER, 0, 1e3, 0, "the price of its energy in USD per kWh"},
};

/* Figures that measured times do not depend on. */
static bool is_independent_of_times(const char *key) {
  static const lp_hw_figure independent[] = {
      LP_HW_MEMORY, LP_HW_CACHE,      LP_HW_LOAD_BANDWIDTH, LP_HW_MESSAGE, LP_HW_MESSAGE_BANDWIDTH, LP_HW_PRICE,
      LP_HW_POWER,  LP_HW_IDLE_POWER, LP_HW_PURCHASE,       LP_HW_LIFE,    LP_HW_ENERGY_PRICE};
  for (size_t i = 0; i < LP_COUNT(independent); i++)
    if (lp_streq(key, infos[independent[i]].key)) return true;
  return false;
}

/* Handles "predictor=roofline" and figures that only a roofline can use. */
static lp_status change_predictor(void *user, const char *key, const char *value, bool *taken, lp_diag *diag) {
  lp_machine *machine = user;
  *taken = lp_streq(key, "predictor");
  if (!*taken) {
    bool known = false;
    for (size_t i = 0; i < LP_COUNT(infos); i++)
      known = known || lp_streq(key, infos[i].key);
    if (known && !is_independent_of_times(key)) machine->predictor = &lp_hw_roofline;
    return LP_OK;
  }
  if (lp_streq(value, "roofline")) {
    machine->predictor = &lp_hw_roofline;
    return LP_OK;
  }
  if (!lp_streq(value, "fitted"))
    return lp_error(diag, LP_LOC_NONE, "'predictor' is '%s', neither 'fitted' nor 'roofline'", value);
  if (!machine->fit) return lp_error(diag, LP_LOC_NONE, "the machine has no measured times to predict with");
  machine->predictor = &lp_hw_fitted;
  return LP_OK;
}

static const lp_sheet_form form = {
    .what = "machine",
    .has_kind = true,
    .info = infos,
    .count = LP_HW_FIGURE_COUNT,
    .embedded = &lp_embedded_machines,
    .section = {{"target", lp_target_read}, {"interconnects", lp_interconnects_read}, {"measured", lp_fit_read}},
    .override = change_predictor};

static lp_machine *machine_create(void) {
  lp_machine *machine = lp_alloc(sizeof *machine);
  machine->arena = lp_arena_create();
  machine->predictor = &lp_hw_roofline;
  return machine;
}

void lp_hw_free(lp_machine *machine) {
  if (!machine) return;
  lp_fit_release(machine->fit);
  lp_arena_free(machine->arena);
  free(machine);
}

static lp_sheet sheet_of(lp_machine *machine) {
  return (lp_sheet){.form = &form,
                    .arena = machine->arena,
                    .name = machine->name,
                    .title = machine->title,
                    .kind = machine->name ? (machine->kind == LP_MACHINE_GPU ? "gpu" : "cpu") : NULL,
                    .figure = machine->figure,
                    .source = machine->source,
                    .user = machine};
}

/* Takes the fields that were read into `sheet`, or frees the machine after a failure. */
static lp_status finish(lp_status status, lp_machine *machine, const lp_sheet *sheet, lp_machine **out) {
  *out = NULL;
  if (status != LP_OK) {
    lp_hw_free(machine);
    return status;
  }
  machine->name = sheet->name;
  machine->title = sheet->title;
  machine->kind = lp_streq(sheet->kind, "gpu") ? LP_MACHINE_GPU : LP_MACHINE_CPU;
  *out = machine;
  return LP_OK;
}

lp_status lp_hw_parse(const char *file, const char *text, size_t size, lp_machine **out, lp_diag *diag) {
  lp_machine *machine = machine_create();
  lp_sheet sheet = sheet_of(machine);
  lp_status status = lp_sheet_read_yaml(&sheet, file, text, size, diag);
  return finish(status, machine, &sheet, out);
}

lp_status lp_machine_load_sheet(const char *text, lp_machine **out, lp_diag *diag) {
  lp_machine *machine = machine_create();
  lp_sheet sheet = sheet_of(machine);
  return finish(lp_sheet_load(&sheet, text, diag), machine, &sheet, out);
}

lp_status lp_machine_change(lp_machine **machine, const char *changes, lp_diag *diag, lp_loc loc) {
  lp_sheet sheet = sheet_of(*machine);
  bool given[LP_HW_FIGURE_COUNT] = {0};
  return finish(lp_sheet_override(&sheet, changes, given, diag, loc), *machine, &sheet, machine);
}

lp_machine lp_hw_of_ranks(const lp_machine *machine, int64_t ranks) {
  lp_machine all = *machine;
  if (ranks < 2) return all;
  all.figure[LP_HW_PRICE] *= (double)ranks;
  all.figure[LP_HW_POWER] *= (double)ranks;
  return all;
}

lp_prediction lp_hw_predict(const lp_machine *machine, const lp_op_facts *facts) {
  return machine->predictor->predict(machine, facts);
}

bool lp_hw_asks_pass_bytes(const lp_machine *machine) {
  const lp_hw_predictor *predictor = machine->predictor;
  return predictor->asks_pass_bytes && predictor->asks_pass_bytes(machine);
}

void lp_hw_print(const lp_machine *machine, lp_buf *out) {
  lp_machine copy = *machine;
  lp_sheet sheet = sheet_of(&copy);
  lp_sheet_print(&sheet, out);
  lp_target_print(&machine->target, out);
  if (machine->interconnects) lp_buf_printf(out, "interconnects: %s\n", machine->interconnects);
  if (machine->fit && machine->predictor == &lp_hw_fitted) lp_fit_print(machine->fit, out);
}
