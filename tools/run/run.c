/* llmpart run: generates text with a bundle. */
#include "base/path.h"
#include "base/units.h"
#include "tools/tools.h"

#include <errno.h>
#include <math.h>

#include "tools/run/addresses.h"
#include "tools/run/model.h"
#include "tools/run/print.h"
#include "tools/run/prompt.h"
#include "tools/run/source.h"

typedef struct {
  lp_sides_options sides;
  lp_texts clouds;
  int64_t threads;
  lp_prompt_flags prompt;
  const char *format, *mode, *codec, *link, *theta, *session, *trace;
  const char *seed_text;
  uint64_t seed;
  int64_t count, capacity, plan, top_k; /* -1: not given */
  double temperature, top_p;            /* NaN: not given */
  double usual_theta, cloud_timeout_ms;
  bool ignore_eos, stats, resume;
  lp_link_security security;
} run_flags;

/* ---- defaults ---------------------------------------------------------------------------------------------------- */

static double or_else(double given, double otherwise) {
  return isnan(given) ? otherwise : given;
}

static void settle_sampling(run_flags *flags, const lp_sampling *from) {
  if (flags->top_k < 0) flags->top_k = from->top_k;
  flags->temperature = or_else(flags->temperature, from->temperature);
  flags->top_p = or_else(flags->top_p, from->top_p);
}

/* Sets the options that were not given: a resumed run takes the values of its session, any other run the defaults, with
 * the bundle's settings of sampling. Given options stay and are compared with the session's. */
static void settle(run_flags *flags, const lp_saved_session *saved) {
  const lp_saved_session usual = {.mode = LP_MODE_EXACT, .theta = 0.8, .codec = LP_CODEC_AUTO, .max_tokens = -1};
  const lp_saved_session *from = saved ? saved : &usual;
  if (!flags->mode) flags->mode = lp_mode_name(from->mode);
  if (!flags->codec) flags->codec = lp_codec_name(from->codec);
  if (flags->count < 0) flags->count = from->max_tokens;
  if (!flags->seed_text) flags->seed = from->sampling.seed;
  flags->usual_theta = from->theta;
  flags->ignore_eos = flags->ignore_eos || from->ignore_eos;
  if (saved) settle_sampling(flags, &saved->sampling);
}

/* ---- generating -------------------------------------------------------------------------------------------------- */

typedef struct {
  const lp_tokenizer *tokenizer;
  lp_text_stream text;
  bool streams, any;
  int problem; /* errno of stdout's first failure, after which nothing more is written; or 0 */
} run_output;

static void show_token(void *user, int64_t index, const lp_generated *token) {
  run_output *output = user;
  if (!output->streams || index != 0) return;
  LP_OWNED(lp_buf_free) lp_buf piece = {0};
  if (output->tokenizer)
    lp_text_stream_put(&output->text, output->tokenizer, token->token, &piece);
  else
    lp_buf_printf(&piece, "%s%d", output->any ? " " : "", token->token);
  output->any = true;
  if (piece.size > 0 && !output->problem) {
    errno = 0;
    bool written = fwrite(piece.data, 1, piece.size, stdout) == piece.size && fflush(stdout) == 0;
    if (!written) output->problem = errno ? errno : EIO;
  }
}

/* What the run's link is: as --link says, or else as it is measured after the run for --stats. */
static lp_run_link link_of(const run_flags *flags, const lp_generate_options *options, lp_session *session) {
  const lp_link_shape *shape = options->link;
  lp_run_link link = {LP_RUN_NO_LINK, false, NAN, NAN, NAN};
  if (flags->sides.in_process || flags->sides.device_only) return link;
  if (!options->cloud && options->cloud_count == 0) return link;
  link.kind = shape ? LP_RUN_EMULATED : flags->clouds.count > 0 ? LP_RUN_NETWORK : LP_RUN_LOOPBACK;
  if (!shape) {
    link.measured = flags->stats && lp_session_measure_link(session, &link.rtt_ms, &link.up_bps);
    link.down_bps = link.up_bps;
    return link;
  }
  link.rtt_ms = shape->rtt_ms;
  if (shape->up_bps > 0) link.up_bps = shape->up_bps * (1 - shape->loss);
  if (shape->down_bps > 0) link.down_bps = shape->down_bps * (1 - shape->loss);
  return link;
}

