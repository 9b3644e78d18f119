/* Machines: their sheet, loading, and the tables that `llmpart hw` prints. */
#include "base/units.h"
#include "hwmodels/hwmodels_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const lp_figure_info infos[LP_HW_FIGURE_COUNT] = {
    [LP_HW_PEAK_F32] = {"peak_f32", LP_IN_FLOPS, 1, 1e21, -1, "the peak rate in f32"},
    [LP_HW_PEAK_F16] = {"peak_f16", LP_IN_FLOPS, 0, 1e21, 0, "the peak rate in f16"},
    [LP_HW_PEAK_BF16] = {"peak_bf16", LP_IN_FLOPS, 0, 1e21, 0, "the peak rate in bf16"},
    [LP_HW_PEAK_INT8] = {"peak_int8", LP_IN_FLOPS, 0, 1e21, 0, "the peak rate in int8"},
    [LP_HW_PEAK_INT4] = {"peak_int4", LP_IN_FLOPS, 0, 1e21, 0, "the peak rate in int4"},
    [LP_HW_BANDWIDTH] = {"memory_bandwidth", LP_IN_BYTES_PER_S, 1, 1e18, -1, "the bandwidth of memory"},
    [LP_HW_MEMORY] = {"memory", LP_IN_BYTES, 1, 1e18, -1, "the size of memory"},
    [LP_HW_CACHE] = {"cache", LP_IN_BYTES, 0, 1e18, 0, "the size of the last level of cache"},
    [LP_HW_COMPUTE_UTILISATION] = {"compute_utilisation", LP_IN_SHARE, 1e-6, 1, 1, "the share of the peak reached"},
    [LP_HW_MEMORY_UTILISATION] = {"memory_utilisation", LP_IN_SHARE, 1e-6, 1, 1, "the share of the bandwidth reached"},
    [LP_HW_LAUNCH] = {"launch", LP_IN_MS, 0, 1e6, 0, "the time that starting an operator takes"},
    [LP_HW_PRICE] = {"price_usd_per_s", LP_IN_NUMBER, 0, 1e6, 0, "the price in USD per second"},
    [LP_HW_POWER] = {"power", LP_IN_W, 0, 1e9, 0, "the power drawn when busy"},
};

/* Figures that measured times do not rest on. */
static bool is_beside_times(const char *key) {
  static const lp_hw_figure beside[] = {LP_HW_MEMORY, LP_HW_CACHE, LP_HW_PRICE, LP_HW_POWER};
  for (size_t i = 0; i < LP_COUNT(beside); i++)
    if (lp_streq(key, infos[beside[i]].key)) return true;
  return false;
}

