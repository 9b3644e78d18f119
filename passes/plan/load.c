/* Prices all cuts of a model at numbers of rows, contexts and prompt lengths: see load.h. */
#include "passes/plan/load.h"
#include "base/side.h"
#include "passes/plan/forms.h"
#include "passes/plan/pin.h"
#include "passes/plan/schedulers.h"

#include <math.h>

/* Of a pass, as in runtime/pass_rules.h: MOST_ROWS where it takes SHORT_S at most, ROWS otherwise. */
enum { MOST_SESSIONS = 256, ROWS = 256, MOST_ROWS = 1024 };
static const double SHORT_S = 0.02;

struct lp_load {
  lp_plan_forms *forms;
  lp_plan_form *cut;
  int64_t cuts;
};

lp_plan_form *lp_plan_form_cuts(const lp_plan_forms *forms, lp_arena *arena, int64_t *count) {
  const lp_plan_problem *problem = forms->problem;
  *count = problem[0].layer_count + 3;
  lp_plan_form *form = LP_NEW_ARRAY(arena, lp_plan_form, *count);
  for (int64_t cut = 0; cut < *count; cut++) {
    lp_side *side[LP_STAGE_COUNT];
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      side[stage] = LP_NEW_ARRAY(arena, lp_side, problem[stage].op_count);
      lp_plan_fill_cut(&problem[stage], cut - 1, side[stage]);
      lp_plan_settle(&problem[stage], side[stage]);
    }
    lp_plan_form_make(forms, side, arena, &form[cut]);
  }
  return form;
}

lp_status lp_load_create(lp_module *module, const lp_compile_request *request, lp_arena *arena, lp_load **out,
                         lp_diag *diag) {
  lp_load *load = LP_NEW(arena, lp_load);
  LP_TRY(lp_plan_forms_create(module, request, arena, &load->forms, diag));
  load->cut = lp_plan_form_cuts(load->forms, arena, &load->cuts);
  *out = load;
  return LP_OK;
}

int64_t lp_load_cuts(const lp_load *load) {
  return load->cuts;
}

/* Evaluates all cuts at the sizes of a request. `cache`: bytes of a sequence's KV caches in the cloud; may be NULL. */
static void evaluate(const lp_load *load, const lp_compile_request *request, lp_plan_result *result, double *cache) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_plan_prices prices;
  lp_plan_forms_price(load->forms, request, arena, &prices);
  for (int64_t i = 0; i < load->cuts; i++) {
    const lp_plan_terms *terms = &load->cut[i].caches[LP_SIDE_CLOUD];
    lp_plan_form_evaluate(&load->cut[i], &prices, request, &result[i]);
    if (cache) cache[i] = 0;
    for (int32_t k = 0; cache && k < terms->count; k++)
      cache[i] += terms->term[k].times * prices.state[terms->term[k].class_id];
  }
}

static lp_compile_request sized(const lp_compile_request *request, int64_t past, int64_t isl, int64_t osl) {
  lp_compile_request out = *request;
  out.past = past;
  out.isl = isl > 0 ? isl : 1;
  out.osl = osl;
  out.batch = out.sessions = 1;
  return out;
}

/* ---- the cloud's half -------------------------------------------------------------------------------------------- */

static void count_sessions(lp_load_law *law, double activation_bytes, double longest_bytes) {
  const double left = law->memory_bytes - law->weight_bytes - activation_bytes - longest_bytes;
  law->sessions = 0;
  if (!(left >= 0)) return;
  const double most = MOST_SESSIONS, more = law->session_bytes > 0 ? floor(left / law->session_bytes) : most;
  law->sessions = more >= most ? MOST_SESSIONS : 1 + (int64_t)more;
}

static double activations(const lp_plan_result *at, double caches) {
  return at->cloud_memory_bytes - at->cloud_weight_bytes - caches;
}

static double prompt_s_of(const lp_load_law *law, int64_t rows) {
  int knot = 0;
  while (law->rows[knot] < (double)rows)
    knot++;
  return law->prompt_s[knot];
}

static void price_sessions(const lp_load *load, const lp_compile_request *request, const lp_load_lengths *lengths,
                           lp_arena *arena, lp_load_law *law) {
  lp_plan_result *at = LP_NEW_ARRAY(arena, lp_plan_result, load->cuts);
  double *kept = LP_NEW_ARRAY(arena, double, load->cuts), *longest = LP_NEW_ARRAY(arena, double, load->cuts);
  double *activation = LP_NEW_ARRAY(arena, double, load->cuts);
  const lp_compile_request mean = sized(request, 0, lengths->kept, 0), most = sized(request, 0, lengths->longest, 0);
  lp_compile_request tokens = sized(request, 0, lengths->context, 0);
  tokens.sessions = MOST_SESSIONS;
  for (int64_t rows = ROWS; rows <= MOST_ROWS; rows = 4 * rows) {
    const lp_compile_request prompt = sized(request, 0, rows, 0);
    evaluate(load, &prompt, at, kept);
    for (int64_t i = 0; i < load->cuts; i++)
      if (rows == ROWS || prompt_s_of(&law[i], ROWS) <= SHORT_S) activation[i] = activations(&at[i], kept[i]);
  }
  evaluate(load, &tokens, at, kept);
  for (int64_t i = 0; i < load->cuts; i++)
    activation[i] = fmax(activation[i], activations(&at[i], (double)tokens.sessions * kept[i]));
  evaluate(load, &most, at, longest);
  evaluate(load, &mean, at, kept);
  for (int64_t i = 0; i < load->cuts; i++) {
    law[i].weight_bytes = at[i].cloud_weight_bytes;
    law[i].session_bytes = kept[i];
    law[i].memory_bytes = lp_plan_memory_limit(request, LP_SIDE_CLOUD);
    count_sessions(&law[i], activation[i], longest[i]);
  }
}

