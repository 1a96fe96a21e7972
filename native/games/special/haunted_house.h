// haunted_house.h -- Haunted House: -1 for each match struck, +100 for leaving with the urn.
//
// `score` counts the matches.
#pragma once

#include "../decode.h"
#include "../game_state.h"

namespace scanline::games::special::haunted_house {

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  const i32 matches = bcd_of(memory.ram(0x82));
  const bool escaped = memory.ram(0x99) == 0x44;
  state.reward = (escaped ? 100 : 0) - (matches != state.score ? 1 : 0);
  state.score = matches;
  state.held_lives = memory.ram(0x96);
  state.terminal = state.held_lives == 0 || escaped;
}

}  // namespace scanline::games::special::haunted_house
