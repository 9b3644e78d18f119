/* Measures what a message between two processes of this machine takes: a small decoder, cut in two, generates tokens
 * and reads prompts in one process and in two. The difference holds all costs of a turn: system calls, copies, waking
 * threads, and cores that both processes want. */
#include "base/dir.h"
#include "base/path.h"
#include "tools/hw/measure.h"

#include <math.h>

enum { ROUNDS = 9, PROMPT = 256, TOKENS = 32, MESSAGES = 2, LAYERS = 9, CUT = 7 };
static const lp_decoder_shape shape = {LAYERS, 128, 320, 4, 2, 1024, 512, LP_F32, true, false};
static const double least_ms = 1e-4, most_rate = 1e11; /* what noise leaves at least */

typedef struct {
  lp_sides sides;
  lp_session *session;
  double prompt_ms, token_ms; /* the least of the rounds, because other work only slows them */
} way;

static lp_status open_way(const char *bundle, bool in_process, int32_t threads, way *out, lp_diag *diag) {
  *out = (way){.prompt_ms = INFINITY, .token_ms = INFINITY};
  const lp_sides_options options = {.bundle = bundle, .in_process = in_process, .threads = threads};
  LP_TRY(lp_sides_open(&options, &out->sides, diag));
  lp_generate_options generate = {
      .cloud = out->sides.cloud, .sampling = {.top_p = 1}, .ignore_eos = true, .threads = threads};
  return lp_session_open(out->sides.bundle, &generate, &out->session, diag);
}

static void close_way(way *w) {
  lp_session_close(w->session);
  lp_sides_close(&w->sides);
}

static lp_status measure_round(way *w, lp_diag *diag) {
  const lp_bench_options options = {.prompt = PROMPT, .generate = TOKENS, .repetitions = 1};
  lp_bench_result result;
  LP_TRY(lp_session_bench(w->session, &options, &result, diag));
  w->prompt_ms = fmin(w->prompt_ms, 1e3 * (double)PROMPT / result.row[0].tokens_per_s);
  w->token_ms = fmin(w->token_ms, 1e3 / result.row[1].tokens_per_s);
  return LP_OK;
}

static lp_status measure_ways(const char *bundle, int32_t threads, way ways[2], lp_diag *diag) {
  for (int i = 0; i < 2; i++)
    LP_TRY(open_way(bundle, i == 0, threads, &ways[i], diag));
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < 2; i++)
      LP_TRY(measure_round(&ways[i], diag));
  return LP_OK;
}

/* The prompt's message has one row of hidden states for each token. */
static void set_figures(lp_machine *machine, const way ways[2]) {
  static const char source[] = "measured here: a decoder in two processes, compared with one";
  const double message_ms = fmax((ways[1].token_ms - ways[0].token_ms) / (double)MESSAGES, least_ms);
  const double bytes = 4.0 * (double)PROMPT * (double)shape.hidden;
  const double ms = ways[1].prompt_ms - ways[0].prompt_ms - (double)MESSAGES * message_ms;
  machine->figure[LP_HW_MESSAGE] = lp_hw_rounded(message_ms);
  machine->figure[LP_HW_MESSAGE_BANDWIDTH] = ms > 0 ? lp_hw_rounded(fmin(1e3 * bytes / ms, most_rate)) : most_rate;
  machine->source[LP_HW_MESSAGE] = machine->source[LP_HW_MESSAGE_BANDWIDTH] = source;
}

lp_status hw_measure_messages(const hw_subject *subject, lp_machine *machine, lp_diag *diag) {
  way ways[2] = {0};
  hw_subject split = *subject;
  char *folder = NULL;
  split.cut = CUT;
  LP_TRY(lp_dir_temporary("llmpart-profile", &folder, diag));
  LP_OWNED(lp_free_at) char *path = lp_path_join(folder, "bundle.llmpart");
  lp_status status = hw_bench_write(&shape, &split, path, diag);
  if (status == LP_OK) status = measure_ways(path, subject->threads, ways, diag);
  if (status == LP_OK) set_figures(machine, ways);
  for (int i = 0; i < 2; i++)
    close_way(&ways[i]);
  lp_dir_abandon(folder);
  free(folder);
  return status;
}
