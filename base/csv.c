/* Tables of comma-separated values. */
#include "base/csv.h"
#include "base/base.h"
#include "base/file.h"
#include "base/units.h"

enum { MOST_FIELDS = 4096 };

typedef LP_VEC(const char *) texts;
typedef LP_VEC(int32_t) places;

typedef struct {
  lp_csv *csv;
  lp_arena *arena;
  lp_diag *diag;
  texts fields;
  places cols, lines;
  int32_t line;
  char separator;
} reader;

/* Splits a line and appends the fields without the blanks around them. */
static lp_status split(reader *r, char *text) {
  int32_t count = 0;
  for (char *at = text, *next; at; at = next) {
    next = strchr(at, r->separator);
    if (next) *next++ = 0;
    char *end = at + strlen(at);
    at += strspn(at, " \t");
    while (end > at && strchr(" \t\r", end[-1]))
      end--;
    *end = 0;
    lp_loc loc = {.file = r->csv->file, .line = r->line, .col = (int32_t)(at - text) + 1};
    if (*at == '"') return lp_error(r->diag, loc, "quoted fields are not read");
    if (count++ == MOST_FIELDS) return lp_error(r->diag, loc, "has more than %d fields", MOST_FIELDS);
    lp_vec_push(&r->fields, at);
    lp_vec_push(&r->cols, loc.col);
  }
  return LP_OK;
}

static lp_status read_header(reader *r, char *text) {
  r->separator = strchr(text, ';') && !strchr(text, ',') ? ';' : ',';
  LP_TRY(split(r, text));
  lp_csv *csv = r->csv;
  csv->columns = (int32_t)r->fields.count;
  csv->name = lp_arena_copy(r->arena, r->fields.data, r->fields.count * sizeof *r->fields.data);
  for (int32_t c = 0; c < csv->columns; c++) {
    if (lp_csv_column(csv, csv->name[c]) == c) continue;
    lp_loc loc = {.file = csv->file, .line = r->line, .col = r->cols.data[c]};
    return lp_error(r->diag, loc, "the column '%s' occurs twice", csv->name[c]);
  }
  r->fields.count = r->cols.count = 0;
  return LP_OK;
}

static lp_status read_line(reader *r, char *text) {
  if (text[strspn(text, " \t\r")] == 0) return LP_OK;
  if (!r->csv->name) return read_header(r, text);
  size_t before = r->fields.count;
  LP_TRY(split(r, text));
  lp_loc loc = {.file = r->csv->file, .line = r->line};
  if (r->fields.count - before != (size_t)r->csv->columns)
    return lp_error(r->diag, loc, "has %zu fields, but the header has %d", r->fields.count - before, r->csv->columns);
  lp_vec_push(&r->lines, r->line);
  r->csv->rows++;
  return LP_OK;
}

static lp_status parse(const char *file, const char *text, size_t size, lp_arena *arena, lp_csv *out, lp_diag *diag) {
  *out = (lp_csv){.file = file};
  reader r = {.csv = out, .arena = arena, .diag = diag};
  char *copy = lp_arena_strndup(arena, text, size);
  lp_status status = LP_OK;
  if (strlen(copy) != size) status = lp_error(diag, LP_LOC_FILE(file), "holds a NUL character");
  for (char *line = copy, *next = NULL; line && status == LP_OK; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    r.line++;
    status = read_line(&r, line);
  }
  if (status == LP_OK && !out->name) status = lp_error(diag, LP_LOC_FILE(file), "holds no table");
  if (status == LP_OK && out->rows > 0) {
    out->field = lp_arena_copy(arena, r.fields.data, r.fields.count * sizeof *r.fields.data);
    out->col = lp_arena_copy(arena, r.cols.data, r.cols.count * sizeof *r.cols.data);
    out->line = lp_arena_copy(arena, r.lines.data, r.lines.count * sizeof *r.lines.data);
  }
  lp_vec_free(&r.fields);
  lp_vec_free(&r.cols);
  lp_vec_free(&r.lines);
  return status;
}

lp_status lp_csv_read(const char *path, lp_arena *arena, lp_csv *out, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *text = NULL;
  size_t size = 0;
  LP_TRY(lp_file_read(path, &text, &size, diag));
  return parse(path, text, size, arena, out, diag);
}

int32_t lp_csv_column(const lp_csv *csv, const char *name) {
  for (int32_t c = 0; c < csv->columns; c++)
    if (lp_streq(csv->name[c], name)) return c;
  return -1;
}

const char *lp_csv_at(const lp_csv *csv, size_t row, int32_t column) {
  return csv->field[row * (size_t)csv->columns + (size_t)column];
}

lp_loc lp_csv_loc(const lp_csv *csv, size_t row, int32_t column) {
  return (lp_loc){
      .file = csv->file, .line = csv->line[row], .col = csv->col[row * (size_t)csv->columns + (size_t)column]};
}

lp_status lp_csv_number(const lp_csv *csv, size_t row, int32_t column, double least, double most, double *out,
                        lp_diag *diag) {
  const char *text = lp_csv_at(csv, row, column);
  if (lp_parse_signed(text, out, NULL, LP_LOC_NONE) == LP_OK && *out >= least && *out <= most) return LP_OK;
  return lp_error(diag, lp_csv_loc(csv, row, column), "'%s' is '%s', not a number from %g to %g", csv->name[column],
                  text, least, most);
}
