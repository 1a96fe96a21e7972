// visual.h -- everything that decides how a row of pixels looks, as 24 bytes.
//
// The vocabulary of the log: a picture is drawn from changes of these bytes alone, after all rules
// of timing, resets and motion have been applied. Pure; host and device.
#pragma once

#include "layers.h"
#include "object_masks.h"
#include "state.h"
#include "tia_registers.h"

namespace scanline {

enum VisualField : u8 {
  kVisualBlank = 0,      // 1 in vertical blank
  kVisualComb = 1,       // 1 if the left border is hidden
  kVisualColours = 2,    // four, in the order of Colour
  kVisualPlayfield = 6,  // PF0, PF1, PF2
  kVisualReflect = 9,
  kVisualCtrlpf = 10,     // score, priority, ball size
  kVisualPlayers = 11,    // two patterns, bit 0 leftmost
  kVisualNusiz = 13,      // two
  kVisualHidden = 15,     // two: the first copy is hidden
  kVisualPositions = 17,  // five, in the order of Object
  kVisualMissile0 = 22,   // M0Variant
  kVisualEnabled = 23,    // set of enabled objects
  kNumVisualFields = 24
};

struct Visual {
  u8 fields[kNumVisualFields];
};

SCANLINE_HD inline Visual visual_of(const MachineState& state, u32 enabled) {
  Visual visual;
  u8* fields = visual.fields;
  fields[kVisualBlank] = (state.vblank >> 1) & 1;
  fields[kVisualComb] = state.comb;
  for (u32 i = 0; i < 4; ++i) fields[kVisualColours + i] = state.colu[i];
  for (u32 i = 0; i < 3; ++i) fields[kVisualPlayfield + i] = state.pf[i];
  fields[kVisualReflect] = state.reflect_now;
  fields[kVisualCtrlpf] = state.ctrlpf & 0x36;
  for (u32 i = 0; i < 2; ++i) {
    fields[kVisualPlayers + i] = reverse_bits(player_pattern(state, i));
    fields[kVisualNusiz + i] = state.nusiz[i] & 0x37;
    fields[kVisualHidden + i] = state.suppress[i];
  }
  for (u32 i = 0; i < 5; ++i) fields[kVisualPositions + i] = state.pos[i];
  fields[kVisualMissile0] = state.m0_variant;
  fields[kVisualEnabled] = static_cast<u8>(enabled);
  return visual;
}

SCANLINE_HD inline i32 missile0_width(const Visual& visual) {
  if (visual.fields[kVisualMissile0] == kMissileHidden) return 0;
  const u32 wide = visual.fields[kVisualMissile0] == kMissileWide ? 0x10 : 0;
  return narrow_width(visual.fields[kVisualNusiz] | wide);
}

SCANLINE_HD inline Layers layers_of(const Visual& visual) {
  const u8* fields = visual.fields;
  const u8* pos = fields + kVisualPositions;
  const u8* pf = fields + kVisualPlayfield;
  const u32 enabled = fields[kVisualEnabled];
  Bits160 masks[kNumObjects];
  for (u32 i = 0; i < 2; ++i) {
    const u32 nusiz = fields[kVisualNusiz + i];
    const i32 width = i == 0 ? missile0_width(visual) : narrow_width(nusiz);
    masks[kP0 + i] =
        player_mask(fields[kVisualPlayers + i], nusiz, pos[kP0 + i], fields[kVisualHidden + i]);
    masks[kM0 + i] = missile_mask(nusiz, width, pos[kM0 + i]);
  }
  masks[kBall] = ball_mask(narrow_width(fields[kVisualCtrlpf]), pos[kBall]);
  masks[kPlayfield] = playfield_mask(pf[0], pf[1], pf[2], fields[kVisualReflect]);
  for (u32 object = 0; object < kNumObjects; ++object)
    if ((enabled & object_bit(object)) == 0) masks[object] = Bits160::none();
  return layers_of(priority_of(fields[kVisualCtrlpf], enabled), masks);
}

// Paints pixels begin <= x < end of a row.
template <class Map>
SCANLINE_HD inline void paint_visual(u8* row, i32 begin, i32 end, const Visual& visual, Map map) {
  if (begin >= end) return;
  if (visual.fields[kVisualBlank]) return fill(row, begin, end, map(0));
  u8 colours[4];
  for (u32 i = 0; i < 4; ++i) colours[i] = map(visual.fields[kVisualColours + i]);
  paint(row, begin, end, Brush(layers_of(visual)), colours);
  if (visual.fields[kVisualComb] && begin < kCombPixels)
    fill(row, begin, end < kCombPixels ? end : kCombPixels, map(0));
}

}  // namespace scanline
