/* What servers that share workers tell each other over Redis or Valkey, several times a second: a heartbeat, the
 * requests that each one has at each worker, and the workers that it finds down. A server adds the others' requests to
 * its own when it chooses a worker, and greets a worker that another one finds down; it takes none out because another
 * one said so. While the database is away, each server knows only what it sees itself. */
#pragma once

#include "runtime/serve/serve.h"

typedef struct lp_fleet lp_fleet;

/* A server's view of a worker, or that of several servers together: the sum, and whether one of them finds it down. */
typedef struct {
  int requests;
  bool down;
} lp_fleet_view;

/* The workers of a server. Both functions are called on the fleet's thread. */
typedef struct {
  const char *const *address; /* [count] as all servers write them */
  size_t count;
  lp_fleet_view (*mine)(void *user, size_t worker);
  void (*others)(void *user, size_t worker, lp_fleet_view view); /* of all other servers */
  void *user;
} lp_fleet_workers;

/* Starts a thread that connects, and connects again when it must. Borrows both arguments' members. Fails if llmpart was
 * built without hiredis or the address is none. */
LP_MUST_USE lp_status lp_fleet_open(const lp_serve_fleet *config, const lp_fleet_workers *workers, lp_fleet **out,
                                    lp_diag *diag);
void lp_fleet_close(lp_fleet *fleet);        /* NULL is allowed */
int lp_fleet_servers(const lp_fleet *fleet); /* that were heard of, this one included; 0: the database is away */
