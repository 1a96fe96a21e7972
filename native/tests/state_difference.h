// state_difference.h -- names the first field in which two consoles differ.
#pragma once

#include <cstring>

#include "../core/console.h"

namespace scanline {

// Null if the states are equal.
inline const char* state_difference(const ConsoleState& a, const ConsoleState& b) {
#define SCANLINE_SCALAR(type, name, bound) \
  if (a.machine.name != b.machine.name) return #name;
#define SCANLINE_ARRAY(type, name, count, bound) \
  if (std::memcmp(a.machine.name, b.machine.name, sizeof a.machine.name) != 0) return #name;
  SCANLINE_STATE_FIELDS(SCANLINE_SCALAR, SCANLINE_ARRAY)
#undef SCANLINE_SCALAR
#undef SCANLINE_ARRAY
  return std::memcmp(&a, &b, sizeof a) == 0 ? nullptr : "the cartridge's state";
}

}  // namespace scanline
