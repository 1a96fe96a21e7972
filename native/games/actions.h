// actions.h -- ALE's action numbers and the sets of them that games use.
//
// A set is a mask: bit i stands for action i. Player B's actions are the same numbers plus
// kPlayerB; RESET is the console switch, which only resets and starting actions may press.
#pragma once

#include "../core/types.h"

namespace scanline::games {

enum Action : u8 {
  kNoop,
  kFire,
  kUp,
  kRight,
  kLeft,
  kDown,
  kUpRight,
  kUpLeft,
  kDownRight,
  kDownLeft,
  kUpFire,
  kRightFire,
  kLeftFire,
  kDownFire,
  kUpRightFire,
  kUpLeftFire,
  kDownRightFire,
  kDownLeftFire,
  kNumActions,
  kPlayerB = 18,
  kReset = 40,
};

using ActionSet = u32;

template <class... Actions>
constexpr ActionSet set_of(Actions... actions) {
  return ((1u << actions) | ...);
}

constexpr ActionSet kCross = set_of(kUp, kRight, kLeft, kDown);
constexpr ActionSet kDiagonals = set_of(kUpRight, kUpLeft, kDownRight, kDownLeft);
constexpr ActionSet kCrossFire = set_of(kUpFire, kRightFire, kLeftFire, kDownFire);
constexpr ActionSet kDiagonalsFire =
    set_of(kUpRightFire, kUpLeftFire, kDownRightFire, kDownLeftFire);
constexpr ActionSet kSidesFire = set_of(kRightFire, kLeftFire);
constexpr ActionSet kStill = set_of(kNoop, kFire);
constexpr ActionSet kSides = set_of(kRight, kLeft);
constexpr ActionSet kAllActions = (1u << kNumActions) - 1;
constexpr ActionSet kWithoutFire = set_of(kNoop) | kCross | kDiagonals;

}  // namespace scanline::games
