// adventure.h -- Adventure: one point for the chalice in the yellow castle.
//
// The point stays in `reward` once given.
#pragma once

#include "../game_state.h"

namespace scanline::games::special::adventure {

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  const bool chalice_home = memory.ram(0xB9) == 0x12;
  const bool eaten = memory.ram(0xE0) == 2;
  if (chalice_home) state.reward = 1;
  state.terminal = chalice_home || eaten;
}

}  // namespace scanline::games::special::adventure
