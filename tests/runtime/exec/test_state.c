/* Paged KV caches take memory for the rows that are there; the kernel counts it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/bundle/bundle.h"
#include "runtime/exec/state.h"
#include "tests/runtime/toy/toy_run.h"
#include "tests/suite.h"

/* The bytes of the region that are in memory. */
static size_t resident(const lp_states *states) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (states->region_bytes + page - 1) / page, count = 0;
  unsigned char *in = lp_alloc(pages);
  ck_assert_int_eq(mincore(states->region, states->region_bytes, in), 0);
  for (size_t i = 0; i < pages; i++)
    count += in[i] & 1;
  free(in);
  return count * page;
}

static void write_rows(lp_states *states, const int64_t *sym, int64_t rows) {
  int64_t of[LP_MAX_SYMBOLS];
  size_t bytes = 0;
  lp_diag *diag = lp_diag_create();
  memcpy(of, sym, sizeof of);
  of[LP_SYM_P] = rows;
  of[LP_SYM_S] = 0;
  for (int32_t i = 0; i < states->manifest->state_count; i++) {
    ck_assert(lp_states_rows_bytes(states, i, of, &bytes));
    char *ones = lp_alloc(bytes + 1);
    memset(ones, 1, bytes);
    ck_assert_int_eq(lp_states_unpack(states, i, of, ones, diag), LP_OK);
    free(ones);
  }
  lp_diag_free(diag);
}

LP_TEST(rows_take_pages) {
  lp_bundle *bundle = toy_bundle_make(&(toy_placement){.prefill = "dddddd"}, LP_LOAD_DEVICE);
  lp_diag *diag = lp_diag_create();
  lp_states states;
  lp_states_init(&states, &bundle->manifest, LP_SIDE_DEVICE);
  states.paged = true;
  int64_t sym[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_C] = 1001};
  sym[LP_SYM_C] = lp_states_whole_pages(&states, sym);
  ck_assert_int_ge(sym[LP_SYM_C], 1001);
  ck_assert_int_eq(lp_states_reserve(&states, sym, diag), LP_OK);
  ck_assert_uint_eq(resident(&states), 0);
  size_t whole = 0;
  ck_assert(lp_states_bytes_of_rows(&states, sym, sym[LP_SYM_C], &whole));
  for (int64_t rows = 1; rows < 1001; rows += 250) {
    size_t bytes = 0;
    ck_assert(lp_states_bytes_of_rows(&states, sym, rows, &bytes));
    write_rows(&states, sym, rows);
    ck_assert_uint_eq(resident(&states), bytes);
    ck_assert_uint_le(bytes, whole);
  }
  write_rows(&states, sym, 1000);
  for (int64_t rows = 1000; rows > 0; rows -= 333) {
    size_t bytes = 0;
    ck_assert(lp_states_bytes_of_rows(&states, sym, rows, &bytes));
    lp_states_trim(&states, sym, rows);
    ck_assert_uint_eq(resident(&states), bytes);
    int64_t of[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_C] = sym[LP_SYM_C], [LP_SYM_P] = rows};
    char *kept = lp_alloc(whole);
    size_t size = 0;
    ck_assert(lp_states_rows_bytes(&states, 0, of, &size));
    ck_assert_int_eq(lp_states_pack(&states, 0, of, kept, diag), LP_OK);
    for (size_t i = 0; i < size; i++)
      ck_assert_int_eq(kept[i], 1);
    free(kept);
  }
  lp_states_free(&states);
  lp_diag_free(diag);
  lp_bundle_free(bundle);
}

