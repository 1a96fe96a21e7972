// tia_objects.h -- the TIA's geometry as closed forms: where objects lie and what hides what.
//
// Pure functions of registers and positions; knows no clock, no state struct and no picture.
// A table of ALE's is described by a formula wherever one exists. Checked exhaustively against
// slow definitions by tests/test_tia_objects.cpp.
#pragma once

#include "types.h"

namespace scanline {

constexpr i32 kLineClocks = 228;
constexpr i32 kBlankClocks = 68;  // horizontal blank, before the 160 visible clocks
constexpr i32 kWidth = 160;
constexpr i32 kCombPixels = 8;  // hidden by HMOVE's comb at the left border

// Objects; also the order of MachineState::pos and hm. As sets of objects: 1 << index.
enum Object : u8 { kP0 = 0, kP1 = 1, kM0 = 2, kM1 = 3, kBall = 4, kPlayfield = 5 };
constexpr u32 kNumObjects = 6;

// Indices of MachineState::colu.
enum Colour : u8 { kColourP0 = 0, kColourP1 = 1, kColourPlayfield = 2, kColourBackground = 3 };

SCANLINE_HD SCANLINE_INLINE constexpr u32 object_bit(u32 object) { return 1u << object; }

// Positions live on a circle of 160 pixels; `x` must lie within one turn of it.
SCANLINE_HD SCANLINE_INLINE constexpr i32 wrap(i32 x) {
  return x < 0 ? x + kWidth : (x >= kWidth ? x - kWidth : x);
}

// --- copies and sizes ----------------------------------------------------------------------------

// NUSIZ bits 0-2: set of copies, bit i is a copy 16 * i pixels to the right.
SCANLINE_HD SCANLINE_INLINE u32 copies_of(u32 nusiz) {
  constexpr u64 kCopies = 0x0115011107050301ull;  // byte m belongs to mode m
  return static_cast<u32>(kCopies >> (8 * (nusiz & 7))) & 0xFF;
}

// log2 of a player pixel's width: modes 5 and 7 stretch.
SCANLINE_HD SCANLINE_INLINE constexpr u32 player_stretch(u32 nusiz) {
  return (nusiz & 7) == 5 ? 1 : ((nusiz & 7) == 7 ? 2 : 0);
}

// Stretched players appear one pixel late.
SCANLINE_HD SCANLINE_INLINE constexpr i32 player_lateness(u32 nusiz) {
  return player_stretch(nusiz) != 0 ? 1 : 0;
}

SCANLINE_HD SCANLINE_INLINE constexpr i32 player_width(u32 nusiz) {
  return 8 << player_stretch(nusiz);
}

// Width of a missile (NUSIZ) or of the ball (CTRLPF): bits 4-5 in both.
SCANLINE_HD SCANLINE_INLINE constexpr i32 narrow_width(u32 size_register) {
  return 1 << ((size_register >> 4) & 3);
}

SCANLINE_HD SCANLINE_INLINE constexpr u8 reverse_bits(u8 value) {
  // Five copies of the byte, of which a mask keeps each bit once, in its new order modulo 8.
  return static_cast<u8>((((value * 0x80200802ull) & 0x0884422110ull) * 0x0101010101ull) >> 32);
}

// --- playfield -----------------------------------------------------------------------------------

// The left half's 20 playfield pixels, bit 0 leftmost: PF0 high nibble and PF2 lowest bit first,
// PF1 highest bit first.
SCANLINE_HD SCANLINE_INLINE constexpr u32 playfield_bits(u8 pf0, u8 pf1, u8 pf2) {
  return (static_cast<u32>(pf0) >> 4) | (static_cast<u32>(reverse_bits(pf1)) << 4) |
         (static_cast<u32>(pf2) << 12);
}

// The same pixels from right to left: a reflected right half.
SCANLINE_HD SCANLINE_INLINE constexpr u32 mirrored_playfield_bits(u8 pf0, u8 pf1, u8 pf2) {
  return static_cast<u32>(reverse_bits(pf2)) | (static_cast<u32>(pf1) << 8) |
         ((reverse_bits(pf0) & 0x0Fu) << 16);
}

SCANLINE_HD SCANLINE_INLINE constexpr bool playfield_at(u32 bits, bool reflected, i32 x) {
  const i32 column = x < 80 ? x / 4 : (reflected ? (159 - x) / 4 : (x - 80) / 4);
  return (bits >> column) & 1;
}

// --- single pixels (the definition the masks are built to equal) ---------------------------------

// Is pixel x lit by a player whose effective pattern is `pattern` (highest bit leftmost)?
SCANLINE_HD inline bool player_at(u8 pattern, u32 nusiz, i32 pos, bool first_hidden, i32 x) {
  u32 copies = copies_of(nusiz) & (first_hidden ? ~1u : ~0u);
  for (i32 offset = 0; copies != 0; copies >>= 1, offset += 16) {
    if ((copies & 1) == 0) continue;
    const i32 u = wrap(wrap(x - pos) - offset) - player_lateness(nusiz);
    if (u >= 0 && u < player_width(nusiz) && (pattern & (0x80 >> (u >> player_stretch(nusiz)))))
      return true;
  }
  return false;
}

SCANLINE_HD inline bool missile_at(u32 nusiz, i32 width, i32 pos, i32 x) {
  i32 offset = 0;
  for (u32 copies = copies_of(nusiz); copies != 0; copies >>= 1, offset += 16) {
    if ((copies & 1) && wrap(wrap(x - pos) - offset) < width) return true;
  }
  return false;
}

SCANLINE_HD SCANLINE_INLINE constexpr bool ball_at(i32 width, i32 pos, i32 x) {
  return wrap(x - pos) < width;
}

// --- motion --------------------------------------------------------------------------------------

// What HMOVE does in one CPU cycle of a line: dx = min(max(motion, floor) - late, ceiling).
struct HmoveBounds {
  i32 floor;
  i32 late;
  i32 ceiling;
};

SCANLINE_HD SCANLINE_INLINE constexpr HmoveBounds hmove_bounds(i32 line_cycle) {
  const i32 quarter = (3 * line_cycle + 1) / 4;
  if (line_cycle == 75) return {-8, 0, 8};
  if (line_cycle <= 20) return {quarter - 9, 0, 8};
  return {-8, quarter - 47, 0};
}

// Pixels to the right that HMOVE moves an object whose motion register holds `nibble`.
SCANLINE_HD SCANLINE_INLINE constexpr i32 hmove_motion(HmoveBounds bounds, u32 nibble) {
  const i32 motion = 8 - static_cast<i32>(nibble ^ 8);  // two's complement, to the left
  const i32 dx = (motion > bounds.floor ? motion : bounds.floor) - bounds.late;
  return dx < bounds.ceiling ? dx : bounds.ceiling;
}

// Objects with a motion register of 0 stay where they are.
SCANLINE_HD SCANLINE_INLINE constexpr bool hmove_keeps_zero(HmoveBounds bounds) {
  return bounds.floor <= 0 && bounds.late <= 0;
}

SCANLINE_HD SCANLINE_INLINE constexpr bool hmove_draws_comb(i32 line_cycle) {
  return line_cycle <= 20 || line_cycle == 75;
}

// Where RESP0/RESP1 puts a player, by clock of the line.
SCANLINE_HD SCANLINE_INLINE constexpr i32 player_reset_position(i32 line_clock) {
  return line_clock < kBlankClocks ? 3 : wrap(line_clock - kBlankClocks + 5);
}

// Where RESM0, RESM1 and RESBL put theirs, special cases aside.
SCANLINE_HD SCANLINE_INLINE constexpr i32 narrow_reset_position(i32 line_clock) {
  return line_clock < kBlankClocks ? 2 : wrap(line_clock - kBlankClocks + 4);
}

// Clocks between HMOVE and a strobe at which single games are known to need other positions.
SCANLINE_HD SCANLINE_INLINE constexpr i32 missile0_reset_position(i32 line_clock, u32 since_hmove) {
  return since_hmove == 60 && line_clock == 69 ? 8 : narrow_reset_position(line_clock);
}

SCANLINE_HD SCANLINE_INLINE constexpr i32 missile1_reset_position(i32 line_clock, u32 since_hmove) {
  return since_hmove == 9 && line_clock == 18 ? 3 : narrow_reset_position(line_clock);
}

SCANLINE_HD SCANLINE_INLINE constexpr i32 ball_reset_position(i32 line_clock, u32 since_hmove) {
  if (since_hmove == 54 && (line_clock == 60 || line_clock == 69)) return 10;
  if (since_hmove == 9 && line_clock == 18) return 3;
  if (since_hmove == 21 && line_clock == 30) return 6;
  if (since_hmove == 18 && line_clock == 27) return 5;
  return narrow_reset_position(line_clock);
}

// What a player's reset meets at its new position: nothing, the four clocks in which a copy is
// about to start, or the copy itself.
enum class ResetMeets : u8 { kNothing, kStart, kCopy };

SCANLINE_HD inline ResetMeets player_reset_meets(u32 nusiz, i32 old_pos, i32 new_pos) {
  i32 offset = 0;
  for (u32 copies = copies_of(nusiz); copies != 0; copies >>= 1, offset += 16) {
    if ((copies & 1) == 0) continue;
    const i32 distance = wrap(wrap(new_pos - old_pos) - offset);
    if (distance < 4) return ResetMeets::kStart;
    if (distance < 4 + player_width(nusiz)) return ResetMeets::kCopy;
  }
  return ResetMeets::kNothing;
}

// RESMP released: the missile leaves from the player's middle.
SCANLINE_HD SCANLINE_INLINE constexpr i32 player_middle(u32 nusiz) {
  return player_width(nusiz) / 2;
}

// --- collisions ----------------------------------------------------------------------------------

// The two objects behind latch bit `latch` of MachineState::collision; bit 13 has none.
struct LatchPair {
  u8 first;
  u8 second;
};

constexpr u32 kNumLatches = 16;
constexpr u32 kUnusedLatch = 13;

SCANLINE_HD SCANLINE_INLINE constexpr LatchPair latch_pair(u32 latch) {
  switch (latch) {
      // clang-format off
    case 0: return {kM0, kP1};           // CXM0P
    case 1: return {kM0, kP0};
    case 2: return {kM1, kP0};           // CXM1P
    case 3: return {kM1, kP1};
    case 4: return {kP0, kPlayfield};    // CXP0FB
    case 5: return {kP0, kBall};
    case 6: return {kP1, kPlayfield};    // CXP1FB
    case 7: return {kP1, kBall};
    case 8: return {kM0, kPlayfield};    // CXM0FB
    case 9: return {kM0, kBall};
    case 10: return {kM1, kPlayfield};   // CXM1FB
    case 11: return {kM1, kBall};
    case 12: return {kBall, kPlayfield}; // CXBLPF
    case 14: return {kP0, kP1};          // CXPPMM
    case 15: return {kM0, kM1};
    default: return {kP0, kP0};
      // clang-format on
  }
}

// Latches of all pairs within a set of objects.
SCANLINE_HD constexpr u32 latches_of(u32 objects) {
  u32 latches = 0;
  for (u32 latch = 0; latch < kNumLatches; ++latch) {
    const LatchPair pair = latch_pair(latch);
    const u32 both = object_bit(pair.first) | object_bit(pair.second);
    if (latch != kUnusedLatch && (objects & both) == both) latches |= 1u << latch;
  }
  return latches;
}

// --- priority ------------------------------------------------------------------------------------

// Who gives a span its colours. Score colours the playfield by halves; priority puts playfield and
// ball in front. With both set ALE prefers priority, unless the playfield alone is enabled.
struct Priority {
  bool score;
  bool playfield_first;
};

SCANLINE_HD SCANLINE_INLINE constexpr Priority priority_of(u32 ctrlpf, u32 enabled) {
  const bool score = (ctrlpf & 2) != 0;
  const bool first = (ctrlpf & 4) != 0;
  if (score && first) return {enabled == object_bit(kPlayfield), enabled != object_bit(kPlayfield)};
  return {score, first};
}

// Colour register of a pixel on which the objects of the set are lit.
SCANLINE_HD inline Colour colour_at(Priority priority, u32 objects, bool left_half) {
  const bool playfield = (objects & object_bit(kPlayfield)) != 0;
  const bool ball = (objects & object_bit(kBall)) != 0;
  if (priority.playfield_first && (playfield || ball)) return kColourPlayfield;
  if (objects & (object_bit(kP0) | object_bit(kM0))) return kColourP0;
  if (priority.score && playfield) return left_half ? kColourP0 : kColourP1;
  if (objects & (object_bit(kP1) | object_bit(kM1))) return kColourP1;
  return playfield || ball ? kColourPlayfield : kColourBackground;
}

}  // namespace scanline
