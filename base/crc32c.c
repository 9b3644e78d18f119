/* CRC-32C (Castagnoli): by the processor's instruction where it has one, else by table. */
#include "base/base.h"
#include "base/digest.h"

static const uint32_t polynomial = 0x82f63b78u; /* bits reversed */

/* The product of two polynomials over GF(2), modulo the polynomial; bit 31 is the coefficient of x^0. */
static uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    product ^= (a & 1u << 31) != 0 ? b : 0;
    b = (b >> 1) ^ ((b & 1) != 0 ? polynomial : 0);
  }
  return product;
}

/* x^(8 * bytes): the factor by which as many zero bytes change a sum. */
static uint32_t power_of_bytes(uint64_t bytes) {
  uint32_t power = 1u << 31, square = 1u << (31 - 8);
  for (; bytes > 0; bytes >>= 1, square = multiply(square, square))
    if ((bytes & 1) != 0) power = multiply(power, square);
  return power;
}

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
#define WITH_INSTRUCTION __attribute__((target("sse4.2")))
#define UPDATE_WORD(crc, word) ((uint32_t)__builtin_ia32_crc32di(crc, word))
#define UPDATE_BYTE(crc, byte) __builtin_ia32_crc32qi(crc, byte)

static bool has_instruction(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") != 0;
}
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define WITH_INSTRUCTION
#define UPDATE_WORD(crc, word) __crc32cd(crc, word)
#define UPDATE_BYTE(crc, byte) __crc32cb(crc, byte)

static bool has_instruction(void) {
  return true;
}
#endif

#ifdef WITH_INSTRUCTION
/* The instruction takes three cycles, but one can begin in each. So long data are read as three lanes. */
enum { LANE = 32 << 10, LANES = 3, WORD = 8 };

static uint64_t word_at(const uint8_t *data) {
  uint64_t word;
  memcpy(&word, data, sizeof word);
  return word;
}

WITH_INSTRUCTION static uint32_t update_by_instruction(uint32_t crc, const uint8_t *data, size_t size) {
  const uint32_t shift = size >= LANES * LANE ? power_of_bytes(LANE) : 0;
  for (; size >= LANES * LANE; data += LANES * LANE, size -= LANES * LANE) {
    uint32_t second = 0, third = 0;
    for (int i = 0; i < LANE; i += WORD) {
      crc = UPDATE_WORD(crc, word_at(data + i));
      second = UPDATE_WORD(second, word_at(data + LANE + i));
      third = UPDATE_WORD(third, word_at(data + 2 * LANE + i));
    }
    crc = multiply(multiply(crc, shift) ^ second, shift) ^ third;
  }
  for (; size >= WORD; data += WORD, size -= WORD)
    crc = UPDATE_WORD(crc, word_at(data));
  for (; size > 0; data++, size--)
    crc = UPDATE_BYTE(crc, *data);
  return crc;
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

uint32_t lp_crc32c_join(uint32_t first, uint32_t second, uint64_t second_size) {
  return multiply(first, power_of_bytes(second_size)) ^ second;
}
