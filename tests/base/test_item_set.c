/* Sets of items: their numbers follow the order of insertion, and equal sets are one. */
#include "base/item_set.h"
#include "base/random.h"
#include "tests/suite.h"

enum { ITEMS = 3000, DISTINCT = 1000 };

typedef struct {
  int32_t key, of_key;
} item;

static item draw(uint64_t seed, uint64_t i) {
  const int32_t key = (int32_t)(lp_random_uniform(seed, i, 0) * (double)DISTINCT);
  return (item){key, -key};
}

LP_TEST(numbers_follow_the_order) {
  lp_item_set set = {.size = sizeof(item)};
  int32_t number[DISTINCT], known = 0;
  memset(number, -1, sizeof number);
  for (uint64_t i = 0; i < ITEMS; i++) {
    const item one = draw(1, i);
    if (number[one.key] < 0) number[one.key] = known++;
    ck_assert_int_eq(lp_item_set_add(&set, &one), number[one.key]);
    ck_assert_int_eq((int32_t)set.count, known);
    const item *kept = set.data;
    ck_assert_int_eq(kept[number[one.key]].key, one.key);
  }
  ck_assert_int_gt(known, DISTINCT / 2);
  lp_item_set_free(&set);
}

static lp_item_set first_items(uint64_t seed, uint64_t count) {
  lp_item_set set = {.size = sizeof(item)};
  for (uint64_t i = 0; i < count; i++) {
    const item one = draw(seed, i);
    (void)lp_item_set_add(&set, &one);
  }
  return set;
}

LP_TEST(equal_sets_are_one) {
  lp_item_sets sets = {0};
  const struct {
    uint64_t seed, count;
    int32_t number;
  } added[] = {{1, 100, 0}, {1, 0, 1}, {2, 100, 2}, {1, 99, 3}, {1, 100, 0}, {2, 100, 2}, {2, 0, 1}, {1, 99, 3}};
  for (size_t i = 0; i < LP_COUNT(added); i++) {
    lp_item_set set = first_items(added[i].seed, added[i].count);
    ck_assert_int_eq(lp_item_sets_add(&sets, &set), added[i].number);
    ck_assert_ptr_null(set.data);
  }
  ck_assert_uint_eq(sets.count, 4);
  lp_item_sets_free(&sets);
}
