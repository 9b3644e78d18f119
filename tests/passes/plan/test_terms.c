/* The planner's small parts, on values written down here: objectives, pins, early exits, units and
 * the lines of a sweep's journal. */
#include "base/side.h"
#include "passes/plan/exact/exact.h"
#include "passes/plan/exits.h"
#include "passes/plan/pin.h"
#include "passes/plan/sweep/journal.h"
#include "tests/passes/plan/random_plan.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static lp_diag *diag;

static void setup(void) {
  diag = lp_diag_create();
}
static void teardown(void) {
  lp_diag_free(diag);
}

LP_CASE(.setup = setup, .teardown = teardown);

/* ---- objectives -------------------------------------------------------------------------------------------------- */

static const struct {
  const char *text, *why; /* NULL: it is one */
} objectives[] = {
    {"cost", NULL},
    {"0*cost+latency", NULL},
    {"cost+1e-6*latency", NULL},
    {"1e+3*energy+cost", NULL},
    {"10e+3*energy+cost", NULL},
    {"19E+3*energy+cost", NULL},
    {"-1*cost", "'-1' is not a number >= 0"},
    {"-1e-300*energy", "'-1e-300' is not a number >= 0"},
    {"2*speed", "'speed' is none of cost, latency and energy"},
    {"cost+", "'' is none of cost, latency and energy"},
    {"", "'' is none of cost, latency and energy"},
};

LP_LOOP_TEST(objectives_are_sums, 0, LP_COUNT(objectives)) {
  const char *why = objectives[_i].why;
  ck_assert_int_eq(lp_plan_objective_check(objectives[_i].text, diag, LP_LOC_NONE), why ? LP_FAILED : LP_OK);
  ck_assert_uint_eq(lp_diag_error_count(diag), why != NULL);
  if (why) ck_assert_ptr_nonnull(strstr(lp_diag_get(diag, 0)->text, why));
}

/* ---- pins -------------------------------------------------------------------------------------------------------- */

static const struct {
  bool keeps;
  int64_t layers;
  bool fits;
} private_layers[] = {{true, 0, true}, {true, 3, true}, {true, 4, true}, {true, 5, false}, {false, 5, true}};

LP_LOOP_TEST(private_layers_are_the_models, 0, LP_COUNT(private_layers)) {
  const lp_plan_problem problem = {.layer_count = 4};
  const lp_compile_request request = {.keep_private = private_layers[_i].keeps,
                                      .private_layers = private_layers[_i].layers};
  ck_assert_int_eq(lp_plan_pin_used(&problem, &request, diag), private_layers[_i].fits ? LP_OK : LP_FAILED);
  ck_assert_uint_eq(lp_diag_error_count(diag), !private_layers[_i].fits);
}

/* ---- early exits ------------------------------------------------------------------------------------------------- */

