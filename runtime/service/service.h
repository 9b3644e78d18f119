/* runtime/service: how long a language model on the edge or in the cloud takes for an answer, and what that is worth.
 *
 * The service model of "Generative AI as a Service in 6G Edge-Cloud", Eq. (1) to (4), with plus signs, logarithms to
 * base 2 and bytes turned into bits. Planner, simulator and router take their figures from here. It knows no radio and
 * no queue: rates and waiting times are given to it. Times in s. Pure functions; profiles are immutable once loaded.
 */
#ifndef LP_SERVICE_H
#define LP_SERVICE_H

#include "base/base.h"

typedef enum { LP_SITE_EDGE, LP_SITE_CLOUD, LP_SITE_COUNT } lp_site;
extern const char *const lp_site_names[LP_SITE_COUNT]; /* "edge", "cloud" */

/* ---- equations (delay.c) ----------------------------------------------------------------------------------------- */

/* How long one model takes on one otherwise idle machine. */
typedef struct {
  const char *model;  /* "Llama-3-8B" */
  double ttft_s;      /* time to the first token, whatever the prompt */
  double prompt_s;    /* and for each token of the prompt */
  double tpot_s;      /* time per output token */
  const char *source; /* where the figures are from */
} lp_service_model;

/* Does TTFT stand for the first token? The paper adds n TPOT to it for n tokens and so counts the first one twice. */
typedef enum { LP_COUNT_ONCE, LP_COUNT_PAPER, LP_COUNTINGS } lp_counting;
extern const char *const lp_counting_names[LP_COUNTINGS]; /* "once", "paper" */

/* Eq. (1): TTFT + (n - 1) TPOT, or n TPOT as the paper counts. */
double lp_generation_s(const lp_service_model *model, double prompt_tokens, double tokens, lp_counting counting);
/* Eq. (3): 8 n s_token / C, and the backhaul when the answer comes from the cloud; C from Eq. (2) in bit/s, INFINITY:
 * no time on the air. */
double lp_transmission_s(double tokens, double token_bytes, double bps, lp_site site, double backhaul_s);
/* Eq. (4) turned into what is maximised: T_target - t_total - penalty when the quality asked for was missed. */
double lp_service_reward(double target_s, double total_s, double penalty, bool missed_quality);

/* ---- pairs of models (profile.c) --------------------------------------------------------------------------------- */

typedef struct {
  lp_arena *arena; /* owns the texts */
  const char *name, *title;
  lp_service_model at[LP_SITE_COUNT];
} lp_service;

/* `name` is one of lp_service_names or a path. A file says of each site `ttft` and `tpot` or `tokens_per_s`, or names
 * what to take them from: `bench`, the output of `llmpart bench -o json`, or `report`, a report or a bundle. Paths in
 * it are relative to it. Release with lp_service_free. */
LP_MUST_USE lp_status lp_service_load(const char *name, lp_service **out, lp_diag *diag);
LP_MUST_USE lp_status lp_service_parse(const char *file, const char *text, size_t size, lp_service **out,
                                       lp_diag *diag);
void lp_service_free(lp_service *service); /* NULL is allowed */
size_t lp_service_names(const char *const **names);
void lp_service_print(const lp_service *service, lp_buf *out); /* YAML that is read back */

/* How much longer the cloud takes for n tokens, backhaul included: how steeply the mean delay grows with the share of
 * tasks that go there. */
double lp_service_slope_s(const lp_service *service, double tokens, double backhaul_s, lp_counting counting);
/* The length of answer at which a penalty for the edge's missing quality is just the cloud's longer delay: shorter
 * answers are better made in the cloud. INFINITY when the cloud is no slower per token. */
double lp_service_break_even(const lp_service *service, double penalty, double backhaul_s, lp_counting counting);

/* ---- figures of compiled models (figures.c) ---------------------------------------------------------------------- */

/* From `llmpart bench -o json`: prompt_s and tpot_s of its rows pp and tg. */
LP_MUST_USE lp_status lp_service_from_bench(const char *path, lp_arena *arena, lp_service_model *out, lp_diag *diag);
/* From a report (llmpart.report/1) or the bundle that holds it: at the edge the plan `device_only`, in the cloud
 * `cloud_only`, both without the link, for prompts as long as those planned for. */
LP_MUST_USE lp_status lp_service_from_report(const char *path, lp_site site, lp_arena *arena, lp_service_model *out,
                                             lp_diag *diag);
/* The split plan of a report, its transfers included: a third way beside edge and cloud. */
LP_MUST_USE lp_status lp_service_from_split(const char *path, lp_arena *arena, lp_service_model *out, lp_diag *diag);

#endif
