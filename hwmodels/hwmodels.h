/* hwmodels: figures of machines, links and interconnects, and predictions of the time that an operator or a message
 * takes on them.
 *
 * A machine, a link or an interconnect is one YAML file. Those of this folder are part of the library; a path to
 * another file works wherever a name does. Each figure carries its source. This folder knows operators only as the
 * facts below (lp_op_facts) and decides nothing.
 *
 * A loaded model is immutable and may be shared between threads; loading and freeing are not thread-safe.
 */
#pragma once

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
  LP_HW_CACHE,               /* last cache level, bytes: data that fits may move faster than `bandwidth`. 0: unknown */
  LP_HW_CACHE_BANDWIDTH,     /* of the last cache level: byte/s. 0: unknown */
  LP_HW_LOAD_BANDWIDTH,      /* at which weights come from storage at the first use: byte/s. 0: unknown */
  LP_HW_MESSAGE,             /* between two processes of the machine, besides its bytes: ms. 0: unknown */
  LP_HW_MESSAGE_BANDWIDTH,   /* of large messages between them: byte/s. 0: unknown */
  LP_HW_COMPUTE_UTILISATION, /* the share of the peak that large operators reach: (0, 1] */
  LP_HW_MEMORY_UTILISATION,  /* the share of the bandwidth that they reach: (0, 1] */
  LP_HW_LAUNCH,              /* the time of a launch, added to the time of each operator: ms */
  LP_HW_PRICE,               /* USD per second of being busy */
  LP_HW_POWER,               /* W when busy */
  /* Those of a device, by which it has a share of an answer's energy and cost. Without a source: unknown. */
  LP_HW_IDLE_POWER,   /* W when it waits, its radio apart */
  LP_HW_PURCHASE,     /* USD */
  LP_HW_LIFE,         /* years */
  LP_HW_ENERGY_PRICE, /* USD per kWh */
  LP_HW_FIGURE_COUNT
} lp_hw_figure;

enum { LP_HW_TYPES = LP_HW_PEAK_INT4 - LP_HW_PEAK_F32 + 1 };
extern const char *const lp_hw_type_names[LP_HW_TYPES]; /* f32 f16 bf16 int8 int4 */

/* The operating system, instruction set and GPU that code for a machine needs. A file that lacks `target` leaves
 * everything NULL or 0. */
typedef struct {
  const char *os;             /* "linux", "android" or "macos" */
  const char *isa;            /* of the CPU: "x86-64" or "aarch64" */
  const char *cpu;            /* of the CPU, as --march names it: "cortex-a57", or "native" for this machine */
  const char *gpu_interface;  /* "cuda", "opencl" or "metal"; NULL: no GPU that can compute */
  const char *gpu;            /* the rest of its name: "sm_53", "3.0 adreno-750" */
  bool has_type[LP_HW_TYPES]; /* the types in which the processor of the figures computes, from LP_HW_PEAK_F32 on */
  bool shared_memory;         /* CPU and GPU use the same memory */
  bool ideal; /* a machine as a paper takes it: it computes each operator in the type of the operands, by any kernel */
} lp_hw_target;

struct lp_hw_predictor;
struct lp_hw_fit;

typedef struct lp_machine {
  lp_arena *arena; /* owns the texts below */
  const char *name, *title;
  lp_machine_kind kind; /* the processor that the figures describe */
  lp_hw_target target;
  double figure[LP_HW_FIGURE_COUNT];
  const char *source[LP_HW_FIGURE_COUNT]; /* the source of the figure and its date; NULL when it was not given */
  const char *interconnects;              /* names, separated by spaces, the fastest first; NULL: unknown */
  const struct lp_hw_fit *fit;            /* measured operator times, in the arena; NULL: none */
  const struct lp_hw_predictor *predictor;
} lp_machine;

/* `text` is a name of lp_hw_list, "host" (lp_hw_host) or a path (anything with '/' or ending in ".yaml"), followed by
 * any number of changed figures: "a100,compute_utilisation=0.8,price=4e-5". A machine with measured times predicts with
 * them; "a100,predictor=roofline", or any change of a figure that the roofline rests on, makes it a roofline of its
 * figures. Release with lp_hw_free. */
