/* Ranks with NCCL, a stand-in of which answers as each test says. The base of rank 1 of 3 is canned too. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/collective/collective.h"
#include "tests/runtime/collective/canned_nccl.h"
#include "tests/suite.h"

enum { RANKS = 3 };

static canned_nccl *library; /* NULL: there is none, or another one */

/* What the base answers. */
static struct {
  int gathers, broadcasts, given_up;
  int deaf_from;           /* the first gather that fails; 0: none */
  int failing, fails_from; /* a rank that fails at that gather and later ones; fails_from 0: none */
  bool mute, ended;
} base;

static bool base_broadcast(void *self, void *data, size_t size) {
  ck_assert_ptr_eq(self, &base);
  base.broadcasts++;
  if (size > sizeof(lp_nccl_id)) memset((char *)data + size - sizeof(lp_nccl_id), 7, sizeof(lp_nccl_id));
  return !base.mute;
}

static bool base_all_gather(void *self, const void *part, size_t size, void *all) {
  ck_assert_ptr_eq(self, &base);
  base.gathers++;
  if (base.deaf_from && base.gathers >= base.deaf_from) return false;
  for (int i = 0; i < RANKS; i++)
    memcpy((char *)all + (size_t)i * size, part, size);
  if (base.fails_from && base.gathers >= base.fails_from) ((char *)all)[base.failing] = 0;
  return true;
}

static void base_give_up(void *self) {
  ck_assert_ptr_eq(self, &base);
  base.given_up++;
}

static bool base_has_ended(void *self) {
  ck_assert_ptr_eq(self, &base);
  return base.ended;
}

static lp_diag *diag;
static lp_nccl *nccl;
static lp_collective ranks;

static void open_test(void) {
  void *file = dlopen("libnccl.so.2", RTLD_NOW);
  library = file ? dlsym(file, "lp_canned_nccl") : NULL;
  diag = lp_diag_create();
  if (library) *library = (canned_nccl){.version = 22105, .last_error = ""};
}

static void close_test(void) {
  lp_diag_free(diag);
}

LP_CASE(.setup = open_test, .teardown = close_test);

static lp_status open_rank(int32_t rank) {
  const lp_collective given = {.rank = rank,
                               .count = RANKS,
                               .self = &base,
                               .broadcast = base_broadcast,
                               .all_gather = base_all_gather,
                               .give_up = base_give_up,
                               .has_ended = base_has_ended};
  return lp_nccl_open(&given, &nccl, &ranks, diag);
}

static void expect_not_opened(int32_t rank, const char *text) {
  ck_assert_int_eq(open_rank(rank), LP_FAILED);
  ck_assert_ptr_null(nccl);
  ck_assert_uint_eq(lp_diag_error_count(diag), 1);
  ck_assert_msg(strstr(lp_diag_get(diag, 0)->text, text), "found '%s', '%s' wanted", lp_diag_get(diag, 0)->text, text);
}

LP_TEST(joins_and_gathers) {
  char part[4], all[12], stream;
  ck_assert_ptr_nonnull(library);
  ck_assert_int_eq(open_rank(1), LP_OK);
  ck_assert_int_eq(ranks.rank, 1);
  ck_assert_int_eq(ranks.count, RANKS);
  ck_assert_int_eq(library->ids, 0);
  ck_assert_int_eq(library->joined, 1);
  ck_assert_int_eq(library->rank, 1);
  ck_assert_int_eq(library->count, RANKS);
  ck_assert(ranks.gather_on_gpu(ranks.self, part, sizeof part, all, &stream));
  ck_assert_ptr_eq(library->part, part);
  ck_assert_ptr_eq(library->all, all);
  ck_assert_ptr_eq(library->stream, &stream);
  ck_assert_uint_eq(library->size, sizeof part);
  ck_assert_int_eq(library->type, LP_NCCL_INT8);
  ck_assert_str_eq(ranks.error(ranks.self), "");
  lp_nccl_close(nccl);
  ck_assert_int_eq(library->destroyed, 1);
  ck_assert_int_eq(library->aborted, 0);
  lp_nccl_close(NULL);
}

LP_TEST(rank_0_makes_the_id) {
  ck_assert_int_eq(open_rank(0), LP_OK);
  ck_assert_int_eq(library->ids, 1);
  ck_assert_int_eq(library->joined, 1);
  lp_nccl_close(nccl);
}

LP_TEST(passes_on_to_the_base) {
  char one = 1, all[RANKS] = {0};
  ck_assert_int_eq(open_rank(1), LP_OK);
  int gathers = base.gathers, broadcasts = base.broadcasts;
  ck_assert(ranks.all_gather(ranks.self, &one, 1, all));
  ck_assert_int_eq(all[2], 1);
  ck_assert(ranks.broadcast(ranks.self, &one, 1));
  ck_assert_int_eq(base.gathers, gathers + 1);
  ck_assert_int_eq(base.broadcasts, broadcasts + 1);
  base.deaf_from = 1;
  base.mute = true;
  ck_assert(!ranks.all_gather(ranks.self, &one, 1, all));
  ck_assert(!ranks.broadcast(ranks.self, &one, 1));
  lp_nccl_close(nccl);
}

LP_TEST(tells_of_the_end) {
  ck_assert_int_eq(open_rank(1), LP_OK);
  ck_assert(!ranks.has_ended(ranks.self));
  library->async_error = LP_NCCL_IN_PROGRESS; /* is no error */
  ck_assert(!ranks.has_ended(ranks.self));
  base.ended = true;
  ck_assert(ranks.has_ended(ranks.self));
  ck_assert_str_eq(ranks.error(ranks.self), "");
  lp_nccl_close(nccl); /* others do not come any more */
  ck_assert_int_eq(library->destroyed, 0);
  ck_assert_int_eq(library->aborted, 1);
}

