/* runtime/session: the device's end of a bundle. A session owns the executors of the sides in this process, or the
 * connection to the worker that has the cloud's side, and generates text, runs a program on given data, or measures
 * itself. It stands above exits/, exec/, link/ and bundle/; nothing below knows it, and worker/ stands beside it. The
 * struct is private to this room and its tests; runtime.h declares what others may do with a session. */
#pragma once

#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/pool.h"
#include "runtime/link/link.h"
#include "runtime/link/wires.h"
#include "runtime/runtime.h"

/* A place whose side a worker runs. */
typedef struct {
  char *name;           /* in messages: "the place 'edge'"; NULL: "the cloud" of two */
  lp_endpoint endpoint; /* `address` NULL: no worker runs this place */
  struct lp_security *security;
  struct lp_link_emulator *emulator;
  LP_VEC(lp_inbound) early; /* messages that came before the device waited for them, in order */
  uint64_t run;             /* the last run in which the place had a part; 0: none */
} lp_remote_place;

/* What a place draws without the device (docs/protocol.md). */
typedef struct {
  lp_place place;      /* LP_SIDE_DEVICE: none does */
  int32_t step;        /* of the logits, in its program */
  int64_t end;         /* of the text, after which the next draw comes */
  int64_t most, drawn; /* draws */
  int64_t told;        /* of these, those that the place knows to be here */
  double since_ms;     /* when it was asked */
} lp_session_stream;

struct lp_session {
  const lp_bundle *bundle; /* borrowed */
  lp_generate_options options;
  lp_pool *pool;
  lp_executor *executor[LP_PLACES_MAX]; /* NULL for a side that is not in this process */
  bool remote;                          /* workers have all sides but the device's */
  lp_remote_place place[LP_PLACES_MAX];
  lp_wire *wire[LP_PLACES_MAX]; /* to the workers of the places; NULL: one process, or not connected */
  lp_wires wires;               /* all of them */
  uint64_t id;
  uint64_t route; /* the number by which places send to each other for this session; 0: there are two */
  uint64_t run;   /* runs of programs since it connected; counted with a route */
  lp_session_stream stream;
  bool draws_singly;    /* a worker knows no streams */
  int32_t logits;       /* the output that tokens are sampled from; -1: none */
  bool lost;            /* the connection broke in the last walk, and with it the worker's state of this session */
  lp_patience patience; /* no zeros */
  uint64_t bytes_up, bytes_down; /* over connections that are closed */
  uint64_t told_up, told_down;   /* bytes over all connections that earlier generations have reported */
  uint64_t waits;                /* times that the device waited for the cloud */
  double wait_ms;                /* the sum of these waits */
  double cloud_ms;               /* the part of wait_ms in which the cloud computed */
  lp_buf scratch, rows;
  struct lp_batch *batch;     /* of texts that share a pass (embed.c); NULL: none have yet */
  struct lp_stopwatch *watch; /* times the walks in this process (walk.h); NULL: nothing is timed */
};

double lp_session_timeout_ms(const lp_session *session); /* the longest wait for one answer of a worker */

/* ---- the workers of the other places (workers.c) ----------------------------------------------------------------- */

/* Finds the addresses, keys and emulated links of the workers that the options name. */
LP_MUST_USE lp_status lp_session_find_workers(lp_session *session, lp_diag *diag);
void lp_session_forget_workers(lp_session *session);
/* Connects to the workers and opens a session at each of them. Does nothing when the session is connected, or all sides
 * are in this process. After a failure it is not connected. */
LP_MUST_USE lp_status lp_session_connect(lp_session *session, lp_diag *diag);
/* How long a worker that is not there yet is dialled before a generation begins; 0: once. */
double lp_session_reach_ms(const lp_session *session);
/* The same for the first connection: while a worker cannot be reached it tries again, for lp_session_reach_ms. */
LP_MUST_USE lp_status lp_session_reach(lp_session *session, lp_diag *diag);
/* Closes the connections, if there are any. */
void lp_session_disconnect(lp_session *session);
bool lp_session_is_connected(const lp_session *session);
/* The bytes over all connections so far. */
void lp_session_count_bytes(const lp_session *session, uint64_t *up, uint64_t *down);
/* Receives the next message of the worker of `place`, and keeps those of others for their turn. LP_RECV_FRAME with
 * *from another place: it says that it failed. After any other outcome, *from is the place whose connection ended. */
lp_recv_outcome lp_session_receive(lp_session *session, lp_place place, double timeout_ms, lp_place *from,
                                   lp_inbound *in, const char **why);

/* Chooses the plan for prompts of `length` tokens with at most `most` to generate, and sets `plan`, `rtt_ms` and
 * `up_bps` of `out`: the plan that the options fix, or else the plan with a region that contains the request and the
 * measured link. A remote session must be connected. */
LP_MUST_USE lp_status lp_session_choose_plan(lp_session *session, int64_t length, int64_t most, lp_generation *out,
                                             lp_diag *diag);
/* The number of tokens in each part of a long prompt. A generation can be stopped after each part. Prefill runs the
 * first part, decode the others. INT64_MAX: the prompt runs in one part, because decode runs some layers on another
 * side than prefill, or because the model has an encoder. */
int64_t lp_session_prompt_part(const lp_session *session, int32_t prefill, int32_t decode);