LP_MUST_USE lp_status lp_hw_load(const char *text, lp_machine **out, lp_diag *diag);
/* `ranks` machines of a kind as one: the price and power are those of all, the rest is that of each. It borrows. */
lp_machine lp_hw_of_ranks(const lp_machine *machine, int64_t ranks);
bool lp_hw_is_host(const char *text); /* tells whether lp_hw_load gives this machine; NULL is allowed */
void lp_hw_free(lp_machine *machine); /* NULL is allowed */
/* This machine. Cores, memory, read bandwidths and f32 rate are measured on all cores, in less than 0.3 s, at the first
 * use. They are kept in llmpart/host-VERSION-PROCESSOR.yaml of the user's cache folder, so that later uses give the
 * same figures. The environment's LLMPART_HOST names a machine file that is taken instead, so that figures depend on no
 * measurement. */
LP_MUST_USE lp_status lp_hw_host(lp_machine **out, lp_diag *diag);
bool lp_hw_host_is_given(void); /* whether LLMPART_HOST is set */
/* The path of the file in which this machine's figures are kept, for free(); NULL: there is no cache folder. */
char *lp_hw_host_path(void);
double lp_hw_rounded(double value); /* to three digits, since further ones of a measurement are noise */
/* Measures LP_HW_LOAD_BANDWIDTH: the rate at which a file of 64 MiB beside `path` that is not in memory is mapped and
 * read, as a bundle's weights are. Some seconds on a slow disk. 0: no file can be written there (host_load.c). */
double lp_hw_measure_load(const char *path);
/* Measures the same figures again, and does not keep them. */
LP_NEVER_NULL lp_machine *lp_hw_measure_host(void);
/* Keeps `machine`, a profile with measured operators, for later calls of lp_hw_host; false: it cannot be kept. */
bool lp_hw_keep_host(const lp_machine *machine);
/* Text in the form of lp_hw_load's files, `file` being the name for messages. */
LP_MUST_USE lp_status lp_hw_parse(const char *file, const char *text, size_t size, lp_machine **out, lp_diag *diag);

/* ---- the types in which kernels of GPUs multiply (gpu_kernels.c): the backend that emits them and the planner that
 * prices them ask here, so that a plan prices the kernel that runs ---- */

enum { LP_HW_MOST_SM = 9999 }; /* newer than any architecture */
/* CUDA architectures from sm_`least` to sm_`most`; 0 to LP_HW_MOST_SM are all, and set no condition. */
typedef struct {
  int32_t least, most;
} lp_hw_architectures;
/* Products with activations that are rounded in blocks of 32, to halves or to bytes. */
extern const lp_hw_architectures lp_hw_old_halves, lp_hw_halves, lp_hw_dot_bytes;
enum { LP_HW_ROUNDED_BLOCK = 32 };
/* The type in which tensor cores multiply a weight that is stored as `store`, and the first architectures on which our
 * kernel and a library do. Codes become f16, which holds their product with the scale more precisely than bf16. */
typedef struct {
  lp_dtype dtype;
  int32_t sm, sm_of_library;
} lp_hw_tensor;
lp_hw_tensor lp_hw_tensor_of(lp_dtype store);
enum { LP_HW_TENSOR_ELEMENTS = 8 }; /* rows have a multiple of it, so that they begin at multiples of 16 bytes */
/* The oldest architecture with tensor cores for attention to keys and values of type `store`, in heads of `d` and `dv`
 * elements; 0: none. */
int32_t lp_hw_attention_tensor_from(lp_dtype store, int64_t d, int64_t dv);

/* Tells whether it multiplies halves faster than floats; OpenCL code has kernels that do only then. */
bool lp_hw_prefers_halves(const lp_machine *machine);
/* The type in which the GPU multiplies many rows with a weight of rows of k elements. `bytes`: activations for integer
 * weights are rounded to bytes. */
lp_dtype lp_hw_product_dtype(const lp_machine *machine, lp_dtype store, int64_t k, bool bytes);
/* The type in which it multiplies queries with keys and values. A kernel for few queries multiplies in f32, but its
 * time is that of the bytes. */
lp_dtype lp_hw_attention_dtype(const lp_machine *machine, lp_dtype store, int64_t d, int64_t dv);
/* The type in which it multiplies activations of type `own` with each other (op.matmul, op.linear_attention). */
lp_dtype lp_hw_matmul_dtype(const lp_machine *machine, lp_dtype own);

/* Appends the target in a few words: "cuda sm_53, cortex-a57"; "unknown" where the file names none. */
void lp_hw_target_text(const lp_hw_target *target, lp_buf *out);

/* The peak rate for arithmetic in `dtype`, FLOP/s; where the machine has none, that of the type it would use
 * instead. */
double lp_hw_peak(const lp_machine *machine, lp_dtype dtype);

