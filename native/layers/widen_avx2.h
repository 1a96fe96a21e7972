// widen_avx2.h -- bytes of pictures to floats, channels last, as the first convolution reads them.
//
// Included by files that are compiled for AVX2 and FMA only.
#pragma once

#include <immintrin.h>

#include "conv_shape.h"
#include "frames.h"

namespace scanline {

// Four planes of bytes to pixels of four floats, for `num` pixels.
inline void widen_four(const u8* const* planes, i32 num, __m256 scale, __m256 offset, float* out) {
  i32 x = 0;
  for (; x + 16 <= num; x += 16) {
    __m128i plane[4];
    for (i32 s = 0; s < 4; ++s)
      plane[s] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(planes[s] + x));
    const __m128i pairs[4] = {
        _mm_unpacklo_epi8(plane[0], plane[1]), _mm_unpacklo_epi8(plane[2], plane[3]),
        _mm_unpackhi_epi8(plane[0], plane[1]), _mm_unpackhi_epi8(plane[2], plane[3])};
    const __m128i fours[4] = {
        _mm_unpacklo_epi16(pairs[0], pairs[1]), _mm_unpackhi_epi16(pairs[0], pairs[1]),
        _mm_unpacklo_epi16(pairs[2], pairs[3]), _mm_unpackhi_epi16(pairs[2], pairs[3])};
    for (i32 q = 0; q < 4; ++q) {
      for (i32 half = 0; half < 2; ++half) {
        const __m128i eight = half ? _mm_srli_si128(fours[q], 8) : fours[q];
        const __m256 wide = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight));
        _mm256_storeu_ps(out + 4 * x + 16 * q + 8 * half,
                         _mm256_add_ps(_mm256_mul_ps(wide, scale), offset));
      }
    }
  }
  const float by = _mm256_cvtss_f32(scale), plus = _mm256_cvtss_f32(offset);
  for (; x < num; ++x)
    for (i32 s = 0; s < 4; ++s) out[4 * x + s] = static_cast<float>(planes[s][x]) * by + plus;
}

// Four planes of floats to pixels of four floats, for `num` pixels.
inline void weave_four(const float* const* planes, i32 num, float* out) {
  i32 x = 0;
  for (; x + 4 <= num; x += 4) {
    __m128 four[4];
    for (i32 s = 0; s < 4; ++s) four[s] = _mm_loadu_ps(planes[s] + x);
    _MM_TRANSPOSE4_PS(four[0], four[1], four[2], four[3]);
    for (i32 s = 0; s < 4; ++s) _mm_storeu_ps(out + 4 * (x + s), four[s]);
  }
  for (; x < num; ++x)
    for (i32 s = 0; s < 4; ++s) out[4 * x + s] = planes[s][x];
}

// One picture into the bordered input of the first layer, channels last.
inline void widen(const Frames& frames, i32 i, const ConvShape& conv, float* input) {
  const i32 stack = conv.channels, row = conv.row_floats();
  float* const inside = input + conv.first_float();
  if (!frames.bytes) {
    const float* first = static_cast<const float*>(frames.data) + i * frames.picture_stride;
    for (i32 y = 0; y < conv.height; ++y) {
      const float* const line = first + y * conv.width;
      if (stack == 4) {
        const float* planes[4];
        for (i32 s = 0; s < 4; ++s) planes[s] = line + s * frames.plane_stride;
        weave_four(planes, conv.width, inside + y * row);
        continue;
      }
      for (i32 s = 0; s < stack; ++s)
        for (i32 x = 0; x < conv.width; ++x)
          inside[y * row + x * stack + s] = line[s * frames.plane_stride + x];
    }
    return;
  }
  const u8* first = static_cast<const u8*>(frames.data) + i * frames.picture_stride;
  for (i32 y = 0; y < conv.height; ++y) {
    if (stack == 4) {
      const u8* planes[4];
      for (i32 s = 0; s < 4; ++s) planes[s] = first + s * frames.plane_stride + y * conv.width;
      widen_four(planes, conv.width, _mm256_set1_ps(frames.scale), _mm256_set1_ps(frames.offset),
                 inside + y * row);
      continue;
    }
    for (i32 s = 0; s < stack; ++s) {
      const u8* plane = first + s * frames.plane_stride + y * conv.width;
      for (i32 x = 0; x < conv.width; ++x)
        inside[y * row + x * stack + s] =
            static_cast<float>(plane[x]) * frames.scale + frames.offset;
    }
  }
}

}  // namespace scanline
