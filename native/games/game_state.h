// game_state.h -- what a game's specification remembers between frames.
//
// One field list (core/fields.h) generates the struct and the check of a snapshot. `reward`,
// `lives` and `terminal` are the results of the latest step.
#pragma once

#include "../core/fields.h"

namespace scanline::games {

// Scores, lives and counters of any game stay below it, and the sum of any five fits an i32.
constexpr i32 kMaxTotal = 1 << 28;

#define SCANLINE_GAME_STATE_FIELDS(SCALAR, ARRAY)                                                \
  SCALAR(i32, reward, is_within(value, 4 * kMaxTotal))                                           \
  SCALAR(i32, score, is_within(value, kMaxTotal))                                                \
  SCALAR(i32, lives, is_within(value, kMaxTotal)) /* as an agent sees them: 0 once it is over */ \
  SCALAR(i32, held_lives, is_within(value, kMaxTotal)) /* as last read from memory */            \
  ARRAY(i32, extra, 5, is_within(value, kMaxTotal))    /* of the games under special/ */         \
  SCALAR(u8, terminal, value <= 1)                                                               \
  SCALAR(u8, latched, value <= 1)    /* the row's latch has been seen since the reset */         \
  SCALAR(u8, previous, true)         /* the row's watched byte, one frame ago */                 \
  SCALAR(u8, end_masked, value <= 1) /* the next step cannot be the end */

struct GameState {
  SCANLINE_DECLARE(SCANLINE_GAME_STATE_FIELDS)
};
SCANLINE_NO_PADDING(GameState, SCANLINE_GAME_STATE_FIELDS);

SCANLINE_HD inline WrongField wrong_field(const GameState& state) {
  SCANLINE_CHECK(SCANLINE_GAME_STATE_FIELDS);
}

}  // namespace scanline::games
