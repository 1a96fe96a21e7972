// tennis.h -- Tennis: the lead in points, or in games when that changes in the same frame.
//
// `score` is the lead in points, extra[0] the lead in games.
#pragma once

#include "../game_state.h"

namespace scanline::games::special::tennis {

SCANLINE_HD inline bool wins_set(i32 games, i32 lead) {
  return (games >= 6 && lead >= 2) || games == 7;
}

template <class Memory>
SCANLINE_HD void step(GameState& state, const Memory& memory) {
  const i32 our_games = memory.ram(0xC7), their_games = memory.ram(0xC8);
  const i32 games_lead = our_games - their_games;
  const i32 points_lead = memory.ram(0xC5) - memory.ram(0xC6);
  const i32 games_change = games_lead - state.extra[0];
  const i32 points_change = points_lead - state.score;
  state.reward = games_change != 0 ? games_change : points_change;
  state.extra[0] = games_lead;
  state.score = points_lead;
  state.terminal = wins_set(our_games, games_lead) || wins_set(their_games, -games_lead);
}

}  // namespace scanline::games::special::tennis
