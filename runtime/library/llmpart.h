/* llmpart inside another program: opens bundles that `llmpart compile` made and generates tokens with them, on this
 * machine, together with a worker elsewhere, or as such a worker.
 *
 *   llmpart_bundle *bundle = llmpart_bundle_open("model.llmpart", NULL);
 *   llmpart_session *session = llmpart_session_open(bundle, NULL);
 *   if (!session || !llmpart_generate_text(session, "Once upon a time", print, NULL, NULL))
 *     fprintf(stderr, "%s\n", llmpart_error());
 *   llmpart_session_close(session);
 *   llmpart_bundle_close(bundle);
 *
 * Link with `pkg-config --cflags --libs llmpart-runtime`, or with the CMake target llmpart::runtime of
 * `find_package(llmpart)`. docs/guide/embed.md is the guide.
 *
 * A function that returns NULL, false or a negative number has failed, and llmpart_error() tells why. Pointers that a
 * caller passes are borrowed for the call only, and text is UTF-8. Options begin with their own size, so that a program
 * that was built with this header also runs with later libraries: `{.size = sizeof(llmpart_session_options)}`; NULL
 * instead of options, and 0 or NULL in a field, stand for the default. A bundle may be used by any number of threads at
 * once, a session by one at a time. Running out of memory ends the process. */
#ifndef LLMPART_H
#define LLMPART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

const char *llmpart_version(void); /* "1.2.3"; static */
/* The message of the last function that failed on the calling thread, "" when none has; borrowed until the next one
 * fails there. */
const char *llmpart_error(void);
/* Sets what receives warnings, one line each without a newline, on the thread on which they arise. NULL, the default:
 * they are dropped. Call it before any other function. */
typedef void llmpart_log(void *user, const char *line);
void llmpart_set_log(llmpart_log *log, void *user);

/* ---- bundles ----------------------------------------------------------------------------------------------------- */

typedef struct llmpart_bundle llmpart_bundle;

typedef enum {
  LLMPART_BOTH_SIDES, /* for sessions without a worker elsewhere, and for workers */
  LLMPART_DEVICE_SIDE /* for sessions with a worker elsewhere: weights of the cloud's side stay on the disk */
} llmpart_sides;

typedef struct {
  size_t size;
  llmpart_sides sides;
  bool check;        /* compare the SHA-256 of every file first */
  const char *trust; /* the file of an Ed25519 public key (PEM) with which the bundle must be signed; implies `check` */
} llmpart_bundle_options;

/* Opens the bundle in the folder `path`; the caller closes it, after its sessions and workers. */
llmpart_bundle *llmpart_bundle_open(const char *path, const llmpart_bundle_options *options);
void llmpart_bundle_close(llmpart_bundle *bundle);                   /* NULL is allowed */
bool llmpart_bundle_is_split(const llmpart_bundle *bundle);          /* some operators run in the cloud */
int32_t llmpart_bundle_vocab_size(const llmpart_bundle *bundle);     /* in tokens */
int64_t llmpart_bundle_context_length(const llmpart_bundle *bundle); /* the most tokens of a text; 0: unknown */

/* ---- text and tokens --------------------------------------------------------------------------------------------- */

typedef struct {
  const char *role, *content; /* "system", "user", "assistant", or what the model's chat template knows besides */
} llmpart_message;

/* These three return the number of tokens, or of bytes without the NUL, that there are, and write at most `room` of
 * them; with a NUL where `room` allows one. They fail when the bundle has no tokenizer. Control tokens in a text, such
 * as <|im_end|>, are encoded as text. */
ptrdiff_t llmpart_encode(const llmpart_bundle *bundle, const char *text, int32_t *tokens, size_t room);
ptrdiff_t llmpart_decode(const llmpart_bundle *bundle, const int32_t *tokens, size_t count, char *text, size_t room);
/* Encodes a conversation by the model's chat template, up to the place where the answer begins. */
ptrdiff_t llmpart_encode_chat(const llmpart_bundle *bundle, const llmpart_message *messages, size_t count,
                              int32_t *tokens, size_t room);

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

typedef struct llmpart_session llmpart_session;

/* The use of early exits (docs/exits.md). */
typedef enum {
  LLMPART_EXACT,     /* exits draft and the cloud verifies: the tokens of the full model */
  LLMPART_THRESHOLD, /* an exit that is confident enough gives the token */
  LLMPART_STANDALONE /* the device generates by itself */
} llmpart_mode;

