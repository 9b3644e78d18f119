/* The journal of a sweep: a line that names everything that rows depend on, then a line for each finished row. Each
 * line is one write. A killed run leaves at most a part of a line, which the next run cuts off. Numbers are
 * hexadecimal, so that they are read back exactly. */
#include "passes/plan/sweep/journal.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

static const char family[] = "llmpart.sweep-journal/", magic[] = "llmpart.sweep-journal/3 ";

/* ---- lines ------------------------------------------------------------------------------------------------------- */

void lp_sweep_journal_line(size_t index, const lp_sweep_row *row, lp_buf *out) {
  lp_buf_clear(out);
  lp_buf_printf(out, "%zu %d %d", index, row->feasible, row->binding);
  for (int i = 0; i < LP_SWEEP_NUMBERS; i++)
    lp_buf_printf(out, " %a", row->number[i]);
  lp_buf_puts(out, " .\n");
}

bool lp_sweep_journal_parse(const char *line, size_t rows, size_t *index, lp_sweep_row *out) {
  char *end;
  *index = strtoul(line, &end, 10);
  long feasible = strtol(end, &end, 10);
  size_t binding = strtoul(end, &end, 10);
  lp_sweep_row row = {.done = true, .feasible = feasible == 1};
  if (*index >= rows || binding >= LP_LIMIT_COUNT) return false;
  row.binding = (lp_plan_limit)binding;
  for (int i = 0; i < LP_SWEEP_NUMBERS; i++) {
    char *from = end;
    row.number[i] = strtod(from, &end);
    if (end == from) return false;
  }
  if (!lp_has_prefix(end, " .\n")) return false;
  *out = row;
  return true;
}

static void put_heading(const lp_sweep_heading *heading, lp_buf *out) {
  lp_buf_printf(out, "%s%s %s %" PRId32 "/%" PRId32 "\n", magic, heading->version, heading->key, heading->shard.index,
                heading->shard.count);
}

bool lp_sweep_journal_is(const char *text) {
  return lp_has_prefix(text, family);
}

const char *lp_sweep_journal_heading(const char *text, lp_sweep_heading *out) {
  int size = 0;
  *out = (lp_sweep_heading){0};
  if (!lp_has_prefix(text, magic)) return NULL;
  text += strlen(magic);
  int fields = sscanf(text, "%31s %64s %9" SCNd32 "/%9" SCNd32 "%n", out->version, out->key, &out->shard.index,
                      &out->shard.count, &size);
  if (fields != 4 || text[size] != '\n') return NULL;
  return out->shard.index >= 1 && out->shard.index <= out->shard.count ? text + size + 1 : NULL;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static lp_status cannot(const lp_sweep_options *options, const char *what, lp_diag *diag) {
  if (!options->journal_is_ours) return lp_error(diag, LP_LOC_FILE(options->journal), "%s: %s", what, strerror(errno));
  lp_warning(diag, LP_LOC_FILE(options->journal), "%s, so that this sweep cannot be resumed: %s", what,
             strerror(errno));
  return LP_OK;
}

/* The sweep that takes the journal up, and where its rows go. */
typedef struct {
  const lp_sweep_options *options;
  lp_sweep_heading heading;
  lp_sweep_row *rows;
  size_t count;
  size_t *resumed;
} taker;

/* Marks the rows that the text has, from `line` on; returns the size of its whole lines. */
static size_t read_rows(const taker *t, const char *text, const char *line, size_t size) {
  for (const char *end; (end = memchr(line, '\n', size - (size_t)(line - text))); line = end + 1) {
    size_t index;
    lp_sweep_row row;
    if (!lp_sweep_journal_parse(line, t->count, &index, &row)) break;
    t->rows[index] = row;
  }
  for (size_t i = 0; i < t->count; i++)
    *t->resumed += t->rows[i].done;
  return (size_t)(line - text);
}

static lp_status begin_anew(const taker *t, const lp_sweep_journal *journal, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  put_heading(&t->heading, &text);
  bool good = ftruncate(journal->fd, 0) == 0 && lseek(journal->fd, 0, SEEK_SET) == 0 &&
              write(journal->fd, lp_buf_text(&text), text.size) == (ssize_t)text.size;
  return good ? LP_OK : cannot(t->options, "cannot write the journal", diag);
}

static lp_status take_up(const taker *t, const lp_sweep_journal *journal, const char *text, size_t size,
                         lp_diag *diag) {
  const lp_loc at = LP_LOC_FILE(t->options->journal);
  const lp_sweep_shard *ours = &t->heading.shard;
  lp_sweep_heading found;
  if (size && !lp_sweep_journal_is(text)) return lp_error(diag, at, "exists and is not the journal of a sweep");
  const char *line = lp_sweep_journal_heading(text, &found);
  if (!line || !lp_streq(found.version, t->heading.version) || !lp_streq(found.key, t->heading.key)) {
    if (size) lp_warning(diag, at, "is the journal of another sweep and is replaced");
    return begin_anew(t, journal, diag);
  }
  if (found.shard.index != ours->index || found.shard.count != ours->count)
    return lp_error(diag, at,
                    "is the journal of shard %" PRId32 "/%" PRId32 " of this sweep, not of %" PRId32 "/%" PRId32,
                    found.shard.index, found.shard.count, ours->index, ours->count);
  size_t good = read_rows(t, text, line, size);
  if (ftruncate(journal->fd, (off_t)good) != 0 || lseek(journal->fd, 0, SEEK_END) < 0)
    return cannot(t->options, "cannot write the journal", diag);
  return LP_OK;
}

static lp_status read_and_take_up(const taker *t, const lp_sweep_journal *journal, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *text = NULL;
  size_t size = 0;
  LP_TRY(lp_file_read(t->options->journal, &text, &size, diag));
  return take_up(t, journal, text, size, diag);
}

lp_status lp_sweep_journal_open(const lp_sweep_options *options, const char *key, lp_sweep_row *rows, size_t count,
                                size_t *resumed, lp_sweep_journal *out, lp_diag *diag) {
  *out = (lp_sweep_journal){.fd = -1};
  if (!options->journal) return LP_OK;
  out->fd = open(options->journal, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (out->fd < 0) return cannot(options, "cannot open the journal", diag);
  taker t = {options, {.version = LP_VERSION, .shard = {1, 1}}, rows, count, resumed};
  (void)snprintf(t.heading.key, sizeof t.heading.key, "%s", key);
  if (options->shard.count) t.heading.shard = options->shard;
  lp_status status;
  if (flock(out->fd, LOCK_EX | LOCK_NB) != 0)
    status = lp_error(diag, LP_LOC_FILE(options->journal), "another sweep is writing this journal");
  else
    status = read_and_take_up(&t, out, diag);
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
