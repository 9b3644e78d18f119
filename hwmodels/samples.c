/* Tables of measured operators: CSV in and out. */
#include "base/file.h"
#include "base/units.h"
#include "hwmodels/hwmodels.h"

/* Columns: the sizes, then these. */
enum { COL_OP = LP_HW_SIZES, COL_DTYPE, COL_TIME, COL_PASS, COLUMNS, MOST_FIELDS = 64 };

static const char *column_name(size_t column) {
  static const char *const others[] = {"op", "dtype", "time_us", "pass_bytes"};
  return column < LP_HW_SIZES ? lp_hw_size_names[column] : others[column - LP_HW_SIZES];
}

typedef struct {
  const char *file;
  lp_diag *diag;
  int32_t line;              /* of the row being read */
  int32_t field_of[COLUMNS]; /* the field that holds the column; -1: none */
  char *field[MOST_FIELDS];  /* of the row */
  int32_t col[MOST_FIELDS];  /* of the first character of each */
  int32_t field_count, header_count;
} table;

static lp_loc at_line(const table *t) {
  return (lp_loc){.file = t->file, .line = t->line};
}

static lp_loc at_field(const table *t, int32_t field) {
  return (lp_loc){.file = t->file, .line = t->line, .col = t->col[field]};
}

/* Splits the line at commas and removes blanks around the fields. */
static lp_status split(table *t, char *line) {
  t->field_count = 0;
  char *start = line;
  for (char *at = line; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    if (t->field_count == MOST_FIELDS) return lp_error(t->diag, at_line(t), "has more than %d fields", MOST_FIELDS);
    t->field[t->field_count++] = at;
  }
  for (int32_t i = 0; i < t->field_count; i++) {
    char *at = t->field[i] + strspn(t->field[i], " \t"), *end = at + strcspn(at, ",\r");
    while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
      end--;
    t->field[i] = at;
    t->col[i] = (int32_t)(at - start) + 1;
    *end = 0;
  }
  return LP_OK;
}

static lp_status lacks_column(const table *t, size_t column, const char *why) {
  lp_loc header = {.file = t->file, .line = 1};
  return lp_error(t->diag, header, "the table lacks the column '%s'%s", column_name(column), why);
}

static lp_status read_header(table *t, char *line) {
  LP_TRY(split(t, line));
  t->header_count = t->field_count;
  for (size_t c = 0; c < COLUMNS; c++) {
    t->field_of[c] = -1;
    for (int32_t i = 0; i < t->field_count; i++) {
      if (!lp_streq(t->field[i], column_name(c))) continue;
      if (t->field_of[c] >= 0) return lp_error(t->diag, at_field(t, i), "the column '%s' occurs twice", t->field[i]);
      t->field_of[c] = i;
    }
    if (t->field_of[c] >= 0 || (c != COL_OP && c != COL_TIME)) continue;
    lp_status status = lacks_column(t, c, "");
    lp_note_near(t->diag, at_line(t), column_name(c), (const char *const *)t->field, (size_t)t->field_count);
    return status;
  }
  return LP_OK;
}

static lp_status read_size(table *t, lp_hw_sample *sample, size_t column) {
  int32_t field = t->field_of[column];
  const char *op = lp_hw_op_name(sample->op);
  if (field < 0) {
    lp_status status = lacks_column(t, column, "");
    lp_note(t->diag, at_line(t), "'%s' needs it", op);
    return status;
  }
  if (!*t->field[field])
    return lp_error(t->diag, at_field(t, field), "'%s' is empty, but '%s' needs it", column_name(column), op);
  int64_t value = 0;
  if (lp_parse_i64(t->field[field], 1, INT64_C(1) << 40, &value, NULL, LP_LOC_NONE) != LP_OK)
    return lp_error(t->diag, at_field(t, field), "'%s' is '%s', not a whole number from 1 to 2^40", column_name(column),
                    t->field[field]);
  lp_hw_op_set_size(&sample->facts, column, value);
  return LP_OK;
}

static lp_status read_pass_bytes(table *t, lp_hw_sample *sample) {
  int32_t field = t->field_of[COL_PASS];
  if (field < 0 || !*t->field[field]) return LP_OK;
  double *bytes = &sample->facts.pass_bytes;
  if (lp_parse_double(t->field[field], bytes, NULL, LP_LOC_NONE) == LP_OK && *bytes > 0) return LP_OK;
  return lp_error(t->diag, at_field(t, field), "'pass_bytes' is '%s', not a number of bytes above 0", t->field[field]);
}

