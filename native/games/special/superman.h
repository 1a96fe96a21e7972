// superman.h -- Superman: seconds left of 99:59, when Clark Kent enters the Daily Planet.
#pragma once

#include "../decode.h"
#include "../game_state.h"

namespace scanline::games::special::superman {

constexpr u8 kOfficeLow = 0xAC, kOfficeHigh = 0xF2;
constexpr i32 kLongestSeconds = 99 * 60 + 59;

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  const bool in_office = memory.ram(0x80) == kOfficeLow && memory.ram(0x81) == kOfficeHigh;
  const bool is_clark_kent = (memory.ram(0x9F) & 0x40) != 0;
  const i32 seconds = bcd_of(memory.ram(0xE2)) + 60 * bcd_of(memory.ram(0xE3));
  state.terminal = in_office && is_clark_kent;
  state.reward = state.terminal ? kLongestSeconds - seconds : 0;
}

}  // namespace scanline::games::special::superman
