/* Sessions: options, generations, tokens. */
#include "runtime/library/internal.h"

#include "base/clock.h"

enum { USUAL_TOKENS = 128 };
static const double usual_theta = 0.8;

struct llmpart_session {
  const llmpart_bundle *bundle;
  lp_session *session;
  lp_arena *text;           /* strings of the options */
  lp_place_addresses cloud; /* of the workers */
  volatile int stop;        /* the generation that runs is to end */
};

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const char *copy_text(lp_arena *arena, const char *text) {
  return text ? lp_arena_strdup(arena, text) : NULL;
}

static lp_sampling sampling_of(const llmpart_bundle *bundle, const llmpart_session_options *from) {
  if (from->uses_model_sampling) {
    lp_sampling sampling = lp_bundle_sampling(bundle->bundle);
    sampling.seed = from->seed;
    return sampling;
  }
  return (lp_sampling){.temperature = from->temperature,
                       .top_k = from->top_k,
                       .top_p = from->top_p > 0 ? from->top_p : 1,
                       .seed = from->seed};
}

static int64_t usual_tokens(const lp_bundle *bundle) {
  int64_t context = lp_bundle_context_length(bundle);
  return context > 0 && context < USUAL_TOKENS ? context : USUAL_TOKENS;
}

static lp_status check_options(const llmpart_session_options *from, lp_diag *diag) {
  if (!(from->temperature >= 0) || !(from->top_p >= 0 && from->top_p <= 1) || from->top_k < 0)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE,
                       "sampling wants a temperature of 0 or more, a top_p in [0, 1] and a top_k of 0 or more");
  if (from->max_tokens < 0 || from->threads < 0 || !(from->cloud_timeout_ms >= 0))
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "max_tokens, threads and cloud_timeout_ms are 0 or more");
  if (!(from->theta >= 0 && from->theta <= 1))
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "theta is a confidence, in [0, 1]");
  return LP_OK;
}

static lp_status mode_of(const llmpart_bundle *bundle, llmpart_mode mode, lp_mode *out, lp_diag *diag) {
  static const lp_mode modes[] = {[LLMPART_EXACT] = LP_MODE_EXACT,
                                  [LLMPART_THRESHOLD] = LP_MODE_THRESHOLD,
                                  [LLMPART_STANDALONE] = LP_MODE_STANDALONE};
  if ((size_t)mode >= LP_COUNT(modes)) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "mode %d is unknown", (int)mode);
  const char *why = "";
  *out = modes[mode];
  if (lp_bundle_allows(bundle->bundle, *out, &why)) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(bundle->path), "mode %s: %s", lp_mode_name(*out), why);
}

static lp_status read_options(llmpart_session *self, const llmpart_session_options *from, lp_generate_options *out,
                              lp_diag *diag) {
  const llmpart_bundle *bundle = self->bundle;
  LP_TRY(check_options(from, diag));
  *out = (lp_generate_options){.theta = from->theta > 0 ? from->theta : usual_theta,
                               .sampling = sampling_of(bundle, from),
                               .max_tokens = from->max_tokens > 0 ? from->max_tokens : usual_tokens(bundle->bundle),
                               .ignore_eos = from->ignore_eos,
                               .stop = &self->stop,
                               .threads = from->threads,
                               .cloud_timeout_ms = from->cloud_timeout_ms,
                               .security = {.key_file = copy_text(self->text, from->key_file),
                                            .ca_file = copy_text(self->text, from->ca_file),
                                            .server_name = copy_text(self->text, from->tls_name),
                                            .cert_file = copy_text(self->text, from->cert_file),
                                            .cert_key_file = copy_text(self->text, from->cert_key_file)}};
  LP_TRY(mode_of(bundle, from->mode, &out->mode, diag));
  if (!lp_bundle_is_split(bundle->bundle)) {
    if (!from->cloud) return LP_OK;
    return lp_error(diag, LP_LOC_FILE(bundle->path),
                    "the bundle is not split, so that no part of it runs on the worker at %s", from->cloud);
  }
  if (from->cloud) {
    LP_TRY(lp_place_addresses_read(from->cloud, bundle->bundle, self->text, true, &self->cloud, diag));
    out->cloud = self->cloud.only;
    out->clouds = self->cloud.place;
    out->cloud_count = self->cloud.count;
  }
  if (from->cloud || out->mode == LP_MODE_STANDALONE) return LP_OK;
  return lp_library_need_cloud(bundle, "a session without a worker", diag);
}

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

