/* llmpart hw profile: measures this machine's operators and fits them. */
#include "base/clock.h"
#include "tools/hw/hw.h"
#include "tools/hw/measure.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* A synthetic decoder and the passes that are measured of it. */
typedef struct {
  lp_decoder_shape shape;
  int64_t most;    /* tokens of a pass */
  bool decode_one; /* measures only one token, after two lengths of past, to show the effect of the size of a pass */
} measured_shape;

/* Widths of small and medium models. */
static const measured_shape shapes[] = {
    {{9, 128, 320, 4, 2, 1024, 4096, LP_F32, true}, 2048, false},
    {{6, 192, 512, 6, 2, 4096, 4096, LP_F32, true}, 1100, false},
    {{6, 288, 768, 6, 6, 32000, 4096, LP_F32, true}, 1100, false},
    {{6, 768, 2048, 12, 12, 32000, 4096, LP_F32, true}, 1100, false},
    {{2, 2048, 5632, 32, 4, 8192, 4096, LP_F32, true}, 256, false},
};

/* One width again, in passes that read these shares of the last cache, from passes that fit it to far larger ones: two
 * layers, and a vocabulary that takes the rest. */
static const double cache_shares[] = {0, 0.4, 0.6, 0.8, 1, 1.25, 1.6, 2.2, 3};
enum { SHAPES = LP_COUNT(shapes), PASSES = LP_COUNT(cache_shares) };

static measured_shape shape_at(const lp_machine *host, size_t index) {
  if (index < SHAPES) return shapes[index];
  measured_shape m = {{2, 256, 688, 8, 8, 1024, 4096, LP_F32, true}, 600, index > SHAPES};
  double cache = host->figure[LP_HW_CACHE] > 0 ? host->figure[LP_HW_CACHE] : 32 << 20;
  double row = 4 * 256, layers = 4.0 * 2 * (4 * 256 * 256 + 3 * 256 * 688);
  double vocab = (fmin(cache_shares[index - SHAPES] * cache, 512 << 20) - layers) / row;
  m.shape.vocab = vocab > 1024 ? (int64_t)vocab : 1024;
  return m;
}

