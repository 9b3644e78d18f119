/* invariants BUNDLE CODEC 1,2,3: checks two invariants of early exits on a bundle's halves, with the rows that its
 * device computes from these tokens. The fifth: rows in CODEC change the cloud's logits; prints the greatest change,
 * relative to the greatest logit. The eighth: rows that come twice, late and in any order do not change any answer by a
 * bit; exit status 1 when they do. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/side.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/pool.h"
#include "runtime/exec/sampler.h"
#include "runtime/exits/codec.h"
#include "runtime/exits/context.h"
#include "runtime/exits/device_half.h"
#include "runtime/exits/halves.h"
#include "runtime/runtime.h"

enum { MOST_TOKENS = 64, ORDERS = 20 };
static const lp_sampling greedy = {.top_p = 1};

typedef struct {
  lp_bundle *bundle;
  lp_halves halves;
  lp_pool *pool;
  lp_diag *diag;
  int32_t token[MOST_TOKENS];
  int64_t count;
  float *rows; /* [count][width] */
  uint64_t random;
} setting;

static void must(const setting *s, lp_status status) {
  if (status == LP_OK) return;
  const lp_diag_entry *entry = lp_diag_get(s->diag, 0);
  fprintf(stderr, "invariants: %s\n", entry ? entry->text : "failed");
  exit(1);
}

static bool wants_none(void *user, int32_t exit) {
  (void)user, (void)exit;
  return false;
}

static void make_rows(setting *s) {
  lp_executor *device = lp_executor_create(s->bundle, LP_SIDE_DEVICE, s->pool);
  lp_device_half *half = lp_device_half_create(&s->halves, device);
  lp_device_rows rows;
  lp_device_pass pass = {
      .token = s->token, .count = s->count, .wanted = 1, .capacity = MOST_TOKENS, .wants = wants_none};
  size_t bytes = (size_t)s->count * s->halves.width[0] * sizeof(float);
  s->rows = lp_alloc(bytes);
  must(s, lp_device_half_pass(half, &pass, &greedy, &rows, s->diag));
  memcpy(s->rows, rows.row, bytes);
  lp_device_half_free(half);
  lp_executor_free(device);
}

/* ---- the fifth --------------------------------------------------------------------------------------------------- */

static const lp_step *logits_step(const setting *s) {
  const lp_manifest *manifest = &s->bundle->manifest;
  const lp_program *program = &manifest->programs[s->halves.prefill];
  int32_t port = lp_manifest_output(manifest, LP_ROLE_LOGITS), i = 0;
  while (program->step[i].kind != LP_STEP_OUTPUT || program->step[i].port != port)
    i++;
  return &program->step[i];
}

/* [count][vocab], of rows that travelled in this codec. */
static float *logits_of(setting *s, lp_codec codec) {
  size_t width = s->halves.width[0];
  uint8_t *data = lp_alloc(lp_codec_row_bytes(codec, width));
  float *arrived = lp_alloc((size_t)s->count * width * sizeof(float));
  for (int64_t i = 0; i < s->count; i++) {
    lp_codec_encode(codec, s->rows + (size_t)i * width, width, data);
    lp_codec_decode(codec, data, width, arrived + (size_t)i * width);
  }
  lp_executor *cloud = lp_executor_create(s->bundle, LP_SIDE_CLOUD, s->pool);
  lp_cloud_pass pass = {.rows = arrived, .count = s->count, .wanted = s->count, .capacity = MOST_TOKENS};
  lp_sample samples[MOST_TOKENS];
  lp_buf scratch = {0};
  must(s, lp_halves_run_cloud(&s->halves, cloud, &pass, &greedy, samples, &scratch, s->diag));
  const lp_step *step = logits_step(s);
  lp_span span;
  must(s, lp_executor_buffer(cloud, step->buffer, &step->tensor, &span, s->diag));
  float *out = lp_alloc(span.size);
  memcpy(out, span.data, span.size);
  lp_buf_free(&scratch);
  lp_executor_free(cloud);
  free(arrived);
  free(data);
  return out;
}

static double logits_move(setting *s, lp_codec codec) {
  float *want = logits_of(s, LP_CODEC_F32), *got = logits_of(s, codec);
  double move = 0, greatest = 0;
  for (int64_t i = 0; i < s->count * s->bundle->manifest.vocab; i++) {
    move = fmax(move, fabs((double)got[i] - (double)want[i]));
    greatest = fmax(greatest, fabs((double)want[i]));
  }
  free(want);
  free(got);
  return move / greatest;
}

