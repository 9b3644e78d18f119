/* Writes weights files. Their bytes are digested as they are written, because a file that is larger than the memory
 * would be read from the disk again. A journal says what of them is finished: the next compilation of the same bundle
 * takes it over after this one was killed. */
#include "backend/bundle/bundle_internal.h"

#include "base/dir.h"
#include "base/path.h"
#include "base/units.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each line says how far a weights file is finished: the key of what determines its bytes, their number, their
 * CRC-32C. */
static const char journal_name[] = ".finished";
enum { KEY_LETTERS = 64 };

/* A file of which a part may be finished. */
typedef struct {
  bundle *b;
  const char *name, *place; /* in the bundle */
  char key[KEY_LETTERS + 1];
  lp_sha256 sha;
  uint32_t crc;
  uint64_t bytes;
} weights_file;

uint64_t lp_bundle_weight_bytes(const bundle *b, bool stored) {
  uint64_t bytes = 0;
  for (lp_place i = 0; i < b->place_count; i++)
    for (const bundle_side *side = &b->side[i]; side && !(stored && b->request->only_digest[i]); side = side->fallback)
      bytes += (uint64_t)side->code.weight_bytes * (uint64_t)(side->ranks > 1 ? side->ranks : 1);
  return bytes;
}

lp_status lp_bundle_make_folder(const bundle *b, const char *name, lp_diag *diag) {
  LP_OWNED(lp_free_at) char *folder = lp_path_join(b->folder, name);
  lp_status status = LP_OK;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    status = lp_error(diag, LP_LOC_FILE(folder), "cannot make the folder: %s", strerror(errno));
  return status;
}

void lp_bundle_report_progress(const bundle *b, const char *place, const char *what) {
  if (b->request->progress)
    b->request->progress(b->request->user, place, what, b->weights_done, lp_bundle_weight_bytes(b, false));
}

/* ---- what determines the bytes ----------------------------------------------------------------------------------- */

static void hash_text(lp_sha256 *sha, const char *text) {
  lp_sha256_update(sha, text ? text : "", text ? strlen(text) + 1 : 1);
}

static lp_status open_sources(lp_module *module, lp_diag *diag) {
  LP_FOR_OPS(func, lp_module_body(module)) {
    if (!func->region) continue;
    LP_FOR_OPS(op, func->region)
      if (op->kind == LP_OP_WEIGHT) LP_TRY(lp_weight_open(module, op, diag));
  }
  return LP_OK;
}

/* The program, the placed module, the files that it refers to, and the squares of activations; false where the system
 * cannot identify the program. */
static bool hash_inputs(bundle *b, lp_sha256 *sha, lp_diag *diag) {
  lp_mapping program;
  lp_buf text = {0};
  lp_sha256_init(sha);
  if (open_sources(b->module, diag) != LP_OK || lp_file_map("/proc/self/exe", &program, diag) != LP_OK) return false;
  lp_sha256_update(sha, &program.identity, sizeof program.identity);
  lp_file_unmap(&program);
  lp_module_print(b->module, false, &text);
  lp_sha256_update(sha, text.data, text.size);
  lp_buf_free(&text);
  for (size_t i = 0; i < lp_map_count(b->module->sources); i++) {
    const lp_mapping *source = lp_map_value_at(b->module->sources, i);
    hash_text(sha, lp_map_key_at(b->module->sources, i));
    lp_sha256_update(sha, &source->identity, sizeof source->identity);
  }
  const lp_map *squares = b->module->input_squares;
  for (size_t i = 0; squares && i < lp_map_count(squares); i++) {
    const lp_input_squares *of = lp_map_value_at(squares, i);
    hash_text(sha, lp_map_key_at(squares, i));
    lp_sha256_update(sha, of->mean, sizeof *of->mean * (size_t)of->count);
  }
  hash_text(sha, b->contract);
  return true;
}

static weights_file file_of(bundle *b, const bundle_side *side, const char *name) {
  weights_file file = {.b = b, .name = name, .place = b->places[side->side]};
  const lp_emit_options *o = &side->options;
  const int64_t numbers[] = {side->side, o->opt_level, o->halves, b->module->rank};
  lp_sha256 sha = b->inputs;
  hash_text(&sha, name);
  hash_text(&sha, side->backend->name);
  hash_text(&sha, o->march);
  hash_text(&sha, o->os);
  lp_sha256_update(&sha, numbers, sizeof numbers);
  lp_sha256_hex(&sha, file.key);
  lp_sha256_init(&file.sha);
  return file;
}

/* ---- the journal ------------------------------------------------------------------------------------------------- */

static void note_finished(void *user, uint64_t offset) {
  const weights_file *file = user;
  if (!file->b->journal) return;
  fprintf(file->b->journal, "%s %" PRIu64 " %08" PRIx32 "\n", file->key, offset, file->crc);
  (void)fflush(file->b->journal); /* without it, less is taken over */
}

static void digest(weights_file *file, const void *data, size_t size) {
  lp_sha256_update(&file->sha, data, size);
  file->crc = lp_crc32c(file->crc, data, size);
  file->bytes += size;
}