static lp_status print_made(const run_flags *flags, const lp_bundle *bundle, const lp_generation *made,
                            int64_t prompt_tokens, const lp_run_planned *planned, const lp_run_link *link,
                            lp_diag *diag) {
  LP_OWNED(lp_buf_free) lp_buf out = {0};
  if (lp_streq(flags->format, "json")) {
    lp_run_print_json(bundle, made, prompt_tokens, planned, link, &out);
  } else if (made->batch > 1) {
    for (int64_t i = 0; i < made->batch; i++) {
      lp_run_print_text(bundle, made, i, &out);
      lp_buf_puts(&out, "\n");
    }
  } else {
    lp_buf_puts(&out, "\n"); /* the text is on stdout already */
  }
  fflush(stdout);
  lp_status status = lp_tool_write("-", &out, diag);
  if (status == LP_OK && flags->stats) {
    lp_run_print_stats(bundle, made, prompt_tokens, &out);
    lp_run_print_prediction(planned, made, prompt_tokens, link, &out);
    fputs(lp_buf_text(&out), stderr);
  }
  return status;
}

static int64_t tokens_to_make(const run_flags *flags, const lp_bundle *bundle, int64_t length) {
  int64_t left = lp_bundle_context_length(bundle) - length;
  if (flags->count >= 0) return flags->count;
  return lp_bundle_context_length(bundle) > 0 && left < 128 ? (left > 0 ? left : 1) : 128;
}

/* Reads --theta and --codec. By default rows are sent in the codec with which a calibrated theta was found. */
static lp_status read_exits(const run_flags *flags, const lp_bundle *bundle, lp_generate_options *out, lp_diag *diag) {
  lp_calibration found;
  (void)lp_codec_parse(flags->codec, &out->codec); /* the option was checked before */
  out->theta = flags->usual_theta;
  if (!flags->theta) return LP_OK;
  if (!lp_streq(flags->theta, "calibrated")) return lp_parse_double(flags->theta, &out->theta, NULL, LP_LOC_NONE);
  LP_TRY(lp_calibration_read(bundle, &found, diag));
  out->theta = found.theta;
  if (out->codec == LP_CODEC_AUTO && out->mode == LP_MODE_THRESHOLD) out->codec = found.codec;
  if (out->codec == found.codec || out->mode != LP_MODE_THRESHOLD) return LP_OK;
  lp_warning(diag, LP_LOC_FILE("--codec"), "theta was calibrated with rows in %s, not %s", lp_codec_name(found.codec),
             flags->codec);
  return LP_OK;
}

static lp_mode mode_of(const run_flags *flags) {
  lp_mode mode = LP_MODE_FULL;
  (void)lp_mode_parse(flags->mode, &mode); /* the option was checked before */
  return mode;
}

static lp_status generate_with(const run_flags *flags, const lp_generate_options *options, const lp_sides *sides,
                               const lp_run_prompt *prompt, lp_diag *diag) {
  lp_session *session = NULL;
  LP_TRY(lp_session_open(sides->bundle, options, &session, diag));
  run_output output = {.tokenizer = lp_bundle_tokenizer(sides->bundle),
                       .streams = lp_streq(flags->format, "text") && prompt->batch == 1};
  lp_generation made = {0};
  lp_status status =
      lp_session_generate(session, prompt->ids.data, prompt->batch, prompt->length, show_token, &output, &made, diag);
  if (status == LP_OK && output.problem)
    status = lp_error(diag, LP_LOC_FILE("<stdout>"), "cannot write: %s", strerror(output.problem));
  if (status == LP_OK) {
    const lp_run_link link = link_of(flags, options, session);
    lp_run_planned *planned = lp_run_planned_open(flags->sides.bundle);
    status = print_made(flags, sides->bundle, &made, prompt->length, planned, &link, diag);
    lp_run_planned_close(planned);
  }
  lp_generation_free(&made);
  lp_text_stream_free(&output.text);
  lp_session_close(session);
  return status;
}