/* What states hold grows with the rows that passes were to write, and shrinks when rows are given back. */
LP_TEST(states_know_what_they_hold) {
  lp_bundle *bundle = toy_bundle_make(&(toy_placement){.prefill = "dddddd"}, LP_LOAD_DEVICE);
  lp_states states;
  lp_states_init(&states, &bundle->manifest, LP_SIDE_DEVICE);
  states.paged = true;
  int64_t sym[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 1, [LP_SYM_C] = 512};
  ck_assert_uint_eq(lp_states_held(&states), 0);
  for (sym[LP_SYM_P] = 0; sym[LP_SYM_P] < 512; sym[LP_SYM_P] += 64) {
    sym[LP_SYM_S] = 64;
    ck_assert_int_eq(lp_states_reserve(&states, sym, NULL), LP_OK);
    write_rows(&states, sym, sym[LP_SYM_P] + 64);
    ck_assert_uint_eq(lp_states_held(&states), resident(&states));
  }
  sym[LP_SYM_P] = 10; /* rows that a run writes again still have memory after them */
  ck_assert_int_eq(lp_states_reserve(&states, sym, NULL), LP_OK);
  ck_assert_uint_eq(lp_states_held(&states), resident(&states));
  lp_states_trim(&states, sym, 100);
  ck_assert_uint_eq(lp_states_held(&states), resident(&states));
  ck_assert_uint_lt(lp_states_held(&states), states.region_bytes);
  lp_states_drop(&states);
  ck_assert_uint_eq(lp_states_held(&states), 0);
  states.paged = false;
  ck_assert_int_eq(lp_states_reserve(&states, sym, NULL), LP_OK);
  ck_assert_uint_eq(lp_states_held(&states), states.region_bytes);
  lp_states_free(&states);
  lp_bundle_free(bundle);
}

/* A capacity of any size, and rows that share pages with those of other runs: never less than what is in memory. */
LP_TEST(rows_of_runs_share_pages) {
  lp_bundle *bundle = toy_bundle_make(&(toy_placement){.prefill = "dddddd"}, LP_LOAD_DEVICE);
  lp_diag *diag = lp_diag_create();
  for (int64_t batch = 1; batch < 4; batch++)
    for (int64_t capacity = 7; capacity < 300; capacity += 31) {
      lp_states states;
      size_t bytes = 0;
      lp_states_init(&states, &bundle->manifest, LP_SIDE_DEVICE);
      states.paged = true;
      const int64_t sym[LP_MAX_SYMBOLS] = {[LP_SYM_B] = batch, [LP_SYM_C] = capacity};
      ck_assert_int_eq(lp_states_reserve(&states, sym, diag), LP_OK);
      for (int64_t rows = 1; rows <= capacity; rows += 6) {
        write_rows(&states, sym, rows);
        ck_assert(lp_states_bytes_of_rows(&states, sym, rows, &bytes));
        ck_assert_uint_ge(bytes, resident(&states));
      }
      lp_states_trim(&states, sym, capacity / 2);
      ck_assert(lp_states_bytes_of_rows(&states, sym, capacity / 2, &bytes));
      ck_assert_uint_ge(bytes, resident(&states));
      lp_states_free(&states);
    }
  lp_diag_free(diag);
  lp_bundle_free(bundle);
}

/* Caches that grow keep the rows of their sequences; those of another batch begin empty. */
LP_LOOP_TEST(growing_keeps_rows, 0, 2) {
  enum { ROWS = 5 };
  lp_bundle *bundle = toy_bundle_make(&(toy_placement){.prefill = "dddddd"}, LP_LOAD_DEVICE);
  lp_diag *diag = lp_diag_create();
  lp_states states;
  lp_states_init(&states, &bundle->manifest, LP_SIDE_DEVICE);
  int64_t sym[LP_MAX_SYMBOLS] = {[LP_SYM_B] = 2, [LP_SYM_C] = 8};
  ck_assert_int_eq(lp_states_reserve(&states, sym, diag), LP_OK);
  write_rows(&states, sym, ROWS);
  sym[LP_SYM_P] = ROWS;
  sym[LP_SYM_C] = 64;
  if (_i == 1) sym[LP_SYM_B] = 3;
  ck_assert_int_eq(lp_states_reserve(&states, sym, diag), LP_OK);
  for (int32_t i = 0; i < states.manifest->state_count; i++) {
    size_t size = 0;
    ck_assert(lp_states_rows_bytes(&states, i, sym, &size));
    char *kept = lp_alloc(size);
    ck_assert_int_eq(lp_states_pack(&states, i, sym, kept, diag), LP_OK);
    for (size_t at = 0; at < size; at++)
      ck_assert_int_eq(kept[at], _i == 0);
    free(kept);
  }
  lp_states_free(&states);
  lp_diag_free(diag);
  lp_bundle_free(bundle);
}
