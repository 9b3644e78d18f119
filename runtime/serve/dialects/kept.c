/* Keeps the histories of answers by owner: see kept.h. */
#include "runtime/serve/dialects/kept.h"

#include <pthread.h>

typedef struct {
  uint64_t owner;
  char id[64];
  lp_buf text;
} history;

struct lp_kept {
  pthread_mutex_t lock; /* guards what follows */
  LP_VEC(history) all;  /* the oldest first */
};

lp_kept *lp_kept_create(void) {
  lp_kept *kept = lp_alloc(sizeof *kept);
  *kept = (lp_kept){.all = {0}};
  (void)pthread_mutex_init(&kept->lock, NULL);
  return kept;
}

static void drop(lp_kept *kept, size_t index) {
  lp_buf_free(&kept->all.data[index].text);
  kept->all.count--;
  memmove(&kept->all.data[index], &kept->all.data[index + 1], (kept->all.count - index) * sizeof *kept->all.data);
}

void lp_kept_free(lp_kept *kept) {
  if (!kept) return;
  while (kept->all.count > 0)
    drop(kept, kept->all.count - 1);
  lp_vec_free(&kept->all);
  (void)pthread_mutex_destroy(&kept->lock);
  free(kept);
}

void lp_kept_put(lp_kept *kept, uint64_t owner, const char *id, const char *text, size_t size) {
  history made = {.owner = owner};
  size_t count = 1, bytes = size;
  if (size > LP_KEPT_BYTES) return;
  (void)snprintf(made.id, sizeof made.id, "%s", id);
  lp_buf_append(&made.text, text, size);
  (void)pthread_mutex_lock(&kept->lock);
  for (size_t i = kept->all.count; i-- > 0;) {
    if (kept->all.data[i].owner != owner) continue;
    count++;
    bytes += kept->all.data[i].text.size;
    if (count > LP_KEPT_EACH || bytes > LP_KEPT_BYTES) drop(kept, i);
  }
  lp_vec_push(&kept->all, made);
  (void)pthread_mutex_unlock(&kept->lock);
}

bool lp_kept_get(lp_kept *kept, uint64_t owner, const char *id, lp_buf *out) {
  bool found = false;
  (void)pthread_mutex_lock(&kept->lock);
  for (size_t i = 0; i < kept->all.count && !found; i++) {
    const history *at = &kept->all.data[i];
    found = at->owner == owner && lp_streq(at->id, id);
    if (found) lp_buf_append(out, lp_buf_text(&at->text), at->text.size);
  }
  (void)pthread_mutex_unlock(&kept->lock);
  return found;
}
