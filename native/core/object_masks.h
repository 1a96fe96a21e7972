// object_masks.h -- the TIA's objects as lines of 160 bits.
//
// The same shapes as player_at, missile_at, ball_at and playfield_at in tia_objects.h, a whole line
// at once; pure. Checked against them by tests/test_tia_masks.cpp.
#pragma once

#include "bits160.h"
#include "tia_objects.h"

namespace scanline {

// Each bit of a byte becomes two, or four.
SCANLINE_HD SCANLINE_INLINE constexpr u32 widen_twice(u32 byte) {
  u32 bits = (byte | (byte << 4)) & 0x0F0F;
  bits = (bits | (bits << 2)) & 0x3333;
  bits = (bits | (bits << 1)) & 0x5555;
  return bits | (bits << 1);
}

SCANLINE_HD SCANLINE_INLINE constexpr u32 widen_fourfold(u32 byte) {
  u32 bits = (byte | (byte << 12)) & 0x000F000F;
  bits = (bits | (bits << 6)) & 0x03030303;
  bits = (bits | (bits << 3)) & 0x11111111;
  return bits * 15;
}

// The same for 16 bits. Shifts instead of a bit deposit, which is microcode on Zen 1 and 2.
SCANLINE_HD SCANLINE_INLINE constexpr u64 widen_word_fourfold(u32 word) {
  return widen_fourfold(word & 0xFF) | (static_cast<u64>(widen_fourfold(word >> 8)) << 32);
}

// Copies up to 32 pixels away fit the low word, the one 64 pixels away is the high word.
SCANLINE_HD SCANLINE_INLINE Pattern96 with_copies(u64 shape, u32 copies) {
  const u64 near = (copies & 1) | ((copies & 2) << 15) | (static_cast<u64>(copies & 4) << 30);
  return {shape * near, copies & 16 ? static_cast<u32>(shape) : 0};
}

// `bits` are the player's eight pixels, bit 0 leftmost.
SCANLINE_HD inline Bits160 player_mask(u8 bits, u32 nusiz, i32 pos, bool first_hidden) {
  u64 shape = bits;
  if (player_stretch(nusiz) == 1) shape = static_cast<u64>(widen_twice(bits)) << 1;
  if (player_stretch(nusiz) == 2) shape = static_cast<u64>(widen_fourfold(bits)) << 1;
  const u32 copies = copies_of(nusiz) & (first_hidden ? ~1u : ~0u);
  return Bits160::place(with_copies(shape, copies), pos);
}

// Width 0 gives no pixel.
SCANLINE_HD inline Bits160 missile_mask(u32 nusiz, i32 width, i32 pos) {
  return Bits160::place(with_copies((1u << width) - 1, copies_of(nusiz)), pos);
}

SCANLINE_HD inline Bits160 ball_mask(i32 width, i32 pos) {
  return Bits160::place({(1u << width) - 1, 0}, pos);
}

// 20 playfield pixels, four clocks each.
SCANLINE_HD SCANLINE_INLINE Pattern96 half_playfield(u32 bits) {
  return {widen_word_fourfold(bits & 0xFFFF), widen_fourfold(bits >> 16)};
}

SCANLINE_HD inline Bits160 playfield_mask(u8 pf0, u8 pf1, u8 pf2, bool reflected) {
  const Pattern96 left = half_playfield(playfield_bits(pf0, pf1, pf2));
  if (!reflected) return Bits160::halves(left, left);
  return Bits160::halves(left, half_playfield(mirrored_playfield_bits(pf0, pf1, pf2)));
}

}  // namespace scanline
