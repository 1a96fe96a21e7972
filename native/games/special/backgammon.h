// backgammon.h -- Backgammon: +1 or -1 for the side that has borne off all of its pieces.
//
// 28 bytes hold the board: ours count as negative numbers, the computer's as positive. While the
// computer thinks they are scratch memory; only a board with 15 pieces on each side is real.
#pragma once

#include "../game_state.h"

namespace scanline::games::special::backgammon {

struct Pieces {
  i8 ours, theirs;
};

constexpr u8 kOurHome = 0x80, kTheirHome = 0x8E, kFirst = 0x80, kLast = 0x9B;
constexpr i32 kAll = 15;

// The sums wrap at 8 bits, which decides which scratch boards look real.
template <class Memory>
SCANLINE_HD Pieces on_board(const Memory& memory) {
  Pieces pieces = {0, 0};
  for (u32 address = kFirst; address <= kLast; ++address) {
    if (address == kOurHome || address == kTheirHome) continue;
    const i8 count = static_cast<i8>(memory.ram(static_cast<u8>(address)));
    if (count > 0) {
      pieces.theirs = static_cast<i8>(pieces.theirs + count);
    } else {
      pieces.ours = static_cast<i8>(pieces.ours - count);
    }
  }
  return pieces;
}

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  const i8 our_home = static_cast<i8>(-static_cast<i8>(memory.ram(kOurHome)));
  const i8 their_home = static_cast<i8>(memory.ram(kTheirHome));
  const Pieces board = on_board(memory);
  if (board.ours + our_home != kAll || board.theirs + their_home != kAll) return;
  if (our_home != kAll && their_home != kAll) return;
  state.reward = our_home == kAll ? 1 : -1;
  state.terminal = 1;
}

}  // namespace scanline::games::special::backgammon
