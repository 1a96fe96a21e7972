// bits160.h -- one scan line as 160 bits, bit 0 leftmost, with rotation by pixel position.
//
// Two forms with one interface: `Bits160Words<Word>` for any machine (u32 words on the device, u64
// on hosts) and a 256-bit register where the compiler may use AVX2. Knows nothing of the TIA.
// Checked against bool[160] by tests/test_bits160.cpp.
#pragma once

#include "types.h"

#if defined(__AVX2__) && !defined(__CUDACC__)
#define SCANLINE_AVX2 1
#include <immintrin.h>
#else
#define SCANLINE_AVX2 0
#endif

namespace scanline {

// A short pattern before it is rotated to its place: bits 0-63 and 64-95.
struct Pattern96 {
  u64 low;
  u32 high;
};

template <class Word>
struct Bits160Words {
  static constexpr i32 kBits = 8 * static_cast<i32>(sizeof(Word));
  static constexpr i32 kWords = (160 + kBits - 1) / kBits;

  Word words[kWords];

  SCANLINE_HD static Bits160Words none() {
    Bits160Words result{};
    return result;
  }

  // Pixels begin <= x < end.
  SCANLINE_HD static Bits160Words span(i32 begin, i32 end) {
    Bits160Words result;
    for (i32 i = 0; i < kWords; ++i)
      result.words[i] =
          ones_below(end - i * kBits) & static_cast<Word>(~ones_below(begin - i * kBits));
    return result;
  }

  // The pattern with its bit 0 at pixel 0 <= position < 160; what leaves the line on the right
  // enters it on the left.
  SCANLINE_HD static Bits160Words place(Pattern96 pattern, i32 position) {
    Bits160Words result;
    for (i32 i = 0; i < kWords; ++i)
      result.words[i] =
          bits_from(pattern, i * kBits - position) | bits_from(pattern, i * kBits + 160 - position);
    return result & span(0, 160);
  }

  // 80 bits for each half of the line.
  SCANLINE_HD static Bits160Words halves(Pattern96 left, Pattern96 right) {
    Bits160Words result;
    for (i32 i = 0; i < kWords; ++i)
      result.words[i] = bits_from(left, i * kBits) | bits_from(right, i * kBits - 80);
    return result;
  }

  SCANLINE_HD bool any() const {
    Word sum = 0;
    for (i32 i = 0; i < kWords; ++i) sum |= words[i];
    return sum != 0;
  }

  // Pixels 32 * chunk and the 31 to the right of it.
  SCANLINE_HD u32 chunk(i32 index) const {
    const i32 bit = 32 * index;
    return static_cast<u32>(words[bit / kBits] >> (bit % kBits));
  }

  SCANLINE_HD friend Bits160Words operator&(Bits160Words a, Bits160Words b) {
    for (i32 i = 0; i < kWords; ++i) a.words[i] &= b.words[i];
    return a;
  }

  SCANLINE_HD friend Bits160Words operator|(Bits160Words a, Bits160Words b) {
    for (i32 i = 0; i < kWords; ++i) a.words[i] |= b.words[i];
    return a;
  }

  SCANLINE_HD friend Bits160Words without(Bits160Words a, Bits160Words b) {
    for (i32 i = 0; i < kWords; ++i) a.words[i] &= static_cast<Word>(~b.words[i]);
    return a;
  }

  SCANLINE_HD friend bool meet(Bits160Words a, Bits160Words b) { return (a & b).any(); }

 private:
  SCANLINE_HD static Word ones_below(i32 count) {
    if (count <= 0) return 0;
    return count >= kBits ? static_cast<Word>(~Word{0}) : static_cast<Word>((Word{1} << count) - 1);
  }

