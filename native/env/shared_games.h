// shared_games.h -- what all environments of one game, mode and protocol share, built once.
//
// Takes ROMs, modes and settings; gives ROM, rules, observer and cached starts. Throws
// std::invalid_argument with a sentence if a game cannot be played under the settings. Host only.
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../core/rom_identify.h"
#include "../games/table.h"
#include "episode.h"
#include "game_environment.h"

namespace scanline {

struct GameChoice {
  std::vector<u8> rom;
  u32 game = 0;         // row of the game table
  i32 mode = -1;        // -1: the game's default
  i32 difficulty = -1;  // -1: the game's default
};

// What the environments of one choice share.
struct SharedGame {
  std::shared_ptr<const GameVariant> variant;
  std::shared_ptr<const EpisodeRules> rules;  // its observer belongs to SharedGames
  std::shared_ptr<const StartCache<GameEnvironment>> starts;
  i32 screen_height = 0;  // of the pictures, before any resize
};

class SharedGames {
 public:
  SharedGame share(const GameChoice& choice, const EnvSettings& settings);

 private:
  const Observer& observer_for(const EnvSettings& settings, bool pal, i32 height);

  std::map<std::pair<bool, i32>, std::unique_ptr<Observer>> observers_;
};

}  // namespace scanline
