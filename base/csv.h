/* Tables of comma-separated values. */
#ifndef LP_CSV_H
#define LP_CSV_H

#include "base/base.h"

/* Comma-separated values: a header, then rows of as many fields, blanks around fields taken off; lines that are empty are
 * left out. Fields are not quoted. Lives in the arena it was read into. */
typedef struct {
  const char *file;
  int32_t columns;
  const char **name; /* [columns] */
  size_t rows;
  const char **field; /* [rows][columns] */
  int32_t *col;       /* [rows][columns] where it begins in its line */
  int32_t *line;      /* [rows] */
} lp_csv;

LP_MUST_USE lp_status lp_csv_read(const char *path, lp_arena *arena, lp_csv *out, lp_diag *diag);
int32_t lp_csv_column(const lp_csv *csv, const char *name); /* -1: none of that name */
const char *lp_csv_at(const lp_csv *csv, size_t row, int32_t column);
lp_loc lp_csv_loc(const lp_csv *csv, size_t row, int32_t column);
/* Of a field that must be such a number. */
LP_MUST_USE lp_status lp_csv_number(const lp_csv *csv, size_t row, int32_t column, double least, double most,
                                    double *out, lp_diag *diag);

#endif