static lp_status generate(const run_flags *flags, const lp_saved_session *saved, const lp_sides *sides,
                          const lp_run_prompt *prompt, const lp_source *source, lp_diag *diag) {
  lp_generate_options options = {.cloud = sides->cloud,
                                 .clouds = sides->clouds,
                                 .cloud_count = sides->cloud_count,
                                 .mode = mode_of(flags),
                                 .sampling = {.temperature = flags->temperature,
                                              .top_k = (int32_t)flags->top_k,
                                              .top_p = flags->top_p,
                                              .seed = flags->seed},
                                 .max_tokens = tokens_to_make(flags, sides->bundle, prompt->length),
                                 .ignore_eos = flags->ignore_eos,
                                 .threads = (int32_t)flags->threads,
                                 .capacity = flags->capacity,
                                 .fixes_plan = flags->plan >= 0,
                                 .plan = flags->plan < INT32_MAX ? (int32_t)flags->plan : INT32_MAX,
                                 .security = flags->security,
                                 .cloud_timeout_ms = flags->cloud_timeout_ms,
                                 .session_file = flags->session,
                                 .source = source,
                                 .resume = saved};
  LP_TRY(read_exits(flags, sides->bundle, &options, diag));
  lp_link_shape shape;
  if (flags->link) {
    if (lp_link_shape_parse(flags->link, &shape, diag, LP_LOC_FILE("--link")) != LP_OK) return LP_USAGE;
    options.link = &shape;
  }
  options.trace = flags->trace ? lp_trace_create() : NULL;
  lp_status status = generate_with(flags, &options, sides, prompt, diag);
  /* The trace of a failed run is written, too, because it shows the failure. */
  lp_status written = flags->trace ? lp_trace_write(options.trace, sides->bundle, flags->trace, diag) : LP_OK;
  lp_trace_free(options.trace);
  return status != LP_OK ? status : written;
}

static lp_status read_seed(run_flags *flags, lp_diag *diag) {
  const char *text = flags->seed_text;
  char *end = NULL;
  if (!text) return LP_OK;
  errno = 0;
  flags->seed = strtoull(text, &end, 10);
  if (errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0') return LP_OK;
  return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--seed"), "'%.40s' is not a whole number from 0 to 2^64 - 1", text);
}

static lp_status check_flags(const run_flags *flags, lp_diag *diag) {
  if (lp_prompts_given(&flags->prompt) != 1 && !(flags->resume && lp_prompts_given(&flags->prompt) == 0))
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE,
                       "wanted one of --prompt, --chat, --tokens and --features, or a text after the bundle");
  double theta = 0;
  if (flags->theta && !lp_streq(flags->theta, "calibrated") &&
      lp_parse_double(flags->theta, &theta, diag, LP_LOC_FILE("--theta")) != LP_OK)
    return LP_USAGE;
  if (flags->theta && mode_of(flags) != LP_MODE_THRESHOLD)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--theta"), "wanted --mode=threshold beside it");
  if (flags->prompt.system && !flags->prompt.chat)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--system"), "wanted --chat beside it");
  if (flags->top_p <= 0 || flags->top_p > 1 || flags->top_k > INT32_MAX)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE,
                       "sampling wants a temperature of 0 or more, a top-p in (0, 1] and a top-k of 0 or more");
  if (flags->sides.in_process && flags->clouds.count > 0)
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "--in-process and --cloud exclude each other");
  return LP_OK;
}

static lp_status check_mode(const run_flags *flags, const lp_bundle *bundle, lp_diag *diag) {
  const char *why = "";
  if (lp_bundle_allows(bundle, mode_of(flags), &why)) return LP_OK;
  return lp_error(diag, LP_LOC_FILE(flags->sides.bundle), "--mode=%s: %s", flags->mode, why);
}

/* A run that was killed before it wrote a session starts over, so that the same command can be repeated. */
static lp_status read_session(run_flags *flags, lp_saved_session *out, bool *found, lp_diag *diag) {
  *found = flags->resume && lp_path_exists(flags->session);
  if (*found) return lp_saved_session_read(flags->session, out, diag);
  if (!flags->resume) return LP_OK;
  if (lp_prompts_given(&flags->prompt) == 0)
    return lp_error(diag, LP_LOC_FILE(flags->session), "there is no session to continue, and no prompt to begin one");
  lp_warning(diag, LP_LOC_FILE(flags->session), "there is no session yet: a new one begins");
  return LP_OK;
}

/* A given temperature replaces the model's; the model's top-k and top-p then do not apply, because they belong to the
 * model's temperature. */
static void settle_by_bundle(run_flags *flags, const lp_bundle *bundle) {
  const lp_sampling greedy = {.top_p = 1}, advised = lp_bundle_sampling(bundle);
  settle_sampling(flags, isnan(flags->temperature) ? &advised : &greedy);
}

