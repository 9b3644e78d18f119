/* Early exits across device and cloud (P2, CE-CoLLM): what the files of this matter share. docs/exits.md describes the modes,
 * docs/protocol.md the messages. Nothing outside of runtime/ and its tests includes it.
 *
 * Text positions count from 0. The row of a position is what the device's half sends to the cloud's half for it: `width`
 * floats. A context is the cloud's memory of one generation: rows not yet consumed, and the KV caches behind those that were.
 */
#ifndef LP_COLLABORATE_H
#define LP_COLLABORATE_H

#include "runtime/runtime_internal.h"

/* ---- codecs of rows (codec.c) ------------------------------------------------------------------------------------ */

/* Bytes of a row; of AUTO 0. */
size_t lp_codec_row_bytes(lp_codec codec, size_t width);
void lp_codec_encode(lp_codec codec, const float *row, size_t width, uint8_t *out);
void lp_codec_decode(lp_codec codec, const uint8_t *in, size_t width, float *row);
/* The greatest error that decode(encode(x)) can have for this element of a row. */
double lp_codec_error_bound(lp_codec codec, const float *row, size_t width, size_t index);

/* ---- the two halves of a bundle (halves.c) ----------------------------------------------------------------------- */

enum { LP_MOST_EXITS = 32 };

/* A bundle whose device half ends in rows that its cloud half begins with: nothing comes back but tokens. */
typedef struct {
  const lp_bundle *bundle;
  int32_t prefill, decode; /* programs */
  int32_t tokens;          /* the input */
  size_t width;            /* floats of a row */
} lp_halves;

/* `why` says what does not fit when it returns false. */
bool lp_halves_find(const lp_bundle *bundle, lp_halves *out, const char **why);

/* A pass of the device over `count` tokens behind `past`: an exit gives samples behind each of the last `wanted` positions. */
typedef struct {
  const int32_t *token;
  int64_t past, count, wanted, capacity;
  lp_sample *samples;                                               /* [wanted], for each exit in turn */
  bool (*wants)(void *user, int32_t exit);                          /* is the exit's head to be run? Asked in order */
  void (*take)(void *user, int32_t exit, const lp_sample *samples); /* what it says */
  void *user;
} lp_device_pass;
/* Writes the rows [count][width]. `scratch` is the caller's, as is `ids`. */
LP_MUST_USE lp_status lp_halves_run_device(const lp_halves *halves, lp_executor *executor, const lp_device_pass *pass,
                                           const lp_sampling *sampling, float *rows, lp_buf *ids, lp_buf *scratch,
                                           lp_diag *diag);
/* A pass of the cloud over `rows` [count][width] behind `past`: samples behind each of the last `wanted` positions, which may be
 * none. */
typedef struct {
  const float *rows;
  int64_t past, count, wanted, capacity;
} lp_cloud_pass;
int32_t lp_halves_program(const lp_halves *halves, int64_t past); /* which runs behind so many positions */
void lp_cloud_pass_symbols(const lp_cloud_pass *pass, int64_t sym[]);
/* What a send step of the program hands to the cloud, and its bytes. `column` counts the floats of a row that earlier ones took.
 * `to` NULL: the bytes alone. */
size_t lp_cloud_pass_fill(const lp_halves *halves, const lp_cloud_pass *pass, const lp_step *step, size_t *column,
                          void *to);
/* The samples from the logits that an output step has. */
void lp_cloud_pass_sample(const lp_cloud_pass *pass, const lp_sampling *sampling, const lp_logits *logits,
                          lp_sample *out, lp_buf *scratch);
LP_MUST_USE lp_status lp_halves_run_cloud(const lp_halves *halves, lp_executor *executor, const lp_cloud_pass *pass,
                                          const lp_sampling *sampling, lp_sample *out, lp_buf *scratch, lp_diag *diag);

/* ---- contexts of the cloud (context.c) --------------------------------------------------------------------------- */

typedef struct {
  lp_sampling sampling;
  lp_codec codec;
  int64_t capacity; /* most positions */
} lp_context_options;

/* Where a message belongs in the life of a context: the epoch, and the position from which it differs from the epochs
 * before it. The epoch grows whenever drafts may have been dropped. */
typedef struct {
  uint64_t epoch;
  int64_t floor;
} lp_context_time;

typedef struct {
  const int32_t *draft; /* proposed tokens of the positions [end - count, end) */
  int64_t count, end;   /* the answer lies behind the first draft that fails, else behind position end - 1 */
} lp_question;