static lp_status open_session(llmpart_session *self, const llmpart_session_options *given, lp_diag *diag) {
  llmpart_session_options from = {0};
  lp_generate_options options;
  LP_TRY(lp_library_options(given, &from, sizeof from, "llmpart_session_options", diag));
  LP_TRY(read_options(self, &from, &options, diag));
  return lp_session_open(self->bundle->bundle, &options, &self->session, diag);
}

llmpart_session *llmpart_session_open(const llmpart_bundle *bundle, const llmpart_session_options *options) {
  lp_diag *diag = lp_library_begin();
  llmpart_session *session = lp_alloc(sizeof *session);
  *session = (llmpart_session){.bundle = bundle, .text = lp_arena_create()};
  if (lp_library_end(diag, open_session(session, options, diag))) return session;
  llmpart_session_close(session);
  return NULL;
}

void llmpart_session_close(llmpart_session *session) {
  if (!session) return;
  if (session->session) lp_session_close(session->session);
  lp_arena_free(session->text);
  free(session);
}

void llmpart_session_stop(llmpart_session *session) {
  lp_flag_set(&session->stop);
}

/* ---- generating -------------------------------------------------------------------------------------------------- */

typedef struct {
  llmpart_session *session;
  llmpart_token_sink *sink;
  void *user;
  lp_text_stream text;
} listener;

static void hand_on(void *user, int64_t index, const lp_generated *made) {
  listener *to = user;
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(to->session->bundle->bundle);
  LP_OWNED(lp_buf_free) lp_buf piece = {0};
  (void)index; /* there is one sequence */
  if (tokenizer) lp_text_stream_put(&to->text, tokenizer, made->token, &piece);
  const llmpart_token token = {.size = sizeof token,
                               .token = made->token,
                               .text = tokenizer ? lp_buf_text(&piece) : NULL,
                               .is_from_cloud = made->side != LP_SIDE_DEVICE,
                               .exit_layer = made->exit_layer,
                               .confidence = made->confidence,
                               .ms = made->ms,
                               .place = lp_bundle_place_name(to->session->bundle->bundle, made->side)};
  if (!lp_flag_get(&to->session->stop) && !to->sink(to->user, &token)) lp_flag_set(&to->session->stop);
}

static void give_result(const lp_generation *made, llmpart_result *out) {
  const llmpart_result result = {.tokens = made->generated,
                                 .ttft_ms = made->ttft_ms,
                                 .tpot_ms = made->tpot_ms,
                                 .total_ms = made->total_ms,
                                 .device_ms = made->device_ms,
                                 .cloud_ms = made->cloud_ms,
                                 .link_ms = made->comm_ms,
                                 .bytes_up = made->bytes_up,
                                 .bytes_down = made->bytes_down};
  lp_library_result(&result, sizeof result, out);
}

static lp_status generate(llmpart_session *session, const int32_t *prompt, size_t length, llmpart_token_sink *sink,
                          void *user, llmpart_result *result, lp_diag *diag) {
  if (length == 0) return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "the prompt has no tokens");
  listener to = {.session = session, .sink = sink, .user = user};
  lp_generation made = {0};
  session->stop = 0;
  lp_status status =
      lp_session_generate(session->session, prompt, 1, (int64_t)length, sink ? hand_on : NULL, &to, &made, diag);
  if (status == LP_OK && result) give_result(&made, result);
  lp_text_stream_free(&to.text);
  lp_generation_free(&made);
  return status;
}

bool llmpart_generate(llmpart_session *session, const int32_t *prompt, size_t length, llmpart_token_sink *sink,
                      void *user, llmpart_result *result) {
  lp_diag *diag = lp_library_begin();
  return lp_library_end(diag, generate(session, prompt, length, sink, user, result, diag));
}

bool llmpart_generate_text(llmpart_session *session, const char *prompt, llmpart_token_sink *sink, void *user,
                           llmpart_result *result) {
  lp_diag *diag = lp_library_begin();
  LP_OWNED(lp_free_at) lp_tokens tokens = {0};
  lp_status status = lp_library_encode(session->bundle, prompt, &tokens, diag);
  if (status == LP_OK) status = generate(session, tokens.data, tokens.count, sink, user, result, diag);
  return lp_library_end(diag, status);
}