static lp_status run_from(run_flags *flags, const lp_saved_session *saved, lp_diag *diag) {
  settle(flags, saved);
  LP_TRY(read_seed(flags, diag));
  LP_TRY(lp_bundle_check_kind(flags->sides.bundle, diag)); /* matters more than the prompt that is missing */
  LP_TRY(check_flags(flags, diag));
  flags->sides.device_only = lp_streq(flags->mode, "standalone");
  lp_sides sides;
  lp_run_prompt prompt = {0};
  lp_run_source source = {0};
  lp_status status = lp_sides_open(&flags->sides, &sides, diag);
  if (status == LP_OK) status = check_mode(flags, sides.bundle, diag);
  if (status == LP_OK) settle_by_bundle(flags, sides.bundle);
  if (status == LP_OK) lp_prompt_settle(&flags->prompt, sides.bundle);
  if (status == LP_OK) status = lp_prompt_read(&flags->prompt, saved, sides.bundle, &prompt, diag);
  if (status == LP_OK) status = lp_run_source_make(&flags->prompt, sides.bundle, &prompt, &source, diag);
  if (status == LP_OK) {
    bool reads = lp_bundle_reads_source(sides.bundle);
    status = generate(flags, saved, &sides, &prompt, reads ? &source.source : NULL, diag);
  }
  lp_run_prompt_free(&prompt);
  lp_run_source_free(&source);
  lp_sides_close(&sides);
  return status;
}

static lp_status run(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  run_flags *flags = command->user;
  char *bundle = NULL;
  LP_TRY(lp_tool_bundle_of(args->data[0], &bundle, diag));
  flags->sides.bundle = flags->prompt.file = bundle;
  if (args->count > 1) flags->prompt.said = args->data[1];
  flags->stats |= command->voice->verbose;
  flags->sides.threads = (int32_t)flags->threads;
  lp_saved_session saved = {0};
  lp_place_addresses clouds = {0};
  bool found = false;
  lp_arena *text = lp_arena_create();
  lp_status status = LP_OK;
  if (flags->resume && !flags->session)
    status = lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "--resume continues a session: wanted --session=FILE");
  if (status == LP_OK) status = lp_run_addresses_read(&flags->clouds, "--cloud", false, text, &clouds, diag);
  const lp_link_security *worker = &flags->security;
  if (status == LP_OK && flags->clouds.count == 0 && (worker->key_file || worker->ca_file || worker->cert_file))
    status = lp_error_as(LP_USAGE, diag, LP_LOC_NONE, "--key-file, --ca and --cert are for the worker at --cloud");
  flags->sides.cloud = clouds.only;
  flags->sides.clouds = clouds.place;
  flags->sides.cloud_count = clouds.count;
  if (status == LP_OK) status = read_session(flags, &saved, &found, diag);
  if (status == LP_OK) status = run_from(flags, found ? &saved : NULL, diag);
  lp_saved_session_free(&saved);
  lp_arena_free(text);
  lp_vec_free(&flags->clouds);
  free(bundle);
  return status;
}

static const run_flags none_given = {
    .prompt = {.batch = 1}, .format = "text", .count = -1, .plan = -1, .top_k = -1, .temperature = NAN, .top_p = NAN};

