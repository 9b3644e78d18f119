/* runtime: runs a bundle. It loads the bundle, keeps KV caches, turns text into tokens and back, samples, and talks
 * to the other side over a link. A device ships only this folder and base/: no compiler header, no LLVM.
 *
 * One process per side. The device drives: it owns the session, follows the program of the manifest, runs its own
 * segments, and exchanges with the worker the tensors that the program sends. The worker follows its own copy of the
 * same program.
 *
 * The rooms stand above each other. A room includes and calls rooms further down only; a test checks the calls.
 *
 *   worker/       the cloud side, which serves devices        session/     the device's end of a bundle
 *   engine/       requests of many threads in batched passes, with a public header of its own
 *   exits/        early exits: halves, contexts, uploads, the loop of each mode
 *   exec/         runs programs: executors, batched passes, KV caches, thread pool, sampler, trace
 *   bundle/       a bundle in memory: manifest, weights, code
 *   gpu/          code on a GPU       tokenizer/   text and tokens       link/   messages between device and worker
 *   exposition/   figures in the text format of Prometheus
 *
 * worker/, session/ and engine/ do not know each other, and link/ knows no bundle. exits/calibrate/ is a library of its
 * own above session/; library/ is the shared library for other programs, with a public header of its own. The rooms of
 * the world around a bundle (radio/, service/, simulate/, router/, http/, serve/) use this header, serve/ also
 * engine/engine.h and exposition/exposition.h, and no other of the rooms above.
 *
 * This header declares all that code outside of runtime/ may use of these rooms. Unless a comment says otherwise:
 * strings and structs that a caller passes are borrowed for the call; a function that returns LP_OK has set its
 * out-parameters, one that returns another status has reported one diagnostic; an object belongs to one thread at a
 * time.
 */
#pragma once

#include "base/abi.h"
#include "base/base.h"
#include "base/place.h"
#include "base/side.h"

/* ---- tokenizer (tokenizer/) -------------------------------------------------------------------------------------- */

/* A Hugging Face `tokenizer.json`: BPE (GPT-2, Llama, Qwen), Unigram (T5, XLM-R), WordPiece (BERT) or WordLevel.
 * Immutable after loading; any number of threads may use it at once. */
typedef struct lp_tokenizer lp_tokenizer;

/* Loads a tokenizer.json. The files beside it (base/companions.h) add chat templates and special tokens. */
LP_MUST_USE lp_status lp_tokenizer_load(const char *path, lp_tokenizer **out, lp_diag *diag);
void lp_tokenizer_free(lp_tokenizer *tokenizer);                /* NULL is allowed */
int32_t lp_tokenizer_model_size(const lp_tokenizer *tokenizer); /* the largest id + 1 without added tokens */
/* The id of the end-of-sequence token, and of any token; -1: there is none. */
int32_t lp_tokenizer_eos(const lp_tokenizer *tokenizer);
int32_t lp_tokenizer_token_id(const lp_tokenizer *tokenizer, const char *token);

typedef LP_VEC(int32_t) lp_tokens;

/* Appends the ids of text[size], which is UTF-8; an invalid byte is encoded as U+FFFD, as the reference does. Special
 * tokens in the text are recognised. `add_special` applies the post-processor's template (bos). */
LP_MUST_USE lp_status lp_tokenizer_encode(const lp_tokenizer *tokenizer, const char *text, size_t size,
                                          bool add_special, lp_tokens *out, lp_diag *diag);
/* Does the same for text that a user typed: special tokens in it are text. */
LP_MUST_USE lp_status lp_tokenizer_encode_typed(const lp_tokenizer *tokenizer, const char *text, size_t size,
                                                bool add_special, lp_tokens *out, lp_diag *diag);
/* Appends the text of ids[count], without special tokens when `skip_special`. Unknown ids are skipped. */
void lp_tokenizer_decode(const lp_tokenizer *tokenizer, const int32_t *ids, size_t count, bool skip_special,
                         lp_buf *out);

/* Appends the bytes that a token in the middle of a text stands for, which need not be whole characters; of a special
 * token, its name. */
void lp_tokenizer_token_bytes(const lp_tokenizer *tokenizer, int32_t id, lp_buf *out, bool *special);

typedef struct {
  const char *role, *content;
} lp_chat_message;
bool lp_tokenizer_has_chat_template(const lp_tokenizer *tokenizer);
bool lp_tokenizer_chat_reads_tools(const lp_tokenizer *tokenizer); /* the template prints the tools of a chat */
/* Appends the text of the messages by the model's chat template. Fails with the name of what it does not support. */
LP_MUST_USE lp_status lp_tokenizer_chat(const lp_tokenizer *tokenizer, const lp_chat_message *messages, size_t count,
                                        bool add_generation_prompt, lp_buf *out, lp_diag *diag);