typedef struct {
  int64_t accepted; /* drafts that are the full model's */
  lp_sample sample; /* what comes behind them */
  double busy_ms;   /* the cloud computed for it */
} lp_answer;

/* One thread at a time. */
typedef struct {
  const lp_halves *halves;
  lp_executor *executor;
  lp_context_options options;
  lp_context_time time;
  int64_t consumed; /* positions in the KV cache */
  int64_t held;     /* rows of [consumed, held) are here without a gap */
  float *rows;      /* [room][width]: of the positions from `consumed` on */
  bool *present;    /* [room] */
  int64_t room;
  lp_sample *sampled; /* [capacity]: what comes behind each position; token -1: not computed. NULL: nothing yet */
  lp_buf scratch;
} lp_context;

lp_context *lp_context_create(const lp_halves *halves, const lp_context_options *options, lp_pool *pool);
void lp_context_free(lp_context *context); /* NULL is allowed */
/* Gives up the KV cache and the rows; all of them are wanted again. */
void lp_context_drop(lp_context *context);
size_t lp_context_bytes(const lp_context *context);
/* What it will take at most, for admission; false when too large. */
bool lp_context_bytes_wanted(const lp_context *context, size_t *bytes);
/* Rows of [first, first + count), encoded. A duplicate, a late and a reordered upload change nothing: what belongs to an
 * epoch that has passed is left out, what is here already is not written again. */
LP_MUST_USE lp_status lp_context_upload(lp_context *context, lp_context_time time, int64_t first, int64_t count,
                                        const uint8_t *data, size_t size, lp_diag *diag);
/* Of a new context: positions below `consumed` are in its KV cache, and rows [consumed, held)[width], f32, are here. */
void lp_context_put(lp_context *context, int64_t consumed, int64_t held, const void *rows);
/* Takes over a newer epoch: forgets the positions from its floor on. False: the message is from an older one. */
bool lp_context_enter(lp_context *context, lp_context_time time);
bool lp_context_is_ready(const lp_context *context, int64_t end);
/* Runs what was not consumed up to the question's end, each position once, and compares. With drafts, what was refused is
 * forgotten and the epoch grows by one. */
LP_MUST_USE lp_status lp_context_ask(lp_context *context, const lp_question *question, lp_answer *out, lp_diag *diag);
/* The same by parts, for who runs passes of several contexts at once: check; while there is a next pass, of LP_PASS_ROWS rows at
 * most, run it, write its samples and say that it passed; judge. */
LP_MUST_USE lp_status lp_context_check(const lp_context *context, const lp_question *question, lp_diag *diag);
bool lp_context_next(const lp_context *context, const lp_question *question, lp_cloud_pass *out);
lp_sample *lp_context_samples(lp_context *context, const lp_cloud_pass *pass); /* [wanted] */
void lp_context_passed(lp_context *context, const lp_cloud_pass *pass);
LP_MUST_USE lp_status lp_context_judge(lp_context *context, const lp_question *question, lp_answer *out, lp_diag *diag);

/* ---- how far to draft (window.c) --------------------------------------------------------------------------------- */

enum { LP_WINDOW_BUCKETS = 10 };

/* Sums over rounds, older ones weighing less and less: the line of a round's ms over its drafts. */
typedef struct {
  double rounds, drafts, tokens, ms, drafts_squared, drafts_ms, ms_squared;
  double slope; /* ms of a draft; 0: not known */
} lp_window_fit;

/* Drafting goes on while the chance that the next draft will count is worth the time that it takes, at the going rate of
 * tokens per ms: the rule that maximises that rate in the long run (renewal reward). The chance of a draft is what drafts
 * of its confidence had so far. What it takes is its pass, or what one more draft has made rounds longer, if that is more: on
 * a narrow link its row is on the way for longer than the device computes. */
typedef struct {
  double confirmed[LP_WINDOW_BUCKETS], tried[LP_WINDOW_BUCKETS];
  double rate;     /* tokens per ms, over rounds of the recent past; 0: no round yet */
  double draft_ms; /* the pass of one draft takes */
  lp_window_fit fit;
} lp_window;

void lp_window_init(lp_window *window);
double lp_window_chance(const lp_window *window, double confidence);
/* Is a draft worth it that counts with this chance (its own times that of all before it)? */
bool lp_window_goes_on(const lp_window *window, double chance);
void lp_window_note_draft(lp_window *window, double ms);
void lp_window_note_verdict(lp_window *window, double confidence, bool confirmed);
/* A round made so many drafts, and gave so many tokens. */
void lp_window_note_round(lp_window *window, int64_t drafts, int64_t tokens, double ms);
double lp_window_draft_cost(const lp_window *window); /* ms */