  // Bits first, first + 1, ... of the pattern; outside of it there are zeros.
  SCANLINE_HD static Word bits_from(Pattern96 pattern, i32 first) {
    u64 bits = 0;
    if (first <= -64 || first >= 96) return 0;
    if (first < 0) return static_cast<Word>(pattern.low << -first);
    if (first < 64) bits = pattern.low >> first;
    if (first == 0) return static_cast<Word>(bits);
    const u64 high = pattern.high;
    bits |= first < 64 ? high << (64 - first) : high >> (first - 64);
    return static_cast<Word>(bits);
  }
};

#if SCANLINE_AVX2

struct Bits160Avx2 {
  __m256i bits;

  static Bits160Avx2 none() { return {_mm256_setzero_si256()}; }

  static Bits160Avx2 span(i32 begin, i32 end) {
    return {_mm256_andnot_si256(ones_from(end), ones_from(begin))};
  }

  static Bits160Avx2 place(Pattern96 pattern, i32 position) {
    __m256i sum =
        _mm256_or_si256(shifted(pattern.low, position), shifted(pattern.low, position - 160));
    if (pattern.high != 0) {
      sum = _mm256_or_si256(sum, shifted(pattern.high, position + 64));
      sum = _mm256_or_si256(sum, shifted(pattern.high, position - 96));
    }
    return {_mm256_and_si256(sum, _mm256_setr_epi64x(-1, -1, 0xFFFFFFFFll, 0))};
  }

  static Bits160Avx2 halves(Pattern96 left, Pattern96 right) {
    const u64 left_high = left.high, right_high = right.high;
    return {_mm256_setr_epi64x(static_cast<i64>(left.low),
                               static_cast<i64>(left_high | (right.low << 16)),
                               static_cast<i64>((right.low >> 48) | (right_high << 16)), 0)};
  }

  bool any() const { return !_mm256_testz_si256(bits, bits); }

  u32 chunk(i32 index) const {
    alignas(32) u32 chunks[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(chunks), bits);
    return chunks[index];
  }

  friend Bits160Avx2 operator&(Bits160Avx2 a, Bits160Avx2 b) {
    return {_mm256_and_si256(a.bits, b.bits)};
  }
  friend Bits160Avx2 operator|(Bits160Avx2 a, Bits160Avx2 b) {
    return {_mm256_or_si256(a.bits, b.bits)};
  }
  friend Bits160Avx2 without(Bits160Avx2 a, Bits160Avx2 b) {
    return {_mm256_andnot_si256(b.bits, a.bits)};
  }
  friend bool meet(Bits160Avx2 a, Bits160Avx2 b) { return !_mm256_testz_si256(a.bits, b.bits); }

 private:
  // Variable shifts by 64 or more, negative counts included, give zero.
  static __m256i shifted(u64 pattern, i32 position) {
    const __m256i value = _mm256_set1_epi64x(static_cast<i64>(pattern));
    const __m256i starts = _mm256_setr_epi64x(0, 64, 128, 192);
    const __m256i left = _mm256_sub_epi64(_mm256_set1_epi64x(position), starts);
    const __m256i right = _mm256_sub_epi64(_mm256_setzero_si256(), left);
    return _mm256_or_si256(_mm256_sllv_epi64(value, left), _mm256_srlv_epi64(value, right));
  }

  // Bits position and above, 0 <= position <= 160.
  static __m256i ones_from(i32 position) {
    const __m256i starts = _mm256_setr_epi64x(0, 64, 128, 192);
    const __m256i left = _mm256_sub_epi64(_mm256_set1_epi64x(position), starts);
    // The high halves of the counts are 0 or -1; both must end as 0 where the count is negative.
    const __m256i negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), left);
    return _mm256_sllv_epi64(_mm256_set1_epi64x(-1), _mm256_andnot_si256(negative, left));
  }
};

using Bits160 = Bits160Avx2;

#elif defined(__CUDA_ARCH__)
using Bits160 = Bits160Words<u32>;
#else
using Bits160 = Bits160Words<u64>;
#endif

}  // namespace scanline
