// darkchambers.h -- Dark Chambers: points, until health, level or score fall back.
//
// extra[0]: the level reached. An end stays an end until the reset.
#pragma once

#include "../decode.h"
#include "../game_state.h"

namespace scanline::games::special::darkchambers {

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  i32& level = state.extra[0];
  state.reward = 0;
  if (memory.ram(0xD5) < level) {
    state.terminal = 1;
    return;
  }
  level = memory.ram(0xD5);
  const i32 points = 10 * bcd_of(memory.ram(0xCC)) + 1000 * bcd_of(memory.ram(0xCF));
  const bool overflowed = points < state.score;
  if (!overflowed) {
    state.reward = points - state.score;
    state.score = points;
  }
  const bool dead = (memory.ram(0xCA) & 0x1F) == 0;
  if (overflowed || dead) state.terminal = 1;
}

}  // namespace scanline::games::special::darkchambers
