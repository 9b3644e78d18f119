/* runtime/service: the time that a language model on the edge or in the cloud takes for an answer, and the reward of
 * that time.
 *
 * The service model of "Generative AI as a Service in 6G Edge-Cloud", Eq. (1) to (4), with plus signs, logarithms to
 * base 2 and bytes turned into bits. Planner, simulator and router take their figures from here. It knows no radio and
 * no queue: callers pass rates and waiting times. Times in s. Pure functions; profiles are immutable once loaded. */
#pragma once

#include "base/base.h"

/* The split is one model across a device at the edge and a worker in the cloud. */
typedef enum { LP_SITE_EDGE, LP_SITE_CLOUD, LP_SITE_SPLIT, LP_SITE_COUNT } lp_site;
extern const char *const lp_site_names[LP_SITE_COUNT]; /* "edge", "cloud", "split" */

/* ---- equations (profile.c) --------------------------------------------------------------------------------------- */

/* The times of one model on one otherwise idle machine. */
typedef struct {
  const char *model;  /* "Llama-3-8B" */
  double ttft_s;      /* time to the first token, without the time for the prompt's tokens */
  double prompt_s;    /* time for each token of the prompt, added to ttft */
  double tpot_s;      /* time per output token */
  const char *source; /* the source of the figures */
} lp_service_model;

/* Two ways to count the tokens of an answer. LP_COUNT_PAPER adds n TPOT to TTFT for n tokens, as the paper does, and so
 * counts the first token twice. */
typedef enum { LP_COUNT_ONCE, LP_COUNT_PAPER, LP_COUNTINGS } lp_counting;
extern const char *const lp_counting_names[LP_COUNTINGS]; /* "once", "paper" */

/* Eq. (1): TTFT + (n - 1) TPOT, or n TPOT as the paper counts. */
double lp_generation_s(const lp_service_model *model, double prompt_tokens, double tokens, lp_counting counting);
/* Eq. (3): 8 n s_token / C, plus the backhaul if the answer comes from the cloud; C from Eq. (2) in bit/s; INFINITY:
 * the radio link takes no time. */
double lp_transmission_s(double tokens, double token_bytes, double bps, lp_site site, double backhaul_s);
/* Eq. (4) as a reward to maximise: T_target - t_total, less the penalty if the requested quality was missed. */
double lp_service_reward(double target_s, double total_s, double penalty, bool missed_quality);

/* ---- pairs of models (profile.c) --------------------------------------------------------------------------------- */

typedef struct {
  lp_arena *arena; /* owns the texts */
  const char *name, *title;
  lp_service_model at[LP_SITE_COUNT]; /* `model` is NULL where there is no split */
} lp_service;

/* `name` is one of lp_service_names or a path. A file gives for each site `ttft` and `tpot` or `tokens_per_s`, or a
 * file to read them from: `bench`, the output of `llmpart bench -o json`, or `report`, a report or a bundle. Only the
 * split may be absent. Paths in it are relative to it. Release with lp_service_free. */
LP_MUST_USE lp_status lp_service_load(const char *name, lp_service **out, lp_diag *diag);
LP_MUST_USE lp_status lp_service_parse(const char *file, const char *text, size_t size, lp_service **out,
                                       lp_diag *diag);
void lp_service_free(lp_service *service); /* NULL is allowed */
size_t lp_service_names(const char *const **names);
void lp_service_print(const lp_service *service, lp_buf *out); /* YAML that is read back */

/* The time that the cloud takes longer for n tokens, backhaul included. If a further share x of tasks goes to the
 * cloud, the mean delay grows by x times this. */
double lp_service_slope_s(const lp_service *service, double tokens, double backhaul_s, lp_counting counting);
/* The length of answer at which the penalty for the edge's lower quality equals the cloud's longer delay; for shorter
 * answers the cloud is better. INFINITY when the cloud is no slower per token. */
double lp_service_break_even(const lp_service *service, double penalty, double backhaul_s, lp_counting counting);

/* ---- figures of compiled models (figures.c) ---------------------------------------------------------------------- */

/* Reads the output of `llmpart bench -o json`: prompt_s and tpot_s of its rows pp and tg. */
LP_MUST_USE lp_status lp_service_from_bench(const char *path, lp_arena *arena, lp_service_model *out, lp_diag *diag);
/* Reads a report (llmpart.report/1) or the bundle that holds it: the plan `device_only` for the edge and `cloud_only`
 * for the cloud, both without the link, for prompts of the planned length. */
LP_MUST_USE lp_status lp_service_from_report(const char *path, lp_site site, lp_arena *arena, lp_service_model *out,
                                             lp_diag *diag);
/* Reads the split plan of a report, transfers included: the third route beside edge and cloud. */
LP_MUST_USE lp_status lp_service_from_split(const char *path, lp_arena *arena, lp_service_model *out, lp_diag *diag);
