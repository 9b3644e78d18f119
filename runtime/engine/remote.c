/* Messages to a worker and from it. Results of several sessions come in any order, and wait here for their turn. */
#include "runtime/engine/remote.h"

#include <math.h>

#include "base/clock.h"
#include "runtime/bundle/bundle.h"
#include "runtime/link/link.h"
#include "runtime/link/link.pb-c.h"
#include "runtime/link/security.h"

/* A worker that is silent for silence_ms is lost; one that shows signs of life has answer_ms for a result. A connection
 * without sessions for stale_ms is made anew, since the worker may have been started again. */
/* The most tokens that the worker draws ahead, where it has all of decode; it is told four times in a window (see
 * session_remote.c). */
enum { WINDOW = 256, MOST_ENDS = 256 };
static const double answer_ms = 30000, silence_ms = 2000, stale_ms = 1000;

/* A session that begins with rows of another one, and keeps them. */
typedef struct {
  uint64_t session, like;
  int64_t rows;
} copied;

struct engine_remote {
  const lp_bundle *bundle;
  lp_security security;
  lp_link_security files; /* of it */
  lp_endpoint endpoint;
  lp_wire *wire;           /* NULL: not connected */
  uint64_t sessions, open; /* numbers given so far; sessions that the worker has */
  double used_ms;          /* when the last pass began, or the last session was closed */
  bool lost;
  bool draws_singly;          /* the worker knows no streams */
  LP_VEC(uint64_t) streams;   /* sessions that have one */
  LP_VEC(lp_inbound) early;   /* results that came before their turn */
  LP_VEC(uint64_t) forgotten; /* sessions to be closed */
  LP_VEC(copied) kept;        /* sessions to be opened before */
};

static bool moves(const lp_manifest *manifest) {
  for (int32_t i = 0; i < manifest->program_count; i++)
    for (int32_t k = 0; k < manifest->programs[i].step_count; k++)
      if (manifest->programs[i].step[k].kind == LP_STEP_MOVE) return true;
  return false;
}

static bool reads_only_tokens(const lp_manifest *manifest) {
  for (int32_t i = 0; i < manifest->input_count; i++)
    if (manifest->inputs[i].role != LP_ROLE_TOKENS) return false;
  return true;
}

bool engine_remote_fits(const lp_bundle *bundle, const char **why) {
  const lp_manifest *manifest = &bundle->manifest;
  *why = manifest->plan_count > 1         ? "a session chooses the plan by the link"
         : moves(manifest)                ? "KV caches move between the sides"
         : !reads_only_tokens(manifest)   ? "the model reads more than tokens"
         : lp_bundle_reads_source(bundle) ? "the model has an encoder"
                                          : NULL;
  return *why == NULL;
}

lp_status engine_remote_open(const lp_bundle *bundle, const lp_engine_options *options, engine_remote **out,
                             lp_diag *diag) {
  engine_remote *remote = lp_alloc(sizeof *remote);
  *remote = (engine_remote){.bundle = bundle};
  remote->files = options->security;
  remote->endpoint = (lp_endpoint){.address = options->cloud,
                                   .bundle_hash = bundle->manifest.hash,
                                   .patience = {.dial_ms = 5000,
                                                .pause_ms = 50,
                                                .longest_pause_ms = 2000,
                                                .beat_ms = silence_ms / 4,
                                                .silence_ms = silence_ms,
                                                .repeat_ms = 2000},
                                   .security = &remote->security};
  lp_status status = lp_security_for(options->cloud, &options->security, &remote->security, diag);
  if (status == LP_OK)
    *out = remote;
  else
    engine_remote_close(remote);
  return status;
}

static void disconnect(engine_remote *remote) {
  for (size_t i = 0; i < remote->early.count; i++)
    lp_inbound_release(&remote->early.data[i]);
  remote->early.count = remote->forgotten.count = remote->kept.count = remote->streams.count = 0;
  lp_wire_close(remote->wire);
  remote->wire = NULL;
  remote->open = 0;
}

void engine_remote_close(engine_remote *remote) {
  if (!remote) return;
  disconnect(remote);
  lp_security_close(&remote->security);
  lp_vec_free(&remote->early);
  lp_vec_free(&remote->streams);
  lp_vec_free(&remote->forgotten);
  lp_vec_free(&remote->kept);
  free(remote);
}

