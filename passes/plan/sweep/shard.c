/* Shards of a sweep: which rows each has, and how their journals become one result. */
#include "passes/plan/sweep/shard.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/side.h"
#include "passes/plan/sweep/front.h"
#include "passes/plan/sweep/journal.h"

/* ---- the key ----------------------------------------------------------------------------------------------------- */

static void put_link(const lp_link *link, lp_buf *out) {
  lp_link_print(link, out);
  for (int i = 0; i < LP_LINK_FIGURE_COUNT; i++)
    lp_buf_printf(out, "%a ", link->figure[i]);
  lp_buf_printf(out, "%" PRId32 " %a\n", link->state_count, link->quantile);
}

static void put_axes(const lp_sweep_spec *spec, lp_buf *out) {
  for (size_t i = 0; i < spec->workloads.count; i++)
    lp_buf_printf(out, "%" PRId64 " %" PRId64 " %" PRId64 "\n", spec->workloads.data[i].isl,
                  spec->workloads.data[i].osl, spec->workloads.data[i].batch);
  for (size_t i = 0; i < spec->slas.count; i++)
    lp_buf_printf(out, "%a %a\n", spec->slas.data[i].ttft_ms, spec->slas.data[i].tpot_ms);
  for (size_t i = 0; i < spec->dtypes.count; i++)
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      lp_buf_printf(out, "%s\n", spec->dtypes.data[i].dtype[side] ? spec->dtypes.data[i].dtype[side] : "model");
  for (size_t i = 0; i < spec->schedulers.count; i++)
    lp_buf_printf(out, "%s\n", spec->schedulers.data[i]);
  for (size_t i = 0; i < spec->sessions.count; i++)
    lp_buf_printf(out, "%" PRId64 "\n", spec->sessions.data[i]);
}

void lp_sweep_key(const lp_sweep_spec *spec, const lp_module *module, char out[65]) {
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  lp_module_print(module, false, &text);
  for (size_t i = 0; i < spec->machines.count; i++)
    for (int side = 0; side < LP_SIDE_COUNT; side++)
      lp_hw_print(spec->machines.data[i].machine[side], &text);
  for (size_t i = 0; i < spec->links.count; i++)
    put_link(spec->links.data[i].link, &text);
  put_axes(spec, &text);
  lp_buf_printf(&text, "%s %" PRId64 " %s", spec->objective, spec->device_memory,
                spec->kv_dtype ? spec->kv_dtype : "model");
  lp_sha256 sha;
  lp_sha256_init(&sha);
  lp_sha256_update(&sha, lp_buf_text(&text), text.size);
  lp_sha256_hex(&sha, out);
}

/* ---- the rows of a shard ----------------------------------------------------------------------------------------- */

/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* Deals the rows of one scheduler after those of another, since a row's time depends on its scheduler most of all. Each
 * `count` rows go to all shards in turn, and each turn begins with another shard, so that no axis falls into step with
 * the shards. */
int32_t lp_sweep_shard_of(const lp_sweep_spec *spec, size_t row, int32_t count) {
  size_t schedulers = spec->count[LP_SWEEP_SCHEDULERS], sessions = spec->count[LP_SWEEP_SESSIONS];
  size_t scheduler = row / sessions % schedulers;
  size_t rest = row / (sessions * schedulers) * sessions + row % sessions;
  uint64_t turn = scheduler * (spec->rows / schedulers) + rest, shards = (uint64_t)count;
  return (int32_t)((turn % shards + mix(turn / shards) % shards) % shards) + 1;
}

