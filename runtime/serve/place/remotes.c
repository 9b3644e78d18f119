/* Greets workers, and chooses one for a request. */
#include "runtime/serve/place/remotes.h"

#include <math.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "runtime/serve/place/fleet.h"
#include "runtime/serve/place/visits.h"
#include "runtime/serve/place/watcher.h"

/* A worker that is up is greeted every look_ms. One that does not answer is greeted again at once, and then is down;
 * pauses double from then on. */
static const double look_ms = 500, again_ms = 50, longest_pause_ms = 3000, greeting_ms = 2000;

struct lp_remote {
  const lp_bundle *bundle;
  const lp_serve_bundle *config;
  const char *address; /* as the configuration has it */
  lp_place_addresses addresses;
  lp_breaker breaker;
  lp_watcher watcher;
  lp_engine *engine; /* NULL: requests have sessions */
  atomic_int here;   /* requests of this server that it answers */
  atomic_int others; /* requests of other servers */
  atomic_bool down;
  _Atomic double up_ms;          /* when it last answered a greeting */
  bool others_down;              /* another server finds it down, as was last heard; the fleet's thread */
  pthread_mutex_t lock;          /* guards `reason` */
  char reason[LP_WORKER_REASON]; /* why it did not answer the last greeting; "": it did */
};

struct lp_remotes {
  lp_arena *arena;   /* owns the addresses */
  lp_fleet *fleet;   /* NULL: no other servers are known */
  lp_visits *visits; /* NULL likewise, or there is no choice: requests have sessions, which share no rows */
  atomic_ullong choices[LP_CHOICE_COUNT];
  size_t count;
  lp_remote remote[]; /* [count] */
};

/* Notes why a greeting failed, without the address: whoever asks needs no key (states.h). `diag` NULL: it did not. */
static void note_reason(lp_remote *self, const char *address, const lp_diag *diag) {
  const lp_diag_entry *entry = diag ? lp_diag_get(diag, 0) : NULL;
  LP_OWNED(lp_buf_free) lp_buf at = {0};
  if (address) lp_buf_printf(&at, " at %s", address);
  const char *text = entry ? entry->text : "", *found = address ? strstr(text, lp_buf_text(&at)) : NULL;
  (void)pthread_mutex_lock(&self->lock);
  (void)snprintf(self->reason, sizeof self->reason, "%.*s%s", found ? (int)(found - text) : 0, text,
                 found ? found + at.size : text);
  (void)pthread_mutex_unlock(&self->lock);
}

static bool greets_at(lp_remote *self, const lp_place_address *worker) {
  LP_OWNED(lp_diag_free_at) lp_diag *diag = lp_diag_create();
  bool up = lp_worker_greet(self->bundle, worker, &self->config->security, greeting_ms, diag) == LP_OK;
  if (!up) note_reason(self, worker->address, diag);
  return up;
}

static bool greets(lp_remote *self) {
  const lp_place_addresses *of = &self->addresses;
  bool up = !of->only || greets_at(self, &(lp_place_address){.address = of->only});
  for (size_t i = 0; up && i < of->count; i++)
    up = greets_at(self, &of->place[i]);
  if (up) note_reason(self, NULL, NULL);
  return up;
}

static void *watch(void *user) {
  lp_remote *self = user;
  double pause_ms = 0;
  for (int silent = 0; lp_watcher_wait(&self->watcher, pause_ms);) {
    silent = greets(self) ? 0 : silent + 1;
    if (silent == 0) atomic_store(&self->up_ms, lp_now_ms());
    pause_ms = silent == 0 ? look_ms : silent == 1 ? again_ms : pause_ms * 2;
    if (pause_ms > longest_pause_ms) pause_ms = longest_pause_ms;
    if (silent == 0 && atomic_exchange(&self->down, false)) lp_breaker_note(&self->breaker, LP_OUTCOME_GOOD);
    if (silent > 1) atomic_store(&self->down, true);
  }
  return NULL;
}

