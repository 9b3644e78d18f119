/* Declarations that only the files of hwmodels/ share: a sheet of figures, read from YAML or from "name,key=value" and
 * printed. */
#pragma once

#include "base/yaml/yaml.h"
#include "hwmodels/hwmodels.h"

#include <gsl/gsl_interp.h>

/* ---- embedded files (generated) ---- */

extern const lp_embedded_table lp_embedded_machines, lp_embedded_links, lp_embedded_interconnects;

/* ---- sheets ---- */

typedef enum {
  LP_IN_FLOPS,
  LP_IN_BYTES_PER_S,
  LP_IN_BYTES,
  LP_IN_MS,
  LP_IN_BPS,
  LP_IN_W,
  LP_IN_SHARE,
  LP_IN_NUMBER
} lp_figure_unit;

/* A figure that a sheet may hold. */
typedef struct {
  const char *key;
  lp_figure_unit unit;
  double least, most; /* both allowed */
  double otherwise;   /* the default; negative: the file must give the figure */
  const char *meaning;
} lp_figure_info;

/* A nested part that a sheet may hold, and the function that reads it. */
typedef struct {
  const char *key;
  lp_status (*read)(void *user, lp_yaml *yaml, const lp_yaml_node *node);
} lp_sheet_section;

enum { LP_MOST_SECTIONS = 3 };

/* A kind of sheet: "machine", "link" or "interconnect". */
typedef struct {
  const char *what; /* also the key of the name */
  bool has_kind;    /* whether the file must say `kind: gpu` or `kind: cpu` */
  const lp_figure_info *info;
  size_t count;
  const lp_embedded_table *embedded;
  lp_sheet_section section[LP_MOST_SECTIONS]; /* those with a key */
  /* Receives each change of a command line first and may handle it; NULL: no such function. */
  lp_status (*override)(void *user, const char *key, const char *value, bool *taken, lp_diag *diag);
} lp_sheet_form;

/* Views the parts of a machine or a link; owns nothing. */
typedef struct {
  const lp_sheet_form *form;
  lp_arena *arena;
  const char *name, *title, *kind;
  double *figure;      /* [form->count] */
  const char **source; /* [form->count] */
  void *user;          /* of the form's functions */
} lp_sheet;

/* machine.c */
/* Loads a machine by the name of its sheet or by a path, with changes: see lp_hw_load. */
LP_MUST_USE lp_status lp_machine_load_sheet(const char *text, lp_machine **out, lp_diag *diag);
/* Changes figures of `*machine`; when it fails, frees the machine and sets `*machine` to NULL. */
LP_MUST_USE lp_status lp_machine_change(lp_machine **machine, const char *changes, lp_diag *diag, lp_loc loc);

/* sheet.c */
/* Fills figures not given with their defaults, or reports the first that must be given. */
LP_MUST_USE lp_status lp_sheet_complete(lp_sheet *sheet, const bool *given, lp_diag *diag, lp_loc loc);
/* Reads `text` as the figure `index` and checks its range. */
LP_MUST_USE lp_status lp_sheet_set(lp_sheet *sheet, size_t index, const char *text, lp_diag *diag, lp_loc loc);
/* Applies "key=value,key=value" to figures of the sheet. Errors name the argument `loc` that the text is part of. */
LP_MUST_USE lp_status lp_sheet_override(lp_sheet *sheet, const char *text, bool *given, lp_diag *diag, lp_loc loc);
/* Index of the figure `key`, or form->count. */
size_t lp_sheet_find(const lp_sheet_form *form, const char *key);
void lp_sheet_print(const lp_sheet *sheet, lp_buf *out);

/* sheet_yaml.c */
LP_MUST_USE lp_status lp_sheet_read_yaml(lp_sheet *sheet, const char *file, const void *text, size_t size,
                                         lp_diag *diag);
/* Fills a sheet from a text of the command line: see lp_hw_load. */
LP_MUST_USE lp_status lp_sheet_load(lp_sheet *sheet, const char *text, lp_diag *diag);

/* ---- interconnects (interconnect.c) ---- */

/* Reads the names of a machine's interconnects. */
LP_MUST_USE lp_status lp_interconnects_read(void *user, lp_yaml *yaml, const lp_yaml_node *node);

/* ---- links (link_states.c) ---- */

lp_link *lp_link_create(void); /* without figures */
/* Reads a trace: see lp_link_load. */
LP_MUST_USE lp_status lp_link_load_trace(const char *path, lp_link **out, lp_diag *diag);

/* ---- fits ---- */

enum { LP_FIT_KEYS = 5 };

/* The interpolation of a curve between its knots: GSL's method of that name, in log-log. Steffen's keeps monotone data
 * monotone, Akima's follows sudden changes. */
typedef enum { LP_CURVE_LINEAR, LP_CURVE_STEFFEN, LP_CURVE_AKIMA, LP_CURVE_KINDS } lp_curve_kind;
extern const char *const lp_curve_kind_names[LP_CURVE_KINDS];

/* A measured factor over the base law along one size, for one shape. */
typedef struct {
  int64_t key[LP_FIT_KEYS]; /* linear: n, k; attention: q_len, batch, heads, kv_heads, head_dim; others: n */
  int32_t count;
  double *x, *y; /* [count] log of the size, in whole quanta, ascending; log of the factor */
  lp_curve_kind kind;
  gsl_interp *spline; /* the coefficients of the kind, from lp_fit_curve_bend; NULL: linear */
  int32_t measured_count;
  double *measured; /* [measured_count] sizes, ascending */
  double spread;    /* half the 90 % interval, in log time */
} lp_fit_curve;

