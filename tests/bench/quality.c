/* Measures the quality that a bundle's types cost: perplexity on a text, and the divergence from a reference bundle.
 *
 *     quality TEXT WINDOW COUNT REFERENCE.llmpart [OTHER.llmpart | OTHER.logits ...]
 *     quality TEXT WINDOW COUNT REFERENCE.llmpart --ids=FILE
 *
 * The bundles hold one model, wholly on the device. The first COUNT windows of WINDOW tokens of the text are each a
 * sequence of its own; every token but the first is predicted from those before it. Prints a line for each bundle:
 * perplexity, mean divergence KL(reference || bundle) in nats for each token, and the share of tokens whose likeliest
 * successor is the reference's. A .logits file holds another runtime's logits, f32[window][position][vocabulary]; its
 * windows are those that --ids writes as i32 and ends with. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/pool.h"
#include "runtime/runtime.h"

enum { MOST_BUNDLES = 16 };

typedef struct {
  const char *path;
  lp_bundle *bundle;
  lp_executor *executor;
  FILE *logits;            /* in place of a bundle */
  double loss, divergence; /* sums over predicted tokens */
  int64_t same;
  float *rows; /* [WINDOW][vocab] log-probabilities of a window */
} subject;

typedef struct {
  subject all[MOST_BUNDLES];
  int count;
  int64_t window, vocab, windows, predicted;
  lp_pool *pool;
  lp_diag *diag;
} study;

static void must(const study *s, lp_status status) {
  if (status == LP_OK) return;
  const lp_diag_entry *entry = lp_diag_get(s->diag, 0);
  fprintf(stderr, "quality: %s\n", entry ? entry->text : "failed");
  exit(1);
}

static void open_logits(const study *s, subject *one) {
  one->logits = fopen(one->path, "rb");
  if (one->logits && s->count > 1) return;
  fprintf(stderr, "quality: %s: %s\n", one->path, one->logits ? "the reference is no bundle" : "cannot open");
  exit(1);
}

static void open_bundle(study *s, subject *one) {
  const char *path = one->path;
  must(s, lp_bundle_load(path, &(lp_bundle_options){.load = LP_LOAD_DEVICE}, &one->bundle, s->diag));
  int64_t vocab = one->bundle->manifest.vocab;
  if (lp_bundle_is_split(one->bundle) || (s->count > 1 && vocab != s->vocab)) {
    fprintf(stderr, "quality: %s is split, or is of another model\n", path);
    exit(1);
  }
  s->vocab = vocab;
  one->executor = lp_executor_create(one->bundle, LP_SIDE_DEVICE, s->pool);
}

static void open_subject(study *s, const char *path) {
  subject *one = &s->all[s->count++];
  one->path = path;
  if (lp_has_suffix(path, ".logits"))
    open_logits(s, one);
  else
    open_bundle(s, one);
  one->rows = lp_alloc((size_t)(s->window * s->vocab) * sizeof(float));
}

static lp_tokens read_text(const study *s, const char *path) {
  char *text;
  size_t size;
  lp_tokens ids = {0};
  const lp_tokenizer *tokenizer = lp_bundle_tokenizer(s->all[0].bundle);
  if (!tokenizer) {
    fprintf(stderr, "quality: %s has no tokenizer\n", s->all[0].path);
    exit(1);
  }
  must(s, lp_file_read(path, &text, &size, s->diag));
  must(s, lp_tokenizer_encode_typed(tokenizer, text, size, false, &ids, s->diag));
  free(text);
  return ids;
}

/* ---- a window ---------------------------------------------------------------------------------------------------- */

static void fill_tokens(const study *s, const subject *one, const lp_step *step, const int32_t *ids) {
  int64_t *wide = lp_alloc((size_t)s->window * sizeof *wide);
  bool narrow = step->tensor.dtype == LP_DT_I32;
  for (int64_t i = 0; i < s->window; i++)
    wide[i] = ids[i];
  size_t bytes = (size_t)s->window * (narrow ? sizeof *ids : sizeof *wide);
  must(s, lp_executor_fill(one->executor, step->buffer, step, narrow ? (const void *)ids : wide, bytes, s->diag));
  free(wide);
}

static void log_softmax(float *to, const float *from, int64_t count) {
  double sum = 0;
  float most = from[0];
  for (int64_t i = 1; i < count; i++)
    most = fmaxf(most, from[i]);
  for (int64_t i = 0; i < count; i++)
    sum += exp((double)(from[i] - most));
  for (int64_t i = 0; i < count; i++)
    to[i] = from[i] - most - (float)log(sum);
}

