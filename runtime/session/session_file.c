/* A generation on disk: the request, and the tokens so far. The file holds no KV caches, since running over the text
 * restores them, and no state of the random numbers, which are a function of seed and position. docs/exits.md
 * describes the file in "When the device is killed". */
#include "runtime/session/session_file.h"
#include "base/clock.h"
#include "base/place.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exits/cloud_end.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"

#include "runtime/bundle/sealed_file.h"
#include "runtime/session/kept_session.pb-c.h"

static const lp_sealed_kind kind = {.letters = "SESS", .title = "session file", .version = 1};
/* The least time between two writes of the file, each of which takes some 0.1 ms. */
static const double every_ms = 20;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool is_sound(const Lp__Kept__Session *kept) {
  size_t count = kept->n_token, batch = (size_t)kept->batch;
  bool sizes = kept->batch >= 1 && kept->batch <= INT32_MAX && kept->n_prompt >= batch && kept->n_prompt % batch == 0 &&
               count % batch == 0 && kept->max_tokens >= 0 && count / batch <= (size_t)kept->max_tokens &&
               kept->n_side == count && kept->n_exit_layer == count && kept->n_confidence == count &&
               kept->n_ms == count;
  if (!sizes || kept->mode > LP_MODE_STANDALONE || kept->codec >= LP_CODEC_COUNT) return false;
  for (size_t i = 0; i < count; i++)
    if (kept->side[i] >= LP_PLACES_MAX) return false;
  return strlen(kept->bundle) == LP_SHA256_HEX;
}

static void take(const Lp__Kept__Session *kept, lp_saved_session *out) {
  memcpy(out->bundle, kept->bundle, sizeof out->bundle);
  out->sampling =
      (lp_sampling){.temperature = kept->temperature, .top_k = kept->top_k, .top_p = kept->top_p, .seed = kept->seed};
  out->mode = (lp_mode)kept->mode;
  out->theta = kept->theta;
  out->codec = (lp_codec)kept->codec;
  out->max_tokens = kept->max_tokens;
  out->ignore_eos = kept->ignore_eos != 0;
  out->batch = kept->batch;
  out->length = (int64_t)kept->n_prompt / kept->batch;
  for (size_t i = 0; i < kept->n_prompt; i++)
    lp_vec_push(&out->prompt, kept->prompt[i]);
  out->plan = kept->plan;
  out->context = kept->context;
  out->incarnation = kept->incarnation;
  out->generated = (int64_t)kept->n_token / kept->batch;
  for (size_t i = 0; i < kept->n_token; i++) {
    lp_generated token = {.token = kept->token[i],
                          .side = (lp_place)kept->side[i],
                          .exit_layer = kept->exit_layer[i],
                          .confidence = kept->confidence[i],
                          .ms = kept->ms[i]};
    lp_vec_push(&out->tokens, token);
  }
}

lp_status lp_saved_session_read(const char *path, lp_saved_session *out, lp_diag *diag) {
  *out = (lp_saved_session){0};
  lp_sealed sealed;
  LP_TRY(lp_sealed_open(path, &kind, &sealed, diag));
  Lp__Kept__Session *kept = lp__kept__session__unpack(NULL, sealed.head_size, sealed.head);
  lp_sealed_close(&sealed);
  bool good = kept && is_sound(kept);
  if (good) take(kept, out);
  if (kept) lp__kept__session__free_unpacked(kept, NULL);
  return good ? LP_OK : lp_error(diag, LP_LOC_FILE(path), "the session file is damaged: it does not hold a session");
}

