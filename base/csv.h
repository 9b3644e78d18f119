/* Tables of comma-separated values. */
#pragma once

#include "base/base.h"

/* A header and rows of as many fields. Where the header has no comma, semicolons separate them. Blanks around fields
 * are removed, empty lines are skipped, and quoted fields are an error. Everything lives in the arena of the read. */
typedef struct {
  const char *file;
  int32_t columns;
  const char **name; /* [columns] */
  size_t rows;
  const char **field; /* [rows][columns] */
  int32_t *col;       /* [rows][columns] where it begins in its line */
  int32_t *line;      /* [rows] */
} lp_csv;

/* Errors are diagnostics at the line and column of `path`. */
LP_MUST_USE lp_status lp_csv_read(const char *path, lp_arena *arena, lp_csv *out, lp_diag *diag);
int32_t lp_csv_column(const lp_csv *csv, const char *name); /* -1: no such column */
/* The text of a field, and where it is. */
const char *lp_csv_at(const lp_csv *csv, size_t row, int32_t column);
lp_loc lp_csv_loc(const lp_csv *csv, size_t row, int32_t column);
/* Reads a field as a number from `least` to `most`; anything else is an error at the field. */
LP_MUST_USE lp_status lp_csv_number(const lp_csv *csv, size_t row, int32_t column, double least, double most,
                                    double *out, lp_diag *diag);
