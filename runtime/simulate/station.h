/* Stations: the servers of a site, and the queue before them. Times in s. One thread at a time uses a station. */
#pragma once

#include "base/base.h"
#include "runtime/simulate/passes.h"
#include "runtime/simulate/simulate.h"

/* A binary heap of events. */
typedef struct {
  double key;
  uint32_t order, item;
} lp_sim_entry;

typedef struct {
  LP_VEC(lp_sim_entry) entries;
  uint32_t next;
} lp_sim_heap;

/* The caller frees `entries` with lp_vec_free. */
void lp_sim_heap_push(lp_sim_heap *heap, double key, uint32_t item);
uint32_t lp_sim_heap_pop(lp_sim_heap *heap); /* not empty */

/* A request on its way. */
typedef struct {
  int64_t index;
  double arrived_s, reached_s, started_s;
  double work_s, expected_work_s; /* time on an idle machine, for the true and for the expected length */
  double first_work_s;            /* that of the first token */
  double first_s;                 /* when the first token was there; 0: with the rest, see first_work_s */
  double prompt, tokens;
  uint64_t seed;
  double link_s; /* up and down, with the server's work on a request */
  double decision_s, regret;
  bool met; /* full quality is met or not required */
  int32_t task;
  lp_site site;
} lp_sim_job;

/* One server. Its clock runs slower the more requests it serves at a time, so that a request of w s ends when the clock
 * has advanced by w, whatever other requests begin or end meanwhile. */
typedef struct {
  lp_sim_heap running; /* keys: the clock's time at the end of each request */
  double clock_s, at_s, speed;
  double next_s;        /* when the first of them, or the pass, ends; INFINITY: none */
  lp_sim_passes passes; /* instead of the clock */
  size_t count;         /* of requests here */
} lp_sim_server;

typedef struct {
  const lp_sim_station *form;
  lp_sim_server *server; /* [form->replicas] */
  uint32_t *waiting;     /* a ring */
  size_t first, count, room;
  int64_t running;
  double expected_s;                    /* expected work of all requests at the site */
  double busy_s, waiting_s, observed_s; /* integrals up to observed_s */
} lp_sim_site;

/* `form` outlives the site, which lp_sim_site_end releases. */
void lp_sim_site_begin(lp_sim_site *site, const lp_sim_station *form);
void lp_sim_site_end(lp_sim_site *site);
/* False: the queue is full. */
bool lp_sim_site_offer(lp_sim_site *site, lp_sim_job *jobs, uint32_t job, double now_s);
/* The time at which the next request or pass ends, and its server. */
double lp_sim_site_next(const lp_sim_site *site, int32_t *server);
/* Ends that request or pass, starts the next one, and returns the request that ended; LP_SIM_NO_JOB: a pass ended, and
 * no request with it. */
#define LP_SIM_NO_JOB UINT32_MAX
uint32_t lp_sim_site_finish(lp_sim_site *site, lp_sim_job *jobs, int32_t server, double now_s);
/* Estimates from the counts how long a request that arrives now would wait. */
double lp_sim_site_wait_s(const lp_sim_site *site);
bool lp_sim_site_is_full(const lp_sim_site *site);
