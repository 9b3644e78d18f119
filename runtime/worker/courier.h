/* A courier brings what this place makes to one other place, over a connection that it dials itself, and dials again
 * with pauses that double when it is lost. It has a thread, so that neither a slow nor a missing place delays the
 * worker. It knows no session. */
#pragma once

#include "runtime/bundle/manifest.h"
#include "runtime/link/link.h"

typedef struct worker_courier worker_courier;

typedef struct {
  const char *from, *to; /* names of places */
  const char *address, *bundle_hash;
  lp_link_security security; /* files, read each time that it dials */
  void (*wake)(void *user);  /* called by the courier's thread when there is a loss to take */
  void *user;
} worker_courier_options;

/* A Forward of link.proto, or Rows. */
typedef struct {
  bool is_rows;
  struct {
    uint64_t context, epoch;
    int64_t floor, first, count;
  } rows;
  uint64_t route, run, last[LP_PLACES_MAX];
  size_t last_count;
  uint32_t program;
  int32_t step;
  int64_t sym[LP_MAX_SYMBOLS];
  size_t symbol_count;
  bool want_outputs;
  double busy_ms;
  const void *payload; /* [size] bytes */
  size_t size;
} worker_parcel;

/* Starts the thread, which dials at once. Fails when the files of `options`, which are borrowed, cannot be used. The
 * caller stops the courier, also after a failure. */
LP_MUST_USE lp_status worker_courier_start(const worker_courier_options *options, worker_courier **out, lp_diag *diag);
void worker_courier_stop(worker_courier *courier); /* NULL is allowed */
/* Copies the parcel and returns. Parcels arrive in order, each once or, after a loss, not at all. */
void worker_courier_send(worker_courier *courier, const worker_parcel *parcel);
bool worker_courier_is_busy(worker_courier *courier); /* parcels wait, or are being sent */
/* Tells whether parcels may have been lost since the last call: the connection was, or could not be made. `why`
 * receives the reason of the last loss. */
bool worker_courier_take_loss(worker_courier *courier, lp_buf *why);
/* Tells whether the user should learn of the outage now, which happens once: it concerns a session, or has lasted. */
bool worker_courier_tells(worker_courier *courier, bool concerns);