/* ---- the device's end of its context (cloud_end.c, uploader.c) --------------------------------------------------- */

typedef struct lp_cloud_end lp_cloud_end;

/* A context that outlives a process of the device. Each process that goes on with it is the next incarnation: what earlier ones sent, or
 * send, is of older epochs and answers no question of its. Rows below `floor` are certain: those that earlier ones sent, and will not
 * change. */
typedef struct {
  uint64_t context;
  uint32_t incarnation;
  int64_t floor;
} lp_context_claim;
uint64_t lp_context_draw(void); /* a new context's number */

/* The context of one generation, in this process or at session->options.cloud. */
LP_MUST_USE lp_status lp_cloud_end_open(lp_session *session, const lp_halves *halves, int64_t capacity,
                                        const lp_context_claim *claim, lp_cloud_end **out, lp_diag *diag);
/* Hands over the rows of [first, first + count); returns at once. */
LP_MUST_USE lp_status lp_cloud_end_upload(lp_cloud_end *end, int64_t first, int64_t count, const float *rows,
                                          lp_diag *diag);
/* Asks and waits, for `timeout_ms` at most. When the link breaks: dials again (`persists`), or fails at once; a later question
 * finds it mended, since the rows' connection keeps dialing. */
LP_MUST_USE lp_status lp_cloud_end_ask(lp_cloud_end *end, const lp_question *question, double timeout_ms, bool persists,
                                       lp_answer *out, lp_diag *diag);
/* Sends what is left, adds the traffic to `totals` (NULL: does not wait), and ends the context. */
void lp_cloud_end_close(lp_cloud_end *end, lp_generation *totals);

/* The thread that sends rows, on a connection of its own. It keeps every row of the generation, encoded, so that the cloud
 * can be given again what it lost, and so that the device never waits: memory is bounded by the context's capacity. */
typedef struct lp_uploader lp_uploader;

typedef struct {
  const lp_endpoint *endpoint; /* borrowed */
  uint64_t context;
  lp_context_options options;
  size_t row_bytes;
  lp_context_time begin; /* before the first row is put */
  lp_trace *trace;       /* borrowed; NULL: none */
} lp_uploader_options;

lp_uploader *lp_uploader_start(const lp_uploader_options *options); /* NULL: no thread */
/* Appends an encoded row; what was there from `position` on is replaced. */
void lp_uploader_put(lp_uploader *uploader, lp_context_time time, int64_t position, const uint8_t *row);
/* Before the first row is put: rows below `count` lie in the cloud already and need not be sent, unless it comes to lack them. */
void lp_uploader_skip(lp_uploader *uploader, int64_t count);
/* The cloud lacks the rows from `from` on. When it says so again and again, rows do not reach it: the connection is made anew. */
void lp_uploader_send_again(lp_uploader *uploader, int64_t from);
/* May the cloud be reached? False after an attempt to connect failed, until one succeeds. */
bool lp_uploader_reaches(lp_uploader *uploader);
/* Waits until all is sent, for `timeout_ms` at most, and not for a cloud that cannot be reached or takes nothing. */
void lp_uploader_flush(lp_uploader *uploader, double timeout_ms);
void lp_uploader_stop(lp_uploader *uploader, uint64_t *bytes_up, uint64_t *bytes_down, uint64_t *row_bytes);

/* Opens a connection and joins the context, which the worker makes when it does not know it. `have` is how many rows the
 * cloud holds without a gap. */
LP_MUST_USE lp_status lp_context_dial(const lp_uploader_options *options, lp_context_time time, lp_trace_lane lane,
                                      double timeout_ms, lp_wire **out, int64_t *have, lp_diag *diag);

/* ---- generation (collaborate.c) ---------------------------------------------------------------------------------- */

typedef struct {
  lp_session *session;
  const int32_t *prompt;
  int64_t length, most;
  int32_t eos; /* -1: none, or ignored */
  lp_token_sink *sink;
  void *user;
  lp_generation *out; /* with the tokens that were resumed */
  struct lp_keeper *keeper;
} lp_collaboration;

/* Generates one sequence in the session's mode, which the bundle allows. */
LP_MUST_USE lp_status lp_collaborate(const lp_collaboration *task, lp_diag *diag);

#endif