static lp_status open_engine(lp_remote *remote, lp_diag *diag) {
  const char *why = NULL;
  const lp_engine_options options = {.threads = (int32_t)remote->config->threads,
                                     .kv_bytes = remote->config->kv_bytes,
                                     .cloud = remote->address,
                                     .theta = remote->config->theta,
                                     .prompt_stretch = remote->config->prompt_stretch,
                                     .prompt_turn = remote->config->prompt_turn,
                                     .security = remote->config->security};
  if (!lp_engine_fits_worker(remote->bundle, &why)) return LP_OK;
  return lp_engine_open(remote->bundle, &options, &remote->engine, diag);
}

static lp_fleet_view view_of(void *user, size_t worker) {
  lp_remotes *self = user;
  lp_remote *remote = &self->remote[worker];
  return (lp_fleet_view){atomic_load(&remote->here), atomic_load(&remote->down)};
}

/* A worker that another server has come to find down is greeted now. */
static void hear_others(void *user, size_t worker, lp_fleet_view view) {
  lp_remotes *self = user;
  lp_remote *remote = &self->remote[worker];
  atomic_store(&remote->others, view.requests);
  if (view.down && !remote->others_down && !atomic_load(&remote->down)) lp_watcher_wake(&remote->watcher);
  remote->others_down = view.down;
}

static lp_status join_fleet(lp_remotes *self, const lp_serve_bundle *config, lp_diag *diag) {
  if (!config->fleet.redis) return LP_OK;
  const lp_fleet_workers workers = {config->workers.texts, self->count, view_of, hear_others, self};
  LP_TRY(lp_fleet_open(&config->fleet, &workers, &self->fleet, diag));
  if (!self->remote[0].engine || self->count < 2) return LP_OK;
  return lp_visits_open(&config->fleet, lp_bundle_name(self->remote[0].bundle), &self->visits, diag);
}

lp_status lp_remotes_open(const lp_bundle *bundle, const lp_serve_bundle *config, lp_remotes **out, lp_diag *diag) {
  size_t count = config->workers.count;
  lp_remotes *self = lp_alloc(sizeof *self + count * sizeof self->remote[0]);
  lp_status status = LP_OK;
  *self = (lp_remotes){.fleet = NULL};
  self->arena = lp_arena_create();
  for (; status == LP_OK && self->count < count; self->count++) {
    lp_remote *remote = &self->remote[self->count];
    *remote = (lp_remote){
        .bundle = bundle, .config = config, .address = config->workers.texts[self->count], .up_ms = -INFINITY};
    lp_breaker_init(&remote->breaker);
    (void)pthread_mutex_init(&remote->lock, NULL);
    status = lp_place_addresses_read(remote->address, bundle, self->arena, true, &remote->addresses, diag);
    if (status == LP_OK) lp_watcher_start(&remote->watcher, watch, remote);
    if (status == LP_OK) status = open_engine(remote, diag);
  }
  if (status == LP_OK) status = join_fleet(self, config, diag);
  if (status == LP_OK)
    *out = self;
  else
    lp_remotes_close(self);
  return status;
}

void lp_remotes_close(lp_remotes *self) {
  if (self) lp_fleet_close(self->fleet);
  if (self) lp_visits_close(self->visits);
  for (size_t i = 0; self && i < self->count; i++) {
    lp_watcher_end(&self->remote[i].watcher);
    lp_engine_close(self->remote[i].engine);
    lp_breaker_destroy(&self->remote[i].breaker);
    (void)pthread_mutex_destroy(&self->remote[i].lock);
  }
  if (self) lp_arena_free(self->arena);
  free(self);
}

/* Requests of all servers, as far as is known. */
static int load_of(lp_remote *remote) {
  return atomic_load(&remote->here) + atomic_load(&remote->others);
}

/* Fills what the choice goes by, and which workers may be chosen. */
static void look(lp_remotes *self, uint64_t tenant, const lp_tokens *prompt, uint64_t tried, lp_worker_offer *offer,
                 bool *may) {
  char address[LP_MOST_ADDRESS];
  const int64_t visited = self->visits ? lp_visits_find(self->visits, prompt->data, prompt->count, address) : 0;
  for (size_t i = 0; i < self->count; i++) {
    lp_remote *remote = &self->remote[i];
    may[i] = !(tried >> i & 1) && !atomic_load(&remote->down);
    offer[i] = (lp_worker_offer){.requests = load_of(remote)};
    if (may[i] && remote->engine)
      offer[i].rows = lp_engine_rows_of(remote->engine, tenant, prompt->data, prompt->count);
    if (visited > 0 && lp_streq(address, remote->address)) offer[i].visited = visited;
  }
}