/* Digests the file up to the last line of the journal that its bytes confirm. */
static void confirm(weights_file *file, const char *journal, const lp_mapping *found) {
  enum { CHUNK = 1 << 20 };
  for (const char *line = strstr(journal, file->key); line; line = strstr(line + KEY_LETTERS, file->key)) {
    uint64_t end;
    uint32_t crc;
    char newline;
    if (sscanf(line + KEY_LETTERS, "%" SCNu64 " %" SCNx32 "%c", &end, &crc, &newline) != 3 || end < file->bytes ||
        end > found->size)
      return;
    weights_file next = *file;
    while (next.bytes < end)
      digest(&next, found->data + next.bytes, end - next.bytes < CHUNK ? (size_t)(end - next.bytes) : CHUNK);
    if (next.crc != crc) return;
    *file = next;
  }
}

/* Moves the file from what a killed compilation left, if a part of it is finished. */
static void take_over(bundle *b, weights_file *file, const char *journal) {
  LP_OWNED(lp_free_at) char *from = lp_path_join(b->left, file->name), *to = lp_path_join(b->folder, file->name);
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  lp_mapping found;
  if (lp_file_map(from, &found, quiet) == LP_OK) {
    confirm(file, journal, &found);
    lp_file_unmap(&found);
  }
  if (file->bytes > 0 && lp_bundle_make_folder(b, file->place, quiet) == LP_OK && rename(from, to) == 0) {
    weights_file *kept = LP_NEW(b->arena, weights_file);
    *kept = *file;
    lp_map_put(b->kept, file->name, kept);
    b->weights_done += file->bytes;
    note_finished(file, file->bytes);
  }
}

static void take_over_side(bundle *b, const bundle_side *side, const char *journal) {
  for (; side; side = side->fallback) {
    for (int64_t i = 0; side->shard_path && i < side->ranks; i++) {
      b->module->rank = i;
      weights_file file = file_of(b, side, side->shard_path[i]);
      take_over(b, &file, journal);
    }
    b->module->rank = 0;
    if (!side->weights_path) continue;
    weights_file file = file_of(b, side, side->weights_path);
    take_over(b, &file, journal);
  }
}

void lp_bundle_begin_weights(bundle *b, lp_diag *diag) {
  LP_OWNED(lp_free_at)
  char *path = lp_path_join(b->folder, journal_name), *old = b->left ? lp_path_join(b->left, journal_name) : NULL;
  char *text = NULL, size[32];
  size_t length;
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  if (hash_inputs(b, &b->inputs, quiet)) b->journal = fopen(path, "we");
  if (b->journal && old && lp_file_read(old, &text, &length, quiet) == LP_OK)
    for (lp_place i = 0; i < b->place_count; i++)
      take_over_side(b, &b->side[i], text);
  if (b->weights_done > 0)
    lp_note(diag, LP_LOC_NONE, "%s of weights are those that a killed compilation had finished",
            lp_format_bytes((double)b->weights_done, size));
  lp_dir_abandon(b->left);
  free(b->left);
  b->left = NULL;
  free(text);
}

void lp_bundle_end_weights(bundle *b) {
  if (!b->journal) return;
  LP_OWNED(lp_free_at) char *path = lp_path_join(b->folder, journal_name);
  (void)fclose(b->journal);
  b->journal = NULL;
  (void)unlink(path);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void watch_put(void *user, const void *data, size_t size) {
  weights_file *file = user;
  digest(file, data, size);
  file->b->weights_done += size;
  lp_bundle_report_progress(file->b, file->place, "weights");
}

static void add_file(bundle *b, const weights_file *file) {
  bundle_file *out = &b->file[b->file_count++];
  lp_sha256 sha = file->sha;
  *out = (bundle_file){.path = lp_arena_strdup(b->arena, file->name), .crc32c = file->crc, .bytes = file->bytes};
  lp_sha256_hex(&sha, out->sha256);
}

void lp_bundle_add_file(bundle *b, const char *name, const void *data, size_t size) {
  weights_file file = {.name = name};
  lp_sha256_init(&file.sha);
  digest(&file, data, size);
  add_file(b, &file);
}

lp_status lp_bundle_write_weights(bundle *b, const bundle_side *side, const char *name, lp_diag *diag) {
  const weights_file *kept = lp_map_get(b->kept, name);
  weights_file file = kept ? *kept : file_of(b, side, name);
  const bool absent = b->request->only_digest[side->side];
  const lp_writer_watch watch = {watch_put, absent ? NULL : note_finished, &file};
  lp_writer *writer = NULL;
  char *path = lp_path_join(b->folder, name);
  lp_status status =
      absent ? lp_writer_open("/dev/null", &writer, diag) : lp_writer_open_after(path, file.bytes, &writer, diag);
  free(path);
  LP_TRY(status);
  lp_writer_set_watch(writer, &watch);
  status = side->backend->write_weights(b->module, &side->options, writer, diag);
  LP_TRY(lp_writer_end(writer, status, diag));
  add_file(b, &file);
  return LP_OK;
}