/* Names of the machines that come with the library, sorted, "host" among them. */
size_t lp_hw_names(const char *const **names);
void lp_hw_list(lp_buf *out);                             /* the table of `llmpart hw list`, without ideal machines */
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
  double
      /* Bytes of weights and caches that a whole pass reads on this machine, this operator's included. They decide
       * whether its operands are still in a cache. 0: unknown, and taken as larger than the cache. */
      pass_bytes;
} lp_op_facts;

typedef struct {
  double time_ms;
  double low_ms, high_ms; /* the 90 % interval */
  /* the distance to the nearest measurement, as factors of two over all sizes; INFINITY without measurements */
  double distance;
  double tick_ms; /* the tick of the measurements' clock when the clock was coarse, else 0 */
} lp_prediction;

/* A way to predict. It is pure: the same facts give the same answer. */
typedef struct lp_hw_predictor {
  const char *name;
  lp_prediction (*predict)(const lp_machine *machine, const lp_op_facts *facts);
  /* Tells whether it depends on lp_op_facts.pass_bytes; NULL: never. */
  bool (*asks_pass_bytes)(const lp_machine *machine);
} lp_hw_predictor;

/* P1, Eq. 8, with a floor: max(flops / (peak x utilisation), bytes / (bandwidth x utilisation)) + launch. On a machine
 * with `cache_bandwidth`, the share of the bytes that the cache holds moves at that bandwidth: all of them while they
 * fit it, none when they are twice its size, linear between the two. For operators that read weights or KV caches these
 * are the bytes of the whole pass, which come round once a pass; for others their own, which were just written. */
extern const lp_hw_predictor lp_hw_roofline;

/* Predicts from measured operators: a base law of three figures times the factor of measurements near these sizes
 * (fitted.c). Operators without measurements are left to the roofline. */
extern const lp_hw_predictor lp_hw_fitted;

lp_prediction lp_hw_predict(const lp_machine *machine, const lp_op_facts *facts);
/* Tells whether its predictions depend on lp_op_facts.pass_bytes. */
bool lp_hw_asks_pass_bytes(const lp_machine *machine);

/* ---- measured operators ------------------------------------------------------------------------------------------ */

/* The names of operators in tables of measurements. */
typedef enum {
  LP_HW_LINEAR,
  LP_HW_ATTENTION,
  LP_HW_EMBEDDING,
  LP_HW_ADD,
  LP_HW_NORM,
  LP_HW_ROTARY,
  LP_HW_GATED_ACT,
  LP_HW_SOFTMAX,
  LP_HW_COPY,
  LP_HW_SAMPLE, /* two parts of a pass that are not operators: drawing a token from m rows of n logits, and the start */
  LP_HW_ANY,    /* only in fits with a single curve */
  LP_HW_OP_COUNT
} lp_hw_op;

const char *lp_hw_op_name(lp_hw_op op); /* "gated_act" */
LP_MUST_USE lp_status lp_hw_op_parse(const char *text, lp_hw_op *op, lp_diag *diag, lp_loc loc);
/* Tells whether the machine has measurements of `op`. */
bool lp_hw_has_measured(const lp_machine *machine, lp_hw_op op);
/* The source of the machine's measurements; NULL: it has none. */
const char *lp_hw_measured_source(const lp_machine *machine);
/* The backend of llmpart ("cpu") with the kernels that were measured; NULL: those of another library. */
const char *lp_hw_measured_kernels(const lp_machine *machine);
/* The name under which measurements list operators of this kind; LP_HW_ANY: none. */
lp_hw_op lp_hw_op_of(lp_kind kind);
/* Fills kind, flops and bytes from the given sizes and dtype. FLOPs of attention: causal pairs, 4 d each. */
void lp_hw_op_facts(lp_hw_op op, lp_op_facts *facts);
/* The sizes that `op` needs, by their names in tables. */
enum { LP_HW_SIZES = 9 };
extern const char *const lp_hw_size_names[LP_HW_SIZES]; /* m n k batch q_len kv_len heads kv_heads head_dim */
bool lp_hw_op_needs(lp_hw_op op, size_t size);
void lp_hw_op_set_size(lp_op_facts *facts, size_t size, int64_t value);
int64_t lp_hw_op_size(const lp_op_facts *facts, size_t size);
/* Pairs of query and key under a causal mask over the last q_len of kv_len positions. */
double lp_hw_attention_pairs(double q_len, double kv_len);

typedef struct {
  lp_hw_op op;
  lp_op_facts facts;
  double time_us;
} lp_hw_sample;

