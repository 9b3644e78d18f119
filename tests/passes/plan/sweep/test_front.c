/* Pareto fronts and tables of results that are written down here: which rows another one beats. */
#include <stdlib.h>
#include <string.h>

#include "passes/plan/sweep/formats.h"
#include "passes/plan/sweep/front.h"
#include "passes/plan/sweep/sweep.h"
#include "tests/suite.h"

enum { ROWS = 7 };

static lp_sweep_machines machines = {.name = {"a,\"b\"", "c"}};
static lp_link steady;
static lp_sweep_link link_of_all = {.name = "lan", .link = &steady};
static lp_sweep_workload workloads[] = {{128, 16, 1}, {256, 16, 1}};
static lp_sweep_sla sla;
static lp_sweep_dtypes dtypes;
static const char *schedulers[] = {"exact"};
static int64_t sessions[ROWS] = {1, 2, 3, 4, 5, 6, 7};

static lp_sweep_spec spec;
static lp_sweep_row row[2 * ROWS];
static lp_sweep_result result = {.row = row, .rows = 2 * ROWS};

static void set(size_t at, bool feasible, double cost, double tpot, double ttft) {
  row[at] = (lp_sweep_row){.done = true, .feasible = feasible};
  row[at].number[LP_SWEEP_COST_PER_MTOK] = cost;
  row[at].number[LP_SWEEP_TPOT] = tpot;
  row[at].number[LP_SWEEP_TTFT] = ttft;
  row[at].number[LP_SWEEP_TOTAL_PER_MTOK] = NAN;
}

/* The rows of a workload are the next ROWS. */
static void setup(void) {
  spec = (lp_sweep_spec){.path = "s.yaml", .model = "m.onnx", .rows = 2 * ROWS, .objective = "cost"};
  spec.machines.data = &machines;
  spec.links.data = &link_of_all;
  spec.workloads.data = workloads;
  spec.slas.data = &sla;
  spec.dtypes.data = &dtypes;
  spec.schedulers.data = schedulers;
  spec.sessions.data = sessions;
  spec.machines.count = spec.links.count = spec.slas.count = spec.dtypes.count = spec.schedulers.count = 1;
  spec.workloads.count = 2;
  spec.sessions.count = ROWS;
  const size_t count[LP_SWEEP_AXES] = {1, 1, 2, 1, 1, 1, ROWS};
  memcpy(spec.count, count, sizeof count);
  set(0, true, 3, 30, 300);
  set(1, true, 1, 50, 500);
  set(2, true, 2, 50, 100); /* beaten in TPOT by row 1, not in TTFT */
  set(3, false, 0, 1, 1);   /* no plan */
  set(4, true, 1, 50, 500); /* as good as row 1, which comes first */
  set(5, true, 1, 40, 900); /* better than both in TPOT */
  set(6, true, 3, 20, 300);
  for (size_t i = 0; i < ROWS; i++)
    set(ROWS + i, i == ROWS - 1, 9, 9, 9); /* the last row of all is the only one of its workload */
}

LP_CASE(.setup = setup);

static void expect_front(size_t workload, int which, size_t count, const size_t *wanted) {
  size_t rows[2 * ROWS + 1];
  ck_assert_uint_eq(lp_sweep_front(&spec, &result, workload, which, rows), count);
  for (size_t i = 0; i < count; i++)
    ck_assert_uint_eq(rows[i], wanted[i]);
}

LP_TEST(fronts) {
  expect_front(0, 0, 2, (const size_t[]){5, 6});
  expect_front(0, 1, 2, (const size_t[]){1, 2});
  expect_front(1, 0, 1, (const size_t[]){2 * ROWS - 1});
  lp_sweep_mark_fronts(&spec, &result);
  for (size_t i = 0; i < 2 * ROWS; i++) {
    ck_assert_int_eq(row[i].on_front[0], i == 5 || i == 6 || i == 2 * ROWS - 1);
    ck_assert_int_eq(row[i].on_front[1], i == 1 || i == 2 || i == 2 * ROWS - 1);
  }
}

/* By the total cost only rows count for which it is known. */
LP_TEST(fronts_by_total_cost) {
  spec.ranks_by_total = true;
  expect_front(0, 0, 0, NULL);
  row[0].number[LP_SWEEP_TOTAL_PER_MTOK] = 4;
  row[1].number[LP_SWEEP_TOTAL_PER_MTOK] = 3;
  expect_front(0, 0, 2, (const size_t[]){1, 0});
  row[0].number[LP_SWEEP_TOTAL_PER_MTOK] = 2;
  expect_front(0, 0, 1, (const size_t[]){0});
  spec.ranks_by_total = false;
}

/* A name with a comma and quotes is one field (RFC 4180). */
LP_TEST(fields) {
  lp_buf out = {0};
  lp_sweep_csv(&spec, &result, &out);
  size_t lines = 0;
  for (const char *at = out.data; (at = strchr(at, '\n')) != NULL; at++)
    lines++;
  ck_assert_uint_eq(lines, 1 + 2 * ROWS);
  ck_assert_ptr_nonnull(strstr(out.data, "\n\"a,\"\"b\"\"\",c,lan,"));
  lp_buf_free(&out);
}
