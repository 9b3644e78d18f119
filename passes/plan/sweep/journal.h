/* The journal of a sweep holds its finished rows, so that an interrupted sweep can continue. */
#ifndef LP_SWEEP_JOURNAL_H
#define LP_SWEEP_JOURNAL_H

#include "passes/plan/sweep/sweep.h"

/* It is not thread-safe: the caller holds a lock. */
typedef struct {
  int fd; /* -1: no journal is kept */
} lp_sweep_journal;
/* Opens or creates the journal and marks the rows that it has. `key` identifies everything that rows depend on. */
LP_MUST_USE lp_status lp_sweep_journal_open(const lp_sweep_options *options, const char *key, lp_sweep_row *rows,
                                            size_t count, size_t *resumed, lp_sweep_journal *out, lp_diag *diag);
/* Writes a row as a line of the journal. Touches nothing but `out`. */
void lp_sweep_journal_line(size_t index, const lp_sweep_row *row, lp_buf *out);
/* Appends the line in one write; false when that failed. */
bool lp_sweep_journal_put(const lp_sweep_journal *journal, const lp_buf *line);
void lp_sweep_journal_close(lp_sweep_journal *journal);

#endif
