/* runtime: runs a bundle. Loads it, keeps KV caches, turns text into tokens and back, samples, and talks to the other
 * side over a link. A device needs only this folder and base/: no compiler header, no LLVM.
 *
 * One process per side. The device drives: it owns the session, walks the program of the manifest, runs its own
 * segments and exchanges with the worker the tensors that the program sends. The worker answers from its own copy of
 * the same program.
 */
#ifndef LP_RUNTIME_H
#define LP_RUNTIME_H

#include "base/abi.h"
#include "base/base.h"
#include "base/side.h"

/* ---- tokenizer (tokenizer/) ---------------------------------------------------------------- */

/* A Hugging Face `tokenizer.json` with a BPE model: byte-level (GPT-2, Llama 3, SmolLM) and SentencePiece style with byte
 * fallback (Llama 2). Immutable after loading; any number of threads may encode at once. */
typedef struct lp_tokenizer lp_tokenizer;

/* `path` is a tokenizer.json; a tokenizer_config.json beside it adds the chat template and special tokens. */
LP_MUST_USE lp_status lp_tokenizer_load(const char *path, lp_tokenizer **out, lp_diag *diag);
void lp_tokenizer_free(lp_tokenizer *tokenizer);
int32_t lp_tokenizer_vocab_size(const lp_tokenizer *tokenizer); /* largest id + 1, added tokens included */
/* -1 when unknown */
int32_t lp_tokenizer_eos(const lp_tokenizer *tokenizer);
int32_t lp_tokenizer_bos(const lp_tokenizer *tokenizer);
int32_t lp_tokenizer_token_id(const lp_tokenizer *tokenizer, const char *token);

typedef LP_VEC(int32_t) lp_tokens;

/* Appends the ids of `text` (UTF-8, `size` bytes; an invalid byte is encoded as U+FFFD, as the reference does). Special
 * tokens in the text are recognised; the post-processor's template (bos) is applied when `add_special`. */
LP_MUST_USE lp_status lp_tokenizer_encode(const lp_tokenizer *tokenizer, const char *text, size_t size,
                                          bool add_special, lp_tokens *out, lp_diag *diag);
/* Appends the text of the ids, without special tokens when `skip_special`. Unknown ids are skipped. */
void lp_tokenizer_decode(const lp_tokenizer *tokenizer, const int32_t *ids, size_t count, bool skip_special,
                         lp_buf *out);

typedef struct {
  const char *role, *content;
} lp_chat_message;
bool lp_tokenizer_has_chat_template(const lp_tokenizer *tokenizer);
/* Renders the messages through the model's chat template (a Jinja subset: loops, conditions, filters and string
 * expressions); a construct beyond that is an error that names it. */
LP_MUST_USE lp_status lp_tokenizer_chat(const lp_tokenizer *tokenizer, const lp_chat_message *messages, size_t count,
                                        bool add_generation_prompt, lp_buf *out, lp_diag *diag);

/* ---- sampler (exec/sampler.c) ----------------------------------------------------------------------------------------- */

typedef struct {
  double temperature; /* 0: greedy, the lowest id among equals */
  int32_t top_k;      /* 0: off */
  double top_p;       /* 1: off */
  uint64_t seed;
} lp_sampling;

int32_t lp_machine_threads(void); /* cores that this process may use */

/* Turns a stream of tokens into text, in whole characters only (text_stream.c). Zero it first. */
typedef struct {
  lp_tokens ids;
  size_t begin, shown; /* the text of ids[begin..shown) has been appended */
} lp_text_stream;
/* Appends the text that `token` completes. A character that never becomes whole is dropped. */
void lp_text_stream_put(lp_text_stream *stream, const lp_tokenizer *tokenizer, int32_t token, lp_buf *out);
void lp_text_stream_free(lp_text_stream *stream);

/* ---- bundle (bundle/bundle.c) ------------------------------------------------------------------------------------------- */

/* A bundle NAME.llmpart/ on disk; docs/bundle.md describes manifest.json. Immutable after loading. */
typedef struct lp_bundle lp_bundle;

enum { LP_LOAD_DEVICE = 1, LP_LOAD_CLOUD = 2 };

/* Loads the manifest and, for the sides in `load` (LP_LOAD_*), maps weights and opens code. Sizes, structure and content
 * (by CRC-32C) are always checked; the content of weights on a thread of its own, which is awaited before the first token
 * is returned (docs/bundle.md). `check_hashes` also compares the SHA-256 of every file before returning. */
typedef struct {
  unsigned load;
  bool check_hashes;
} lp_bundle_options;
LP_MUST_USE lp_status lp_bundle_load(const char *path, const lp_bundle_options *options, lp_bundle **out,
                                     lp_diag *diag);
