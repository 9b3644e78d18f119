/* The journal of a sweep: a line that names everything that rows depend on, then a line for each finished row. Each
 * line is one write. A killed run leaves at most a part of a line, which the next run cuts off. Numbers are
 * hexadecimal, so that they are read back exactly. */
#include "passes/plan/sweep/journal.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char heading[] = "llmpart.sweep-journal/1 ";

/* ---- lines ------------------------------------------------------------------------------------------------------- */

void lp_sweep_journal_line(size_t index, const lp_sweep_row *row, lp_buf *out) {
  lp_buf_clear(out);
  lp_buf_printf(out, "%zu %d %d", index, row->feasible, row->binding);
  for (int i = 0; i < LP_SWEEP_NUMBERS; i++)
    lp_buf_printf(out, " %a", row->number[i]);
  lp_buf_puts(out, " .\n");
}

/* Reads a whole line; false when it is not a line of a journal. */
static bool parse_row(const char *text, lp_sweep_row *rows, size_t count) {
  char *end;
  size_t index = strtoul(text, &end, 10);
  long feasible = strtol(end, &end, 10);
  size_t binding = strtoul(end, &end, 10);
  lp_sweep_row row = {.done = true, .feasible = feasible == 1};
  if (index >= count || binding >= LP_LIMIT_COUNT) return false;
  row.binding = (lp_plan_limit)binding;
  for (int i = 0; i < LP_SWEEP_NUMBERS; i++) {
    char *from = end;
    row.number[i] = strtod(from, &end);
    if (end == from) return false;
  }
  if (!lp_has_prefix(end, " .\n")) return false;
  rows[index] = row;
  return true;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static lp_status cannot(const lp_sweep_options *options, const char *what, lp_diag *diag) {
  if (!options->journal_is_ours) return lp_error(diag, LP_LOC_FILE(options->journal), "%s: %s", what, strerror(errno));
  lp_warning(diag, LP_LOC_FILE(options->journal), "%s, so that this sweep cannot be resumed: %s", what,
             strerror(errno));
  return LP_OK;
}

/* Marks the rows that the text has; returns the size of its whole lines. */
static size_t read_rows(const char *text, size_t size, lp_sweep_row *rows, size_t count, size_t *resumed) {
  size_t good = 0;
  for (const char *line = text, *end; (end = memchr(line, '\n', size - (size_t)(line - text))); line = end + 1) {
    if (good && !parse_row(line, rows, count)) break;
    good = (size_t)(end + 1 - text);
  }
  for (size_t i = 0; i < count; i++)
    *resumed += rows[i].done;
  return good;
}

static lp_status begin_anew(lp_sweep_journal *journal, const char *key, const lp_sweep_options *options,
                            lp_diag *diag) {
  lp_buf text = {0};
  lp_buf_printf(&text, "%s%s\n", heading, key);
  bool good = ftruncate(journal->fd, 0) == 0 && lseek(journal->fd, 0, SEEK_SET) == 0 &&
              write(journal->fd, lp_buf_text(&text), text.size) == (ssize_t)text.size;
  lp_buf_free(&text);
  return good ? LP_OK : cannot(options, "cannot write the journal", diag);
}

static lp_status take_up(lp_sweep_journal *journal, const lp_sweep_options *options, const char *key,
                         lp_sweep_row *rows, size_t count, size_t *resumed, lp_diag *diag) {
  char *text = NULL;
  size_t size = 0;
  LP_TRY(lp_file_read(options->journal, &text, &size, diag));
  lp_status status = LP_OK;
  bool ours = lp_has_prefix(text, heading), same = false;
  if (ours) same = lp_has_prefix(text + strlen(heading), key) && text[strlen(heading) + strlen(key)] == '\n';
  if (size && !ours) {
    status = lp_error(diag, LP_LOC_FILE(options->journal), "exists and is not the journal of a sweep");
  } else if (!same) {
    if (size) lp_warning(diag, LP_LOC_FILE(options->journal), "is the journal of another sweep and is replaced");
    status = begin_anew(journal, key, options, diag);
  } else {
    size_t good = read_rows(text, size, rows, count, resumed);
    if (ftruncate(journal->fd, (off_t)good) != 0 || lseek(journal->fd, 0, SEEK_END) < 0)
      status = cannot(options, "cannot write the journal", diag);
  }
  free(text);
  return status;
}

lp_status lp_sweep_journal_open(const lp_sweep_options *options, const char *key, lp_sweep_row *rows, size_t count,
                                size_t *resumed, lp_sweep_journal *out, lp_diag *diag) {
  *out = (lp_sweep_journal){.fd = -1};
  if (!options->journal) return LP_OK;
  out->fd = open(options->journal, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (out->fd < 0) return cannot(options, "cannot open the journal", diag);
  lp_status status;
  if (flock(out->fd, LOCK_EX | LOCK_NB) != 0)
    status = lp_error(diag, LP_LOC_FILE(options->journal), "another sweep is writing this journal");
  else
    status = take_up(out, options, key, rows, count, resumed, diag);
  if (status != LP_OK) lp_sweep_journal_close(out);
  return status;
}

bool lp_sweep_journal_put(const lp_sweep_journal *journal, const lp_buf *line) {
  return journal->fd < 0 || write(journal->fd, lp_buf_text(line), line->size) == (ssize_t)line->size;
}

void lp_sweep_journal_close(lp_sweep_journal *journal) {
  if (journal->fd >= 0) (void)close(journal->fd);
  journal->fd = -1;
}
