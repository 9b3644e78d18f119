/* Interconnects: what ranks join their parts over. Their sheet, loading, the time of a gather, and the names of those
 * that a machine has. */
#include "hwmodels/hwmodels_internal.h"

static const lp_figure_info infos[LP_INTERCONNECT_FIGURE_COUNT] = {
    [LP_INTERCONNECT_ALPHA] = {"alpha", LP_IN_MS, 0, 1e6, -1, "the time that a collective takes besides its bytes"},
    [LP_INTERCONNECT_STEP] = {"step", LP_IN_MS, 0, 1e6, 0, "what each rank after the first adds to that time"},
    [LP_INTERCONNECT_BETA] = {"beta", LP_IN_BYTES_PER_S, 1, 1e18, -1, "the bandwidth of a rank, one way"},
};

static const lp_sheet_form form = {.what = "interconnect",
                                   .info = infos,
                                   .count = LP_INTERCONNECT_FIGURE_COUNT,
                                   .embedded = &lp_embedded_interconnects};

static lp_sheet sheet_of(lp_interconnect *interconnect) {
  return (lp_sheet){
      .form = &form, .arena = interconnect->arena, .figure = interconnect->figure, .source = interconnect->source};
}

static lp_interconnect *create(void) {
  lp_interconnect *interconnect = lp_alloc(sizeof *interconnect);
  interconnect->arena = lp_arena_create();
  return interconnect;
}

void lp_interconnect_free(lp_interconnect *interconnect) {
  if (!interconnect) return;
  lp_arena_free(interconnect->arena);
  free(interconnect);
}

/* ---- what a machine has ------------------------------------------------------------------------------------------ */

/* The next word of a list separated by spaces, in `arena`; NULL at its end. */
static char *next_word(lp_arena *arena, const char **text) {
  *text += strspn(*text, " ");
  const size_t length = strcspn(*text, " ");
  const char *word = *text;
  *text += length;
  return length ? lp_arena_strndup(arena, word, length) : NULL;
}

lp_status lp_interconnects_read(void *user, lp_yaml *yaml, const lp_yaml_node *node) {
  lp_machine *machine = user;
  LP_TRY(lp_yaml_text(yaml, node, "interconnects", &machine->interconnects));
  const char *rest = machine->interconnects;
  for (char *word; (word = next_word(yaml->arena, &rest));) {
    bool known = false;
    for (size_t i = 0; i < lp_embedded_interconnects.name_count; i++)
      known = known || lp_streq(lp_embedded_interconnects.names[i], word);
    if (known) continue;
    const lp_loc loc = lp_yaml_loc(yaml, node);
    return lp_error_near(yaml->diag, loc, word, lp_embedded_interconnects.names, lp_embedded_interconnects.name_count,
                         "unknown interconnect '%.60s'", word);
  }
  return LP_OK;
}

/* The first interconnect of the machine with a name that begins so, "" being any; NULL: it has none. */
static const char *find_own(const lp_machine *machine, const char *beginning, lp_arena *arena) {
  const char *rest = machine->interconnects ? machine->interconnects : "";
  for (char *word; (word = next_word(arena, &rest));)
    if (strncmp(word, beginning, strlen(beginning)) == 0) return word;
  return NULL;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* Messages between the processes of a machine, as its profile measured them. */
static void take_messages(lp_interconnect *interconnect, const lp_machine *machine) {
  static const char measured[] = "measured by the profile of this machine";
  interconnect->name = "processes";
  interconnect->title = "messages between processes of one machine";
  interconnect->figure[LP_INTERCONNECT_STEP] = machine->figure[LP_HW_MESSAGE];
  interconnect->figure[LP_INTERCONNECT_BETA] = machine->figure[LP_HW_MESSAGE_BANDWIDTH];
  for (int i = 0; i < LP_INTERCONNECT_FIGURE_COUNT; i++)
    interconnect->source[i] = measured;
}

/* "alpha=5us,beta=100GB/s". */
static lp_status read_figures(lp_sheet *sheet, const char *text, lp_diag *diag, lp_loc loc) {
  bool given[LP_INTERCONNECT_FIGURE_COUNT] = {0};
  sheet->name = lp_arena_strdup(sheet->arena, text);
  sheet->title = "given on the command line";
  LP_TRY(lp_sheet_override(sheet, text, given, diag, loc));
  return lp_sheet_complete(sheet, given, diag, loc);
}

/* "nvlink" and "pcie" are those of the machine; other texts are names and paths. */
static lp_status read_named(lp_sheet *sheet, const char *text, const lp_machine *machine, lp_diag *diag, lp_loc loc) {
  static const char *const kinds[] = {"nvlink", "pcie"};
  const size_t length = strcspn(text, ",");
  for (size_t i = 0; i < LP_COUNT(kinds); i++) {
    if (length != strlen(kinds[i]) || strncmp(text, kinds[i], length) != 0) continue;
    const char *own = find_own(machine, kinds[i], sheet->arena);
    if (!own)
      return lp_error(diag, loc, "the file of '%s' names no %s; it has %s", machine->name, kinds[i],
                      machine->interconnects ? machine->interconnects : "no interconnect");
    text = lp_arena_format(sheet->arena, "%s%s", own, text + length);
  }
  return lp_sheet_load(sheet, text, diag);
}

lp_status lp_interconnect_load(const char *text, const lp_machine *machine, lp_interconnect **out, lp_diag *diag) {
  lp_interconnect *interconnect = create();
  lp_sheet sheet = sheet_of(interconnect);
  const lp_loc loc = LP_LOC_FILE("--interconnect");
  const bool has_messages = machine->figure[LP_HW_MESSAGE_BANDWIDTH] > 0;
  lp_status status = LP_OK;
  *out = NULL;
  if (!text) text = find_own(machine, "", interconnect->arena);
  if (!text && has_messages)
    take_messages(interconnect, machine);
  else if (text && strcspn(text, "=") < strcspn(text, ",/"))
    status = read_figures(&sheet, text, diag, loc);
  else
    status = read_named(&sheet, text ? text : "ethernet", machine, diag, loc);
  if (status != LP_OK) {
    lp_interconnect_free(interconnect);
    return status;
  }
  if (sheet.name) interconnect->name = sheet.name;
  if (sheet.title) interconnect->title = sheet.title;
  *out = interconnect;
  return LP_OK;
}

double lp_interconnect_gather_ms(const lp_interconnect *interconnect, int64_t ranks, double bytes) {
  const double *figure = interconnect->figure, others = (double)ranks - 1;
  if (ranks < 2) return 0;
  return figure[LP_INTERCONNECT_ALPHA] + others * figure[LP_INTERCONNECT_STEP] +
         bytes * others / (double)ranks / figure[LP_INTERCONNECT_BETA] * 1e3;
}
