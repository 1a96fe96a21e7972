// miniature_golf.h -- Miniature Golf: par minus strokes, at the end of each hole.
//
// Between holes the right counter shows the par; during a hole it is 0 and the left counter shows
// all strokes so far, modulo 100. extra: hole, par, strokes lost to the wrap, the counter as last
// seen, the counter when the hole began. An end stays an end until the reset.
#pragma once

#include "../decode.h"
#include "../game_state.h"

namespace scanline::games::special::miniature_golf {

enum Extra { kHole, kPar, kWrapped, kCounter, kAtStart };

SCANLINE_HD inline void finish_hole(GameState& state, i32 next_hole) {
  i32* extra = state.extra;
  const i32 strokes = extra[kCounter] + extra[kWrapped] - extra[kAtStart];
  if (strokes > 0) state.reward = extra[kPar] - strokes;
  if (next_hole == 0) state.terminal = 1;
  extra[kHole] = next_hole;
  extra[kWrapped] = 0;
  extra[kAtStart] = extra[kCounter];
}

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  i32* extra = state.extra;
  const i32 left = bcd_of(memory.ram(0x87));
  const i32 right = bcd_of(memory.ram(0x88));
  const i32 hole = bcd_of(memory.ram(0xAF));
  state.reward = 0;
  if (hole != extra[kHole]) finish_hole(state, hole);
  if (right != 0) {
    extra[kPar] = right;
    return;
  }
  if (left < extra[kCounter]) extra[kWrapped] += extra[kCounter];
  extra[kCounter] = left;
}

}  // namespace scanline::games::special::miniature_golf