typedef struct {
  size_t size;
  /* The worker, "HOST:PORT"; of a bundle with more than two places the workers of all others,
   * "NAME=HOST:PORT,NAME=HOST:PORT". NULL: this process runs all sides. */
  const char *cloud;
  int64_t max_tokens;       /* the most per generation; 0: 128, or as many as the context leaves */
  int32_t threads;          /* 0: as many as the machine has cores for this process */
  bool ignore_eos;          /* continue after the model ends its text */
  bool uses_model_sampling; /* sample as the model's files state; the next four fields are not read */
  double temperature;       /* 0: the likeliest token */
  int32_t top_k;            /* 0: of all tokens */
  double top_p;             /* in (0, 1]; 0: 1 */
  uint64_t seed;
  llmpart_mode mode;
  double theta; /* threshold mode: the least confidence of an exit's token; 0: 0.8 */
  /* The longest wait for an answer, reconnecting included (0: two minutes), and for a worker that is not there yet (0:
   * 5 s). */
  double cloud_timeout_ms;
  /* Files for a worker beyond loopback, as for `llmpart run` (docs/security.md). */
  const char *key_file, *ca_file, *tls_name, *cert_file, *cert_key_file;
} llmpart_session_options;

/* Connects to the worker, if there is one. The caller closes the session, before its bundle. */
llmpart_session *llmpart_session_open(const llmpart_bundle *bundle, const llmpart_session_options *options);
void llmpart_session_close(llmpart_session *session); /* NULL is allowed */

typedef struct {
  size_t size;
  int32_t token;
  const char *text;   /* the whole characters that this token completes, perhaps ""; NULL: there is no tokenizer */
  bool is_from_cloud; /* the side that computed it */
  int32_t exit_layer; /* the layer of the exit that gave it; -1: the full model */
  double confidence;  /* the greatest softmax probability at temperature 1 */
  double ms;          /* since the previous token, or since the start */
  const char *place;  /* the name of that side: "device" or "cloud", or of one of more places */
} llmpart_token;
/* Receives each token on the thread that generates; false ends the generation after it. The token is borrowed for the
 * call. */
typedef bool llmpart_token_sink(void *user, const llmpart_token *token);

typedef struct {
  size_t size;
  int64_t tokens;                      /* generated */
  double ttft_ms, tpot_ms, total_ms;   /* time to the first token, per further token, and of all */
  double device_ms, cloud_ms, link_ms; /* parts of total_ms */
  uint64_t bytes_up, bytes_down;       /* from this process to the worker and back */
} llmpart_result;

/* Continues `length` tokens, or a text. `sink` and `result` may be NULL; result->size is set before. A session
 * generates any number of times, also after a failure; each time anew, without what came before. */
bool llmpart_generate(llmpart_session *session, const int32_t *prompt, size_t length, llmpart_token_sink *sink,
                      void *user, llmpart_result *result);
bool llmpart_generate_text(llmpart_session *session, const char *prompt, llmpart_token_sink *sink, void *user,
                           llmpart_result *result);
/* Ends the generation that runs after its current token. Any thread or signal handler may call it. */
void llmpart_session_stop(llmpart_session *session);

/* ---- workers ----------------------------------------------------------------------------------------------------- */

typedef struct llmpart_worker llmpart_worker;

typedef struct {
  size_t size;
  const char *listen;    /* "HOST:PORT"; NULL: a free port of 127.0.0.1 */
  int32_t threads;       /* 0: as many as the machine has cores for this process */
  int64_t most_sessions; /* 0: 4096 */
  /* Needed beyond loopback, as for `llmpart worker` (docs/security.md). */
  const char *key_file, *cert_file, *cert_key_file, *client_ca_file;
  /* Of a bundle with more than two places: the one to serve, and the workers of those that it sends to, as `cloud` in
   * llmpart_session_options. It shows them the key in `peer_key_file`, or else in `key_file`, and with `peer_ca_file`
   * its certificate. */
  const char *place, *peers, *peer_key_file, *peer_ca_file, *peer_tls_name;
} llmpart_worker_options;

/* Serves the cloud's side to devices on a thread of its own, from the time it returns until llmpart_worker_stop. */
llmpart_worker *llmpart_worker_start(const llmpart_bundle *bundle, const llmpart_worker_options *options);
const char *llmpart_worker_address(const llmpart_worker *worker); /* "HOST:PORT", borrowed from the worker */
/* Ends the worker within about a second and releases it; false when it had failed before. NULL is allowed. */
bool llmpart_worker_stop(llmpart_worker *worker);

#ifdef __cplusplus
}
#endif

#endif
