/* The mean time of a token with early exits. */
#include "passes/plan/exits.h"

#include <math.h>

enum { MOST_DRAFTS = 64 };

const char *const lp_exits_modes[LP_EXITS_COUNT] = {"full", "exact", "threshold", "standalone"};

/* The parts of a round of decode, in ms. */
typedef struct {
  double pass, late; /* of the device with one row; for each further row */
  double step, row;  /* the same of the cloud */
  double question;   /* both ways, without the rows' bytes */
  double upload;     /* of a row */
} round_times;

/* A token's share of a round. */
typedef struct {
  double passes, questions, cloud_ms, link_ms, rows;
} token_share;

static round_times times_of(const lp_compile_request *request, const lp_plan_stage_sum *prefill,
                            const lp_plan_stage_sum *decode) {
  const double row_bytes = request->exit_rates.row_share * decode->bytes[LP_SIDE_DEVICE];
  const double step = decode->busy_ms[LP_SIDE_CLOUD];
  const double pass = decode->busy_ms[LP_SIDE_DEVICE];
  const double prompt = (double)(request->isl > 0 ? request->isl : 1);
  const double answer = decode->bytes[LP_SIDE_CLOUD];
  return (round_times){
      .pass = pass,
      .late = fmin(pass, prefill->busy_ms[LP_SIDE_DEVICE] / prompt),
      .step = step,
      .row = fmin(step, prefill->busy_ms[LP_SIDE_CLOUD] / prompt),
      .question = lp_link_up_ms(request->link, 0) + lp_link_down_ms(request->link, answer),
      .upload = lp_link_up_ms(request->link, row_bytes) - lp_link_up_ms(request->link, 0),
  };
}

static double time_of(const round_times *t, const token_share *s) {
  return s->passes * t->pass + s->cloud_ms + s->link_ms;
}

/* Adds the wait for rows when they take longer than everything else. */
static token_share with_uploads(const round_times *t, token_share s) {
  s.link_ms += fmax(0, s.rows * t->upload - time_of(t, &s));
  return s;
}

static token_share share_of_drafts(const round_times *t, double chance, int drafts) {
  const double tokens = chance < 1 ? (1 - pow(chance, drafts + 1)) / (1 - chance) : drafts + 1;
  return with_uploads(t, (token_share){.passes = drafts / tokens,
                                       .questions = 1 / tokens,
                                       .cloud_ms = (t->step + (drafts - 1) * t->row) / tokens,
                                       .link_ms = (t->question + t->upload) / tokens,
                                       .rows = drafts / tokens});
}

static token_share share_exact(const round_times *t, double chance, int *drafts) {
  *drafts = 1;
  token_share best = share_of_drafts(t, chance, 1);
  for (int i = 2; i <= MOST_DRAFTS; i++) {
    token_share next = share_of_drafts(t, chance, i);
    if (time_of(t, &next) >= time_of(t, &best)) continue;
    best = next;
    *drafts = i;
  }
  return best;
}

static token_share share_threshold(const round_times *t, double rate, double layer_runs) {
  const double asked = 1 - rate, late = t->pass > 0 ? (1 - layer_runs) * t->late / t->pass : 0;
  return with_uploads(t, (token_share){.passes = layer_runs + late,
                                       .questions = asked,
                                       .cloud_ms = asked * t->step + rate * (asked > 0 ? t->row : 0),
                                       .link_ms = asked * (t->question + t->upload),
                                       .rows = 1});
}

/* Sets the sums of a stage in which only the device runs. */
static void leave_cloud(lp_plan_stage_sum *sum, double *link_ms) {
  *link_ms = sum->busy_ms[LP_SIDE_CLOUD] = 0;
  for (int side = 0; side < LP_SIDE_COUNT; side++)
    sum->bytes[side] = sum->messages[side] = 0;
  sum->crossings = 0;
}

static bool are_halves(const lp_plan_stage_sum *decode) {
  return decode->messages[LP_SIDE_DEVICE] > 0 && decode->messages[LP_SIDE_DEVICE] < 2 &&
         decode->messages[LP_SIDE_CLOUD] > 0 && decode->messages[LP_SIDE_CLOUD] < 2;
}

void lp_plan_exits_follow(const lp_compile_request *request, lp_plan_stage_sum stage[LP_STAGE_COUNT],
                          double link_ms[LP_STAGE_COUNT], lp_plan_result *out) {
  lp_plan_stage_sum *decode = &stage[LP_STAGE_DECODE];
  const lp_exit_rates *exits = &request->exit_rates;
  if (exits->mode == LP_EXITS_FULL || !request->link || !are_halves(decode)) return;
  if (exits->mode == LP_EXITS_STANDALONE) {
    for (int i = 0; i < LP_STAGE_COUNT; i++)
      leave_cloud(&stage[i], &link_ms[i]);
    return;
  }
  const round_times t = times_of(request, &stage[LP_STAGE_PREFILL], decode);
  int drafts = 1;
  const token_share s = exits->mode == LP_EXITS_EXACT ? share_exact(&t, exits->rate, &drafts)
                                                      : share_threshold(&t, exits->rate, exits->layer_runs);
  decode->busy_ms[LP_SIDE_DEVICE] *= s.passes;
  decode->busy_ms[LP_SIDE_CLOUD] = s.cloud_ms;
  decode->bytes[LP_SIDE_DEVICE] *= exits->row_share * s.rows;
  decode->bytes[LP_SIDE_CLOUD] *= s.questions;
  link_ms[LP_STAGE_DECODE] = s.link_ms;
  out->drafts = drafts;
  out->questions = s.questions;
}
