// othello.h -- Othello: white's lead in discs, until nobody has been on turn for a while.
//
// extra[0]: frames in which nobody was on turn.
#pragma once

#include "../decode.h"
#include "../game_state.h"

namespace scanline::games::special::othello {

constexpr i32 kPatienceFrames = 50;

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  const i32 lead = bcd_of(memory.ram(0xCE)) - bcd_of(memory.ram(0xD0));
  state.reward = lead - state.score;
  state.score = lead;
  state.extra[0] = memory.ram(0xC0) == 0 ? state.extra[0] + 1 : 0;
  state.terminal = state.extra[0] > kPatienceFrames;
}

}  // namespace scanline::games::special::othello