/* Appends the ids of that text, with the prompt for an answer. Special tokens in the contents are text; those of the
 * template are special. `watch` NULL: nothing stops the rendering. */
LP_MUST_USE lp_status lp_tokenizer_encode_chat(const lp_tokenizer *tokenizer, const lp_chat_message *messages,
                                               size_t count, const lp_watch *watch, lp_tokens *ids, lp_diag *diag);
/* The same for messages in OpenAI's JSON, with tools and further variables of the template; NULL: none. */
typedef struct lp_json_value lp_json_value;
LP_MUST_USE lp_status lp_tokenizer_encode_chat_json(const lp_tokenizer *tokenizer, const lp_json_value *messages,
                                                    const lp_json_value *tools, const lp_json_value *variables,
                                                    const lp_watch *watch, lp_tokens *ids, lp_diag *diag);
/* Renders standard conversations, and fails if the chat template breaks a limit of memory, steps or depth. */
LP_MUST_USE lp_status lp_tokenizer_try_chat(const lp_tokenizer *tokenizer, lp_diag *diag);

/* Turns a stream of tokens into text, in whole characters. Zero it first. */
typedef struct {
  lp_tokens ids;
  size_t begin, shown; /* the text of ids[begin..shown) has been appended */
} lp_text_stream;
/* Appends the text that `token` completes. A character that is never completed is dropped. */
void lp_text_stream_put(lp_text_stream *stream, const lp_tokenizer *tokenizer, int32_t token, lp_buf *out);
void lp_text_stream_free(lp_text_stream *stream);

/* ---- bundle (bundle/) -------------------------------------------------------------------------------------------- */

/* A bundle NAME.llmpart/ on disk; docs/bundle.md describes it. Immutable after loading; any number of threads may use
 * it. */
typedef struct lp_bundle lp_bundle;

/* The sides to load, each the bit 1 << place. */
enum {
  LP_LOAD_DEVICE = 1 << LP_SIDE_DEVICE,
  LP_LOAD_CLOUD = 1 << LP_SIDE_CLOUD,
  LP_LOAD_ALL = (1 << LP_PLACES_MAX) - 1
};

typedef struct {
  unsigned load;     /* LP_LOAD_*, or any bits 1 << place: the sides of which weights are mapped and code is opened */
  bool check_hashes; /* compare the SHA-256 of every file before lp_bundle_load returns */
  /* The file of an Ed25519 public key (PEM): the bundle must be signed with it, and every file is compared by SHA-256.
   * NULL: signatures are not checked. */
  const char *trust;
  int32_t rank; /* of a sharded half: whose weights are loaded */
  int32_t gpu;  /* of a sharded half in code for GPUs: the number of the rank's GPU, among those of this machine */
} lp_bundle_options;
/* Refuses a model and any other file that a user may take for a bundle; says nothing of what does not exist. */
LP_MUST_USE lp_status lp_bundle_check_kind(const char *path, lp_diag *diag);
/* Loads the manifest and the sides that `options` names; with the device's side also the tokenizer. Always checks
 * sizes, structure and content (by CRC-32C). A thread of its own checks the content of weights, and every session
 * awaits its result before the first token (docs/bundle.md). */
LP_MUST_USE lp_status lp_bundle_load(const char *path, const lp_bundle_options *options, lp_bundle **out,
                                     lp_diag *diag);
/* Signs the bundle in `folder` with an Ed25519 private key, which is a PEM file without a password
 * (bundle/signature.c). The second fails when no such key can be read. */
LP_MUST_USE lp_status lp_bundle_sign(const char *folder, const char *key_path, lp_diag *diag);
LP_MUST_USE lp_status lp_bundle_check_key(const char *key_path, lp_diag *diag);
void lp_bundle_free(lp_bundle *bundle);                 /* NULL is allowed */
const char *lp_bundle_name(const lp_bundle *bundle);    /* of the model, from its file; borrowed */
int32_t lp_bundle_ranks(const lp_bundle *bundle);       /* that the cloud's half is cut for; 1: none */
bool lp_bundle_is_split(const lp_bundle *bundle);       /* tells whether any program crosses the link */
int32_t lp_bundle_place_count(const lp_bundle *bundle); /* of two sides 2, also if one is absent */
const char *lp_bundle_place_name(const lp_bundle *bundle, lp_place place); /* of one of those; borrowed */
const lp_tokenizer *lp_bundle_tokenizer(const lp_bundle *bundle);          /* borrowed; NULL: none was loaded */
int32_t lp_bundle_vocab(const lp_bundle *bundle);
/* Tells whether this token ends a generation. The model's files and its tokenizer name such tokens. */
bool lp_bundle_is_stop(const lp_bundle *bundle, int32_t token);
int64_t lp_bundle_context_length(const lp_bundle *bundle); /* the most positions that the model supports; 0: unknown */
/* The first tells whether the model has an encoder, which reads a source (lp_source) in addition to the tokens that its
 * decoder continues; the second whether that source is features instead of tokens. */