LP_TEST(gives_up_once) {
  char part, all[RANKS];
  ck_assert_int_eq(open_rank(1), LP_OK);
  ranks.give_up(ranks.self);
  ck_assert_int_eq(base.given_up, 1);
  ck_assert_int_eq(library->aborted, 1);
  ck_assert(ranks.has_ended(ranks.self));
  ck_assert(!ranks.gather_on_gpu(ranks.self, &part, 1, all, NULL));
  ranks.give_up(ranks.self);
  lp_nccl_close(nccl);
  ck_assert_int_eq(library->aborted, 1);
  ck_assert_int_eq(library->destroyed, 0);
}

LP_TEST(keeps_the_first_error) {
  char part, all[RANKS];
  ck_assert_int_eq(open_rank(1), LP_OK);
  library->gather = LP_NCCL_SYSTEM_ERROR;
  library->last_error = "a card fell off";
  ck_assert(!ranks.gather_on_gpu(ranks.self, &part, 1, all, NULL));
  ck_assert_str_eq(ranks.error(ranks.self),
                   "NCCL 2.21.5: ncclAllGather failed (unhandled system error): a card fell off");
  library->async_error = LP_NCCL_INTERNAL_ERROR;
  ck_assert(ranks.has_ended(ranks.self));
  ck_assert_str_eq(ranks.error(ranks.self),
                   "NCCL 2.21.5: ncclAllGather failed (unhandled system error): a card fell off");
  lp_nccl_close(nccl);
}

LP_TEST(names_versions_and_errors) {
  static const struct {
    int version;
    const char *text;
  } versions[] = {{2409, "NCCL 2.4.9: "}, {2813, "NCCL 2.8.13: "}, {20900, "NCCL 2.9.0: "}, {22907, "NCCL 2.29.7: "}};
  for (size_t i = 0; i < LP_COUNT(versions); i++) {
    char text[128];
    *library = (canned_nccl){.version = versions[i].version, .async_error = LP_NCCL_REMOTE_ERROR};
    ck_assert_int_eq(open_rank(1), LP_OK);
    ck_assert(ranks.has_ended(ranks.self));
    snprintf(text, sizeof text, "%sa gather failed (another error)", versions[i].text);
    ck_assert_str_eq(ranks.error(ranks.self), text);
    lp_nccl_close(nccl);
  }
  *library = (canned_nccl){.version = 22105, .async = LP_NCCL_SYSTEM_ERROR};
  ck_assert_int_eq(open_rank(1), LP_OK);
  ck_assert(ranks.has_ended(ranks.self));
  ck_assert_str_eq(ranks.error(ranks.self), "NCCL 2.21.5: ncclCommGetAsyncError failed (unhandled system error)");
  lp_nccl_close(nccl);
}

LP_TEST(refuses_what_cannot_join) {
  library->init = LP_NCCL_SYSTEM_ERROR;
  expect_not_opened(1, "the GPU cannot join those of the other ranks: NCCL 2.21.5: ncclCommInitRank failed (unhandled "
                       "system error)");
  ck_assert_int_eq(library->destroyed + library->aborted, 0); /* there is no communicator */
  lp_diag_clear(diag);
  *library = (canned_nccl){.version = 22105, .id = LP_NCCL_SYSTEM_ERROR};
  expect_not_opened(0, "the GPU cannot join those of the other ranks: NCCL 2.21.5: ncclGetUniqueId failed");
  ck_assert_int_eq(library->joined, 0);
}

LP_TEST(fails_with_other_ranks) {
  base.failing = 2;
  base.fails_from = 1;
  expect_not_opened(1, "rank 2 has no NCCL");
  ck_assert_int_eq(library->joined, 0);
  lp_diag_clear(diag);
  base.gathers = 0;
  base.failing = 0;
  base.fails_from = 2;
  expect_not_opened(1, "rank 0 cannot join with its GPU");
  ck_assert_int_eq(library->destroyed, 1);
}

LP_TEST(fails_with_ranks_that_ended) {
  base.deaf_from = 1;
  expect_not_opened(1, "a rank of the sharded half has ended");
  lp_diag_clear(diag);
  base.gathers = base.deaf_from = 0;
  base.mute = true;
  expect_not_opened(1, "a rank of the sharded half has ended");
  ck_assert_int_eq(library->joined, 0);
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static int peer_calls;

static void peers_broadcast(void *data, size_t size) {
  peer_calls++;
  memset(data, 5, size);
}

static void peers_all_gather(const void *part, size_t size, void *all) {
  peer_calls++;
  for (size_t i = 0; i < RANKS; i++)
    memcpy((char *)all + i * size, part, size);
}

LP_TEST(processes_are_ranks) {
  const lp_peers peers = {.rank = 2, .count = RANKS, .broadcast = peers_broadcast, .all_gather = peers_all_gather};
  lp_collective of;
  char data[2] = {0}, part[2] = {8, 9}, all[2 * RANKS] = {0};
  lp_collective_of_peers(&peers, &of);
  ck_assert_int_eq(of.rank, 2);
  ck_assert_int_eq(of.count, RANKS);
  ck_assert(of.broadcast(of.self, data, sizeof data));
  ck_assert_int_eq(data[1], 5);
  ck_assert(of.all_gather(of.self, part, sizeof part, all));
  ck_assert_int_eq(all[5], 9);
  ck_assert_int_eq(peer_calls, 2);
  ck_assert(!of.give_up && !of.has_ended && !of.gather_on_gpu); /* all processes end together */
}