void engine_remote_drop(engine_remote *remote) {
  disconnect(remote);
  remote->lost = false;
}

bool engine_remote_is_lost(const engine_remote *remote) {
  return remote->lost;
}

static lp_status lose(engine_remote *remote, const char *why, lp_diag *diag) {
  remote->lost = true;
  return lp_error(diag, LP_LOC_NONE, "the cloud at %s was lost: %s", remote->endpoint.address, why);
}

static lp_status send(engine_remote *remote, const Lp__Wire__Message *message, const void *payload, size_t size,
                      lp_diag *diag) {
  const char *why = "";
  if (lp_wire_send(remote->wire, LP_ONLY_PEER, message, payload, size, &why)) return LP_OK;
  return lose(remote, why, diag);
}

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

static lp_status send_open(engine_remote *remote, Lp__Wire__Open *open, lp_diag *diag) {
  Lp__Wire__Message message = LP_WIRE_MESSAGE(OPEN, .open = open);
  remote->open++;
  return send(remote, &message, NULL, 0, diag);
}

static lp_status open_session(lp_engine *engine, engine_job *job, lp_diag *diag) {
  engine_remote *remote = engine->remote;
  const lp_sampling *sampling = &job->call->request->decoding.sampling;
  Lp__Wire__Open open = LP__WIRE__OPEN__INIT;
  open.session = job->session = ++remote->sessions;
  job->draws = job->taken = 0;
  open.temperature = sampling->temperature;
  open.top_k = sampling->top_k;
  open.top_p = sampling->top_p;
  open.seed = sampling->seed;
  if (job->call->request->traceparent) open.traceparent = (char *)(uintptr_t)job->call->request->traceparent;
  open.like = job->from_session;
  open.rows = job->from_session != 0 ? job->done : 0;
  open.capacity = job->from_session != 0 ? job->call->capacity : 0;
  open.yields = true;
  return send_open(remote, &open, diag);
}

/* Tells whether the connection still stands. Nothing is awaited on it. */
static bool stands(engine_remote *remote) {
  const char *why = "";
  lp_recv_outcome outcome = LP_RECV_FRAME;
  while (outcome == LP_RECV_FRAME) { /* refusals to keep rows */
    lp_inbound in;
    outcome = lp_wire_receive(remote->wire, 0, &in, &why);
    if (outcome == LP_RECV_FRAME) lp_inbound_release(&in);
  }
  return outcome == LP_RECV_TIMEOUT;
}

/* Reads keys and certificates again for each connection, since they may have been renewed. If that fails, the old ones
 * stay. */
static void renew(engine_remote *remote) {
  lp_security fresh;
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  bool good = lp_security_for(remote->endpoint.address, &remote->files, &fresh, quiet) == LP_OK;
  lp_security_close(good ? &remote->security : &fresh);
  if (good) remote->security = fresh;
}

/* Tells whether the connection has had no sessions but those that keep rows, and the worker may have been started
 * again. */
static bool is_stale(const lp_engine *engine) {
  engine_remote *remote = engine->remote;
  if (!remote->wire || lp_now_ms() - remote->used_ms <= stale_ms) return false;
  for (size_t i = 0; i < engine->chosen.count; i++)
    if (engine->chosen.data[i]->session != 0) return false;
  return remote->open == 0 || (remote->open == engine->kept.count && !stands(remote));
}

/* The session of a message, 0 for one of another kind. */
static uint64_t session_of(const Lp__Wire__Message *message) {
  switch (message->kind_case) {
  case LP__WIRE__MESSAGE__KIND_RESULT:
    return message->result->session;
  case LP__WIRE__MESSAGE__KIND_TOKENS:
    return message->tokens->session;
  case LP__WIRE__MESSAGE__KIND_FAILURE:
    return message->failure->session;
  default:
    return 0;
  }
}

static bool has_stream(const engine_remote *remote, uint64_t session) {
  for (size_t i = 0; i < remote->streams.count; i++)
    if (remote->streams.data[i] == session) return true;
  return false;
}