static const int64_t prompts[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
static const int64_t pasts[] = {16, 64, 128, 256, 512, 1024, 2047};

typedef struct {
  const hw_flags *flags;
  lp_machine *host;
  lp_hw_samples samples;
  double begin_ms;
  size_t done;
  bool shows; /* progress, on a terminal */
  lp_diag *diag;
} profiler;

static void show_progress(profiler *p, const char *what) {
  enum { STEPS = (int)((SHAPES + 1) * (LP_COUNT(prompts) + 2 * LP_COUNT(pasts) + 3) + (PASSES - 1) * 7), WIDTH = 40 };
  if (!p->shows) return;
  int filled = (int)(p->done * WIDTH / STEPS);
  fprintf(stderr, "\r[%.*s%*s] %4.0f s  %-28s", filled < WIDTH ? filled : WIDTH,
          "########################################", filled < WIDTH ? WIDTH - filled : 0, "",
          (lp_now_ms() - p->begin_ms) / 1e3, what);
}

/* At least one pass is always measured. */
static bool has_time(const profiler *p) {
  return p->samples.count == 0 || lp_now_ms() - p->begin_ms < p->flags->budget_ms;
}

/* Short passes are repeated more often. */
static int64_t repetitions(const measured_shape *m, int64_t count) {
  double work = (double)(m->shape.hidden * m->shape.hidden) * (double)count;
  return work < 4e6 ? 25 : work < 1e8 ? 11 : work < 4e8 ? 5 : 3;
}

static lp_status measure_pass(profiler *p, const hw_bench *bench, const measured_shape *m, int64_t past,
                              int64_t count) {
  char text[64];
  (void)snprintf(text, sizeof text, "width %" PRId64 ", %" PRId64 " tokens", m->shape.hidden, past + count);
  show_progress(p, text);
  p->done++;
  if (past + count > m->most || !has_time(p)) return LP_OK;
  return hw_bench_measure(bench, past, count, repetitions(m, count), &p->samples, p->diag);
}

/* Measures the passes over tokens twice, the second time a moment later. */
static lp_status measure_passes(profiler *p, const hw_bench *bench, const measured_shape *m) {
  for (int visit = 0; visit < 2; visit++) {
    for (size_t i = 0; i < LP_COUNT(pasts); i++)
      if (!m->decode_one || pasts[i] == 16 || pasts[i] == 256) LP_TRY(measure_pass(p, bench, m, pasts[i], 1));
    for (size_t i = 0; i < LP_COUNT(prompts) && visit == 0 && !m->decode_one; i++)
      LP_TRY(measure_pass(p, bench, m, 0, prompts[i]));
  }
  return LP_OK;
}

static lp_status measure_shape(profiler *p, const measured_shape *m) {
  hw_bench bench;
  show_progress(p, "compiling");
  p->done += 3;
  if (!has_time(p)) return LP_OK;
  lp_status status = hw_bench_open(&m->shape, p->host, (int32_t)p->flags->threads, &bench, p->diag);
  if (status == LP_OK) status = measure_passes(p, &bench, m);
  hw_bench_close(&bench);
  return status;
}

/* Raises figures that are below the measurements. A machine that was busy when its figures were measured shows too low
 * ones. */
static void raise_figures(profiler *p) {
  double *figure = p->host->figure;
  for (size_t i = 0; i < p->samples.count; i++) {
    const lp_hw_sample *sample = &p->samples.data[i];
    double seconds = sample->time_us * 1e-6;
    double beyond = sample->facts.bytes - figure[LP_HW_CACHE];
    figure[LP_HW_PEAK_F32] = fmax(figure[LP_HW_PEAK_F32], 1.02 * sample->facts.flops / seconds);
    figure[LP_HW_BANDWIDTH] = fmax(figure[LP_HW_BANDWIDTH], 1.02 * beyond / seconds);
  }
  figure[LP_HW_PEAK_F16] = figure[LP_HW_PEAK_BF16] = figure[LP_HW_PEAK_F32];
}

static lp_status fit_and_keep(profiler *p) {
  lp_hw_fit_options options = {
      .knots = (int32_t)p->flags->knots, .source = "llmpart hw profile, on this machine", .kernels = "cpu"};
  lp_hw_fit_result result;
  raise_figures(p);
  LP_TRY(lp_hw_fit(p->host, &p->samples, &options, &result, p->diag));
  lp_buf text = {0};
  if (lp_tool_wants(p->flags->out, "csv"))
    lp_hw_samples_print(&p->samples, &text);
  else
    lp_hw_print(p->host, &text);
  lp_status status = lp_tool_write_as(p->flags->out, &text, p->diag);
  lp_buf_free(&text);
  if (status == LP_OK && !lp_hw_keep_host(p->host))
    lp_warning(p->diag, LP_LOC_NONE, "the profile cannot be kept for 'host': there is no cache folder to write to");
  if (status == LP_OK)
    fprintf(stderr, "%zu measurements in %.0f s, fitted by %zu curves; 'host' uses them from now on\n", result.used,
            (lp_now_ms() - p->begin_ms) / 1e3, result.curves);
  return status;
}

lp_status hw_profile(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  const hw_flags *flags = command->user;
  (void)args;
  profiler p = {.flags = flags, .begin_ms = lp_now_ms(), .shows = isatty(STDERR_FILENO), .diag = diag};
  p.host = lp_hw_measure_host();
  lp_status status = LP_OK;
  for (size_t i = 0; i < SHAPES + PASSES && status == LP_OK; i++) {
    measured_shape m = shape_at(p.host, i);
    status = measure_shape(&p, &m);
  }
  if (p.shows) fprintf(stderr, "\r%-80s\r", "");
  if (status == LP_OK) status = fit_and_keep(&p);
  lp_vec_free(&p.samples);
  lp_hw_free(p.host);
  return status;
}
