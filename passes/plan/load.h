/* A machine under load: the time of a pass over any mixture of prompt rows and tokens, and the sessions that its memory
 * holds, from the closed forms with which plans are priced (forms.h). Times in s.
 *
 * Approximations: a pass takes all its tokens at one context, the mean one, and the rows of a prompt halfway through
 * the prompt of a row in the mean; and no pass takes less than one row. Between the numbers of rows at which the forms
 * are priced, times are linear. */
#pragma once

#include "passes/plan/plan.h"

enum { LP_LOAD_KNOTS = 11 }; /* 1, 2, 4, ... 1024 rows */

/* What the load has in the mean, and the longest request. Tokens. */
typedef struct {
  int64_t prompt;  /* of a row of prompts in the mean: long ones have more of the rows */
  int64_t context; /* mean context at which a token is made */
  int64_t kept;    /* mean tokens of a session's KV cache at its end, by the time that sessions take */
  int64_t longest; /* prompt and answer of the longest request */
} lp_load_lengths;

/* The cloud's half of a cut on a machine. */
typedef struct {
  double rows[LP_LOAD_KNOTS], token_s[LP_LOAD_KNOTS], prompt_s[LP_LOAD_KNOTS];
  double weight_bytes, session_bytes, memory_bytes; /* memory: of the machine */
  int64_t sessions; /* the most at a time, at most 256: those of mean length, and the longest. 0: not even one */
} lp_load_law;

/* The device's half of a cut, with its link: what a request takes besides the cloud's passes. */
typedef struct {
  double prompt[LP_LOAD_KNOTS], first_s[LP_LOAD_KNOTS]; /* before the first token, by the prompt's length */
  double token_s;                                       /* between two tokens */
  double device_first_s[LP_LOAD_KNOTS], device_token_s; /* of first_s and token_s, the device's passes */
  double asks;                                          /* the share of these tokens of which the cloud is asked: 1 */
  double question_rows;                                 /* of the request in a pass that gives one of these: 1 */
  double room_bytes;                                    /* of the device's memory, beside its half; may be below 0 */
  bool
      streams; /* all of it is in the cloud: tokens follow each other there, and token_s is what the link delays each */
  bool fits;   /* the device's memory holds its half with the longest request */
} lp_load_user;

typedef struct lp_load lp_load;
/* `module` is at least lowered; both must outlive the load, which lives in `arena`. */
LP_MUST_USE lp_status lp_load_create(lp_module *module, const lp_compile_request *request, lp_arena *arena,
                                     lp_load **out, lp_diag *diag);
/* The number of cuts, those of the scheduler "layer": 0 leaves all in the cloud, the last one all on the device. */
int64_t lp_load_cuts(const lp_load *load);
/* Fills law[cuts] for the request's cloud machine. */
void lp_load_laws(const lp_load *load, const lp_compile_request *request, const lp_load_lengths *lengths,
                  lp_load_law *law);
/* Fills user[cuts] for the request's device and link; `cloud` is any machine. */
void lp_load_users(const lp_load *load, const lp_compile_request *request, const lp_load_lengths *lengths,
                   lp_load_user *user);

/* user[cuts] with an early exit after `layers` layers, from 1 to all but one, which has the model's own norm and head,
 * and leaves a share `asks` of the tokens to the cloud. Between two of these the device computes `question_rows` rows,
 * 1 / asks or, with drafts that the cloud refuses, more; they go up meanwhile, and are in the cloud's next pass for the
 * request, so that token_s is that between two tokens of the cloud. */
lp_load_user lp_load_user_with_exit(const lp_load_user *user, int64_t cuts, int64_t layers, double asks,
                                    double question_rows);
