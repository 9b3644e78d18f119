/* The journal of a sweep holds its finished rows, so that an interrupted sweep can continue. */
#pragma once

#include "passes/plan/sweep/sweep.h"

enum { LP_SWEEP_VERSION_SIZE = 32 };

/* The first line: what the rows depend on, and which rows the journal is for. */
typedef struct {
  char version[LP_SWEEP_VERSION_SIZE]; /* of llmpart */
  char key[65];
  lp_sweep_shard shard; /* 1/1: the whole sweep */
} lp_sweep_heading;
/* Reads the first line; returns what follows it, or NULL when this is not a journal. */
const char *lp_sweep_journal_heading(const char *text, lp_sweep_heading *out);
/* Is this a journal, of whichever version? */
bool lp_sweep_journal_is(const char *text);
/* Reads a line of a row up to its newline; false when it is none, or the row is not below `rows`. */
bool lp_sweep_journal_parse(const char *line, size_t rows, size_t *index, lp_sweep_row *out);

/* It is not thread-safe: the caller holds a lock. */
typedef struct {
  int fd; /* -1: no journal is kept */
} lp_sweep_journal;
/* Opens or creates the journal and marks the rows that it has. `key` identifies everything that rows depend on. The
 * journal of another sweep is replaced, that of another shard of this sweep is refused. */
LP_MUST_USE lp_status lp_sweep_journal_open(const lp_sweep_options *options, const char *key, lp_sweep_row *rows,
                                            size_t count, size_t *resumed, lp_sweep_journal *out, lp_diag *diag);
/* Writes a row as a line of the journal. Touches nothing but `out`. */
void lp_sweep_journal_line(size_t index, const lp_sweep_row *row, lp_buf *out);
/* Appends the line in one write; false when that failed. */
bool lp_sweep_journal_put(const lp_sweep_journal *journal, const lp_buf *line);
void lp_sweep_journal_close(lp_sweep_journal *journal);
