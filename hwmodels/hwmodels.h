/* hwmodels: what is known of machines and links, and how long an operator or a message takes on them.
 *
 * A machine or a link is one YAML file. Those of this folder are part of the library; a path to another file works
 * wherever a name does. Each figure carries its source. This folder knows operators only as the facts below (lp_op_facts)
 * and decides nothing.
 *
 * A loaded model is immutable and may be shared between threads; loading and freeing are not thread-safe.
 */
#ifndef LP_HWMODELS_H
#define LP_HWMODELS_H

#include "base/base.h"
#include "ir/ir.h"

/* ---- machines ---------------------------------------------------------------------------------------------------- */

typedef enum { LP_MACHINE_GPU, LP_MACHINE_CPU } lp_machine_kind;

/* The figures of a machine, in the order in which they are shown. */
typedef enum {
  LP_HW_PEAK_F32, /* FLOP/s; a multiply-add counts as 2. 0: no arithmetic of this type of its own */
  LP_HW_PEAK_F16,
  LP_HW_PEAK_BF16,
  LP_HW_PEAK_INT8,
  LP_HW_PEAK_INT4,
  LP_HW_BANDWIDTH,           /* of memory: byte/s */
  LP_HW_MEMORY,              /* bytes */
  LP_HW_COMPUTE_UTILISATION, /* the share of the peak that large operators reach: (0, 1] */
  LP_HW_MEMORY_UTILISATION,  /* the share of the bandwidth that they reach: (0, 1] */
  LP_HW_LAUNCH,              /* what an operator costs at least, added to its time: ms */
  LP_HW_PRICE,               /* USD per second of being busy */
  LP_HW_POWER,               /* W when busy */
  LP_HW_FIGURE_COUNT
} lp_hw_figure;

struct lp_hw_predictor;

typedef struct lp_machine {
  lp_arena *arena; /* owns the texts below */
  const char *name, *title;
  lp_machine_kind kind;
  double figure[LP_HW_FIGURE_COUNT];
  const char *source[LP_HW_FIGURE_COUNT]; /* where the figure is from, and of which date; NULL when it was not given */
  const struct lp_hw_predictor *predictor;
} lp_machine;

/* `text` is a name of lp_hw_list, "host" (lp_hw_host) or a path (anything with '/' or ending in ".yaml"), with any number
 * of changed figures behind it: "a100,compute_utilisation=0.8,price=4e-5". Release with lp_hw_free. */
LP_MUST_USE lp_status lp_hw_load(const char *text, lp_machine **out, lp_diag *diag);
void lp_hw_free(lp_machine *machine); /* NULL is allowed */
/* This machine: cores, memory, read bandwidth and f32 rate measured with all cores in less than 0.3 s at the first use
 * and kept, so that a second use gives the same figures, in llmpart/host-VERSION.yaml of the user's cache folder. */
LP_MUST_USE lp_status lp_hw_host(lp_machine **out, lp_diag *diag);
/* Text in the form of lp_hw_load's files, `file` being the name for messages. */
LP_MUST_USE lp_status lp_hw_parse(const char *file, const char *text, size_t size, lp_machine **out, lp_diag *diag);

/* The peak rate for arithmetic in `dtype`, FLOP/s; where the machine has none, that of the type it would use instead. */
double lp_hw_peak(const lp_machine *machine, lp_dtype dtype);

/* Names of the machines that come with the library, sorted, "host" among them. */
size_t lp_hw_names(const char *const **names);
void lp_hw_list(lp_buf *out);                             /* the table of `llmpart hw list` */
void lp_hw_print(const lp_machine *machine, lp_buf *out); /* YAML that lp_hw_parse reads back */

/* ---- prediction -------------------------------------------------------------------------------------------------- */

/* One execution of one operator. Sizes that do not apply are 0. */
typedef struct {
  lp_kind kind;
  double flops;          /* a multiply-add is 2 */
  double bytes;          /* operands read and results written, in their dtypes */
  lp_dtype dtype;        /* of the arithmetic */
  int64_t m, n, k;       /* linear: Y[m,n] = X[m,k] W[k,n]; pointwise: m tokens, n width */
  int64_t batch;         /* attention */
  int64_t q_len, kv_len; /* new and attended tokens per sequence */
  int64_t heads, kv_heads, head_dim;
} lp_op_facts;

typedef struct {
  double time_ms;
  double low_ms, high_ms; /* the 90 % interval */
} lp_prediction;

/* A way to predict. Pure: same facts, same answer. */
typedef struct lp_hw_predictor {
  const char *name;
  lp_prediction (*predict)(const lp_machine *machine, const lp_op_facts *facts);
} lp_hw_predictor;

/* P1, Eq. 8, with a floor: max(flops / (peak x utilisation), bytes / (bandwidth x utilisation)) + launch. */
extern const lp_hw_predictor lp_hw_roofline;

lp_prediction lp_hw_predict(const lp_machine *machine, const lp_op_facts *facts);

/* ---- links ------------------------------------------------------------------------------------------------------- */

typedef enum {
  LP_LINK_RTT,  /* ms */
  LP_LINK_UP,   /* device to cloud, bit/s */
  LP_LINK_DOWN, /* cloud to device, bit/s */
  LP_LINK_LOSS, /* the share of packets that must be sent again: [0, 1) */
  LP_LINK_FIGURE_COUNT
} lp_link_figure;

typedef struct lp_link {
  lp_arena *arena;
  const char *name, *title;
  double figure[LP_LINK_FIGURE_COUNT];
  const char *source[LP_LINK_FIGURE_COUNT];
} lp_link;

/* `text` is a name, a path, either with changed figures behind it ("lan,rtt=1ms"), or figures alone:
 * "rtt=10ms,up=50Mbit/s,down=200Mbit/s[,loss=0.01]". Release with lp_link_free. */
LP_MUST_USE lp_status lp_link_load(const char *text, lp_link **out, lp_diag *diag);
void lp_link_free(lp_link *link); /* NULL is allowed */
LP_MUST_USE lp_status lp_link_parse(const char *file, const char *text, size_t size, lp_link **out, lp_diag *diag);
size_t lp_link_names(const char *const **names);
void lp_link_list(lp_buf *out);
void lp_link_print(const lp_link *link, lp_buf *out);

/* Time for one message, ms: rtt / 2 + 8 bytes / (bandwidth x (1 - loss)). */
double lp_link_up_ms(const lp_link *link, double bytes);
double lp_link_down_ms(const lp_link *link, double bytes);

#endif