// NOLINTNEXTLINE(readability-function-size): a table
int lp_tool_run(int argc, char **argv) {
  run_flags flags = none_given;
  const lp_option options[] = {
      {"--prompt", LP_OPTION_TEXT, &flags.prompt.text, "TEXT", "continue this text; @FILE or - for stdin"},
      {"--chat", LP_OPTION_TEXT, &flags.prompt.chat, "TEXT",
       "answer this message, which the model's chat template formats; @FILE or -"},
      {"--system", LP_OPTION_TEXT, &flags.prompt.system, "TEXT", "add this system message; needs --chat"},
      {"--control-tokens", LP_OPTION_FLAG, &flags.prompt.control_tokens, NULL,
       "read control tokens such as <|im_end|> in the prompt as such, not as text"},
      {"--tokens", LP_OPTION_TEXT, &flags.prompt.tokens, "1,2,3[;4,5,6]",
       "continue these token ids; each row is a sequence; @FILE or -"},
      {"--features", LP_OPTION_TEXT, &flags.prompt.features, "FILE",
       "give the encoder these numbers (.npy or raw float32), as Whisper's input_features"},
      {"--decoder-tokens", LP_OPTION_TEXT, &flags.prompt.decoder_tokens, "1,2,3",
       "with an encoder: begin the decoder with these token ids (those that the model's files name)"},
      {"--batch", LP_OPTION_POSITIVE, &flags.prompt.batch, "N", "run N copies of the prompt at once (1)"},
      {"-n", LP_OPTION_COUNT, &flags.count, "N", "generate at most N tokens (128, or what the context leaves)"},
      {"--temperature", LP_OPTION_F64, &flags.temperature, "T", "0 takes the likeliest token (0)"},
      {"--top-k", LP_OPTION_COUNT, &flags.top_k, "K", "sample among the K likeliest; 0: all (0)"},
      {"--top-p", LP_OPTION_F64, &flags.top_p, "P", "sample among the likeliest that make up P (1)"},
      {"--seed", LP_OPTION_TEXT, &flags.seed_text, "N", "set the seed of sampling, of 64 bits (0)"},
      {"--ignore-eos", LP_OPTION_FLAG, &flags.ignore_eos, NULL, "continue after the model ends its text"},
      {"--context", LP_OPTION_COUNT, &flags.capacity, "N", "begin with a KV cache for N tokens; it grows when needed"},
      {"--mode", LP_OPTION_CHOICE, &flags.mode, "exact|threshold|standalone|full",
       "let early exits draft tokens that the cloud verifies, give tokens when sure, give all tokens, or none (exact)"},
      {"--plan", LP_OPTION_COUNT, &flags.plan, "N",
       "use plan N of a bundle with several, from 0 (the one that suits prompt, -n and the measured link)"},
      {"--theta", LP_OPTION_TEXT, &flags.theta, "P|calibrated",
       "exit at this confidence (0.8), or at what `llmpart calibrate --apply` found; needs --mode=threshold"},
      {"--codec", LP_OPTION_CHOICE, &flags.codec, "auto|f32|f16|int8|int4",
       "send hidden states in this type, with early exits (f32 in exact mode, else f16)"},
      {"--cloud", LP_OPTION_TEXTS, &flags.clouds, "[NAME=]HOST:PORT",
       "use this worker, which serves the same bundle; with more than two places one for each, after its name: "
       "repeatable"},
      LP_SECURITY_OPTIONS(flags.security),
      {"--cloud-timeout", LP_OPTION_TIME, &flags.cloud_timeout_ms, "TIME",
       "wait at most this long for an answer, reconnecting included (2 minutes; --mode=threshold: 10s), or for a "
       "worker that is not there yet (5s)"},
      {"--link", LP_OPTION_TEXT, &flags.link, "LINK",
       "emulate a link, such as rtt=50ms,up=10Mbit/s,loss=1%,cut=2s/30s"},
      {"--session", LP_OPTION_TEXT, &flags.session, "FILE", "save the generation in FILE as it goes on, for --resume"},
      {"--resume", LP_OPTION_FLAG, &flags.resume, NULL,
       "continue the generation in --session; prompt and options are its own and may be left out"},
      {"--in-process", LP_OPTION_FLAG, &flags.sides.in_process, NULL, "run all sides in this process"},
      {"--threads", LP_OPTION_COUNT, &flags.threads, "N", "use N threads (the machine's cores)"},
      {"--check", LP_OPTION_FLAG, &flags.sides.check_hashes, NULL,
       "compare the SHA-256 of every file before the start"},
      {"--trust", LP_OPTION_TEXT, &flags.sides.trust, "FILE",
       "run only a bundle that the owner of this public key signed (Ed25519, PEM); implies --check"},
      {"--trace", LP_OPTION_TEXT, &flags.trace, "F.json", "write a timeline for chrome://tracing and Perfetto"},
      {"--stats", LP_OPTION_FLAG, &flags.stats, NULL, "print times and bytes on stderr"},
      {"-o", LP_OPTION_CHOICE, &flags.format, "text|json", "choose the output (text, printed as it is generated)"},
  };
  const lp_command command = {
      .usage = "llmpart run BUNDLE|MODEL TEXT|--prompt=TEXT|--chat=TEXT|--tokens=IDS [-n N] [options]",
      .summary =
          "Generates text. TEXT is a message for a model with a chat template, and else the beginning of a text.\nA "
          "MODEL (a file in ONNX or GGUF, or a folder) is compiled for this machine once, and its bundle is kept. A "
          "bundle that is split uses the workers at --cloud. Without --cloud it starts them on\nloopback for this run.",
      LP_OPTIONS(options),
      .args = {1, 2},
      .model_first = true,
      .act = run,
      .user = &flags};
  return lp_tool_main(&command, argc, argv);
}
