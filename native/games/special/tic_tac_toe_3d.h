// tic_tac_toe_3d.h -- 3-D Tic-Tac-Toe: +1 or -1 for a row of four, 0 for a full cube.
//
// A game won leaves a certain return address at the end of the stack. An end stays an end until
// the reset.
#pragma once

#include "../game_state.h"

namespace scanline::games::special::tic_tac_toe_3d {

constexpr u8 kFirstCell = 0x9A, kLastCell = 0xD9, kOurs = 0x08;

template <class Memory>
SCANLINE_HD bool cube_is_full(const Memory& memory) {
  for (u32 cell = kFirstCell; cell <= kLastCell; ++cell) {
    if (memory.ram(static_cast<u8>(cell)) == 0) return false;
  }
  return true;
}

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  const bool decided = memory.ram(0xFE) == 0x10 && memory.ram(0xFF) == 0xF3;
  const bool ours = memory.ram(0xE1) == kOurs;
  state.reward = decided ? (ours ? 1 : -1) : 0;
  if (decided || cube_is_full(memory)) state.terminal = 1;
}

}  // namespace scanline::games::special::tic_tac_toe_3d
