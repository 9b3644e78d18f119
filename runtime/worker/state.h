/* The state of a worker: peers, the sessions and contexts of devices, and the memory of passes. The thread that serves
 * owns all of it. The other headers of this room declare the functions on it. */
#pragma once

#include "runtime/bundle/manifest.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/pace.h"
#include "runtime/exec/pool.h"
#include "runtime/exits/context.h"
#include "runtime/exits/halves.h"
#include "runtime/link/link.h"
#include "runtime/link/security.h"
#include "runtime/runtime.h"

/* A run of a program that takes all payloads before it computes. It waits in the queue for a batched pass (queue.h). */
typedef struct {
  bool gathers;    /* its payloads are kept here; the session's executor runs nothing */
  bool waits;      /* all payloads are here: it waits for a pass */
  uint64_t ticket; /* its place in the queue */
  int64_t sym[LP_MAX_SYMBOLS];
  int64_t done;    /* number of its b * s rows that earlier passes have run */
  double asked_ms; /* when the last payload came */
  double busy_ms;  /* time that earlier passes took */
  lp_buf payload;  /* the payloads of all steps, one after the other */
  lp_buf *result;  /* [result_count] of each step, what earlier passes gave: rows or samples; NULL: nothing yet */
  int32_t result_count;
} worker_queued_run;

/* What a session draws without its device (link.proto). */
typedef struct {
  bool goes_on;    /* there are draws to be made */
  int32_t program; /* of the runs to come */
  int64_t most, window, drawn, taken;
  LP_VEC(int32_t) end, given;
  int32_t *token; /* [b] what the next run takes */
  bool *ended;    /* [b] */
} worker_stream;

/* A message of the device or of another place for a session that has not come to its turn (mail.h). */
typedef struct {
  uint64_t run;
  int32_t step;   /* -1: it only begins the run */
  double busy_ms; /* other places computed for it */
  lp_inbound in;
} worker_letter;

/* A session of a device. It runs this place's part of a program as payloads come in; between two messages it waits at
 * the step `next`, which takes a payload. */
typedef struct {
  uint32_t peer;
  uint64_t id;
  /* With more than two places, as in link.proto: */
  uint64_t route; /* 0: there are two */
  uint64_t run;   /* the number of the run that is under way or ended last */
  uint64_t last[LP_PLACES_MAX];
  int64_t sym[LP_MAX_SYMBOLS]; /* of that run, as the device gave them */
  LP_VEC(worker_letter) mail;
  size_t mail_bytes;        /* payloads in `mail` */
  bool sent[LP_PLACES_MAX]; /* the places that it has sent to */
  bool broken;              /* the device has been told that it failed, and will close it */
  double carried_ms;        /* what other places computed for the reply that comes next */

  lp_sampling sampling;
  lp_executor *executor;
  int32_t program;
  int32_t next; /* the step that it waits at; -1: no run is under way */
  bool want_outputs;
  bool keeps;                 /* it began with rows of another session, and has run nothing */
  bool yields;                /* its device runs the text again if its KV caches were dropped (link.proto) */
  uint64_t number;            /* counts sessions as they are opened: older ones take the memory of younger ones */
  bool chosen;                /* for the pass that begins */
  bool dropped;               /* its KV cache was dropped; the next run must begin at position 0 */
  int64_t position;           /* tokens in the KV cache */
  double used_ms;             /* time of the last message */
  char traceparent[64];       /* of the request; "": none */
  double opened_ms, spent_ms; /* spent: of all replies */
  double run_ms;              /* when the run began; NaN: it has been answered */
  double answered_ms;         /* when the last run was answered; NaN: none was */
  int64_t replies;
  double busy_from; /* when the computation of the next reply began */
  bool times;       /* replies carry times */
  worker_queued_run queued;
  worker_stream stream;
} worker_session;

/* A context of early exits (exits/context.h), and the question that it waits to answer, if any. */
typedef struct {
  uint64_t id;
  uint32_t peer; /* the connection that joined it last; 0: it has ended */
  uint64_t who;  /* the client that joined it last; 0: unknown */
  lp_context *context;
  double used_ms; /* time of the last message */
  bool lost;      /* its content was dropped; the device learns it with its next question */
  struct {
    bool waits;
    uint32_t peer;
    uint64_t number;
    lp_context_time time;
    int64_t end, count;
    int32_t *draft;  /* [count] */
    double since_ms; /* when it came, or when the device was last reminded of rows */
    double asked_ms; /* when it came */
    uint64_t ticket; /* its place in the queue, once all rows are here; 0: none yet */
    double busy_ms;  /* time that passes took so far */
  } question;
  uint64_t answered; /* number of the question answered last; 0: none */
  lp_answer answer;
  double carried_ms;         /* what other places computed for the next answer */
  bool times;                /* answers carry times */
  double asked_ms, ended_ms; /* of the last answer; ended 0: this worker has given none */
} worker_context;

/* A connection, and the state of its handshake. */
typedef struct {
  uint32_t id;
  uint64_t who;     /* its client (lp_transport.identify); 0: unknown, the connection counts by itself */
  uint64_t host;    /* where it comes from; an unknown client's quotas are those of its host */
  bool hello;       /* its hello was accepted: same protocol, same bundle */
  bool greeted;     /* it has also proved the key: the worker takes its messages */
  bool refused;     /* the handshake failed; the peer is being disconnected */
  lp_place from;    /* the connection is a worker's, and carries what this place sends; 0: it is a device's */
  int64_t served;   /* rows that passes have run for it, or more: see share.h */
  double queued_ms; /* when a request of it was last in the queue; 0: never */
  uint64_t pass;    /* the last pass before which a request of it waited; 0: none */
} worker_peer;

typedef struct {
  const lp_bundle *bundle;                       /* borrowed */
  lp_place place;                                /* the place that this worker serves */
  struct worker_courier *courier[LP_PLACES_MAX]; /* to the places that it sends to; NULL: it sends them nothing */
  const lp_worker_options *options;              /* borrowed */
  lp_pool *pool;
  lp_wire *wire;
  LP_VEC(worker_session *) sessions;
  LP_VEC(worker_context *) contexts;
  lp_halves halves;
  int32_t link;              /* of the chain of halves, that this place is */
  const char *whole;         /* the reason why this place has no half that runs independently; NULL: it has */
  LP_VEC(worker_peer) peers; /* peers that have sent a message */
  lp_security security;
  LP_VEC(lp_security) earlier; /* before they were read again: old connections may still use them */
  lp_endpoint self;            /* this side of a handshake */
  lp_diag *diag;
  lp_buf scratch, rows;
  lp_sample *sample; /* [sample_count] */
  size_t sample_count;
  struct worker_pass *pass; /* memory of passes; NULL: none was run yet */
  lp_batch *batch;          /* NULL: the code runs one session at a time, when its message comes */
  uint64_t ticket;          /* the last ticket of the queue */
  uint64_t opened;          /* sessions so far */
  int64_t turn;             /* the least that a peer in the queue was served, when the last pass began */
  uint64_t passes;          /* the number of the last pass */
  int64_t waiting;          /* peers with requests in the queue before that pass */
  lp_pace pace;
  int32_t *code;                /* [programs] the first program with the same code */
  size_t told_open, told_bytes; /* the figures last given to options->on_held */
} lp_worker;
