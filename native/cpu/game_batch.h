// game_batch.h -- a batch of games: from ROMs, modes and settings to environments that can be sent
// actions.
//
// Takes, for every environment, which of the given games it plays; what they share is built once
// (env/shared_games.h). Throws std::invalid_argument with a sentence if a
// game cannot be played under the settings. Host only; the binding adds nothing but Python.
#pragma once

#include <memory>
#include <vector>

#include "../env/shared_games.h"
#include "batch.h"

namespace scanline {

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
  SharedGames games_;
  i32 screen_height_ = 0;
  std::unique_ptr<Environments> environments_;
};

}  // namespace scanline
