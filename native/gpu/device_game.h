// device_game.h -- one game as the bytes of a device's buffers, and lanes to and from snapshots.
//
// Takes a ROM, a mode and settings; plays the cached starts on the CPU and gives all that the
// kernels of kernels.inc read. One environment of the CPU (env/slot.h) stands between lanes and
// snapshots, so that a snapshot is the same bytes wherever it was taken. Host only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../env/shared_games.h"
#include "../env/slot_snapshot.h"
#include "lane.h"

namespace scanline::gpu {

// Null if kernels can honour the settings, else a sentence that says what they cannot.
const char* refusal(const EnvSettings& settings);

class DeviceGame {
 public:
  // Throws std::invalid_argument with a sentence where the game cannot be played on a device.
  DeviceGame(const GameChoice& choice, const EnvSettings& settings);

  const Game& record() const { return record_; }
  CartridgeType type() const { return shared_.variant->rom.image().type; }
  std::vector<u8> rom() const;           // the image, and its control words behind it
  std::vector<u8> starts() const;        // [num_starts] of Start
  std::vector<u8> start_frames() const;  // [num_starts][frame bytes]
  std::vector<i32> firsts() const;       // as observe.h wants them
  std::vector<float> weights() const;
  i32 frame_bytes() const { return shared_.rules->observer->frame_bytes(); }

  // A lane whose environment has just been loaded with a seed: it must be reset first.
  void load(const Seed& seed, Lane& lane);
  std::vector<u8> snapshot(const Lane& lane);
  // Empty if the lane continues from the snapshot, else the reason why not; the lane is as it was.
  std::string restore(const u8* bytes, u64 size, Lane& lane);

 private:
  void export_to(Lane& lane);
  void import_from(const Lane& lane);

  SharedGames games_;
  SharedGame shared_;
  Game record_{};
  std::unique_ptr<Slot<GameEnvironment>> slot_;
};

}  // namespace scanline::gpu
