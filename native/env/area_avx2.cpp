// area_avx2.cpp -- the row operations of the hot pass with 256-bit registers.
//
// This file alone is built with -mavx2 and is entered only where the processor has it. It uses
// nothing from the standard library but memcpy, so that no function shared with other files can
// be emitted with these instructions. Products and sums stay separate, as in the portable version.
// The number of taps of the usual sizes is a template argument: the loops over them vanish.
#include "area_kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>

namespace scanline {
namespace {

SCANLINE_INLINE __m256i load(const u8* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
SCANLINE_INLINE __m128i load_half(const u8* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
SCANLINE_INLINE void store(u8* at, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), value);
}

// Every second of 32 values, in both halves of a register.
SCANLINE_INLINE __m256i even_values(const u8* values) {
  const __m128i even = _mm_set1_epi16(0x00FF);
  const __m128i low = _mm_and_si128(load_half(values), even);
  const __m128i high = _mm_and_si128(load_half(values + 16), even);
  return _mm256_broadcastsi128_si256(_mm_packus_epi16(low, high));
}

template <i32 kTapsX, i32 kTapsY>  // 0: as the plan says
struct Avx2Kernels {
  explicit Avx2Kernels(const u8* values) : values(values) {
    if (values == nullptr) return;
    for (i32 k = 0; k < 8; ++k) table[k] = even_values(values + 32 * k);
  }
  const u8* values;
  __m256i table[8];  // the 128 values of the even indices

  static bool same(const u8* a, const u8* b) {
    __m256i difference = _mm256_xor_si256(load(a), load(b));
    for (i32 x = 32; x < kScreenWidth; x += 32) {
      difference = _mm256_or_si256(difference, _mm256_xor_si256(load(a + x), load(b + x)));
    }
    return _mm256_testz_si256(difference, difference) != 0;
  }

  void translate(const u8* line, u8* out) const {
    if (values == nullptr) {
      for (i32 x = 0; x < kScreenWidth; x += 32) store(out + x, load(line + x));
    } else if (any_odd(line)) {
      for (i32 x = 0; x < kScreenWidth; ++x) out[x] = values[line[x]];
    } else {
      for (i32 x = 0; x < kScreenWidth; x += 32) store(out + x, even_translated(load(line + x)));
    }
  }

  // Odd indices exist in partial frames and in PAL games only.
  static bool any_odd(const u8* line) {
    __m256i all = load(line);
    for (i32 x = 32; x < kScreenWidth; x += 32) all = _mm256_or_si256(all, load(line + x));
    return _mm256_testz_si256(all, _mm256_set1_epi8(1)) == 0;
  }

  // A table of 128 values as eight byte shuffles. Adding 0x70 with saturation sets the top bit of
  // every byte outside the shuffle's 16 values, which makes it contribute 0.
  __m256i even_translated(__m256i indices) const {
    __m256i place = _mm256_srli_epi16(indices, 1);
    __m256i result = _mm256_setzero_si256();
    for (i32 k = 0; k < 8; ++k) {
      const __m256i inside = _mm256_adds_epu8(place, _mm256_set1_epi8(0x70));
      result = _mm256_or_si256(result, _mm256_shuffle_epi8(table[k], inside));
      place = _mm256_sub_epi8(place, _mm256_set1_epi8(16));
    }
    return result;
  }

  static void keep_larger(const u8* other, u8* out) {
    for (i32 x = 0; x < kScreenWidth; x += 32) {
      store(out + x, _mm256_max_epu8(load(other + x), load(out + x)));
    }
  }

  // Tap t of eight neighbouring cells lies in the 16 bytes from the first cell's tap t on, at the
  // same places for every t: one shuffle serves all taps.
  static void horizontal(const u8* line, const AreaPlan& plan, float* out) {
    const i32 num_taps = kTapsX > 0 ? kTapsX : plan.taps_x;
    for (i32 x = 0; x < plan.padded_width; x += 8) {
      const u8* from = line + plan.first_x[x];
      const __m128i places = load_half(plan.shuffle_x + 2 * x);
      __m256 sum = _mm256_setzero_ps();
      for (i32 tap = 0; tap < num_taps; ++tap) {
        const __m128i bytes = _mm_shuffle_epi8(load_half(from + tap), places);
        const __m256 pixels = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
        const __m256 weight = _mm256_loadu_ps(plan.weight_x + tap * plan.padded_width + x);
        sum = _mm256_add_ps(sum, _mm256_mul_ps(pixels, weight));
      }
      _mm256_store_ps(out + x, sum);
    }
  }

  static void vertical(const float* const* lines, const float* weights, const AreaPlan& plan,
                       u8* target) {
    const i32 num_taps = kTapsY > 0 ? kTapsY : plan.taps_y;
    alignas(32) u8 row[kMaxAreaWidth];
    for (i32 x = 0; x < plan.padded_width; x += 8) {
      __m256 sum = _mm256_mul_ps(_mm256_broadcast_ss(weights), _mm256_load_ps(lines[0] + x));
      for (i32 tap = 1; tap < num_taps; ++tap) {
        const __m256 weight = _mm256_broadcast_ss(weights + tap);
        sum = _mm256_add_ps(sum, _mm256_mul_ps(weight, _mm256_load_ps(lines[tap] + x)));
      }
      const __m256i whole = _mm256_cvtps_epi32(sum);
      const __m128i words =
          _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(row + x), _mm_packus_epi16(words, words));
    }
    std::memcpy(target, row, static_cast<unsigned long>(plan.target_width));
  }
};

template <i32 kTapsX, i32 kTapsY>
void run(const PicturePair& pair, const AreaPlan& plan, u8* target, u8* pooled) {
  AreaPassOf<Avx2Kernels<kTapsX, kTapsY>>(pair, plan, pooled).run(target);
}

}  // namespace

void area_pass_avx2(const PicturePair& pair, const AreaPlan& plan, u8* target, u8* pooled) {
  if (plan.taps_x == 3 && plan.taps_y == 3) {
    run<3, 3>(pair, plan, target, pooled);
  } else {
    run<0, 0>(pair, plan, target, pooled);
  }
}

}  // namespace scanline
#endif