lp_remote *lp_remotes_choose(lp_remotes *self, uint64_t tenant, const lp_tokens *prompt, uint64_t *tried) {
  lp_worker_offer offer[LP_MOST_WORKERS];
  bool may[LP_MOST_WORKERS] = {false};
  int best = -1;
  look(self, tenant, prompt, *tried, offer, may);
  for (int i = 0; i < (int)self->count; i++) {
    if (!may[i] || (best >= 0 && !lp_worker_is_better(&offer[i], &offer[best]))) continue;
    if (!lp_breaker_admits(&self->remote[i].breaker)) continue;
    if (best >= 0) lp_breaker_note(&self->remote[best].breaker, LP_OUTCOME_UNKNOWN);
    best = i;
  }
  if (best < 0) return NULL;
  *tried |= UINT64_C(1) << best;
  (void)atomic_fetch_add(&self->remote[best].here, 1);
  (void)atomic_fetch_add(&self->choices[lp_worker_reason(offer, may, (int)self->count, best)], 1);
  if (self->visits) lp_visits_note(self->visits, prompt->data, prompt->count, self->remote[best].address);
  return &self->remote[best];
}

bool lp_remotes_come_back(const lp_remotes *self, double within_ms) {
  bool come = false;
  for (size_t i = 0; i < self->count; i++)
    come |= atomic_load(&self->remote[i].down) && lp_now_ms() - atomic_load(&self->remote[i].up_ms) < within_ms;
  return come;
}

const char *lp_remote_address(const lp_remote *self) {
  return self->address;
}

const lp_place_addresses *lp_remote_addresses(const lp_remote *self) {
  return &self->addresses;
}

lp_engine *lp_remote_engine(lp_remote *self) {
  return self->engine;
}

void lp_remote_end(lp_remote *self, lp_outcome outcome, bool lost) {
  (void)atomic_fetch_sub(&self->here, 1);
  lp_breaker_note(&self->breaker, outcome);
  if (!lost) return;
  atomic_store(&self->down, true);
  lp_watcher_wake(&self->watcher);
}

static void tell(lp_remote *remote, lp_worker_state *out) {
  bool down = atomic_load(&remote->down), waits = lp_breaker_is_open(&remote->breaker);
  *out = (lp_worker_state){.address = remote->address, .up = !down && !waits, .requests = atomic_load(&remote->here)};
  (void)pthread_mutex_lock(&remote->lock);
  if (down) memcpy(out->reason, remote->reason, sizeof out->reason);
  (void)pthread_mutex_unlock(&remote->lock);
  if (waits && !down) (void)snprintf(out->reason, sizeof out->reason, "requests to it have failed several times");
}

void lp_remotes_reason(lp_remotes *self, char out[LP_WORKER_REASON]) {
  lp_worker_state state = {.reason = ""};
  for (size_t i = 0; i < self->count && !state.reason[0]; i++)
    tell(&self->remote[i], &state);
  memcpy(out, state.reason, sizeof state.reason);
}

void lp_remotes_tell(lp_remotes *self, lp_site_state *out) {
  out->workers = self->count;
  out->servers = lp_fleet_servers(self->fleet);
  for (int reason = 0; reason < LP_CHOICE_COUNT; reason++)
    out->choices[reason] = atomic_load(&self->choices[reason]);
  for (size_t i = 0; i < self->count; i++) {
    lp_remote *remote = &self->remote[i];
    tell(remote, &out->worker[i]);
    if (!remote->engine) continue;
    const lp_engine_load load = lp_engine_now(remote->engine);
    if (out->generating < 0) out->generating = 0;
    out->generating += load.running;
    out->waiting += load.waiting;
    out->kv_bytes += load.kv_bytes;
    out->kept_bytes += load.kept_bytes;
    out->preempted += load.preempted;
  }
}
