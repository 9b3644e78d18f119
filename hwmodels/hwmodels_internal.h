/* What the files of this folder share: a sheet of figures, read from YAML or from "name,key=value" and printed. */
#ifndef LP_HWMODELS_INTERNAL_H
#define LP_HWMODELS_INTERNAL_H

#include "hwmodels/hwmodels.h"

/* ---- embedded files (generated) ---- */

typedef struct {
  const char *name;
  const unsigned char *data;
  size_t size;
} lp_embedded;

typedef struct {
  const lp_embedded *entry;
  size_t count;
  const char *const *names; /* sorted; may hold names that have no file */
  size_t name_count;
} lp_embedded_table;

extern const lp_embedded_table lp_embedded_machines, lp_embedded_links;

/* ---- sheets ---- */

typedef enum { LP_IN_FLOPS, LP_IN_BYTES_PER_S, LP_IN_BYTES, LP_IN_MS, LP_IN_BPS, LP_IN_W, LP_IN_NUMBER } lp_figure_unit;

/* A figure that a sheet may hold. */
typedef struct {
  const char *key;
  lp_figure_unit unit;
  double least, most; /* both allowed */
  double otherwise;   /* when it is not given; negative: it must be */
  const char *meaning;
} lp_figure_info;

/* A kind of sheet: "machine" or "link". */
typedef struct {
  const char *what; /* also the key of the name */
  bool has_kind;    /* `kind: gpu` or `cpu` is wanted */
  const lp_figure_info *info;
  size_t count;
  const lp_embedded_table *embedded;
} lp_sheet_form;

/* Views the parts of a machine or a link; owns nothing. */
typedef struct {
  const lp_sheet_form *form;
  lp_arena *arena;
  const char *name, *title, *kind;
  double *figure;      /* [form->count] */
  const char **source; /* [form->count] */
} lp_sheet;

/* sheet.c */
/* Fills figures not given with their defaults, or reports the first that must be given. */
LP_MUST_USE lp_status lp_sheet_complete(lp_sheet *sheet, const bool *given, lp_diag *diag, lp_loc loc);
/* Reads `text` as the figure `index` and checks its range. */
LP_MUST_USE lp_status lp_sheet_set(lp_sheet *sheet, size_t index, const char *text, lp_diag *diag, lp_loc loc);
/* Fills a sheet from what a command line names: see lp_hw_load. */
LP_MUST_USE lp_status lp_sheet_load(lp_sheet *sheet, const char *text, lp_diag *diag);
/* "key=value,key=value" over figures that are there. */
LP_MUST_USE lp_status lp_sheet_override(lp_sheet *sheet, const char *text, bool *given, lp_diag *diag);
/* Index of the figure `key`, or form->count. */
size_t lp_sheet_find(const lp_sheet_form *form, const char *key);
void lp_sheet_print(const lp_sheet *sheet, lp_buf *out);

/* sheet_yaml.c */
LP_MUST_USE lp_status lp_sheet_read_yaml(lp_sheet *sheet, const char *file, const void *text, size_t size,
                                         lp_diag *diag);

#endif
