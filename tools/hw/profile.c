/* llmpart hw profile: measures the operators of this machine, or of one with a worker, and fits them. The short profile
 * of this machine for its first use. */
#include "tools/hw/profile.h"
#include "base/clock.h"
#include "base/path.h"
#include "tools/hw/hw.h"
#include "tools/hw/measure.h"

#include "backend/backend.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

/* A synthetic decoder and the passes that are measured of it. */
typedef struct {
  lp_decoder_shape shape;
  int64_t most;      /* tokens of a pass */
  bool decode_one;   /* measures only one token, after two lengths of past, to show the effect of the size of a pass */
  const char *dtype; /* of hw_subject */
} measured_shape;

/* Widths of small and medium models. */
static const measured_shape shapes[] = {
    {{9, 128, 320, 4, 2, 1024, 4096, LP_F32, true, false}, 2048, false, NULL},
    {{6, 192, 512, 6, 2, 4096, 4096, LP_F32, true, false}, 1100, false, NULL},
    {{6, 288, 768, 6, 6, 32000, 4096, LP_F32, true, false}, 1100, false, NULL},
    {{6, 768, 2048, 12, 12, 32000, 4096, LP_F32, true, false}, 1100, false, NULL},
    {{2, 2048, 5632, 32, 4, 8192, 4096, LP_F32, true, false}, 256, false, NULL},
};

/* Of the short profile: a pass that the caches hold and one that exceeds them. A third takes two thirds of the last
 * cache. */
static const measured_shape quick_shapes[] = {
    {{9, 128, 320, 4, 2, 4096, 4096, LP_F32, true, false}, 520, false, NULL},
    {{2, 768, 2048, 12, 12, 16000, 4096, LP_F32, true, false}, 260, false, NULL},
};
static const double quick_share = 0.65;

/* The products of other types: widths whose weights fit the caches, and widths that exceed them. */
static const char *const types[] = {"bf16", "int8", "int4"};
static const measured_shape type_shapes[] = {
    {{3, 288, 768, 6, 6, 8192, 4096, LP_F32, true, false}, 520, false, NULL},
    {{6, 768, 2048, 12, 12, 32000, 4096, LP_F32, true, false}, 520, false, NULL},
    {{1, 2048, 5632, 32, 4, 8192, 4096, LP_F32, true, false}, 520, false, NULL},
};
static const measured_shape quick_type_shape = {
    {2, 768, 2048, 12, 12, 16000, 4096, LP_F32, true, false}, 260, false, NULL};

/* One width again, in passes that read these shares of the last cache, from passes that fit it to far larger ones: two
 * layers, and a vocabulary that takes the rest. Weights of other types are read in three of them. */
static const double cache_shares[] = {0, 0.4, 0.6, 0.8, 1, 1.25, 1.6, 2.2, 3}, type_shares[] = {0, 1, 3};
static const double beyond_share = 3; /* of the last cache, from where weights stream from memory */
enum {
  SHAPES = LP_COUNT(shapes),
  PASSES = LP_COUNT(cache_shares),
  TYPE_PASSES = LP_COUNT(type_shares),
  QUICK_SHAPES = LP_COUNT(quick_shapes),
  TYPES = LP_COUNT(types),
  TYPE_SHAPES = LP_COUNT(type_shapes),
  OF_EACH_TYPE = TYPE_SHAPES + TYPE_PASSES
};

static double weight_bits(const char *dtype) {
  lp_storage storage;
  return dtype && lp_storage_find(dtype, &storage) ? storage.bits : 32;
}

/* Widens the vocabulary until a pass reads this share of the last cache, or until the file has half a GiB. */
static measured_shape with_share(measured_shape m, const lp_machine *machine, double share) {
  enum { MOST_WEIGHTS = (512 << 20) / 4 };
  const double cache = machine->figure[LP_HW_CACHE] > 0 ? machine->figure[LP_HW_CACHE] : 32 << 20;
  const double h = (double)m.shape.hidden, kv = h * (double)m.shape.kv_heads / (double)m.shape.heads;
  const double layers = (double)m.shape.layers * (2 * h * h + 2 * h * kv + 3 * h * (double)m.shape.ffn);
  const double vocab = (fmin(share * cache * 8 / weight_bits(m.dtype), MOST_WEIGHTS) - layers) / h;
  if (vocab > (double)m.shape.vocab) m.shape.vocab = (int64_t)vocab;
  return m;
}

