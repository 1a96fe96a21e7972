// casino.h -- Casino: chips won, in three card games chosen by the mode.
//
// Solitaire poker ends once its score is counted. The others end when the chips are gone or the
// console stops listening; the reward of the last frame it listened to is handed out until then.
#pragma once

#include "../decode.h"
#include "../game_state.h"

namespace scanline::games::special::casino {

constexpr u8 kSolitaire = 3;

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  const i32 chips = bcd_of(memory.ram(0x95)) + 100 * bcd_of(memory.ram(0x8C));
  const u8 table = memory.ram(0x9E);
  if (memory.ram(0xD4) == kSolitaire) {
    state.reward = chips - state.score;
    state.terminal = chips > 0 && table == 0xAA;
  } else {
    const bool listening = (memory.ram(0xD3) & 0x80) == 0;
    if (listening) state.reward = chips - state.score;
    state.terminal = chips == 0 || (table != 0 && !listening);
  }
  state.score = chips;
}

}  // namespace scanline::games::special::casino
