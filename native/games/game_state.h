// game_state.h -- what a game's specification remembers between frames.
//
// One field list, as in core/state.h: trivially copyable, no padding, hence part of a snapshot
// as it is. `reward`, `lives` and `terminal` are the results of the latest step.
#pragma once

#include "../core/types.h"

namespace scanline::games {

// SCALAR(type, name) and ARRAY(type, name, count); widest first.
#define SCANLINE_GAME_STATE_FIELDS(SCALAR, ARRAY)                              \
  SCALAR(i32, reward)                                                          \
  SCALAR(i32, score)                                                           \
  SCALAR(i32, lives)      /* as an agent sees them: 0 once the game is over */ \
  SCALAR(i32, held_lives) /* as last read from memory */                       \
  ARRAY(i32, extra, 5)    /* of the games under special/ */                    \
  SCALAR(u8, terminal)                                                         \
  SCALAR(u8, latched)    /* the row's latch has been seen since the reset */   \
  SCALAR(u8, previous)   /* the row's watched byte, one frame ago */           \
  SCALAR(u8, end_masked) /* the next step cannot be the end */

#define SCANLINE_SCALAR(type, name) type name;
#define SCANLINE_ARRAY(type, name, count) type name[count];
struct GameState {
  SCANLINE_GAME_STATE_FIELDS(SCANLINE_SCALAR, SCANLINE_ARRAY)
};
#undef SCANLINE_SCALAR
#undef SCANLINE_ARRAY

static_assert(sizeof(GameState) == 40, "no padding");

}  // namespace scanline::games