static measured_shape cache_shape(const lp_machine *machine, double share, bool decode_one, const char *dtype) {
  measured_shape m = {{2, 256, 688, 8, 8, 1024, 4096, LP_F32, true, false}, 600, decode_one, dtype};
  return with_share(m, machine, share);
}

static measured_shape typed(measured_shape m, const char *dtype) {
  m.dtype = dtype;
  return m;
}

/* The widest one streams its weights from memory. */
static measured_shape type_shape_at(const lp_machine *machine, size_t index, const char *dtype) {
  if (index >= TYPE_SHAPES) return cache_shape(machine, type_shares[index - TYPE_SHAPES], true, dtype);
  const measured_shape m = typed(type_shapes[index], dtype);
  return index + 1 < TYPE_SHAPES ? m : with_share(m, machine, beyond_share);
}

static measured_shape quick_shape_at(const lp_machine *machine, size_t index) {
  if (index < QUICK_SHAPES) return quick_shapes[index];
  if (index == QUICK_SHAPES) return cache_shape(machine, quick_share, true, NULL);
  return typed(quick_type_shape, types[index - QUICK_SHAPES - 1]);
}

/* The types take turns at each shape: the bandwidth of DRAM changes within minutes, and with it all of them alike. */
static measured_shape shape_at(const hw_flags *flags, const lp_machine *machine, size_t index) {
  if (flags->quick) return quick_shape_at(machine, index);
  if (index < SHAPES) return shapes[index];
  if (index < SHAPES + PASSES) return cache_shape(machine, cache_shares[index - SHAPES], index > SHAPES, NULL);
  index -= SHAPES + PASSES;
  return type_shape_at(machine, index / TYPES, types[index % TYPES]);
}

