// special.h -- the games that a row cannot say, one header each.
//
// Each header offers `step(GameState&, memory)`, a function of memory and of what GameState
// remembers, and names its use of GameState::extra. `reward` keeps its value in frames in which
// such a step does not set it: ALE hands out the old one again.
#pragma once

#include "../game_id.h"
#include "../game_state.h"
#include "adventure.h"
#include "backgammon.h"
#include "casino.h"
#include "darkchambers.h"
#include "enduro.h"
#include "hangman.h"
#include "haunted_house.h"
#include "klax.h"
#include "miniature_golf.h"
#include "othello.h"
#include "superman.h"
#include "tennis.h"
#include "tic_tac_toe_3d.h"
#include "video_checkers.h"
#include "video_chess.h"
#include "video_cube.h"
#include "word_zapper.h"

namespace scanline::games::special {

// What these two keep across a reset is listed in step.h.
SCANLINE_HD inline void reset(GameId game, GameState& state) {
  if (game == GameId::video_checkers || game == GameId::video_cube) return;
  for (i32& value : state.extra) value = 0;
  if (game == GameId::hangman) hangman::reset(state);
}

template <class Memory>
SCANLINE_HD void step(GameId game, GameState& state, const Memory& memory) {
#define SCANLINE_SPECIAL_CASE(name) \
  case GameId::name:                \
    return name::step(state, memory);
  switch (game) {
    SCANLINE_SPECIAL_CASE(adventure)
    SCANLINE_SPECIAL_CASE(backgammon)
    SCANLINE_SPECIAL_CASE(casino)
    SCANLINE_SPECIAL_CASE(darkchambers)
    SCANLINE_SPECIAL_CASE(enduro)
    SCANLINE_SPECIAL_CASE(hangman)
    SCANLINE_SPECIAL_CASE(haunted_house)
    SCANLINE_SPECIAL_CASE(klax)
    SCANLINE_SPECIAL_CASE(miniature_golf)
    SCANLINE_SPECIAL_CASE(othello)
    SCANLINE_SPECIAL_CASE(superman)
    SCANLINE_SPECIAL_CASE(tennis)
    SCANLINE_SPECIAL_CASE(tic_tac_toe_3d)
    SCANLINE_SPECIAL_CASE(video_checkers)
    SCANLINE_SPECIAL_CASE(video_chess)
    SCANLINE_SPECIAL_CASE(video_cube)
    SCANLINE_SPECIAL_CASE(word_zapper)
    default:
      return;
  }
#undef SCANLINE_SPECIAL_CASE
}

}  // namespace scanline::games::special