void lp_bundle_free(lp_bundle *bundle);
bool lp_bundle_is_split(const lp_bundle *bundle);                 /* does any program cross the link? */
const lp_tokenizer *lp_bundle_tokenizer(const lp_bundle *bundle); /* NULL when the bundle carries none */
int32_t lp_bundle_vocab(const lp_bundle *bundle);
/* How a generation uses the early exits of its bundle (exits/collaborate.c; docs/exits.md). */
typedef enum {
  LP_MODE_FULL,      /* every token from the full model, one after the other; no exits */
  LP_MODE_EXACT,     /* the last exit drafts, the cloud verifies: the tokens are the full model's */
  LP_MODE_THRESHOLD, /* the first exit whose confidence reaches theta gives the token, else the cloud */
  LP_MODE_STANDALONE /* the last exit gives every token; nothing is sent */
} lp_mode;

/* Can it generate in this mode? If not, `why` says what is missing. */
bool lp_bundle_allows(const lp_bundle *bundle, lp_mode mode, const char **why);
int64_t lp_bundle_context(const lp_bundle *bundle); /* the most positions the model supports; 0: unknown */

/* ---- the link's security (link/security.c) ----------------------------------------------------------------------- */

/* Paths; NULL: none. Beyond loopback, TLS and either a key or a device certificate are required (docs/protocol.md). */
typedef struct {
  const char *key_file; /* 16 bytes or more that both sides hold; a newline at the end does not count */
  const char *cert_file, *cert_key_file; /* this side's certificate and the private key, PEM */
  const char *ca_file;                   /* of a device: the worker's certificate itself, or who signed it, PEM */
  const char *client_ca_file;            /* of a worker: certificates of devices, or who signed them, PEM; NULL: any */
  const char *server_name;               /* of a device: the name that the certificate must hold; NULL: any */
} lp_link_security;

/* ---- worker: the cloud side (worker.c) --------------------------------------------------------------------------- */

typedef struct {
  const char *listen;     /* HOST:PORT; port 0 takes a free one */
  int64_t context_budget; /* bytes of KV cache over all sessions; 0: none */
  double idle_ms;         /* a session unused for this long is dropped; 0: never */
  const char
      *context_dir; /* where contexts of early exits are saved when they are dropped and on exit; NULL: nowhere */
  int64_t context_dir_bytes; /* at most; 0: 4 GiB */
  int64_t most_sessions;     /* more are refused; 0: 4096 */
  int32_t threads;
  lp_link_security security;
  void (*on_listening)(void *user, const char *host, int port); /* called once, before the first request */
  /* The number of open sessions and contexts, and the bytes of their KV caches and rows, whenever they change; may be NULL. */
  void (*on_held)(void *user, size_t open, size_t bytes);
  void *user;
} lp_worker_options;
/* Serves until `*stop` is set (from a signal handler). Each refused peer gets one warning in `diag`. */
LP_MUST_USE lp_status lp_worker_serve(const lp_bundle *bundle, const lp_worker_options *options,
                                      const volatile int *stop, lp_diag *diag);

/* A worker as a child process on loopback (session/spawn.c). It does not outlive this process. */
typedef struct {
  int pid;
  int ready_fd;
  char address[32]; /* after await */
} lp_worker_process;
/* Runs `PROGRAM worker BUNDLE --listen=127.0.0.1:0 --ready-fd=N --threads=N`; the worker writes the port it took as a
 * line to that descriptor. `program` NULL is this process's own. */
LP_MUST_USE lp_status lp_worker_spawn(const char *program, const char *bundle, int32_t threads, lp_worker_process *out,
                                      lp_diag *diag);
LP_MUST_USE lp_status lp_worker_await(lp_worker_process *process, lp_diag *diag);
void lp_worker_stop(lp_worker_process *process); /* one that was not started (zero) is allowed */

/* ---- generation (session/generate.c) ------------------------------------------------------------------------------------- */

/* The encoding of hidden states on the link (exits/codec.c states the error of each). */
typedef enum { LP_CODEC_AUTO, LP_CODEC_F32, LP_CODEC_F16, LP_CODEC_INT8, LP_CODEC_INT4, LP_CODEC_COUNT } lp_codec;
const char *lp_codec_name(lp_codec codec); /* "auto", "f16" */
bool lp_codec_parse(const char *name, lp_codec *out);

/* What `llmpart calibrate --apply` left in a bundle (exits/calibration.c): a theta for threshold mode. */
#define LP_CALIBRATION_FILE "calibration.json"
typedef struct {
  double theta;
  lp_codec codec; /* of the rows that it was found with */
} lp_calibration;
/* An error when the bundle has none, or one made for another bundle. */
LP_MUST_USE lp_status lp_calibration_read(const lp_bundle *bundle, lp_calibration *out, lp_diag *diag);