void lp_load_laws(const lp_load *load, const lp_compile_request *request, const lp_load_lengths *lengths,
                  lp_load_law *law) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_plan_result *at = LP_NEW_ARRAY(arena, lp_plan_result, load->cuts);
  for (int knot = 0; knot < LP_LOAD_KNOTS; knot++) {
    const int64_t rows = (int64_t)1 << knot, before = (lengths->prompt - rows) / 2;
    lp_compile_request tokens = sized(request, 0, lengths->context, 1);
    const lp_compile_request prompt = sized(request, before > 0 ? before : 0, rows, 1);
    tokens.sessions = rows;
    evaluate(load, &tokens, at, NULL);
    for (int64_t i = 0; i < load->cuts; i++) {
      law[i].rows[knot] = (double)rows;
      law[i].token_s[knot] = 1e-3 * at[i].decode_cloud_ms;
    }
    evaluate(load, &prompt, at, NULL);
    for (int64_t i = 0; i < load->cuts; i++)
      law[i].prompt_s[knot] = 1e-3 * at[i].prefill_cloud_ms;
    for (int64_t i = 0; i < load->cuts; i++)
      law[i].prompt_s[knot] = fmax(law[i].prompt_s[knot], fmin(law[i].token_s[0], law[i].prompt_s[0]));
  }
  price_sessions(load, request, lengths, arena, law);
}

/* ---- the device's half ------------------------------------------------------------------------------------------- */

void lp_load_users(const lp_load *load, const lp_compile_request *request, const lp_load_lengths *lengths,
                   lp_load_user *user) {
  LP_OWNED(lp_arena_free_at) lp_arena *arena = lp_arena_create();
  lp_plan_result *at = LP_NEW_ARRAY(arena, lp_plan_result, load->cuts);
  double rows = 0;
  for (int knot = 0; knot < LP_LOAD_KNOTS; knot++) {
    rows = fmax(rows + 1, pow((double)lengths->longest, (double)knot / (LP_LOAD_KNOTS - 1)));
    const lp_compile_request prompt = sized(request, 0, llround(rows), 1);
    evaluate(load, &prompt, at, NULL);
    for (int64_t i = 0; i < load->cuts; i++) {
      user[i].prompt[knot] = (double)prompt.isl;
      user[i].first_s[knot] = 1e-3 * (at[i].prefill_device_ms + at[i].prefill_link_ms + at[i].kv_move_ms);
      user[i].device_first_s[knot] = 1e-3 * at[i].prefill_device_ms;
    }
  }
  const lp_compile_request tokens = sized(request, 0, lengths->context, 1);
  evaluate(load, &tokens, at, NULL);
  for (int64_t i = 0; i < load->cuts; i++) {
    user[i].streams = load->cut[i].streams && request->link;
    user[i].token_s = 1e-3 * (at[i].decode_device_ms + at[i].decode_link_ms);
    user[i].device_token_s = 1e-3 * at[i].decode_device_ms;
    user[i].asks = user[i].question_rows = 1;
  }
  const lp_compile_request longest = sized(request, 0, lengths->longest, 0);
  evaluate(load, &longest, at, NULL);
  const double limit = lp_plan_memory_limit(request, LP_SIDE_DEVICE);
  for (int64_t i = 0; i < load->cuts; i++) {
    user[i].room_bytes = limit > 0 ? limit - at[i].device_memory_bytes : INFINITY;
    user[i].fits = user[i].room_bytes >= 0;
  }
}

lp_load_user lp_load_user_with_exit(const lp_load_user *user, int64_t cuts, int64_t layers, double asks,
                                    double question_rows) {
  lp_load_user out = user[layers + 1];
  const lp_load_user *whole = &user[cuts - 1], *headless = &user[cuts - 2];
  const double link_s = out.token_s - out.device_token_s;
  out.asks = asks;
  out.question_rows = question_rows;
  const double row_s = out.device_token_s + whole->device_token_s - headless->device_token_s;
  out.device_token_s = row_s * question_rows * asks;
  out.token_s = link_s + row_s * question_rows;
  if (!isinf(out.room_bytes)) out.room_bytes -= headless->room_bytes - whole->room_bytes;
  out.fits = out.room_bytes >= 0;
  return out;
}
