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
  for (i32 chunk = begin / 32; 32 * chunk < end; ++chunk) {
    const i32 first = 32 * chunk > begin ? 32 * chunk : begin;
    const i32 behind = 32 * chunk + 32 < end ? 32 * chunk + 32 : end;
    u32 field = layers.field.chunk(chunk) >> (first % 32);
    u32 one = layers.one.chunk(chunk) >> (first % 32);
    u32 zero = layers.zero.chunk(chunk) >> (first % 32);
    for (i32 x = first; x < behind; ++x, field >>= 1, one >>= 1, zero >>= 1) {
      u8 colour = field & 1 ? colours[kColourPlayfield] : colours[kColourBackground];
      colour = one & 1 ? colours[kColourP1] : colour;
      row[x] = zero & 1 ? colours[kColourP0] : colour;
    }
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

// Layers, prepared for painting many spans with them.
struct Brush {
  Brush() = default;
  explicit Brush(const Layers& layers) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(zero), layers.zero.bits);
    _mm256_store_si256(reinterpret_cast<__m256i*>(one), layers.one.bits);
    _mm256_store_si256(reinterpret_cast<__m256i*>(field), layers.field.bits);
  }

  alignas(32) u32 zero[8];  // chunks of 32 pixels
  alignas(32) u32 one[8];
  alignas(32) u32 field[8];
};

SCANLINE_INLINE __m256i blend(__m256i pixels, u8 colour, u32 bits) {
  const __m256i bytes = _mm256_set1_epi8(static_cast<char>(colour));
  return _mm256_blendv_epi8(pixels, bytes, bytes_of(bits));
}

SCANLINE_INLINE __m256i chunk_pixels(const Brush& brush, const u8* colours, i32 i) {
  __m256i pixels = _mm256_set1_epi8(static_cast<char>(colours[kColourBackground]));
  pixels = blend(pixels, colours[kColourPlayfield], brush.field[i]);
  pixels = blend(pixels, colours[kColourP1], brush.one[i]);
  return blend(pixels, colours[kColourP0], brush.zero[i]);
}

// The pixels of chunk i that lie in the span.
SCANLINE_INLINE u32 chunk_part(i32 begin, i32 end, i32 i) {
  const i32 first = begin - 32 * i, behind = end - 32 * i;
  const u32 from = first > 0 ? ~0u << first : ~0u;
  return behind < 32 ? from & ((1u << behind) - 1) : from;
}

inline void paint_row(u8* row, const Brush& brush, const u8* colours) {
  for (i32 i = 0; i < 5; ++i)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + 32 * i), chunk_pixels(brush, colours, i));
}

inline void paint(u8* row, i32 begin, i32 end, const Brush& brush, const u8* colours) {
  if (begin == 0 && end == kWidth) return paint_row(row, brush, colours);
  for (i32 i = begin / 32; 32 * i < end; ++i) {
    __m256i* target = reinterpret_cast<__m256i*>(row + 32 * i);
    __m256i pixels = chunk_pixels(brush, colours, i);
    if (begin > 32 * i || end < 32 * i + 32) {
      const __m256i inside = bytes_of(chunk_part(begin, end, i));
      pixels = _mm256_blendv_epi8(_mm256_loadu_si256(target), pixels, inside);
    }
    _mm256_storeu_si256(target, pixels);
  }
}

#else

using Brush = Layers;

SCANLINE_HD SCANLINE_INLINE void paint(u8* row, i32 begin, i32 end, const Brush& brush,
                                       const u8* colours) {
  paint_portably(row, begin, end, brush, colours);
}

#endif

}  // namespace scanline