/* A link to emulate (link_emulator.c; docs/protocol.md). Zero: no limit. */
typedef struct {
  double rtt_ms, up_bps, down_bps;
  double loss;                 /* share of packets of 1448 bytes that must be sent again; below 1 */
  double cut_ms, cut_every_ms; /* the link is down for cut_ms in every cut_every_ms */
  uint64_t seed;               /* of the losses */
} lp_link_shape;

/* The device's timeouts and pauses on its link. Zero: the value in brackets. */
typedef struct {
  double dial_ms;          /* longest time to connect, handshake included (5 s) */
  double pause_ms;         /* before reconnecting, doubled each time (50 ms) ... */
  double longest_pause_ms; /* ... up to this (2 s) */
  double beat_ms;          /* interval of heartbeat requests while it waits and hears nothing (1 s) */
  double silence_ms;       /* without a heartbeat for this long a connection is given up (5 s) */
  double repeat_ms;        /* before a question is sent again, doubled each time (2 s) */
} lp_patience;

typedef struct lp_saved_session lp_saved_session;
typedef struct lp_trace lp_trace;

typedef struct {
  const char *cloud; /* HOST:PORT of a worker; NULL runs both sides in this process (both must be loaded) */
  lp_mode mode;      /* exact means full when the bundle has no exits */
  double theta;      /* threshold mode: an exit's token is taken from this confidence on */
  lp_codec codec;    /* auto: f32 in exact mode, whose tokens are the full model's to the bit; else f16 */
  lp_sampling sampling;
  int64_t max_tokens; /* generated per sequence */
  bool ignore_eos;
  const volatile int *stop; /* when set, generation ends after the current token (not with early exits); may be NULL */
  int32_t threads;
  int64_t capacity; /* initial KV cache in tokens, doubled when too small; 0: prompt + max_tokens */
  bool fixes_plan;  /* use the bundle's plan number `plan`, from 0; else the one that suits the request */
  int32_t plan;
  double cloud_timeout_ms;   /* longest wait for one answer of the worker, reconnecting included; 0: two minutes */
  const lp_link_shape *link; /* borrowed; emulated between this process and the worker; NULL: none */
  lp_patience patience;
  lp_link_security security;
  const char *
      session_file; /* where the generation is saved as it goes on, so that another process can resume it; may be NULL */
  lp_trace *trace;  /* events are recorded there; borrowed; may be NULL */
  const lp_saved_session *resume; /* continue this one, under the same options; borrowed; NULL: start a new one */
} lp_generate_options;

typedef struct {
  int32_t token;
  lp_side side;       /* where the logits were computed */
  int32_t exit_layer; /* -1: the full model */
  double confidence;
  double ms; /* since the previous token, or since the start */
} lp_generated;

typedef struct {
  LP_VEC(lp_generated) tokens; /* [sequence][step], each sequence padded with token -1 after its end */
  int64_t batch, steps;
  int64_t resumed; /* the first so many steps came from a session file; times are those of this process */
  double ttft_ms, tpot_ms, total_ms;
  double device_ms, cloud_ms, comm_ms; /* parts of total_ms: all else, cloud compute, waiting for the link */
  double connect_ms; /* part of comm_ms: connecting, with early exits; else the session is connected before */
  uint64_t bytes_up, bytes_down; /* payload and framing, device to cloud and back */
  uint64_t cloud_requests;       /* times the device waited for the cloud */
  uint64_t hidden_bytes_up;      /* of bytes_up: rows of hidden states */
  int64_t drafted, accepted;     /* exact mode: tokens that an exit proposed, and those the cloud confirmed */
  int64_t fallbacks;             /* threshold: tokens taken below theta because the cloud did not answer */
  int32_t plan, plan_count;      /* which of the bundle's plans was taken */
  double rtt_ms, up_bps; /* of the link when the plan was chosen; NaN: not measured, since no plan depends on it */
  lp_buf first_logits;   /* f32[vocab] of sequence 0's first generated position; only filled when they are here */
} lp_generation;

/* The device's end of a bundle: KV caches, threads, and the connection to the worker, if any. Belongs to one thread at a time.
 * The bundle is borrowed until close, as is all that `options` (copied) points to. It may generate again, also after a failure. */
typedef struct lp_session lp_session;
LP_MUST_USE lp_status lp_session_open(const lp_bundle *bundle, const lp_generate_options *options, lp_session **out,
                                      lp_diag *diag);
void lp_session_close(lp_session *session); /* NULL is allowed */
/* Called with each token as it is generated, after those of a resumed session; `index` is the sequence. May be NULL. */
typedef void lp_token_sink(void *user, int64_t index, const lp_generated *token);
/* `prompts` is [batch][length]: sequences of equal length. Adds to `out` (zero it first). */
LP_MUST_USE lp_status lp_session_generate(lp_session *session, const int32_t *prompts, int64_t batch, int64_t length,
                                          lp_token_sink *sink, void *user, lp_generation *out, lp_diag *diag);
