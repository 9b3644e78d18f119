/* Stations: the servers of a site, and the queue before them. Times in s. One thread at a time uses a station. */
#ifndef LP_SIMULATE_STATION_H
#define LP_SIMULATE_STATION_H

#include "runtime/simulate/heap.h"
#include "runtime/simulate/simulate.h"

/* A request on its way. */
typedef struct {
  int64_t index;
  double arrived_s, reached_s, started_s;
  double work_s, expected_work_s; /* on an idle machine, by its true and by its expected length */
  double link_s;                  /* up and down */
  double decision_s, regret;
  bool met; /* quality, or none is asked for */
  int32_t task;
  lp_site site;
} lp_sim_job;

/* One server. Its clock runs slower the more it has at a time, so that a request of w s ends w of its seconds after it
 * began, whoever comes and goes. */
typedef struct {
  lp_sim_heap running; /* by the clock's time at the end */
  double clock_s, at_s, speed;
  double next_s; /* when the first of them ends, INFINITY: none */
} lp_sim_server;

typedef struct {
  const lp_sim_station *form;
  lp_sim_server *server; /* [form->replicas] */
  uint32_t *waiting;     /* a ring */
  size_t first, count, room;
  int64_t running;
  double expected_s;                    /* expected work of all that are here */
  double busy_s, waiting_s, observed_s; /* integrals up to observed_s */
} lp_sim_site;

/* `form` outlives the site, which lp_sim_site_end releases. */
void lp_sim_site_begin(lp_sim_site *site, const lp_sim_station *form);
void lp_sim_site_end(lp_sim_site *site);
/* False: the queue is full. */
bool lp_sim_site_offer(lp_sim_site *site, lp_sim_job *jobs, uint32_t job, double now_s);
/* When its next request ends, and on which server. */
double lp_sim_site_next(const lp_sim_site *site, int32_t *server);
/* Ends it, lets the next one begin, and gives the request that ended. */
uint32_t lp_sim_site_finish(lp_sim_site *site, lp_sim_job *jobs, int32_t server, double now_s);
/* How long a request that came now would wait, as far as counts tell. */
double lp_sim_site_wait_s(const lp_sim_site *site);
bool lp_sim_site_is_full(const lp_sim_site *site);

#endif
