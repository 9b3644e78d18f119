/* The sequences of an engine, and what an engine has. Private to engine/. */
#pragma once

#include <pthread.h>

#include "runtime/engine/decoder.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/pace.h"
#include "runtime/exec/pool.h"

enum { ENGINE_MOST_SESSIONS = 64 /* that a worker gives a connection */, ENGINE_MOST_CROSSING = 8 };

typedef struct engine_job engine_job;
typedef struct engine_remote engine_remote; /* remote.h */

/* One request, on the stack of the thread that made it. */
typedef struct {
  const lp_engine_request *request;
  pthread_cond_t changed; /* a job has another token or has ended */
  engine_job *job;        /* [choices] */
  int64_t most;           /* tokens of each job, at most */
  int64_t capacity;       /* of the KV cache of each job, in tokens: `most`, or more (memory.h) */
  size_t bytes;           /* of memory that it takes with `most` rows */
  int32_t prefill, decode;
  double begun_ms; /* the first pass; 0: none has begun */
} engine_call;

/* Where a job is in its life; engine_job_enter allows these steps:
 *
 *   waiting -> admitted <-> following;  admitted -> running
 *   admitted, following, running -> waiting: it begins again
 *   any but ended -> ended */
typedef enum {
  ENGINE_WAITING,   /* for memory */
  ENGINE_ADMITTED,  /* its KV cache is within the budget, and no pass has run it since */
  ENGINE_FOLLOWING, /* admitted, and waits for another job that computes rows of its prompt */
  ENGINE_RUNNING,   /* a pass has run it */
  ENGINE_ENDED
} engine_stage;

/* What a pass has given a job. */
typedef enum {
  ENGINE_NO_TOKEN, /* none was due, or it has not come yet */
  ENGINE_DRAWN,    /* `drawn` */
  ENGINE_COMPLETE, /* the end of the answer's grammar */
  ENGINE_LATE,     /* a draw goes on beside the passes (late.h) */
  ENGINE_TOO_MUCH, /* the answer ends, since its grammar takes more work than a request may */
  ENGINE_FAILED,   /* `error` says why */
  ENGINE_NO_ROOM   /* failed, since the worker needs the memory for older sessions */
} engine_result;

/* LOST: with the worker. TOO_MUCH: see engine_result. */
typedef enum { ENGINE_END_OF_TEXT, ENGINE_END_CUT, ENGINE_END_LOST, ENGINE_END_TOO_MUCH } engine_end;

/* Where a draw is that a pass did not wait for (late.h). */
typedef enum { ENGINE_NOT_LATE, ENGINE_LATE_WAITS, ENGINE_LATE_DONE } engine_lateness;

/* One sequence. The engine's thread owns the first group of members from the time that the job is in `jobs` until it
 * has ended; the lock guards the others. */
struct engine_job {
  engine_call *call;
  lp_tokens text;        /* the prompt and the answer */
  int64_t done;          /* tokens of it that passes have run */
  lp_executor *executor; /* holds the KV cache; NULL until the job is admitted */
  engine_decoder decoder;
  uint64_t ticket;
  const lp_states *from; /* another prompt's first `done` rows, which the first pass copies; NULL: none */
  uint64_t from_session; /* the worker's session that has them there; 0: none */
  bool own_rows;         /* it takes no rows of others, since the worker refused it some */
  int64_t served;        /* rows of its client, while passes are chosen */
  int64_t turn;          /* rows of its prompt that are left of a turn which a pass has cut short; 0: it has no turn */
  int64_t rows;          /* in the current pass */
  lp_drawn drawn;        /* in the current pass */
  int32_t exit;          /* of that draw */
  engine_result result;  /* of the current pass */
  bool wants_logits;     /* of the current pass, from the worker */
  float *logits;         /* [vocab] these, or those of the last exit that was unsure; NULL: none came */
  uint64_t session;      /* at the worker; 0: none */
  bool asks;             /* it needs the worker in the current pass */
  bool told;             /* the worker knows of the current pass */
  int64_t draws, taken; /* of a stream of the session that came, and that the worker knows to be here; 0: it has none */

  /* With early exits (exits.h): */
  lp_buf crossing[ENGINE_MOST_CROSSING];  /* the rows of each tensor that crosses to the cloud, from the first on */
  int64_t sent;                           /* of these, to the session */
  int64_t remote_symbols[LP_MAX_SYMBOLS]; /* of what it asks the worker */
  int32_t unsure;                         /* the layer of the exit that gave `logits` */
  uint64_t connection;                    /* that has the session */