size_t lp_sweep_shard_rows(const lp_sweep_spec *spec, lp_sweep_shard shard) {
  size_t rows = 0;
  for (size_t i = 0; i < spec->rows; i++)
    rows += lp_sweep_shard_of(spec, i, shard.count) == shard.index;
  return rows;
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

typedef struct {
  const lp_sweep_spec *spec;
  const char *const *file;
  size_t *from;   /* [spec->rows]: the file that has the row, where it is done */
  int32_t shards; /* of the last file */
  lp_sweep_row *rows;
} merger;

static lp_status check_heading(const merger *m, size_t index, const lp_sweep_heading *found, const char *key,
                               lp_diag *diag) {
  const lp_loc at = LP_LOC_FILE(m->file[index]);
  if (!lp_streq(found->version, LP_VERSION))
    return lp_error(diag, at, "was written by llmpart %s, and this is llmpart %s", found->version, LP_VERSION);
  if (!lp_streq(found->key, key))
    return lp_error(diag, at, "has rows of another sweep than '%s': a model, machine, link or axis differs",
                    m->spec->path);
  return LP_OK;
}

static lp_status add_row(merger *m, size_t index, const lp_sweep_heading *heading, size_t row,
                         const lp_sweep_row *value, lp_diag *diag) {
  const lp_loc at = LP_LOC_FILE(m->file[index]);
  if (lp_sweep_shard_of(m->spec, row, heading->shard.count) != heading->shard.index)
    return lp_error(diag, at, "row %zu does not belong to shard %" PRId32 "/%" PRId32, row, heading->shard.index,
                    heading->shard.count);
  if (m->rows[row].done) return lp_error(diag, at, "row %zu is in '%s' too", row, m->file[m->from[row]]);
  m->rows[row] = *value;
  m->from[row] = index;
  return LP_OK;
}

static lp_status add_text(merger *m, size_t index, const char *text, size_t size, const char *key, lp_diag *diag) {
  lp_sweep_heading heading;
  const char *line = lp_sweep_journal_heading(text, &heading), *end;
  if (!line)
    return lp_error(diag, LP_LOC_FILE(m->file[index]), "%s",
                    lp_sweep_journal_is(text) ? "is a journal of another version of llmpart"
                                              : "is not the journal of a sweep");
  LP_TRY(check_heading(m, index, &heading, key, diag));
  m->shards = heading.shard.count;
  /* A part of a line at the end is a row in progress when its sweep was killed: that row is missing. */
  for (size_t number = 2; (end = memchr(line, '\n', size - (size_t)(line - text))); line = end + 1, number++) {
    size_t row;
    lp_sweep_row value;
    if (!lp_sweep_journal_parse(line, m->spec->rows, &row, &value))
      return lp_error(diag, LP_LOC_FILE(m->file[index]), "line %zu is not a row of a journal", number);
    LP_TRY(add_row(m, index, &heading, row, &value, diag));
  }
  return LP_OK;
}

static lp_status check_complete(const merger *m, lp_diag *diag) {
  size_t missing = 0, first = 0;
  for (size_t i = m->spec->rows; i-- > 0;)
    if (!m->rows[i].done) {
      missing++;
      first = i;
    }
  if (!missing) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(m->spec->path),
                  "%zu of %zu rows are missing, the first is row %zu of shard %" PRId32 "/%" PRId32, missing,
                  m->spec->rows, first, lp_sweep_shard_of(m->spec, first, m->shards), m->shards);
}

lp_status lp_sweep_merge(const lp_sweep_spec *spec, const lp_module *module, const char *const *files, size_t count,
                         lp_sweep_result *out, lp_diag *diag) {
  *out = (lp_sweep_result){.row = lp_alloc((spec->rows + 1) * sizeof *out->row)};
  merger m = {.spec = spec, .file = files, .rows = out->row, .shards = 1};
  m.from = lp_alloc((spec->rows + 1) * sizeof *m.from);
  char key[65];
  lp_sweep_key(spec, module, key);
  lp_status status = LP_OK;
  for (size_t i = 0; i < count && status == LP_OK; i++) {
    LP_OWNED(lp_free_at) char *text = NULL;
    size_t size = 0;
    status = lp_file_read(files[i], &text, &size, diag);
    if (status == LP_OK) status = add_text(&m, i, text, size, key, diag);
  }
  if (status == LP_OK) status = check_complete(&m, diag);
  free(m.from);
  out->rows = out->resumed = spec->rows;
  if (status == LP_OK) lp_sweep_mark_fronts(spec, out);
  return status;
}
