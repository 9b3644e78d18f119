/* Links that vary: their states, the state for which plans are made, and traces. */
#include "base/file.h"
#include "base/number.h"
#include "base/path.h"
#include "hwmodels/hwmodels_internal.h"

#include <math.h>

const double lp_link_quantile_default = 0.95;

lp_link *lp_link_create(void) {
  lp_link *link = lp_alloc(sizeof *link);
  link->arena = lp_arena_create();
  return link;
}

void lp_link_free(lp_link *link) {
  if (!link) return;
  lp_arena_free(link->arena);
  free(link);
}

/* ---- quantiles --------------------------------------------------------------------------------------------------- */

static double figure_of(const lp_link_state *state, lp_link_figure figure) {
  return figure == LP_LINK_RTT ? state->rtt_ms : figure == LP_LINK_UP ? state->up_bps : state->down_bps;
}

/* Returns the values of a figure in ascending order. Release with free(). */
static double *sort_figure(const lp_link *link, lp_link_figure figure) {
  double *values = lp_alloc((size_t)link->state_count * sizeof *values);
  for (int32_t i = 0; i < link->state_count; i++)
    values[i] = figure_of(&link->state[i], figure);
  qsort(values, (size_t)link->state_count, sizeof *values, lp_compare_doubles);
  return values;
}

double lp_link_state_quantile(const lp_link *link, lp_link_figure figure, double share) {
  LP_OWNED(lp_free_at) double *values = sort_figure(link, figure);
  return values[(size_t)(share * (double)(link->state_count - 1) + 0.5)];
}

static int32_t count_better(const lp_link *link, const lp_link_state *than) {
  int32_t count = 0;
  LP_FOR_EACH(const lp_link_state, s, link->state, link->state_count)
    count += s->rtt_ms <= than->rtt_ms && s->up_bps >= than->up_bps && s->down_bps >= than->down_bps;
  return count;
}

/* Takes each figure at the same rank of its own order, the best rank for which enough states are as good in all. */
bool lp_link_plan_for(lp_link *link, double quantile) {
  const int32_t count = link->state_count, wanted = (int32_t)ceil(quantile * (double)count - 1e-9);
  double *rtt = sort_figure(link, LP_LINK_RTT), *up = sort_figure(link, LP_LINK_UP),
         *down = sort_figure(link, LP_LINK_DOWN);
  lp_link_state state = {0};
  for (int32_t rank = wanted > 0 ? wanted : 1; rank <= count; rank++) {
    state = (lp_link_state){rtt[rank - 1], up[count - rank], down[count - rank]};
    if (count_better(link, &state) >= wanted) break;
  }
  free(rtt);
  free(up);
  free(down);
  if (state.up_bps <= 0 || state.down_bps <= 0) return false;
  link->figure[LP_LINK_RTT] = state.rtt_ms;
  link->figure[LP_LINK_UP] = state.up_bps;
  link->figure[LP_LINK_DOWN] = state.down_bps;
  link->quantile = quantile;
  return true;
}

lp_link lp_link_in_state(const lp_link *link, int32_t index) {
  const lp_link_state *state = &link->state[index];
  lp_link result = *link;
  result.figure[LP_LINK_RTT] = state->rtt_ms;
  result.figure[LP_LINK_UP] = state->up_bps;
  result.figure[LP_LINK_DOWN] = state->down_bps;
  result.state = NULL;
  result.state_count = 0;
  return result;
}

lp_link *lp_link_from_states(const char *name, const char *title, const char *source, const lp_link_state *states,
                             int32_t count) {
  lp_link *link = lp_link_create();
  lp_link_state *copy = LP_NEW_ARRAY(link->arena, lp_link_state, count);
  memcpy(copy, states, (size_t)count * sizeof *copy);
  link->name = lp_arena_strdup(link->arena, name);
  link->title = lp_arena_strdup(link->arena, title);
  link->state = copy;
  link->state_count = count;
  for (int i = 0; i <= LP_LINK_DOWN; i++)
    link->source[i] = lp_arena_strdup(link->arena, source);
  if (lp_link_plan_for(link, lp_link_quantile_default)) return link;
  lp_link_free(link);
  return NULL;
}

/* ---- traces ------------------------------------------------------------------------------------------------------ */

enum { COLUMNS = 3, MOST_STATES = 100000 };
static const char *const columns[COLUMNS] = {"rtt_ms", "up_bps", "down_bps"};

typedef struct {
  const char *path;
  int line;
  int32_t at[COLUMNS]; /* positions of the columns, -1: none */
  LP_VEC(lp_link_state) states;
  lp_diag *diag;
} trace;

static lp_loc here(const trace *t) {
  return (lp_loc){.file = t->path, .line = t->line};
}

static lp_status read_header(trace *t, char *line) {
  for (int i = 0; i < COLUMNS; i++)
    t->at[i] = -1;
  int32_t index = 0;
  for (char *field = line, *next; field; field = next, index++) {
    if ((next = strchr(field, ','))) *next++ = 0;
    for (int i = 0; i < COLUMNS; i++)
      if (lp_streq(field, columns[i])) t->at[i] = index;
  }
  for (int i = 0; i < COLUMNS; i++)
    if (t->at[i] < 0)
      return lp_error(t->diag, here(t), "the trace lacks the column '%s': wanted rtt_ms, up_bps and down_bps",
                      columns[i]);
  return LP_OK;
}

static lp_status read_row(trace *t, char *line) {
  double value[COLUMNS] = {-1, -1, -1};
  int32_t index = 0;
  for (char *field = line, *next; field; field = next, index++) {
    if ((next = strchr(field, ','))) *next++ = 0;
    for (int i = 0; i < COLUMNS; i++) {
      if (t->at[i] != index) continue;
      char *end = NULL;
      value[i] = strtod(field, &end);
      if (end == field || *end || !isfinite(value[i]) || value[i] < 0)
        return lp_error(t->diag, here(t), "'%s' is '%s', not a number from 0 on", columns[i], field);
    }
  }
  for (int i = 0; i < COLUMNS; i++)
    if (value[i] < 0) return lp_error(t->diag, here(t), "the row lacks '%s'", columns[i]);
  if (t->states.count == MOST_STATES) return lp_error(t->diag, here(t), "a trace has at most %d rows", MOST_STATES);
  lp_vec_push(&t->states, ((lp_link_state){value[0], value[1], value[2]}));
  return LP_OK;
}

static lp_status read_rows(trace *t, char *text) {
  for (char *line = text, *next; line; line = next) {
    if ((next = strchr(line, '\n'))) *next++ = 0;
    t->line++;
    line[strcspn(line, "\r")] = 0;
    if (*line) LP_TRY(t->line == 1 ? read_header(t, line) : read_row(t, line));
  }
  return t->states.count > 0 ? LP_OK : lp_error(t->diag, LP_LOC_FILE(t->path), "the trace has no rows");
}

lp_status lp_link_load_trace(const char *path, lp_link **out, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *text = NULL;
  size_t size = 0;
  trace t = {.path = path, .diag = diag};
  *out = NULL;
  LP_TRY(lp_file_read(path, &text, &size, diag));
  lp_status status = read_rows(&t, text);
  if (status == LP_OK) {
    *out = lp_link_from_states(lp_path_base(path), "a trace", path, t.states.data, (int32_t)t.states.count);
    if (!*out)
      status = lp_error(diag, LP_LOC_FILE(path), "nothing passes in more than %g %% of the rows",
                        100 * (1 - lp_link_quantile_default));
  }
  lp_vec_free(&t.states);
  return status;
}
