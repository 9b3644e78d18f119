/* SHA-256 and CRC-32C. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* SHA-256 (FIPS 180-4; sha256.c): init, update any number of times, then hex (64 digits and a NUL) or bytes ends it. */
typedef struct {
  uint32_t state[8];
  uint64_t length;
  uint8_t block[64];
} lp_sha256;
void lp_sha256_init(lp_sha256 *sha);
void lp_sha256_update(lp_sha256 *sha, const void *data, size_t size);
void lp_sha256_hex(lp_sha256 *sha, char out[65]);
void lp_sha256_bytes(lp_sha256 *sha, uint8_t out[32]);
/* CRC-32C (Castagnoli; crc32c.c): `crc` is the result for the bytes before these, 0 at the start. It detects damage,
 * not malice, at the speed of memory. */
uint32_t lp_crc32c(uint32_t crc, const void *data, size_t size);
/* The CRC-32C of two texts, one after the other, from those of each. */
uint32_t lp_crc32c_join(uint32_t first, uint32_t second, uint64_t second_size);
