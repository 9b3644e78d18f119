/* Links: their sheet, loading, message times and the table that `llmpart link` prints. */
#include "base/units.h"
#include "hwmodels/hwmodels_internal.h"

#include <assert.h>

static const lp_figure_info infos[LP_LINK_FIGURE_COUNT] = {
    [LP_LINK_RTT] = {"rtt", LP_IN_MS, 0, 1e9, -1, "the round trip time"},
    [LP_LINK_UP] = {"up", LP_IN_BPS, 1, 1e18, -1, "the bandwidth from device to cloud"},
    [LP_LINK_DOWN] = {"down", LP_IN_BPS, 1, 1e18, -1, "the bandwidth from cloud to device"},
    [LP_LINK_LOSS] = {"loss", LP_IN_SHARE, 0, 0.99, 0, "the share of packets lost"},
    [LP_LINK_RADIO_UP] = {"radio_up_j_per_bit", LP_IN_NUMBER, 0, 1, 0, "the radio's energy for a bit that it sends"},
    [LP_LINK_RADIO_DOWN] = {"radio_down_j_per_bit", LP_IN_NUMBER, 0, 1, 0, "the same for a bit that it receives"},
    [LP_LINK_RADIO_AWAKE] = {"radio_awake", LP_IN_W, 0, 1e6, 0, "the power of the radio while it is awake"},
    [LP_LINK_RADIO_TAIL] = {"radio_tail_j", LP_IN_NUMBER, 0, 1e6, 0, "the energy of waking up and of the tail"},
};

static const lp_sheet_form form = {
    .what = "link", .info = infos, .count = LP_LINK_FIGURE_COUNT, .embedded = &lp_embedded_links};

static lp_sheet sheet_of(lp_link *link) {
  return (lp_sheet){.form = &form,
                    .arena = link->arena,
                    .name = link->name,
                    .title = link->title,
                    .figure = link->figure,
                    .source = link->source};
}

static lp_status finish(lp_status status, lp_link *link, const lp_sheet *sheet, lp_link **out) {
  *out = NULL;
  if (status != LP_OK) {
    lp_link_free(link);
    return status;
  }
  link->name = sheet->name;
  link->title = sheet->title;
  *out = link;
  return LP_OK;
}

/* "rtt=10ms,up=50Mbit/s,down=200Mbit/s": a link named after its figures. */
static lp_status load_figures(lp_sheet *sheet, const char *text, lp_diag *diag) {
  bool given[LP_LINK_FIGURE_COUNT] = {0};
  sheet->name = lp_arena_strdup(sheet->arena, text);
  sheet->title = "given on the command line";
  LP_TRY(lp_sheet_override(sheet, text, given, diag, LP_LOC_FILE(text)));
  return lp_sheet_complete(sheet, given, diag, LP_LOC_FILE(text));
}

lp_status lp_link_load(const char *text, lp_link **out, lp_diag *diag) {
  if (lp_has_suffix(text, ".csv")) return lp_link_load_trace(text, out, diag);
  lp_link *link = lp_link_create();
  lp_sheet sheet = sheet_of(link);
  bool figures_alone = strcspn(text, "=") < strcspn(text, ",/");
  lp_status status = figures_alone ? load_figures(&sheet, text, diag) : lp_sheet_load(&sheet, text, diag);
  return finish(status, link, &sheet, out);
}

void lp_link_measured_on(lp_link *link, const lp_machine *machine) {
  static const char measured[] = "measured by the profile of this machine";
  const double message_ms = machine->figure[LP_HW_MESSAGE], rate = machine->figure[LP_HW_MESSAGE_BANDWIDTH];
  if (message_ms <= 0 || rate <= 0) return;
  link->figure[LP_LINK_RTT] = 2 * message_ms;
  link->figure[LP_LINK_UP] = link->figure[LP_LINK_DOWN] = 8 * rate;
  link->source[LP_LINK_RTT] = link->source[LP_LINK_UP] = link->source[LP_LINK_DOWN] = measured;
}

static double message_ms(const lp_link *link, double bytes, double bps) {
  double goodput = bps * (1 - link->figure[LP_LINK_LOSS]);
  return link->figure[LP_LINK_RTT] / 2 + 8 * bytes / goodput * 1e3;
}

double lp_link_up_ms(const lp_link *link, double bytes) {
  return message_ms(link, bytes, link->figure[LP_LINK_UP]);
}

double lp_link_down_ms(const lp_link *link, double bytes) {
  return message_ms(link, bytes, link->figure[LP_LINK_DOWN]);
}

void lp_link_list(lp_buf *out) {
  lp_buf_printf(out, "%-10s %10s %14s %14s  %s\n", "name", "rtt ms", "up", "down", "title");
  for (size_t i = 0; i < lp_embedded_links.name_count; i++) {
    lp_link *link = NULL;
    char up[32], down[32];
    lp_status status = lp_link_load(lp_embedded_links.names[i], &link, NULL);
    assert(status == LP_OK && "an embedded link is broken");
    if (status == LP_OK)
      lp_buf_printf(out, "%-10s %10.4g %14s %14s  %s\n", link->name, link->figure[LP_LINK_RTT],
                    lp_format_rate(link->figure[LP_LINK_UP], up), lp_format_rate(link->figure[LP_LINK_DOWN], down),
                    link->title);
    lp_link_free(link);
  }
}

void lp_link_print(const lp_link *link, lp_buf *out) {
  lp_link copy = *link;
  lp_sheet sheet = sheet_of(&copy);
  lp_sheet_print(&sheet, out);
}
