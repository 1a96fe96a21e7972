// game_environment.h -- one game in one mode as the environment that episodes are played in.
//
// Joins a ROM, a row of the game table, the console in use and a random stream; the console can be
// loaded anew with another seed, which is what ALE does when it is seeded. Nothing here decides
// what an agent step means.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../core/console.h"
#include "../core/palette.h"
#include "ale_environment.h"
#include "env_random.h"
#include "fast_console.h"
#include "owned_rom.h"
#include "seen_console.h"

namespace scanline {

// What is fixed while a game runs; shared by all its environments.
struct GameVariant {
  explicit GameVariant(std::vector<u8> bytes) : rom(std::move(bytes)) {}
  OwnedRom rom;
  const games::GameRow* row = nullptr;
  u32 mode = 0;
  u32 difficulty = 0;
  Properties properties;  // as a console with this ROM detects them
  double sticky = 0.0;
  RandomStream random_stream = RandomStream::kCounter;
};

class GameEnvironment {
 public:
  using Ale = AleEnvironment<SeenConsole<FastConsole>, EnvRandom>;
  using Snapshot = Ale::Snapshot;
  static_assert(!Ale::kSnapshotHasPadding, "every byte is part of a field");

  explicit GameEnvironment(std::shared_ptr<const GameVariant> variant)
      : variant_(std::move(variant)) {}

  // ALE's loadROM, then its setMode and setDifficulty.
  void load(u32 seed, const EnvStream& stream) {
    const AleSettings settings{static_cast<float>(variant_->sticky), 0};
    ale_.emplace(variant_->rom.image(), *variant_->row, settings,
                 EnvRandom(variant_->random_stream, seed, stream));
    ale_->set_mode(variant_->mode);
    ale_->set_difficulty(variant_->difficulty);
  }
  Ale& ale() { return *ale_; }
  bool is_loaded() const { return ale_.has_value(); }
  const GameVariant& variant() const { return *variant_; }

  void reset() {
    recording_ = false;
    ale_->reset();
  }
  // How far the actions that follow turn a paddle, 0 to 1 of what a button does.
  void set_strength(float strength) { strength_ = strength; }
  i32 act(u32 action, bool seen) {
    const i32 reward = ale_->act(action, games::kNoop, strength_, 1.0f, seen || recording_);
    if (recording_) record_picture();
    return reward;
  }
  bool game_over() const { return ale_->game_over(); }
  i32 lives() const { return ale_->lives(); }
  i32 frame_number() const { return ale_->frame_number(); }
  i32 episode_frame_number() const { return ale_->episode_frame_number(); }
  const u8* ram() const { return ale_->ram(); }
  const u8* screen() const { return ale_->screen(); }
  const u8* previous_screen() const { return ale_->previous_screen(); }
  i32 screen_height() const { return ale_->screen_height(); }
  const Properties& properties() const { return ale_->properties(); }
  void show_pictures(i32 count) { ale_->show_pictures(count); }

  static Snapshot blank_snapshot() {
    return {{}, {}, EnvRandom(RandomStream::kCounter, 0, EnvStream{})};
  }
  void save(Snapshot& snapshot) { ale_->save(snapshot); }
  // The first field of a snapshot of unknown origin that forbids to restore it.
  WrongField check(const Snapshot& snapshot) const {
    return Ale::check(snapshot, variant_->rom.image().type, variant_->properties, *variant_->row,
                      variant_->random_stream);
  }
  void restore(const Snapshot& snapshot) {
    if (!is_loaded()) load(0, EnvStream{});
    ale_->restore(snapshot);
  }
  // Takes over the game of a snapshot, but keeps its own random stream and frame count.
  void start_from(const Snapshot& snapshot) {
    recording_ = false;
    ale_->start_from(snapshot);
  }

  // ---- films ----

  // Keeps the picture of every frame that is acted from now on, until the game starts anew.
  void start_recording() {
    recording_ = true;
    recorded_.clear();
  }
  // The pictures since the last call, as colour indices [frames][screen_height()][160].
  std::vector<u8> take_recorded() { return std::exchange(recorded_, {}); }

 private:
  void record_picture() {
    show_pictures(1);
    recorded_.insert(recorded_.end(), screen(), screen() + 160 * screen_height());
  }

  std::shared_ptr<const GameVariant> variant_;
  std::optional<Ale> ale_;
  float strength_ = 1.0f;
  bool recording_ = false;
  std::vector<u8> recorded_;
};

}  // namespace scanline