static const int64_t prompts[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
static const int64_t pasts[] = {16, 64, 128, 256, 512, 1024, 2047};
static const int64_t batches[] = {4, 16}; /* sequences that generate together, as a server's do */

typedef struct {
  const hw_flags *flags;
  lp_machine *machine;
  hw_subject subject;
  lp_hw_samples samples;
  double begin_ms, until_ms; /* of the shape that is measured: no measurement begins later */
  size_t done, left_out;     /* measurements */
  bool shows;                /* progress, on a terminal */
  lp_diag *diag;
} profiler;

static void show_progress(profiler *p, const char *what) {
  enum {
    WIDTH = 40,
    OF_SHAPE = LP_COUNT(prompts) + 2 * (1 + LP_COUNT(batches)) * LP_COUNT(pasts) + 3,
    OF_TYPE = LP_COUNT(prompts) + 7,
    STEPS = (SHAPES + 1) * OF_SHAPE + (PASSES - 1) * 7 + TYPES * (TYPE_SHAPES * OF_TYPE + TYPE_PASSES * 7)
  };
  if (!p->shows) return;
  int filled = (int)(p->done * WIDTH / STEPS);
  fprintf(stderr, "\r[%.*s%*s] %4.0f s  %-28s", filled < WIDTH ? filled : WIDTH,
          "########################################", filled < WIDTH ? WIDTH - filled : 0, "",
          (lp_now_ms() - p->begin_ms) / 1e3, what);
}

/* At least one pass is always measured. */
static bool has_time(const profiler *p) {
  return p->samples.count == 0 || lp_now_ms() < p->until_ms;
}

/* Short passes are repeated more often. */
static int64_t repetitions(const measured_shape *m, int64_t count) {
  double work = (double)(m->shape.hidden * m->shape.hidden) * (double)count;
  return work < 4e6 ? 25 : work < 1e8 ? 11 : work < 4e8 ? 5 : 3;
}

static lp_status measure_pass(profiler *p, const hw_bench *bench, const measured_shape *m, int64_t batch, int64_t past,
                              int64_t count) {
  char text[64];
  (void)snprintf(text, sizeof text, "width %" PRId64 ", %" PRId64 " tokens", m->shape.hidden, batch * (past + count));
  show_progress(p, text);
  p->done++;
  if (past + count > m->most) return LP_OK;
  if (!has_time(p)) {
    p->left_out++;
    return LP_OK;
  }
  return hw_bench_measure(bench, batch, past, count, repetitions(m, batch * count), &p->samples, p->diag);
}

/* Long prompts of many sequences take longer than what they tell. */
static lp_status measure_batch(profiler *p, const hw_bench *bench, const measured_shape *m, int64_t batch) {
  const bool wanted = !m->decode_one && !m->dtype && !p->flags->quick && !p->flags->over;
  for (size_t i = 0; i < LP_COUNT(pasts); i++)
    if (wanted && (pasts[i] == 64 || pasts[i] == 256))
      LP_TRY(measure_pass(p, bench, m, batch, pasts[i], 1));
    else
      p->done++;
  return LP_OK;
}

/* Measures the passes over tokens twice, the second time a moment later. */
static lp_status measure_passes(profiler *p, const hw_bench *bench, const measured_shape *m) {
  for (int visit = 0; visit < 2; visit++) {
    for (size_t i = 0; i < LP_COUNT(pasts); i++)
      if ((!m->decode_one && !m->dtype) || pasts[i] == 16 || pasts[i] == 256)
        LP_TRY(measure_pass(p, bench, m, 1, pasts[i], 1));
    for (size_t i = 0; i < LP_COUNT(prompts) && visit == 0 && !m->decode_one; i++)
      LP_TRY(measure_pass(p, bench, m, 1, 0, prompts[i]));
    for (size_t i = 0; i < LP_COUNT(batches); i++)
      LP_TRY(measure_batch(p, bench, m, batches[i]));
  }
  return LP_OK;
}

static lp_status measure_shape(profiler *p, const measured_shape *m) {
  hw_bench bench;
  show_progress(p, "compiling");
  p->done += 3;
  if (!has_time(p)) {
    p->left_out++;
    return LP_OK;
  }
  hw_subject subject = p->subject;
  subject.dtype = m->dtype;
  lp_status status = hw_bench_open(&m->shape, &subject, &bench, p->diag);
  if (status == LP_OK) status = measure_passes(p, &bench, m);
  hw_bench_close(&bench);
  return status;
}

/* The figure that a product in this type of weights is measured against. */
static lp_hw_figure peak_of(lp_dtype dtype) {
  return dtype == LP_BF16 ? LP_HW_PEAK_BF16
         : dtype == LP_I8 ? LP_HW_PEAK_INT8
         : dtype == LP_U4 ? LP_HW_PEAK_INT4
                          : LP_HW_PEAK_F32;
}

/* Raises figures that are below the measurements. A machine that was busy when its figures were measured shows too low
 * ones. */
static void raise_figures(profiler *p) {
  static const char source[] = "measured here: the best product of this type, and 2 %";
  double *figure = p->machine->figure;
  LP_FOR_VEC(const lp_hw_sample, sample, &p->samples) {
    double seconds = sample->time_us * 1e-6;
    double beyond = sample->facts.bytes - figure[LP_HW_CACHE];
    const lp_hw_figure peak = peak_of(sample->facts.dtype);
    figure[peak] = fmax(figure[peak], lp_hw_rounded(1.02 * sample->facts.flops / seconds));
    if (peak != LP_HW_PEAK_F32) p->machine->source[peak] = source;
    figure[LP_HW_BANDWIDTH] = fmax(figure[LP_HW_BANDWIDTH], lp_hw_rounded(1.02 * beyond / seconds));
  }
  figure[LP_HW_PEAK_F16] = figure[LP_HW_PEAK_F32];
}

/* This machine's profile is kept for `host`. */
static void tell(const profiler *p, const lp_hw_fit_result *result) {
  const bool host = !p->flags->over;
  if (host && !lp_hw_keep_host(p->machine))
    lp_warning(p->diag, LP_LOC_NONE, "the profile cannot be kept for 'host': there is no cache folder to write to");
  fprintf(stderr, "%zu measurements in %.0f s, fitted by %zu curves%s\n", result->used,
          (lp_now_ms() - p->begin_ms) / 1e3, result->curves, host ? "; 'host' uses them from now on" : "");
  if (p->left_out > 0)
    fprintf(stderr, "%zu measurements, of the longest passes, were left out: --budget gives them more time\n",
            p->left_out);
  if (result->impossible > 0)
    fprintf(stderr, "%zu measurements were faster than the machine can be by its figures, and are left out\n",
            result->impossible);
}

static lp_status fit(profiler *p, lp_hw_fit_result *result) {
  LP_OWNED(lp_buf_free) lp_buf source = {0};
  if (p->flags->over)
    lp_buf_printf(&source, "llmpart hw profile, over %s", p->flags->over);
  else
    lp_buf_puts(&source, "llmpart hw profile, on this machine");
  lp_hw_fit_options options = {
      .knots = (int32_t)p->flags->knots, .source = lp_buf_text(&source), .kernels = p->subject.backend};
  if (!p->flags->over) raise_figures(p);
  return lp_hw_fit(p->machine, &p->samples, &options, result, p->diag);
}

static lp_status fit_and_keep(profiler *p) {
  lp_hw_fit_result result;
  LP_TRY(fit(p, &result));
  LP_OWNED(lp_buf_free) lp_buf text = {0};
  if (lp_tool_wants(p->flags->out, "csv"))
    lp_hw_samples_print(&p->samples, &text);
  else
    lp_hw_print(p->machine, &text);
  lp_status status = lp_tool_write_as(p->flags->out, &text, p->diag);
  if (status == LP_OK) tell(p, &result);
  return status;
}

/* ---- another machine --------------------------------------------------------------------------------------------- */

/* The machine and its code: what the options name, else this machine, or what the machine's file names. */
static lp_status choose_subject(profiler *p, lp_diag *diag) {
  const hw_flags *flags = p->flags;
  const bool other = flags->over || flags->bundles;
  if (!other && (flags->machine || flags->backend || flags->march))
    return lp_error_as(LP_USAGE, diag, LP_LOC_NONE,
                       "only a profile of another machine, with --over or --bundles, takes --machine, --backend and "
                       "--march");
  if (flags->quick && (other || flags->widths > 0))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--quick"), "it is for this machine, and has widths of its own");
  if (other && !flags->machine)
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE(flags->over ? "--over" : "--bundles"),
                       "--machine=NAME has to name the machine that is measured");
  if (other)
    LP_TRY(lp_hw_load(flags->machine, &p->machine, diag));
  else
    p->machine = lp_hw_measure_host();
  const lp_hw_target *target = &p->machine->target;
  const bool gpu = other && p->machine->kind == LP_MACHINE_GPU && target->gpu_interface;
  p->subject = (hw_subject){.machine = p->machine,
                            .backend = flags->backend ? flags->backend
                                       : gpu          ? target->gpu_interface
                                                      : "cpu",
                            .march = "native",
                            .threads = (int32_t)flags->threads,
                            .over = flags->over,
                            .security = flags->security};
  if (!lp_backend_find(p->subject.backend))
    return lp_error_as(LP_USAGE, diag, LP_LOC_FILE("--machine"),
                       "there is no backend for the %s GPU of '%s': --backend=cpu measures its processor",
                       p->subject.backend, p->machine->name);
  if (flags->march)
    p->subject.march = flags->march;
  else if (lp_streq(p->subject.backend, "cuda") && lp_streq(target->gpu_interface, "cuda"))
    p->subject.march = target->gpu;
  else if (other && lp_streq(p->subject.backend, "cpu") && target->cpu)
    p->subject.march = target->cpu;
  return LP_OK;
}