/* ---- the eighth -------------------------------------------------------------------------------------------------- */

static int64_t draw(setting *s, int64_t below) {
  return (int64_t)(lp_random_bits(11, 0, s->random++) % (uint64_t)below);
}

static void upload(const setting *s, lp_context *context, uint64_t epoch, int64_t first, int64_t count,
                   const float *rows) {
  size_t size = (size_t)count * s->halves.width[0] * sizeof(float);
  const uint8_t *data = (const uint8_t *)(rows + (size_t)first * s->halves.width[0]);
  must(s, lp_context_upload(context, (lp_context_time){.epoch = epoch}, first, count, data, size, s->diag));
}

/* Uploads a block of rows. Before it come the same rows of an earlier epoch, after it wrong rows, twice; the context
 * must ignore both. */
static void upload_some(setting *s, lp_context *context, const float *wrong) {
  int64_t first = draw(s, s->count), count = 1 + draw(s, s->count - first);
  upload(s, context, 2, first, count, wrong);
  upload(s, context, 3, first, count, s->rows);
  upload(s, context, 3, first, count, wrong);
  upload(s, context, 2, first, count, wrong);
}

/* Asks for the answer after each position, one after the other; `wrong` NULL: all rows come once and in order. */
static void ask_all(setting *s, const float *wrong, lp_sample *out) {
  lp_context_options options = {.sampling = greedy, .codec = LP_CODEC_F32, .capacity = MOST_TOKENS};
  lp_context *context = lp_context_create(&s->halves, 0, &options, s->pool);
  (void)lp_context_enter(context, (lp_context_time){.epoch = 3});
  if (!wrong) upload(s, context, 3, 0, s->count, s->rows);
  for (int64_t i = 0; i < s->count; i++) {
    while (!lp_context_is_ready(context, i + 1))
      upload_some(s, context, wrong);
    lp_answer answer;
    must(s, lp_context_ask(context, &(lp_question){.end = i + 1}, &answer, s->diag));
    out[i] = answer.sample;
  }
  lp_context_free(context);
}

static int orders_that_differ(setting *s) {
  lp_sample want[MOST_TOKENS] = {0}, got[MOST_TOKENS] = {0};
  float *wrong = lp_alloc((size_t)s->count * s->halves.width[0] * sizeof(float));
  int differ = 0;
  ask_all(s, NULL, want);
  for (int order = 0; order < ORDERS; order++) {
    bool same = true;
    ask_all(s, wrong, got);
    for (int64_t i = 0; i < s->count; i++)
      same = same && got[i].token == want[i].token && !(got[i].confidence < want[i].confidence) &&
             !(got[i].confidence > want[i].confidence);
    differ += !same;
  }
  free(wrong);
  return differ;
}

static void read_tokens(setting *s, const char *text) {
  for (char *end = NULL; *text != 0 && s->count < MOST_TOKENS; text = *end == ',' ? end + 1 : end)
    s->token[s->count++] = (int32_t)strtol(text, &end, 10);
}

int main(int argc, char **argv) {
  setting s = {.diag = lp_diag_create()};
  lp_codec codec = LP_CODEC_AUTO;
  const char *why = "";
  if (argc != 4 || !lp_codec_parse(argv[2], &codec)) return 2;
  read_tokens(&s, argv[3]);
  lp_bundle_options load = {.load = LP_LOAD_DEVICE | LP_LOAD_CLOUD};
  must(&s, lp_bundle_load(argv[1], &load, &s.bundle, s.diag));
  if (!lp_halves_find(s.bundle, &s.halves, &why)) return fprintf(stderr, "invariants: %s\n", why), 1;
  s.pool = lp_pool_create(1);
  make_rows(&s);
  double moved = logits_move(&s, codec);
  int differ = orders_that_differ(&s);
  printf("%.6f\n", moved);
  if (differ > 0) fprintf(stderr, "invariants: answers differ in %d of %d orders of uploads\n", differ, ORDERS);
  free(s.rows);
  lp_pool_free(s.pool);
  lp_bundle_free(s.bundle);
  lp_diag_free(s.diag);
  return differ > 0;
}
