// enduro.h -- Enduro: cars passed. The console counts the cars still to pass on this day.
//
// 200 cars on the first day, 300 on each later one; day 0 is before the start.
#pragma once

#include "../decode.h"
#include "../game_state.h"

namespace scanline::games::special::enduro {

SCANLINE_HD inline i32 cars_passed(i32 day, i32 cars_left) {
  if (day == 0) return 0;
  const i32 cars_by_tonight = 200 + 300 * (day - 1);
  return cars_by_tonight - cars_left;
}

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  const i32 cars_left = bcd_of(memory.ram(0xAB)) + 100 * bcd_of(memory.ram(0xAC));
  const i32 passed = cars_passed(memory.ram(0xAD), cars_left);
  state.reward = passed - state.score;
  state.score = passed;
  state.terminal = memory.ram(0xAF) == 0xFF;
}

}  // namespace scanline::games::special::enduro