static size_t widths(const profiler *p) {
  const int64_t wanted = p->flags->widths;
  return wanted > 0 && wanted < SHAPES ? (size_t)wanted : SHAPES;
}

/* Widths name the bundles; each is its own. */
static lp_status write_bundles(profiler *p) {
  lp_status status = LP_OK;
  if (mkdir(p->flags->bundles, 0777) != 0 && errno != EEXIST)
    return lp_error(p->diag, LP_LOC_FILE(p->flags->bundles), "cannot create the folder: %s", strerror(errno));
  for (size_t i = 0; i < widths(p) && status == LP_OK; i++) {
    LP_OWNED(lp_buf_free) lp_buf name = {0};
    lp_buf_printf(&name, "width-%" PRId64 ".llmpart", shapes[i].shape.hidden);
    LP_OWNED(lp_free_at) char *path = lp_path_join(p->flags->bundles, lp_buf_text(&name));
    show_progress(p, lp_buf_text(&name));
    status = hw_bench_write(&shapes[i].shape, &p->subject, path, p->diag);
  }
  return status;
}

/* A worker has only bundles of the first shapes: the others are for the caches of this machine. The shapes share the
 * time evenly, and what one leaves is for the next: so a slow machine measures some passes of every type. Of
 * the others than the first, those that take longest come last. */
