/* Runs both halves of a bundle over documents, and notes where the exits, and the cloud on rows that went through the
 * codec, agree with the full model, which is the cloud's half on the original rows. */

#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exec/executor.h"
#include "runtime/exits/calibrate/calibrate_internal.h"
#include "runtime/exits/codec.h"
#include "runtime/exits/device_half.h"
#include "runtime/exits/halves.h"
#include "runtime/runtime.h"

enum {
  PASS = 64,     /* positions of a pass: memory holds the logits of all of them */
  LONGEST = 4096 /* the context length when the model states none */
};

struct lp_judge {
  const lp_bundle *bundle;
  lp_halves halves;
  lp_pool *pool;
  lp_executor *device, *full[LP_PLACES_MAX]; /* [links] */
  /* Run the cloud's half on rows that went through the codec; NULL: the codec changes nothing. */
  lp_executor *coded[LP_PLACES_MAX];
  lp_codec codec;
  int64_t longest; /* tokens of a piece: the model's context length */
  int64_t generate;
  lp_session *session; /* generates; NULL: the documents' own tokens are judged */
  lp_device_half *half;
  lp_device_rows rows;        /* of the last pass */
  float *made[LP_PLACES_MAX]; /* [links][PASS][width] that the link takes; [0] is unused */
  lp_sample *exits;           /* [exits][PASS] */
  lp_sample samples[PASS], answers[PASS], truth[PASS];
  lp_buf scratch;
};

static const lp_sampling greedy = {.top_p = 1};

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static lp_status open_session(const lp_calibrate_options *options, lp_judge *judge, lp_diag *diag) {
  lp_generate_options generation = {
      .mode = LP_MODE_EXACT, .sampling = greedy, .max_tokens = options->generate, .threads = options->threads};
  judge->generate = options->generate;
  if (options->generate == 0) return LP_OK;
  if (options->generate >= judge->longest)
    return lp_error(diag, LP_LOC_FILE(judge->bundle->manifest.file),
                    "%" PRId64 " tokens to generate leave no room for a prompt in a context of %" PRId64,
                    options->generate, judge->longest);
  return lp_session_open(judge->bundle, &generation, &judge->session, diag);
}

static void open_link(lp_judge *judge, int32_t link) {
  judge->full[link] = lp_executor_create(judge->bundle, judge->halves.chain[link], judge->pool);
  if (judge->codec != LP_CODEC_F32)
    judge->coded[link] = lp_executor_create(judge->bundle, judge->halves.chain[link], judge->pool);
  if (link > 0) judge->made[link] = lp_alloc(PASS * judge->halves.width[link] * sizeof *judge->made[link]);
}

lp_status lp_judge_open(const lp_bundle *bundle, const lp_calibrate_options *options, lp_judge **out, lp_diag *diag) {
  const char *why = "";
  lp_halves halves;
  *out = NULL;
  if (!lp_halves_find(bundle, &halves, &why)) return lp_error(diag, LP_LOC_FILE(bundle->manifest.file), "%s", why);
  lp_judge *judge = lp_alloc(sizeof *judge);
  *out = judge;
  judge->bundle = bundle;
  judge->halves = halves;
  judge->codec = options->codec;
  judge->longest = bundle->manifest.context_length > 0 ? bundle->manifest.context_length : LONGEST;
  judge->pool = lp_pool_create(options->threads);
  judge->device = lp_executor_create(bundle, LP_SIDE_DEVICE, judge->pool);
  for (int32_t i = 0; i < halves.links; i++)
    open_link(judge, i);
  judge->half = lp_device_half_create(&judge->halves, judge->device);
  judge->exits = lp_alloc((size_t)bundle->manifest.exit_count * PASS * sizeof *judge->exits);
  return open_session(options, judge, diag);
}

void lp_judge_close(lp_judge *judge) {
  if (!judge) return;
  lp_session_close(judge->session);
  lp_device_half_free(judge->half);
  lp_executor_free(judge->device);
  for (int32_t i = 0; i < judge->halves.links; i++) {
    lp_executor_free(judge->full[i]);
    lp_executor_free(judge->coded[i]);
    free(judge->made[i]);
  }
  lp_pool_free(judge->pool);
  free(judge->exits);
  lp_buf_free(&judge->scratch);
  free(judge);
}

void lp_judged_free(lp_judged *judged) {
  lp_vec_free(&judged->opinion);
  lp_vec_free(&judged->end);
}

/* ---- a pass ------------------------------------------------------------------------------------------------------ */

static bool wants_every_exit(void *user, int32_t exit) {
  (void)user, (void)exit;
  return true;
}

static void keep_exit(void *user, int32_t exit, const lp_sample *samples) {
  lp_judge *judge = user;
  memcpy(judge->exits + (size_t)exit * PASS, samples, sizeof judge->samples);
}

