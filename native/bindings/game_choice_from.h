// game_choice_from.h -- a Python tuple of ROM, row of the game table, mode and difficulty.
#pragma once

#include "../env/shared_games.h"
#include "arrays.h"
#include "settings_from.h"

namespace scanline {

inline GameChoice game_choice_from(nb::handle entry) {
  const nb::tuple game =
      tuple_of(entry, 4, "a game must be a tuple of ROM, row, mode and difficulty");
  const nb::bytes rom = nb::cast<nb::bytes>(game[0]);
  const u8* bytes = reinterpret_cast<const u8*>(rom.data());
  GameChoice choice;
  choice.rom.assign(bytes, bytes + rom.size());
  choice.game =
      static_cast<u32>(whole_number("game", game[1], 0, static_cast<i32>(games::kNumGames) - 1));
  choice.mode = whole_number("mode", game[2], -1, 255);
  choice.difficulty = whole_number("difficulty", game[3], -1, 3);
  return choice;
}

}  // namespace scanline
