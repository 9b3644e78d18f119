/* What the files of sweeps share. */
#ifndef LP_SWEEP_INTERNAL_H
#define LP_SWEEP_INTERNAL_H

#include "passes/plan/sweep/sweep.h"

#include <stdio.h>

/* A journal of finished rows (journal.c). Not shared between threads: the caller locks. */
typedef struct {
  int fd; /* -1: none is kept */
} lp_sweep_journal;
/* Opens or creates the journal and marks the rows that it has. `key` names everything that rows depend on. */
LP_MUST_USE lp_status lp_sweep_journal_open(const lp_sweep_options *options, const char *key, lp_sweep_row *rows,
                                            size_t count, size_t *resumed, lp_sweep_journal *out, lp_diag *diag);
/* Writes a row as a line of the journal. Touches nothing but `out`. */
void lp_sweep_journal_line(size_t index, const lp_sweep_row *row, lp_buf *out);
/* Appends the line in one write; false when that failed. */
bool lp_sweep_journal_put(const lp_sweep_journal *journal, const lp_buf *line);
void lp_sweep_journal_close(lp_sweep_journal *journal);

/* Marks the rows of each workload that no other feasible row beats in both measures (front.c). */
void lp_sweep_mark_fronts(const lp_sweep_spec *spec, lp_sweep_result *result);
/* The rows of a front of a workload, cheapest first; returns how many. */
size_t lp_sweep_front(const lp_sweep_spec *spec, const lp_sweep_result *result, size_t workload, int which,
                      size_t *rows);

void lp_sweep_csv(const lp_sweep_spec *spec, const lp_sweep_result *result, lp_buf *out);
void lp_sweep_json(const lp_sweep_spec *spec, const lp_sweep_result *result, lp_buf *out);
void lp_sweep_html(const lp_sweep_spec *spec, const lp_sweep_result *result, lp_buf *out);

#endif
