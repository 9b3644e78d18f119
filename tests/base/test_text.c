#include "base/map.h"
#include "base/utf8.h"
#include "tests/base/expect.h"
#include "tests/suite.h"

LP_TEST(a_vector_grows) {
  LP_VEC(int64_t) vec = {0};
  for (int64_t i = 0; i < 1000; i++)
    lp_vec_push(&vec, i * i);
  ck_assert_uint_eq(vec.count, 1000);
  for (size_t i = 0; i < vec.count; i++)
    ck_assert_int_eq(vec.data[i], (int64_t)(i * i));
  lp_vec_free(&vec);
  ck_assert_ptr_null(vec.data);
}

LP_TEST(a_buffer_holds_text_and_bytes) {
  lp_buf buf = {0};
  ck_assert_str_eq(lp_buf_text(&buf), "");
  lp_buf_puts(&buf, "a");
  lp_buf_printf(&buf, "%0*d", 200, 7);
  ck_assert_uint_eq(buf.size, 201);
  ck_assert_uint_eq(strlen(lp_buf_text(&buf)), 201);
  lp_buf_clear(&buf);
  lp_buf_append(&buf, "x\0y", 3);
  ck_assert_uint_eq(buf.size, 3);
  ck_assert_mem_eq(buf.data, "x\0y", 4);
  lp_buf_free(&buf);
}

LP_TEST(texts_are_compared) {
  ck_assert(lp_streq("a", "a") && lp_streq(NULL, NULL));
  ck_assert(!lp_streq("a", "b") && !lp_streq(NULL, "a") && !lp_streq("a", NULL));
  ck_assert(lp_has_prefix("layer.norm", "layer.") && !lp_has_prefix("lay", "layer."));
  ck_assert(lp_has_suffix("x.yaml", ".yaml") && !lp_has_suffix("yaml", ".yaml"));
}

/* The values are part of the contract: they may be stored. */
LP_TEST(hashes_are_stable) {
  ck_assert_uint_eq(lp_hash_bytes("", 0, 0), lp_hash_bytes("x", 0, 0));
  ck_assert_uint_ne(lp_hash_bytes("ab", 2, 0), lp_hash_bytes("ba", 2, 0));
  ck_assert_uint_ne(lp_hash_bytes("ab", 2, 0), lp_hash_bytes("ab", 2, 1));
  ck_assert_uint_eq(lp_hash_bytes("llmpart", 7, 0), 3568046456221682713u);
}

LP_TEST(a_map_keeps_the_order_of_insertion) {
  lp_map *map = lp_map_create();
  char key[32];
  ck_assert_ptr_null(lp_map_get(map, "absent"));
  for (intptr_t i = 0; i < 5000; i++) {
    snprintf(key, sizeof key, "key%td", i * 7919 % 5000);
    ck_assert_ptr_null(lp_map_put(map, key, (void *)(i + 1)));
  }
  ck_assert_uint_eq(lp_map_count(map), 5000);
  for (intptr_t i = 0; i < 5000; i++) {
    snprintf(key, sizeof key, "key%td", i * 7919 % 5000);
    ck_assert_str_eq(lp_map_key_at(map, (size_t)i), key);
    ck_assert_ptr_eq(lp_map_value_at(map, (size_t)i), (void *)(i + 1));
    ck_assert_ptr_eq(lp_map_get(map, key), (void *)(i + 1));
  }
  ck_assert(!lp_map_has(map, "key5000"));
  lp_map_free(map);
}

LP_TEST(a_map_replaces) {
  lp_map *map = lp_map_create();
  int a = 0, b = 0;
  char key[] = "k";
  ck_assert_ptr_null(lp_map_put(map, key, &a));
  key[0] = 'x'; /* the key was copied */
  ck_assert_ptr_eq(lp_map_put(map, "k", &b), &a);
  ck_assert_ptr_eq(lp_map_get(map, "k"), &b);
  ck_assert_ptr_null(lp_map_put(map, "null", NULL));
  ck_assert(lp_map_has(map, "null"));
  ck_assert_uint_eq(lp_map_count(map), 2);
  lp_map_free(map);
  lp_map_free(NULL);
}

/* White_Space of Unicode's PropList.txt. */
LP_TEST(spaces) {
  static const uint32_t runs[][2] = {{0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                                     {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                     {0x205F, 0x205F}, {0x3000, 0x3000}};
  for (uint32_t code = 0; code < 0x11000; code++) {
    bool wanted = false;
    for (size_t i = 0; i < LP_COUNT(runs); i++)
      wanted |= code >= runs[i][0] && code <= runs[i][1];
    if (lp_utf8_is_space(code) != wanted) ck_abort_msg("U+%04X", (unsigned)code);
  }
}