bool lp_bundle_reads_source(const lp_bundle *bundle);
bool lp_bundle_reads_features(const lp_bundle *bundle);
/* Gives the tokens with which the decoder of such a model begins, borrowed, and returns their number: 0 when the
 * model's files name none. */
size_t lp_bundle_start(const lp_bundle *bundle, const int32_t **tokens);
bool lp_bundle_embeds(const lp_bundle *bundle);         /* the model gives hidden states, or embeddings */
bool lp_bundle_has_caches(const lp_bundle *bundle);     /* false: no pass can continue another */
size_t lp_bundle_output_count(const lp_bundle *bundle); /* outputs of the model */
/* Fails, with the reason, when no generation can run: an input is neither tokens nor made by the runtime, programs,
 * tokens or logits are missing, or the model encodes. Every generation begins with this check. */
LP_MUST_USE lp_status lp_bundle_check_generates(const lp_bundle *bundle, lp_diag *diag);

/* ---- ranks of a sharded half (exec/follow.c) --------------------------------------------------------------------- */

/* The other ranks as threads of this process, which load their weights from the bundle's folder. */
typedef struct lp_rank_team lp_rank_team;
/* Starts them, each with `threads` threads, unless the half is not sharded. `load`: as for lp_bundle_load. The calling
 * thread is rank 0: one thread at a time runs the bundle's cloud half until lp_ranks_stop, also after a failure. */
LP_MUST_USE lp_status lp_ranks_start(lp_bundle *bundle, const lp_bundle_options *load, int32_t threads,
                                     lp_rank_team **out, lp_diag *diag);
/* The same for processes that the caller has joined: rank 0 leads, and the others follow until it stops. */
struct lp_collective;
LP_MUST_USE lp_status lp_ranks_lead(lp_bundle *bundle, const struct lp_collective *collective, lp_diag *diag);
LP_MUST_USE lp_status lp_ranks_follow(lp_bundle *bundle, const struct lp_collective *collective, int32_t threads,
                                      lp_diag *diag);
/* NULL is allowed. With `diag` it adds notes of what other ranks have reported, to the caller's error. */
void lp_ranks_stop(lp_bundle *bundle, lp_rank_team *team, lp_diag *diag);
/* The threads of each rank on this machine: `threads`, or if 0 its share of the cores. */
int32_t lp_ranks_threads(const lp_bundle *bundle, int64_t threads);

/* ---- early exits (exits/) ---------------------------------------------------------------------------------------- */

/* The ways to use the early exits of a bundle in a generation (docs/exits.md). */
typedef enum {
  LP_MODE_FULL,      /* the full model gives every token, one after the other */
  LP_MODE_EXACT,     /* the last exit drafts and the cloud verifies; the tokens are the full model's */
  LP_MODE_THRESHOLD, /* the first exit with a confidence of at least theta gives the token, else the cloud */
  LP_MODE_STANDALONE /* the last exit gives every token; nothing is sent */
} lp_mode;
const char *lp_mode_name(lp_mode mode); /* "exact"; static text */
bool lp_mode_parse(const char *name, lp_mode *out);

/* Tells whether the bundle can generate in this mode. If not, `why` receives the reason, as static text. */
bool lp_bundle_allows(const lp_bundle *bundle, lp_mode mode, const char **why);

/* The encoding of hidden states on the link; exits/codec.c states the error of each. */
typedef enum { LP_CODEC_AUTO, LP_CODEC_F32, LP_CODEC_F16, LP_CODEC_INT8, LP_CODEC_INT4, LP_CODEC_COUNT } lp_codec;
const char *lp_codec_name(lp_codec codec); /* "auto", "f16"; static text */
bool lp_codec_parse(const char *name, lp_codec *out);

/* The calibration that `llmpart calibrate --apply` writes into a bundle: a theta for threshold mode. */
#define LP_CALIBRATION_FILE "calibration.json"
typedef struct {
  double theta;
  lp_codec codec; /* the codec of the rows for which theta was found */
} lp_calibration;
/* Fails when the bundle has no calibration, or one that was made for another bundle. */
LP_MUST_USE lp_status lp_calibration_read(const lp_bundle *bundle, lp_calibration *out, lp_diag *diag);

/* ---- the link (link/) -------------------------------------------------------------------------------------------- */

/* Paths; NULL: none. Beyond loopback, TLS and either a key or a device certificate are required (docs/protocol.md). */
typedef struct {
  const char *key_file;                  /* 16 bytes or more that both sides have, without a newline at the end;
                                          * of a worker also several keys, a line of printable characters each */
  const char *cert_file, *cert_key_file; /* this side's certificate and its private key, PEM */
  const char *ca_file;                   /* of a device: the worker's certificate or its issuer's, PEM */
  const char *client_ca_file; /* of a worker: certificates of devices or of their issuers, PEM; NULL: any device */
  const char *server_name;    /* of a device: the name that the worker's certificate must have; NULL: any */
} lp_link_security;

