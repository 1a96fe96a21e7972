// hangman.h -- Hangman: +1 for a word guessed, -1 for one lost; either ends the game.
//
// extra[0]: the idle timer one frame ago (-1: none). Its wrap ends the game, too. The score is
// the player's minus the computer's.
#pragma once

#include "../decode.h"
#include "../game_state.h"

namespace scanline::games::special::hangman {

constexpr i32 kNoTimer = -1;

SCANLINE_HD inline void reset(GameState& state) { state.extra[0] = kNoTimer; }

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  const i32 lead = bcd_of(memory.ram(0xEB)) - bcd_of(memory.ram(0xEC));
  const i32 timer = memory.ram(0xF1);
  const bool timed_out = timer == 0 && state.extra[0] == 0xFF;
  state.extra[0] = timer;
  state.reward = lead - state.score;
  state.score = lead;
  state.terminal = state.reward != 0 || timed_out;
}

}  // namespace scanline::games::special::hangman