/* "predictor=roofline", and figures that only a roofline can follow. */
static lp_status change_predictor(void *user, const char *key, const char *value, bool *taken, lp_diag *diag) {
  lp_machine *machine = user;
  *taken = lp_streq(key, "predictor");
  if (!*taken) {
    bool known = false;
    for (size_t i = 0; i < LP_COUNT(infos); i++)
      known = known || lp_streq(key, infos[i].key);
    if (known && !is_beside_times(key)) machine->predictor = &lp_hw_roofline;
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

static const lp_sheet_form form = {.what = "machine",
                                   .has_kind = true,
                                   .info = infos,
                                   .count = LP_HW_FIGURE_COUNT,
                                   .embedded = &lp_embedded_machines,
                                   .section = "measured",
                                   .read_section = lp_fit_read,
                                   .override = change_predictor};

static lp_machine *machine_create(void) {
  lp_machine *machine = lp_alloc(sizeof *machine);
  machine->arena = lp_arena_create();
  machine->predictor = &lp_hw_roofline;
  return machine;
}

void lp_hw_free(lp_machine *machine) {
  if (!machine) return;
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

/* Takes over what was read into `sheet`, or frees the machine. */
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

static lp_status load_host(const char *text, lp_machine **out, lp_diag *diag) {
  const char *changes = strchr(text, ',');
  LP_TRY(lp_hw_host(out, diag));
  if (!changes) return LP_OK;
  lp_sheet sheet = sheet_of(*out);
  bool given[LP_HW_FIGURE_COUNT] = {0};
  return finish(lp_sheet_override(&sheet, changes + 1, given, diag, LP_LOC_FILE(text)), *out, &sheet, out);
}

lp_status lp_hw_load(const char *text, lp_machine **out, lp_diag *diag) {
  *out = NULL;
  if (lp_has_prefix(text, "host") && (text[4] == 0 || text[4] == ',')) return load_host(text, out, diag);
  lp_machine *machine = machine_create();
  lp_sheet sheet = sheet_of(machine);
  return finish(lp_sheet_load(&sheet, text, diag), machine, &sheet, out);
}

double lp_hw_peak(const lp_machine *machine, lp_dtype dtype) {
  const double *figure = machine->figure;
  double f32 = figure[LP_HW_PEAK_F32];
  double f16 = figure[LP_HW_PEAK_F16] > 0 ? figure[LP_HW_PEAK_F16] : f32;
  double int8 = figure[LP_HW_PEAK_INT8] > 0 ? figure[LP_HW_PEAK_INT8] : f16;
  switch (dtype) {
  case LP_F16:
    return f16;
  case LP_BF16:
    return figure[LP_HW_PEAK_BF16] > 0 ? figure[LP_HW_PEAK_BF16] : f32;
  case LP_I8:
  case LP_U8:
  case LP_F8E4M3FN:
  case LP_F8E4M3FNUZ:
  case LP_F8E5M2:
  case LP_F8E5M2FNUZ:
  case LP_F8E8M0:
    return int8;
  case LP_I4:
  case LP_U4:
  case LP_I2:
  case LP_U2:
  case LP_F4E2M1:
    return figure[LP_HW_PEAK_INT4] > 0 ? figure[LP_HW_PEAK_INT4] : int8;
  case LP_F32:
  case LP_F64:
  case LP_I16:
  case LP_I32:
  case LP_I64:
  case LP_U16:
  case LP_U32:
  case LP_U64:
  case LP_BOOL:
  case LP_DTYPE_COUNT:
    break;
  }
  return f32;
}

lp_prediction lp_hw_predict(const lp_machine *machine, const lp_op_facts *facts) {
  return machine->predictor->predict(machine, facts);
}

bool lp_hw_asks_pass_bytes(const lp_machine *machine) {
  const lp_hw_predictor *predictor = machine->predictor;
  return predictor->asks_pass_bytes && predictor->asks_pass_bytes(machine);
}

/* ---- tables ---- */

size_t lp_hw_names(const char *const **names) {
  *names = lp_embedded_machines.names;
  return lp_embedded_machines.name_count;
}

static void list_row(const lp_machine *m, lp_buf *out) {
  char memory[32];
  double rate = lp_hw_peak(m, LP_F16);
  lp_buf_printf(out, "%-20s %-4s %12.4g %10.4g %12s %10.4g  %s\n", m->name, m->kind == LP_MACHINE_GPU ? "gpu" : "cpu",
                rate / 1e12, m->figure[LP_HW_BANDWIDTH] / 1e9, lp_format_bytes(m->figure[LP_HW_MEMORY], memory),
                m->figure[LP_HW_PRICE] * 3600, m->title);
}

void lp_hw_list(lp_buf *out) {
  const lp_embedded_table *table = &lp_embedded_machines;
  lp_buf_printf(out, "%-20s %-4s %12s %10s %12s %10s  %s\n", "name", "kind", "f16 TFLOP/s", "GB/s", "memory", "USD/h",
                "title");
  for (size_t i = 0; i < table->name_count; i++) {
    lp_machine *machine = NULL;
    if (lp_streq(table->names[i], "host")) {
      lp_buf_printf(out, "%-20s %-4s %12s %10s %12s %10s  %s\n", "host", "cpu", "-", "-", "-", "-",
                    "this machine, measured at first use");
      continue;
    }
    lp_status status = lp_hw_load(table->names[i], &machine, NULL);
    assert(status == LP_OK && "an embedded machine is broken");
    if (status == LP_OK) list_row(machine, out);
    lp_hw_free(machine);
  }
}

void lp_hw_print(const lp_machine *machine, lp_buf *out) {
  lp_machine copy = *machine;
  lp_sheet sheet = sheet_of(&copy);
  lp_sheet_print(&sheet, out);
  if (machine->fit && machine->predictor == &lp_hw_fitted) lp_fit_print(machine->fit, out);
}