/* A link to emulate (docs/protocol.md). Zero: no limit. */
typedef struct {
  double rtt_ms, up_bps, down_bps;
  double loss;                 /* share of packets of 1448 bytes that are sent again; below 1 */
  double cut_ms, cut_every_ms; /* the link is down for cut_ms in every cut_every_ms */
  uint64_t seed;               /* of the losses */
} lp_link_shape;
/* "rtt=50ms,up=10Mbit/s,down=50Mbit/s,loss=1%,cut=2s/30s,seed=7" (link/shape.c). A figure that is not named is not
 * limited. Errors are reported at `loc`. */
LP_MUST_USE lp_status lp_link_shape_parse(const char *text, lp_link_shape *out, lp_diag *diag, lp_loc loc);

/* The device's timeouts and pauses on its link, in ms. Zero: the value in brackets. */
typedef struct {
  double dial_ms;          /* the longest time to connect, handshake included (5 s) */
  double pause_ms;         /* before the second attempt to connect; doubles with each (50 ms) */
  double longest_pause_ms; /* the longest such pause (2 s) */
  double beat_ms;          /* interval of heartbeats while the device waits and hears nothing (1 s) */
  double silence_ms;       /* the device gives up a connection after this time without a heartbeat (5 s) */
  double repeat_ms;        /* before a question is repeated; doubles each time (2 s) */
} lp_patience;

/* ---- worker: the cloud side (worker/) ---------------------------------------------------------------------------- */

/* 0: the default. */
typedef struct {
  int64_t sessions; /* the most sessions and contexts: 64 of a connection, 256 of a client */
  int64_t rows;  /* the most rows (sequences times tokens) of runs that wait: 2^18 of a connection, 2^20 of a client */
  int64_t bytes; /* the most bytes of KV caches and of payloads that wait: no limit but context_budget */
} lp_worker_quota;

/* A session that a device had. Times are of lp_now_ms. */
typedef struct {
  const char *traceparent; /* of the request (W3C Trace Context), as the device gave it; "": none */
  double begin_ms, end_ms;
  double busy_ms;          /* of the passes that computed for it */
  int64_t replies, tokens; /* of its text, the prompt included */
} lp_worker_session;

/* A worker that serves a place of a bundle (docs/bundle.md). */
typedef struct {
  const char *place;   /* its name */
  const char *address; /* HOST:PORT */
} lp_place_address;

/* The workers of a bundle's places besides the device. */
typedef struct {
  const char *only; /* of two places: the cloud's; NULL: they have names */
  lp_place_address place[LP_PLACES_MAX];
  size_t count;
} lp_place_addresses;
/* Reads texts "HOST:PORT", "unix:PATH" or "NAME=ADDRESS", of which only a single one may lack the name. The texts of
 * `out` are the arena's; diagnostics are located in `from` (session/workers.c). */
LP_MUST_USE lp_status lp_place_addresses_of(const char *const *texts, size_t count, const char *from, lp_arena *arena,
                                            lp_place_addresses *out, lp_diag *diag);
/* The same for a bundle and one text: an address, or with more than two places "NAME=ADDRESS,NAME=ADDRESS", with `all`
 * one for each place of the bundle besides the device. */
LP_MUST_USE lp_status lp_place_addresses_read(const char *text, const lp_bundle *bundle, lp_arena *arena, bool all,
                                              lp_place_addresses *out, lp_diag *diag);

/* Counts and times of a worker (worker/figures.c). Any thread may print them, while the worker serves too. */
typedef struct lp_worker_figures lp_worker_figures;
lp_worker_figures *lp_worker_figures_create(void);
void lp_worker_figures_free(lp_worker_figures *figures); /* NULL is allowed */
/* Appends them in the text format of Prometheus (exposition/exposition.h). */
void lp_worker_figures_print(lp_worker_figures *figures, lp_buf *out);
/* Why the worker takes no further session, as static text; NULL: it takes them. */
const char *lp_worker_figures_unready(lp_worker_figures *figures);

