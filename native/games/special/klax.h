// klax.h -- Klax: its score, misses and level lie in the cartridge's own memory.
#pragma once

#include "../decode.h"
#include "../game_state.h"

namespace scanline::games::special::klax {

constexpr u8 kBoard = 0xB3;
constexpr u32 kNumCells = 25;

// 0 is empty; 2, 6, 10 and 14 are the grey fill of a level's end.
SCANLINE_HD inline bool is_block(u8 cell) { return cell != 0 && (cell > 14 || cell % 4 != 2); }

template <class Memory>
SCANLINE_HD bool board_is_full(const Memory& memory) {
  for (u32 i = 0; i < kNumCells; ++i) {
    if (!is_block(memory.ram(static_cast<u8>(kBoard + i)))) return false;
  }
  return true;
}

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  const i32 points = bcd_of(memory.cartridge(0xF0B4)) + 100 * bcd_of(memory.cartridge(0xF0B5)) +
                     10000 * bcd_of(memory.cartridge(0xF0B6));
  state.reward = points - state.score;
  state.score = points;
  const u8 misses = memory.cartridge(0xF0EE);
  const u8 misses_allowed = memory.cartridge(0xF0E9);
  const bool playing = memory.ram(0xA8) == 4;
  const bool last_level = memory.cartridge(0xF09D) == 0x99;
  state.terminal = (misses_allowed > 0 && misses == misses_allowed) ||
                   (playing && board_is_full(memory)) || last_level;
}

}  // namespace scanline::games::special::klax
