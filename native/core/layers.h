// layers.h -- colours of a span: which pixels take which colour register, and painting them.
//
// Takes masks and priority, gives bytes in one row of a picture. Knows no clocks and no state.
// Two ways to paint, portable and AVX2, with one result.
#pragma once

#include "bits160.h"
#include "tia_objects.h"

namespace scanline {

// Disjoint sets of pixels; the rest is background.
struct Layers {
  Bits160 zero;   // colour of player 0
  Bits160 one;    // colour of player 1
  Bits160 field;  // colour of the playfield
};

// `masks` of all objects in the order of Object; empty for those that are not enabled.
SCANLINE_HD inline Layers layers_of(Priority priority, const Bits160* masks) {
  Bits160 zero = masks[kP0] | masks[kM0];
  Bits160 one = masks[kP1] | masks[kM1];
  Bits160 field = masks[kBall];
  const Bits160 playfield = masks[kPlayfield];
  if (priority.playfield_first) {
    field = field | playfield;
    zero = without(zero, field);
    return {zero, without(without(one, field), zero), field};
  }
  if (priority.score) {
    zero = zero | (playfield & Bits160::span(0, 80));
    one = one | (playfield & Bits160::span(80, 160));
  } else {
    field = field | playfield;
  }
  one = without(one, zero);
  return {zero, one, without(without(field, zero), one)};
}

SCANLINE_HD inline void fill(u8* row, i32 begin, i32 end, u8 colour) {
  for (i32 x = begin; x < end; ++x) row[x] = colour;
}

// `colours` in the order of MachineState::colu.
SCANLINE_HD inline void paint_portably(u8* row, i32 begin, i32 end, const Layers& layers,
                                       const u8* colours) {
  for (i32 x = begin; x < end; ++x) {
    const i32 chunk = x / 32, bit = x % 32;
    u8 colour = colours[kColourBackground];
    if ((layers.field.chunk(chunk) >> bit) & 1) colour = colours[kColourPlayfield];
    if ((layers.one.chunk(chunk) >> bit) & 1) colour = colours[kColourP1];
    if ((layers.zero.chunk(chunk) >> bit) & 1) colour = colours[kColourP0];
    row[x] = colour;
  }
}

#if SCANLINE_AVX2

// 32 bits to 32 bytes of 0x00 or 0xFF.
SCANLINE_INLINE __m256i bytes_of(u32 bits) {
  const __m256i which =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i select = _mm256_set1_epi64x(static_cast<i64>(0x8040201008040201ull));
  const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<i32>(bits)), which);
  return _mm256_cmpeq_epi8(_mm256_and_si256(spread, select), select);
}

struct Chunks {
  alignas(32) u32 bits[8];
  explicit Chunks(Bits160 source) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(bits), source.bits);
  }
};

inline void paint_avx2(u8* row, i32 begin, i32 end, const Layers& layers, const u8* colours) {
  const Chunks zero(layers.zero), one(layers.one), field(layers.field);
  const Chunks inside(Bits160::span(begin, end));
  const __m256i colour_zero = _mm256_set1_epi8(static_cast<char>(colours[kColourP0]));
  const __m256i colour_one = _mm256_set1_epi8(static_cast<char>(colours[kColourP1]));
  const __m256i colour_field = _mm256_set1_epi8(static_cast<char>(colours[kColourPlayfield]));
  const __m256i background = _mm256_set1_epi8(static_cast<char>(colours[kColourBackground]));
  for (i32 i = begin / 32; 32 * i < end; ++i) {
    __m256i* target = reinterpret_cast<__m256i*>(row + 32 * i);
    __m256i pixels = _mm256_blendv_epi8(background, colour_field, bytes_of(field.bits[i]));
    pixels = _mm256_blendv_epi8(pixels, colour_one, bytes_of(one.bits[i]));
    pixels = _mm256_blendv_epi8(pixels, colour_zero, bytes_of(zero.bits[i]));
    if (inside.bits[i] != ~0u)
      pixels = _mm256_blendv_epi8(_mm256_loadu_si256(target), pixels, bytes_of(inside.bits[i]));
    _mm256_storeu_si256(target, pixels);
  }
}

SCANLINE_INLINE void paint(u8* row, i32 begin, i32 end, const Layers& layers, const u8* colours) {
  paint_avx2(row, begin, end, layers, colours);
}

#else

SCANLINE_HD SCANLINE_INLINE void paint(u8* row, i32 begin, i32 end, const Layers& layers,
                                       const u8* colours) {
  paint_portably(row, begin, end, layers, colours);
}

#endif

}  // namespace scanline