typedef struct {
  const char *listen; /* HOST:PORT; port 0 takes a free one */
  lp_place place;     /* the one that it serves; 0: the cloud */
  /* The workers of the other places that this one sends to, when the bundle has more than two; peers[peer_count]. It
   * connects to them as a device would: by `peer_security`. */
  const lp_place_address *peers;
  size_t peer_count;
  lp_link_security peer_security;
  int64_t context_budget;    /* bytes of KV caches and rows over all sessions and contexts; 0: half the memory */
  double idle_ms;            /* a session or context unused for this long is dropped; 0: never */
  const char *context_dir;   /* folder for contexts that are dropped, and for all of them at the end; NULL: none */
  int64_t context_dir_bytes; /* the most bytes in that folder; 0: 4 GiB */
  int64_t most_sessions;     /* the most sessions and contexts; 0: 4096 */
  /* Of a connection, and of a client: all connections of devices with one certificate, or with one key of a worker with
   * several. What exceeds them is refused; others are served. */
  lp_worker_quota connection, client;
  double prompt_stretch; /* how many times as long a pass may last for prompts of several devices, from 1; 0: 1.4 */
  int32_t threads;       /* 0: the machine's cores */
  lp_link_security security;
  /* A signal handler may set it: the worker clears it and reads its certificates and keys again, for connections to
   * come. If they cannot be used, it warns and keeps the old ones. NULL: never. */
  volatile int *renew;
  lp_worker_figures *figures; /* borrowed; NULL: none are kept */
  /* Called once, when devices can connect; may be NULL. */
  void (*on_listening)(void *user, const char *host, int port);
  /* Called when the number of open sessions and contexts, or the bytes that they hold, changes; may be NULL. */
  void (*on_held)(void *user, size_t open, size_t bytes);
  /* Called when a session ends; may be NULL. */
  void (*on_session)(void *user, const lp_worker_session *session);
  void *user;
} lp_worker_options;
/* Serves devices until `*stop` is set, which a signal handler may do. The bundle has the place's side loaded. Gives one
 * warning for each peer that it refuses, and for each outage of a place that it sends to. Calls back on the calling
 * thread. */
LP_MUST_USE lp_status lp_worker_serve(const lp_bundle *bundle, const lp_worker_options *options,
                                      const volatile int *stop, lp_diag *diag);

/* A worker as a child process on loopback. It ends with this process at the latest. */
typedef struct {
  int pid; /* 0: not started */
  int ready_fd;
  char address[32]; /* HOST:PORT, set by lp_worker_await */
} lp_worker_process;
typedef struct {
  const char *bundle, *trust; /* trust: as in lp_bundle_options */
  int32_t threads;            /* 0: the machine's cores */
  const char *listen;         /* NULL: a free port of loopback */
  /* Of a bundle with more than two places: the one to serve, and the workers of others, peers[peer_count]. */
  const char *place;
  const lp_place_address *peers;
  size_t peer_count;
} lp_worker_request;
/* Runs `PROGRAM worker BUNDLE --listen=127.0.0.1:0 --ready-fd=N --threads=N [--trust=KEY] [--place=NAME]
 * [--peer=NAME=ADDRESS ..]`. The worker writes the port that it took as a line to that descriptor. `program` NULL: the
 * program of this process. */
LP_MUST_USE lp_status lp_worker_spawn(const char *program, const lp_worker_request *request, lp_worker_process *out,
                                      lp_diag *diag);
/* Tells whether the worker has ended, or was never started; then no zombie of it is left. Any thread may ask, one at a
 * time. */
bool lp_worker_has_ended(lp_worker_process *process);
/* Tells whether the worker gives a sign of life within the time. A worker that computes does; one that is stopped or
 * hangs does not. Any thread may ask, once lp_worker_await has returned. */
bool lp_worker_answers(const lp_worker_process *process, double timeout_ms);
/* Connects to a worker and greets it, as a session does, which proves that it serves this place of this bundle with
 * these keys and certificates (session/session.c). The place is NULL for the cloud of two. */
LP_MUST_USE lp_status lp_worker_greet(const lp_bundle *bundle, const lp_place_address *worker,
                                      const lp_link_security *security, double timeout_ms, lp_diag *diag);
/* Starts a worker that has ended again, at the same address, and awaits it. The new worker ends with the calling thread
 * at the latest. */
LP_MUST_USE lp_status lp_worker_revive(const lp_worker_request *request, lp_worker_process *process, lp_diag *diag);
/* Waits until the worker listens or has ended; one that does neither is given up after ten minutes. */
LP_MUST_USE lp_status lp_worker_await(lp_worker_process *process, lp_diag *diag);
void lp_worker_stop(
    lp_worker_process *process); /* ends the process and zeroes the struct; one not started is allowed */

/* A bundle and the workers or the process that run its other sides (session/sides.c). */
typedef struct {
  const char *bundle, *cloud;     /* cloud: a worker's address; NULL: a worker is started when the bundle is split */
  const lp_place_address *clouds; /* or a worker for each place besides the device */
  size_t cloud_count;             /* at most LP_PLACES_MAX */
  bool in_process;                /* all sides run in this process */
  bool device_only;               /* the other sides are not used */
  bool check_hashes;
  const char *trust; /* as in lp_bundle_options; also the worker's */
  int32_t threads;   /* of the worker; 0: the machine's cores */
} lp_sides_options;
typedef struct {
  lp_bundle *bundle;
  lp_worker_process worker[LP_PLACES_MAX]; /* of the places */
  /* For lp_generate_options. NULL and none: this process runs all sides, or only the device's. */
  const char *cloud;
  lp_place_address clouds[LP_PLACES_MAX];
  size_t cloud_count;
  double load_ms;
  lp_rank_team *team; /* of a sharded half in this process; or NULL */
} lp_sides;
/* Loads the bundle and waits until its workers listen. Release with lp_sides_close, also after a failure; `options` are
 * borrowed until then. */
