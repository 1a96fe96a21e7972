// word_zapper.h -- Word Zapper: a point a round, three rounds.
//
// Memory means something only while the clock runs; until then the last result stands.
#pragma once

#include "../game_state.h"

namespace scanline::games::special::word_zapper {

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  const bool clock_runs = memory.ram(0xCF) != 0;
  if (!clock_runs) return;
  const i32 rounds = 2 - static_cast<i8>(memory.ram(0xDC));
  state.reward = rounds - state.score;
  state.score = rounds;
  state.terminal = rounds == 3 || memory.ram(0xDE) == 0;
}

}  // namespace scanline::games::special::word_zapper