/* The measurements of one operator in one dtype. Attention has two families: of one query (decode) and of several. */
typedef struct {
  lp_hw_op op;
  bool decode;
  lp_dtype dtype;
  /* The base law: launch + ((flops / flops_per_us)^4 + (bytes / bytes_per_us)^4)^(1/4). */
  double launch_us, flops_per_us, bytes_per_us;
  lp_fit_curve pass;                     /* log of pass_bytes -> log of the share of bytes_per_us; no knots: 1 */
  double tick_us;                        /* the tick of the measurements' clock where it is coarse; else 0 */
  int64_t quantum;                       /* sizes are rounded up to whole ones: the tile of a kernel; 0: not rounded */
  double unseen_spread, unseen_distance; /* for shapes that were left out: half the interval, and their distance */
  lp_curve_kind kind; /* of the curves with enough knots: the one with the least error at left-out sizes */
  double left_out_pct[LP_CURVE_KINDS]; /* the mean error there of each kind; 0: unknown */
  int32_t count;
  lp_fit_curve *curve;
} lp_fit_family;

typedef struct lp_hw_fit {
  const char *source;
  const char *kernels; /* the backend of llmpart with the kernels that were measured; NULL: another library's */
  int32_t count;
  lp_fit_family *family;
} lp_hw_fit_data;

/* fit_family.c: predictions of a family for given facts. */
double lp_fit_size(const lp_fit_family *family, const lp_op_facts *facts); /* the size along which curves run */
void lp_fit_key(const lp_fit_family *family, const lp_op_facts *facts, int64_t key[LP_FIT_KEYS]);
/* The base law at sizes rounded up to the quantum, log us. */
double lp_fit_base(const lp_fit_family *family, const lp_op_facts *facts);
/* The time rounded to whole ticks of a clock; a tick of 0 leaves it unchanged. */
double lp_fit_on_clock(double tick, double time);
double lp_fit_whole_quanta(const lp_fit_family *family, double size);

/* The log of the factor at given sizes, from several curves. */
typedef struct {
  double y, spread, distance; /* distance: factors of two to the nearest measurement */
} lp_fit_blend;
/* Uses all curves except `left_out` (-1: all). There must be at least one. */
lp_fit_blend lp_fit_combine(const lp_fit_family *family, const lp_op_facts *facts, int32_t left_out);

/* fit_curve.c */
/* The curve's value at x; beyond its ends, the value of the nearest end. Threads may share the curve. */
double lp_fit_curve_at(const lp_fit_curve *curve, double x);
/* Makes the curve run between its knots as `kind` does; it is linear where it has fewer knots than the kind needs. The
 * coefficients are released by lp_fit_curve_straighten, which makes the curve linear again. */
void lp_fit_curve_bend(lp_fit_curve *curve, lp_curve_kind kind);
void lp_fit_curve_straighten(lp_fit_curve *curve);
/* Makes all curves linear and so releases their coefficients; the rest lies in the machine's arena. NULL is allowed. */
void lp_fit_release(const struct lp_hw_fit *fit);
/* Fits `count` points of ascending x by a curve of this kind and of at most `knots` knots. Knots are placed where the
 * error is largest; their heights are least squares. Errors up to a point's `noise` get no knot. The caller
 * straightens the curve. */
void lp_fit_curve_make(lp_arena *arena, const double *x, const double *y, const double *noise, int32_t count,
                       int32_t knots, lp_curve_kind kind, lp_fit_curve *out);

/* fit_base.c */
typedef struct {
  const lp_hw_sample *const *sample;
  size_t count;
} lp_fit_samples;
void lp_fit_base_law(lp_fit_family *family, const lp_machine *machine, const lp_fit_samples *samples,
                     double launch_us_guess);

/* fit_pass.c: fits the base law, and family->pass where the samples have passes of several sizes. */
void lp_fit_pass_law(lp_fit_family *family, const lp_machine *machine, const lp_fit_samples *samples,
                     double launch_us_guess);

/* roofline.c: the time at the full bandwidth of memory of the bytes that the last cache does not hold from one pass to
 * the next, which no operator undercuts; 0: unknown. */
double lp_hw_stream_ms(const lp_machine *machine, const lp_op_facts *facts);

/* host_measure.c */
/* The rates of all cores together. */
typedef struct {
  double flops, bandwidth; /* f32 FLOP/s; byte/s of reads from memory, 1e9 when there was no memory to measure with */
  double cache_bandwidth;  /* of reads from the last cache, byte/s; 0: unknown */
} lp_host_rates;
/* Measures this machine with one thread per core. `cache`: bytes of the last cache; 0: unknown. */
lp_host_rates lp_host_measure(size_t cores, double cache);

/* target.c */
LP_MUST_USE lp_status lp_target_read(void *machine, lp_yaml *yaml, const lp_yaml_node *node);
void lp_target_print(const lp_hw_target *target, lp_buf *out); /* the YAML that lp_target_read reads; "" if unknown */
extern const lp_hw_target lp_target_host;

/* fit_yaml.c */
LP_MUST_USE lp_status lp_fit_read(void *machine, lp_yaml *yaml, const lp_yaml_node *node);
void lp_fit_print(const struct lp_hw_fit *fit, lp_buf *out);
