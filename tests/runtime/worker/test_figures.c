/* What a worker notes appears in its figures for Prometheus. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/worker/figures.h"
#include "tests/suite.h"

static lp_worker_figures *figures;
static lp_worker_options options;
static lp_worker worker;

static void open_test(void) {
  figures = lp_worker_figures_create();
  options = (lp_worker_options){.figures = figures};
  worker = (lp_worker){.options = &options};
}

static void close_test(void) {
  lp_worker_figures_free(figures);
}

LP_CASE(.setup = open_test, .teardown = close_test);

/* The value of a line "llmpart_NAME VALUE" of the text; -1: there is no such line. */
static double value_of(const char *name) {
  lp_buf text = {0}, key = {0};
  double value = -1;
  lp_worker_figures_print(figures, &text);
  lp_buf_printf(&key, "\nllmpart_%s ", name);
  const char *line = strstr(lp_buf_text(&text), lp_buf_text(&key));
  if (line) value = strtod(line + key.size, NULL);
  lp_buf_free(&text);
  lp_buf_free(&key);
  return value;
}

static void expect(const char *name, double wanted) {
  ck_assert_msg(value_of(name) == wanted, "%s: found %g, %g wanted", name, value_of(name), wanted);
}

LP_TEST(counts_what_is_noted) {
  worker_note_opened(&worker, WORKER_OF_SESSION);
  worker_note_opened(&worker, WORKER_OF_CONTEXT);
  worker_note_opened(&worker, WORKER_OF_CONTEXT);
  worker_note_dropped(&worker, WORKER_OF_SESSION, true);
  worker_note_dropped(&worker, WORKER_OF_CONTEXT, false);
  worker_note_dropped(&worker, WORKER_OF_CONTEXT, false);
  worker_note_failure(&worker);
  expect("worker_opened_total{of=\"sessions\"}", 1);
  expect("worker_opened_total{of=\"contexts\"}", 2);
  expect("worker_dropped_total{of=\"sessions\",reason=\"idle\"}", 1);
  expect("worker_dropped_total{of=\"sessions\",reason=\"budget\"}", 0);
  expect("worker_dropped_total{of=\"contexts\",reason=\"idle\"}", 0);
  expect("worker_dropped_total{of=\"contexts\",reason=\"budget\"}", 2);
  expect("worker_failures_total", 1);
}

LP_TEST(counts_refusals_by_reason) {
  static const char *const reasons[WORKER_REFUSED_COUNT] = {"handshake", "key",  "place",  "full",
                                                            "sessions",  "rows", "memory", "budget"};
  for (int i = 0; i < WORKER_REFUSED_COUNT; i++)
    for (int times = 0; times <= i; times++)
      worker_note_refusal(&worker, (worker_refusal)i);
  for (int i = 0; i < WORKER_REFUSED_COUNT; i++) {
    char name[64];
    snprintf(name, sizeof name, "worker_refused_total{reason=\"%s\"}", reasons[i]);
    expect(name, i + 1);
  }
}

LP_TEST(prints_the_present_state) {
  const worker_figures_now now = {
      .open = {3, 5}, .connections = 7, .waiting = 11, .held = 13, .budget = 17, .received = 19, .sent = 23};
  expect("worker_up", 0);
  worker_note_now(&worker, &now);
  expect("worker_up", 1);
  expect("worker_open{of=\"sessions\"}", 3);
  expect("worker_open{of=\"contexts\"}", 5);
  expect("worker_connections", 7);
  expect("worker_waiting", 11);
  expect("worker_kv_bytes", 13);
  expect("worker_kv_budget_bytes", 17);
  expect("worker_bytes_total{direction=\"received\"}", 19);
  expect("worker_bytes_total{direction=\"sent\"}", 23);
  worker_note_end(&worker); /* only the totals stay */
  expect("worker_up", 0);
  expect("worker_open{of=\"sessions\"}", 0);
  expect("worker_connections", 0);
  expect("worker_kv_bytes", 0);
  expect("worker_bytes_total{direction=\"received\"}", 19);
  expect("worker_bytes_total{direction=\"sent\"}", 23);
}

LP_TEST(an_unlimited_budget_is_not_printed) {
  worker_note_now(&worker, &(worker_figures_now){.budget = SIZE_MAX});
  expect("worker_kv_budget_bytes", -1);
}

LP_TEST(says_why_it_is_not_ready) {
  ck_assert_str_eq(lp_worker_figures_unready(figures), "it does not serve");
  worker_note_now(&worker, &(worker_figures_now){.full = true});
  ck_assert_str_eq(lp_worker_figures_unready(figures), "it has as many sessions as it may");
  worker_note_now(&worker, &(worker_figures_now){.full = false});
  ck_assert_ptr_null(lp_worker_figures_unready(figures));
  worker_note_end(&worker);
  ck_assert_str_eq(lp_worker_figures_unready(figures), "it does not serve");
}

/* Times that lie in the past are at least as long; an unknown one (NaN) is not counted. */
LP_TEST(observes_times_and_rows) {
  double past = lp_now_ms() - 3600e3;
  worker_note_pass(&worker, 3, 2000);
  worker_note_pass(&worker, 8, 500);
  expect("worker_pass_seconds_count", 2);
  expect("worker_pass_seconds_sum", 2.5);
  expect("worker_pass_rows_sum", 11);
  expect("worker_pass_rows_count", 2);
  expect("worker_pass_rows_bucket{le=\"4\"}", 1);
  expect("worker_pass_rows_bucket{le=\"8\"}", 2);
  for (int of = 0; of < WORKER_OF_COUNT; of++) {
    worker_note_queued(&worker, (worker_of)of, past);
    worker_note_answer(&worker, (worker_of)of, true, past);
    worker_note_answer(&worker, (worker_of)of, false, past);
    worker_note_answer(&worker, (worker_of)of, false, past);
    worker_note_answer(&worker, (worker_of)of, false, (double)NAN);
  }
  static const char *const whom[WORKER_OF_COUNT] = {"sessions", "contexts"};
  static const struct {
    const char *name;
    double count;
  } wanted[] = {{"queue", 1}, {"first_answer", 1}, {"between_answers", 2}};
  for (int of = 0; of < WORKER_OF_COUNT; of++)
    for (size_t i = 0; i < LP_COUNT(wanted); i++) {
      char name[96];
      snprintf(name, sizeof name, "worker_%s_seconds_count{of=\"%s\"}", wanted[i].name, whom[of]);
      expect(name, wanted[i].count);
      snprintf(name, sizeof name, "worker_%s_seconds_sum{of=\"%s\"}", wanted[i].name, whom[of]);
      ck_assert_double_ge(value_of(name), 3600 * wanted[i].count);
    }
}

LP_TEST(notes_without_figures_are_lost) {
  options.figures = NULL;
  worker_note_opened(&worker, WORKER_OF_SESSION);
  worker_note_dropped(&worker, WORKER_OF_SESSION, true);
  worker_note_refusal(&worker, WORKER_REFUSED_KEY);
  worker_note_failure(&worker);
  worker_note_queued(&worker, WORKER_OF_SESSION, 0);
  worker_note_pass(&worker, 1, 1);
  worker_note_answer(&worker, WORKER_OF_SESSION, true, 0);
  worker_note_now(&worker, &(worker_figures_now){.connections = 1});
  worker_note_end(&worker);
  lp_worker_figures_free(NULL);
  expect("worker_opened_total{of=\"sessions\"}", 0);
  expect("worker_failures_total", 0);
  expect("worker_pass_seconds_count", 0);
  expect("worker_up", 0);
}