  engine_stage stage;
  engine_lateness late;
  uint64_t entered;     /* counts admissions */
  int64_t granted;      /* rows of the KV cache that the budget holds (memory.h) */
  size_t bytes;         /* of these */
  bool cancelled;       /* its caller wants no more */
  engine_end end;       /* once it has ended */
  char *error;          /* NULL: none */
  LP_VEC(lp_drawn) out; /* tokens that wait for the sink */
  int64_t handed;       /* tokens that it took */
  int64_t reused;       /* rows that were copied */
};

static inline void engine_job_free_crossing(engine_job *job) {
  for (size_t i = 0; i < ENGINE_MOST_CROSSING; i++)
    lp_buf_free(&job->crossing[i]);
}

/* Rows of a prompt that has ended (prefix.h). */
typedef struct {
  uint64_t tenant;       /* whose requests may use them */
  lp_tokens text;        /* the tokens of the rows */
  lp_executor *executor; /* holds them */
  size_t bytes;
  uint64_t used;    /* the ticket of the last use */
  uint64_t session; /* that has the worker's rows; 0: there is no worker */
} engine_prefix;

typedef struct {
  uint64_t id;
  int64_t served; /* rows that passes have run for it, or more: see engine.h */
  int32_t jobs;
  int64_t most;   /* rows of decode that the pass which is being chosen may still take */
  double late_ms; /* of late draws */
} engine_client;

struct lp_engine {
  const lp_bundle *bundle;
  int64_t kv_bytes; /* the budget; 0: none */
  lp_pool *pool;
  lp_batch *batch;
  engine_remote *remote; /* NULL: all layers run here */
  bool draws_remotely;   /* the worker has the logits */
  double theta;          /* of early exits; 0: they are not used */
  uint64_t connection;   /* counts the losses of the worker, with early exits */
  double quiet_until_ms; /* until then nobody dials */
  int32_t *code;         /* [programs] the first program with the same code */
  lp_pace pace;
  bool runs;       /* the thread was started; of the threads that open and close the engine */
  bool shares;     /* prompts that begin alike share their rows; false also if a worker refuses that every time */
  lp_states shape; /* gives sizes of KV caches; has no region */
  uint64_t ticket;
  LP_VEC(engine_job *) chosen; /* of the current pass */
  LP_VEC(lp_batch_member) member;

  pthread_mutex_t making_masks;
  lp_masks *masks; /* NULL: no grammar has needed them yet; then they never change */
  bool runs_late;  /* the thread of late draws was started; both guarded by `making_masks` */

  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t work;
  pthread_t thread;
  bool ends;
  pthread_cond_t late, drawn; /* a late draw waits; a slice of one has ended */
  pthread_t late_thread;
  LP_VEC(engine_job *) jobs;
  LP_VEC(engine_client) clients;
  int64_t turn;        /* the least that a client with jobs was served, when the last pass was chosen */
  int64_t prompt_turn; /* of lp_engine_options */
  engine_job *drawing; /* its late draw goes on now */
  size_t held;         /* bytes of KV caches of admitted jobs */
  uint64_t entered;    /* admissions */
  int64_t preempted;   /* sequences that gave their memory back, and began again */
  double busy_ms;      /* in passes */
  size_t most_remote;  /* jobs that may be admitted, since the worker had no room for more; SIZE_MAX: it always had */
  double room_ms;      /* when one more may be admitted (memory.h) */
  LP_VEC(engine_prefix) kept;
  size_t kept_bytes;
  int64_t reused;   /* rows of prompts that were copied */
  int32_t refusals; /* in a row, of a worker, to let a prompt begin with rows of another one */
};

/* With the lock held. NULL: the client has no jobs. */
engine_client *engine_client_of(lp_engine *engine, uint64_t id);
/* With the lock held, on the engine's thread. */
void engine_job_enter(engine_job *job, engine_stage stage);
bool engine_job_is_admitted(const engine_job *job);
bool engine_job_may_run(const engine_job *job); /* in the next pass */
bool engine_job_has_failed(const engine_job *job);
/* Tells whether the pass runs the last token of the job's text, after which the next one is drawn. */
bool engine_job_draws(const engine_job *job);
/* Draws the next token from logits, those of the exit after `exit` layers, or 0: of the full model. */
LP_MUST_USE lp_status engine_job_draw(engine_job *job, const float *logits, int32_t exit, lp_diag *diag);
/* Goes on with a draw that is late. */
void engine_job_draw_on(engine_job *job);
void engine_job_fail(engine_job *job, const lp_diag *diag);
void engine_job_forget_failure(engine_job *job);