/* Runs the window as a prompt that wants the logits of all positions. */
static void run_bundle(const study *s, subject *one, const int32_t *ids) {
  int64_t sym[LP_MAX_SYMBOLS] = {0};
  sym[LP_SYM_B] = 1;
  sym[LP_SYM_S] = sym[LP_SYM_R] = sym[LP_SYM_C] = s->window;
  const lp_manifest *manifest = &one->bundle->manifest;
  int32_t prefill = lp_manifest_program(manifest, "prefill");
  lp_executor_forget(one->executor);
  must(s, lp_executor_begin(one->executor, prefill, sym, s->diag));
  for (int32_t i = 0; i < manifest->programs[prefill].step_count; i++) {
    const lp_step *step = &manifest->programs[prefill].step[i];
    lp_span span;
    if (step->kind == LP_STEP_INPUT) fill_tokens(s, one, step, ids);
    if (step->kind == LP_STEP_RUN) must(s, lp_executor_run(one->executor, step, s->diag));
    if (step->kind != LP_STEP_OUTPUT || manifest->outputs[step->port].role != LP_ROLE_LOGITS) continue;
    must(s, lp_executor_buffer(one->executor, step->buffer, &step->tensor, &span, s->diag));
    for (int64_t row = 0; row < s->window; row++)
      log_softmax(one->rows + row * s->vocab, (const float *)span.data + row * s->vocab, s->vocab);
  }
}

static void read_window(const study *s, subject *one) {
  size_t count = (size_t)(s->window * s->vocab);
  if (fread(one->rows, sizeof(float), count, one->logits) != count) {
    fprintf(stderr, "quality: %s has less than the text\n", one->path);
    exit(1);
  }
  for (int64_t row = 0; row < s->window; row++)
    log_softmax(one->rows + row * s->vocab, one->rows + row * s->vocab, s->vocab);
}

static void run_window(const study *s, subject *one, const int32_t *ids) {
  if (one->logits)
    read_window(s, one);
  else
    run_bundle(s, one, ids);
}

static int64_t likeliest(const float *row, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; i++)
    if (row[i] > row[best]) best = i;
  return best;
}

static void compare_row(const study *s, subject *one, int64_t row, int32_t next) {
  const float *p = s->all[0].rows + row * s->vocab, *q = one->rows + row * s->vocab;
  double divergence = 0;
  for (int64_t i = 0; i < s->vocab; i++)
    divergence += exp((double)p[i]) * (double)(p[i] - q[i]);
  one->loss -= (double)q[next];
  one->divergence += divergence;
  one->same += likeliest(p, s->vocab) == likeliest(q, s->vocab);
}

static void study_window(study *s, const int32_t *ids) {
  for (int i = 0; i < s->count; i++)
    run_window(s, &s->all[i], ids);
  for (int i = 0; i < s->count; i++)
    for (int64_t row = 0; row + 1 < s->window; row++)
      compare_row(s, &s->all[i], row, ids[row + 1]);
  s->predicted += s->window - 1;
}

static void write_ids(const study *s, const char *path, const int32_t *ids) {
  FILE *file = fopen(path, "wb");
  size_t count = (size_t)(s->windows * s->window);
  bool ok = file && fwrite(ids, sizeof *ids, count, file) == count;
  if (file && fclose(file) == 0 && ok) return;
  fprintf(stderr, "quality: cannot write %s\n", path);
  exit(1);
}

static void print_subject(const study *s, const subject *one) {
  double count = (double)s->predicted;
  printf("%10.4f  %10.6f  %.4f  %s\n", exp(one->loss / count), one->divergence / count, (double)one->same / count,
         one->path);
}

static void close_subject(subject *one) {
  lp_executor_free(one->executor);
  lp_bundle_free(one->bundle);
  if (one->logits) fclose(one->logits);
  free(one->rows);
}

static void study_text(study *s, const int32_t *ids) {
  for (int64_t i = 0; i < s->windows; i++)
    study_window(s, ids + i * s->window);
  printf("%" PRId64 " predicted tokens\nperplexity  divergence  same  bundle\n", s->predicted);
  for (int i = 0; i < s->count; i++)
    print_subject(s, &s->all[i]);
}

int main(int argc, char **argv) {
  enum { TEXT = 1, WINDOW, COUNT, REFERENCE };
  study s = {.diag = lp_diag_create()};
  if (argc <= REFERENCE || argc - REFERENCE > MOST_BUNDLES || (s.window = strtoll(argv[WINDOW], NULL, 10)) < 2 ||
      (s.windows = strtoll(argv[COUNT], NULL, 10)) < 1)
    return fprintf(stderr, "usage: quality TEXT WINDOW COUNT REFERENCE.llmpart [OTHER ... | --ids=FILE]\n"), 2;
  const char *to = lp_has_prefix(argv[argc - 1], "--ids=") ? argv[--argc] + strlen("--ids=") : NULL;
  s.pool = lp_pool_create(1);
  for (int i = REFERENCE; i < argc; i++)
    open_subject(&s, argv[i]);
  lp_tokens ids = read_text(&s, argv[TEXT]);
  int64_t whole = (int64_t)ids.count / s.window;
  if (whole == 0) return fprintf(stderr, "quality: the text has less than a window\n"), 1;
  if (s.windows > whole) s.windows = whole;
  if (to)
    write_ids(&s, to, ids.data);
  else
    study_text(&s, ids.data);
  for (int i = 0; i < s.count; i++)
    close_subject(&s.all[i]);
  lp_vec_free(&ids);
  lp_pool_free(s.pool);
  lp_diag_free(s.diag);
  return 0;
}