static lp_status read_row(table *t, char *line, lp_hw_samples *out) {
  LP_TRY(split(t, line));
  if (t->field_count != t->header_count)
    return lp_error(t->diag, at_line(t), "has %d fields, but the header has %d", t->field_count, t->header_count);
  lp_hw_sample sample = {.facts = {.dtype = LP_F16}};
  int32_t op = t->field_of[COL_OP], dtype = t->field_of[COL_DTYPE], time = t->field_of[COL_TIME];
  LP_TRY(lp_hw_op_parse(t->field[op], &sample.op, t->diag, at_field(t, op)));
  if (sample.op == LP_HW_ANY) return lp_error(t->diag, at_field(t, op), "'any' is not an operator");
  if (dtype >= 0 && *t->field[dtype] && !lp_dtype_parse(t->field[dtype], &sample.facts.dtype))
    return lp_error(t->diag, at_field(t, dtype), "'dtype' is '%s', not a type such as f16", t->field[dtype]);
  for (size_t c = 0; c < LP_HW_SIZES; c++)
    if (lp_hw_op_needs(sample.op, c)) LP_TRY(read_size(t, &sample, c));
  if (lp_parse_double(t->field[time], &sample.time_us, NULL, LP_LOC_NONE) != LP_OK || sample.time_us <= 0)
    return lp_error(t->diag, at_field(t, time), "'time_us' is '%s', not a number of microseconds above 0",
                    t->field[time]);
  LP_TRY(read_pass_bytes(t, &sample));
  if (sample.op == LP_HW_ATTENTION && sample.facts.heads % sample.facts.kv_heads)
    return lp_error(t->diag, at_line(t), "'kv_heads' does not divide 'heads'");
  lp_hw_op_facts(sample.op, &sample.facts);
  lp_vec_push(out, sample);
  return LP_OK;
}

lp_status lp_hw_samples_parse(const char *file, const char *text, size_t size, lp_hw_samples *out, lp_diag *diag) {
  table t = {.file = file, .diag = diag};
  LP_OWNED(lp_free_at) char *copy = lp_alloc(size + 1);
  memcpy(copy, text, size);
  lp_status status = LP_OK;
  if (strlen(copy) != size) status = lp_error(diag, LP_LOC_FILE(file), "holds a NUL character");
  for (char *line = copy, *next = NULL; line && status == LP_OK; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    t.line++;
    if (t.line == 1)
      status = read_header(&t, line);
    else if (line[strspn(line, " \t\r")])
      status = read_row(&t, line, out);
  }
  if (status == LP_OK && out->count == 0) status = lp_error(diag, LP_LOC_FILE(file), "holds no measurement");
  return status;
}

lp_status lp_hw_samples_read(const char *path, lp_hw_samples *out, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *text = NULL;
  size_t size = 0;
  LP_TRY(lp_file_read(path, &text, &size, diag));
  return lp_hw_samples_parse(path, text, size, out, diag);
}

void lp_hw_samples_print(const lp_hw_samples *samples, lp_buf *out) {
  bool passes = false;
  for (size_t i = 0; i < samples->count; i++)
    passes = passes || samples->data[i].facts.pass_bytes > 0;
  lp_buf_printf(out, "op,m,n,k,batch,q_len,kv_len,heads,kv_heads,head_dim,dtype,time_us%s\n",
                passes ? ",pass_bytes" : "");
  LP_FOR_VEC(const lp_hw_sample, sample, samples) {
    lp_buf_printf(out, "%s,", lp_hw_op_name(sample->op));
    for (size_t c = 0; c < LP_HW_SIZES; c++) {
      if (lp_hw_op_needs(sample->op, c)) lp_buf_printf(out, "%" PRId64, lp_hw_op_size(&sample->facts, c));
      lp_buf_puts(out, ",");
    }
    lp_buf_printf(out, "%s,%.6g", lp_dtype_name(sample->facts.dtype), sample->time_us);
    if (sample->facts.pass_bytes > 0)
      lp_buf_printf(out, ",%.10g", sample->facts.pass_bytes);
    else if (passes)
      lp_buf_puts(out, ",");
    lp_buf_puts(out, "\n");
  }
}
