// game_batch.h -- a batch of games: from ROMs, modes and settings to environments that can be sent
// actions.
//
// Takes, for every environment, which of the given games it plays; builds what environments share
// (ROM, rules, observer, cached starts) once. Throws std::invalid_argument with a sentence if a
// game cannot be played under the settings. Host only; the binding adds nothing but Python.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "../core/rom_identify.h"
#include "../games/table.h"
#include "batch.h"
#include "snapshot.h"

namespace scanline {

struct GameChoice {
  std::vector<u8> rom;
  u32 game = 0;         // row of the game table
  i32 mode = -1;        // -1: the game's default
  i32 difficulty = -1;  // -1: the game's default
};

class GameBatch {
 public:
  using Environments = Batch<GameEnvironment>;

  // `games_of_envs` names, for each environment, an entry of `choices`.
  GameBatch(const std::vector<GameChoice>& choices, const std::vector<i32>& games_of_envs,
            const EnvSettings& settings, i32 num_groups, i32 num_threads);

  Environments& environments() { return *environments_; }
  const EpisodeRules& rules_of(i32 env) { return *environments_->slot(env).rules; }
  // Height of the pictures, before any resize; the largest, if games differ.
  i32 screen_height() const { return screen_height_; }

 private:
  // What the environments of one choice share.
  struct Shared {
    std::shared_ptr<const GameVariant> variant;
    std::shared_ptr<const EpisodeRules> rules;
    std::shared_ptr<const StartCache<GameEnvironment>> starts;
  };

  Shared share(const GameChoice& choice, const EnvSettings& settings);
  const Observer& observer_for(const EnvSettings& settings, bool pal, i32 height);

  std::map<std::pair<bool, i32>, std::unique_ptr<Observer>> observers_;
  i32 screen_height_ = 0;
  std::unique_ptr<Environments> environments_;
};

}  // namespace scanline