typedef LP_VEC(lp_hw_sample) lp_hw_samples; /* release with lp_vec_free */

/* A table with the header op,m,n,k,batch,q_len,kv_len,heads,kv_heads,head_dim,dtype,time_us in any order; columns that
 * no row needs may be absent. `pass_bytes` may be there besides. Appends to `out`. */
LP_MUST_USE lp_status lp_hw_samples_parse(const char *file, const char *text, size_t size, lp_hw_samples *out,
                                          lp_diag *diag);
LP_MUST_USE lp_status lp_hw_samples_read(const char *path, lp_hw_samples *out, lp_diag *diag);
/* Prints samples in the form that lp_hw_samples_parse reads. */
void lp_hw_samples_print(const lp_hw_samples *samples, lp_buf *out);

typedef struct {
  int32_t knots;       /* the most knots of a curve */
  bool single_curve;   /* P1's design, for comparison: one curve of utilisation over intensity for all operators */
  const char *source;  /* the source of the measurements */
  const char *kernels; /* the backend of llmpart with the kernels that were measured; NULL: another library's */
} lp_hw_fit_options;

typedef struct {
  /* number of samples; `impossible` ones are faster than the machine's peak or bandwidth allows and are dropped */
  size_t used, impossible;
  size_t curves, knots;
} lp_hw_fit_result;

/* Fits `samples` and makes the result the machine's predictor. The machine's figures decide which samples are
 * impossible. */
LP_MUST_USE lp_status lp_hw_fit(lp_machine *machine, const lp_hw_samples *samples, const lp_hw_fit_options *options,
                                lp_hw_fit_result *result, lp_diag *diag);
/* The machine with which a fit of the table at `path` begins: the catalogue's machine of the file's name, or one made
 * from the samples. Release with lp_hw_free. */
LP_MUST_USE lp_status lp_hw_for_table(const char *path, const lp_hw_samples *samples, lp_machine **out, lp_diag *diag);
/* Creates a machine with these names; its figures are the best rates in the samples. */
lp_machine *lp_hw_from_samples(const char *name, const char *title, const lp_hw_samples *samples);

/* Errors of predictions on samples of one kind. */
typedef struct {
  const char *name; /* an operator of the table, or attention_decode, attention_prefill, pointwise, all */
  size_t count;
  double mape_pct, median_pct, p90_pct; /* mean, median and 90th percentile of the absolute percentage error */
  double coverage90;                    /* the share of samples inside the 90 % interval */
} lp_hw_errors;

/* Tells whether the time is possible. No operator is faster than the peak of the machine, or than its bandwidth for
 * bytes beyond the cache (64 MiB where its size is unknown). */
bool lp_hw_is_possible(const lp_machine *machine, const lp_hw_sample *sample);

/* Fills one entry per kind that occurs; returns their number. Impossible samples are only counted. Where the fit's
 * measurements came from a coarse clock, the prediction is rounded as that clock would. */
enum { LP_HW_ERRORS = LP_HW_OP_COUNT + 4 };
size_t lp_hw_evaluate(const lp_machine *machine, const lp_hw_samples *samples, lp_hw_errors out[LP_HW_ERRORS],
                      size_t *impossible);

/* The roofline, attainable FLOP/s over FLOP/byte, with dots for measurements: as text for a terminal, and as SVG. */
void lp_hw_roofline_text(const lp_machine *machine, lp_buf *out);
void lp_hw_roofline_svg(const lp_machine *machine, lp_buf *out);

/* ---- links ------------------------------------------------------------------------------------------------------- */

typedef enum {
  LP_LINK_RTT,  /* ms */
  LP_LINK_UP,   /* device to cloud, bit/s */
  LP_LINK_DOWN, /* cloud to device, bit/s */
  LP_LINK_LOSS, /* the share of packets that must be sent again: [0, 1) */
  /* The device's radio. Without sources: unknown. */
  LP_LINK_RADIO_UP,    /* J per bit that it sends */
  LP_LINK_RADIO_DOWN,  /* J per bit that it receives */
  LP_LINK_RADIO_AWAKE, /* W while it is awake, besides */
  LP_LINK_RADIO_TAIL,  /* J of waking up, and of staying awake after the last bit */
  LP_LINK_FIGURE_COUNT
} lp_link_figure;

/* One state of a link, as it was measured or simulated. */
typedef struct {
  double rtt_ms, up_bps, down_bps; /* a bandwidth of 0: nothing passes */
} lp_link_state;

