/* SHA-256 (FIPS 180-4), by the processor's instructions where it has them. */
#include "base/base.h"
#include "base/digest.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) {
  return x >> n | x << (32 - n);
}

static uint32_t load_be32(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void compress_plain(uint32_t state[8], const uint8_t *block) {
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++)
    w[i] = load_be32(block + 4 * i);
  for (int i = 16; i < 64; i++) {
    uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  memcpy(v, state, sizeof v);
  for (int i = 0; i < 64; i++) { /* h of one round is g of the round before: the indices rotate instead of the values */
    uint32_t a = v[-i & 7], b = v[(1 - i) & 7], c = v[(2 - i) & 7];
    uint32_t e = v[(4 - i) & 7], f = v[(5 - i) & 7], g = v[(6 - i) & 7];
    uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    uint32_t t1 = v[(7 - i) & 7] + s1 + ((e & f) ^ (~e & g)) + round_constant[i] + w[i];
    uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    v[(3 - i) & 7] += t1;
    v[(7 - i) & 7] = t1 + s0 + ((a & b) ^ (a & c) ^ (b & c));
  }
  for (int i = 0; i < 8; i++)
    state[i] += v[i];
}

#if defined(__x86_64__)
/* Two registers hold the state as ABEF and CDGH. One instruction computes two rounds, another half of the schedule. */
__attribute__((target("sha,sse4.1"))) static void compress_x86(uint32_t state[8], const uint8_t *data, size_t blocks) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
  __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
  __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0), w[4];
  for (; blocks > 0; blocks--, data += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    for (int i = 0; i < 16; i++) {
      __m128i *now = &w[i & 3];
      if (i < 4) {
        *now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)data + i), big_endian);
      } else {
        const __m128i last = w[(i + 3) & 3];
        *now = _mm_sha256msg2_epu32(
            _mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) & 3]), _mm_alignr_epi8(last, w[(i + 2) & 3], 4)), last);
      }
      __m128i sum = _mm_add_epi32(*now, _mm_loadu_si128((const __m128i *)(round_constant + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  low = _mm_shuffle_epi32(abef, 0x1b);  /* FEBA */
  high = _mm_shuffle_epi32(cdgh, 0xb1); /* DCHG */
  _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
  _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}
#endif

static void compress(uint32_t state[8], const uint8_t *data, size_t blocks) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sha") && __builtin_cpu_supports("sse4.1")) {
    compress_x86(state, data, blocks);
    return;
  }
#endif
  for (; blocks > 0; blocks--, data += 64)
    compress_plain(state, data);
}

void lp_sha256_init(lp_sha256 *sha) {
  *sha = (lp_sha256){
      .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void lp_sha256_update(lp_sha256 *sha, const void *data, size_t size) {
  const uint8_t *bytes = data;
  size_t filled = (size_t)(sha->length % 64);
  sha->length += size;
  if (filled && size) {
    size_t take = size < 64 - filled ? size : 64 - filled;
    memcpy(sha->block + filled, bytes, take);
    bytes += take;
    size -= take;
    if (filled + take < 64) return;
    compress(sha->state, sha->block, 1);
  }
  compress(sha->state, bytes, size / 64);
  bytes += size / 64 * 64;
  size %= 64;
  if (size) memcpy(sha->block, bytes, size);
}

static void finish(lp_sha256 *sha) {
  uint64_t bit_length = sha->length * 8;
  uint8_t padding[72] = {0x80}, length[8];
  size_t zeros = (size_t)((119 - sha->length % 64) % 64);
  lp_sha256_update(sha, padding, 1 + zeros);
  for (int i = 0; i < 8; i++)
    length[i] = (uint8_t)(bit_length >> (56 - 8 * i));
  lp_sha256_update(sha, length, sizeof length);
}

void lp_sha256_bytes(lp_sha256 *sha, uint8_t out[32]) {
  finish(sha);
  for (int i = 0; i < 32; i++)
    out[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

void lp_sha256_hex(lp_sha256 *sha, char out[65]) {
  finish(sha);
  for (int i = 0; i < 8; i++)
    snprintf(out + 8 * i, 9, "%08x", (unsigned)sha->state[i]);
}