void lp_generation_free(lp_generation *generation);

/* ---- what happened when (exec/trace.c) -------------------------------------------------------------------------------- */

/* A timeline of a session on four lanes, device, upload, link and cloud, by the device's clock. Any thread may add to it. */
lp_trace *lp_trace_create(void);
void lp_trace_free(lp_trace *trace);
/* In the form that chrome://tracing and Perfetto read, with "schema": "llmpart.trace/1" among its other data. */
LP_MUST_USE lp_status lp_trace_write(lp_trace *trace, const char *path, lp_diag *diag);

/* ---- a generation on disk (session/session_file.c) ----------------------------------------------------------------------- */

/* The content of options->session_file: prompt, options, and the tokens so far. */
struct lp_saved_session {
  char bundle[65]; /* SHA-256 of the manifest */
  lp_sampling sampling;
  lp_mode mode;
  double theta;
  lp_codec codec;
  bool ignore_eos;
  int64_t max_tokens, batch, length, steps;
  lp_tokens prompt;            /* [batch][length] */
  LP_VEC(lp_generated) tokens; /* [steps][batch]; token -1 after the end of a sequence */
  int32_t plan;
  uint64_t context;     /* number of the cloud's context, with early exits */
  uint32_t incarnation; /* how often it was resumed */
};
/* An error for a file that is not a session, damaged, or of another version. Release with lp_saved_session_free. */
LP_MUST_USE lp_status lp_saved_session_read(const char *path, lp_saved_session *out, lp_diag *diag);
void lp_saved_session_free(lp_saved_session *saved);
const char *lp_mode_name(lp_mode mode); /* "exact" */
bool lp_mode_parse(const char *name, lp_mode *out);

/* ---- a program on given data (session/session_data.c) -------------------------------------------------------------------- */

typedef struct {
  const char *name;  /* as in the manifest */
  const char *dtype; /* "f32" */
  int32_t rank;
  int64_t shape[16];
  void *data; /* row-major */
  size_t size;
} lp_data;

/* Runs a program once, from an empty KV cache. `program` NULL is "prefill", or the only one. Inputs are found by name;
 * symbols take their values from the inputs' shapes, `r` and `c` that of `s` where no input names them. `outputs` has
 * room for lp_bundle_output_count arrays; their data is released with free(), also after a failure (zero them first). */
size_t lp_bundle_output_count(const lp_bundle *bundle);
LP_MUST_USE lp_status lp_session_run(lp_session *session, const char *program, const lp_data *inputs, size_t count,
                                     lp_data *outputs, lp_diag *diag);

/* ---- measuring (session/bench.c) ----------------------------------------------------------------------------------------- */

typedef struct {
  int64_t prompt, generate; /* tokens; 0 leaves the row out */
  int64_t depth;            /* tokens in the KV cache before */
  int64_t batch;            /* sequences at once; 0: one */
  int64_t repetitions;
} lp_bench_options;

typedef struct {
  char name[48];                  /* "pp512", "tg128 @ d1024" */
  int64_t tokens;                 /* of all sequences */
  double tokens_per_s, deviation; /* mean and standard deviation over the repetitions */
  double gbytes_per_s;            /* weights read, all sides; 0 where it says nothing */
} lp_bench_row;

typedef struct {
  lp_bench_row row[2];
  int32_t rows, threads;
  int64_t weight_bytes, peak_bytes; /* peak: of this process */
} lp_bench_result;
/* With a warm-up run before each row. */
LP_MUST_USE lp_status lp_session_bench(lp_session *session, const lp_bench_options *options, lp_bench_result *out,
                                       lp_diag *diag);

/* What one part of a pass takes: an operator of a bundle compiled to be profiled, else a segment. */
typedef struct {
  const char *name; /* "op.linear /layers.0/q" or "lp_segment_0"; the bundle's */
  double ms;
} lp_part_time;

/* Means over the middle half of the repetitions by their time, so that parts and `other_ms` sum to `total_ms`. */
typedef struct {
  LP_VEC(lp_part_time) parts; /* in the order they run; release with lp_vec_free */
  double total_ms;            /* of a pass */
  double other_ms;            /* what is in no part: threads begin, tokens in, a token drawn, results out */
} lp_profile;
/* Times the parts of a pass over `count` tokens behind `past`, batch 1, after a warm-up; a single token one place further at
 * each repetition, around `past`. Both sides must be here. */
LP_MUST_USE lp_status lp_session_profile(lp_session *session, int64_t past, int64_t count, int64_t repetitions,
                                         lp_profile *out, lp_diag *diag);

#endif
