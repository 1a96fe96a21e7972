// video_cube.h -- Video Cube: faces of one colour, or -1 when the idle timer runs out.
//
// `score` counts the faces. extra[0]: the timer one frame ago, kept across resets.
#pragma once

#include "../game_state.h"

namespace scanline::games::special::video_cube {

constexpr u8 kFaces = 0xA0;
constexpr u32 kNumFaces = 6, kCellsPerFace = 9;

template <class Memory>
SCANLINE_HD bool is_one_colour(const Memory& memory, u32 face) {
  const u32 start = kFaces + face * kCellsPerFace;
  for (u32 i = 1; i < kCellsPerFace; ++i) {
    if (memory.ram(static_cast<u8>(start + i)) != memory.ram(static_cast<u8>(start))) return false;
  }
  return true;
}

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  i32 faces = 0;
  for (u32 face = 0; face < kNumFaces; ++face) faces += is_one_colour(memory, face);
  const i32 timer = memory.ram(0xDB);
  const bool timed_out = timer == 0 && state.extra[0] == 0xFF;
  state.extra[0] = timer;
  state.reward = timed_out ? -1 : faces - state.score;
  state.score = faces;
  state.terminal = timed_out || faces == static_cast<i32>(kNumFaces);
}

}  // namespace scanline::games::special::video_cube
