/* Checksums of large files: in lanes, in chunks and by several threads, beside the definition bit by bit. */
#include <stdlib.h>

#include "base/digest.h"
#include "base/file.h"
#include "runtime/bundle/verifier.h"
#include "tests/suite.h"

enum { SIZE = (4 << 20) + 5, CHUNK = 1536 << 10, LANE = 32 << 10 };

static uint8_t *data;

static uint32_t bit_by_bit(const uint8_t *at, size_t size) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; i++) {
    crc ^= at[i];
    for (int bit = 0; bit < 8; bit++)
      crc = (crc >> 1) ^ (0x82f63b78u & -(crc & 1));
  }
  return ~crc;
}

static void setup(void) {
  data = lp_alloc(SIZE);
  uint32_t state = 1;
  for (size_t i = 0; i < SIZE; i++)
    data[i] = (uint8_t)((state = state * 1664525 + 1013904223) >> 24);
}

static void teardown(void) {
  free(data);
}

LP_CASE(.setup = setup, .teardown = teardown);

LP_TEST(sums_of_any_size) {
  static const size_t sizes[] = {1, 7, 8, 9, 3 * LANE - 1, 3 * LANE, 3 * LANE + 1, 6 * LANE + 13};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const uint32_t sum = bit_by_bit(data + 3, sizes[i]);
    ck_assert_uint_eq(lp_crc32c(0, data + 3, sizes[i]), sum);
    for (size_t first = 0; first <= sizes[i]; first += 1 + sizes[i] / 3) {
      const size_t second = sizes[i] - first;
      const uint32_t joined =
          lp_crc32c_join(lp_crc32c(0, data + 3, first), lp_crc32c(0, data + 3 + first, second), second);
      ck_assert_uint_eq(joined, sum);
      ck_assert_uint_eq(lp_crc32c(lp_crc32c(0, data + 3, first), data + 3 + first, second), sum);
    }
  }
}

/* Three files: of some chunks and a rest, of whole chunks, of nothing. */
LP_TEST(any_changed_byte_is_found) {
  static const size_t sizes[] = {SIZE - CHUNK, CHUNK, 0};
  static const char *const paths[] = {"first", "second", "third"};
  static const size_t changed[] = {0, CHUNK - 1, CHUNK, SIZE - CHUNK - 1, SIZE - CHUNK, SIZE - 1, SIZE};
  lp_mapping mapping[3];
  lp_file_desc want[3] = {{0}};
  for (size_t i = 0, at = 0; i < 3; at += sizes[i++]) {
    mapping[i] = (lp_mapping){.data = data + at, .size = sizes[i]};
    want[i].crc32c = bit_by_bit(data + at, sizes[i]);
  }
  for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
    lp_verifier *verifier = lp_verifier_create();
    for (size_t file = 0; file < 3; file++)
      lp_verifier_add(verifier, paths[file], &want[file], &mapping[file]);
    const bool damaged = changed[i] < SIZE;
    if (damaged) data[changed[i]] ^= 4;
    lp_verifier_start(verifier);
    for (int asked = 0; asked < 2; asked++) {
      lp_diag *diag = lp_diag_create();
      ck_assert_int_eq(lp_verifier_await(verifier, diag), damaged ? LP_FAILED : LP_OK);
      if (damaged) ck_assert_str_eq(lp_diag_get(diag, 0)->loc.file, paths[changed[i] >= sizes[0]]);
      lp_diag_free(diag);
    }
    if (damaged) data[changed[i]] ^= 4;
    lp_verifier_free(verifier);
  }
}
