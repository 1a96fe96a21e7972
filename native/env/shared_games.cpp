// shared_games.cpp -- what environments share, built once.
#include "shared_games.h"

namespace scanline {
namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw std::invalid_argument(sentence); }

std::shared_ptr<GameVariant> variant_of(const GameChoice& choice, const EnvSettings& settings) {
  auto variant = std::make_shared<GameVariant>(choice.rom);
  if (!variant->rom.can_run()) refuse(variant->rom.refusal());
  const games::GameRow& row = games::row_of(static_cast<games::GameId>(choice.game));
  variant->row = &row;
  variant->mode = choice.mode < 0 ? games::mode_at(row, 0) : static_cast<u32>(choice.mode);
  variant->difficulty = choice.difficulty < 0 ? 0 : static_cast<u32>(choice.difficulty);
  if (!games::has_mode(row, variant->mode))
    refuse(std::string(games::game_name(row.game)) + " has no mode " + std::to_string(choice.mode) +
           ".");
  if (choice.difficulty >= 0 && !games::has_difficulty(row, variant->difficulty))
    refuse(std::string(games::game_name(row.game)) + " has no difficulty " +
           std::to_string(choice.difficulty) + ".");
  variant->sticky = settings.sticky;
  variant->random_stream = settings.random_stream;
  return variant;
}

std::shared_ptr<EpisodeRules> make_rules(const GameVariant& variant, const EnvSettings& settings) {
  auto rules = std::make_shared<EpisodeRules>();
  rules->settings = settings;
  const games::ActionSet set =
      settings.full_action_space ? games::kAllActions : variant.row->minimal_actions;
  for (u32 action = 0; action < games::kNumActions; ++action) {
    if (set >> action & 1) rules->actions[rules->num_actions++] = action;
  }
  rules->has_fire = set >> games::kFire & 1;
  rules->has_up = set >> games::kUp & 1;
  return rules;
}

// Start states are the same for every seed and environment: one lineage of resets of one console,
// each with its own number of NOOPs.
std::shared_ptr<const StartCache<GameEnvironment>> cached_starts(const EpisodeRules& rules,
                                                                 GameEnvironment& env) {
  auto starts = std::make_shared<StartCache<GameEnvironment>>();
  Episode<GameEnvironment> episode(env, rules, nullptr);
  episode.seed(0, EnvStream{{0, 0}, 0});
  Observer::Scratch scratch;
  for (i32 i = 0; i < rules.settings.reset_cache_states; ++i) {
    auto start = std::unique_ptr<CachedStart<GameEnvironment>>(
        new CachedStart<GameEnvironment>{env.blank_snapshot(), {}, {}});
    episode.save_start(*start, scratch);
    starts->push_back(std::move(start));
  }
  return starts;
}

}  // namespace

// The format of the pictures is known once a console has run, so one is loaded to ask.
SharedGame SharedGames::share(const GameChoice& choice, const EnvSettings& settings) {
  SharedGame shared;
  const std::shared_ptr<GameVariant> variant = variant_of(choice, settings);
  shared.variant = variant;
  GameEnvironment env(shared.variant);
  env.load(0, EnvStream{});
  variant->properties = env.properties();
  const i32 height = env.screen_height();
  if (const char* reason = Observer::refusal(settings, height))
    refuse(std::string(reason) + " (" + games::game_name(shared.variant->row->game) + ": " +
           std::to_string(height) + " rows).");
  auto rules = make_rules(*shared.variant, settings);
  rules->observer = &observer_for(settings, env.properties().pal, height);
  shared.screen_height = height;
  shared.rules = rules;
  if (settings.reset == ResetKind::kCached) shared.starts = cached_starts(*shared.rules, env);
  return shared;
}

const Observer& SharedGames::observer_for(const EnvSettings& settings, bool pal, i32 height) {
  std::unique_ptr<Observer>& observer = observers_[{pal, height}];
  if (observer == nullptr) {
    const Palette palette(pal);
    observer =
        std::make_unique<Observer>(settings, height, PaletteView{palette.grey, &palette.rgb[0][0]});
  }
  return *observer;
}

}  // namespace scanline
