// md5.h -- the MD5 digest (RFC 1321) of a ROM file, as two words.
//
// Only a name for dumps, not a protection against anything.
#pragma once

#include "types.h"

namespace scanline {

struct Md5Digest {
  u64 high, low;  // the usual 32 hexadecimal digits, read as one big-endian number
};

namespace md5 {

constexpr u32 kBlockBytes = 64;

inline u32 rotate_left(u32 x, u32 n) { return (x << n) | (x >> (32 - n)); }

// Byte i of the padded message: 0x80, zeros, then the length in bits.
inline u8 padded_byte(const u8* bytes, u32 size, u32 padded_size, u32 i) {
  if (i < size) return bytes[i];
  if (i == size) return 0x80;
  if (i < padded_size - 8) return 0;
  return u8((u64(size) * 8) >> (8 * (i - (padded_size - 8))));
}

inline u32 sine_constant(u32 i) {
  static constexpr u32 kSine[64] = {
      0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
      0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
      0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
      0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
      0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
      0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
      0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
      0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
      0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
      0xeb86d391};
  return kSine[i];
}

inline void mix_block(u32 digest[4], const u32 words[16]) {
  static constexpr u8 kRotation[4][4] = {
      {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  static constexpr u8 kFactor[4] = {1, 5, 3, 7}, kOffset[4] = {0, 1, 5, 0};
  u32 a = digest[0], b = digest[1], c = digest[2], d = digest[3];
  for (u32 i = 0; i < 64; ++i) {
    const u32 round = i / 16;
    const u32 f = round == 0   ? (b & c) | (~b & d)
                  : round == 1 ? (d & b) | (~d & c)
                  : round == 2 ? b ^ c ^ d
                               : c ^ (b | ~d);
    const u32 word = words[(kFactor[round] * i + kOffset[round]) % 16];
    const u32 sum = a + f + sine_constant(i) + word;
    a = d;
    d = c;
    c = b;
    b += rotate_left(sum, kRotation[round][i % 4]);
  }
  digest[0] += a;
  digest[1] += b;
  digest[2] += c;
  digest[3] += d;
}

inline u64 byte_swapped_pair(u32 first, u32 second) {
  u64 value = 0;
  for (u32 i = 0; i < 4; ++i) value = (value << 8) | ((first >> (8 * i)) & 0xFF);
  for (u32 i = 0; i < 4; ++i) value = (value << 8) | ((second >> (8 * i)) & 0xFF);
  return value;
}

}  // namespace md5

inline Md5Digest md5_of(const u8* bytes, u32 size) {
  const u32 padded_size = (size + 8) / md5::kBlockBytes * md5::kBlockBytes + md5::kBlockBytes;
  u32 digest[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (u32 start = 0; start < padded_size; start += md5::kBlockBytes) {
    u32 words[16] = {};
    for (u32 i = 0; i < md5::kBlockBytes; ++i) {
      words[i / 4] |= u32(md5::padded_byte(bytes, size, padded_size, start + i)) << (8 * (i % 4));
    }
    md5::mix_block(digest, words);
  }
  return {md5::byte_swapped_pair(digest[0], digest[1]),
          md5::byte_swapped_pair(digest[2], digest[3])};
}

}  // namespace scanline