LP_MUST_USE lp_status lp_sides_open(const lp_sides_options *options, lp_sides *out, lp_diag *diag);
void lp_sides_close(lp_sides *sides);

/* ---- generation (session/) --------------------------------------------------------------------------------------- */

typedef struct {
  double temperature; /* 0: greedy; of equal logits the lowest id */
  int32_t top_k;      /* 0: off */
  double top_p;       /* 1: off */
  uint64_t seed;
} lp_sampling;
/* the sampling that the model's files state; greedy when they state none */
lp_sampling lp_bundle_sampling(const lp_bundle *bundle);

/* The input of a model's encoder: tokens, or features of another kind. */
typedef struct {
  const int32_t *tokens;  /* one sequence after the other */
  const int64_t *lengths; /* [batch] the tokens of each sequence; shorter ones are padded and masked */
  const float *features;  /* [batch] times the input's own shape, such as [80][3000] */
  size_t feature_count;   /* in all */
} lp_source;

typedef struct lp_saved_session lp_saved_session;
typedef struct lp_trace lp_trace;

/* Pointers are borrowed until the session is closed; NULL: none. */
typedef struct {
  const char *cloud; /* HOST:PORT of a worker; NULL: all sides, which must be loaded, run in this process */
  /* The same by name, for bundles of two or more places: one worker for each place besides the device. */
  const lp_place_address *clouds;
  size_t cloud_count;
  lp_mode mode;   /* exact means full when the bundle has no exits */
  double theta;   /* threshold mode: the least confidence at which an exit's token is taken */
  lp_codec codec; /* auto: f32 in exact mode, so that tokens are those of the full model; else f16 */
  lp_sampling sampling;
  int64_t max_tokens; /* the most to generate, per sequence */
  bool ignore_eos;
  const volatile int *stop; /* when set, generation ends after the current token */
  /* Asked before each part of a prompt and each token, on the generating thread; true is like `stop`. NULL: nothing. */
  bool (*is_abandoned)(void *user);
  void *abandon_user;
  int64_t ahead;           /* the most tokens that a worker which has all of decode draws ahead of the device; 0: 256 */
  int64_t prompt_part;     /* a longer prompt runs in parts of as many tokens where the plan allows that; 0: 1024 */
  int32_t threads;         /* 0: the machine's cores */
  int64_t capacity;        /* initial KV cache in tokens; doubles when too small; 0: prompt + max_tokens */
  bool fixes_plan;         /* use the bundle's plan number `plan`, from 0; else the one that suits the request */
  int32_t plan;            /* with fixes_plan */
  double cloud_timeout_ms; /* longest wait for one answer of the worker, reconnecting included; 0: two minutes, or 10 s
                                in threshold mode. Also for a worker that is not there yet; 0: patience.dial_ms */
  bool gives_up;           /* a worker that is not there, and without exits the loss of one, ends the generation; else
                                it connects again */
  const lp_link_shape *link; /* emulated between this process and the worker */
  lp_patience patience;
  lp_link_security security;
  const char *session_file; /* the file that keeps the generation, so that another process can resume it; NULL: none */
  lp_trace *trace;          /* events are recorded here */
  const lp_source *source;  /* the encoder's input, for a bundle with lp_bundle_reads_source */
  const lp_saved_session *resume; /* the generation to continue, under the same options and with the same prompts */
  const char *traceparent;        /* of the request, for the worker's spans (W3C Trace Context); NULL: none */
} lp_generate_options;

typedef struct {
  int32_t token;      /* -1: the sequence has ended */
  lp_place side;      /* the place that computed the logits */
  int32_t exit_layer; /* the layer of the exit that gave it; -1: the full model */
  double confidence;  /* the greatest softmax probability of the logits, at temperature 1 (P2) */
  double ms;          /* since the previous token, or since the start */
} lp_generated;

typedef struct {
  LP_VEC(lp_generated) tokens; /* [batch][generated], each sequence padded with token -1 after its end */
  int64_t batch;
  int64_t generated; /* tokens of each sequence */
  int64_t resumed;   /* the first of them came from a session file; times are those of this process */
  double ttft_ms, tpot_ms, total_ms;
  double device_ms, cloud_ms, comm_ms; /* parts of total_ms: cloud_ms computing there, comm_ms waiting for the link */
  double connect_ms;                   /* part of comm_ms, with early exits; otherwise the session connects before */
  uint64_t bytes_up, bytes_down;       /* payload and framing, device to cloud and back */
  uint64_t cloud_requests;             /* times that the device waited for the cloud */
  uint64_t hidden_bytes_up;            /* the part of bytes_up that is rows of hidden states */
  int64_t drafted, accepted;           /* exact mode: tokens that an exit drafted, and those that the cloud confirmed */
  int64_t fallbacks;                   /* threshold mode: tokens taken below theta because the cloud did not answer */
  bool lost;                           /* the worker was lost, and with it this generation */
  int32_t plan, plan_count;            /* the plan that was used, and how many the bundle has */
  double rtt_ms, up_bps; /* the link when the plan was chosen; NaN: not measured, as no plan depends on it */
  lp_buf first_logits;   /* f32[vocab] at the first generated position of sequence 0; empty if computed elsewhere */
} lp_generation;