typedef struct lp_link {
  lp_arena *arena;
  const char *name, *title;
  double figure[LP_LINK_FIGURE_COUNT];
  const char *source[LP_LINK_FIGURE_COUNT];
  /* The distribution of a link that varies: states of equal probability, in the arena. `figure` is then the state for
   * which plans are made: a share `quantile` of the states is at least as good. 0 states: a link that does not vary. */
  const lp_link_state *state;
  int32_t state_count;
  double quantile;
} lp_link;

/* `text` is a name or a path, followed by changed figures or not ("lan,rtt=1ms"), or only figures:
 * "rtt=10ms,up=50Mbit/s,down=200Mbit/s[,loss=0.01]". A path that ends in ".csv" is a trace: a table with the columns
 * rtt_ms, up_bps and down_bps among others, each row a state of the link. Release with lp_link_free. */
LP_MUST_USE lp_status lp_link_load(const char *text, lp_link **out, lp_diag *diag);
void lp_link_free(lp_link *link); /* NULL is allowed */
/* Gives the link the figures of messages that a profile of the machine measured; without them it stays as it is. */
void lp_link_measured_on(lp_link *link, const lp_machine *machine);

/* ---- links that vary (link_states.c) ---- */

/* A quantile of 0.95, for which loaded links with states are planned. */
extern const double lp_link_quantile_default;
/* Creates a link of `count` > 0 states, which are copied, planned for the default quantile. `source` says where they
 * come from. Returns NULL when more than a share 1 - lp_link_quantile_default of them passes nothing. */
lp_link *lp_link_from_states(const char *name, const char *title, const char *source, const lp_link_state *states,
                             int32_t count);
/* Sets the figures to a state for which a share of at least `quantile`, (0, 1], of the states has no longer round trip
 * and no less bandwidth either way. With such figures an SLA that a plan meets holds with that probability. Returns
 * false, and changes nothing, when that state passes nothing. */
bool lp_link_plan_for(lp_link *link, double quantile);
/* The link in state `index`: no states, the figures are those of the state. It borrows from `link`. */
lp_link lp_link_in_state(const lp_link *link, int32_t index);
/* The value at a share of the sorted values of one figure over the states, for LP_LINK_RTT, LP_LINK_UP and
 * LP_LINK_DOWN: at share 0 the least, at 1 the largest. */
double lp_link_state_quantile(const lp_link *link, lp_link_figure figure, double share);

void lp_link_list(lp_buf *out);
void lp_link_print(const lp_link *link, lp_buf *out);

/* Time for one message, ms: rtt / 2 + 8 bytes / (bandwidth x (1 - loss)). */
double lp_link_up_ms(const lp_link *link, double bytes);
double lp_link_down_ms(const lp_link *link, double bytes);

/* ---- interconnects (interconnect.c) ------------------------------------------------------------------------------ */

typedef enum {
  LP_INTERCONNECT_ALPHA, /* ms for each collective */
  LP_INTERCONNECT_STEP,  /* ms for each collective and each rank after the first */
  LP_INTERCONNECT_BETA,  /* byte/s of a rank, one way */
  LP_INTERCONNECT_FIGURE_COUNT
} lp_interconnect_figure;

/* What the ranks of a sharded half join their parts over. */
typedef struct lp_interconnect {
  lp_arena *arena;
  const char *name, *title;
  double figure[LP_INTERCONNECT_FIGURE_COUNT];
  const char *source[LP_INTERCONNECT_FIGURE_COUNT];
} lp_interconnect;

/* `text` is a name ("nvlink4", "ethernet"), a path, either followed by changed figures or not, or only figures:
 * "alpha=10us,beta=100GB/s[,step=2us]". "nvlink" and "pcie" are those that the machine's file names. NULL: the first
 * one that it names; without one, the messages that a profile of the machine measured, or else "ethernet". Release with
 * lp_interconnect_free. */
LP_MUST_USE lp_status lp_interconnect_load(const char *text, const lp_machine *machine, lp_interconnect **out,
                                           lp_diag *diag);
void lp_interconnect_free(lp_interconnect *interconnect); /* NULL is allowed */
/* Time in which `ranks` ranks gather a value of `bytes` bytes, of which each has an equal part, ms: alpha + (N - 1)
 * step + bytes (N - 1) / (N beta), a ring as NCCL's tuning model and Thakur et al. (2005,
 * doi:10.1177/1094342005051521) have it. 0 for one rank. */
double lp_interconnect_gather_ms(const lp_interconnect *interconnect, int64_t ranks, double bytes);
