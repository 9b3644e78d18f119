/* llmpart hw profile: measures this machine's operators and fits them. */
#include "tools/hw.h"
#include "tools/hw_measure.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* Widths of small and middling models, the default one's first. Each has about the weights of its models: those of the
 * first two stay in a cache, those of the others do not. `most` bounds the tokens of a pass. */
typedef struct {
  lp_decoder_shape shape;
  int64_t most;
} measured_shape;

static const measured_shape shapes[] = {
    {{9, 128, 320, 4, 2, 1024, 4096, LP_F32, true}, 2048},   {{6, 192, 512, 6, 2, 4096, 4096, LP_F32, true}, 1024},
    {{6, 288, 768, 6, 6, 32000, 4096, LP_F32, true}, 1024},  {{6, 768, 2048, 12, 12, 32000, 4096, LP_F32, true}, 1024},
    {{2, 2048, 5632, 32, 4, 8192, 4096, LP_F32, true}, 256},
};

static const int64_t prompts[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
static const int64_t pasts[] = {16, 64, 128, 256, 512, 1024, 2047};

typedef struct {
  const hw_flags *flags;
  lp_machine *host;
  lp_hw_samples samples;
  double begin_ms, overhead_us;
  size_t done;
  bool shows; /* progress, on a terminal */
  lp_diag *diag;
} profiler;

static void show_progress(profiler *p, const char *what) {
  enum { STEPS = (int)(LP_COUNT(shapes) * (LP_COUNT(prompts) + LP_COUNT(pasts) + 3)), WIDTH = 40 };
  if (!p->shows) return;
  int filled = (int)(p->done * WIDTH / STEPS);
  fprintf(stderr, "\r[%.*s%*s] %4.0f s  %-28s", filled < WIDTH ? filled : WIDTH,
          "########################################", filled < WIDTH ? WIDTH - filled : 0, "",
          (lp_now_ms() - p->begin_ms) / 1e3, what);
}

/* One pass is measured in any case. */
static bool has_time(const profiler *p) {
  return p->samples.count == 0 || lp_now_ms() - p->begin_ms < p->flags->budget_ms;
}

/* More often when it is short. */
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
  double pass_us = 0;
  size_t parts = 0;
  return hw_bench_measure(bench, past, count, repetitions(m, count), p->overhead_us, &p->samples, &pass_us, &parts,
                          p->diag);
}

static lp_status measure_passes(profiler *p, const hw_bench *bench, const measured_shape *m) {
  for (size_t i = 0; i < LP_COUNT(pasts); i++)
    LP_TRY(measure_pass(p, bench, m, pasts[i], 1));
  for (size_t i = 0; i < LP_COUNT(prompts); i++)
    LP_TRY(measure_pass(p, bench, m, 0, prompts[i]));
  return LP_OK;
}

static lp_status measure_shape(profiler *p, const measured_shape *m) {
  hw_bench bench;
  show_progress(p, "compiling");
  p->done += 3;
  if (!has_time(p)) return LP_OK;
  lp_status status = hw_bench_open(&m->shape, true, p->host, (int32_t)p->flags->threads, &bench, p->diag);
  if (status == LP_OK) status = measure_passes(p, &bench, m);
  hw_bench_close(&bench);
  return status;
}

/* What timing the operators of a pass one by one adds to each: the pass is run whole as well. */
static lp_status measure_overhead(profiler *p) {
  const measured_shape *m = &shapes[0];
  double pass_us[2] = {0};
  size_t parts[2] = {0};
  for (int each = 0; each < 2; each++) {
    hw_bench bench;
    lp_status status = hw_bench_open(&m->shape, each == 1, p->host, (int32_t)p->flags->threads, &bench, p->diag);
    if (status == LP_OK) status = hw_bench_measure(&bench, 64, 1, 101, 0, NULL, &pass_us[each], &parts[each], p->diag);
    hw_bench_close(&bench);
    LP_TRY(status);
  }
  p->overhead_us = fmax(pass_us[1] - pass_us[0], 0) / (double)parts[1];
  return LP_OK;
}

/* The figures must allow what was measured: a machine that was busy when it was first looked at shows less. */
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
  lp_hw_fit_options options = {.knots = (int32_t)p->flags->knots, .source = "llmpart hw profile, on this machine"};
  lp_hw_fit_result result;
  raise_figures(p);
  LP_TRY(lp_hw_fit(p->host, &p->samples, &options, &result, p->diag));
  lp_buf text = {0};
  if (hw_wants(p->flags, "csv"))
    lp_hw_samples_print(&p->samples, &text);
  else
    lp_hw_print(p->host, &text);
  lp_status status = hw_write(p->flags, &text, p->diag);
  lp_buf_free(&text);
  if (status == LP_OK && !lp_hw_keep_host(p->host))
    lp_warning(p->diag, LP_LOC_NONE, "the profile cannot be kept for 'host': there is no cache folder to write to");
  if (status == LP_OK)
    fprintf(stderr, "%zu measurements in %.0f s, fitted by %zu curves; 'host' uses them from now on\n", result.used,
            (lp_now_ms() - p->begin_ms) / 1e3, result.curves);
  return status;
}

lp_status hw_profile(const hw_flags *flags, const lp_texts *args, lp_diag *diag) {
  (void)args;
  profiler p = {.flags = flags, .begin_ms = lp_now_ms(), .shows = isatty(STDERR_FILENO), .diag = diag};
  LP_TRY(lp_hw_host(&p.host, diag));
  lp_status status = measure_overhead(&p);
  for (size_t i = 0; i < LP_COUNT(shapes) && status == LP_OK; i++)
    status = measure_shape(&p, &shapes[i]);
  if (p.shows) fprintf(stderr, "\r%-80s\r", "");
  if (status == LP_OK) status = fit_and_keep(&p);
  lp_vec_free(&p.samples);
  lp_hw_free(p.host);
  return status;
}