void lp_saved_session_free(lp_saved_session *saved) {
  lp_vec_free(&saved->prompt);
  lp_vec_free(&saved->tokens);
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

/* Compares the options that tokens depend on. */
static lp_status check_options(const char *path, const lp_saved_session *saved, const lp_generate_options *options,
                               lp_diag *diag) {
  lp_loc loc = LP_LOC_FILE(path);
  const struct {
    const char *name;
    double was, is;
  } numbers[] = {{"-n", (double)saved->max_tokens, (double)options->max_tokens},
                 {"--temperature", saved->sampling.temperature, options->sampling.temperature},
                 {"--top-k", saved->sampling.top_k, options->sampling.top_k},
                 {"--top-p", saved->sampling.top_p, options->sampling.top_p},
                 {"--ignore-eos", saved->ignore_eos, options->ignore_eos},
                 {"--theta", saved->theta, options->theta}};
  for (size_t i = 0; i < LP_COUNT(numbers); i++)
    if (numbers[i].was < numbers[i].is || numbers[i].was > numbers[i].is)
      return lp_error(diag, loc, "the session was begun with %s of %.9g, not of %.9g", numbers[i].name, numbers[i].was,
                      numbers[i].is);
  if (saved->sampling.seed != options->sampling.seed)
    return lp_error(diag, loc, "the session was begun with --seed of %" PRIu64 ", not of %" PRIu64,
                    saved->sampling.seed, options->sampling.seed);
  if (saved->mode != options->mode)
    return lp_error(diag, loc, "the session was begun with --mode=%s, not %s", lp_mode_name(saved->mode),
                    lp_mode_name(options->mode));
  if (saved->codec != options->codec)
    return lp_error(diag, loc, "the session was begun with --codec=%s, not %s", lp_codec_name(saved->codec),
                    lp_codec_name(options->codec));
  return LP_OK;
}

lp_status lp_keeper_check(const lp_session *session, const lp_keeper_task *task, lp_diag *diag) {
  const lp_saved_session *saved = session->options.resume;
  const char *path = session->options.session_file;
  lp_loc loc = LP_LOC_FILE(path);
  if (!saved) return LP_OK;
  const lp_manifest *manifest = &session->bundle->manifest;
  if (!lp_streq(saved->bundle, manifest->hash))
    return lp_error(diag, loc, "a session of another bundle: %.12s; this is %.12s", saved->bundle, manifest->hash);
  LP_TRY(check_options(path, saved, &session->options, diag));
  size_t count = (size_t)(task->batch * task->length);
  if (saved->batch != task->batch || saved->length != task->length ||
      memcmp(saved->prompt.data, task->prompts, count * sizeof *task->prompts) != 0)
    return lp_error(diag, loc, "the session was begun with another prompt");
  for (size_t i = 0; i < saved->tokens.count; i++)
    if (saved->tokens.data[i].token < -1 || saved->tokens.data[i].token >= manifest->vocab)
      return lp_error(diag, loc, "the session file is damaged: token %" PRId32 " lies outside of the vocabulary of %d",
                      saved->tokens.data[i].token, manifest->vocab);
  for (size_t i = 0; i < saved->tokens.count; i++)
    if (saved->tokens.data[i].side >= manifest->place_count)
      return lp_error(diag, loc, "the session file is damaged: the bundle has no place %" PRId32,
                      saved->tokens.data[i].side);
  return LP_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct lp_keeper {
  const char *path;
  const lp_session *session;
  lp_keeper_task task;
  uint64_t context;
  uint32_t incarnation;
  double written_ms;
  int64_t written; /* tokens of each sequence that the file has */
  bool failed;     /* a write has failed, and the warning was given */
};

static void put_tokens(Lp__Kept__Session *kept, const lp_generation *made) {
  size_t count = made->tokens.count;
  kept->n_token = kept->n_side = kept->n_exit_layer = kept->n_confidence = kept->n_ms = count;
  kept->token = lp_alloc((count + 1) * sizeof *kept->token);
  kept->side = lp_alloc((count + 1) * sizeof *kept->side);
  kept->exit_layer = lp_alloc((count + 1) * sizeof *kept->exit_layer);
  kept->confidence = lp_alloc((count + 1) * sizeof *kept->confidence);
  kept->ms = lp_alloc((count + 1) * sizeof *kept->ms);
  for (size_t i = 0; i < count; i++) {
    const lp_generated *token = &made->tokens.data[i];
    kept->token[i] = token->token;
    kept->side[i] = (uint32_t)token->side;
    kept->exit_layer[i] = token->exit_layer;
    kept->confidence[i] = token->confidence;
    kept->ms[i] = token->ms;
  }
}

static void pack(const lp_keeper *keeper, const lp_generation *made, lp_buf *out) {
  const lp_generate_options *options = &keeper->session->options;
  Lp__Kept__Session kept = LP__KEPT__SESSION__INIT;
  kept.bundle = (char *)(uintptr_t)keeper->session->bundle->manifest.hash; /* protobuf-c only reads it */
  kept.temperature = options->sampling.temperature;
  kept.top_k = options->sampling.top_k;
  kept.top_p = options->sampling.top_p;
  kept.seed = options->sampling.seed;
  kept.mode = options->mode;
  kept.theta = options->theta;
  kept.codec = options->codec;
  kept.max_tokens = options->max_tokens;
  kept.ignore_eos = options->ignore_eos;
  kept.batch = keeper->task.batch;
  kept.n_prompt = (size_t)(keeper->task.batch * keeper->task.length);
  kept.prompt = (int32_t *)(uintptr_t)keeper->task.prompts;
  kept.plan = made->plan;
  kept.context = keeper->context;
  kept.incarnation = keeper->incarnation;
  put_tokens(&kept, made);
  lp_buf_reserve(out, lp__kept__session__get_packed_size(&kept));
  out->size = lp__kept__session__pack(&kept, (uint8_t *)out->data);
  free(kept.token);
  free(kept.side);
  free(kept.exit_layer);
  free(kept.confidence);
  free(kept.ms);
}

static lp_status write_file(lp_keeper *keeper, const lp_generation *made, lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf head = {0};
  pack(keeper, made, &head);
  keeper->written_ms = lp_now_ms();
  lp_status status = lp_sealed_write(keeper->path, &kind, &head, &(lp_buf){0}, diag);
  if (status == LP_OK) keeper->written = made->generated;
  return status;
}

static void take_over(const lp_saved_session *saved, lp_generation *out) {
  for (size_t i = 0; i < saved->tokens.count; i++)
    lp_vec_push(&out->tokens, saved->tokens.data[i]);
  out->generated = out->resumed = saved->generated;
  out->plan = saved->plan;
}

lp_status lp_keeper_create(const lp_session *session, const lp_keeper_task *task, lp_generation *made, lp_keeper **out,
                           lp_diag *diag) {
  const lp_generate_options *options = &session->options;
  const lp_saved_session *saved = options->resume;
  *out = NULL;
  if (!options->session_file) return LP_OK;
  lp_keeper *keeper = lp_alloc(sizeof *keeper);
  *keeper = (lp_keeper){.path = options->session_file, .session = session, .task = *task};
  keeper->context = saved ? saved->context : lp_context_draw();
  keeper->incarnation = saved ? saved->incarnation + 1 : 0;
  if (saved) take_over(saved, made);
  /* The file is written before the cloud hears of the new incarnation: no two processes may use the same one. */
  lp_status status = write_file(keeper, made, diag);
  if (status == LP_OK)
    *out = keeper;
  else
    lp_keeper_free(keeper);
  return status;
}

static void write_or_warn(lp_keeper *keeper, const lp_generation *made, lp_diag *diag) {
  LP_OWNED(lp_diag_free_at) lp_diag *quiet = lp_diag_create();
  if (write_file(keeper, made, quiet) != LP_OK && !keeper->failed) {
    const lp_diag_entry *entry = lp_diag_get(quiet, 0);
    lp_warning(diag, LP_LOC_FILE(keeper->path), "%s; the session is kept up to token %" PRId64,
               entry ? entry->text : "cannot write", keeper->written);
    keeper->failed = true;
  }
}

void lp_keeper_note(lp_keeper *keeper, const lp_generation *made, lp_diag *diag) {
  if (keeper && lp_now_ms() - keeper->written_ms >= every_ms) write_or_warn(keeper, made, diag);
}

void lp_keeper_finish(lp_keeper *keeper, const lp_generation *made, lp_diag *diag) {
  if (keeper && made->generated > keeper->written) write_or_warn(keeper, made, diag);
}

void lp_keeper_free(lp_keeper *keeper) {
  free(keeper);
}

bool lp_keeper_claim(const lp_keeper *keeper, lp_context_claim *out) {
  if (!keeper) return false;
  *out = (lp_context_claim){.context = keeper->context, .incarnation = keeper->incarnation};
  return true;
}
