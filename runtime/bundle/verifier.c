/* Compares the content of a bundle's files with the manifest.
 *
 * Weights are large: reading all of them first would take longer than the rest of loading. A thread of its own reads
 * them instead, which also brings their pages into memory while the first run begins. The runtime awaits the result
 * before the first token leaves it. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/digest.h"
#include "base/file.h"
#include "runtime/bundle/manifest.h"
#include "runtime/bundle/verifier.h"

enum { CHUNK = 1 << 20 };

typedef struct {
  const char *path;
  const lp_file_desc *want;
  const lp_mapping *mapping;
  bool damaged;
} verifier_item;

struct lp_verifier {
  LP_VEC(verifier_item) items;
  pthread_t thread;
  pthread_mutex_t mutex; /* guards `joined`: several threads may await the result */
  bool started, joined;
  atomic_bool stop;
};

lp_verifier *lp_verifier_create(void) {
  lp_verifier *verifier = lp_alloc(sizeof *verifier);
  pthread_mutex_init(&verifier->mutex, NULL);
  return verifier;
}

void lp_verifier_add(lp_verifier *verifier, const char *path, const lp_file_desc *want, const lp_mapping *mapping) {
  lp_vec_push(&verifier->items, ((verifier_item){.path = path, .want = want, .mapping = mapping}));
}

static void check_item(lp_verifier *verifier, verifier_item *item) {
  uint32_t crc = 0;
  for (size_t at = 0; at < item->mapping->size; at += CHUNK) {
    if (atomic_load_explicit(&verifier->stop, memory_order_relaxed)) return;
    size_t left = item->mapping->size - at;
    crc = lp_crc32c(crc, item->mapping->data + at, left < CHUNK ? left : CHUNK);
  }
  item->damaged = crc != item->want->crc32c;
}

static void *check_all(void *user) {
  lp_verifier *verifier = user;
  for (size_t i = 0; i < verifier->items.count; i++)
    check_item(verifier, &verifier->items.data[i]);
  return NULL;
}

void lp_verifier_start(lp_verifier *verifier) {
  verifier->started = pthread_create(&verifier->thread, NULL, check_all, verifier) == 0;
  if (!verifier->started) check_all(verifier);
}

static void join(lp_verifier *verifier) {
  pthread_mutex_lock(&verifier->mutex);
  if (verifier->started && !verifier->joined) pthread_join(verifier->thread, NULL);
  verifier->joined = true;
  pthread_mutex_unlock(&verifier->mutex);
}

lp_status lp_verifier_await(lp_verifier *verifier, lp_diag *diag) {
  join(verifier);
  for (size_t i = 0; i < verifier->items.count; i++)
    if (verifier->items.data[i].damaged)
      return lp_error(diag, LP_LOC_FILE(verifier->items.data[i].path),
                      "the file is damaged: its checksum is not the manifest's");
  return LP_OK;
}

void lp_verifier_free(lp_verifier *verifier) {
  if (!verifier) return;
  atomic_store(&verifier->stop, true);
  join(verifier);
  pthread_mutex_destroy(&verifier->mutex);
  lp_vec_free(&verifier->items);
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