static lp_status measure_shapes(profiler *p) {
  const size_t all = p->flags->quick ? QUICK_SHAPES + 1 + TYPES : SHAPES + PASSES + TYPES * OF_EACH_TYPE;
  const size_t count = p->flags->over || p->flags->widths > 0 ? widths(p) : all;
  lp_status status = LP_OK;
  for (size_t i = 0; i < count && status == LP_OK; i++) {
    measured_shape m = shape_at(p->flags, p->machine, i == 0 ? 0 : count - i);
    p->until_ms = p->begin_ms + p->flags->budget_ms * (double)(i + 1) / (double)count;
    status = measure_shape(p, &m);
  }
  return status;
}

/* Weights of this machine come from the storage that has the user's cache folder. */
static void measure_load(profiler *p) {
  if (p->flags->over || p->flags->bundles) return;
  LP_OWNED(lp_free_at) char *path = lp_hw_host_path();
  show_progress(p, "loading weights");
  p->machine->figure[LP_HW_LOAD_BANDWIDTH] = path ? lp_hw_measure_load(path) : 0;
  if (p->machine->figure[LP_HW_LOAD_BANDWIDTH] > 0)
    p->machine->source[LP_HW_LOAD_BANDWIDTH] = "measured here: a file of 64 MiB that is not in memory, mapped and read";
}

/* Without messages, where processes may not use sockets for example, `loopback` keeps the figures of its file. */
static void measure_messages(profiler *p) {
  if (p->flags->over || p->flags->bundles) return;
  show_progress(p, "messages");
  LP_OWNED(lp_diag_free_at) lp_diag *inner = lp_diag_create();
  if (hw_measure_messages(&p->subject, p->machine, inner) != LP_OK)
    lp_warning(p->diag, LP_LOC_NONE, "messages between two processes could not be measured");
}

/* Measures what the flags ask for, or writes the bundles for it. */
static lp_status measure(profiler *p) {
  p->begin_ms = lp_now_ms();
  p->shows = !p->flags->silent && isatty(STDERR_FILENO);
  LP_TRY(choose_subject(p, p->diag));
  lp_status status = p->flags->bundles ? write_bundles(p) : measure_shapes(p);
  measure_load(p);
  if (status == LP_OK) measure_messages(p);
  if (p->shows) fprintf(stderr, "\r%-80s\r", "");
  return status;
}

static void end_profile(profiler *p) {
  lp_vec_free(&p->samples);
  lp_hw_free(p->machine);
}

lp_status hw_profile(const lp_command *command, const lp_texts *args, lp_diag *diag) {
  hw_flags *flags = command->user;
  (void)args;
  flags->silent = command->voice->quiet;
  profiler p = {.flags = flags, .diag = diag};
  lp_status status = measure(&p);
  if (status == LP_OK && !flags->bundles) status = fit_and_keep(&p);
  end_profile(&p);
  return status;
}

lp_status hw_profile_quickly(bool *kept, lp_diag *diag) {
  static const hw_flags flags = {.knots = 32, .budget_ms = 15000, .quick = true};
  profiler p = {.flags = &flags, .diag = diag};
  lp_hw_fit_result result;
  lp_status status = measure(&p);
  if (status == LP_OK) status = fit(&p, &result);
  *kept = status == LP_OK && lp_hw_keep_host(p.machine);
  end_profile(&p);
  return status;
}
