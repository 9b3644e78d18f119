/* The store over all kinds of pools: opens, reads and follows. */

#include "runtime/router/store_internal.h"

bool lp_store_is_url(const char *pool) {
  return lp_has_prefix(pool, "postgresql://") || lp_has_prefix(pool, "postgres://");
}

/* The URL without the password and the parameters, which may hold one. */
static char *shown_name(const char *pool) {
  char *name = lp_strdup(pool);
  if (!lp_store_is_url(pool)) return name;
  char *user = strstr(name, "://") + 3;
  user[strcspn(user, "?")] = '\0';
  char *end = strrchr(user, '@'), *password = strchr(user, ':');
  if (end && password && password < end) memmove(password, end, strlen(end) + 1);
  return name;
}

lp_status lp_store_open(const char *pool, lp_store **out, lp_diag *diag) {
  lp_store *store = lp_alloc(sizeof *store);
  *store = (lp_store){.kind = lp_store_is_url(pool) ? &lp_store_postgres : &lp_store_sqlite,
                      .pool = lp_strdup(pool),
                      .name = shown_name(pool)};
  (void)pthread_mutex_init(&store->lock, NULL);
  (void)pthread_mutex_init(&store->queue_lock, NULL);
  (void)pthread_cond_init(&store->changed, NULL);
  lp_status status = store->kind->open(store, diag);
  if (status == LP_OK)
    *out = store;
  else
    lp_store_close(store);
  return status;
}

void lp_store_close(lp_store *store) {
  if (!store) return;
  store->kind->close(store);
  (void)pthread_cond_destroy(&store->changed);
  (void)pthread_mutex_destroy(&store->queue_lock);
  (void)pthread_mutex_destroy(&store->lock);
  lp_vec_free(&store->written);
  free(store->name);
  free(store->pool);
  free(store);
}

lp_status lp_store_count(lp_store *store, int64_t *out, lp_diag *diag) {
  (void)pthread_mutex_lock(&store->lock);
  lp_status status = store->kind->count(store, out, diag);
  (void)pthread_mutex_unlock(&store->lock);
  return status;
}

/* ---- one decision ------------------------------------------------------------------------------------------------ */

typedef struct {
  lp_arena *arena;
  lp_stored *out;
  bool found;
} copy;

static void keep_copy(void *user, const lp_stored *stored) {
  copy *to = user;
  const char *keywords = stored->request.keywords;
  *to->out = *stored;
  to->out->request.keywords = lp_arena_copy(to->arena, keywords, strlen(keywords) + 1);
  to->found = true;
}

lp_status lp_store_get(lp_store *store, int64_t id, lp_arena *arena, lp_stored *out, lp_diag *diag) {
  copy to = {arena, out, false};
  (void)pthread_mutex_lock(&store->lock);
  lp_status status = store->kind->get(store, id, keep_copy, &to, diag);
  (void)pthread_mutex_unlock(&store->lock);
  if (status == LP_OK && !to.found)
    status = lp_error(diag, (lp_loc){.file = store->name}, "no decision %lld", (long long)id);
  return status;
}

/* ---- outcomes ---------------------------------------------------------------------------------------------------- */

typedef struct {
  lp_store *store;
  lp_store_visit *visit;
  void *user;
} walk;

static void visit_all(void *user, const lp_stored *stored) {
  walk *w = user;
  if (stored->sequence > w->store->seen) w->store->seen = stored->sequence;
  w->visit(w->user, stored);
}

lp_status lp_store_each(lp_store *store, int64_t most, lp_store_visit *visit, void *user, lp_diag *diag) {
  walk w = {store, visit, user};
  (void)pthread_mutex_lock(&store->lock);
  lp_status status = store->kind->each(store, (lp_store_range){.most = most}, visit_all, &w, diag);
  (void)pthread_mutex_unlock(&store->lock);
  return status;
}

/* Outcomes of this object are read in the order in which it added them. */
static void visit_foreign(void *user, const lp_stored *stored) {
  walk *w = user;
  lp_store *store = w->store;
  store->seen = stored->sequence;
  if (store->met < store->written.count && store->written.data[store->met] == stored->id)
    store->met++;
  else
    w->visit(w->user, stored);
}

lp_status lp_store_follow(lp_store *store, lp_store_visit *visit, void *user, lp_diag *diag) {
  walk w = {store, visit, user};
  (void)pthread_mutex_lock(&store->lock);
  store->follows = true;
  lp_status status = store->kind->each(store, (lp_store_range){.after = store->seen}, visit_foreign, &w, diag);
  if (store->met == store->written.count) store->met = store->written.count = 0;
  (void)pthread_mutex_unlock(&store->lock);
  return status;
}
