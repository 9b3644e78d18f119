/* Servers with slots, and the queue in front of them. Heaps of events. */
#include <assert.h>
#include <math.h>

#include "runtime/simulate/station.h"

void lp_sim_site_begin(lp_sim_site *site, const lp_sim_station *form) {
  *site = (lp_sim_site){.form = form, .room = 64};
  site->server = lp_alloc((size_t)form->replicas * sizeof *site->server);
  site->waiting = lp_alloc(site->room * sizeof *site->waiting);
  for (int64_t i = 0; i < form->replicas; i++)
    site->server[i].next_s = INFINITY;
}

void lp_sim_site_end(lp_sim_site *site) {
  for (int64_t i = 0; i < site->form->replicas; i++)
    lp_vec_free(&site->server[i].running.entries), lp_vec_free(&site->server[i].passes.members);
  free(site->server);
  free(site->waiting);
}

/* ---- the queue ---- */

static void put_last(lp_sim_site *site, uint32_t job) {
  if (site->count == site->room) {
    uint32_t *larger = lp_alloc(2 * site->room * sizeof *larger);
    for (size_t i = 0; i < site->count; i++)
      larger[i] = site->waiting[(site->first + i) % site->room];
    free(site->waiting);
    site->waiting = larger;
    site->first = 0;
    site->room *= 2;
  }
  assert(site->room > 0);
  site->waiting[(site->first + site->count++) % site->room] = job;
}

static uint32_t take_first(lp_sim_site *site) {
  assert(site->count > 0 && site->room > 0);
  uint32_t job = site->waiting[site->first];
  site->first = (site->first + 1) % site->room;
  site->count--;
  return job;
}

bool lp_sim_site_is_full(const lp_sim_site *site) {
  const lp_sim_station *form = site->form;
  bool all_busy = site->running >= form->replicas * form->slots;
  return all_busy && form->queue < LP_SIM_UNLIMITED && (int64_t)site->count >= form->queue;
}

double lp_sim_site_wait_s(const lp_sim_site *site) {
  const lp_sim_station *form = site->form;
  int64_t slots = form->replicas * form->slots, here = site->running + (int64_t)site->count;
  if (site->running < slots) return 0;
  double slower = 1 + form->slowdown * (double)(form->slots - 1), mean = site->expected_s / (double)here;
  return ((double)site->count + 1) * mean * slower / (double)slots;
}

/* ---- servers ---- */

/* Advances the clock to `now_s`. */
static void advance(lp_sim_server *server, double now_s) {
  server->clock_s += (now_s - server->at_s) * server->speed;
  server->at_s = now_s;
}

static void look_ahead(lp_sim_server *server, double slowdown) {
  size_t count = server->running.entries.count;
  server->speed = count > 1 ? 1 / (1 + slowdown * (double)(count - 1)) : 1;
  server->next_s = INFINITY;
  if (count > 0)
    server->next_s = server->at_s + fmax(server->running.entries.data[0].key - server->clock_s, 0) / server->speed;
}

static void begin_pass(const lp_sim_site *site, lp_sim_job *jobs, lp_sim_server *server, double now_s) {
  lp_sim_passes *passes = &server->passes;
  server->next_s = now_s + lp_sim_passes_begin(passes, site->form);
  for (size_t i = 0; i < passes->members.count; i++) {
    lp_sim_job *job = &jobs[passes->members.data[i].job];
    if (passes->members.data[i].rows > 0 && job->started_s < 0) job->started_s = now_s;
  }
}

static void start(lp_sim_site *site, lp_sim_job *jobs, uint32_t job, lp_sim_server *server, double now_s) {
  site->running++;
  server->count++;
  if (site->form->pass.count > 0) {
    jobs[job].started_s = -1;
    lp_sim_passes_add(&server->passes, job, jobs[job].prompt, jobs[job].tokens, jobs[job].seed);
    if (!server->passes.runs) begin_pass(site, jobs, server, now_s);
    return;
  }
  jobs[job].started_s = now_s;
  advance(server, now_s);
  lp_sim_heap_push(&server->running, server->clock_s + jobs[job].work_s, job);
  look_ahead(server, site->form->slowdown);
}

/* Adds the busy slots and waiting requests since the last event to the integrals. */
static void observe(lp_sim_site *site, double now_s) {
  site->busy_s += (double)site->running * (now_s - site->observed_s);
  site->waiting_s += (double)site->count * (now_s - site->observed_s);
  site->observed_s = now_s;
}