/* The device's end of a bundle: KV caches, threads, and the connection to the worker, if there is one. */
typedef struct lp_session lp_session;
/* Copies `options` and borrows the bundle. Connects to the worker in full mode, else when a generation begins. */
LP_MUST_USE lp_status lp_session_open(const lp_bundle *bundle, const lp_generate_options *options, lp_session **out,
                                      lp_diag *diag);
void lp_session_close(lp_session *session); /* NULL is allowed */
/* Receives each token as it is generated, on the thread that generates; `index` is the sequence. A resumed generation
 * begins with the tokens of the session file. */
typedef void lp_token_sink(void *user, int64_t index, const lp_generated *token);
/* Continues prompts[batch][length], sequences of equal length. The caller zeroes `out` and frees it, also after a
 * failure, with lp_generation_free. `sink` may be NULL. A session may generate any number of times, also after one. */
LP_MUST_USE lp_status lp_session_generate(lp_session *session, const int32_t *prompts, int64_t batch, int64_t length,
                                          lp_token_sink *sink, void *user, lp_generation *out, lp_diag *diag);
void lp_generation_free(lp_generation *generation);
/* Measures the idle link of a session in full mode, in some 20 ms. False: there is no connection, or it was lost. */
bool lp_session_measure_link(lp_session *session, double *rtt_ms, double *up_bps);

/* The content of a session file: the request, and the tokens so far. */
struct lp_saved_session {
  char bundle[65]; /* SHA-256 of the manifest, in hex */
  lp_sampling sampling;
  lp_mode mode;
  double theta;
  lp_codec codec;
  bool ignore_eos;
  int64_t max_tokens, batch;
  int64_t length;              /* of a prompt */
  int64_t generated;           /* tokens of each sequence */
  lp_tokens prompt;            /* [batch][length] */
  LP_VEC(lp_generated) tokens; /* [generated][batch]; token -1 after the end of a sequence */
  int32_t plan;
  uint64_t context;     /* number of the cloud's context, with early exits */
  uint32_t incarnation; /* number of times that the generation was resumed */
};
/* Fails on a file that is no session file, damaged, or of another version. The caller frees `out` with
 * lp_saved_session_free. */
LP_MUST_USE lp_status lp_saved_session_read(const char *path, lp_saved_session *out, lp_diag *diag);
void lp_saved_session_free(lp_saved_session *saved);

/* ---- a program on given data (session/session_data.c) ------------------------------------------------------------ */

typedef struct {
  const char *name;  /* as in the manifest */
  const char *dtype; /* "f32" */
  int32_t rank;
  int64_t shape[16];
  void *data; /* row-major */
  size_t size;
} lp_data;

/* Runs a program once, from an empty KV cache. `program` NULL: "prefill", or the only program. Inputs are found by
 * name. The symbols take their values from the shapes of the inputs; `r` and `c` take that of `s` where no input has
 * them. outputs[], lp_bundle_output_count entries that the caller zeroes, receives arrays; the caller releases their
 * data with free(), also after a failure. */
LP_MUST_USE lp_status lp_session_run(lp_session *session, const char *program, const lp_data *inputs, size_t count,
                                     lp_data *outputs, lp_diag *diag);
/* Does the same at positions from `past` on. Earlier calls, with the same batch, have put the positions before them
 * into the KV caches. `program` NULL: "decode" after a past. */
LP_MUST_USE lp_status lp_session_step(lp_session *session, const char *program, int64_t past, const lp_data *inputs,
                                      size_t count, lp_data *outputs, lp_diag *diag);

/* ---- embeddings (session/embed.c) -------------------------------------------------------------------------------- */

/* The number of values of an embedding. Fails, with the reason, when the bundle gives none. */
LP_MUST_USE lp_status lp_bundle_embedding_width(const lp_bundle *bundle, int64_t *width, lp_diag *diag);
/* Computes the embedding of a text of `count` tokens, at least one: its hidden states, pooled and made to have length 1
 * as the bundle states. out[lp_bundle_embedding_width]. */
LP_MUST_USE lp_status lp_session_embed(lp_session *session, const int32_t *tokens, size_t count, float *out,
                                       lp_diag *diag);
