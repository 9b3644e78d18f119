#include <string.h>

#include "tests/base/expect.h"
#include "tests/suite.h"

LP_TEST(memory_is_zeroed_and_aligned) {
  lp_arena *arena = lp_arena_create();
  for (int round = 0; round < 3; round++) {
    for (size_t size = 0; size < 300000; size = size * 3 + 1) {
      unsigned char *p = lp_arena_alloc(arena, size);
      ck_assert_uint_eq((uintptr_t)p % 16, 0);
      for (size_t i = 0; i < size; i++)
        expect_true(p[i] == 0);
      memset(p, 0xab, size);
    }
    lp_arena_reset(arena);
  }
  lp_arena_free(arena);
}

LP_TEST(allocations_do_not_overlap) {
  enum { COUNT = 3000 };
  lp_arena *arena = lp_arena_create();
  unsigned char *p[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    p[i] = lp_arena_alloc(arena, 1 + i % 97 * (i % 13));
    memset(p[i], (int)(i % 251), 1 + i % 97 * (i % 13));
  }
  for (size_t i = 0; i < COUNT; i++)
    for (size_t j = 0; j < 1 + i % 97 * (i % 13); j++)
      expect_true(p[i][j] == i % 251);
  lp_arena_free(arena);
}

LP_TEST(reset_returns_to_the_first_block) {
  lp_arena *arena = lp_arena_create();
  size_t before = lp_arena_bytes(arena);
  lp_arena_alloc(arena, 10 << 20);
  lp_arena_alloc(arena, 20 << 20);
  ck_assert_uint_ge(lp_arena_bytes(arena), 30 << 20);
  lp_arena_reset(arena);
  ck_assert_uint_eq(lp_arena_bytes(arena), before);
  lp_arena_free(arena);
}

LP_TEST(texts_are_copied) {
  lp_arena *arena = lp_arena_create();
  char text[] = "hello";
  char *whole = lp_arena_strdup(arena, text), *part = lp_arena_strndup(arena, text, 2);
  text[0] = 'x';
  ck_assert_str_eq(whole, "hello");
  ck_assert_str_eq(part, "he");
  ck_assert_str_eq(lp_arena_format(arena, "%d-%s", 7, part), "7-he");
  ck_assert_mem_eq(lp_arena_copy(arena, "ab", 2), "ab", 2);
  lp_arena_free(arena);
  lp_arena_free(NULL);
}

LP_TEST(a_limit_is_kept) {
  lp_arena *arena = lp_arena_create();
  lp_buf text = {.arena = arena};
  lp_arena_limit(arena, 1 << 20);
  ck_assert_ptr_null(lp_arena_try(arena, SIZE_MAX));
  ck_assert(lp_arena_is_full(arena));
  lp_arena_free(arena);
  text.arena = arena = lp_arena_create();
  lp_arena_limit(arena, 1 << 20);
  while (!lp_arena_is_full(arena))
    lp_buf_puts(&text, "0123456789abcdef");
  ck_assert_uint_le(lp_arena_bytes(arena), 1 << 20);
  ck_assert_uint_ge(text.size, 1 << 17);
  ck_assert_uint_eq(text.size % 16, 0);
  ck_assert_uint_eq(strspn(text.data, "0123456789abcdef"), text.size);
  ck_assert_ptr_null(lp_arena_try(arena, 1 << 20));
  ck_assert_ptr_nonnull(lp_arena_try(arena, 16)); /* what still has room */
  lp_buf_free(&text);
  lp_arena_free(arena);
}

LP_SIGNAL_TEST(an_overflowing_array_aborts, SIGABRT) {
  lp_arena_array(lp_arena_create(), SIZE_MAX / 2, 3);
}

LP_TEST(sizes_are_checked) {
  size_t size = 0;
  int64_t number = 0;
  ck_assert(lp_size_mul(3, 4, &size) && size == 12);
  ck_assert(!lp_size_mul(SIZE_MAX, 2, &size));
  ck_assert(!lp_size_add(SIZE_MAX, 1, &size));
  ck_assert(lp_i64_mul(-3, 4, &number) && number == -12);
  ck_assert(!lp_i64_mul(INT64_MIN, -1, &number));
  ck_assert(!lp_i64_add(INT64_MAX, 1, &number));
}
