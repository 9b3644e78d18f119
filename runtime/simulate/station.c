/* Servers with slots, and the queue in front of them. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/simulate/simulate_internal.h"

void lp_sim_place_begin(lp_sim_place *place, const lp_sim_station *form) {
  *place = (lp_sim_place){.form = form, .room = 64};
  place->server = lp_alloc((size_t)form->replicas * sizeof *place->server);
  place->waiting = lp_alloc(place->room * sizeof *place->waiting);
  for (int64_t i = 0; i < form->replicas; i++)
    place->server[i].next_s = INFINITY;
}

void lp_sim_place_end(lp_sim_place *place) {
  for (int64_t i = 0; i < place->form->replicas; i++)
    lp_vec_free(&place->server[i].running.entries);
  free(place->server);
  free(place->waiting);
}

/* ---- the queue ---- */

static void put_last(lp_sim_place *place, uint32_t job) {
  if (place->count == place->room) {
    uint32_t *larger = lp_alloc(2 * place->room * sizeof *larger);
    for (size_t i = 0; i < place->count; i++)
      larger[i] = place->waiting[(place->first + i) % place->room];
    free(place->waiting);
    place->waiting = larger;
    place->first = 0;
    place->room *= 2;
  }
  assert(place->room > 0);
  place->waiting[(place->first + place->count++) % place->room] = job;
}

static uint32_t take_first(lp_sim_place *place) {
  assert(place->count > 0 && place->room > 0);
  uint32_t job = place->waiting[place->first];
  place->first = (place->first + 1) % place->room;
  place->count--;
  return job;
}

bool lp_sim_place_is_full(const lp_sim_place *place) {
  const lp_sim_station *form = place->form;
  bool all_busy = place->running >= form->replicas * form->slots;
  return all_busy && form->queue < LP_SIM_UNLIMITED && (int64_t)place->count >= form->queue;
}

double lp_sim_place_wait_s(const lp_sim_place *place) {
  const lp_sim_station *form = place->form;
  int64_t slots = form->replicas * form->slots, here = place->running + (int64_t)place->count;
  if (place->running < slots) return 0;
  double slower = 1 + form->slowdown * (double)(form->slots - 1), mean = place->expected_s / (double)here;
  return ((double)place->count + 1) * mean * slower / (double)slots;
}

/* ---- servers ---- */

/* Moves the clock on to `now_s`. */
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

static void start(lp_sim_place *place, lp_sim_job *jobs, uint32_t job, lp_sim_server *server, double now_s) {
  jobs[job].started_s = now_s;
  advance(server, now_s);
  lp_sim_heap_push(&server->running, server->clock_s + jobs[job].work_s, job);
  look_ahead(server, place->form->slowdown);
  place->running++;
}

/* Integrals of what was busy and waiting since the last event. */
static void observe(lp_sim_place *place, double now_s) {
  place->busy_s += (double)place->running * (now_s - place->observed_s);
  place->waiting_s += (double)place->count * (now_s - place->observed_s);
  place->observed_s = now_s;
}

/* The server with the fewest requests that has a slot left; NULL: none. */
static lp_sim_server *free_server(lp_sim_place *place) {
  lp_sim_server *best = NULL;
  size_t least = (size_t)place->form->slots;
  for (int64_t i = 0; i < place->form->replicas; i++) {
    if (place->server[i].running.entries.count >= least) continue;
    best = &place->server[i];
    least = best->running.entries.count;
  }
  return best;
}

bool lp_sim_place_offer(lp_sim_place *place, lp_sim_job *jobs, uint32_t job, double now_s) {
  if (lp_sim_place_is_full(place)) return false;
  observe(place, now_s);
  place->expected_s += jobs[job].expected_work_s;
  lp_sim_server *server = free_server(place);
  if (server)
    start(place, jobs, job, server, now_s);
  else
    put_last(place, job);
  return true;
}

double lp_sim_place_next(const lp_sim_place *place, int32_t *server) {
  double next = INFINITY;
  for (int64_t i = 0; i < place->form->replicas; i++) {
    if (place->server[i].next_s >= next) continue;
    next = place->server[i].next_s;
    *server = (int32_t)i;
  }
  return next;
}

uint32_t lp_sim_place_finish(lp_sim_place *place, lp_sim_job *jobs, int32_t index, double now_s) {
  lp_sim_server *server = &place->server[index];
  observe(place, now_s);
  advance(server, now_s);
  uint32_t job = lp_sim_heap_pop(&server->running);
  place->running--;
  place->expected_s -= jobs[job].expected_work_s;
  if (server->running.entries.count == 0) server->clock_s = 0; /* the clock stays small, so that it stays exact */
  look_ahead(server, place->form->slowdown);
  if (place->count > 0) start(place, jobs, take_first(place), server, now_s);
  return job;
}
