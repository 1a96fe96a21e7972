// video_checkers.h -- Video Checkers: +1 or -1 when a side has no piece left.
//
// extra[0]: the mode is one of those in which losing all pieces wins; set with the mode and kept
// across resets. Result and end stay until the reset.
#pragma once

#include "../game_state.h"

namespace scanline::games::special::video_checkers {

constexpr u32 kNumRows = 4, kSquaresPerRow = 8, kRowStride = 9;
constexpr u32 kFirstReversedMode = 11;

SCANLINE_HD inline void set_mode(GameState& state, u32 mode) {
  state.extra[0] = mode >= kFirstReversedMode;
}

struct Pieces {
  u32 black, white;
};

// A man is 10, a king 20; white has the top bit set.
template <class Memory>
SCANLINE_HD Pieces on_board(const Memory& memory) {
  Pieces pieces = {0, 0};
  for (u32 i = 0; i < kNumRows * kSquaresPerRow; ++i) {
    const u32 offset = i / kSquaresPerRow * kRowStride + i % kSquaresPerRow;
    const u8 square = memory.ram(static_cast<u8>(0x80 + offset));
    const u8 piece = square & 0x7F;
    if (piece != 0x10 && piece != 0x20) continue;
    ++(square & 0x80 ? pieces.white : pieces.black);
  }
  return pieces;
}

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  const Pieces pieces = on_board(memory);
  if (pieces.black != 0 && pieces.white != 0) return;
  const i32 for_black = pieces.black == 0 ? -1 : 1;
  state.reward = state.extra[0] ? -for_black : for_black;
  state.terminal = 1;
}

}  // namespace scanline::games::special::video_checkers
