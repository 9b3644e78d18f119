/* CRC-32C (Castagnoli): by the processor's instruction where it has one, else by table. */

#include "base/base.h"
#include "base/digest.h"

static const uint32_t polynomial = 0x82f63b78u; /* bits reversed */

static uint32_t update_by_table(uint32_t crc, const uint8_t *data, size_t size) {
  uint32_t table[256];
  for (uint32_t i = 0; i < 256; i++) {
    table[i] = i;
    for (int bit = 0; bit < 8; bit++)
      table[i] = (table[i] >> 1) ^ ((table[i] & 1) != 0 ? polynomial : 0);
  }
  for (size_t i = 0; i < size; i++)
    crc = (crc >> 8) ^ table[(crc ^ data[i]) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t update_by_instruction(uint32_t crc, const uint8_t *data,
                                                                        size_t size) {
  uint64_t wide = crc, word;
  for (; size >= sizeof word; data += sizeof word, size -= sizeof word) {
    memcpy(&word, data, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = (uint32_t)wide;
  for (; size > 0; data++, size--)
    crc = __builtin_ia32_crc32qi(crc, *data);
  return crc;
}

static bool has_instruction(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") != 0;
}
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>

static uint32_t update_by_instruction(uint32_t crc, const uint8_t *data, size_t size) {
  uint64_t word;
  for (; size >= sizeof word; data += sizeof word, size -= sizeof word) {
    memcpy(&word, data, sizeof word);
    crc = __crc32cd(crc, word);
  }
  for (; size > 0; data++, size--)
    crc = __crc32cb(crc, *data);
  return crc;
}

static bool has_instruction(void) {
  return true;
}
#else
#define update_by_instruction update_by_table
static bool has_instruction(void) {
  return false;
}
#endif

uint32_t lp_crc32c(uint32_t crc, const void *data, size_t size) {
  crc = ~crc;
  crc = has_instruction() ? update_by_instruction(crc, data, size) : update_by_table(crc, data, size);
  return ~crc;
}
