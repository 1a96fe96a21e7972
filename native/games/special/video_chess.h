// video_chess.h -- Video Chess: +1 or -1 for mate.
//
// While the computer thinks, memory shows the moves it tries: only white's turn counts. An end
// stays an end until the reset.
#pragma once

#include "../game_state.h"

namespace scanline::games::special::video_chess {

constexpr u8 kWhitesTurn = 0x82, kBlackIsMated = 0, kWhiteIsMated = 1;

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  state.reward = 0;
  if (memory.ram(0xE1) != kWhitesTurn) return;
  const u8 verdict = memory.ram(0xEE);
  if (verdict != kBlackIsMated && verdict != kWhiteIsMated) return;
  state.reward = verdict == kBlackIsMated ? 1 : -1;
  state.terminal = 1;
}

}  // namespace scanline::games::special::video_chess
