/* Compares the content of a bundle's files with the manifest.
 *
 * Weights are large: reading all of them first would take longer than the rest of loading. A thread of its own reads
 * them instead while the first run begins, on cores that this leaves idle. The runtime awaits the result before the
 * first token leaves it; then all cores read what is left. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/cores.h"
#include "base/digest.h"
#include "base/file.h"
#include "runtime/bundle/manifest.h"
#include "runtime/bundle/verifier.h"

enum { CHUNK = 1536 << 10 };

typedef struct {
  const char *path;
  const lp_file_desc *want;
  const lp_mapping *mapping;
  size_t first; /* chunk */
} verifier_item;

struct lp_verifier {
  LP_VEC(verifier_item) items;
  size_t chunks;
  uint32_t *crc;      /* [chunks] */
  atomic_size_t next; /* the first chunk that no thread has taken */
  pthread_t thread;
  pthread_mutex_t mutex; /* guards what follows: several threads may await the result */
  bool started, read;
  const char *damaged; /* the path of the first such file; NULL: none */
};

lp_verifier *lp_verifier_create(void) {
  lp_verifier *verifier = lp_alloc(sizeof *verifier);
  pthread_mutex_init(&verifier->mutex, NULL);
  return verifier;
}

void lp_verifier_add(lp_verifier *verifier, const char *path, const lp_file_desc *want, const lp_mapping *mapping) {
  lp_vec_push(&verifier->items, ((verifier_item){path, want, mapping, verifier->chunks}));
  verifier->chunks += (mapping->size + CHUNK - 1) / CHUNK;
}

static size_t chunk_size(const verifier_item *item, size_t at) {
  return item->mapping->size - at < CHUNK ? item->mapping->size - at : CHUNK;
}

static void *read_chunks(void *user) {
  lp_verifier *verifier = user;
  for (size_t i; (i = atomic_fetch_add(&verifier->next, 1)) < verifier->chunks;) {
    const verifier_item *item = verifier->items.data + verifier->items.count - 1;
    while (item->first > i)
      item--;
    const size_t at = (i - item->first) * CHUNK;
    verifier->crc[i] = lp_crc32c(0, item->mapping->data + at, chunk_size(item, at));
  }
  return NULL;
}

static void *read_on_idle_cores(void *user) {
  (void)pthread_setschedparam(pthread_self(), SCHED_IDLE, &(struct sched_param){0}); /* else on part of a busy one */
  return read_chunks(user);
}

void lp_verifier_start(lp_verifier *verifier) {
  verifier->crc = lp_alloc(verifier->chunks * sizeof *verifier->crc);
  verifier->started = pthread_create(&verifier->thread, NULL, read_on_idle_cores, verifier) == 0;
}

static bool is_damaged(const lp_verifier *verifier, const verifier_item *item) {
  uint32_t crc = 0;
  for (size_t at = 0; at < item->mapping->size; at += CHUNK)
    crc = lp_crc32c_join(crc, verifier->crc[item->first + at / CHUNK], chunk_size(item, at));
  return crc != item->want->crc32c;
}

/* Waits for the thread, which no longer takes chunks. */
static void end_thread(lp_verifier *verifier) {
  if (verifier->started) pthread_join(verifier->thread, NULL);
  verifier->started = false;
}

static void read_rest(lp_verifier *verifier) {
  lp_threads_run(lp_machine_threads(), read_chunks, verifier);
  end_thread(verifier);
  LP_FOR_VEC(verifier_item, item, &verifier->items)
    if (!verifier->damaged && is_damaged(verifier, item)) verifier->damaged = item->path;
  verifier->read = true;
}

lp_status lp_verifier_await(lp_verifier *verifier, lp_diag *diag) {
  pthread_mutex_lock(&verifier->mutex);
  if (!verifier->read) read_rest(verifier);
  pthread_mutex_unlock(&verifier->mutex);
  if (!verifier->damaged) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(verifier->damaged), "the file is damaged: its checksum is not the manifest's");
}

void lp_verifier_free(lp_verifier *verifier) {
  if (!verifier) return;
  atomic_store(&verifier->next, verifier->chunks);
  end_thread(verifier);
  pthread_mutex_destroy(&verifier->mutex);
  lp_vec_free(&verifier->items);
  free(verifier->crc);
  free(verifier);
}

lp_status lp_file_verify(const char *path, const lp_file_desc *want, const void *data, size_t size, bool strong,
                         lp_diag *diag) {
  bool equal;
  if (want->has_crc && !strong) {
    equal = lp_crc32c(0, data, size) == want->crc32c;
  } else {
    lp_sha256 sha;
    char hex[LP_SHA256_HEX + 1];
    lp_sha256_init(&sha);
    lp_sha256_update(&sha, data, size);
    lp_sha256_hex(&sha, hex);
    equal = memcmp(hex, want->sha256, LP_SHA256_HEX) == 0;
  }
  if (equal) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(path), "the file is damaged: its checksum is not the manifest's");
}
