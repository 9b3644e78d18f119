/* The front of cost against time, of plans that are written down here: which ones it shows, its knee and its limits. */
#include "passes/plan/plan.h"
#include "tests/suite.h"

LP_CASE(.timeout = 10);

/* A plan whose answer takes `e2e` ms: half of it for the first token, and 100 more tokens. */
static lp_plan_front_row plan(double e2e, double cost) {
  return (lp_plan_front_row){
      .result = {.feasible = true, .e2e_ms = e2e, .ttft_ms = e2e / 2, .tpot_ms = e2e / 200, .cost_usd = cost}};
}

static void check_row(const lp_plan_front *front, int32_t index, double e2e, double cost) {
  ck_assert_int_lt(index, front->count);
  ck_assert_double_eq(front->row[index].result.e2e_ms, e2e);
  ck_assert_double_eq(front->row[index].result.cost_usd, cost);
}

LP_TEST(it_goes_from_the_fastest_to_the_cheapest_plan) {
  lp_plan_front front;
  lp_plan_front_row plans[] = {plan(1000, 1), plan(10, 9), plan(100, 5), plan(400, 5), plan(400, 8)};
  lp_plan_front_make(plans, 5, &front);
  ck_assert_int_eq(front.count, 3);
  check_row(&front, 0, 10, 9);
  check_row(&front, 1, 100, 5);
  check_row(&front, 2, 1000, 1);
}

/* In (100, 5) the time is halfway in ratios, and so is the cost: just on the chord. */
LP_TEST(the_knee_is_farthest_below_the_chord) {
  lp_plan_front front;
  lp_plan_front_row near[] = {plan(1000, 1), plan(10, 9), plan(100, 4.9), plan(200, 4.8)};
  lp_plan_front_make(near, 4, &front);
  ck_assert_int_eq(front.count, 4);
  check_row(&front, front.knee, 100, 4.9);
  lp_plan_front_row far[] = {plan(1000, 1), plan(10, 9), plan(100, 4.9), plan(200, 2)};
  lp_plan_front_make(far, 4, &front);
  check_row(&front, front.knee, 200, 2);
}

/* Both are a quarter below the chord. */
LP_TEST(of_equal_knees_it_takes_the_faster) {
  lp_plan_front front;
  lp_plan_front_row plans[] = {plan(10, 9), plan(20, 5), plan(40, 3), plan(160, 1)};
  lp_plan_front_make(plans, 4, &front);
  check_row(&front, front.knee, 20, 5);
}

LP_TEST(without_a_plan_below_the_chord_only_a_free_end_is_the_knee) {
  lp_plan_front front;
  lp_plan_front_row above[] = {plan(1000, 1), plan(10, 9), plan(100, 5.1), plan(11, 8.9)};
  lp_plan_front_make(above, 4, &front);
  check_row(&front, front.knee, 100, 5.1); /* the other one is nearer to the chord */
  lp_plan_front_row slow[] = {plan(1000, 1), plan(10, 9), plan(100, 5.1), plan(900, 1.5)};
  lp_plan_front_make(slow, 4, &front);
  check_row(&front, front.knee, 100, 5.1);
  lp_plan_front_row on[] = {plan(1000, 1), plan(10, 9), plan(100, 5)};
  lp_plan_front_make(on, 3, &front);
  ck_assert_int_eq(front.knee, 1);
  lp_plan_front_row free_end[] = {plan(1000, 0), plan(10, 8), plan(100, 4)};
  lp_plan_front_make(free_end, 3, &front);
  ck_assert_int_eq(front.knee, 2);
  lp_plan_front_row two[] = {plan(10, 9), plan(1000, 1)};
  lp_plan_front_make(two, 2, &front);
  ck_assert_int_eq(front.count, 2);
  ck_assert_int_eq(front.knee, 1);
}

LP_TEST(a_plan_that_is_free_and_the_fastest_is_all_of_it) {
  lp_plan_front front;
  lp_plan_front_row plans[] = {plan(20, 3), plan(10, 0), plan(10, 0)};
  lp_plan_front_make(plans, 3, &front);
  ck_assert_int_eq(front.count, 1);
  ck_assert_int_eq(front.knee, 0);
  check_row(&front, 0, 10, 0);
  ck_assert_double_eq(front.row[0].ttft_ms, 0);
  lp_plan_front_make(plans, 0, &front);
  ck_assert_int_eq(front.count, 0);
}

/* Nobody feels a hundredth of the time, except that the fastest plan is the end. */
LP_TEST(plans_that_are_hardly_faster_are_left_out) {
  lp_plan_front front;
  lp_plan_front_row plans[] = {plan(1000, 1), plan(100, 4), plan(99.5, 5), plan(98, 6), plan(10.05, 8), plan(10, 9)};
  lp_plan_front_make(plans, 6, &front);
  check_row(&front, 0, 10, 9);
  check_row(&front, front.count - 2, 100, 4);
  for (int32_t i = 0; i < front.count; i++)
    ck_assert(front.row[i].result.e2e_ms != 99.5 && front.row[i].result.e2e_ms != 10.05);
}

LP_TEST(it_shows_five_plans_that_lie_apart) {
  lp_plan_front front;
  lp_plan_front_row plans[102];
  for (int i = 0; i < 101; i++)
    plans[i] = plan(10 + i, 200 - i);
  plans[101] = plan(200, 20); /* the knee is plan(110, 100) or this end; both stay */
  lp_plan_front_make(plans, 102, &front);
  ck_assert_int_eq(front.count, LP_FRONT_MOST);
  check_row(&front, 0, 10, 200);
  check_row(&front, 4, 200, 20);
  for (int32_t i = 1; i < front.count; i++) {
    ck_assert_double_gt(front.row[i].result.e2e_ms, 1.1 * front.row[i - 1].result.e2e_ms);
    ck_assert_double_lt(front.row[i].result.cost_usd, front.row[i - 1].result.cost_usd);
  }
}

/* Two digits, rounded up, so that the plan itself meets them; the cheapest plan needs none. */
LP_TEST(limits_are_just_above_the_times) {
  lp_plan_front front;
  lp_plan_front_row plans[] = {plan(73.16, 9), plan(1000, 0), plan(80, 2)};
  lp_plan_front_make(plans, 3, &front);
  ck_assert_int_eq(front.knee, 1);
  ck_assert_double_eq(front.row[0].ttft_ms, 37);
  ck_assert_double_eq(front.row[0].tpot_ms, 0.37);
  ck_assert_double_eq(front.row[1].ttft_ms, 40);
  ck_assert_double_eq(front.row[1].tpot_ms, 0.4);
  ck_assert_double_eq(front.row[2].ttft_ms, 0);
  ck_assert_double_eq(front.row[2].tpot_ms, 0);
  lp_compile_request request = {.isl = 8};
  lp_plan_front_limit(&front, &request);
  ck_assert_double_eq(request.ttft_ms, 40);
  ck_assert_double_eq(request.tpot_ms, 0.4);
}