/* Only a plan with one message each way is asked in halves: exits change the sums of no other. */
LP_LOOP_TEST(only_halves_use_exits, 0, 9) {
  const int column = _i % 3, row = _i / 3;
  const double up = column, down = row;
  const lp_link link = {0};
  const lp_compile_request request = {.link = (lp_link *)(uintptr_t)&link, .exit_rates.mode = LP_EXITS_STANDALONE};
  const lp_plan_stage_sum sum = {.busy_ms = {7, 9}, .bytes = {3, 4}, .messages = {up, down}, .crossings = 2};
  lp_plan_stage_sum stage[LP_STAGE_COUNT] = {sum, sum};
  double link_ms[LP_STAGE_COUNT] = {5, 6};
  lp_plan_result out = {0};
  bool halves = up == 1 && down == 1;
  lp_plan_exits_follow(&request, stage, link_ms, &out);
  for (int i = 0; i < LP_STAGE_COUNT; i++) {
    ck_assert_double_eq(link_ms[i], halves ? 0 : 5 + i);
    ck_assert_double_eq(stage[i].busy_ms[LP_SIDE_DEVICE], 7);
    ck_assert_double_eq(stage[i].busy_ms[LP_SIDE_CLOUD], halves ? 0 : 9);
    ck_assert_int_eq(stage[i].crossings, halves ? 0 : 2);
  }
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

/* A view is of its producer's unit, unless it belongs to other caches or is pinned elsewhere. */
LP_TEST(views_follow_their_producers) {
  static const struct {
    int32_t state, of_producer;
    int8_t pin, pin_of_producer;
    bool follows;
  } cases[] = {{-1, -1, -1, -1, true}, {-1, 0, -1, -1, true},  {0, 0, -1, -1, true},  {0, -1, -1, -1, false},
               {0, 1, -1, -1, false},  {1, 0, -1, -1, false},  {-1, -1, -1, 0, true}, {-1, -1, 0, 0, true},
               {-1, -1, 1, 1, true},   {-1, -1, 0, -1, false}, {-1, -1, 0, 1, false}, {-1, -1, 1, 0, false}};
  for (size_t c = 0; c < LP_COUNT(cases); c++) {
    random_plan *plan = random_plan_create(1, 4);
    lp_plan_edge edges[] = {{-1, 0, 0, 8, NULL}, {0, 1, 1, 8, NULL}, {1, 2, 2, 8, NULL}};
    double sizes[] = {4, 4};
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++) {
      lp_plan_op *ops = LP_NEW_ARRAY(plan->arena, lp_plan_op, 3);
      for (int32_t i = 0; i < 3; i++) {
        ops[i] = (lp_plan_op){.op = LP_NEW(plan->arena, lp_op), .state = -1, .pin = -1};
        ops[i].op->kind = LP_OP_LINEAR;
        if (i == 1) continue; /* costs nothing */
        ops[i].ms[0] = ops[i].ms[1] = ops[i].bytes[0] = ops[i].bytes[1] = 3;
      }
      ops[0].state = cases[c].of_producer;
      ops[0].pin = cases[c].pin_of_producer;
      ops[1].state = cases[c].state;
      ops[1].pin = cases[c].pin;
      plan->problem[stage] = (lp_plan_problem){.stage = (lp_stage)stage,
                                               .ops = ops,
                                               .op_count = 3,
                                               .edges = edges,
                                               .edge_count = 3,
                                               .value_count = 3,
                                               .state_count = 2,
                                               .state_size = {sizes, sizes},
                                               .state_prompt_size = sizes,
                                               .layer_count = 1,
                                               .result = 2,
                                               .result_bytes = 4};
    }
    lp_exact *x = LP_NEW(plan->arena, lp_exact);
    lp_exact_build(plan->problem, &plan->request, plan->arena, x);
    for (int stage = 0; stage < LP_STAGE_COUNT; stage++)
      ck_assert_msg((x->unit_of[stage][1] == x->unit_of[stage][0]) == cases[c].follows, "case %zu", c);
    random_plan_free(plan);
  }
}

/* ---- a sweep's journal ------------------------------------------------------------------------------------------- */

LP_TEST(lines_of_rows_are_read_back) {
  lp_sweep_row row = {.done = true, .feasible = true, .binding = LP_LIMIT_DEVICE_MEMORY}, back;
  lp_buf line = {0};
  size_t index = 0;
  for (int i = 0; i < LP_SWEEP_NUMBERS; i++)
    row.number[i] = i == 3 ? INFINITY : 0.1 * i - 1e-9;
  lp_sweep_journal_line(6, &row, &line);
  ck_assert(lp_sweep_journal_parse(lp_buf_text(&line), 7, &index, &back));
  ck_assert_uint_eq(index, 6);
  ck_assert(back.done && back.feasible && back.binding == LP_LIMIT_DEVICE_MEMORY);
  ck_assert_mem_eq(back.number, row.number, sizeof row.number);
  ck_assert(!lp_sweep_journal_parse(lp_buf_text(&line), 6, &index, &back)); /* the sweep has no such row */
  for (size_t size = 0; size < line.size; size++) {                         /* a line that was cut says nothing */
    char *cut = strndup(line.data, size);
    ck_assert(!lp_sweep_journal_parse(cut, 7, &index, &back));
    free(cut);
  }
  lp_buf_free(&line);
  row.binding = LP_LIMIT_COUNT;
  lp_sweep_journal_line(6, &row, &line);
  ck_assert(!lp_sweep_journal_parse(lp_buf_text(&line), 7, &index, &back)); /* no such limit */
  lp_buf_free(&line);
}