static void forget_stream(engine_remote *remote, uint64_t session) {
  for (size_t i = remote->streams.count; i-- > 0;)
    if (remote->streams.data[i] == session) remote->streams.data[i] = remote->streams.data[--remote->streams.count];
}

/* Drops what came for sessions that have ended. */
static void drop_early(engine_remote *remote) {
  size_t kept = 0;
  LP_FOR_VEC(lp_inbound, in, &remote->early) {
    if (has_stream(remote, session_of(in->message)))
      remote->early.data[kept++] = *in;
    else
      lp_inbound_release(in);
  }
  remote->early.count = kept;
}

lp_status engine_remote_begin(lp_engine *engine, lp_diag *diag) {
  engine_remote *remote = engine->remote;
  if (remote->lost) disconnect(remote);
  remote->lost = false;
  drop_early(remote);
  if (is_stale(engine)) disconnect(remote);
  remote->used_ms = lp_now_ms();
  if (!remote->wire) renew(remote);
  if (!remote->wire && lp_wire_dial(&lp_transport_socket, &remote->endpoint, remote->endpoint.patience.dial_ms,
                                    &remote->wire, diag) != LP_OK) {
    remote->lost = true;
    return LP_FAILED;
  }
  LP_FOR_VEC_REFS(engine_job, job, &engine->chosen) {
    job->told = false;
    if (job->asks && job->session == 0) LP_TRY(open_session(engine, job, diag));
  }
  return LP_OK;
}

void engine_remote_forget_session(engine_remote *remote, uint64_t session) {
  if (session != 0) lp_vec_push(&remote->forgotten, session);
}

void engine_remote_forget(engine_remote *remote, engine_job *job) {
  engine_remote_forget_session(remote, job->session);
  job->session = 0;
}

uint64_t engine_remote_keep(engine_remote *remote, const engine_job *job, int64_t rows) {
  const copied kept = {.session = ++remote->sessions, .like = job->session, .rows = rows};
  lp_vec_push(&remote->kept, kept);
  return kept.session;
}

bool engine_remote_has_forgotten(const engine_remote *remote) {
  return remote->forgotten.count + remote->kept.count > 0;
}

/* If the worker refuses, so it does when a prompt is to begin with these rows. */
static void open_kept(engine_remote *remote, lp_diag *quiet) {
  for (size_t i = 0; i < remote->kept.count && remote->wire && !remote->lost; i++) {
    Lp__Wire__Open open = LP__WIRE__OPEN__INIT;
    open.session = remote->kept.data[i].session;
    open.top_p = 1;
    open.like = remote->kept.data[i].like;
    open.rows = open.capacity = remote->kept.data[i].rows;
    open.yields = true;
    if (send_open(remote, &open, quiet) != LP_OK) break;
  }
  remote->kept.count = 0;
}

