// slot.h -- one environment with its episode, and what it shares with others of its game.
//
// Owns the environment; rules and cached starts are shared. Knows no threads or batches. `Env` as
// in episode.h, with load(u32 seed, EnvStream).
#pragma once

#include <memory>
#include <utility>

#include "episode.h"

namespace scanline {

// What an environment starts its random draws from.
struct Seed {
  u32 ale = 0;       // for ALE's generators
  EnvStream stream;  // for ours
};

template <class Env>
struct Slot {
  template <class... Args>
  Slot(std::shared_ptr<const EpisodeRules> shared, std::shared_ptr<const StartCache<Env>> cache,
       Args&&... args)
      : rules(std::move(shared)),
        starts(std::move(cache)),
        env(std::forward<Args>(args)...),
        episode(env, *rules, starts.get()) {}

  void load(const Seed& seed) {
    env.load(seed.ale, seed.stream);
    episode.seed(seed.ale, seed.stream);
  }

  std::shared_ptr<const EpisodeRules> rules;
  std::shared_ptr<const StartCache<Env>> starts;
  Env env;
  Episode<Env> episode;
};

}  // namespace scanline