/* Replaces rows that a link takes by those that the other end of the connection decodes. */
static void send_rows(lp_judge *judge, int32_t link, float *rows, int64_t count) {
  size_t width = judge->halves.width[link];
  LP_OWNED(lp_free_at) uint8_t *wire = lp_alloc(lp_codec_row_bytes(judge->codec, width));
  for (int64_t i = 0; i < count; i++) {
    float *row = rows + (size_t)i * width;
    lp_codec_encode(judge->codec, row, width, wire);
    lp_codec_decode(judge->codec, wire, width, row);
  }
}

/* Runs the links one after the other, with the codec between them if `codec` says so. */
static lp_status run_cloud(lp_judge *judge, lp_executor *const *executor, bool codec, int64_t past, int64_t count,
                           int64_t capacity, lp_sample *out, lp_diag *diag) {
  const int32_t links = judge->halves.links;
  for (int32_t i = 0; i < links; i++) {
    float *rows = i == 0 ? judge->rows.row : judge->made[i];
    if (codec) send_rows(judge, i, rows, count);
    lp_cloud_pass pass = {.link = i,
                          .rows = rows,
                          .made = i + 1 < links ? judge->made[i + 1] : NULL,
                          .past = past,
                          .count = count,
                          .wanted = i + 1 < links ? 0 : count,
                          .capacity = capacity};
    LP_TRY(lp_halves_run_cloud(&judge->halves, executor[i], &pass, &greedy, out, &judge->scratch, diag));
  }
  return LP_OK;
}

static lp_status run_pass(lp_judge *judge, const int32_t *token, int64_t past, int64_t count, int64_t capacity,
                          lp_diag *diag) {
  lp_device_pass pass = {.token = token,
                         .past = past,
                         .count = count,
                         .wanted = count,
                         .capacity = capacity,
                         .samples = judge->samples,
                         .wants = wants_every_exit,
                         .take = keep_exit,
                         .user = judge};
  LP_TRY(lp_device_half_pass(judge->half, &pass, &greedy, &judge->rows, diag));
  LP_TRY(run_cloud(judge, judge->full, false, past, count, capacity, judge->truth, diag));
  memcpy(judge->answers, judge->truth, sizeof judge->answers);
  if (judge->codec == LP_CODEC_F32) return LP_OK;
  return run_cloud(judge, judge->coded, true, past, count, capacity, judge->answers, diag);
}

static void note(const lp_judge *judge, int64_t at, lp_judged *out) {
  int32_t truth = judge->truth[at].token;
  for (int32_t exit = 0; exit < out->exits; exit++) {
    const lp_sample *sample = &judge->exits[(size_t)exit * PASS + (size_t)at];
    lp_opinion opinion = {.confidence = sample->confidence, .agrees = sample->token == truth};
    lp_vec_push(&out->opinion, opinion);
  }
  lp_opinion answer = {.confidence = judge->answers[at].confidence, .agrees = judge->answers[at].token == truth};
  lp_vec_push(&out->opinion, answer);
}

/* ---- a document -------------------------------------------------------------------------------------------------- */

/* Lets the full model continue the document. The tokens that it adds are judged, each as the prediction after the
 * position before it; no prediction after the last one is needed. */
static lp_status continue_document(lp_judge *judge, lp_corpus_document *document, lp_diag *diag) {
  if (!judge->session) return LP_OK;
  int64_t most = judge->longest - judge->generate;
  if ((int64_t)document->ids.count > most) document->ids.count = (size_t)most;
  LP_OWNED(lp_generation_free) lp_generation made = {0};
  lp_status status =
      lp_session_generate(judge->session, document->ids.data, 1, (int64_t)document->ids.count, NULL, NULL, &made, diag);
  for (int64_t i = 0; i + 1 < made.generated; i++)
    lp_vec_push(&document->ids, made.tokens.data[i].token);
  document->judged = made.generated;
  return status;
}

/* A document longer than the context is judged in pieces of that length. */
static lp_status judge_piece(lp_judge *judge, const int32_t *ids, int64_t count, int64_t first, lp_judged *out,
                             lp_diag *diag) {
  for (int64_t past = 0; past < count; past += PASS) {
    int64_t now = count - past < PASS ? count - past : PASS;
    LP_TRY(run_pass(judge, ids + past, past, now, count, diag));
    for (int64_t i = 0; i < now; i++)
      if (past + i >= first) note(judge, i, out);
  }
  return LP_OK;
}

lp_status lp_judge_document(lp_judge *judge, lp_corpus_document *document, lp_judged *out, lp_diag *diag) {
  out->exits = judge->bundle->manifest.exit_count;
  LP_TRY(continue_document(judge, document, diag));
  int64_t count = (int64_t)document->ids.count, first = count - document->judged;
  for (int64_t at = 0; at < count; at += judge->longest) {
    int64_t piece = count - at < judge->longest ? count - at : judge->longest;
    LP_TRY(judge_piece(judge, document->ids.data + at, piece, first - at, out, diag));
  }
  LP_TRY(lp_bundle_await_check(judge->bundle, diag));
  lp_vec_push(&out->end, out->opinion.count / ((size_t)out->exits + 1));
  return LP_OK;
}