/* Among the servers with a free slot, the one with the fewest requests; NULL: none. */
static lp_sim_server *free_server(lp_sim_site *site) {
  lp_sim_server *best = NULL;
  size_t least = (size_t)site->form->slots;
  for (int64_t i = 0; i < site->form->replicas; i++) {
    if (site->server[i].count >= least) continue;
    best = &site->server[i];
    least = best->count;
  }
  return best;
}

bool lp_sim_site_offer(lp_sim_site *site, lp_sim_job *jobs, uint32_t job, double now_s) {
  if (lp_sim_site_is_full(site)) return false;
  observe(site, now_s);
  site->expected_s += jobs[job].expected_work_s;
  lp_sim_server *server = free_server(site);
  if (server)
    start(site, jobs, job, server, now_s);
  else
    put_last(site, job);
  return true;
}

double lp_sim_site_next(const lp_sim_site *site, int32_t *server) {
  double next = INFINITY;
  for (int64_t i = 0; i < site->form->replicas; i++) {
    if (site->server[i].next_s >= next) continue;
    next = site->server[i].next_s;
    *server = (int32_t)i;
  }
  return next;
}

/* A request that leaves makes room for one in the queue. */
static void leave(lp_sim_site *site, lp_sim_job *jobs, uint32_t job, lp_sim_server *server) {
  site->running--;
  server->count--;
  site->expected_s -= jobs[job].expected_work_s;
}

/* Ends the pass, if one is under way; then the requests that it completed leave, one for each call, and the next pass
 * begins. */
static uint32_t finish_pass(lp_sim_site *site, lp_sim_job *jobs, lp_sim_server *server, double now_s) {
  lp_sim_passes *passes = &server->passes;
  uint32_t job = LP_SIM_NO_JOB;
  size_t done = 0, kept = 0;
  if (passes->runs) lp_sim_passes_end(passes);
  LP_FOR_VEC(lp_sim_member, member, &passes->members) {
    if (member->generates && jobs[member->job].first_s == 0) jobs[member->job].first_s = now_s;
    if (member->tokens == 0 && job == LP_SIM_NO_JOB) {
      job = member->job;
      continue;
    }
    done += member->tokens == 0;
    passes->members.data[kept++] = *member;
  }
  passes->members.count = kept;
  if (job != LP_SIM_NO_JOB) leave(site, jobs, job, server);
  passes->runs = true; /* a request of the queue joins the next pass, which has not begun */
  if (job != LP_SIM_NO_JOB && site->count > 0) start(site, jobs, take_first(site), server, now_s);
  passes->runs = false;
  if (done == 0) begin_pass(site, jobs, server, now_s);
  return job;
}

uint32_t lp_sim_site_finish(lp_sim_site *site, lp_sim_job *jobs, int32_t index, double now_s) {
  lp_sim_server *server = &site->server[index];
  observe(site, now_s);
  if (site->form->pass.count > 0) return finish_pass(site, jobs, server, now_s);
  advance(server, now_s);
  uint32_t job = lp_sim_heap_pop(&server->running);
  leave(site, jobs, job, server);
  /* an idle server restarts its clock, since small numbers are exact */
  if (server->running.entries.count == 0) server->clock_s = 0;
  look_ahead(server, site->form->slowdown);
  if (site->count > 0) start(site, jobs, take_first(site), server, now_s);
  return job;
}

/* ---- heaps of events --------------------------------------------------------------------------------------------- */

static bool before(const lp_sim_entry *a, const lp_sim_entry *b) {
  return a->key < b->key || (a->key == b->key && a->order < b->order);
}

void lp_sim_heap_push(lp_sim_heap *heap, double key, uint32_t item) {
  lp_sim_entry entry = {key, heap->next++, item};
  size_t at = heap->entries.count;
  lp_vec_push(&heap->entries, entry);
  lp_sim_entry *entries = heap->entries.data;
  while (at > 0 && before(&entry, &entries[(at - 1) / 2])) {
    entries[at] = entries[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  entries[at] = entry;
}

uint32_t lp_sim_heap_pop(lp_sim_heap *heap) {
  lp_sim_entry *entries = heap->entries.data;
  uint32_t item = entries[0].item;
  lp_sim_entry last = entries[--heap->entries.count];
  size_t count = heap->entries.count, at = 0;
  for (size_t child = 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && before(&entries[child + 1], &entries[child])) child++;
    if (!before(&entries[child], &last)) break;
    entries[at] = entries[child];
    at = child;
  }
  if (count > 0) entries[at] = last;
  return item;
}