void engine_remote_tidy(engine_remote *remote) {
  lp_diag *quiet = lp_diag_create();
  open_kept(remote, quiet);
  for (size_t i = 0; i < remote->forgotten.count && remote->wire && !remote->lost; i++) {
    Lp__Wire__Close close = LP__WIRE__CLOSE__INIT;
    close.session = remote->forgotten.data[i];
    forget_stream(remote, close.session);
    Lp__Wire__Message message = LP_WIRE_MESSAGE(CLOSE, .close = &close);
    remote->open--;
    if (send(remote, &message, NULL, 0, quiet) != LP_OK) break;
  }
  lp_diag_free(quiet);
  remote->forgotten.count = 0;
  remote->used_ms = lp_now_ms();
  if (remote->lost) disconnect(remote);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Describes what the worker shall draw by itself after this pass (docs/protocol.md); false: nothing. Tokens that end a
 * text follow the description. */
static bool describe_stream(const lp_engine *engine, const engine_job *job, Lp__Wire__Stream *out, int32_t *end) {
  const lp_bundle *bundle = engine->bundle;
  const lp_engine_request *request = job->call->request;
  const int64_t made = (int64_t)(job->text.count - request->length);
  if (job->told || engine->theta > 0 || job->wants_logits || !engine_job_draws(job)) return false;
  if (engine->remote->draws_singly || request->max_tokens - made < 2 || !engine->draws_remotely) return false;
  if (lp_manifest_streams(&bundle->manifest, job->call->decode) != LP_SIDE_CLOUD) return false;
  lp__wire__stream__init(out);
  out->program = (uint32_t)job->call->decode;
  out->most = request->max_tokens - made;
  out->window = WINDOW;
  out->end = end;
  for (int32_t i = 0; i < bundle->manifest.stop_count && out->n_end + 1 < MOST_ENDS; i++)
    end[out->n_end++] = bundle->manifest.stops[i];
  if (bundle->eos >= 0) end[out->n_end++] = bundle->eos;
  return true;
}

lp_status engine_remote_send(lp_engine *engine, size_t sequence, int32_t program, int32_t step, const void *payload,
                             size_t size, lp_diag *diag) {
  engine_job *job = engine->chosen.data[sequence];
  Lp__Wire__Step body = LP__WIRE__STEP__INIT;
  Lp__Wire__Stream stream;
  int32_t end[MOST_ENDS];
  if (engine_job_has_failed(job)) return LP_OK;
  if (job->draws > 0) { /* the worker goes on by itself */
    job->told = true;
    return LP_OK;
  }
  if (describe_stream(engine, job, &stream, end)) {
    body.stream = &stream;
    lp_vec_push(&engine->remote->streams, job->session);
  }
  body.session = job->session;
  body.program = (uint32_t)program;
  body.step = step;
  body.n_symbols = (size_t)engine->bundle->manifest.symbol_count;
  body.symbols = engine->theta > 0 ? job->remote_symbols : engine->member.data[sequence].sym;
  body.want_outputs = job->wants_logits;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(STEP, .step = &body);
  job->told = true;
  return send(engine->remote, &message, payload, size, diag);
}

static bool take_early(engine_remote *remote, uint64_t session, lp_inbound *in) {
  for (size_t i = 0; i < remote->early.count; i++) {
    if (session_of(remote->early.data[i].message) != session) continue;
    *in = remote->early.data[i];
    remote->early.count--;
    memmove(&remote->early.data[i], &remote->early.data[i + 1], (remote->early.count - i) * sizeof *remote->early.data);
    return true;
  }
  return false;
}

/* Waits for the next message of the session. After success the caller releases `in`. */
static lp_status await(engine_remote *remote, uint64_t session, lp_inbound *in, lp_diag *diag) {
  double until_ms = lp_now_ms() + answer_ms;
  const char *why = "";
  while (!take_early(remote, session, in)) {
    double left_ms = until_ms - lp_now_ms();
    if (left_ms <= 0) return lose(remote, "no answer in time", diag);
    lp_recv_outcome outcome = lp_wire_receive(remote->wire, left_ms, in, &why);
    if (outcome == LP_RECV_TIMEOUT) continue;
    if (outcome != LP_RECV_FRAME) return lose(remote, why, diag);
    lp_vec_push(&remote->early, *in);
    if (session_of(in->message) == 0) return lose(remote, "it sent an unexpected answer", diag);
  }
  return LP_OK;
}

/* Waits for a message of this kind. *came: false if the job has failed, and nothing is to be released. */
static lp_status await_kind(lp_engine *engine, size_t sequence, int32_t program, int32_t step,
                            Lp__Wire__Message__KindCase kind, lp_inbound *in, bool *came, lp_diag *diag) {
  engine_job *job = engine->chosen.data[sequence];
  *came = false;
  if (engine_job_has_failed(job)) return LP_OK;
  if (!job->told) LP_TRY(engine_remote_send(engine, sequence, program, -1, NULL, 0, diag));
  LP_TRY(await(engine->remote, job->session, in, diag));
  const Lp__Wire__Message *message = in->message;
  lp_status status = LP_OK;
  if (message->kind_case == LP__WIRE__MESSAGE__KIND_FAILURE) {
    lp_buf text = {0};
    lp_buf_printf(&text, "the cloud at %s failed: %s", engine->remote->endpoint.address, message->failure->text);
    job->result = message->failure->room ? ENGINE_NO_ROOM : ENGINE_FAILED;
    if (!job->error) job->error = lp_strdup(lp_buf_text(&text));
    lp_buf_free(&text);
  } else {
    int32_t of = message->kind_case == LP__WIRE__MESSAGE__KIND_RESULT ? message->result->step : message->tokens->step;
    *came = message->kind_case == kind && of == step;
    if (!*came) status = lose(engine->remote, "it sent an unexpected answer", diag);
  }
  if (!*came) lp_inbound_release(in);
  return status;
}

lp_status engine_remote_take(lp_engine *engine, size_t sequence, int32_t program, int32_t step, lp_span to,
                             lp_diag *diag) {
  lp_inbound in;
  bool came;
  LP_TRY(await_kind(engine, sequence, program, step, LP__WIRE__MESSAGE__KIND_RESULT, &in, &came, diag));
  if (!came) return LP_OK;
  lp_status status = LP_OK;
  if (in.payload_size != to.size)
    status = lose(engine->remote, "a result has another size than wanted", diag);
  else if (to.size > 0)
    memcpy(to.data, in.payload, to.size);
  lp_inbound_release(&in);
  return status;
}

/* Notes a draw; false: it is not the one that is due. A worker that knows no streams draws once. */
static bool note_draw(engine_remote *remote, engine_job *job, int64_t draw) {
  if (job->draws == 0 && draw == 0) {
    remote->draws_singly |= has_stream(remote, job->session);
    forget_stream(remote, job->session);
    return true;
  }
  return has_stream(remote, job->session) && draw == ++job->draws;
}

static lp_status tell_taken(engine_remote *remote, engine_job *job, lp_diag *diag) {
  if (4 * (job->draws - job->taken) < WINDOW) return LP_OK;
  Lp__Wire__Taken taken = LP__WIRE__TAKEN__INIT;
  taken.session = job->session;
  taken.draws = job->taken = job->draws;
  Lp__Wire__Message message = LP_WIRE_MESSAGE(TAKEN, .taken = &taken);
  return send(remote, &message, NULL, 0, diag);
}

lp_status engine_remote_draw(lp_engine *engine, size_t sequence, int32_t program, int32_t step, lp_diag *diag) {
  engine_job *job = engine->chosen.data[sequence];
  lp_inbound in;
  bool came;
  LP_TRY(await_kind(engine, sequence, program, step, LP__WIRE__MESSAGE__KIND_TOKENS, &in, &came, diag));
  if (!came) return LP_OK;
  const Lp__Wire__Tokens *tokens = in.message->tokens;
  bool due = note_draw(engine->remote, job, tokens->draw);
  bool good = tokens->n_token == 1 && tokens->token[0] >= 0 && tokens->token[0] < engine->bundle->manifest.vocab;
  if (good) job->drawn = (lp_drawn){.token = tokens->token[0], .logprob = NAN};
  if (good && job->done + job->rows == (int64_t)job->text.count) job->result = ENGINE_DRAWN;
  lp_inbound_release(&in);
  if (!due) return lose(engine->remote, "a token is missing, or came twice", diag);
  return good ? tell_taken(engine->remote, job, diag)
              : lose(engine->remote, "its tokens are not in the model's vocabulary", diag);
}

lp_status engine_remote_take_output(lp_engine *engine, size_t sequence, int32_t program, int32_t step, lp_diag *diag) {
  const lp_manifest *manifest = &engine->bundle->manifest;
  engine_job *job = engine->chosen.data[sequence];
  size_t wanted = (size_t)manifest->vocab * sizeof *job->logits;
  lp_inbound in;
  bool came;
  LP_TRY(await_kind(engine, sequence, program, step, LP__WIRE__MESSAGE__KIND_RESULT, &in, &came, diag));
  if (!came) return LP_OK;
  lp_status status = LP_OK;
  if (manifest->programs[program].step[step].port != lp_manifest_output(manifest, LP_ROLE_LOGITS)) {
    lp_inbound_release(&in); /* another output */
    return LP_OK;
  }
  if (in.payload_size != wanted) {
    status = lose(engine->remote, "its logits are not one row of the model's vocabulary", diag);
  } else {
    if (!job->logits) job->logits = lp_alloc(wanted);
    memcpy(job->logits, in.payload, wanted);
  }
  lp_inbound_release(&in);
  return status;
}
