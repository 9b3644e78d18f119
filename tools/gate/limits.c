/* The expressions of --fail-if: a recursive descent over comparisons, `not`, `and`, `or` and parentheses. */
#include "tools/gate/gate.h"

#include <math.h>

enum { MAX_NESTING = 64, MAX_VALUES = 16 };

typedef enum { LESS, AT_MOST, MORE, AT_LEAST, EQUAL, OTHER } comparison;
static const char *const signs[] = {"<", "<=", ">", ">=", "==", "!="};

typedef struct {
  const char *option, *text, *at;
  const lp_gate_report *report; /* NULL: only the syntax is read */
  lp_diag *diag;
  int nesting;
  const lp_figure *used[MAX_VALUES]; /* the figures of comparisons that hold */
  size_t used_count;
} reader;

static lp_status read_any(reader *r, bool *holds);

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_in_name(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '.';
}

static lp_loc place(const reader *r) {
  return (lp_loc){.file = r->option, .line = 1, .col = (int32_t)(r->at - r->text) + 1};
}

static void skip_spaces(reader *r) {
  while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n')
    r->at++;
}

/* Reads `word` where it is the next one; `word` is a name or a sign. */
static bool take(reader *r, const char *word) {
  size_t length = strlen(word);
  skip_spaces(r);
  if (strncmp(r->at, word, length) != 0) return false;
  if (is_letter(word[0]) && is_in_name(r->at[length])) return false;
  r->at += length;
  return true;
}

static bool take_sign(reader *r, comparison *out) {
  static const comparison order[] = {AT_MOST, AT_LEAST, EQUAL, OTHER, LESS, MORE}; /* longer signs first */
  for (size_t i = 0; i < LP_COUNT(order); i++)
    if (take(r, signs[order[i]])) {
      *out = order[i];
      return true;
    }
  return false;
}

static bool compare(double a, comparison how, double b) {
  switch (how) {
  case LESS:
    return a < b;
  case AT_MOST:
    return a <= b;
  case MORE:
    return a > b;
  case AT_LEAST:
    return a >= b;
  case EQUAL:
    return a == b;
  case OTHER:
    return a != b;
  }
  return false;
}

static lp_status unknown_figure(const reader *r, lp_loc loc, const char *name) {
  const lp_gate_report *report = r->report;
  const char **names = lp_alloc((report->figures.count + 1) * sizeof *names);
  for (size_t i = 0; i < report->figures.count; i++)
    names[i] = report->figures.data[i].name;
  lp_status status = lp_error_as(LP_USAGE, r->diag, loc, "the report has no figure '%s'", name);
  lp_note_near(r->diag, loc, name, names, report->figures.count);
  free(names);
  return status;
}

/* Sets *figure to the figure that is named at `r`; NULL without a report. */
static lp_status read_figure(reader *r, const lp_figure **figure) {
  char name[96];
  size_t length = 0;
  const lp_loc loc = place(r);
  if (!is_letter(*r->at)) return lp_error_as(LP_USAGE, r->diag, loc, "wanted the name of a figure, such as tpot_ms");
  while (is_in_name(r->at[length]))
    length++;
  (void)snprintf(name, sizeof name, "%.*s", (int)length, r->at);
  r->at += length;
  *figure = NULL;
  if (!r->report) return LP_OK;
  /* The key of reports has its unit last; pipelines write it in the middle, too. */
  *figure = lp_gate_find(r->report, lp_streq(name, "cost_usd_per_mtok") ? "cost_per_mtok_usd" : name);
  return *figure ? LP_OK : unknown_figure(r, loc, name);
}

static lp_status read_comparison(reader *r, bool *holds) {
  const lp_figure *figure;
  comparison how = LESS;
  skip_spaces(r);
  LP_TRY(read_figure(r, &figure));
  if (!take_sign(r, &how)) return lp_error_as(LP_USAGE, r->diag, place(r), "wanted one of < <= > >= == !=");
  skip_spaces(r);
  char *end = NULL;
  double limit = strtod(r->at, &end);
  if (end == r->at || !isfinite(limit)) return lp_error_as(LP_USAGE, r->diag, place(r), "wanted a number");
  r->at = end;
  if (is_in_name(*r->at))
    return lp_error_as(LP_USAGE, r->diag, place(r), "wanted a number without a unit: a figure's name has its unit");
  *holds = figure && compare(figure->value, how, limit);
  if (*holds && r->used_count < MAX_VALUES) r->used[r->used_count++] = figure;
  return LP_OK;
}

static lp_status read_one(reader *r, bool *holds) {
  if (take(r, "not")) {
    if (++r->nesting > MAX_NESTING) return lp_error_as(LP_USAGE, r->diag, place(r), "it nests too deep");
    LP_TRY(read_one(r, holds));
    r->nesting--;
    *holds = !*holds;
    return LP_OK;
  }
  if (!take(r, "(")) return read_comparison(r, holds);
  if (++r->nesting > MAX_NESTING) return lp_error_as(LP_USAGE, r->diag, place(r), "it nests too deep");
  LP_TRY(read_any(r, holds));
  r->nesting--;
  skip_spaces(r);
  return take(r, ")") ? LP_OK : lp_error_as(LP_USAGE, r->diag, place(r), "wanted ')'");
}

static lp_status read_all(reader *r, bool *holds) {
  LP_TRY(read_one(r, holds));
  while (take(r, "and")) {
    bool next = false;
    LP_TRY(read_one(r, &next));
    *holds = *holds && next;
  }
  return LP_OK;
}

static lp_status read_any(reader *r, bool *holds) {
  LP_TRY(read_all(r, holds));
  while (take(r, "or")) {
    bool next = false;
    LP_TRY(read_all(r, &next));
    *holds = *holds || next;
  }
  return LP_OK;
}

static lp_status read_whole(reader *r, bool *holds) {
  LP_TRY(read_any(r, holds));
  skip_spaces(r);
  return *r->at ? lp_error_as(LP_USAGE, r->diag, place(r), "wanted 'and', 'or' or the end") : LP_OK;
}

lp_status lp_limit_check_syntax(const char *option, const char *expression, lp_diag *diag) {
  bool holds = false;
  return read_whole(&(reader){.option = option, .text = expression, .at = expression, .diag = diag}, &holds);
}

lp_status lp_limit_check(const char *option, const char *expression, const lp_gate_report *report, lp_diag *diag) {
  reader r = {.option = option, .text = expression, .at = expression, .report = report, .diag = diag};
  bool holds = false;
  LP_TRY(read_whole(&r, &holds));
  if (!holds) return LP_OK;
  lp_status status = lp_error_as(LP_MISMATCH, diag, LP_LOC_FILE(option), "the figures satisfy '%s'", expression);
  char value[32];
  for (size_t i = 0; i < r.used_count; i++)
    lp_note(diag, LP_LOC_FILE(option), "%s is %s", r.used[i]->name,
            lp_gate_format(r.used[i]->name, r.used[i]->value, value));
  return status;
}
