/* Machines by name: those that come with the library, this one, and files; the table that `llmpart hw list` prints. */
#include "base/units.h"
#include "hwmodels/hwmodels_internal.h"

#include <assert.h>

bool lp_hw_is_host(const char *text) {
  return text && lp_has_prefix(text, "host") && (text[4] == 0 || text[4] == ',');
}

lp_status lp_hw_load(const char *text, lp_machine **out, lp_diag *diag) {
  *out = NULL;
  if (!lp_hw_is_host(text)) return lp_machine_load_sheet(text, out, diag);
  const char *changes = strchr(text, ',');
  LP_TRY(lp_hw_host(out, diag));
  return changes ? lp_machine_change(out, changes + 1, diag, LP_LOC_FILE(text)) : LP_OK;
}

size_t lp_hw_names(const char *const **names) {
  *names = lp_embedded_machines.names;
  return lp_embedded_machines.name_count;
}

static void list_row(const lp_machine *m, lp_buf *out) {
  char memory[32];
  double rate = lp_hw_peak(m, LP_F16);
  LP_OWNED(lp_buf_free) lp_buf target = {0};
  lp_hw_target_text(&m->target, &target);
  lp_buf_printf(out, "%-20s %-4s %12.4g %10.4g %12s %10.4g  %-32s %s\n", m->name,
                m->kind == LP_MACHINE_GPU ? "gpu" : "cpu", rate / 1e12, m->figure[LP_HW_BANDWIDTH] / 1e9,
                lp_format_bytes(m->figure[LP_HW_MEMORY], memory), m->figure[LP_HW_PRICE] * 3600, lp_buf_text(&target),
                m->title);
}

void lp_hw_list(lp_buf *out) {
  const lp_embedded_table *table = &lp_embedded_machines;
  lp_buf_printf(out, "%-20s %-4s %12s %10s %12s %10s  %-32s %s\n", "name", "kind", "f16 TFLOP/s", "GB/s", "memory",
                "USD/h", "target", "title");
  for (size_t i = 0; i < table->name_count; i++) {
    lp_machine *machine = NULL;
    if (lp_streq(table->names[i], "host")) {
      lp_buf_printf(out, "%-20s %-4s %12s %10s %12s %10s  %-32s %s\n", "host", "cpu", "-", "-", "-", "-", "native",
                    "this machine, measured at first use");
      continue;
    }
    lp_status status = lp_hw_load(table->names[i], &machine, NULL);
    assert(status == LP_OK && "an embedded machine is broken");
    if (status == LP_OK && !machine->target.ideal) list_row(machine, out);
    lp_hw_free(machine);
  }
}