typedef struct {
  const int32_t *token; /* [count] at least one */
  size_t count;
  float *out; /* [lp_bundle_embedding_width] */
} lp_embed_text;
/* Does the same for text[count] in one pass, without padding: on a processor the results are those of each text alone.
 * If the code runs one sequence at a time, or the bundle is split, there is a pass for each text. Adds the number of
 * passes to *passes. */
LP_MUST_USE lp_status lp_session_embed_all(lp_session *session, const lp_embed_text *text, size_t count,
                                           int64_t *passes, lp_diag *diag);

/* ---- measuring (session/bench.c) --------------------------------------------------------------------------------- */

typedef struct {
  int64_t prompt, generate; /* tokens; 0: no such row in the result */
  int64_t depth;            /* tokens in the KV cache at the start */
  int64_t batch;            /* sequences at once; 0: one */
  int64_t repetitions;
} lp_bench_options;

typedef struct {
  char name[48];                  /* "pp512", "tg128 @ d1024" */
  int64_t tokens;                 /* of all sequences */
  double tokens_per_s, deviation; /* mean and standard deviation over the repetitions */
  double gbytes_per_s; /* weights read, on all sides; 0 for prompts: one pass reads the weights for many tokens */
} lp_bench_row;

typedef struct {
  lp_bench_row row[2];
  int32_t rows, threads;
  int64_t weight_bytes, peak_bytes; /* of all sides; the peak of this process */
} lp_bench_result;
/* Measures prompt processing and generation, each after a warm-up run. */
LP_MUST_USE lp_status lp_session_bench(lp_session *session, const lp_bench_options *options, lp_bench_result *out,
                                       lp_diag *diag);

/* The time of one part of a pass: an operator of a bundle compiled to be profiled, else a segment. */
typedef struct {
  const char *name; /* "op.linear /layers.0/q" or "lp_segment_0"; borrowed from the bundle */
  double ms;
} lp_part_time;

/* Means over the middle half of the repetitions by total time, so that the parts and `other_ms` sum to `total_ms`. */
typedef struct {
  LP_VEC(lp_part_time) parts; /* in the order in which they run; release with lp_vec_free */
  double total_ms;            /* of a pass */
  double other_ms;            /* in no part: starting threads, copying tokens in and results out, drawing a token */
} lp_profile;
/* Times the parts of a pass over `count` tokens of each of `batch` sequences after `past`, after a warm-up. With one
 * token the repetitions take consecutive positions around `past`. Both sides must be in this process. */
LP_MUST_USE lp_status lp_session_profile(lp_session *session, int64_t batch, int64_t past, int64_t count,
                                         int64_t repetitions, lp_profile *out, lp_diag *diag);

/* ---- measuring another machine (profile/) ------------------------------------------------------------------------ */

/* Serves devices that measure bundles which were compiled to be profiled, until `*stop` is set. A device names one of
 * the bundles in its handshake. With its first measurement the bundle is loaded, with both sides in this process, in
 * place of the one before. Of `options` it uses listen, threads, security and on_listening; of `load`, the checks. */
LP_MUST_USE lp_status lp_profile_serve(const char *const *paths, size_t count, const lp_bundle_options *load,
                                       const lp_worker_options *options, const volatile int *stop, lp_diag *diag);

/* A connection to such a worker. */
typedef struct lp_remote_profiler lp_remote_profiler;
typedef struct {
  const char *address, *bundle; /* the worker's HOST:PORT; the path of a bundle that the worker has too */
  lp_link_security security;
  double timeout_ms; /* the longest wait for a measurement; 0: 10 minutes */
} lp_remote_profiler_options;
/* Connects; `options` are borrowed until the connection is closed. */
LP_MUST_USE lp_status lp_remote_profiler_open(const lp_remote_profiler_options *options, lp_remote_profiler **out,
                                              lp_diag *diag);
/* As lp_session_profile of one sequence, on the worker's machine. The parts of `out` have no names. */
LP_MUST_USE lp_status lp_remote_profiler_measure(lp_remote_profiler *profiler, int64_t past, int64_t count,
                                                 int64_t repetitions, lp_profile *out, lp_diag *diag);
void lp_remote_profiler_close(lp_remote_profiler *profiler); /* NULL is allowed */

/* ---- trace (exec/trace.c) ---------------------------------------------------------------------------------------- */

/* A timeline of sessions on the lanes device, upload, link and cloud, in the device's clock; of more than two places,
 * each one besides the device has a lane. Any thread may add to it. */
lp_trace *lp_trace_create(void);
void lp_trace_free(lp_trace *trace); /* NULL is allowed */
/* Writes the JSON that chrome://tracing and Perfetto read, with "schema": "llmpart.trace/1" in its `otherData`. No
 * thread may add to the trace meanwhile. `bundle` names the places; NULL: two sides. */
LP_MUST_USE lp_status lp_trace_write(lp_trace *trace, const lp_bundle *bundle, const char *path, lp_diag *diag);
