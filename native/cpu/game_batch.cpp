// game_batch.cpp -- one slot for each environment.
#include "game_batch.h"

#include <algorithm>

namespace scanline {

GameBatch::GameBatch(const std::vector<GameChoice>& choices, const std::vector<i32>& games_of_envs,
                     const EnvSettings& settings, i32 num_groups, i32 num_threads) {
  std::vector<SharedGame> shared;
  for (const GameChoice& choice : choices) {
    shared.push_back(games_.share(choice, settings));
    screen_height_ = std::max(screen_height_, shared.back().screen_height);
  }
  Environments::Slots slots;
  for (i32 game : games_of_envs) {
    const SharedGame& own = shared[static_cast<size_t>(game)];
    slots.emplace_back(new Slot<GameEnvironment>(own.rules, own.starts, own.variant));
  }
  environments_ = std::make_unique<Environments>(std::move(slots), num_groups, num_threads);
}

}  // namespace scanline
